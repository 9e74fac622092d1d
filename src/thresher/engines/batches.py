"""Rows kept one after the other, so that a batch of them is taken out quickly."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


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

    X: NDArray[Any] = field(repr=False)

    def take(self, rows: Indices) -> DenseRows:
        return DenseRows(self.X.take(rows, axis=0).astype(np.float64, copy=False))

    def product(self, theta: Floats) -> Floats:
        return self.X @ theta

    def transposed_product(self, r: Floats) -> Floats:
        return self.X.T @ r


@dataclass(frozen=True)
class SparseRows:
    """X as SciPy's CSR, and a last column of a constant that is not stored, unless the constant is 0."""

    X: Any = field(repr=False)
    constant: float

    def take(self, rows: Indices) -> SparseRows:
        return SparseRows(self.X[rows], self.constant)

    def product(self, theta: Floats) -> Floats:
        if not self.constant:
            return np.asarray(self.X @ theta)
        margins: Floats = np.asarray(self.X @ theta[:-1]) + self.constant * theta[-1]
        return margins

    def transposed_product(self, r: Floats) -> Floats:
        sums = np.asarray(self.X.T @ r)
        return np.concatenate([sums, self.constant * r.sum(axis=0, keepdims=True)]) if self.constant else sums
