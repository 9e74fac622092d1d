"""Local randomisers: channels from one person's value to one report that may leave the person's hands.

Each draws reports of a law of ``thresher.privacy.laws``, which states its privacy, is unbiased, and knows how likely
every report is for every value. Values are measured in units of a public bound: vectors of the unit ball or cube,
labels in [-1, 1].

The low bits of a floating-point sum of a label and noise can tell the label for certain (Mironov 2012), and here every
single sum is seen. So numbers are reported as multiples of a public power of two near 2^-24 of their size, rounded up
or down at random with chances that keep the mean; a grid point then stands for so many floats that its chance is right
to about 2^-28.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from scipy.special import betainccinv

from thresher.privacy.arrays import Floats, Integers
from thresher.privacy.laws.checks import check_width, numbers
from thresher.privacy.laws.hypercube import MOST_SAMPLED, HypercubeLaw, Signs
from thresher.privacy.laws.labels import ClassesLaw, GaussianLaw, LaplaceLaw, PiecewiseLaw
from thresher.privacy.laws.sphere import SphereLaw, polar
from thresher.vaults.randomness import NoiseSource

__all__ = [
    "VECTOR_RANDOMISERS",
    "Classes",
    "Gaussian",
    "Hypercube",
    "Laplace",
    "Piecewise",
    "Signs",
    "Sphere",
    "best_vector_randomiser",
]


@dataclass(frozen=True)
class Laplace(LaplaceLaw):
    """Reports with Laplace noise."""

    def randomise(self, values: Floats, noise: NoiseSource) -> Floats:
        return _on_grid(numbers(values) + noise.laplace(self.size, len(values)), self.size, noise)


@dataclass(frozen=True)
class Gaussian(GaussianLaw):
    """Reports with Gaussian noise."""

    def randomise(self, values: Floats, noise: NoiseSource) -> Floats:
        return _on_grid(numbers(values) + self.sd * noise.standard_normal(len(values)), self.sd, noise)


@dataclass(frozen=True)
class Piecewise(PiecewiseLaw):
    """Reports with the piecewise law."""

    def randomise(self, values: Floats, noise: NoiseSource) -> Floats:
        low = self.low(numbers(values))
        near = noise.uniform(len(low)) >= 1 / (1 + math.exp(self.epsilon / 2))
        place = noise.uniform(len(low))
        inside = low + place * (self.size - 1)
        outside = place * (self.size + 1) - self.size  # of [-C, C] without the piece, pushed together
        outside += np.where(outside >= low, self.size - 1, 0.0)
        reports = _on_grid(np.where(near, inside, outside), self.size, noise)
        largest = math.floor(self.size / grid_of(self.size)) * grid_of(self.size)
        return np.clip(reports, -largest, largest)


@dataclass(frozen=True)
class Classes(ClassesLaw):
    """Reports by randomised response."""

    def randomise(self, values: Integers, noise: NoiseSource) -> Integers:
        """One report for each of the labels 0 .. classes-1."""
        values = self.known(values)
        shift = 1 + noise.uniform_integers(self.classes - 1, len(values))
        lies = noise.uniform(len(values)) < self.wrong * (self.classes - 1)
        return np.where(lies, (values + shift) % self.classes, values)

    def indicators(self, reports: Integers) -> Floats:
        """Unbiased one-hot vectors, one row for each report."""
        return (np.equal.outer(reports, np.arange(self.classes)) - self.wrong) * self.size


def grid_of(size: float) -> float:
    """The power of two of which reports of this size are multiples."""
    return 2.0 ** (math.floor(math.log2(size)) - 24)


def _on_grid(reports: Floats, size: float, noise: NoiseSource) -> Floats:
    grid = grid_of(size)
    return np.floor(reports / grid + noise.uniform(len(reports))) * grid


@dataclass(frozen=True)
class Sphere(SphereLaw):
    """Reports with the law of a point on a sphere.

    They are floating-point vectors, whose last bits depend on the value in ways no proof covers: put them on a coarse
    grid before they leave a device, as ``thresher.local`` does.
    """

    def randomise(self, values: Floats, noise: NoiseSource) -> Floats:
        """One report for each row of ``values``."""
        check_width(values, self.dimension)
        directions = self._directions(values, noise)
        latitudes = self._latitudes(noise.uniform(len(values)), noise.uniform(len(values)))
        if self.dimension == 1:
            return directions * (latitudes[:, None] * self.size)
        across = noise.standard_normal(directions.shape)
        across -= np.einsum("ij,ij->i", across, directions)[:, None] * directions
        across *= (np.sqrt((1 - latitudes) * (1 + latitudes)) / np.linalg.norm(across, axis=1))[:, None]
        directions *= latitudes[:, None]
        directions += across
        directions *= self.size
        return directions

    def total(self, reports: Floats) -> Floats:
        """The sum of the reports, an unbiased estimate of the sum of the values."""
        total: Floats = reports.sum(axis=0)
        return total

    def _directions(self, values: Floats, noise: NoiseSource) -> Floats:
        """+-v/||v||, unbiased for v; one outside the ball is brought to its edge, one that is no number counts as 0."""
        directions, norms = polar(values)
        directions *= np.where(noise.uniform(len(values)) < (1 + norms) / 2, 1.0, -1.0)[:, None]
        return directions

    def _latitudes(self, coins: Floats, quantiles: Floats) -> Floats:
        """<u, e>: inside the cap with the chance that epsilon gives it, and there (or outside) as on the sphere."""
        odds, share = math.exp(-self.epsilon), self.share
        inside = coins >= odds * (1 - share) / (share * (1 - odds) + odds)  # rounds towards lies
        if self.dimension == 1:
            return np.where(inside, 1.0, -1.0)
        above = np.where(inside, share * quantiles, share + (1 - share) * quantiles)  # the chance of a larger latitude
        latitudes: Floats = np.sqrt(betainccinv(0.5, (self.dimension - 1) / 2, 2 * np.minimum(above, 1 - above)))
        return np.where(above <= 0.5, latitudes, -latitudes)


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


VECTOR_RANDOMISERS: Mapping[str, Callable[[int, float], Sphere | Hypercube]] = MappingProxyType(
    {
        "duchi-l2": Sphere.duchi,
        "priv-unit": Sphere.best,
        "duchi-linf": Hypercube.duchi,
        "one-coordinate": Hypercube.one_coordinate,
        "sampled-signs": Hypercube.best,
    }
)


def best_vector_randomiser(dimension: int, epsilon: float, row_norm: float, entry_norm: float) -> str:
    """The name of the randomiser with the least error on vectors of l2 norm at most ``row_norm`` whose entries have
    public bounds of l2 norm ``entry_norm`` together. A rule of public constants, not of data."""
    for name, norm in (("row_norm", row_norm), ("entry_norm", entry_norm)):
        if not norm >= 0:
            raise ValueError(f"{name}={norm!r} must not be negative")
    ball = Sphere.best(dimension, epsilon).second_moment * row_norm**2
    cube = Hypercube.best(dimension, epsilon).second_moment / dimension * entry_norm**2
    return "priv-unit" if ball < cube else "sampled-signs"
