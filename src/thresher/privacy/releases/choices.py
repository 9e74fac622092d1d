"""Choices of a curator who holds all rows: of columns, levels, vertices, points, texts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from scipy.special import ndtr, ndtri

from thresher.privacy import questions
from thresher.privacy.accounting import Cost
from thresher.privacy.budget import Budget, is_whole
from thresher.privacy.composition import Choice, Step
from thresher.privacy.conversions import choice_epsilon, gaussian_mu
from thresher.privacy.profiles import GaussianAnswer, PureAnswer
from thresher.privacy.questions import Question
from thresher.privacy.releases.base import Release, check_multiplier

__all__ = [
    "GaussianCategories",
    "GumbelNearMaximum",
    "GumbelQuantile",
    "GumbelSelection",
    "GumbelStep",
    "GumbelVertex",
    "GumbelVotes",
    "LaplaceVertex",
]

MOST_PICKS = 1000  # at once, of which the exact composition is told; a stranger's certificate may list any number


@dataclass(frozen=True)
class _Gumbel(Release):
    """Chooses by the exponential mechanism: Gumbel(scale_per_sensitivity * Delta) on every score, the largest win.

    Delta bounds how far one score moves between neighbours. Every pick is the exponential mechanism with epsilon = 2 /
    scale_per_sensitivity: epsilon-DP and of epsilon-bounded range, hence epsilon^2/8-zCDP (Cesar and Rogers 2021;
    erratum E-16). The k largest at once are k picks one after the other (Durfee and Rogers 2019).
    """

    scale_per_sensitivity: float
    noise: ClassVar[str] = "gumbel"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_multiplier("scale_per_sensitivity", self.scale_per_sensitivity)

    @classmethod
    def for_rho(cls, rho: float, times: int = 1) -> Self:
        """``times`` choices that together cost ``rho`` in zCDP."""
        return cls(times=times, scale_per_sensitivity=math.sqrt(times / (2 * rho)))

    @property
    def multiplier(self) -> float:
        return self.scale_per_sensitivity

    @property
    def uses(self) -> int:
        """Exponential mechanisms in all."""
        return self.times

    @property
    def range_of_loss(self) -> float:
        """Of one exponential mechanism: the epsilon of its pure DP and of its bounded range."""
        return choice_epsilon(self.scale_per_sensitivity)

    def cost(self) -> Cost:
        if self.scale_per_sensitivity == 0:
            return Cost.unbounded()
        return Cost.bounded_range(self.range_of_loss, self.uses)

    @property
    def steps(self) -> tuple[Step, ...] | None:
        picks = self.uses // self.times
        if self.scale_per_sensitivity == 0 or picks > MOST_PICKS:
            return None
        return (Choice(self.range_of_loss),) * picks

    def with_noise(self, factor: float) -> Self:
        return replace(self, scale_per_sensitivity=factor * self.scale_per_sensitivity)


@dataclass(frozen=True)
class _GumbelTop(_Gumbel):
    """The ``picks`` largest at once."""

    picks: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_whole(self.picks) or self.picks < 1:
            raise ValueError(f"picks={self.picks!r} must be a whole number of at least 1")
        object.__setattr__(self, "picks", int(self.picks))

    @classmethod
    def for_rho(cls, rho: float, times: int = 1, picks: int = 1) -> Self:
        """``times`` choices of ``picks`` each that together cost ``rho`` in zCDP."""
        return cls(times=times, scale_per_sensitivity=math.sqrt(times * picks / (2 * rho)), picks=picks)

    @property
    def uses(self) -> int:
        return self.times * self.picks


@dataclass(frozen=True)
class GumbelSelection(_GumbelTop):
    """The columns with the largest |offset_j - g_j / K_j|, g the mean gradient with residuals clipped to [-clip, clip].

    Delta = contributions(adjacency) * clip / n, since |x_ij| <= K_j.
    """

    question: ClassVar[Question] = questions.Selection()


@dataclass(frozen=True)
class GumbelVotes(_GumbelTop):
    """The columns with most votes, where each of many random blocks of rows votes at most once for a column.

    A row is in one block, so a count moves by at most 1 between neighbours, for either adjacency: Delta = 1.
    """

    question: ClassVar[Question] = questions.Votes()


@dataclass(frozen=True)
class GumbelQuantile(_Gumbel):
    """The public level with the largest score: minus the distance of the rank q n from the ranks between the counts
    #{i : v_i <= level} of the level before and of this one, v_i a number computed from row i.

    Either count moves by at most 1 between neighbours, for either adjacency, and so does the distance: Delta = 1.
    """

    question: ClassVar[Question] = questions.Quantile()


@dataclass(frozen=True)
class GumbelNearMaximum(_Gumbel):
    """The public level with the largest score: minus the number of rows above it, as far as it exceeds a public number
    that is allowed, minus a public price of the level.

    Delta = 1, and no two scores are moved more than 1 apart: of the rows above the levels, one row, or the part of a
    person with several, is a(level) before and b(level) after, both falling from at most 1 to at least 0 as levels rise
    (either is 0 where it comes or goes). So for levels u < v the moves b - a, none beyond 1, differ by [b(u) - b(v)] -
    [a(u) - a(v)], which lies in [-1, 1]. What exceeds the allowed number moves the same way as the count, and no
    further: two of opposite signs differ by no more than their counts, two of one sign by no more than the larger. The
    loss of an exponential mechanism has the range by which the moves of its scores differ, here Delta and not 2 Delta:
    epsilon = 1 / scale_per_sensitivity, of epsilon-bounded range (docs/guarantees.md, "Near maxima").
    """

    question: ClassVar[Question] = questions.NearMaximum()

    @classmethod
    def for_rho(cls, rho: float, times: int = 1) -> Self:
        """``times`` choices that together cost ``rho`` in zCDP: half of the noise that others need."""
        return cls(times=times, scale_per_sensitivity=math.sqrt(times / (8 * rho)))

    @property
    def range_of_loss(self) -> float:
        return 1 / self.scale_per_sensitivity  # where one score cannot go up while another goes down


@dataclass(frozen=True)
class GumbelVertex(_Gumbel):
    """The vertex v of a public polytope with the largest -<v, g>, g the mean gradient, |<v, g_i>| <= clip for each row.

    Delta = contributions(adjacency) * clip / n (private Frank-Wolfe, Algorithm 2 with Gumbel noise; erratum E-16).
    """

    question: ClassVar[Question] = questions.Vertex()


@dataclass(frozen=True)
class GumbelStep(_Gumbel):
    """Of several public points on a line, the one with the least mean loss, each row's loss clipped to [0, clip].

    Delta = contributions(adjacency) * clip / (2 n). A loss that comes or goes moves all means the same way, by at most
    clip / n: as if clip / 2 had been taken off every loss, which changes no comparison and makes that Delta either way.
    """

    question: ClassVar[Question] = questions.StepLength()


@dataclass(frozen=True)
class LaplaceVertex(Release):
    """The vertex as above, chosen with Laplace(scale_per_sensitivity * Delta) on every score.

    Report-noisy-max on general scores: 2 / scale_per_sensitivity in pure DP per choice (erratum E-15); the
    bounded-range price of Gumbel noise does not hold for it.
    """

    scale_per_sensitivity: float
    question: ClassVar[Question] = questions.Vertex()
    noise: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_multiplier("scale_per_sensitivity", self.scale_per_sensitivity)

    @property
    def multiplier(self) -> float:
        return self.scale_per_sensitivity

    def cost(self) -> Cost:
        if self.scale_per_sensitivity == 0:
            return Cost.unbounded()
        return Cost.pure_dp(choice_epsilon(self.scale_per_sensitivity), self.times)

    @property
    def steps(self) -> tuple[Step, ...] | None:
        return (PureAnswer(choice_epsilon(self.scale_per_sensitivity)),) if self.scale_per_sensitivity > 0 else None

    def with_noise(self, factor: float) -> Self:
        return replace(self, scale_per_sensitivity=factor * self.scale_per_sensitivity)


@dataclass(frozen=True)
class GaussianCategories(Release):
    """The texts of a column whose number of rows plus N(0, sd^2) is at least 1 + clearance * sd, the largest first.

    Noise is added to the counts of texts that are there and to no others, since nobody knows the others. A row holds at
    most one text of a column, so counts have Delta_2 = sqrt(contributions(adjacency)); sd = sd_per_sensitivity *
    Delta_2.

    Proof, of one use. A text that only one of two neighbours has is held there by the one row in which they differ. So
    each neighbour has at most one such text, with a count of 1, and publishes it with chance l = Q(clearance) = P[N(0,
    1) >= clearance], independently of all others; with a higher threshold, with less. Its law is (1 - l) times the law
    given that the text is not published, plus l times another; a law without such a text is (1 - l) times itself plus l
    times itself. The first parts are about texts that both have: their counts with noise are a Gaussian release, of
    which what is published, in its order, is a function. That is what ``Cost.lost`` means, and it holds whatever was
    answered before, so l adds up over uses. QED
    """

    sd_per_sensitivity: float
    clearance: float
    question: ClassVar[Question] = questions.Categories()
    noise: ClassVar[str] = "thresholded gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_multiplier("sd_per_sensitivity", self.sd_per_sensitivity)
        check_multiplier("clearance", self.clearance)

    @classmethod
    def calibrated(cls, budget: Budget, times: int) -> Self:
        """``times`` uses that together take the budget, half of its delta for texts that one row holds."""
        lost = budget.delta / 2
        mu = gaussian_mu(budget.epsilon, budget.delta - lost)
        clearance = -float(ndtri(lost / times)) * (1 + 1e-12)  # a little inside the budget
        return cls(times, math.sqrt(times) / mu, clearance)

    @property
    def multiplier(self) -> float:
        return self.sd_per_sensitivity

    def threshold(self, sensitivity: float) -> float:
        """A little above 1 + clearance * sd: exact noise is wider than sd by some steps of its grid, which is sd / 2^28
        at most, and a count and its noise are rounded to the grid."""
        sd, steps = self.multiplier * sensitivity, 2.0**-26
        return 1 + self.clearance * sd * (1 + steps * (1 + self.multiplier)) + steps * sd

    def cost(self) -> Cost:
        if self.sd_per_sensitivity == 0:
            return Cost.unbounded()
        mu = 1 / self.sd_per_sensitivity
        return replace(Cost.gaussian(self.times * mu * mu), lost=self.times * float(ndtr(-self.clearance)))

    @property
    def steps(self) -> tuple[Step, ...] | None:
        return (GaussianAnswer(1 / self.sd_per_sensitivity),) if self.sd_per_sensitivity > 0 else None

    def with_noise(self, factor: float) -> Self:
        return replace(self, sd_per_sensitivity=factor * self.sd_per_sensitivity)
