"""The law of a vector with entries in [-1, 1] of which the signs of a few are reported: Duchi et al., and others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from thresher.privacy.arrays import Floats, Integers
from thresher.privacy.budget import is_whole
from thresher.privacy.laws.checks import check_dimension, check_epsilon, numbers

__all__ = ["MOST_SAMPLED", "HypercubeLaw", "Signs"]

MOST_SAMPLED = 62  # signs in a report: more gain next to nothing, and so many are counted in 64-bit integers


class Signs(NamedTuple):
    """Reports: which coordinates each person was asked about, and a sign, +1 or -1, for each of them."""

    at: Integers
    signs: NDArray[np.int8]


@dataclass(frozen=True)
class HypercubeLaw:
    """The signs of ``sampled`` random coordinates, more likely such that at least ``agreeing`` of them are right.

    The coordinates are drawn without looking at the value. Each sampled entry v_j of [-1, 1] becomes a sign, +1 with
    chance (1 + v_j)/2. Of the 2^k sign vectors, k = ``sampled``, each that agrees with those signs at ``agreeing``
    places or more has chance e^epsilon/Z, any other 1/Z. Two chances differ by at most e^epsilon: pure epsilon-LDP,
    and reports are whole numbers, in which no low bits of the value can hide. The mean of a reported sign is m times
    the true one, m the ``pull``, so signs times d/(k m), 0 elsewhere, are unbiased.

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
        return _pull(self.chances, self.agreeing, self.epsilon)

    @property
    def size(self) -> float:
        """The magnitude of a report's nonzero entries."""
        return self.dimension / (self.sampled * self.pull)

    @property
    def second_moment(self) -> float:
        """E ||report||^2; the mean squared error at v is this less ||v||^2."""
        return self.sampled * self.size**2

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
        odds, share = math.exp(-self.epsilon), float(self.chances[self.agreeing :].sum())
        enough = law[:, self.agreeing :].sum(axis=1)
        weight = enough + odds * (1 - enough)
        logs: Floats = np.log(weight) - self.sampled * math.log(2) - math.log(share + odds * (1 - share))
        return logs

    @cached_property
    def chances(self) -> Floats:
        """How many signs agree if all sign vectors are equally likely."""
        return _coin_counts(self.sampled)


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
