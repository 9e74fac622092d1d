"""A mechanism of the papers that stands alone here, as its released code draws it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher.randomness import NoiseSource

__all__ = ["CoordinateLaplace"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CoordinateLaplace:
    """The mean of rows clipped to norm 1 plus independent Laplace(Delta_2 / epsilon) on every coordinate.

    "Distributed learning without distress" proves a vector of density exp(-epsilon ||v||_2 / Delta_2) and draws this
    instead: its loss is up to sqrt(d) epsilon (erratum E-22).
    """

    epsilon: float
    sensitivity: float

    def __call__(self, X: Floats, y: Floats, seed: int) -> Floats:
        rows = X / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
        mean: Floats = rows.mean(axis=0)
        return mean + NoiseSource(seed).laplace(self.sensitivity / self.epsilon, mean.size)
