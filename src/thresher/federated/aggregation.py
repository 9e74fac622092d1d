"""Secure aggregation: integers in, one noisy integer vector out. And the reference, which draws the same law here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from thresher.privacy.arrays import Integers
from thresher.privacy.laws.dithered_binomial import DitheredBinomial
from thresher.privacy.laws.skellam import Skellam
from thresher.vaults.randomness import NoiseSource

__all__ = ["LARGEST_UNIT", "Aborted", "Aggregation", "Ended", "Law", "ReferenceAggregation"]

LARGEST_UNIT = 2**52
"""No party's number is larger, so that sums of thousands of them and the noise fit into 64 bits."""

Law = DitheredBinomial | Skellam
"""The noise of a coordinate: one copy of joint coins, or shares that parties add."""


class Aborted(RuntimeError):  # noqa: N818  (what happened, not whose fault it is)
    """A party or server died, hung, left, or said what it may not say.

    Nobody saw a sum without noise. Others may have seen the noisy one, so the round counts as spent; parties with
    journals open the same one again (``thresher.federated.session``).
    """


class Ended(Aborted):
    """The run cannot go on, not even when all are started again: what it spent stays spent."""


class Aggregation(Protocol):
    """What a back-end does: add up vectors that it never shows anybody, and one copy of noise that nobody knows."""

    @property
    def randomness(self) -> str:
        """Where the noise comes from, in words."""
        ...

    def noisy_sum(self, parts: Sequence[Integers], law: Any) -> Integers:
        """The sum of all parties' vectors plus noise of ``law``."""
        ...

    def close(self) -> None: ...


class ReferenceAggregation:
    """All in one process, for tests and simulations: it sees every part, and its noise has the law of the real ones."""

    def __init__(self, noise: NoiseSource) -> None:
        self._noise = noise

    @property
    def randomness(self) -> str:
        return f"{self._noise.description.partition(';')[0]}; whole numbers, drawn exactly"

    def noisy_sum(self, parts: Sequence[Integers], law: Law) -> Integers:
        total = np.sum(parts, axis=0, dtype=np.int64)
        return total + drawn(self._noise, law, total.size)

    def close(self) -> None:
        """There is nothing to close."""


def drawn(noise: NoiseSource, law: Law, size: int) -> Integers:
    """Independent draws of ``law``."""
    return noise.skellam(law.variance, size) if isinstance(law, Skellam) else dithered_binomial(noise, law, size)


def dithered_binomial(noise: NoiseSource, law: DitheredBinomial, size: int) -> Integers:
    """Independent draws of ``law``, exactly, from the bits of ``noise``."""
    draws: Integers = noise.heads(law.coins, size) * 2**law.dither
    for _ in range(3):
        draws += noise.uniform_integers(2**law.dither, size)
    draws -= law.offset
    return draws


def skellam_share(noise: NoiseSource, law: Skellam, honest: int, size: int) -> Integers:
    """One party's part of ``law``: those of so many ``honest`` parties add up to it."""
    return noise.skellam(math.nextafter(law.variance / honest, math.inf), size)
