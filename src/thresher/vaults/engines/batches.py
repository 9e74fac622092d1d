"""Rows kept one after the other, so that a batch of them is taken out quickly."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from thresher.privacy.arrays import Floats, Indices, Matrix, Numbers
from thresher.vaults.kernels.rows import BLOCK, add_up, dots


class Batch(Protocol):
    """Some rows, for products with a vector, or with several as the columns of a matrix."""

    def product(self, theta: Floats) -> Floats: ...

    def transposed_product(self, r: Floats) -> Floats: ...


class ByRows(Protocol):
    """All rows, of which batches are taken."""

    def take(self, rows: Indices) -> Batch: ...


@dataclass(frozen=True)
class DenseRows:
    """X in row-major order."""

    X: Numbers = field(repr=False)

    def take(self, rows: Indices) -> DenseRows:
        return DenseRows(self.X.take(rows, axis=0).astype(np.float64, copy=False))

    def product(self, theta: Floats) -> Floats:
        return dots(self.X, theta)

    def transposed_product(self, r: Floats) -> Floats:
        edges = range(0, max(len(r), 1), BLOCK)
        return add_up(self.X[first : first + BLOCK].T @ r[first : first + BLOCK] for first in edges)


@dataclass(frozen=True)
class SparseRows:
    """The entries of X row by row, and a last column of a constant that is not stored, unless the constant is 0."""

    values: Floats = field(repr=False)
    columns: Indices = field(repr=False)
    starts: Indices = field(repr=False)
    d: int
    constant: float

    @classmethod
    def of(cls, X: Matrix, constant: float) -> SparseRows:
        """Of SciPy's CSR."""
        values, columns = X.data.astype(np.float64, copy=False), X.indices.astype(np.intp, copy=False)
        return cls(values, columns, X.indptr.astype(np.intp, copy=False), X.shape[1], constant)

    def take(self, rows: Indices) -> SparseBatch:
        """SciPy would do the same in ten times the time: a batch may be a single row."""
        first = self.starts[rows]
        lengths = self.starts[rows + 1] - first
        owners = np.repeat(np.arange(len(rows)), lengths)
        entries = np.arange(len(owners)) + np.repeat(first - np.cumsum(lengths) + lengths, lengths)
        return SparseBatch(self.values[entries], self.columns[entries], owners, len(rows), self.d, self.constant)


@dataclass(frozen=True)
class SparseBatch:
    """Entries, each with its column and with the place of its row in the batch."""

    values: Floats
    columns: Indices
    owners: Indices
    size: int
    d: int
    constant: float

    def product(self, theta: Floats) -> Floats:
        if theta.ndim == 2:
            return np.column_stack([self.product(column) for column in theta.T])
        margins = np.bincount(self.owners, self.values * theta[self.columns], self.size).astype(np.float64, copy=False)
        return margins + self.constant * theta[-1] if self.constant else margins

    def transposed_product(self, r: Floats) -> Floats:
        if r.ndim == 2:
            return np.column_stack([self.transposed_product(column) for column in r.T])
        width, terms = self.d + bool(self.constant), self.values * r[self.owners]
        edges = np.searchsorted(self.owners, np.arange(0, max(self.size, 1), BLOCK))  # owners are in order
        pairs = zip(edges, [*edges[1:], len(terms)], strict=True)
        blocks = (np.bincount(self.columns[first:last], terms[first:last], width) for first, last in pairs)
        sums = add_up(np.asarray(block, dtype=np.float64) for block in blocks)
        if self.constant:
            sums[-1] = self.constant * r.sum()
        return sums
