"""Noise that parties can make together: a public weighted sum of fair coins, and what it costs (docs/federated.md).

Z = 2^k Bin(n, 1/2) + U1 + U2 + U3 - offset with U1, U2, U3 uniform on 0 .. 2^k - 1. Whoever can toss joint coins can
draw it: it is linear in the coins. Without the three dithers a binomial of the same spread would need 4^k times more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.privacy.arrays import Floats

__all__ = ["DitheredBinomial"]

WINDOW = 10.0  # standard deviations; beyond, an outcome counts as lost to delta
RESOLUTION = 16  # lattice points below the shifts of an octave: the chord between two of them is 0.1 % above the curve
COARSENESS = 0.005  # of the squared shift: what a finest lattice of more than one step may add to it
FINEST = 14  # dither bits of the finest lattice: a few million outcomes
PER_OCTAVE = 4  # Renyi orders between alpha - 1 and twice that
MOST_OCTAVES = 17 * PER_OCTAVE  # up to orders of about 10^5
LOG_DELTAS = (4.6, 70.0)  # -log delta from 1e-2 to 1e-30: where the best order may be looked for
UNIT_ROUND_OFF = 2.0**-53


class Curve(NamedTuple):
    """Renyi divergences of one coordinate: at order a at most ``per_square`` (shift^2 + additive) for every shift."""

    orders: Floats
    per_square: Floats
    additive: float


@dataclass(frozen=True)
class DitheredBinomial:
    """The law of one coordinate of the noise: ``coins`` = n, an even number, and ``dither`` = k."""

    coins: int = 256
    dither: int = 11

    def __post_init__(self) -> None:
        if not (isinstance(self.coins, int) and 2 <= self.coins <= 2**14 and self.coins % 2 == 0):
            raise ValueError(f"coins={self.coins!r} must be an even whole number from 2 to {2**14}")
        if not (isinstance(self.dither, int) and 0 <= self.dither <= 20):
            raise ValueError(f"dither={self.dither!r} must be a whole number from 0 to 20")

    # -- drawing it ---------------------------------------------------------------------------------------------

    @property
    def bits(self) -> int:
        """Fair coins in one coordinate."""
        return self.coins + 3 * self.dither

    @property
    def weights(self) -> NDArray[np.int64]:
        """What each coin is multiplied by: noise = coins @ weights - offset."""
        dither = 2 ** np.arange(self.dither, dtype=np.int64)
        return np.concatenate([np.full(self.coins, 2**self.dither, dtype=np.int64), dither, dither, dither])

    @property
    def offset(self) -> int:
        return self._largest // 2

    @property
    def mean(self) -> float:
        """What the offset, a whole number, leaves of the mean: 0 or 1/2."""
        return self._largest / 2 - self.offset

    @property
    def _largest(self) -> int:
        """The outcome if every coin falls heads, without the offset."""
        return self.coins * (1 << self.dither) + 3 * ((1 << self.dither) - 1)

    @property
    def variance(self) -> float:
        spread = 4.0**self.dither
        return spread * self.coins / 4 + 3 * (spread - 1) / 12

    @property
    def sd(self) -> float:
        return math.sqrt(self.variance)

    # -- what it costs ------------------------------------------------------------------------------------------

    def rdp(self, shift: float, touched: int, uses: int) -> tuple[Floats, Floats, float]:
        """Orders, and at each the Renyi divergence of one use, outside an event whose probability comes last.

        It holds for integer vectors at most ``shift`` apart in l2 norm and in at most ``touched`` coordinates. The
        orders are those that matter after so many ``uses``.
        """
        if self.lost(shift) >= 1:  # two copies hardly share an outcome: there is no bound
            return np.array([2.0]), np.array([math.inf]), 1.0
        curve = curve_of(self, *self._lattice(shift, touched), *_octaves(shift / self.sd, uses))
        return curve.orders, curve.per_square * (shift**2 + touched * curve.additive), touched * self.lost(shift)

    def lost(self, shift: float) -> float:
        """A bound on the probability that a coordinate leaves the window that two copies so far apart share.

        It cannot while heads are within ``inside`` of half the coins: the window reaches as far as WINDOW sds of the
        coins, or to the end of the support less the shift, and dithers, lattices and their rounding take no more than 6
        coins' worth off that.
        """
        inside = min(WINDOW * math.sqrt(self.coins) / 2, self.coins / 2 - shift / 2**self.dither) - 6
        return min(1.0, 2 * _tail(self.coins, math.ceil(self.coins / 2 + inside)) * (1 + 4 * UNIT_ROUND_OFF))

    def _lattice(self, shift: float, touched: int) -> tuple[int, int]:
        """Of which shifts the divergence is computed: the finest step, as a power of two, and the reach in such steps.

        Reaches are rounded up to few values, so that plans with nearly the same noise share one computation.
        """
        widest = math.sqrt(4 * COARSENESS / touched) * shift
        finest = max(0, math.floor(math.log2(widest)), self.dither - FINEST) if widest > 0 else 0
        finest = min(finest, self.dither)
        reach = max(1, math.ceil(shift / 2**finest))
        unit = 2 ** max(0, reach.bit_length() - 5)
        return finest, -(-reach // unit) * unit

    def coarser(self, steps: int) -> DitheredBinomial:
        """The law of the high bits: Z = 2^steps Z' + three small dithers."""
        return DitheredBinomial(self.coins, self.dither - steps)

    def pmf(self, reach: int) -> Floats:
        """The chances of the outcomes at most ``reach`` from the mean, from left to right."""
        size, j = 2**self.dither, np.arange(2**self.dither, dtype=np.int64)
        first, last = (j + 1) * (j + 2) // 2, (size - 1 - j) * (size - 2 - j) // 2
        dithers = np.stack([first, size * size - first - last, last]) / float(size**3)  # their sum is t 2^k + j
        padded = np.pad(_heads(self.coins), 2)
        table = sum(np.multiply.outer(padded[2 - t : len(padded) - t], dithers[t]) for t in range(3))
        chances = np.ravel(table)[: (self.coins + 3) * 2**self.dither - 2]  # the support; the rest is no outcome
        middle = (len(chances) - 1) / 2
        keep = slice(max(0, math.ceil(middle - reach)), math.floor(middle + reach) + 1)
        return np.ascontiguousarray(chances[keep])


