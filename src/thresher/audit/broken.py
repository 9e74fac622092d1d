"""Deliberately broken vaults: an auditor that does not catch these proves nothing by catching nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.randomness import NoiseSource
from thresher.vaults import CentralVault

__all__ = ["FreeSign", "QuietNoise", "Rerun", "Unclipped"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

QUIET = 0.7  # of the noise that is paid for
RETRIES = 10


class QuietNoise(NoiseSource):
    """Adds 0.7 of the noise that is paid for."""

    def gaussian(
        self, value: Floats, sensitivity: float, multiplier: float, error: float = 0.0
    ) -> tuple[Floats, float]:
        return super().gaussian(value, sensitivity, QUIET * multiplier, error)

    def gumbel_top(
        self, scores: Floats, picks: int, sensitivity: float, multiplier: float, error: float = 0.0
    ) -> tuple[NDArray[np.int64], float]:
        return super().gumbel_top(scores, picks, sensitivity, QUIET * multiplier, error)

    def l2_laplace(self, scale: float, dimension: int) -> Floats:
        return super().l2_laplace(QUIET * scale, dimension)


class Unclipped(CentralVault):
    """Forgets to clip rows, targets and gradients, and adds noise as if it had not."""

    def _clipped(self, X: Any, y: Floats) -> tuple[Any, Floats]:
        return np.array(X, dtype=np.float64, order="F"), y.copy()

    def _limits_of(self, norms: Floats, clip: float) -> Floats:
        return np.full_like(norms, np.inf)

    def _mean_gradient(self, engine: Any, margins: Floats, limits: Floats | float) -> Floats:
        return super()._mean_gradient(engine, margins, math.inf)


class FreeSign(CentralVault):
    """Publishes exact signs: of every number, or of the vertex on an axis that was chosen privately."""

    def _added(
        self, value: Floats, noise: str, sensitivity: float, multiplier: float, error: float = 0.0
    ) -> tuple[Floats, float]:
        answer, scale = super()._added(value, noise, sensitivity, multiplier, error)
        return np.copysign(answer, value), scale

    def _top(
        self, scores: Floats, picks: int, noise: str, sensitivity: float, multiplier: float, error: float
    ) -> tuple[Indices, float]:
        ahead, back = np.split(scores, 2)
        axes, scale = super()._top(np.maximum(ahead, back), picks, noise, sensitivity, multiplier, error)
        return np.where(ahead[axes] >= back[axes], axes, axes + len(ahead)), scale


class Rerun(CentralVault):
    """Draws a choice again until it looks good, and pays for the last draw only."""

    def _top(
        self, scores: Floats, picks: int, noise: str, sensitivity: float, multiplier: float, error: float
    ) -> tuple[Indices, float]:
        for _ in range(RETRIES):
            chosen, scale = super()._top(scores, picks, noise, sensitivity, multiplier, error)
            if scores[chosen].max() == scores.max():
                break
        return chosen, scale
