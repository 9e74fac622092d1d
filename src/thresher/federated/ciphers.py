"""What is used of the ``cryptography`` package, or how to get it."""

from __future__ import annotations

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

__all__ = [
    "HKDF",
    "SHA256",
    "ChaCha20",
    "ChaCha20Poly1305",
    "Cipher",
    "Ed25519PrivateKey",
    "Ed25519PublicKey",
    "InvalidSignature",
    "InvalidTag",
    "X25519PrivateKey",
    "X25519PublicKey",
]
