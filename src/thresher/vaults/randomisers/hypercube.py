"""Signs of a few entries drawn for vectors with entries in [-1, 1], on each person's own device."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from thresher.privacy.arrays import Floats, Integers
from thresher.privacy.laws.checks import check_width, numbers
from thresher.privacy.laws.hypercube import MOST_SAMPLED, HypercubeLaw, Signs
from thresher.vaults.randomness import NoiseSource

__all__ = ["Hypercube"]


@dataclass(frozen=True)
class Hypercube(HypercubeLaw):
    """Reports with the law of a few signs. Above 62, vectors of chance below 2^-53 are drawn at that resolution."""

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
        odds, share = math.exp(-self.epsilon), float(self.chances[self.agreeing :].sum())
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
        steps = np.cumsum(self.chances[low:high])
        count = np.searchsorted(steps, noise.uniform(people) * steps[-1], side="right")
        return np.minimum(count, high - low - 1)
