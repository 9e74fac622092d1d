"""Answers about a random batch of the rows, drawn anew for every answer and never told."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self

from thresher.privacy import questions
from thresher.privacy.accounting import ORDERS, Cost
from thresher.privacy.budget import Adjacency, Budget, is_whole
from thresher.privacy.conversions import gaussian_mu
from thresher.privacy.questions import CertifiedSearch, Question
from thresher.privacy.releases.base import Release, check_multiplier
from thresher.privacy.sensitivity import gradient_sensitivity
from thresher.privacy.subsampling import Poisson, Sampling, fixed_size_rdp, poisson_sd

__all__ = ["SampledGradient", "SampledMomentum", "SampledRelease", "least_noise", "noise_guess"]

CLOSE = 1e-3  # calibrated plans cost between this much less than the budget and the budget


@dataclass(frozen=True)
class SampledRelease(Release):
    """A sum over a random batch of the rows, over its expected size b, plus N(0, (sd_per_sensitivity * Delta_2)^2 I).

    Of ``population`` = n rows, "poisson" draws each independently with chance b/n, "fixed" a uniformly random subset of
    exactly b = ``batch``. Delta_2 = contributions(adjacency) * clip / b, between neighbours whose differing rows are
    both drawn. Cost of T uses: "poisson" by privacy loss distributions, "fixed" (replace-one only: with add-remove the
    rate itself would depend on the data) by the Renyi curve of Wang, Balle and Kasiviswanathan 2019.
    """

    sd_per_sensitivity: float
    batch: int
    population: int
    sampling: Sampling
    adjacency: Adjacency
    noise: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_multiplier("sd_per_sensitivity", self.sd_per_sensitivity)
        object.__setattr__(self, "adjacency", Adjacency(self.adjacency))
        if not (is_whole(self.batch) and is_whole(self.population) and 1 <= self.batch < self.population):
            raise ValueError(
                f"batch={self.batch!r} must be a whole number from 1 to below the number of rows, {self.population!r}"
            )
        object.__setattr__(self, "batch", int(self.batch))
        object.__setattr__(self, "population", int(self.population))
        if self.sampling not in ("poisson", "fixed"):
            raise ValueError(f"sampling={self.sampling!r} must be 'poisson' or 'fixed'")
        if self.sampling == "fixed" and self.adjacency is not Adjacency.REPLACE_ONE:
            raise ValueError("sampling='fixed' is private for adjacency='replace-one' only; use sampling='poisson'")

    @property
    def multiplier(self) -> float:
        return self.sd_per_sensitivity

    @property
    def rate(self) -> float:
        """The chance of a row to be in a batch."""
        return self.batch / self.population

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        """Of a sum over a batch, over its expected size instead of n."""
        return gradient_sensitivity(clip, self.batch, adjacency)

    def cost(self) -> Cost:
        if self.sd_per_sensitivity == 0:
            return Cost.unbounded()
        if self.sampling == "poisson":
            return Cost.poisson(Poisson(self.times, self.rate, self.sd_per_sensitivity, self.adjacency))
        return Cost.renyi(self.times * fixed_size_rdp(self.batch, self.population, self.sd_per_sensitivity, ORDERS))

    @classmethod
    def calibrated(cls, budget: Budget, times: int, batch: int, population: int, sampling: Sampling) -> Self:
        """``times`` uses that together take the budget."""
        facts = (batch, population, sampling, budget.adjacency)
        guess = noise_guess(budget, times, batch / population, sampling)
        return cls(times, least_noise(lambda sd: (cls(times, sd, *facts),), budget, guess), *facts)


@dataclass(frozen=True)
class SampledGradient(SampledRelease):
    """The noisy gradient (1/b) sum over a batch of g_i + noise, with ||g_i||_2 <= clip."""

    question: ClassVar[Question] = questions.BatchGradient()


@dataclass(frozen=True)
class SampledMomentum(SampledRelease):
    """The noisy step of a recursive momentum, (1/b) sum over a batch of (1-g) D_i + g G_i + noise.

    D_i is the row's gradient at a point less that at the point before, clipped to ||D_i||_2 <= C2; G_i its gradient,
    clipped to C1. So clip = (1-g) C2 + g C1 (erratum E-18: the thesis swaps the two).
    """

    question: ClassVar[Question] = questions.BatchMomentum()


def noise_guess(budget: Budget, times: int, rate: float, sampling: Sampling) -> float:
    """Where to look for the noise multiplier of so many releases at this rate."""
    if not budget.private:
        return 0.0
    mu = gaussian_mu(budget.epsilon, budget.delta)
    if sampling == "fixed":  # about twice as loose, as if one row were added
        return poisson_sd(times, rate, Adjacency.ADD_REMOVE, mu / 2)
    return poisson_sd(times, rate, budget.adjacency, mu)


def least_noise(releases: Callable[[float], tuple[Release, ...]], budget: Budget, guess: float) -> float:
    """The least noise scale, to a part in a thousand of epsilon, with which ``releases`` of that scale fit the budget.

    Epsilon falls about like a power of the scale, so the secant rule in logarithms gets there in a few steps. Prices
    are remembered by the accountant, and the steps are always the same: to calibrate again costs next to nothing.
    """
    if not budget.private:
        return 0.0
    low, high = 0.0, math.inf
    scale, slope, last = guess, -1.0, (0.0, 0.0)
    for step in range(100):
        price = sum((release.cost() for release in releases(scale)), Cost()).epsilon(budget.delta)[0]
        if price > budget.epsilon:
            low = scale
        else:
            high = scale
            if price >= budget.epsilon * (1 - CLOSE):
                break
        now = math.log(scale), math.log(max(price, 1e-300))
        if step > 0 and now[0] != last[0]:
            slope = min((now[1] - last[1]) / (now[0] - last[0]), -0.2)
        last, move = now, (math.log(budget.epsilon * (1 - CLOSE / 2)) - now[1]) / slope
        scale *= math.exp(max(-3.0, min(3.0, move)))
        if not low < scale < high:
            scale = math.sqrt(low * high) if low > 0 else high / 8
        if high - low < 1e-4 * low:
            break
    return high
