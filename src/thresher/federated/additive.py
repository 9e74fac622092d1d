"""Additive secret sharing modulo 2^64: all shares together are the secret, any fewer of them are uniformly random."""

from __future__ import annotations

import secrets

import numpy as np

from thresher.privacy.arrays import Integers

__all__ = ["additive_shares"]


def additive_shares(secret: Integers, holders: int) -> list[Integers]:
    """A share for each of the ``holders``, which add up to the secret modulo 2^64."""
    random = [np.frombuffer(secrets.token_bytes(secret.nbytes), dtype=np.int64) for _ in range(holders - 1)]
    last = secret.copy()
    for share in random:
        last -= share  # NumPy's whole numbers wrap around
    return [*random, last]
