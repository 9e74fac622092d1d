"""Fits of the same rows by one process: recognised in its memory, warned about once, and noted in certificates.

A ledger counts across processes and for good; this is for whoever has none and fits in a loop without thinking of it.
"""

from __future__ import annotations

import math
import secrets
import threading
import warnings
from collections import Counter, deque
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from thresher.ledger.chain import LENGTH, Key
from thresher.ledger.fingerprint import ODD, scrambled
from thresher.privacy.accounting import Cost
from thresher.privacy.arrays import Matrix
from thresher.privacy.plan import Plan
from thresher.privacy.pricing import epsilon_of_sum
from thresher.privacy.warnings import FittedBefore

__all__ = ["MEMORY", "FitMemory", "note_of_repeats"]

SHARED = 0.25  # of the smaller table: what two fits have in common if they share rows to speak of
FEW = 8  # rows in common that may be chance
SAME = 0.75  # of the rows of two tables that are equal and occur equally often: then they are one table,
BITS = 20.0  # if that is no chance, which has 2^-BITS
KEPT = 256  # names of rows that are remembered
MOST_FITS = 256  # the latest ones; in a longer loop earlier ones are forgotten
DIGITS = 20  # bits of a product that are left out: its last ones depend on where a row lies
BLOCK = 2**18  # numbers that are widened at a time


SketchKey = tuple[frozenset[tuple[int, int]], float]


@dataclass(frozen=True)
class RowSketch:
    """Names of the rows whose hashes are smallest, the same ones of any table that has them."""

    counts: dict[int, int]  # by name: how often such a row occurs
    chance: float  # at most, that a row of other people is equal to a row of these

    def shares_with(self, other: RowSketch) -> bool:
        """Whether more rows are equal than chance makes equal, or all are, and as often."""
        if self._names.isdisjoint(other._names):
            return False
        most = min(sketch._last for sketch in (self, other))  # up to there, both are known
        mine, theirs = ({name for name in sketch.counts if name <= most} for sketch in (self, other))
        common, smaller = mine & theirs, min(len(mine), len(theirs))
        if len(common) >= max(FEW, (SHARED + max(self.chance, other.chance)) * smaller):
            return True
        same = [self.counts[name] for name in common if self.counts[name] == other.counts[name]]
        bits = sum(math.log2(4 * math.pi * count) / 2 for count in same)  # two Poisson numbers are equal so rarely
        return len(same) >= SAME * max(len(mine), len(theirs)) and bits >= BITS

    @cached_property
    def key(self) -> SketchKey:
        """Equal for equal sketches."""
        return frozenset(self.counts.items()), self.chance

    @cached_property
    def _names(self) -> frozenset[int]:
        return frozenset(self.counts)

    @property
    def _last(self) -> float:
        return max(self.counts) if len(self.counts) == KEPT else math.inf


@dataclass(eq=False)
class RememberedFit:
    """What is remembered of a fit: no row, and nothing that could be had from one without the key."""

    sketch: RowSketch
    plan: Plan
    cost: Cost
    warned: bool = False  # whether somebody was told that its rows are fitted again

    @property
    def neighbours(self) -> tuple[str, str]:
        """Costs of one kind add up, others do not."""
        return str(self.plan.budget.adjacency), self.plan.problem.unit


class FitMemory:
    """The fits of this process. Its key is drawn anew for each, and never stored."""

    def __init__(self) -> None:
        self._key = Key(secrets.token_bytes(LENGTH))
        self._fits: deque[RememberedFit] = deque(maxlen=MOST_FITS)
        self._lock = threading.Lock()

    def __reduce__(self) -> NoReturn:
        raise TypeError("what a process remembers of its fits never leaves it: it cannot be pickled or copied")

    def add(self, X: Matrix, plan: Plan, counted: bool = False) -> tuple[list[RememberedFit], bool]:
        """Remember a fit; returns it after those that it shares rows with, and whether nobody was told of them yet.

        Of one that a ledger counted nobody needs to be told, but of the next one that none counts.
        """
        fit = RememberedFit(self._sketch(X), plan, plan.cost)
        with self._lock:
            if counted:
                self._fits.append(fit)
                return [fit], False
            fits = [*self._sharing_with(fit), fit]
            self._fits.append(fit)
            news = len(fits) > 1 and not any(known.warned for known in fits)
            for known in fits:
                known.warned = len(fits) > 1
        return fits, news

    def _sharing_with(self, fit: RememberedFit) -> list[RememberedFit]:
        """Earlier fits that share rows with it; of equal sketches, as a loop makes them, one is compared."""
        alike: dict[SketchKey, list[RememberedFit]] = {}
        for known in self._fits:
            alike.setdefault(known.sketch.key, []).append(known)
        return [
            known
            for some in alike.values() if some[0].sketch.shares_with(fit.sketch)
            for known in some if known.neighbours == fit.neighbours
        ]  # fmt: skip

    def _sketch(self, X: Matrix) -> RowSketch:
        """A row is hashed by one product with random weights: hashing every entry would take as long as a fit."""
        words = scrambled(np.arange(X.shape[1], dtype=np.uint64) * ODD[0] + np.uint64(self._key.number))
        weights = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53 - 0.5
        products = _products(X, weights)
        hashes = scrambled((products.view(np.uint64) + np.uint64(2 ** (DIGITS - 1))) >> np.uint64(DIGITS))
        names, counts = np.unique(hashes, return_counts=True)
        kept = dict(zip(names[:KEPT].tolist(), counts[:KEPT].tolist(), strict=True))
        # Estimated by how many of the different rows occur more than once: if a row is found l times on average, for
        # all small l, that is l/2 of them; and for large l nearly all.
        chance = 2 * float(np.mean(counts > 1)) if len(counts) else 0.0
        return RowSketch(kept, 0.0 if _is_bootstrap_sample(X, hashes, names) else chance)


