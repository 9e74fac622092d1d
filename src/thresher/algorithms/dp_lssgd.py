"""DP-LSSGD (thesis, Algorithm 5): DP-SGD whose noisy gradients are smoothed; LSSGD is the same without noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from thresher.algorithms.dp_sgd import DPSGD
from thresher.algorithms.smoothing import smoothed, spectral_means
from thresher.algorithms.stochastic import Stochastic
from thresher.privacy.arrays import Floats
from thresher.vaults.problem import LinearProblem

__all__ = ["DPLSSGD", "LSSGD", "Smoothed"]


@dataclass(frozen=True)
class Smoothed(Stochastic):
    """A method that sees A^-1 (noisy gradient), A = I - smoothing * Laplacian of a ring.

    The guarantee stays what it is, to the digit: smoothing comes after the noise (erratum E-21).
    """

    smoothing: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.smoothing < math.inf:
            raise ValueError(f"smoothing={self.smoothing!r} must be a finite number of at least 0; 0 smooths nothing")

    def _direction(self, gradient: Floats) -> Floats:
        return smoothed(gradient, self.smoothing)

    def _extra(self, problem: LinearProblem) -> dict[str, Any]:
        """The smoothing, and what it leaves of the noise's standard deviation."""
        left = math.sqrt(spectral_means(problem.dimension, self.smoothing)[1])
        return {"smoothing": self.smoothing, "noise_left": left}


@dataclass(frozen=True)
class DPLSSGD(Smoothed, DPSGD):
    """DP-SGD with A^-1 (noisy gradient) for the noisy gradient."""

    name: ClassVar[str] = "dp-lssgd"


@dataclass(frozen=True)
class LSSGD(DPLSSGD):
    """DP-LSSGD without clipping and noise. No privacy whatsoever; it only runs with ``epsilon=float("inf")``."""

    name: ClassVar[str] = "lssgd"
    private: ClassVar[bool] = False
