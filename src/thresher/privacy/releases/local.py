"""Reports of people who randomise their own record.

Each person belongs to one group and reports once, so however many groups are asked (``times``), nobody's record is
behind more than one report: the price is that of a single report (sequentially interactive local privacy).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from thresher.privacy import questions
from thresher.privacy.accounting import Cost
from thresher.privacy.facts import PublicFacts, Settings
from thresher.privacy.laws.hypercube import HypercubeLaw
from thresher.privacy.laws.labels import ClassesLaw, PiecewiseLaw
from thresher.privacy.laws.sphere import SphereLaw
from thresher.privacy.questions import Clips, Question
from thresher.privacy.releases.base import GaussianRelease, Release

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
class _SizedReport(_Report):
    """A report whose size in units of the clip follows from its law, and not from a multiple of the sensitivity."""

    @property
    def law(self) -> SphereLaw | HypercubeLaw | PiecewiseLaw | ClassesLaw:
        """Of the report of a value within the unit ball, cube or interval, or of a class."""
        raise NotImplementedError

    def scale(self, clip: float, sensitivity: float) -> float:
        return clip * self.law.size


@dataclass(frozen=True)
class SphereReport(_SizedReport):
    """A person's clipped gradient, pulling a random point of a sphere (``SphereLaw``).

    The gradient lies in a ball of l2 radius clip = residual clip * row norm (erratum E-14).
    """

    dimension: int
    height: float
    question: ClassVar[Question] = questions.LocalGradient()
    noise: ClassVar[str] = "sphere"

    def clips_of_settings(self, facts: PublicFacts, settings: Settings, columns: int) -> Clips:
        least, most = super().clips_of_settings(facts, settings, columns)
        return least * facts.row_norm, most * facts.row_norm

    @property
    def law(self) -> SphereLaw:
        return SphereLaw(self.dimension, self.epsilon, self.height)


@dataclass(frozen=True)
class HypercubeReport(_SizedReport):
    """Signs of a few entries of a person's clipped gradient (``HypercubeLaw``).

    Entry j over its public bound K_j lies in [-clip, clip], clip the residual's.
    """

    dimension: int
    sampled: int
    agreeing: int
    question: ClassVar[Question] = questions.LocalGradient()
    noise: ClassVar[str] = "hypercube"

    @property
    def law(self) -> HypercubeLaw:
        return HypercubeLaw(self.dimension, self.epsilon, self.sampled, self.agreeing)


@dataclass(frozen=True)
class LaplaceReport(_Report):
    """A person's label, clipped to a public range of half-width clip, plus Laplace(2 clip/epsilon) (erratum E-12)."""

    question: ClassVar[Question] = questions.LocalLabels()
    noise: ClassVar[str] = "laplace"

    @property
    def multiplier(self) -> float:
        return 1 / self.epsilon


@dataclass(frozen=True)
class PiecewiseReport(_SizedReport):
    """A person's clipped label by the ``PiecewiseLaw``: at most clip/tanh(epsilon/4)."""

    question: ClassVar[Question] = questions.LocalLabels()
    noise: ClassVar[str] = "piecewise"

    @property
    def multiplier(self) -> float:
        return 1 / (2 * math.tanh(self.epsilon / 4))

    @property
    def law(self) -> PiecewiseLaw:
        return PiecewiseLaw(self.epsilon)


@dataclass(frozen=True)
class ClassReport(_SizedReport):
    """A person's class through randomised response (``ClassesLaw``)."""

    classes: int
    question: ClassVar[Question] = questions.LocalLabels()
    noise: ClassVar[str] = "randomised response"

    @property
    def law(self) -> ClassesLaw:
        return ClassesLaw(self.classes, self.epsilon)


@dataclass(frozen=True)
class GaussianReport(GaussianRelease):
    """A person's clipped label plus N(0, (sd_per_sensitivity * 2 clip)^2).

    Asked once: ``times`` is 1. (epsilon, delta)-LDP by the exact Gaussian curve.
    """

    question: ClassVar[Question] = questions.LocalLabels()