@cache
def _heads(coins: int) -> Floats:
    """The chances of 0, 1, ... heads: correctly rounded quotients."""
    ways, chances = 1, []
    for heads in range(coins + 1):
        chances.append(ways / 2**coins)
        ways = ways * (coins - heads) // (heads + 1)
    return np.array(chances)


@cache
def _tail(coins: int, beyond: int) -> float:
    """The chance of at least ``beyond`` heads."""
    return math.fsum(_heads(coins)[max(0, beyond) :])


def _octaves(relative: float, uses: int) -> tuple[int, int]:
    """The first and last exponent j of the orders 1 + 2^(j/4): around the best ones for any usual delta.

    rho a + log(1/delta)/(a - 1) is least at (a - 1)^2 = log(1/delta)/rho. Lower orders are for longer compositions.
    """
    rho = uses * relative**2 / 2
    low, high = (PER_OCTAVE / 2 * math.log2(least / rho) for least in LOG_DELTAS)
    return max(-16, math.floor(low) - 10), min(max(-14, math.ceil(high) + 2), MOST_OCTAVES)


@cache
def curve_of(law: DitheredBinomial, finest: int, reach: int, first: int, last: int) -> Curve:
    """A bound for every whole shift of at most reach * 2^finest, by lattices that coarsen with the shift.

    Z = 2^j Z' + W1 + W2 + W3. Given W1, a shift of a = 2^j i + b is one of Z' by i or i + 1, the latter in b cases of
    2^j; so e^((alpha-1) D) is at most the chord between those of Z' (docs/federated.md, Lemma 2).
    """
    exponents = np.arange(first, last + 1)
    beyond = 2.0 ** (exponents / PER_OCTAVE)
    worst = np.zeros(len(exponents))
    for step, low, high in levels_of(finest, reach, law.dither):
        coarse = law.coarser(step)
        exact = step == 0
        start = 0 if step == finest and not exact else low
        points = np.arange(start, high + 1)
        chances = coarse.pmf(math.ceil(WINDOW * coarse.sd) + high)
        logs = np.array([log_moments(chances, int(i), exponents) for i in points])
        worst = np.maximum(worst, _largest_ratio(points, logs, exact, step == finest) / 4.0**step)
    return Curve(1 + beyond, worst / beyond, 0.0 if finest == 0 else 4.0**finest / 4)


def levels_of(finest: int, reach: int, dither: int) -> list[tuple[int, int, int]]:
    """(step, low, high): shifts from low to high in units of 2^step, which together reach ``reach`` * 2^finest."""
    levels, step, low, left = [], finest, 1, reach
    while True:
        high = left if step == dither else min(left, 2 * RESOLUTION)
        levels.append((step, low, high))
        if high == left:
            return levels
        step, low, left = step + 1, RESOLUTION, -(-left // 2)


def _largest_ratio(points: NDArray[np.int64], logs: Floats, exact: bool, finest: bool) -> Floats:
    """max over the shifts between the first and the last point, in steps, of log-moment / (shift^2 + additive).

    At the points themselves it is K = log / i^2. Between two, with x their logs, the chord's logarithm is at most
    K (a^2 + 1/4) + (x' - x)^2 / 8: the chord of K i^2, and Hoeffding's lemma for the exponential.
    """
    squares = (points.astype(np.float64) ** 2)[:, None]
    if exact:
        return np.asarray(np.max(logs / squares, axis=0))
    with np.errstate(invalid="ignore"):
        at = np.where(squares > 0, logs / squares, 0.0)
    if len(points) == 1:
        return np.asarray(at[0])
    steepest = np.maximum(at[:-1], at[1:])
    additive = 0.25 if finest else 0.0
    bend = (steepest * (0.25 - additive) + np.diff(logs, axis=0) ** 2 / 8) / (squares[:-1] + additive)
    return np.asarray(np.max(steepest + bend, axis=0))


def log_moments(chances: Floats, shift: int, exponents: NDArray[np.int64]) -> Floats:
    """log of sum P^a Q^(1-a) at orders a = 1 + 2^(j/4), P the chances and Q those shifted, where both have one.

    Rounded outwards: chances are within 6 units of round-off, their ratio's logarithm within 14 and its own size, sums
    are pairwise, so that the result is off by less than (16 + 2 size) (a - 1) + 64 units. A moment may be infinite.
    """
    if shift == 0:
        return np.zeros(len(exponents))
    P, Q = chances[shift:], chances[:-shift]
    ratios = np.log(P / Q)
    found = {}
    for start in range(PER_OCTAVE):
        own = [int(j) for j in exponents if j % PER_OCTAVE == start]
        with np.errstate(over="ignore"):
            power = np.exp(ratios * 2.0 ** (own[0] / PER_OCTAVE)) if own else ratios
            for j in own:
                found[j] = math.log(float(np.sum(P * power)) / float(np.sum(P)))
                power *= power
    beyond = 2.0 ** (exponents / PER_OCTAVE)
    logs = np.array([found[int(j)] for j in exponents])
    slack = (16 + 2 * float(np.max(np.abs(ratios)))) * beyond + 64
    return np.asarray(np.maximum(logs, 0.0) + slack * UNIT_ROUND_OFF)
