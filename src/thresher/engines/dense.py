"""Dense rows, kept by columns so that a sparse iterate touches only its own columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher.clipping import row_norms

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DenseEngine:
    """X in column-major order."""

    X: Floats

    @classmethod
    def of(cls, X: Floats, constant: float) -> DenseEngine:
        if constant == 0:
            return cls(np.asfortranarray(X))
        n, d = X.shape
        extended = np.empty((n, d + 1), order="F")
        extended[:, :d] = X
        extended[:, d] = constant
        return cls(extended)

    def product(self, theta: Floats) -> Floats:
        support = np.flatnonzero(theta if theta.ndim == 1 else theta.any(axis=1))
        if 4 * len(support) > len(theta):
            return self.X @ theta
        return self.X[:, support] @ theta[support]

    def transposed_product(self, r: Floats) -> Floats:
        return self.X.T @ r

    @property
    def dimension(self) -> int:
        return int(self.X.shape[1])

    def mean_squares(self, n: int) -> Floats:
        squares: Floats = np.einsum("ij,ij->j", self.X, self.X) / n
        return squares

    def gram(self, limits: Floats) -> Floats:
        scaled = self.X * np.minimum(1.0, limits)[:, None]
        return scaled.T @ scaled

    def row_norms(self) -> Floats:
        return row_norms(self.X)

    def columns(self, support: NDArray[np.intp], factors: Floats | float = 1.0) -> DenseEngine:
        return DenseEngine(self.X[:, support] * factors)

    def parts(self, labels: NDArray[np.intp], count: int) -> Iterator[Floats]:
        return (self.X[labels == part] for part in range(count))
