"""The one place that makes random bits and noise.

Bits come from AES-128 in counter mode, keyed by the operating system for every fit. A source never leaves its
process: it cannot be pickled, copied or used after a fork, and no estimator keeps one.

Two ways of adding Gaussian noise:

* plain: value + sd * N(0, 1) in floating point. Fast; like every such code it idealises the low bits (Mironov 2012).
* hardened: value and noise are put on one power-of-two grid and added as integers; see ``NoiseSource.gaussian``.
"""

from __future__ import annotations

import math
import os
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from decimal import Context, Decimal
from hashlib import blake2b
from typing import NoReturn

import numpy as np
from randomgen import AESCounter
from scipy.special import ndtri
from sklearn.utils import check_random_state

from thresher.privacy.arrays import Floats, Integers, Values
from thresher.privacy.subsampling import Sampling
from thresher.vaults.kernels.normal import upper_tail

__all__ = ["NoiseSource", "Seed"]

Seed = int | np.random.RandomState | None
"""What makes noise repeatable, as in scikit-learn; None leaves it to the operating system, as privacy needs it."""

GRID_STEPS = 2**28  # grid steps per standard deviation in hardened mode
SKELLAM_EXCESS = 2.0**14 / 24  # (x^4 / v^2) / 24 at 11 standard deviations: no draw lies further out
POISSON_TO = 2.0**16  # where chances of NumPy's Poisson numbers are off by 1e-9 of themselves
INVERSION = 2.0**-46  # how far off, over 1 + |x|, SciPy's inverse of the normal law may be; it is within 2^-50
IN_CACHE = 2**14  # draws at a time
AHEAD_FROM = 2**14  # draws; a smaller batch is drawn faster than a thread is woken


