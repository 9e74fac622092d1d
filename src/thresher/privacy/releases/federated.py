"""Answers of several parties who add up what they know inside a secure computation, with one copy of noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from thresher.privacy import questions
from thresher.privacy.accounting import ORDERS, Cost
from thresher.privacy.budget import Budget, is_whole
from thresher.privacy.conversions import gaussian_mu
from thresher.privacy.laws.dithered_binomial import DitheredBinomial
from thresher.privacy.laws.skellam import LEAST_VARIANCE, Skellam, integer_l1
from thresher.privacy.laws.unit_steps import binomial_steps
from thresher.privacy.questions import Question
from thresher.privacy.releases.base import Release, check_multiplier
from thresher.privacy.sensitivity import CERTIFIED

__all__ = [
    "BinomialGradient",
    "BinomialMinimiser",
    "BinomialRelease",
    "JointRelease",
    "PrintedGradient",
    "SkellamGradient",
    "SkellamMinimiser",
    "SkellamRelease",
]

ROUNDING = 160  # grid steps of the sensitivity for every unit that rounding may add to it: 0.6 % more noise
COINS = ((0.2, 256), (0.5, 1024), (math.inf, 4096))  # by shift over sd: a larger one needs longer tails
SHIFT_ROUND_OFF = 1 + 1e-12  # of the floating-point division by the grid step
LEAST_FACTOR = 2.0**-6  # of the noise that a Gaussian would need: where the search for a calibration gives up
FAR_APART = 2.0  # shifts over sd, beyond which nothing may have to be set aside: Renyi curves lose little there
ASIDE = 1 / 64  # of delta, for the tails of the noise: it costs 0.1 % of noise, and more would hardly save any


@dataclass(frozen=True)
class JointRelease(Release):
    """Adds whole-number noise of standard deviation sd_per_sensitivity * Delta_2 in steps of a public grid.

    With sigma the law's standard deviation in steps, a step is sd_per_sensitivity * Delta_2 / sigma. Rounding moves
    each of two neighbours by half a step in each of the ``touched`` coordinates that one record can change, so they
    are at most sigma / sd_per_sensitivity + sqrt(touched) steps apart: ``shift``.
    """

    sd_per_sensitivity: float
    touched: int

    def __post_init__(self) -> None:
        super().__post_init__()
        check_multiplier("sd_per_sensitivity", self.sd_per_sensitivity)
        if self.sd_per_sensitivity == 0:
            raise ValueError("sd_per_sensitivity=0: parties never add up without noise")
        if not is_whole(self.touched) or self.touched < 1:
            raise ValueError(f"touched={self.touched!r} must be a whole number of at least 1")

    @property
    def law(self) -> DitheredBinomial | Skellam:
        """The noise of a coordinate, in grid steps."""
        raise NotImplementedError

    @classmethod
    def calibrated(cls, budget: Budget, times: int, touched: int, adds_up: bool = False) -> Self:
        """``times`` uses that together take the whole budget, with the least noise that does.

        What ``adds_up`` over many fits in a ledger sets no part of delta aside.
        """
        if not budget.private:
            raise ValueError("epsilon is infinite: parties never add up without noise; give a finite epsilon")
        relative = gaussian_mu(budget.epsilon, budget.delta) / math.sqrt(times)  # shift over sd, were it Gaussian
        asides = [0.0] * (adds_up or relative > FAR_APART) + [ASIDE * budget.delta] * (not adds_up)
        found = [cls._within(budget, times, touched, relative, aside) for aside in asides]
        kept = [release for release in found if release is not None]
        if not kept:
            raise ValueError(
                f"epsilon={budget.epsilon:g}, delta={budget.delta:g}: no joint noise on {touched} coordinates "
                "keeps that; ask for fewer rounds, a larger epsilon or a larger delta"
            )
        return min(kept, key=lambda release: release.sd_per_sensitivity)

    @classmethod
    def _within(cls, budget: Budget, times: int, touched: int, relative: float, aside: float) -> Self | None:
        """The least noise that keeps the budget where so much of delta is set aside, if any does."""
        steps = (ROUNDING + 1) * math.sqrt(touched) / relative  # the sd that makes rounding harmless
        law = cls._shape(relative, steps, aside)
        sd = cls(times, 1.0, touched, **law).law.sd

        def at(factor: float) -> Self | None:
            """With a shift of ``factor`` times the Gaussian's, if the budget allows it."""
            reach = factor * relative * sd - math.sqrt(touched)
            if reach <= 0:
                return None
            release = cls(times, sd / reach, touched, **law)
            return release if release.cost().epsilon(budget.delta)[0] <= budget.epsilon else None

        high = low = 1.0
        while (found := at(low)) is None:
            high, low = low, low * 0.97
            if low < LEAST_FACTOR:
                return None
        for _ in range(12):
            middle = (low + high) / 2
            better = at(middle)
            low, high, found = (middle, high, better) if better else (low, middle, found)
        return found

    @classmethod
    def _shape(cls, relative: float, steps: float, aside: float) -> dict[str, Any]:
        """The law with at least so many steps to its standard deviation, for shifts of ``relative`` times that."""
        raise NotImplementedError

    @property
    def multiplier(self) -> float:
        return self.sd_per_sensitivity

    def most_sensitivity(self, least: float, n: int, round_off: float, margins: float) -> float:
        """Round-off is in every joint sensitivity; a minimiser's may be the smallest party's own (``PathakVault``)."""
        return least * (n * (1 + CERTIFIED) if self.question.certified else 1) * round_off

    @property
    def shift(self) -> float:
        """How far apart neighbours can be, in grid steps and l2 norm."""
        return (self.law.sd / self.sd_per_sensitivity + math.sqrt(self.touched)) * SHIFT_ROUND_OFF


