"""Linear algebra over the rows inside a vault. No privacy in here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from scipy.sparse import issparse

from thresher.data.dask import Partitions
from thresher.privacy.arrays import Floats, Indices, Matrix
from thresher.vaults.clipping import round_down
from thresher.vaults.engines.batches import Batch, ByRows
from thresher.vaults.engines.dense import DenseEngine
from thresher.vaults.engines.sparse import SparseEngine

__all__ = ["Batch", "ByRows", "Engine", "engine_for"]


class Engine(Protocol):
    """Products of the rows X and their transpose with a vector, or with several as the columns of a matrix."""

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

    def mean_squares(self, n: int, weights: Floats | None = None) -> Floats:
        """(1/n) sum_i w_i x_ij^2 for each column; all w_i are 1 if there are none."""
        ...

    def gram(self, factors: Floats) -> Floats:
        """sum_i f_i^2 x_i x_i'; for a few columns only, the answer is dense."""
        ...

    def row_norms(self) -> Floats:
        """||x_i||_2."""
        ...

    def columns(self, support: Indices, factors: Floats | float = 1.0) -> Engine:
        """The same rows with only the columns in ``support``, times ``factors``."""
        ...

    def projected(self, support: Indices, weights: Floats) -> Engine:
        """The same rows in other coordinates, X[:, support] weights, each of which is a function of its row alone."""
        ...

    def by_rows(self) -> ByRows:
        """The same rows, kept so that batches of them are taken out quickly."""
        ...

    def parts(self, labels: Indices, count: int) -> Iterator[Matrix]:
        """The matrices of the rows labelled 0, 1, ..., count-1; CSC if sparse."""
        ...


def engine_for(X: Matrix, constant: float) -> Engine:
    """The engine for clipped rows; ``constant`` above 0 appends the column that carries the intercept."""
    if isinstance(X, Partitions):
        from thresher.vaults.engines.dask import DaskEngine  # builds an engine like these on each partition

        return DaskEngine.of(X, constant)
    constant = float(round_down(constant, X.dtype))
    return SparseEngine.of(X, constant) if issparse(X) else DenseEngine.of(X, constant)
