"""Answers of several parties who add up what they know inside a secure computation, with one copy of noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np

from thresher.accounting import ORDERS, Cost, zcdp_rho
from thresher.budget import Budget, is_whole
from thresher.dithered import DitheredBinomial
from thresher.releases.base import Release, check_multiplier

__all__ = ["BinomialGradient", "BinomialMinimiser", "BinomialRelease"]

ROUNDING = 160  # grid steps of the sensitivity for every unit that rounding may add to it: 0.6 % more noise
COINS = ((0.2, 256), (0.5, 1024), (math.inf, 4096))  # by shift over sd: a larger one needs longer tails
SHIFT_ROUND_OFF = 1 + 1e-12  # of the floating-point division by the grid step
LEAST_FACTOR = 2.0**-6  # of the noise that a Gaussian would need: where the search for a calibration gives up


@dataclass(frozen=True)
class BinomialRelease(Release):
    """Adds the dithered binomial (:class:`thresher.dithered.DitheredBinomial`) of standard deviation sd_per_sensitivity
    * Delta_2 to every coordinate, values and noise in whole steps of a public grid.

    With sigma the law's standard deviation in steps, a step is sd_per_sensitivity * Delta_2 / sigma. Rounding moves
    each of two neighbours by half a step in each of the ``touched`` coordinates that one record can change, so they
    are at most sigma / sd_per_sensitivity + sqrt(touched) steps apart; the law's Renyi curve at that shift, and what it
    loses to delta because its support is bounded, is the cost of a use (docs/federated.md).
    """

    sd_per_sensitivity: float
    coins: int
    dither: int
    touched: int
    noise: ClassVar[str] = "dithered binomial"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_multiplier("sd_per_sensitivity", self.sd_per_sensitivity)
        if self.sd_per_sensitivity == 0:
            raise ValueError("sd_per_sensitivity=0: parties never add up without noise")
        if not is_whole(self.touched) or self.touched < 1:
            raise ValueError(f"touched={self.touched!r} must be a whole number of at least 1")
        DitheredBinomial(self.coins, self.dither)  # raises if there is no such law

    @classmethod
    def calibrated(cls, budget: Budget, times: int, touched: int) -> Self:
        """``times`` uses that together take the whole budget, with the least noise that does."""
        if not budget.private:
            raise ValueError("epsilon is infinite: parties never add up without noise; give a finite epsilon")
        relative = math.sqrt(2 * zcdp_rho(budget.epsilon, budget.delta) / times)  # shift over sd, were it Gaussian
        coins = next(coins for most, coins in COINS if relative <= most)
        steps = (ROUNDING + 1) * math.sqrt(touched) / relative  # the sd that makes rounding harmless
        dither = min(max(0, math.ceil(math.log2(2 * steps / math.sqrt(coins)))), 20)
        sd = DitheredBinomial(coins, dither).sd

        def at(factor: float) -> Self | None:
            """With a shift of ``factor`` times the Gaussian's, if the budget allows it."""
            reach = factor * relative * sd - math.sqrt(touched)
            if reach <= 0:
                return None
            release = cls(times, sd / reach, coins, dither, touched)
            return release if release.cost().epsilon(budget.delta)[0] <= budget.epsilon else None

        high = low = 1.0
        while (found := at(low)) is None:
            high, low = low, low * 0.97
            if low < LEAST_FACTOR:
                raise ValueError(
                    f"epsilon={budget.epsilon:g}, delta={budget.delta:g}: no joint noise on {touched} coordinates "
                    "keeps that; ask for fewer rounds, a larger epsilon or a larger delta"
                )
        for _ in range(12):
            middle = (low + high) / 2
            better = at(middle)
            low, high, found = (middle, high, better) if better else (low, middle, found)
        return found

    @property
    def law(self) -> DitheredBinomial:
        return DitheredBinomial(self.coins, self.dither)

    @property
    def multiplier(self) -> float:
        return self.sd_per_sensitivity

    @property
    def shift(self) -> float:
        """How far apart neighbours can be, in grid steps and l2 norm."""
        return (self.law.sd / self.sd_per_sensitivity + math.sqrt(self.touched)) * SHIFT_ROUND_OFF

    def cost(self) -> Cost:
        return _cost(self)


@dataclass(frozen=True)
class BinomialGradient(BinomialRelease):
    """The noisy mean gradient over the rows of all parties, each row's l2 norm at most clip.

    Delta_2 = contributions(adjacency) * clip / n, n the rows of all parties: one record is one party's.
    """

    question: ClassVar[str] = "gradient"


@dataclass(frozen=True)
class BinomialMinimiser(BinomialRelease):
    """The noisy mean of the parties' own minimisers, each weighted by its share n_j / n of the rows.

    Delta_2 = contributions(adjacency) * clip / (n ridge) + 2 max_j (n_j / n) tolerance_j / ridge: whatever the sizes,
    where the thesis (6.3.1) has the smallest party in place of the mean (erratum E-22).
    """

    question: ClassVar[str] = "minimiser"


@lru_cache(maxsize=64)  # each of many parties has a plan with the same release
def _cost(release: BinomialRelease) -> Cost:
    orders, rdp, lost = release.law.rdp(release.shift, release.touched, release.times)
    # (a - 1) D_a is convex in a and 0 at a = 1, so its chords bound it between the orders computed
    nodes, chords = np.concatenate([[0.0], orders - 1]), np.concatenate([[0.0], (orders - 1) * rdp])
    beyond = ORDERS - 1
    curve = np.interp(beyond, nodes, chords, right=np.inf) / beyond
    return Cost.renyi(release.times * curve, release.times * lost)