class NoiseSource:
    """Random bits and the noise made of them.

    ``random_state`` makes the noise repeatable, for tests and research: whoever knows it can remove the noise, so
    ``secure`` is then False and the certificate says so. Another ``stream`` of it is other noise: a run that goes on
    where an earlier one stopped must not add the earlier one's noise again.
    """

    def __init__(self, random_state: Seed = None, *, hardened: bool = False, stream: int = 0) -> None:
        self.secure = random_state is None
        self.hardened = hardened
        key = secrets.randbits(128)
        if not self.secure:
            key = int.from_bytes(check_random_state(random_state).bytes(16), "little")
        if stream > 0:
            key = int.from_bytes(blake2b(key.to_bytes(16, "little"), digest_size=16, salt=b"%d" % stream).digest())
        self._generator = np.random.Generator(AESCounter(key=key))
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._background: ThreadPoolExecutor | None = None
        self._ahead: tuple[tuple[str | int, ...], Future[Values]] | None = None

    @property
    def description(self) -> str:
        bits = (
            "AES-128 counter mode keyed by the operating system"
            if self.secure
            else "seeded by random_state (not private)"
        )
        return f"{bits}; {'grid-rounded exact' if self.hardened else 'floating-point'} noise"

    def gaussian(
        self, value: Floats, sensitivity: float, multiplier: float, error: float = 0.0, touched: int | None = None
    ) -> tuple[Floats, float]:
        """``value`` plus N(0, sd^2 I) with sd = multiplier * sensitivity, and that sd.

        Hardened: with g = a power of two near sd / 2^28, the answer is g * (round(value/g) + round(Z)), Z exactly
        N(0, (sd/g)^2). Rounding values to the grid moves two neighbours apart by at most g sqrt(touched), the number of
        coordinates in which they may differ (None: all of them; how many there are must be public then), and
        ``error`` bounds the round-off in each ``value`` itself (l2 norm), so sd is multiplier * (sensitivity + 2
        error + g sqrt(touched)). round(value/g) + Z is then an exact Gaussian mechanism and round(value/g) +
        round(Z), an integer, is its post-processing: the exact Gaussian curve holds as it stands, with no
        floating-point caveat in the noise.
        """
        self._guard()
        if multiplier == 0:
            return value, 0.0
        if not self.hardened:
            sd = multiplier * sensitivity
            noise = self._draw(self._generator.standard_normal, value.size).reshape(value.shape)
            noise *= sd
            noise += value
            return noise, sd
        grid = 2.0 ** (math.floor(math.log2(multiplier * sensitivity)) - int(math.log2(GRID_STEPS)))
        widened = sensitivity + 2 * error + grid * math.sqrt(value.size if touched is None else touched)
        steps = math.ceil(multiplier * widened / grid)
        units = np.rint(np.clip(value / grid, -(2.0**61), 2.0**61)).astype(np.int64)
        units += self._draw(self._rounded_gaussian, steps, value.size).reshape(value.shape)
        return np.multiply(grid, units, dtype=np.float64), steps * grid

    def _draw(self, draw: Callable[..., Values], *given: int) -> Values:
        """draw(*given), the last of which is how many; as many again are drawn ahead, as the vault works."""
        with self._lock:  # a batch must never be handed out twice
            key: tuple[str | int, ...] = (draw.__name__, *given)
            ahead, self._ahead = self._ahead, None
            waiting = None if ahead is None else ahead[1].result()
            drawn = draw(*given) if ahead is None or waiting is None or ahead[0] != key else waiting
            if given[-1] >= AHEAD_FROM:
                self._background = self._background or ThreadPoolExecutor(1)
                self._ahead = key, self._background.submit(draw, *given)
            return drawn

    def standard_normal(self, shape: int | tuple[int, ...]) -> Floats:
        """Independent N(0, 1)."""
        self._guard()
        return self._generator.standard_normal(shape)

    def uniform(self, shape: int | tuple[int, ...]) -> Floats:
        """Independent multiples of 2^-53, uniform on [0, 1): the coins of randomised responses."""
        self._guard()
        return self._generator.random(shape)

    def batch(self, rows: int, rate: float, sampling: Sampling) -> Integers:
        """Which of so many rows take part: each with this chance ("poisson"), or a subset of rate * rows ("fixed")."""
        self._guard()
        size = round(rows * rate) if sampling == "fixed" else self._generator.binomial(rows, rate)
        return self._generator.choice(rows, size, replace=False, shuffle=False)  # all subsets of this size are alike

    def whole_number(self, below: int) -> int:
        """One of 0, ..., below - 1, all alike."""
        self._guard()
        return int(self._generator.integers(below))

    def trials(self, mean: float) -> int:
        """A Poisson number of this mean, drawn again until it is not 0."""
        self._guard()
        while (drawn := int(self._generator.poisson(mean))) == 0:
            pass
        return drawn

    def laplace(self, scale: float, size: int) -> Floats:
        """Independent Laplace(scale)."""
        self._guard()
        return self._generator.laplace(0.0, scale, size)

    def skellam(self, variance: float, size: int) -> Integers:
        """Independent differences of two Poisson(variance/2) numbers; sums of such noise are Skellam again.

        NumPy's Poisson sampler is off by a factor of about 1 + 2^-52 variance log(variance) in its chances, so it is
        used for small variances only. Large ones are nearly Gaussian: rounded Gaussians that are a little wider are
        accepted with the ratio of the two chances, which is almost always (``skellam_log_ratio``).
        """
        self._guard()
        if not 0 <= variance <= 2.0**76:
            raise ValueError(f"variance={variance!r} must be from 0 to 2^76: use a coarser grid")
        if variance <= POISSON_TO:
            return self._generator.poisson(variance / 2, size) - self._generator.poisson(variance / 2, size)
        sd = math.ceil(math.sqrt(variance)) + 1
        out = np.empty(0, dtype=np.int64)
        while len(out) < size:
            proposed = self.rounded_gaussian(sd, size - len(out) + 8)
            accept = np.log(self._generator.random(len(proposed))) < skellam_log_ratio(proposed, variance, sd)
            out = np.concatenate([out, proposed[accept]])
        return out[:size]

    def gumbel(self, scale: float, size: int) -> Floats:
        """Independent Gumbel(scale); argmax of score + Gumbel(2 Delta/epsilon) is the exponential mechanism.

        It is -log of an exponential variable, which has all its digits where the noise is largest.
        """
        self._guard()
        noise: Floats = np.log(self._generator.standard_exponential(size))
        noise *= -scale
        return noise

    def gumbel_scale(self, sensitivity: float, multiplier: float) -> float:
        """The scale of the noise in a choice; 0 without noise, when the sensitivity may be infinite."""
        return multiplier * sensitivity if multiplier > 0 else 0.0

    def gumbel_top(
        self, scores: Floats, picks: int, sensitivity: float, multiplier: float, error: float = 0.0
    ) -> tuple[Integers, float]:
        """The ``picks`` positions with the largest score + Gumbel(scale), in increasing order, and the scale.

        scale = multiplier * sensitivity: the exponential mechanism with epsilon = 2 / multiplier, drawn without
        replacement. Hardened: the choice is exact for real-valued noise (``_exact_top``), and ``error``, a bound on
        the round-off in each score, is added to the sensitivity on both sides.
        """
        self._guard()
        if self.hardened:
            sensitivity += 2 * error
        scale = self.gumbel_scale(sensitivity, multiplier)
        if scale == 0:
            chosen = np.argpartition(-scores, picks - 1)[:picks]
        elif self.hardened:
            chosen = self._exact_top(scores, picks, scale)
        elif picks == 1:
            chosen = self._by_inversion(scores, scale)
        else:
            noisy = scores + self.gumbel(scale, scores.size)
            chosen = np.argpartition(-noisy, picks - 1)[:picks]
        return np.sort(chosen), scale

    def _by_inversion(self, scores: Floats, scale: float) -> Integers:
        """The position of the largest score + Gumbel(scale): position j with probability proportional to
        exp(score_j / scale), by one uniform number on the ladder of these."""
        with np.errstate(over="ignore"):  # scores infinitely far below the largest are never chosen
            ladder = np.cumsum(np.exp((scores - np.max(scores)) / scale))
        at = np.searchsorted(ladder, self._generator.random() * ladder[-1], side="right")
        return np.array([at])

    def _exact_top(self, scores: Floats, picks: int, scale: float) -> Integers:
        """The positions with the smallest log E_j - scores_j/scale, E_j exponential: Gumbel noise as a race.

        E_j = -log U_j with U_j a real number of which the first bits are drawn. Positions whose keys, given the bits
        known, could still fall on either side of the last place get more bits and decimal arithmetic until the winners
        are certain, so no rounding error enters the law.
        """
        left = np.flatnonzero(scores > -np.inf)
        words = np.zeros(scores.size, dtype=np.int64)
        words[left] = self._generator.integers(0, 2**52, left.size)
        u = (words[left] + 0.5) * 2.0**-52  # the middle of what the 52 bits allow, exactly representable
        with np.errstate(over="ignore"):
            shifts = scores[left] / scale
        keys = np.log(-np.log(u)) - shifts
        slack = 2.0**-52 / (u * -np.log(u)) + 2.0**-45 * (1 + np.abs(keys) + np.abs(shifts))
        # U may be as close to 0 or 1 as it likes, and only decimals hold a shift beyond the largest float
        open_ended = (words[left] == 0) | (words[left] == 2**52 - 1) | np.isinf(shifts)
        keys[open_ended], slack[open_ended] = 0.0, np.inf
        last = np.partition(keys + slack, picks - 1)[picks - 1]
        left = left[keys - slack <= last]
        known, bits = {int(j): int(words[j]) for j in left}, 52
        while left.size > picks:
            bits += 64
            for j in map(int, left):
                known[j] = (known[j] << 64) | int(self._generator.integers(0, 2**64, dtype=np.uint64))
            ends = [key_range(known[int(j)], bits, float(scores[j]), scale) for j in left]
            furthest = sorted(high for _, high in ends)[picks - 1]
            left = left[np.array([low <= furthest for low, _ in ends])]
        winners: Integers = left.astype(np.int64)
        return winners

    def uniform_integers(self, below: int, size: int) -> Integers:
        """Independent whole numbers, uniform on 0 .. below-1."""
        self._guard()
        return self._generator.integers(0, below, size, dtype=np.int64)

    def heads(self, coins: int, size: int) -> Integers:
        """How many of so many fair coins fall heads, counted bit by bit: exactly binomial."""
        self._guard()
        words, left = divmod(coins, 63)
        tosses = self._generator.integers(0, 2**63, (words + 1, size), dtype=np.int64)
        tosses[words] &= 2**left - 1
        counted: Integers = np.bitwise_count(tosses).sum(axis=0, dtype=np.int64)
        return counted

    def l2_laplace(self, scale: float, dimension: int) -> Floats:
        """A vector of density proportional to exp(-||v||_2/scale): uniform direction, Gamma(dimension, scale) norm."""
        self._guard()
        direction = self._generator.standard_normal(dimension)
        return direction * (self._generator.gamma(dimension, scale) / np.linalg.norm(direction))

    def rounded_gaussian(self, sd: int, size: int) -> Integers:
        """round(Z) for independent Z, each *exactly* N(0, sd^2), for a whole number ``sd`` (at most 2^40).

        By inversion: P(|Z| > sd x) = 2 U has a solution x for U uniform on the real numbers from 0 to 1/2, of which 63
        bits are drawn; the 64th is the sign. Floating point decides between two whole numbers unless x, known from
        these bits and to INVERSION (1 + x), is too near to the middle between them; then further random bits and
        decimal arithmetic decide (``_settle``). So no rounding error enters the law.
        """
        self._guard()
        return self._rounded_gaussian(sd, size)

    def _rounded_gaussian(self, sd: int, size: int) -> Integers:
        if not isinstance(sd, int) or not 1 <= sd <= 2**40:
            raise ValueError(f"sd={sd!r} must be a whole number from 1 to 2^40")
        out = np.empty(size, dtype=np.int64)
        for first in range(0, size, IN_CACHE):
            block = out[first : first + IN_CACHE]
            block[:] = self._invert(sd, len(block))
        return out

    def _invert(self, sd: int, size: int) -> Integers:
        words = self._generator.integers(-(2**63), 2**63, size, dtype=np.int64)
        known = words & (2**63 - 1)
        tails = (known + 0.5) * 2.0**-64
        x = -ndtri(tails)
        places = x * sd
        values = np.rint(places)
        # a tail over its density is at most 1.26, so that half a unit of the last bit moves x by no more than this
        slack = sd * (INVERSION * (1 + x) + 0.63 * 2.0**-64 / tails)
        sizes = values.astype(np.int64)
        for i in np.flatnonzero(np.abs(places - values) >= 0.5 - slack):
            sizes[i] = self._settle(sd, int(known[i]))
        signed: Integers = np.where(words < 0, -sizes, sizes)
        return signed

    def _settle(self, sd: int, known: int) -> int:
        """round(sd x) with P(Z > x) = U, of which the first 63 bits after the point of 2 U are known."""
        bits = 63
        while True:
            known = (known << 64) | int(self._generator.integers(0, 2**64, dtype=np.uint64))
            bits += 64
            size = round(sd * -float(ndtri(math.ldexp(known + 0.5, -bits - 1))))
            while (above := self._exceeds(sd, size, known, bits)) is True:
                size += 1
            while above is False and size > 0 and (above := self._exceeds(sd, size - 1, known, bits)) is False:
                size -= 1
            if above is not None:
                return size

    @staticmethod
    def _exceeds(sd: int, size: int, known: int, bits: int) -> bool | None:
        """Whether sd x > size + 1/2: whether U lies below the tail there. None if the bits known do not tell."""
        exact = Context(prec=bits)
        edge = upper_tail(exact.divide(Decimal(2 * size + 1), Decimal(2 * sd)), bits // 2)
        slack = Decimal(10) ** -(bits // 2)
        if exact.divide(Decimal(known + 1), Decimal(2 << bits)) < exact.subtract(edge, slack):
            return True
        if exact.divide(Decimal(known), Decimal(2 << bits)) > exact.add(edge, slack):
            return False
        return None

    def _guard(self) -> None:
        if os.getpid() != self._process:
            raise RuntimeError("a noise source must not be used after a fork: two processes would share its noise")
        if self._ahead is not None:
            self._ahead[1].result()  # one thread at a time at the generator, so that the order of draws is fixed

    def __reduce__(self) -> NoReturn:
        raise TypeError("a noise source never leaves its process: it cannot be pickled or copied")


def key_range(word: int, bits: int, score: float, scale: float) -> tuple[Decimal, Decimal]:
    """The least and the largest log(-log U) - score/scale for U between word/2^bits and (word+1)/2^bits."""
    exact = Context(prec=bits)  # that many decimal digits hold far more than ``bits`` binary ones
    slack = Decimal(1).scaleb(40 - bits, exact)  # more than the round-off of the operations below
    shift = exact.divide(Decimal(score), Decimal(scale))

    def key(numerator: int) -> Decimal:
        race = exact.ln(exact.divide(Decimal(numerator), Decimal(1 << bits))).copy_negate()  # ln 0 is -infinity
        return exact.subtract(exact.ln(race), shift)

    return exact.subtract(key(word + 1), slack), exact.add(key(word), slack)


def skellam_log_ratio(x: Integers, v: float, sd: int) -> Floats:
    """log of the Skellam chance of x at variance v over that of round(N(0, sd^2)), sd^2 > v, less what it is at most.

    The Skellam chance is e^-v I_x(v). By Debye's expansion (DLMF 10.41.3), with r = sqrt(v^2 + x^2), its logarithm is
    -x asinh(x/v) + x^2/(r + v) - log(r)/2 + log(1 + (3/r - 5x^2/r^3)/24) and a constant, written here so that nothing
    cancels. A cell of the normal law is its density times 1 + (x^2/sd^2 - 1)/(24 sd^2). What is left out of either is
    below 2e-9 at 11 standard deviations of the smallest variance, and falls with its square.
    """
    x = np.abs(x).astype(np.float64)
    r = np.hypot(v, x)
    skellam = x * x / (r + v) - x * np.arcsinh(x / v) - np.log1p((x / v) ** 2) / 4
    skellam += np.log1p((3 / r - 5 * (x / r) ** 2 / r) / 24) - math.log1p(3 / v / 24)
    square = (x / sd) ** 2
    cell = -square / 2 + np.log1p((square - 1) / (24.0 * sd * sd)) - math.log1p(-1 / (24.0 * sd * sd))
    ratio: Floats = skellam - cell - SKELLAM_EXCESS / v  # the fourth power in the exponent may lift it a little
    return np.minimum(ratio, 0.0)
