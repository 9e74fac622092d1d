"""DP-LSSGD (thesis, Algorithm 5): DP-SGD whose noisy gradients are smoothed; LSSGD is the same without noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from thresher.algorithms.dp_sgd import DPSGD
from thresher.algorithms.smoothing import smoothed, spectral_means
from thresher.algorithms.stochastic import Floats
from thresher.plan import Problem

__all__ = ["DPLSSGD", "LSSGD", "check_smoothing", "smoothing_settings"]


@dataclass(frozen=True)
class DPLSSGD(DPSGD):
    """DP-SGD with A^-1 (noisy gradient) for the noisy gradient, A = I - smoothing * Laplacian of a ring.

    The guarantee is DP-SGD's, to the digit: smoothing comes after the noise (erratum E-21).
    """

    smoothing: float = 1.0

    name: ClassVar[str] = "dp-lssgd"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_smoothing(self.smoothing)

    def _direction(self, gradient: Floats) -> Floats:
        return smoothed(gradient, self.smoothing)

    def _extra(self, problem: Problem) -> dict[str, Any]:
        return smoothing_settings(self.smoothing, problem)


@dataclass(frozen=True)
class LSSGD(DPLSSGD):
    """DP-LSSGD without clipping and noise. No privacy whatsoever; it only runs with ``epsilon=float("inf")``."""

    name: ClassVar[str] = "lssgd"
    private: ClassVar[bool] = False


def check_smoothing(smoothing: float) -> None:
    if not 0 <= smoothing < math.inf:
        raise ValueError(f"smoothing={smoothing!r} must be a finite number of at least 0; 0 smooths nothing")


def smoothing_settings(smoothing: float, problem: Problem) -> dict[str, Any]:
    """The smoothing, and what it leaves of the noise's standard deviation."""
    return {"smoothing": smoothing, "noise_left": math.sqrt(spectral_means(problem.dimension, smoothing)[1])}
