"""Linear algebra over the rows inside a vault. No privacy in here."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from thresher.engines.dense import DenseEngine
from thresher.engines.sparse import SparseEngine

__all__ = ["Engine", "engine_for"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class Engine(Protocol):
    """Products with the rows X and their transpose."""

    def product(self, theta: Floats) -> Floats:
        """X theta, in time that follows the support of theta."""
        ...

    def transposed_product(self, r: Floats) -> Floats:
        """X' r."""
        ...

    @property
    def dimension(self) -> int:
        """The number of columns."""
        ...

    def mean_squares(self, n: int) -> Floats:
        """(1/n) sum_i x_ij^2 for each column."""
        ...

    def row_norms(self) -> Floats:
        """||x_i||_2."""
        ...

    def columns(self, support: Indices) -> Engine:
        """The same rows with only the columns in ``support``."""
        ...


def engine_for(X: Any, constant: float) -> Engine:
    """The engine for clipped rows; ``constant`` above 0 appends the column that carries the intercept."""
    return SparseEngine.of(X, constant) if issparse(X) else DenseEngine.of(X, constant)
