"""Vectors with entries in [-1, 1], reported as the signs of a few of them: Duchi et al. and one random coordinate."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from thresher.budget import is_whole
from thresher.randomisers.checks import check_dimension, check_epsilon, check_width, numbers
from thresher.randomness import NoiseSource

__all__ = ["Hypercube", "Signs"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_SAMPLED = 62  # signs in a report: more gain next to nothing, and so many are counted in 64-bit integers


class Signs(NamedTuple):
    """Reports: which coordinates each person was asked about, and a sign, +1 or -1, for each of them."""

    at: Integers
    signs: NDArray[np.int8]


@dataclass(frozen=True)
class Hypercube:
    """The signs of ``sampled`` random coordinates, more likely such that at least ``agreeing`` of them are right.

    The coordinates are drawn without looking at the value. Each sampled entry v_j of [-1, 1] becomes a sign, +1 with
    chance (1 + v_j)/2. Of the 2^k sign vectors, k = ``sampled``, each that agrees with those signs at ``agreeing``
    places or more has chance e^epsilon/Z, any other 1/Z. Two chances differ by at most e^epsilon: pure epsilon-LDP,
    and reports are whole numbers, in which no low bits of the value can hide. (Above 62 coordinates, vectors of chance
    below 2^-53 are drawn at that resolution.) The mean of a reported sign is m times the true one, m the ``pull``,
    so signs times d/(k m), 0 elsewhere, are unbiased.

    ``sampled=1`` is one random coordinate with randomised response; all d coordinates with a bare majority are Duchi,
    Jordan and Wainwright (2018) for the l-infinity ball. (With an even number of coordinates their two halves share the
    ties, which are then 1 + e^epsilon times as likely as other vectors; here a tie is no majority.) In between lie
    Chen, Kairouz and Ozgur (2020): a few coordinates, all of which must agree. For all epsilon below about 5 the best
    member has less error on vectors of +-1 than any report of the l2 ball, and little more above.
    """

    dimension: int
    epsilon: float
    sampled: int
    agreeing: int

    def __post_init__(self) -> None:
        check_dimension(self.dimension)
        check_epsilon(self.epsilon)
        for name, most in (("sampled", self.dimension), ("agreeing", self.sampled)):
            value = getattr(self, name)
            if not (is_whole(value) and 1 <= value <= most):
                raise ValueError(f"{name}={value!r} must be a whole number from 1 to {most}")
        if self.agreeing <= self.sampled / 2:
            raise ValueError(f"agreeing={self.agreeing!r} must be more than half of sampled={self.sampled}")

    @classmethod
    def duchi(cls, dimension: int, epsilon: float) -> Self:
        """Duchi et al.: all coordinates, a bare majority agrees."""
        return cls(dimension, epsilon, dimension, dimension // 2 + 1)

    @classmethod
    def one_coordinate(cls, dimension: int, epsilon: float) -> Self:
        """One random coordinate, its sign by randomised response."""
        return cls(dimension, epsilon, 1, 1)

    @classmethod
    def best(cls, dimension: int, epsilon: float) -> Self:
        """The number of coordinates, and of those that agree, with the least error."""
        check_dimension(dimension)
        check_epsilon(epsilon)
        return cls(dimension, epsilon, *_best_cap(min(dimension, MOST_SAMPLED), epsilon))

    @cached_property
    def pull(self) -> float:
        """m, the mean of a reported sign times the true one."""
        return _pull(self._chances, self.agreeing, self.epsilon)

    @property
    def size(self) -> float:
        """The magnitude of a report's nonzero entries."""
        return self.dimension / (self.sampled * self.pull)

    @property
    def second_moment(self) -> float:
        """E ||report||^2; the mean squared error at v is this less ||v||^2."""
        return self.sampled * self.size**2

    def randomise(self, values: Floats, noise: NoiseSource) -> Signs:
        """One report for each row of ``values``."""
        check_width(values, self.dimension)
        at = self._coordinates(len(values), noise)
        chosen = numbers(np.take_along_axis(values, at, axis=1))
        true = np.where(noise.uniform(chosen.shape) < (1 + chosen) / 2, 1, -1).astype(np.int8)
        right = self._right(len(values), noise)
        if self.sampled == 1:
            return Signs(at, np.where(right[:, None] == 1, true, -true))
        # which of the signs are right: each set of that many is as likely as any other
        lots = noise.uniform(chosen.shape)
        last = np.take_along_axis(np.sort(lots, axis=1), np.maximum(right - 1, 0)[:, None], axis=1)
        last[right == 0] = -1.0
        return Signs(at, np.where(lots <= last, true, -true))

    def total(self, reports: Signs) -> Floats:
        """The sum of the reports, an unbiased estimate of the sum of the values."""
        counts = np.bincount(reports.at.ravel(), reports.signs.ravel(), minlength=self.dimension)
        return np.multiply(self.size, counts, dtype=np.float64)

    def log_density(self, reports: Signs, value: Floats) -> Floats:
        """The log-chance of each report for a person who holds ``value``, given the coordinates.

        The number of agreeing signs is a sum of independent coins, whose law is built up one coordinate at a time.
        """
        inside = numbers(value)[reports.at]
        agrees = (1 + reports.signs * inside) / 2
        law = np.zeros((len(agrees), self.sampled + 1))
        law[:, 0] = 1.0
        for chance in agrees.T[:, :, None]:
            law[:, 1:] = law[:, 1:] * (1 - chance) + law[:, :-1] * chance
            law[:, :1] *= 1 - chance
        odds, share = math.exp(-self.epsilon), float(self._chances[self.agreeing :].sum())
        enough = law[:, self.agreeing :].sum(axis=1)
        weight = enough + odds * (1 - enough)
        logs: Floats = np.log(weight) - self.sampled * math.log(2) - math.log(share + odds * (1 - share))
        return logs

    @cached_property
    def _chances(self) -> Floats:
        """How many signs agree if all sign vectors are equally likely."""
        return _coin_counts(self.sampled)

    def _coordinates(self, people: int, noise: NoiseSource) -> Integers:
        """``sampled`` different coordinates for each person, all sets equally likely."""
        if self.sampled == self.dimension:
            return np.broadcast_to(np.arange(self.dimension), (people, self.dimension))
        if self.sampled**2 > self.dimension:  # too many would be drawn twice
            order = np.argpartition(noise.uniform((people, self.dimension)), self.sampled, axis=1)
            return np.sort(order[:, : self.sampled], axis=1)
        drawn = noise.uniform_integers(self.dimension, people * self.sampled)
        at = np.sort(drawn.reshape(people, self.sampled), axis=1)
        while True:
            (twice,) = np.nonzero((at[:, 1:] == at[:, :-1]).any(axis=1))
            if twice.size == 0:
                return at
            again = noise.uniform_integers(self.dimension, twice.size * self.sampled)
            at[twice] = np.sort(again.reshape(twice.size, -1), axis=1)

    def _right(self, people: int, noise: NoiseSource) -> Integers:
        """How many of the reported signs are the true ones: enough or not by one coin, then by whole numbers."""
        odds, share = math.exp(-self.epsilon), float(self._chances[self.agreeing :].sum())
        enough = noise.uniform(people) >= odds * (1 - share) / (share + odds * (1 - share))  # rounds towards lies
        cuts = (0, self.agreeing, self.sampled + 1)
        few, many = (low + self._count(low, high, people, noise) for low, high in itertools.pairwise(cuts))
        return np.where(enough, many, few)

    def _count(self, low: int, high: int, people: int, noise: NoiseSource) -> Integers:
        """A number of agreeing signs from ``low`` to below ``high``, less ``low``, all sign vectors equally likely."""
        if self.sampled <= MOST_SAMPLED:
            ways = np.cumsum([math.comb(self.sampled, heads) for heads in range(low, high)])
            count: Integers = np.searchsorted(ways, noise.uniform_integers(int(ways[-1]), people), side="right")
            return count
        steps = np.cumsum(self._chances[low:high])
        count = np.searchsorted(steps, noise.uniform(people) * steps[-1], side="right")
        return np.minimum(count, high - low - 1)