@dataclass(frozen=True)
class BinomialRelease(JointRelease):
    """Noise of the dithered binomial law (``DitheredBinomial``), one copy of it.

    Cost of all uses: that of Gaussian noise of nearly the same spread, but for ``aside``, a part of delta that pays for
    the law's tails. Without one, the law's Renyi curve at the shift, and what it loses to delta because its support is
    bounded (docs/federated.md).
    """

    coins: int
    dither: int
    aside: float = 0.0
    noise: ClassVar[str] = "dithered binomial"

    def __post_init__(self) -> None:
        super().__post_init__()
        DitheredBinomial(self.coins, self.dither)  # raises if there is no such law
        if not 0 <= self.aside < 1:
            raise ValueError(f"aside={self.aside!r}, a part of delta, must lie from 0 to below 1")

    @classmethod
    def _shape(cls, relative: float, steps: float, aside: float) -> dict[str, Any]:
        coins = next(coins for most, coins in COINS if relative <= most)
        dither = min(max(0, math.ceil(math.log2(2 * steps / math.sqrt(coins)))), 20)
        return {"coins": coins, "dither": dither, "aside": aside}

    @property
    def answered_as(self) -> str:
        return "binomial"

    @property
    def law(self) -> DitheredBinomial:
        return DitheredBinomial(self.coins, self.dither)

    def cost(self) -> Cost:
        return _as_gaussian(self) if self.aside > 0 else _cost(self)


@dataclass(frozen=True)
class SkellamRelease(JointRelease):
    """Noise of the Skellam law (``Skellam``), of which each party adds a share of its own.

    ``variance``, in squared grid steps, is that of the noise which honest parties who stay are sure to add. Cost of a
    use: that of Gaussian noise of hardly less variance (docs/federated.md).
    """

    variance: int
    noise: ClassVar[str] = "skellam"

    def __post_init__(self) -> None:
        super().__post_init__()
        Skellam(self.variance)  # raises if there is no such law

    @classmethod
    def _shape(cls, relative: float, steps: float, aside: float) -> dict[str, Any]:
        return {"variance": max(math.ceil(steps**2), LEAST_VARIANCE)}

    @property
    def answered_as(self) -> str:
        return "skellam"

    @property
    def law(self) -> Skellam:
        return Skellam(self.variance)

    def cost(self) -> Cost:
        mu = self.law.distance * self.shift
        return Cost.gaussian(self.times * mu * mu)


