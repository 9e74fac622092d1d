"""Mechanisms of the papers that stand alone here: as printed, or as their released code draws them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.randomness import NoiseSource

__all__ = ["CoordinateLaplace", "PrintedLabelNoise"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PrintedLabelNoise:
    """Label-LDP-IHT (Wang and Xu 2019, Algorithm 2): y + N(0, sigma^2), sigma^2 = 32 C^2 log(1.25/delta) / epsilon^2.

    C bounds the noise of the regression, not the labels: |y| is up to ||theta||_1 + C (erratum E-12).
    """

    epsilon: float
    delta: float
    noise_bound: float = 0.05  # C of the experiments

    @property
    def sd(self) -> float:
        return self.noise_bound * math.sqrt(32 * math.log(1.25 / self.delta)) / self.epsilon

    def __call__(self, X: Any, y: Floats, seed: int) -> Floats:
        return NoiseSource(seed).gaussian(y, 1.0, self.sd)[0]


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