MEMORY = FitMemory()


def note_of_repeats(X: Matrix, plan: Plan, counted: bool = False) -> tuple[str, ...]:
    """What the certificate of a fit should say of earlier ones of the same rows, if there were any; warns once.

    One that is ``counted`` by a ledger says nothing.
    """
    if not (plan.budget.private and (sparse.issparse(X) or (isinstance(X, np.ndarray) and X.dtype.kind == "f"))):
        return ()  # privacy is off, or the rows are not numbers of this process
    fits, news = MEMORY.add(X, plan, counted)
    if len(fits) == 1:
        return ()
    told = f"{len(fits)} fits of this process share many of their rows, and cost {_total_cost(fits)} together"
    if news:
        warnings.warn(
            f"fit: these rows, or many of them, were fitted before. {told}, which the certificate of a single fit does "
            "not claim; give a ledger, which counts and refuses, or publish one fit and nothing that others found",
            FittedBefore,
            stacklevel=6,
        )
    return (f"{told}; what other processes fitted is not known here, a ledger counts it",)


def _total_cost(fits: list[RememberedFit]) -> str:
    """The costs of all, added up and converted once, or their epsilons; batches would take long: only the latter."""
    delta = math.fsum(fit.plan.budget.delta for fit in fits)
    costs = {fit.plan.releases: fit.cost for fit in fits}
    times = Counter(fit.plan.releases for fit in fits)
    total = sum((_times(cost, times[releases]) for releases, cost in costs.items()), Cost())
    if total.sampled:
        return f"epsilon={math.fsum(fit.plan.epsilon for fit in fits):.4g} at delta={delta:.4g} by basic composition"
    epsilon, method = epsilon_of_sum(total, [fit.plan.epsilon for fit in fits], delta)
    return f"epsilon={epsilon:.4g} at delta={delta:.4g} by {method}"


def _times(cost: Cost, times: int) -> Cost:
    """The cost of so many fits alike, in few additions: a loop makes hundreds."""
    if times == 1:
        return cost
    half = _times(cost, times // 2)
    return half + half + cost if times % 2 else half + half


def _is_bootstrap_sample(X: Matrix, hashes: NDArray[np.uint64], names: NDArray[np.uint64]) -> bool:
    """Whether rows occur more than once since they are a bootstrap sample: n draws out of n rows, which are about
    n (1 - 1/e) different ones. Those have numbers of their own, where rows of few values are equal by chance."""
    rows = len(hashes)
    if abs(len(names) - rows * (1 - math.exp(-1))) > 1.5 * math.sqrt(rows):
        return False
    (at,) = np.nonzero(np.isin(hashes, names[:KEPT]))
    some = at[np.unique(hashes[at], return_index=True)[1]]
    cells = sparse.coo_array((sparse.csr_array(X) if sparse.issparse(X) else X)[some])
    _, which, times = np.unique(cells.data, return_inverse=True, return_counts=True)
    return len(np.unique(cells.row[times[which] == 1])) > len(some) / 2


def _products(X: Matrix, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """X weights in double precision, of entries as single precision holds them; zeros without their sign."""
    with np.errstate(over="ignore", invalid="ignore"):
        if sparse.issparse(X):
            return np.asarray(X.astype(np.float32).astype(np.float64) @ weights) + 0.0
        step = max(1, BLOCK // max(X.shape[1], 1))
        starts = range(0, X.shape[0], step)
        blocks = [X[at : at + step].astype(np.float32, copy=False).astype(np.float64) @ weights for at in starts]
    return np.concatenate([*blocks, np.empty(0)]) + 0.0
