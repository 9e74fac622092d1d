"""Dense rows, kept by columns so that a sparse iterate touches only its own columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.clipping import row_norms
from thresher.engines.batches import DenseRows

Floats = NDArray[np.float64]

IN_CACHE = 2**16  # numbers; single precision is widened in blocks of about so many, which never leave the cache


@dataclass(frozen=True)
class DenseEngine:
    """X in column-major order, in single precision if it came so; sums are in double precision."""

    X: NDArray[Any] = field(repr=False)

    @classmethod
    def of(cls, X: NDArray[Any], constant: float) -> DenseEngine:
        if constant == 0:
            return cls(np.asfortranarray(X))
        n, d = X.shape
        extended = np.empty((n, d + 1), dtype=X.dtype, order="F")
        extended[:, :d] = X
        extended[:, d] = constant
        return cls(extended)

    def product(self, theta: Floats) -> Floats:
        support = np.flatnonzero(theta != 0 if theta.ndim == 1 else theta.any(axis=1))
        if 4 * len(support) > len(theta) and self.X.dtype == np.float64:
            return self.X @ theta
        return self.X[:, support].astype(np.float64, copy=False) @ theta[support]

    def transposed_product(self, r: Floats) -> Floats:
        if self.X.dtype == np.float64:
            return self.X.T @ r
        return np.concatenate([block.T @ r for block in self._widened()])

    def _widened(self) -> Iterator[Floats]:
        n, d = self.X.shape
        step = max(1, IN_CACHE // n)
        return (self.X[:, first : first + step].astype(np.float64) for first in range(0, d, step))

    @property
    def dimension(self) -> int:
        return int(self.X.shape[1])

    def mean_squares(self, n: int, weights: Floats | None = None) -> Floats:
        if weights is None:
            squares: Floats = np.einsum("ij,ij->j", self.X, self.X, dtype=np.float64) / n
        else:
            squares = np.einsum("i,ij,ij->j", weights, self.X, self.X, dtype=np.float64) / n
        return squares

    def gram(self, factors: Floats) -> Floats:
        scaled: Floats = self.X * factors[:, None]
        return scaled.T @ scaled

    def row_norms(self) -> Floats:
        return row_norms(self.X)

    def columns(self, support: NDArray[np.intp], factors: Floats | float = 1.0) -> DenseEngine:
        return DenseEngine(self.X[:, support] * np.broadcast_to(factors, len(support)))

    def by_rows(self) -> DenseRows:
        return DenseRows(np.ascontiguousarray(self.X))

    def parts(self, labels: NDArray[np.intp], count: int) -> Iterator[NDArray[Any]]:
        return (self.X[labels == part] for part in range(count))
