"""The Skellam law: whole-number noise whose shares add up exactly, so that parties can make it together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from thresher.privacy.arrays import Floats

__all__ = ["Skellam", "integer_l1"]


@dataclass(frozen=True)
class Skellam:
    """Noise X - Y for each coordinate, X and Y independent Poisson(variance/2).

    ``variance`` is that of the noise nobody knows; what others add on top only helps.
    """

    variance: float

    def __post_init__(self) -> None:
        if not 0 < self.variance < math.inf:
            raise ValueError(f"variance={self.variance!r} must be positive and finite")

    @property
    def mean(self) -> float:
        return 0.0

    @property
    def sd(self) -> float:
        return math.sqrt(self.variance)

    def rdp(self, shift_l2: float, shift_l1: float, orders: Floats) -> Floats:
        """The Renyi divergence, at most, when whole-number vectors differ by this much in the two norms.

        For whole orders a > 1 (Agarwal, Kairouz and Liu 2021, Theorem 3.5; summed over coordinates): D_a <=
        a l2^2/(2 v) + min(((2a-1) l2^2 + 6 l1)/(4 v^2), 3 l1/(2 v)), v the variance. Between whole orders the chord
        holds, as (a-1) D_a is convex in a; it is 0 at a = 1.
        """
        below = np.floor(orders)
        part = orders - below
        chord = (1 - part) * self._scaled_divergence(shift_l2, shift_l1, below) + part * self._scaled_divergence(
            shift_l2, shift_l1, below + 1
        )
        return chord / (orders - 1)

    def _scaled_divergence(self, l2: float, l1: float, orders: Floats) -> Floats:
        """(a-1) times the bound at whole orders a."""
        v = self.variance
        gaussian = orders * l2**2 / (2 * v)
        excess = np.minimum(((2 * orders - 1) * l2**2 + 6 * l1) / (4 * v**2), 3 * l1 / (2 * v))
        scaled: Floats = (orders - 1) * (gaussian + excess)
        return scaled


def integer_l1(shift_l2: float, touched: int) -> float:
    """The largest l1 norm of a whole-number vector of this l2 norm with so many coordinates that are not 0."""
    return min(math.sqrt(touched) * shift_l2, shift_l2**2)
