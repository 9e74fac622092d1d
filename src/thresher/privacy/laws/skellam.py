"""The Skellam law: whole-number noise whose shares add up exactly, so that parties can make it together."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["LEAST_VARIANCE", "Skellam", "integer_l1"]

LEAST_VARIANCE = 3
"""In squared grid steps: of less noise it is not known how well it hides a step."""


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

    @property
    def distance(self) -> float:
        """A c with which a whole shift a is as hard to see, for every test, as N(0,1) against N(a c,1).

        With P(t) the chance of t, P(t-1) P(t+1) / P(t)^2 >= 1 - 1/sqrt(v^2 - 1) = e^-k, v the variance; so no two
        neighbouring normal scores Phi^-1(P(Z <= t)) are farther apart than c with c^2 - c^4/4 = k (docs/federated.md,
        Theorem 3). Below ``LEAST_VARIANCE`` none is known.
        """
        if self.variance < LEAST_VARIANCE:
            return math.inf
        k = -math.log1p(-1 / math.sqrt(self.variance**2 - 1))
        return math.sqrt(2 * k / (1 + math.sqrt(1 - k))) * (1 + 1e-12)


def integer_l1(shift_l2: float, touched: int) -> float:
    """The largest l1 norm of a whole-number vector of this l2 norm with so many coordinates that are not 0."""
    return min(math.sqrt(touched) * shift_l2, shift_l2**2)
