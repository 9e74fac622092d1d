"""Reports drawn on each person's own device: numbers in [-1, 1] (Laplace, Gaussian, piecewise) and class labels.

The low bits of a floating-point sum of a label and noise can tell the label for certain (Mironov 2012), and here every
single sum is seen. So numbers are reported as multiples of a public power of two near 2^-24 of their size, rounded up
or down at random with chances that keep the mean; a grid point then stands for so many floats that its chance is right
to about 2^-28.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from thresher.privacy.arrays import Floats, Integers
from thresher.privacy.laws.checks import numbers
from thresher.privacy.laws.labels import ClassesLaw, GaussianLaw, LaplaceLaw, PiecewiseLaw
from thresher.vaults.randomness import NoiseSource

__all__ = ["Classes", "Gaussian", "Laplace", "Piecewise", "grid_of"]


@dataclass(frozen=True)
class Laplace(LaplaceLaw):
    """Reports with Laplace noise."""

    def randomise(self, values: Floats, noise: NoiseSource) -> Floats:
        return _on_grid(numbers(values) + noise.laplace(self.size, len(values)), self.size, noise)


@dataclass(frozen=True)
class Gaussian(GaussianLaw):
    """Reports with Gaussian noise."""

    def randomise(self, values: Floats, noise: NoiseSource) -> Floats:
        return _on_grid(numbers(values) + self.sd * noise.standard_normal(len(values)), self.sd, noise)


@dataclass(frozen=True)
class Piecewise(PiecewiseLaw):
    """Reports with the piecewise law."""

    def randomise(self, values: Floats, noise: NoiseSource) -> Floats:
        low = self.low(numbers(values))
        near = noise.uniform(len(low)) >= 1 / (1 + math.exp(self.epsilon / 2))
        place = noise.uniform(len(low))
        inside = low + place * (self.size - 1)
        outside = place * (self.size + 1) - self.size  # of [-C, C] without the piece, pushed together
        outside += np.where(outside >= low, self.size - 1, 0.0)
        reports = _on_grid(np.where(near, inside, outside), self.size, noise)
        largest = math.floor(self.size / grid_of(self.size)) * grid_of(self.size)
        return np.clip(reports, -largest, largest)


@dataclass(frozen=True)
class Classes(ClassesLaw):
    """Reports by randomised response."""

    def randomise(self, values: Integers, noise: NoiseSource) -> Integers:
        """One report for each of the labels 0 .. classes-1."""
        values = self.known(values)
        shift = 1 + noise.uniform_integers(self.classes - 1, len(values))
        lies = noise.uniform(len(values)) < self.wrong * (self.classes - 1)
        return np.where(lies, (values + shift) % self.classes, values)

    def indicators(self, reports: Integers) -> Floats:
        """Unbiased one-hot vectors, one row for each report."""
        return (np.equal.outer(reports, np.arange(self.classes)) - self.wrong) * self.size


def grid_of(size: float) -> float:
    """The power of two of which reports of this size are multiples."""
    return 2.0 ** (math.floor(math.log2(size)) - 24)


def _on_grid(reports: Floats, size: float, noise: NoiseSource) -> Floats:
    grid = grid_of(size)
    return np.floor(reports / grid + noise.uniform(len(reports))) * grid
