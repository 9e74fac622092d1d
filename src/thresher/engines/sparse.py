"""Sparse rows, kept by columns (CSC): X theta costs the support's columns, X' r is one dot product a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from thresher.clipping import row_norms

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SparseEngine:
    """X as a CSC array; nothing of size n x d is ever made from it."""

    X: Any

    @classmethod
    def of(cls, X: Any, constant: float) -> SparseEngine:
        X = sparse.csc_array(X)
        if constant != 0:
            n, d = X.shape
            X = sparse.csc_array(
                (
                    np.append(X.data, np.full(n, constant)),
                    np.append(X.indices, np.arange(n, dtype=X.indices.dtype)),
                    np.append(X.indptr, X.indptr[-1] + n).astype(X.indptr.dtype),
                ),
                shape=(n, d + 1),
            )
        return cls(X)

    def product(self, theta: Floats) -> Floats:
        X, support = self.X, np.flatnonzero(theta)
        if 4 * len(support) > len(theta):
            return np.asarray(X @ theta)
        return np.asarray(X[:, support] @ theta[support])

    def transposed_product(self, r: Floats) -> Floats:
        return np.asarray(self.X.T @ r)

    def row_norms(self) -> Floats:
        return row_norms(self.X)

    def columns(self, support: NDArray[np.intp]) -> SparseEngine:
        return SparseEngine(self.X[:, support])
