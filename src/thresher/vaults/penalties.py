"""What may be added to a loss without any noise: public functions of the coefficients, intercepts apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from thresher.privacy.arrays import Floats

__all__ = ["NO_PENALTY", "Penalty", "PenaltyName"]

PenaltyName = Literal["ridge", "nonconvex"]


@dataclass(frozen=True)
class Penalty:
    """``strength`` times sum t^2 / 2 ("ridge") or sum t^2 / (1 + t^2) ("nonconvex", bounded in every coefficient)."""

    kind: PenaltyName = "ridge"
    strength: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in ("ridge", "nonconvex"):
            raise ValueError(f"kind={self.kind!r} of a penalty must be 'ridge' or 'nonconvex'")
        strength = self.strength
        if isinstance(strength, bool) or not isinstance(strength, (int, float)) or not 0 <= strength < math.inf:
            raise ValueError(f"penalty={strength!r} must be a finite number of at least 0")

    @property
    def curvature(self) -> float:
        """The largest second derivative in a coefficient."""
        return self.strength if self.kind == "ridge" else 2 * self.strength

    def value(self, coefficients: Floats) -> float:
        """At most 1e300, so that it can be compared even where it overflows."""
        with np.errstate(over="ignore"):
            squares = np.minimum(np.square(coefficients), 1e300)
            terms = squares / 2 if self.kind == "ridge" else squares / (1 + squares)
            return min(self.strength * float(np.sum(terms)), 1e300) if self.strength else 0.0

    def gradient(self, coefficients: Floats) -> Floats:
        if self.kind == "ridge":
            return self.strength * coefficients
        slopes: Floats = 2 * self.strength * coefficients / np.square(1 + np.square(coefficients))
        return slopes


NO_PENALTY = Penalty()
