"""Minimisers that a curator finds, and what they predict for public rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from scipy.special import log_ndtr

from thresher.privacy import questions
from thresher.privacy.accounting import ORDERS, Cost
from thresher.privacy.composition import Step
from thresher.privacy.profiles import GaussianAnswer, PureAnswer, TiltedAnswer
from thresher.privacy.questions import Question
from thresher.privacy.releases.base import GaussianRelease, Release, check_multiplier

__all__ = [
    "GaussianLabels",
    "GaussianMinimiser",
    "L2LaplaceMinimiser",
    "PerturbedMinimiser",
    "PrintedLabels",
]

TOLERANCE_FACTOR = 10.0
"""sd_per_tolerance over sd_per_sensitivity: where the search stopped costs 1 % of what the tilt costs."""


@dataclass(frozen=True)
class GaussianMinimiser(GaussianRelease):
    """argmin of (1/n) sum_i l_i(theta) + (ridge/2) ||theta||^2, plus noise, with ||grad l_i||_2 <= clip.

    Delta_2 = contributions(adjacency) * clip / (n ridge) + 2 tolerance / ridge, where the vault certifies
    ||gradient|| <= tolerance at the point it found (erratum E-7).
    """

    question: ClassVar[Question] = questions.Minimiser()


@dataclass(frozen=True)
class L2LaplaceMinimiser(Release):
    """The minimiser as above plus a vector with density proportional to exp(-epsilon ||v||_2 / Delta_2).

    Direction uniform, norm Gamma(dimension, Delta_2 / epsilon): pure epsilon-DP per use. (Erratum E-22: independent
    Laplace coordinates of this scale would cost sqrt(dimension) times as much.)
    """

    epsilon: float
    question: ClassVar[Question] = questions.Minimiser()
    noise: ClassVar[str] = "l2-laplace"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.epsilon < math.inf:
            raise ValueError(f"epsilon={self.epsilon!r} of a pure release must be positive and finite")

    @property
    def multiplier(self) -> float:
        return 1 / self.epsilon

    def coordinate_sd(self, dimension: int) -> float:
        return self.multiplier * math.sqrt(dimension + 1)  # E ||v||^2 = dimension (dimension + 1) scale^2

    def cost(self) -> Cost:
        return Cost.pure_dp(self.epsilon, self.times)

    @property
    def steps(self) -> tuple[Step, ...] | None:
        return (PureAnswer(self.epsilon),)

    def with_noise(self, factor: float) -> Self:
        return replace(self, epsilon=self.epsilon / factor)


@dataclass(frozen=True)
class PerturbedMinimiser(Release):
    """Objective perturbation: argmin of (1/n) sum_i l_i + (ridge/2) ||theta||^2 + b'theta, b ~ N(0, (sd_per_sensitivity
    * Delta_2)^2 I), with gradients of each l_i along a fixed row x_i and of l2 norm at most clip.

    Delta_2 = contributions(adjacency) * clip / n. The vault enforces curvature * ||x_i||^2 / (n ridge) <=
    ``curvature_ratio`` = k. Then the privacy loss is at most log(1 + k) + mu^2/2 + mu |Z| with Z ~ N(0, 1) and mu = 1 /
    sd_per_sensitivity (docs/guarantees.md; the |Z| and not Z, because the shift depends on b), so at order a the Renyi
    divergence is at most log(1 + k) + a mu^2/2 + log(2 Phi((a-1) mu)) / (a-1).

    A minimiser is only found up to a certified distance; Gaussian noise of ``sd_per_tolerance`` times twice that
    distance hides where in that ball it was found, at a further a / (2 sd_per_tolerance^2).
    """

    sd_per_sensitivity: float
    curvature_ratio: float
    sd_per_tolerance: float
    question: ClassVar[Question] = questions.TiltedMinimiser()
    noise: ClassVar[str] = "gaussian in the objective"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_multiplier("sd_per_sensitivity", self.sd_per_sensitivity)
        check_multiplier("curvature_ratio", self.curvature_ratio)
        check_multiplier("sd_per_tolerance", self.sd_per_tolerance)

    @property
    def multiplier(self) -> float:
        return self.sd_per_sensitivity

    def cost(self) -> Cost:
        if self.sd_per_sensitivity == 0 or self.sd_per_tolerance == 0:
            return Cost.unbounded()
        mu, beyond = 1 / self.sd_per_sensitivity, ORDERS - 1
        rdp = math.log1p(self.curvature_ratio) + ORDERS * mu * mu / 2
        rdp += (math.log(2) + log_ndtr(beyond * mu)) / beyond
        rdp += ORDERS / (2 * self.sd_per_tolerance**2)
        return Cost.renyi(self.times * rdp)

    @property
    def steps(self) -> tuple[Step, ...] | None:
        """The tilt, of this Jacobian and shift, and what hides the search."""
        if self.sd_per_sensitivity == 0 or self.sd_per_tolerance == 0:
            return None
        tilt = TiltedAnswer(math.log1p(self.curvature_ratio), 1 / self.sd_per_sensitivity)
        return tilt, GaussianAnswer(1 / self.sd_per_tolerance)

    def with_noise(self, factor: float) -> Self:
        tilt, tolerance = factor * self.sd_per_sensitivity, factor * self.sd_per_tolerance
        return replace(self, sd_per_sensitivity=tilt, sd_per_tolerance=tolerance)


@dataclass(frozen=True)
class GaussianLabels(GaussianRelease):
    """Noisy predictions F theta for the rows of a public matrix F, theta the certified minimiser as above.

    Delta_2 = ||F||_2 times the sensitivity of theta, whatever the number of rows (DPSL-KT, Algorithm 1, made sound).
    """

    question: ClassVar[Question] = questions.Labels()


@dataclass(frozen=True)
class PrintedLabels(Release):
    """Predictions of an l0-constrained teacher for public rows, plus N(0, sd^2): DPSL-KT as printed.

    The teacher is not stable (erratum E-5), so this has no price and only a printed plan can hold it.
    """

    sd: float
    question: ClassVar[Question] = questions.LabelsAsPrinted()
    noise: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_multiplier("sd", self.sd)

    @property
    def multiplier(self) -> float:
        return 0.0  # there is no sensitivity it could be relative to

    def cost(self) -> Cost:
        return Cost.unbounded()
