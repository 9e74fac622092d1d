"""Arithmetic over dense rows that keeps rows apart: what is computed for one is a function of that row alone.

To the last bit, wherever the row lies, whatever lies beside it and however many there are (docs/guarantees.md,
"Row-locality"): each row's terms are added in the order of its columns. Without compiled loops NumPy does the same
operations, column by column.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from thresher.privacy.arrays import Floats, Indices, Numbers
from thresher.vaults.kernels import compiled

__all__ = [
    "BLOCK",
    "add_up",
    "blocks_of",
    "dots",
    "gram_of",
    "product",
    "segment_sums",
    "share",
    "squares",
    "sum_of_outputs",
]

THREADS, BLOCKS = 2, 8
Work = Callable[[int, int], None]

_pool: tuple[int, ThreadPoolExecutor] | None = None  # and the process it belongs to: a fork leaves its threads behind


def blocks_of(edges: NDArray[np.integer] | list[int]) -> list[tuple[int, int]]:
    """Neighbouring edges, in pairs."""
    return list(itertools.pairwise(int(edge) for edge in edges))


def share(work: Work, blocks: list[tuple[int, int]]) -> None:
    """Do every block once. Whoever is free takes the next, so ``work`` must not depend on who does it, or when."""
    left = iter(blocks)
    if len(blocks) < 2 or _threads() < 2:
        return _do(work, left)
    other = _workers().submit(_do, work, left)
    _do(work, left)
    if not other.cancel():  # it may not even have begun
        other.result()
    return None


def _do(work: Work, left: Iterator[tuple[int, int]]) -> None:
    for first, last in left:
        work(first, last)


def _workers() -> ThreadPoolExecutor:
    global _pool
    if _pool is None or _pool[0] != os.getpid():
        _pool = os.getpid(), ThreadPoolExecutor(THREADS - 1, thread_name_prefix="thresher")
    return _pool[1]


def _threads() -> int:
    """The usual limit if it is set (joblib sets it in its workers), else two."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(int(limit), THREADS) if limit.isdecimal() and limit != "0" else THREADS


# -- row by row -------------------------------------------------------------------------------------------------------


SHARED_FROM = 500_000  # numbers; fewer are done before another thread has woken up
AT_A_TIME = 2**16  # numbers in a copy, where one is needed


def product(X: Numbers, columns: Indices, weights: Floats) -> Floats:
    """X[:, columns] weights, for one vector of weights or several as the columns of a matrix; X is column-major."""
    by_output = np.atleast_2d(np.ascontiguousarray(weights.T, dtype=np.float64))
    out = np.empty((len(by_output), len(X)))
    loops = compiled()
    if loops is not None:
        chosen = np.ascontiguousarray(columns, dtype=np.int64)
        _share(lambda first, last: loops.rows_times(X.T, chosen, by_output, out, first, last), len(X), X.size)
    else:
        out[:] = 0
        for column, own in zip(columns, by_output.T, strict=True):
            out += own[:, None] * X[:, column].astype(np.float64, copy=False)
    return out[0] if weights.ndim == 1 else out.T


def squares(X: Numbers) -> Floats:
    """sum_j x_ij^2 of each row; X is column-major."""
    out = np.zeros(len(X))
    loops = compiled()
    if loops is not None:
        _share(lambda first, last: loops.squares(X.T, out, first, last), len(X), X.size)
    else:
        for column in X.T:
            wide = column.astype(np.float64, copy=False)
            out += wide * wide
    return out


def dots(runs: Numbers, vectors: Floats) -> Floats:
    """runs vectors, for one vector or several as columns: each run of numbers, a row in memory, by itself."""
    by_vector = np.atleast_2d(np.ascontiguousarray(vectors.T, dtype=np.float64))
    out = np.empty((len(by_vector), len(runs)))
    loops = compiled()
    if loops is not None:
        carry = np.empty_like(out)
        _share(lambda first, last: loops.run_dots(runs, by_vector, out, carry, first, last), len(runs), runs.size)
    else:
        step = max(1, AT_A_TIME // max(1, runs.shape[1]))
        for first in range(0, len(runs), step):
            some = slice(first, first + step)
            for own, vector in zip(out, by_vector, strict=True):
                own[some] = (runs[some] * vector).sum(axis=1)  # NumPy adds the numbers of a run in pairs
    return out[0] if vectors.ndim == 1 else out.T


def sum_of_outputs(values: Floats) -> Floats:
    """The sum over the columns of a matrix with a few, in their order."""
    total: Floats = values[:, 0].copy()
    for output in values.T[1:]:
        total += output
    return total


def _share(work: Work, count: int, size: int) -> None:
    if size < SHARED_FROM:
        work(0, count)
    else:
        share(work, blocks_of(np.linspace(0, count, BLOCKS + 1, dtype=np.int64)))


# -- sums over rows, whose round-off does not grow with their number --------------------------------------------------
# SUM_ERROR of thresher.privacy.sensitivity bounds it, for sums of up to CAPACITY terms. Terms are added in blocks of
# at most 256 and the totals of blocks with compensation, or in blocks of 32 and those in blocks again: 256 u and a few
# more, or 32 log_32(CAPACITY) u = 211 u.


BLOCK = 256
FEW, MANY = 32, 64  # terms of a block where blocks are summed up in blocks again; blocks that are multiplied at a time


def add_up(parts: Iterable[Floats]) -> Floats:
    """The sum of arrays of one shape, added with compensation (Knuth's two-sum)."""
    left = iter(parts)
    total = np.array(next(left), dtype=np.float64)
    carry = np.zeros_like(total)
    with np.errstate(over="ignore", invalid="ignore"):
        for part in left:
            grown = total + part
            added = grown - total
            lost = (total - (grown - added)) + (part - added)
            carry += np.where(np.isfinite(lost), lost, 0.0)  # a sum that has overflowed stays infinite
            total = grown
        return total + carry


def segment_sums(terms: Floats, starts: NDArray[np.integer]) -> Floats:
    """The sum of terms[starts[j]:starts[j+1]] for each j, in blocks, and those in blocks again."""
    terms = terms[: starts[-1]]
    while np.max(lengths := np.diff(starts), initial=0) > 1:
        blocks = -(-lengths // FEW)
        ends = np.append(0, np.cumsum(blocks))
        within = np.arange(ends[-1]) - np.repeat(ends[:-1], blocks)
        terms = np.add.reduceat(terms, np.repeat(starts[:-1], blocks) + FEW * within)
        starts = ends
    sums = np.zeros(len(lengths))
    sums[lengths == 1] = terms
    return sums


def gram_of(rows: Floats) -> Floats:
    """sum_i x_i x_i' of dense rows."""
    n, d = rows.shape
    half = BLOCK // 2
    rows = np.ascontiguousarray(rows)
    edge = n - n % half
    blocks = rows[:edge].reshape(-1, half, d)
    parts = (blocks[first : first + MANY] for first in range(0, len(blocks), MANY))
    whole = ((part.transpose(0, 2, 1) @ part).sum(axis=0) for part in parts)
    return add_up([rows[edge:].T @ rows[edge:], *whole])
