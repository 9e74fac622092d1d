"""Arithmetic over dense rows that keeps rows apart: what is computed for one is a function of that row alone.

To the last bit, wherever the row lies, whatever lies beside it and however many there are (docs/guarantees.md,
"Row-locality"): each row's terms are added in the order of its columns. Without compiled loops NumPy does the same
operations, column by column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.privacy.arrays import Floats, Indices
from thresher.vaults.kernels import compiled
from thresher.vaults.kernels.threads import BLOCKS, blocks_of, share

__all__ = ["dots", "product", "squares", "sum_of_outputs"]

SHARED_FROM = 500_000  # numbers; fewer are done before another thread has woken up
AT_A_TIME = 2**16  # numbers in a copy, where one is needed


def product(X: NDArray[Any], columns: Indices, weights: Floats) -> Floats:
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


def squares(X: NDArray[Any]) -> Floats:
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


def dots(runs: NDArray[Any], vectors: Floats) -> Floats:
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


def _share(work: Any, count: int, size: int) -> None:
    if size < SHARED_FROM:
        work(0, count)
    else:
        share(work, blocks_of(np.linspace(0, count, BLOCKS + 1, dtype=np.int64)))
