"""Sparse rows, kept twice: by columns, so that X theta costs the support's columns only, and by rows for X' r."""

from __future__ import annotations

import functools
import itertools
import operator
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from thresher.clipping import row_norms

Floats = NDArray[np.float64]

BLOCKS, BLOCKS_FROM = 2, 500_000  # row blocks for X' r, from so many nonzeros on; below, threads do not pay


class SparseEngine:
    """X by columns for X theta and by rows for X' r; nothing of size n x d is ever made from it."""

    def __init__(self, X: Any) -> None:
        self.X = X
        # The number of blocks is fixed, so the order of summation does not depend on the number of threads.
        rows = X.tocsr()
        edges = np.linspace(0, rows.shape[0], (BLOCKS if X.nnz >= BLOCKS_FROM else 1) + 1, dtype=int)
        self._blocks = [(slice(a, b), _rows(rows, a, b).T) for a, b in itertools.pairwise(edges)]
        self._pool = ThreadPoolExecutor(_threads()) if len(self._blocks) > 1 else None

    def __reduce__(self) -> Any:
        return SparseEngine, (self.X,)

    @classmethod
    def of(cls, X: Any, constant: float) -> SparseEngine:
        X = sparse.csc_array(X)
        n, d = X.shape
        data, indices, indptr = X.data, X.indices, X.indptr
        if constant != 0:
            data = np.append(data, np.full(n, constant))
            indices = np.append(indices, np.arange(n))
            indptr = np.append(indptr, indptr[-1] + n)
            d += 1
        # half the index bytes means noticeably less memory traffic, which is what a step costs
        index = np.int32 if max(n, indptr[-1]) < 2**31 else np.int64
        return cls(sparse.csc_array((data, indices.astype(index), indptr.astype(index)), shape=(n, d)))

    def product(self, theta: Floats) -> Floats:
        support = np.flatnonzero(theta if theta.ndim == 1 else theta.any(axis=1))
        if 4 * len(support) > len(theta):
            return np.asarray(self.X @ theta)
        return np.asarray(self.X[:, support] @ theta[support])

    def transposed_product(self, r: Floats) -> Floats:
        run = map if self._pool is None else self._pool.map
        parts = run(lambda block: block[1] @ r[block[0]], self._blocks)
        return np.asarray(functools.reduce(operator.iadd, parts))

    @property
    def dimension(self) -> int:
        return int(self.X.shape[1])

    def mean_squares(self, n: int) -> Floats:
        return np.asarray(self.X.power(2).sum(axis=0)).ravel() / n

    def gram(self, limits: Floats) -> Floats:
        scaled = self.X.copy()
        scaled.data *= np.minimum(1.0, limits)[scaled.indices]
        return np.asarray((scaled.T @ scaled).toarray())

    def row_norms(self) -> Floats:
        return row_norms(self.X)

    def columns(self, support: NDArray[np.intp], factors: Floats | float = 1.0) -> SparseEngine:
        chosen = self.X[:, support]
        chosen.data *= np.repeat(np.broadcast_to(factors, len(support)), np.diff(chosen.indptr))
        return SparseEngine(chosen)

    def parts(self, labels: NDArray[np.intp], count: int) -> Iterator[Any]:
        rows = self.X.tocsr()
        return (rows[np.flatnonzero(labels == part)].tocsc() for part in range(count))


def _rows(X: Any, first: int, last: int) -> Any:
    """Rows first..last-1 of a CSR array, sharing its memory."""
    start, stop = X.indptr[first], X.indptr[last]
    parts = (X.data[start:stop], X.indices[start:stop], X.indptr[first : last + 1] - start)
    return sparse.csr_array(parts, shape=(last - first, X.shape[1]))


def _threads() -> int:
    """The usual limit if it is set (joblib sets it in its workers), else one per block."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(int(limit), BLOCKS) if limit.isdecimal() and limit != "0" else BLOCKS
