"""Releases that answer by making others: a search by a secret number of trials, spending within a cap."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from thresher.privacy import questions
from thresher.privacy.accounting import ORDERS, Cost
from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Budget, is_whole
from thresher.privacy.composition import Step, composed_delta
from thresher.privacy.conversions import zcdp_rho
from thresher.privacy.questions import Question
from thresher.privacy.releases.base import GaussianRelease, Release
from thresher.privacy.releases.sampled import SampledRelease

__all__ = ["GaussianScore", "RandomTrials", "ZCDPFilter"]

LEAST_PRICED, MOST_PRICED = 1.5, 64.0  # orders at which choices and answers are composed exactly ...
EVERY = 6  # ... of which every sixth
CELLS_OF_TRIALS = 8.5  # of that composition: a bound with any number, within a few per cent of delta with so many
MOST_STEPS = 240


@dataclass(frozen=True)
class GaussianScore(GaussianRelease):
    """The mean of the held-out rows' scores, each clipped into [0, clip], plus noise.

    Delta_2 = contributions(adjacency) * clip / (2 n), n the public number of held-out rows: half of the clip is taken
    off every score, and given back to their mean.
    """

    question: ClassVar[Question] = questions.Score()


@dataclass(frozen=True)
class RandomTrials(Release):
    """The best of K independent trials by its noisy score, K drawn from Poisson(``trials``) given that it is not 0.

    A trial draws a candidate, makes one of the ``fits`` (a tuple of releases) on ``fit_rows`` rows, and ``score`` on
    the ``score_rows`` others. Who is fitted is drawn without looking at the rows, so a person is either fitted or
    scored: the trial costs the largest of ``fits`` and ``score``, order by order. K and all other trials stay secret.
    ``orders``, if there are any, are those in which each fit asks, as positions among its distinct releases; an empty
    one is any.

    If the trial has the Renyi curve eps(a) and is (log(a/(a-1)), delta(a))-DP, then with m = ``trials``

        e^((a-1) D_a) - 1  <=  m / (1 - e^-m) * e^(m (a-1) delta(a)) * (e^((a-1) eps(a)) - 1)

    (Papernot and Steinke 2022, Theorem 6, sharpened and without the empty outcome; proof in docs/tuning.md).
    """

    trials: float
    fits: tuple[tuple[Release, ...], ...]
    score: GaussianScore
    fit_rows: int
    score_rows: int
    orders: tuple[tuple[int, ...], ...] = ()
    question: ClassVar[Question] = questions.BestOfTrials()
    noise: ClassVar[str] = "as listed"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.times != 1 or not 0 < self.trials < math.inf:
            raise ValueError(f"times={self.times!r}, trials={self.trials!r}: a search is one, of trials above 0")
        if not (is_whole(self.fit_rows) and is_whole(self.score_rows) and min(self.fit_rows, self.score_rows) >= 1):
            raise ValueError(f"fit_rows={self.fit_rows!r}, score_rows={self.score_rows!r} must be at least 1 each")
        object.__setattr__(self, "fits", tuple(map(tuple, self.fits)))
        object.__setattr__(self, "orders", tuple(map(tuple, self.orders)))
        if not self.fits or not all(self.fits) or not isinstance(self.score, GaussianScore) or self.score.times != 1:
            raise ValueError("a trial makes at least one release on the rows it fits, and one score on the others")
        if self.orders and len(self.orders) != len(self.fits):
            raise ValueError(f"orders={self.orders!r} must be one for each of {len(self.fits)} fits, or none")
        for fit, order in zip(self.fits, self.orders, strict=False):
            uses = Counter[Release]()
            for release in fit:
                uses[release] += release.times
            if order and Counter(order) != Counter(dict(enumerate(uses.values()))):
                raise ValueError(f"orders: {order!r} does not name every use of a fit's releases once")
        for release in self.parts:
            if isinstance(release, SampledRelease) and release.population != self.fit_rows:
                raise ValueError(f"{release!r} is priced for another number of rows than the {self.fit_rows} fitted")

    @property
    def parts(self) -> Iterator[Release]:
        """Everything a trial may release."""
        yield from (release for fit in self.fits for release in fit)
        yield self.score

    @property
    def multiplier(self) -> float:
        return 0.0  # it gives no answer itself

    @property
    def terms(self) -> tuple[str, str]:
        return "searched", f"the best of a secret number of trials, {self.trials:g} expected"

    @property
    def trial_costs(self) -> list[Cost]:
        """What the rows of a trial pay, by the candidate for those that are fitted; last, for those that are scored."""
        return [*(sum((release.cost() for release in fit), Cost()) for fit in self.fits), self.score.cost()]

    def cost(self) -> Cost:
        return _cost(self)

    def to_dict(self) -> dict[str, Any]:
        fits = [[release.to_dict() for release in fit] for fit in self.fits]
        facts: dict[str, Any] = {"trials": self.trials, "fit_rows": self.fit_rows, "score_rows": self.score_rows}
        if self.orders:
            facts["orders"] = [list(order) for order in self.orders]
        return {"kind": type(self).__name__, "times": 1, **facts, "fits": fits, "score": self.score.to_dict()}


@lru_cache(maxsize=256)
def _cost(release: RandomTrials) -> Cost:
    costs = release.trial_costs
    if any(cost.lost > 0 for cost in costs):
        return Cost.unbounded()
    curve = np.max([cost.curve for cost in costs], axis=0)
    if np.all(np.isinf(curve)):
        return Cost.unbounded()
    orders = release.orders or ((),) * len(release.fits)
    asked = zip((*release.fits, (release.score,)), (*orders, ()), costs, strict=True)
    deltas = np.max([_deltas(*each) for each in asked], axis=0)
    return Cost.renyi(best_of_trials(release.trials, curve, deltas))


def _deltas(fit: tuple[Release, ...], order: tuple[int, ...], cost: Cost) -> Floats:
    """What a fit of this cost has at each epsilon = log(a/(a-1)): by what adds up, or exactly, in the order asked."""
    proved = cost.deltas(np.log1p(1 / (ORDERS - 1)))
    if not order:
        return proved
    each = [release.steps for release in dict.fromkeys(fit)]
    steps = tuple(step for at in order for step in each[at] or ())
    return proved if None in each or len(steps) > MOST_STEPS else np.minimum(proved, _exact_deltas(steps))


@lru_cache(maxsize=1024)
def _exact_deltas(steps: tuple[Step, ...]) -> Floats:
    """At each order that of the next order it is computed at: the larger the order, the smaller epsilon."""
    deltas = np.ones_like(ORDERS)
    last = 0
    for at in np.flatnonzero((ORDERS > LEAST_PRICED) & (ORDERS < MOST_PRICED))[::EVERY]:
        deltas[last : at + 1] = composed_delta(steps, float(np.log1p(1 / (ORDERS[at] - 1))), CELLS_OF_TRIALS)
        last = at + 1
    return deltas


def best_of_trials(trials: float, curve: Floats, deltas: Floats) -> Floats:
    """The Renyi curve of the best of Poisson(trials) > 0 trials; ``deltas`` are a trial's at epsilon = log(a/(a-1))."""
    beyond = ORDERS - 1
    moments = beyond * curve
    with np.errstate(divide="ignore"):
        log_moments = moments + np.log(-np.expm1(-moments))  # log(e^moments - 1), without overflow
    more = math.log(trials / -math.expm1(-trials)) + trials * beyond * deltas
    best: Floats = np.logaddexp(0.0, more + log_moments) / beyond
    return best


@dataclass(frozen=True)
class ZCDPFilter(Release):
    """Any releases, each chosen and priced while running, as long as their zCDP adds up to at most ``rho``.

    The whole is rho-zCDP, as if the releases had been fixed in advance (Feldman and Zrnic 2021, Theorem 4.5 for Renyi
    filters; Whitehouse et al. 2023): the question that would cross the cap is refused.
    """

    rho: float
    question: ClassVar[Question] = questions.AnyQuestion()
    noise: ClassVar[str] = "as listed"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.times != 1 or not self.rho > 0:
            raise ValueError(f"times={self.times!r}, rho={self.rho!r}: a filter is one cap above 0")

    @classmethod
    def calibrated(cls, budget: Budget) -> Self:
        return cls(1, zcdp_rho(budget.epsilon, budget.delta))

    @property
    def multiplier(self) -> float:
        return 0.0  # it gives no answer itself

    @property
    def terms(self) -> tuple[str, str]:
        return "spent while running", f"at most rho = {self.rho:.4g} in zCDP"

    def cost(self) -> Cost:
        return Cost.unbounded() if math.isinf(self.rho) else Cost.zcdp(self.rho)
