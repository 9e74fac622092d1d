"""Who is who: each party's long-lived Ed25519 key pair.

The public halves are exchanged out of band, once, as the parties of a study do with their contracts. They are what
keeps the server from playing a party: it carries every message and could swap any key that is not signed.
"""

from __future__ import annotations

from thresher.federated.ciphers import Ed25519PrivateKey, Ed25519PublicKey, InvalidSignature
from thresher.federated.messages import BadMessage

__all__ = ["SIGNATURE_SIZE", "check", "new_identity", "public_identity", "sign"]

SIGNATURE_SIZE = 64  # bytes


def new_identity() -> bytes:
    """A private identity key, to be kept on the party's own machine."""
    return Ed25519PrivateKey.generate().private_bytes_raw()


def public_identity(identity: bytes) -> bytes:
    """What the other parties need to recognise the owner of ``identity``."""
    return Ed25519PrivateKey.from_private_bytes(identity).public_key().public_bytes_raw()


def sign(identity: bytes, statement: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(identity).sign(statement)


def check(public: bytes, signature: bytes, statement: bytes) -> None:
    """Raise ``thresher.federated.messages.BadMessage`` unless the owner of ``public`` signed the statement."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, statement)
    except InvalidSignature:
        raise BadMessage("signature") from None