@dataclass(frozen=True)
class BinomialGradient(BinomialRelease):
    """The noisy mean gradient over the rows of all parties, each row's l2 norm at most clip.

    Delta_2 = contributions(adjacency) * clip / n, n the rows of all parties: one record is one party's.
    """

    question: ClassVar[Question] = questions.Gradient()


@dataclass(frozen=True)
class BinomialMinimiser(BinomialRelease):
    """The noisy mean of the parties' own minimisers, each weighted by its share n_j / n of the rows.

    Delta_2 = contributions(adjacency) * clip / (n ridge) + 2 max_j (n_j / n) tolerance_j / ridge: whatever the sizes,
    where the thesis (6.3.1) has the smallest party in place of the mean (erratum E-22).
    """

    question: ClassVar[Question] = questions.Minimiser()


@dataclass(frozen=True)
class SkellamGradient(SkellamRelease):
    """As ``BinomialGradient``, with noise of which each party adds a share."""

    question: ClassVar[Question] = questions.Gradient()


@dataclass(frozen=True)
class SkellamMinimiser(SkellamRelease):
    """As ``BinomialMinimiser``, with noise of which each party adds a share."""

    question: ClassVar[Question] = questions.Minimiser()


@dataclass(frozen=True)
class PrintedGradient(Release):
    """(1/n) (sum_i g_i + b) + v: gradients of an objective with a linear term, as Rajkumar and Agarwal (2012) are run
    in the thesis (6.4), with ||g_i||_2 <= clip.

    b ~ N(0, (tilt * clip)^2 I) is drawn once, v has independent Laplace(laplace * clip / n) coordinates every time. The
    epsilon claimed is spent in every round, and in each of them not that one but up to sqrt(dimension) of it (erratum
    E-22); so this is not priced, and only a printed plan can hold it.
    """

    tilt: float
    laplace: float
    question: ClassVar[Question] = questions.GradientAsPrinted()
    noise: ClassVar[str] = "laplace, and gaussian in the objective"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_multiplier("tilt", self.tilt)
        check_multiplier("laplace", self.laplace)

    @classmethod
    def printed(cls, budget: Budget, times: int) -> Self:
        """2 sqrt(2 log(1.25/delta)) / epsilon and 2 / epsilon, for replaced rows; half as much for added ones."""
        if not budget.private:
            return cls(times, 0.0, 0.0)
        per_round = budget.adjacency.contributions / budget.epsilon
        return cls(times, per_round * math.sqrt(2 * math.log(1.25 / budget.delta)), per_round)

    @property
    def multiplier(self) -> float:
        return 0.0  # there is no price it could be relative to

    def cost(self) -> Cost:
        return Cost.unbounded()


def _as_gaussian(release: BinomialRelease) -> Cost:
    """By Theorem 2 of docs/federated.md: vectors are as far apart as their normal scores, or all is told."""
    steps, shift = binomial_steps(release.law), release.shift
    total = release.times * integer_l1(shift, release.touched)
    mu = steps.distance(steps.excess(release.aside, shift, total)) * shift
    return replace(Cost.gaussian(release.times * mu * mu), lost=release.aside) if mu < math.inf else Cost.unbounded()


@lru_cache(maxsize=64)  # each of many parties has a plan with the same release
def _cost(release: BinomialRelease) -> Cost:
    orders, rdp, lost = release.law.rdp(release.shift, release.touched, release.times)
    # (a - 1) D_a is convex in a and 0 at a = 1, so its chords bound it between the orders computed
    nodes, chords = np.concatenate([[0.0], orders - 1]), np.concatenate([[0.0], (orders - 1) * rdp])
    beyond = ORDERS - 1
    curve = np.interp(beyond, nodes, chords, right=np.inf) / beyond
    return Cost.renyi(release.times * curve, release.times * lost)
