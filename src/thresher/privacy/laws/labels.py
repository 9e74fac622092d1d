"""The laws of numbers in [-1, 1] that are reported with noise (Laplace, Gaussian, piecewise), and of class labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from thresher.privacy.arrays import Floats, Integers
from thresher.privacy.budget import is_whole
from thresher.privacy.conversions import gaussian_epsilon, gaussian_mu
from thresher.privacy.laws.checks import check_epsilon, numbers

__all__ = ["ClassesLaw", "GaussianLaw", "LaplaceLaw", "PiecewiseLaw"]

RANGE = 2.0
"""Two labels of [-1, 1] are at most this far apart."""


@dataclass(frozen=True)
class LaplaceLaw:
    """y + Laplace(2/epsilon): pure epsilon-LDP, as two labels are at most 2 apart (erratum E-12)."""

    epsilon: float

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)

    @property
    def size(self) -> float:
        """The scale of the noise."""
        return RANGE / self.epsilon

    def variance(self, value: float) -> float:
        """Of a report of ``value``."""
        return 2 * self.size**2

    def log_density(self, reports: Floats, value: float) -> Floats:
        return -np.abs(reports - numbers(value)) / self.size - math.log(2 * self.size)


@dataclass(frozen=True)
class GaussianLaw:
    """y + N(0, sd^2): (epsilon, delta)-LDP for every pair on the exact Gaussian curve at mu = 2/sd."""

    sd: float

    def __post_init__(self) -> None:
        if not 0 < self.sd < math.inf:
            raise ValueError(f"sd={self.sd!r} must be positive and finite")

    @classmethod
    def calibrated(cls, epsilon: float, delta: float) -> Self:
        """The least noise that is (epsilon, delta)-LDP: the analytic Gaussian mechanism (Balle and Wang 2018)."""
        return cls(RANGE / gaussian_mu(epsilon, delta))

    def epsilon(self, delta: float) -> float:
        """What a report costs at ``delta``."""
        return gaussian_epsilon(RANGE / self.sd, delta)

    @property
    def size(self) -> float:
        return self.sd

    def variance(self, value: float) -> float:
        return self.sd**2

    def log_density(self, reports: Floats, value: float) -> Floats:
        return -(((reports - numbers(value)) / self.sd) ** 2) / 2 - math.log(self.sd * math.sqrt(2 * math.pi))


@dataclass(frozen=True)
class PiecewiseLaw:
    """A number of [-C, C], more likely in a piece of length C - 1 around its place (Wang et al. 2019).

    With t = e^(epsilon/2) and C = (t + 1)/(t - 1): density t (t - 1)/(2 (t + 1)) on [l, l + C - 1] with l = ((C + 1) y
    - (C - 1))/2, and e^epsilon times less on the rest of [-C, C]. Pure epsilon-LDP and unbiased; its variance is below
    that of Laplace noise for every epsilon, at y = 0 by a factor of 2 at epsilon 1 and 6 at epsilon 4.
    """

    epsilon: float

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)

    @property
    def size(self) -> float:
        """C, the largest magnitude of a report."""
        return 1 / math.tanh(self.epsilon / 4)

    def variance(self, value: float) -> float:
        grown = math.expm1(self.epsilon / 2)
        return value**2 / grown + (grown + 4) / (3 * grown**2)

    def log_density(self, reports: Floats, value: float) -> Floats:
        low = self.low(numbers(np.array(value)))
        near = (reports >= low) & (reports <= low + self.size - 1)
        grown = math.exp(self.epsilon / 2)
        high = math.log(grown * math.expm1(self.epsilon / 2) / (2 * (grown + 1)))
        possible = np.abs(reports) <= self.size
        return np.where(possible, np.where(near, high, high - self.epsilon), -np.inf)

    def low(self, values: Floats) -> Floats:
        """l, where the likelier piece of each value begins."""
        return ((self.size + 1) * values - (self.size - 1)) / 2


@dataclass(frozen=True)
class ClassesLaw:
    """One of ``classes`` labels: the true one with e^epsilon times the chance of each other (randomised response).

    Pure epsilon-LDP. A report's one-hot vector, less the chance w of each wrong label and over 1 - classes * w, is
    unbiased for the one-hot vector of the true label.
    """

    classes: int
    epsilon: float

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if not (is_whole(self.classes) and self.classes >= 2):
            raise ValueError(f"classes={self.classes!r} must be a whole number of at least 2")

    @property
    def wrong(self) -> float:
        """The chance of each wrong label."""
        return 1 / (math.exp(self.epsilon) + self.classes - 1)

    @property
    def size(self) -> float:
        """What a report of a class adds to the estimate of its chance: 1/(1 - classes * wrong)."""
        return 1 + self.classes / math.expm1(self.epsilon)

    def variance(self, value: float) -> float:
        """Of the estimated indicator of a class that has chance (1 + value)/2, in units where it spans [-1, 1]."""
        reported = self.wrong + (1 + value) / 2 / self.size
        return 4 * self.size**2 * reported * (1 - reported)

    def log_density(self, reports: Integers, value: int) -> Floats:
        return np.where(reports == self.known(value), self.epsilon, 0.0) + math.log(self.wrong)

    def known(self, values: ArrayLike) -> Integers:
        """The labels; what is none counts as the first."""
        values = np.asarray(values)
        return np.where((values >= 0) & (values < self.classes), values, 0).astype(np.int64)
