"""How likely rows make a noisy sum over a random batch of them: a mixture over all batches that may have been drawn.

Which rows were drawn is no part of the answer, so a likelihood that knew it would know more than an attacker can.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from thresher.privacy.arrays import Floats
from thresher.privacy.releases import SampledRelease
from thresher.privacy.subsampling import Sampling

__all__ = ["MOST_ROWS", "Mixture", "log_sum", "mixture_of"]

MOST = 4096  # batches that are told apart
MOST_ROWS = 1000  # whose vectors are looked at one by one


@dataclass(frozen=True)
class Mixture:
    """Means, the logarithms of their chances, and the mean of it all."""

    means: Floats
    log_chances: Floats
    expected: Floats

    @classmethod
    def at(cls, mean: Floats) -> Mixture:
        """A single mean."""
        return cls(mean[None], np.zeros(1), mean)

    def log_density(self, answer: Floats, sd: float) -> float:
        """Of N(mean, sd^2 I), up to a constant that all mixtures share."""
        squares = np.sum(np.square((answer - self.means) / sd), axis=1)
        return log_sum(self.log_chances - squares / 2)


def mixture_of(parts: Floats, release: SampledRelease) -> Mixture:
    """The means of an answer over what batches may hold of ``parts``, the vectors that rows add to their sum.

    Equal rows are counted, not told apart. Where still too many batches differ, their mean stands for them all: less
    sharp, but a score may be anything that is computed from the answer.
    """
    parts = parts[np.any(parts != 0, axis=1)]
    expected = release.rate * parts.sum(axis=0) / release.batch
    at, counts = _alike(parts)
    if math.prod(count + 1 for count in counts) > MOST:
        return Mixture.at(expected)
    drawn, log_chances = _draws(counts, release.batch, release.population, release.sampling)
    return Mixture(drawn @ parts[at] / release.batch, log_chances, expected)


def _alike(parts: Floats) -> tuple[NDArray[np.intp], tuple[int, ...]]:
    """One row of each kind, and how many there are of it; round-off makes no new kind."""
    if len(parts) <= 1:
        return np.arange(len(parts)), (1,) * len(parts)
    unit = np.max(np.abs(parts))
    _, at, counts = np.unique(np.round(parts / unit, 9) + 0.0, axis=0, return_index=True, return_counts=True)
    return at, tuple(counts.tolist())


@lru_cache(maxsize=64)
def _draws(counts: tuple[int, ...], batch: int, population: int, sampling: Sampling) -> tuple[Floats, Floats]:
    """How many of each kind a batch may hold, and the logarithm of its chance; all other rows are of no kind."""
    drawn = np.array(list(product(*(range(count + 1) for count in counts))), dtype=np.float64)
    chances = _log_choose(np.array(counts, dtype=np.float64), drawn).sum(axis=1)
    held, kinds = drawn.sum(axis=1), sum(counts)
    if sampling == "poisson":
        rate = batch / population
        return drawn, chances + held * math.log(rate) + (kinds - held) * math.log1p(-rate)
    others = _log_choose(np.float64(population - kinds), batch - held)
    return drawn, chances + others - _log_choose(np.float64(population), np.float64(batch))


def _log_choose(n: Floats | np.float64, k: Floats | np.float64) -> Floats:
    """log of n over k; -inf where k lies outside 0..n."""
    outside = (k < 0) | (k > n)
    inside = np.where(outside, 0, k)
    log: Floats = gammaln(n + 1) - gammaln(inside + 1) - gammaln(n - inside + 1)
    return np.where(outside, -np.inf, log)


def log_sum(logs: Floats) -> float:
    """log(sum(exp(logs))); SciPy's takes ten times as long for a few numbers, and this is most of a short run."""
    largest = float(np.max(logs))
    return largest + math.log(float(np.sum(np.exp(logs - largest)))) if largest > -math.inf else largest
