"""The keys of parties, and what is made with them: signatures, masks, and envelopes that only one party can open.

An identity is a party's long-lived Ed25519 key pair. The public halves are exchanged out of band, once, as the parties
of a study do with their contracts. They are what keeps the server from playing a party: it carries every message and
could swap any key that is not signed.

The keys of a round are X25519 for the agreement of two parties, HKDF with SHA-256 to get a key for each purpose,
ChaCha20 for the masks, ChaCha20-Poly1305 for the envelopes. Secrets are 32 bytes. All is from the ``cryptography``
package.
"""

from __future__ import annotations

import secrets

import numpy as np
from numpy.typing import NDArray

try:
    from cryptography.exceptions import InvalidSignature, InvalidTag
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF
except ImportError:
    raise ImportError(
        "secure sums by masking need one more package (cryptography); run: pip install 'thresher[flower]'"
    ) from None

from thresher.federated.messages import BadMessage

__all__ = [
    "KEY_SIZE",
    "SIGNATURE_SIZE",
    "TAG_SIZE",
    "agree",
    "check_signature",
    "fresh_secret",
    "mask",
    "new_identity",
    "pair_mask",
    "public_identity",
    "public_key",
    "seal",
    "sign",
    "unseal",
]

Words = NDArray[np.uint64]

KEY_SIZE, TAG_SIZE = 32, 16  # bytes of a secret or a public key; what sealing adds
ONCE = bytes(12)  # the nonce of a key that seals one message only
SIGNATURE_SIZE = 64  # bytes


# -- identities ---------------------------------------------------------------------------------------------------


def new_identity() -> bytes:
    """A private identity key, to be kept on the party's own machine."""
    return Ed25519PrivateKey.generate().private_bytes_raw()


def public_identity(identity: bytes) -> bytes:
    """What the other parties need to recognise the owner of ``identity``."""
    return Ed25519PrivateKey.from_private_bytes(identity).public_key().public_bytes_raw()


def sign(identity: bytes, statement: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(identity).sign(statement)


def check_signature(public: bytes, signature: bytes, statement: bytes) -> None:
    """Raise ``thresher.federated.messages.BadMessage`` unless the owner of ``public`` signed the statement."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, statement)
    except InvalidSignature:
        raise BadMessage("signature") from None


# -- the keys of a round ------------------------------------------------------------------------------------------


def fresh_secret() -> bytes:
    """A private key, or the seed of a mask, from the operating system."""
    return secrets.token_bytes(KEY_SIZE)


def public_key(private: bytes) -> bytes:
    """What the others need to agree on a key with the owner of ``private``."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def agree(private: bytes, public: bytes, purpose: bytes) -> bytes:
    """The secret of two parties for one purpose, the same from either's private key and the other's public one."""
    try:
        common = X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:  # of small order: the secret would be zero whatever the private key
        raise BadMessage("content") from None
    return HKDF(SHA256(), length=KEY_SIZE, salt=None, info=b"thresher " + purpose).derive(common)


def mask(seed: bytes, number: int, length: int) -> Words:
    """``length`` words that only who knows the seed can tell from uniform ones; others for each round ``number``."""
    start = bytes(4) + number.to_bytes(12, "little")  # the block counter, then the nonce
    stream = Cipher(ChaCha20(seed, start), mode=None).encryptor()
    return np.frombuffer(stream.update(bytes(8 * length)), dtype="<u8").astype(np.uint64)


def pair_mask(private: bytes, public: bytes, pair: tuple[int, int], number: int, length: int) -> Words:
    """What the first of the pair, who has ``private``, adds because of the second; the second adds the negative."""
    seed = agree(private, public, b"mask %d %d" % (min(pair), max(pair)))
    words = mask(seed, number, length)
    return words if pair[0] < pair[1] else -words


def seal(key: bytes, content: bytes) -> bytes:
    """An envelope for whoever has the same key, which must seal nothing else."""
    return ChaCha20Poly1305(key).encrypt(ONCE, content, None)


def unseal(key: bytes, envelope: bytes) -> bytes:
    """What is in an envelope, if this key sealed it and nobody touched it since."""
    try:
        return ChaCha20Poly1305(key).decrypt(ONCE, envelope, None)
    except InvalidTag:
        raise BadMessage("sealed") from None
