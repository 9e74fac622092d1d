"""Keys that two parties agree on, the masks that grow from them, and envelopes that only one party can open.

X25519 for the agreement, HKDF with SHA-256 to get a key for each purpose, ChaCha20 for the masks,
ChaCha20-Poly1305 for the envelopes; all from the ``cryptography`` package. Secrets are 32 bytes.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.federated.ciphers import (
    HKDF,
    SHA256,
    ChaCha20,
    ChaCha20Poly1305,
    Cipher,
    InvalidTag,
    X25519PrivateKey,
    X25519PublicKey,
)
from thresher.federated.messages import BadMessage

__all__ = ["KEY_SIZE", "TAG_SIZE", "agree", "fresh_secret", "mask", "pair_mask", "public_key", "seal", "unseal"]

Words = NDArray[np.uint64]

KEY_SIZE, TAG_SIZE = 32, 16  # bytes of a secret or a public key; what sealing adds
ONCE = bytes(12)  # the nonce of a key that seals one message only


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
    stream: Any = Cipher(ChaCha20(seed, start), mode=None).encryptor()
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
