"""Mechanisms of the papers that stand alone here, as their released code draws them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from thresher.privacy.arrays import Floats
from thresher.vaults.randomness import NoiseSource

__all__ = ["CANDIDATES", "ClippedMean", "CoordinateLaplace", "NoisyMin", "TruncatedLaplace"]

CANDIDATES = 21  # step lengths, 0 included


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


@dataclass(frozen=True)
class TruncatedLaplace:
    """The mean of numbers clipped to [-1, 1] plus +-b trunc(log u), b = sensitivity / epsilon.

    "Distributed learning without distress" draws +-b log u, which is Laplace(b). The circuit in its released code cuts
    the logarithm off to a whole number first: the noise is a multiple of b, and the answer modulo b is that of the
    exact mean (erratum E-24).
    """

    epsilon: float
    sensitivity: float

    @property
    def scale(self) -> float:
        return self.sensitivity / self.epsilon

    def __call__(self, X: Floats, y: Floats, seed: int) -> float:
        mean = float(np.clip(X[:, 0], -1, 1).mean())
        return mean + self.scale * float(np.trunc(NoiseSource(seed).laplace(1.0, 1)[0]))


@dataclass(frozen=True)
class NoisyMin:
    """Of the 21 step lengths of DP-AGD, the one with the least sum of logistic losses, clipped to [0, 1], plus noise.

    A row comes or goes, so no loss falls while another rises, and Exponential(1/epsilon) taken off the losses would be
    epsilon-DP. The released code adds it: length 0 wins with a chance that one row changes by e^(20 epsilon) (erratum
    E-26). ``sign`` = -1 is the sound one.
    """

    epsilon: float
    sign: float = 1.0

    def __call__(self, X: Floats, y: Floats, seed: int) -> int:
        at = np.linspace(-1e3, 39e3, CANDIDATES)  # a row is right from the first step on, or never again
        margins = np.clip(X[:, :1], -1, 1) * at
        losses = np.minimum(np.logaddexp(0.0, (1 - 2 * y[:, None]) * margins), 1.0).sum(axis=0)
        noise = np.abs(NoiseSource(seed).laplace(1 / self.epsilon, CANDIDATES))  # exponential
        return int(np.argmin(losses + self.sign * noise))


@dataclass(frozen=True)
class ClippedMean:
    """Gradients at 0 of ``rounds`` random batches, each MEAN clipped to [-1, 1], plus N(0, nu^2): DP-LSSGD's code.

    nu^2 = 4 T a / (n^2 epsilon/2) with a = 1 + log(1/delta) / (epsilon/2), as in its five printed noise levels. A row
    moves a mean by up to 2, not by 2/batch as if rows had been clipped (erratum E-20). Smoothing, which comes after the
    noise and can be undone, is left out.
    """

    epsilon: float
    delta: float
    batch: int
    rounds: int

    def __call__(self, X: Floats, y: Floats, seed: int) -> Floats:
        source = NoiseSource(seed)
        batches = [source.batch(len(y), self.batch / len(y), "fixed") for _ in range(self.rounds)]
        means = [np.clip(-np.mean(X[rows, 0] * y[rows]), -1, 1) for rows in batches]
        noisy: Floats = np.array(means) + self.sd(len(y)) * source.standard_normal(self.rounds)
        return noisy

    def sd(self, n: int) -> float:
        """nu, of n rows."""
        order = 1 + math.log(1 / self.delta) / (self.epsilon / 2)
        return math.sqrt(4 * self.rounds * order / (n * n * self.epsilon / 2))
