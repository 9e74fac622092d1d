"""Reports of people who randomise their own record.

Each person belongs to one group and reports once, so however many groups are asked (``times``), nobody's record is
behind more than one report: the price is that of a single report (sequentially interactive local privacy).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from thresher.accounting import Cost
from thresher.releases.base import GaussianRelease, Release

__all__ = [
    "ClassReport",
    "GaussianReport",
    "HypercubeReport",
    "LaplaceReport",
    "PiecewiseReport",
    "SphereReport",
]


@dataclass(frozen=True)
class _Report(Release):
    """A report with densities that differ by at most e^epsilon between any two records: pure epsilon-LDP."""

    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.epsilon < math.inf:
            raise ValueError(f"epsilon={self.epsilon!r} of a report must be positive and finite")

    @property
    def multiplier(self) -> float:
        """No unbiased report of values up to 1 apart is smaller: the means of laws within e^epsilon of each other, on
        [-size, size], are at most 2 tanh(epsilon/2) size apart."""
        return 1 / (2 * math.tanh(self.epsilon / 2))

    def cost(self) -> Cost:
        return Cost.pure_dp(self.epsilon)  # once, whatever ``times``: groups are disjoint


@dataclass(frozen=True)
class SphereReport(_Report):
    """A person's clipped gradient, pulling a random point of a sphere (``thresher.randomisers.Sphere``).

    The gradient lies in a ball of l2 radius clip = residual clip * row norm (erratum E-14).
    """

    dimension: int
    height: float
    question: ClassVar[str] = "local gradient"
    noise: ClassVar[str] = "sphere"


@dataclass(frozen=True)
class HypercubeReport(_Report):
    """Signs of a few entries of a person's clipped gradient (``thresher.randomisers.Hypercube``).

    Entry j over its public bound K_j lies in [-clip, clip], clip the residual's.
    """

    dimension: int
    sampled: int
    agreeing: int
    question: ClassVar[str] = "local gradient"
    noise: ClassVar[str] = "hypercube"


@dataclass(frozen=True)
class LaplaceReport(_Report):
    """A person's label, clipped to a public range of half-width clip, plus Laplace(2 clip/epsilon) (erratum E-12)."""

    question: ClassVar[str] = "local labels"
    noise: ClassVar[str] = "laplace"

    @property
    def multiplier(self) -> float:
        return 1 / self.epsilon


@dataclass(frozen=True)
class PiecewiseReport(_Report):
    """A person's clipped label through ``thresher.randomisers.Piecewise``: at most clip/tanh(epsilon/4)."""

    question: ClassVar[str] = "local labels"
    noise: ClassVar[str] = "piecewise"

    @property
    def multiplier(self) -> float:
        return 1 / (2 * math.tanh(self.epsilon / 4))


@dataclass(frozen=True)
class ClassReport(_Report):
    """A person's class through randomised response (``thresher.randomisers.Classes``)."""

    classes: int
    question: ClassVar[str] = "local labels"
    noise: ClassVar[str] = "randomised response"


@dataclass(frozen=True)
class GaussianReport(GaussianRelease):
    """A person's clipped label plus N(0, (sd_per_sensitivity * 2 clip)^2).

    Asked once: ``times`` is 1. (epsilon, delta)-LDP by the exact Gaussian curve.
    """

    question: ClassVar[str] = "local labels"
