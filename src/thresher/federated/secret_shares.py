"""Shamir's sharing of a 32-byte secret: any ``threshold`` of its shares tell it, fewer tell nothing at all.

The secret is the value at 0 of a random polynomial of degree threshold - 1 over the whole numbers modulo the smallest
prime above 2^256; party number i holds the value at i + 1.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from functools import lru_cache

__all__ = ["SHARE_SIZE", "join", "split"]

PRIME = 2**256 + 297
SECRET_SIZE, SHARE_SIZE = 32, 33  # bytes; a share may be a little above 2^256


def split(secret: bytes, shares: int, threshold: int) -> list[bytes]:
    """``shares`` shares of the secret, of which ``threshold`` are enough."""
    if len(secret) != SECRET_SIZE:
        raise ValueError(f"a secret of {len(secret)} bytes cannot be shared: it must have {SECRET_SIZE}")
    if not 1 <= threshold <= shares:
        raise ValueError(f"threshold={threshold} must be from 1 to shares={shares}")
    coefficients = [secrets.randbelow(PRIME) for _ in range(threshold - 1)]
    return [_value(coefficients, int.from_bytes(secret), at).to_bytes(SHARE_SIZE) for at in range(1, shares + 1)]


def join(shares: Mapping[int, bytes]) -> bytes:
    """The secret of which party i holds ``shares[i]``; there must be exactly as many as the threshold says.

    Shares that belong to no 32-byte secret raise ValueError; other wrong ones give another secret.
    """
    parties = tuple(sorted(shares))
    values = [int.from_bytes(shares[party]) for party in parties]
    secret = sum(weight * value for weight, value in zip(_weights(parties), values, strict=True)) % PRIME
    if secret >= 2**256:
        raise ValueError("these shares do not belong together: ask their holders again")
    return secret.to_bytes(SECRET_SIZE)


def _value(coefficients: list[int], secret: int, at: int) -> int:
    value = 0
    for coefficient in coefficients:
        value = (value + coefficient) * at % PRIME
    return (value + secret) % PRIME


@lru_cache(maxsize=4)  # the same parties open every secret of a round
def _weights(parties: tuple[int, ...]) -> list[int]:
    """Lagrange's weights of the values at party + 1 for the value at 0."""
    weights = []
    for party in parties:
        others = [other for other in parties if other != party]
        above = math.prod(other + 1 for other in others)
        below = math.prod(other - party for other in others)
        weights.append(above * pow(below, -1, PRIME) % PRIME)
    return weights
