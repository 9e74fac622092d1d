"""How well a law of whole numbers hides a step of one, told as a distance between Gaussians.

If the best test of a law against itself, one step on, has at every level u no more power than Phi(Phi^-1(u) + c) + e,
then by induction no test of a steps has more than Phi(Phi^-1(u) + a c) + a Phi(Phi^-1(e) + a c): a vector of whole
steps is hidden as well as by Gaussian noise, but for a small chance (docs/federated.md, Theorem 2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from thresher.privacy.arrays import Floats
from thresher.privacy.laws.dithered_binomial import DitheredBinomial

__all__ = ["UnitSteps", "binomial_steps"]

MOST = 1.25  # over the sd: a step of which more is needed is not hidden as by a Gaussian of nearly the same spread
FINE = 8192  # blocks to a standard deviation
WINDOW = 10.0  # standard deviations that are looked at; all beyond count as if the law ended there
ROUND_OFF = 1 + 1e-9  # sums of fewer than a million positive terms, each within a few units of 2^-53


@dataclass(frozen=True)
class UnitSteps:
    """The most that a test of chance ``chances`` can gain by a step of one, at the ends of chords, for one law."""

    sd: float
    chances: Floats
    gains: Floats

    def distance(self, excess: float) -> float:
        """A c with which a step has power of at most Phi(Phi^-1(u) + c) + ``excess`` at every u; inf if none is known.

        Where x = Phi^-1(u) <= -c/2 the Gaussian gains at least c phi(x), which is concave in u as the gains are; the
        other half follows by reflection.
        """
        if not self.gains[0] <= excess:
            return math.inf
        x = np.minimum(ndtri(np.minimum(self.chances[1:], 0.5)), -MOST / self.sd / 2)
        found = float(np.max((self.gains[1:] - excess) * np.exp(x * x / 2))) * math.sqrt(2 * math.pi) * ROUND_OFF
        return found if found <= MOST / self.sd else math.inf

    def excess(self, lost: float, shift: float, total: float) -> float:
        """The excess that costs delta no more than ``lost``: in steps that add up to ``total``, none above ``shift``.

        A coordinate that moves by a is as mu = a c, but for a Phi(Phi^-1(e) + mu) in delta, which is a chance of
        1 / (2 Phi(-mu/2)) times that to be told all.
        """
        most = MOST / self.sd * shift
        each = lost / total * 2 * float(ndtr(-most / 2)) / ROUND_OFF
        return float(ndtr(ndtri(each) - most)) / ROUND_OFF


@lru_cache(maxsize=16)
def binomial_steps(law: DitheredBinomial) -> UnitSteps:
    """By blocks of outcomes to the right of the mean.

    In cell i, at j = 0 .. 2^dither - 1, with h the chances of heads and s = 2^dither: s^3 (P(k-1) - P(k)) is
    (j+1)(h_(i-1) - h_i) + (s-1-j)(h_(i-2) - h_(i-1)), linear in j; P itself falls, so that a block's ratios are at most
    its largest difference over its smallest chance.
    """
    coins, size = law.coins, 2**law.dither
    blocks = min(size, 2 ** max(0, math.ceil(math.log2(2 * FINE / math.sqrt(coins)))))
    last_cell = min(coins + 1, math.ceil(coins / 2 + WINDOW * math.sqrt(coins) / 2) + 3)
    cells = np.arange(coins // 2 + 1, last_cell + 1)[:, None]
    heads = np.pad(DitheredBinomial(coins, 0).pmf(coins), (0, 2))
    here, before, earlier = heads[cells], heads[cells - 1], heads[cells - 2]
    first = size // blocks * np.arange(blocks, dtype=np.int64)
    ends = first, first + size // blocks - 1

    def chance(j: NDArray[np.int64]) -> Floats:
        low, high = (j + 1) * (j + 2) // 2, (size - 1 - j) * (size - 2 - j) // 2
        chances: Floats = (here * low + before * (size * size - low - high) + earlier * high) / float(size**3)
        return chances

    # h_(i-1) - h_i = h_(i-1) (2i - coins - 1) / i, without cancellation
    fall, fell = before * (2 * cells - coins - 1) / cells, earlier * (2 * cells - coins - 3) / (cells - 1)
    differences = [((j + 1) * fall + (size - 1 - j) * fell) / float(size**3) for j in ends]
    chances = [chance(j) for j in ends]
    gain, least, most = (np.maximum(*differences), np.minimum(*chances), np.maximum(*chances))
    kept = (gain > 0) & (least > 0)
    ratio, mass = gain[kept] / least[kept], most[kept] * (size // blocks)
    beyond = float(np.min(least[kept]))  # what all further differences add up to: chances fall to 0
    order = np.argsort(-ratio)
    masses, gains = (np.concatenate([[0.0], np.cumsum(each[order])]) for each in (mass, mass * ratio))
    return UnitSteps(law.sd, masses, beyond + gains)
