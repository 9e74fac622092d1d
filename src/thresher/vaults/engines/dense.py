"""Dense rows, kept by columns so that a sparse iterate touches only its own columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from thresher.privacy.arrays import Floats, Numbers
from thresher.vaults.clipping import row_norms
from thresher.vaults.engines.batches import DenseRows
from thresher.vaults.kernels.rows import dots, gram_of, product

SQUARED = 2**22  # numbers squared at a time: squares of a whole table would take as much memory as it does


@dataclass(frozen=True)
class DenseEngine:
    """X in column-major order, in single precision if it came so; sums are in double precision."""

    X: Numbers = field(repr=False)

    @classmethod
    def of(cls, X: Numbers, constant: float) -> DenseEngine:
        if constant == 0:
            return cls(np.asfortranarray(X))
        n, d = X.shape
        extended = np.empty((n, d + 1), dtype=X.dtype, order="F")
        extended[:, :d] = X
        extended[:, d] = constant
        return cls(extended)

    def product(self, theta: Floats) -> Floats:
        support = np.flatnonzero(theta != 0 if theta.ndim == 1 else theta.any(axis=1))
        return product(self.X, support, theta[support])

    def transposed_product(self, r: Floats) -> Floats:
        return dots(self.X.T, r)

    @property
    def dimension(self) -> int:
        return int(self.X.shape[1])

    def mean_squares(self, n: int, weights: Floats | None = None) -> Floats:
        rows, d = self.X.shape
        weights = np.ones(rows) if weights is None else weights
        step = max(1, SQUARED // max(1, rows))
        blocks = (self.X[:, first : first + step].T for first in range(0, d, step))
        return np.concatenate([dots(np.square(block, dtype=np.float64), weights) for block in blocks]) / n

    def gram(self, factors: Floats) -> Floats:
        return gram_of(self.X * factors[:, None])

    def row_norms(self) -> Floats:
        return row_norms(self.X)

    def columns(self, support: NDArray[np.intp], factors: Floats | float = 1.0) -> DenseEngine:
        return DenseEngine(np.asfortranarray(self.X[:, support] * np.broadcast_to(factors, len(support))))

    def projected(self, support: NDArray[np.intp], weights: Floats) -> DenseEngine:
        support = np.arange(self.dimension)[support]  # so that -1 is the last, as everywhere
        return DenseEngine(np.asfortranarray(product(self.X, support, weights)))

    def by_rows(self) -> DenseRows:
        return DenseRows(np.ascontiguousarray(self.X))

    def parts(self, labels: NDArray[np.intp], count: int) -> Iterator[Numbers]:
        return (self.X[labels == part] for part in range(count))