def _coin_counts(coins: int) -> Floats:
    """The binomial law of ``coins`` fair coins."""
    heads = np.arange(coins + 1)
    log_ways = gammaln(coins + 1) - gammaln(heads + 1) - gammaln(coins - heads + 1)
    chances: Floats = np.exp(log_ways - coins * math.log(2))
    return chances


def _pull(chances: Floats, agreeing: int, epsilon: float) -> float:
    """The mean of a sign times the true one, if ``agreeing`` or more true ones are e^epsilon times as likely."""
    sampled, odds = len(chances) - 1, math.exp(-epsilon)
    inside = chances[agreeing:]
    moment = float(inside @ (2 * np.arange(agreeing, sampled + 1) - sampled)) / sampled
    share = float(inside.sum())
    return -math.expm1(-epsilon) * moment / (share + odds * (1 - share))


@lru_cache(maxsize=64)
def _best_cap(most: int, epsilon: float) -> tuple[int, int]:
    """The (sampled, agreeing) with the largest sampled * pull^2, hence the least second moment."""
    gains = {
        (sampled, agreeing): sampled * _pull(_coin_counts(sampled), agreeing, epsilon) ** 2
        for sampled in range(1, most + 1)
        for agreeing in range(sampled // 2 + 1, sampled + 1)
    }
    return max(gains, key=lambda cap: gains[cap])
