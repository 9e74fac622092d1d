"""Sparse rows, kept by columns: X theta costs the support's columns only, and X' r reads every entry once, in order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from thresher.privacy.arrays import Floats, Indices, Integers, Matrix, Numbers, Values
from thresher.vaults.clipping import row_norms
from thresher.vaults.engines.batches import SparseRows
from thresher.vaults.engines.dense import DenseEngine
from thresher.vaults.kernels import compiled
from thresher.vaults.kernels.rows import BLOCKS, blocks_of, segment_sums, share

SHARED_FROM = 500_000  # entries; fewer are done before another thread has woken up
SHORT = 2**16  # row numbers below this take two bytes: X' r costs what it reads


class SparseEngine:
    """The entries of X, column after column; nothing of size n x d is ever made from them.

    X' r by columns reads r, n numbers, at random places and adds up each column by itself. By rows it would write d
    numbers at random places, once per thread: that is faster only where n is many times d, and never by much.

    A ``constant`` other than 0 stands for one more column, the last, that holds nothing else; it is not stored.
    """

    def __init__(self, values: Numbers, rows: Values, starts: Integers, n: int, constant: float = 0.0) -> None:
        self._loops = compiled()
        self._n, self._constant = n, constant
        self._starts = starts
        self._values: Numbers = values if self._loops else values.astype(np.float64, copy=False)
        self._rows = _pack(rows, n) if self._loops else rows
        edges = np.searchsorted(starts, np.linspace(0, values.size, (BLOCKS if values.size >= SHARED_FROM else 1) + 1))
        edges[0], edges[-1] = 0, len(starts) - 1
        self._blocks = blocks_of(edges)

    @classmethod
    def of(cls, X: Matrix, constant: float) -> SparseEngine:
        """An engine over X, whose arrays it keeps, and one more column of a ``constant`` if that is not 0."""
        X = X.tocsc()
        return cls(X.data, X.indices, X.indptr.astype(np.int64), X.shape[0], constant)

    def __reduce__(self) -> tuple[type[SparseEngine], tuple[Numbers, Values, Integers, int, float]]:
        return SparseEngine, (self._values, self._rows, self._starts, self._n, self._constant)

    def __repr__(self) -> str:
        return f"SparseEngine of {self._n} rows and {self.dimension} columns"

    def product(self, theta: Floats) -> Floats:
        support = np.flatnonzero(theta != 0 if theta.ndim == 1 else theta.any(axis=1))
        if self._loops is None:
            return np.asarray(self._chosen(support).matrix() @ theta[support])
        if theta.ndim == 2:
            return np.column_stack([self.product(column) for column in theta.T])
        out = np.full(self._n, self._constant * theta[-1] if self._constant else 0.0)
        support = support[support < len(self._starts) - 1]
        self._loops.add_columns(self._values, self._rows, self._starts, support, theta[support], out)
        return out

    def transposed_product(self, r: Floats) -> Floats:
        if r.ndim == 2:
            return np.column_stack([self.transposed_product(column) for column in r.T])
        r, out = np.ascontiguousarray(r), np.empty(self.dimension)
        share(lambda first, last: self._dots(r, out, first, last), self._blocks)  # a column is summed up by one alone
        if self._constant:
            out[-1] = self._constant * r.sum()
        return out

    def _dots(self, r: Floats, out: Floats, first: int, last: int) -> None:
        """out[j] = <column j, r> for first <= j < last."""
        if self._loops is not None:
            self._loops.column_dots(self._values, self._rows, self._starts, r, out, first, last)
        else:
            starts = self._starts[first : last + 1]
            entries = slice(starts[0], starts[-1])
            out[first:last] = segment_sums(self._values[entries] * r[self._rows[entries]], starts - starts[0])

    @property
    def dimension(self) -> int:
        return len(self._starts) - 1 + bool(self._constant)

    def mean_squares(self, n: int, weights: Floats | None = None) -> Floats:
        squares = SparseEngine(
            np.square(self._values, dtype=np.float64), self._rows, self._starts, self._n, self._constant**2
        )  # single precision would add up in single, too
        return squares.transposed_product(np.ones(self._n) if weights is None else weights) / n

    def gram(self, factors: Floats) -> Floats:
        squares, gram = np.square(factors), np.empty((self.dimension, self.dimension))
        for at, column in enumerate(np.eye(self.dimension)):
            gram[:, at] = self.transposed_product(squares * self.product(column))
        return gram

    def row_norms(self) -> Floats:
        return np.hypot(row_norms(self._entries_between()), self._constant)

    def columns(self, support: Indices, factors: Floats | float = 1.0) -> SparseEngine:
        chosen = self._chosen(support)
        factors = np.repeat(np.broadcast_to(factors, len(support)), np.diff(chosen._starts))
        return SparseEngine(chosen._values * factors, chosen._rows, chosen._starts, self._n)

    def projected(self, support: Indices, weights: Floats) -> DenseEngine:
        theta = np.zeros((self.dimension, weights.shape[1]))
        np.add.at(theta, support, weights)
        return DenseEngine(np.asfortranarray(self.product(theta)))

    def _chosen(self, support: Indices) -> SparseEngine:
        """The columns in ``support``, all of them stored."""
        support = np.arange(self.dimension)[support]  # so that -1 is the last, as everywhere
        lengths = np.append(np.diff(self._starts), self._n)[support]  # the last one is the constant, if there is one
        starts = np.append(0, np.cumsum(lengths))
        entries = np.arange(starts[-1]) + np.repeat(self._starts[support] - starts[:-1], lengths)
        stored = entries < self._values.size
        values, rows = (
            np.full(len(entries), self._constant, self._values.dtype),
            np.empty(len(entries), self._rows.dtype),
        )
        values[stored], rows[stored] = self._values[entries[stored]], self._rows[entries[stored]]
        rows[~stored] = entries[~stored] - self._values.size
        return SparseEngine(values, rows, starts, self._n)

    def by_rows(self) -> SparseRows:
        return SparseRows.of(self._entries_between().tocsr(), self._constant)

    def parts(self, labels: Indices, count: int) -> Iterator[Matrix]:
        rows = self.matrix().tocsr()
        return (rows[np.flatnonzero(labels == part)].tocsc() for part in range(count))

    @property
    def stored(self) -> int:
        """The number of entries."""
        return int(self._values.size) + bool(self._constant) * self._n

    @property
    def is_walkable(self) -> bool:
        """Whether the compiled loops can follow a walk over these rows."""
        return self._loops is not None and max(self._n, self.dimension) < 2**31

    def by_columns(self) -> tuple[Numbers, NDArray[np.uint32], Integers]:
        """Values, row numbers, and where each column starts."""
        if self._constant:
            return self._chosen(np.arange(self.dimension)).by_columns()
        return self._values, self._rows.astype(np.uint32, copy=False), self._starts

    def column_sums(self, weights: Floats | None = None) -> Floats:
        """sum_i w_i |x_ij| for each column; all w_i are 1 if there are none."""
        sizes = SparseEngine(np.abs(self._values), self._rows, self._starts, self._n, abs(self._constant))
        return sizes.transposed_product(np.ones(self._n) if weights is None else weights)

    def matrix(self) -> Matrix:
        """All columns as SciPy's CSC, sharing memory where SciPy can."""
        return self._chosen(np.arange(self.dimension)).matrix() if self._constant else self._entries_between()

    def _entries_between(self, first: int = 0, last: int | None = None) -> Matrix:
        """Columns first..last-1, the constant one apart."""
        starts = self._starts[first : (len(self._starts) - 1 if last is None else last) + 1]
        entries = slice(starts[0], starts[-1])
        rows = self._rows[entries]
        rows = rows.view(np.int32) if rows.dtype == np.uint32 else rows
        starts = starts - starts[0]
        if starts[-1] < 2**31 and self._n < 2**31:  # SciPy wants both of one kind
            rows, starts = rows.astype(np.int32, copy=False), starts.astype(np.int32)
        return sparse.csc_array((self._values[entries], rows, starts), shape=(self._n, len(starts) - 1))


def _pack(rows: Values, n: int) -> Values:
    """Row numbers as the compiled loops take them: unsigned and short."""
    if n <= SHORT:
        return rows.astype(np.uint16, copy=False)
    return rows.view(np.uint32) if rows.dtype == np.int32 else rows
