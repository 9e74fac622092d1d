"""Linear models of numbers, whoever holds the rows."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import RegressorMixin

from thresher.data.concealment import concealed_comparison, without_causes
from thresher.data.dask import fit_inputs
from thresher.data.schema import Schema
from thresher.data.sparse_structure import check_structure
from thresher.data.tables import numeric_target
from thresher.data.typing import Column, Table
from thresher.models.linear import LinearModel, lazy_for_dask
from thresher.privacy.arrays import Floats
from thresher.vaults.losses import SQUARED, Loss

__all__ = ["RegressorModel", "Target"]

Target = float | tuple[float, float] | None


class RegressorModel(RegressorMixin, LinearModel):
    """A linear model of numbers."""

    _loss: Loss = SQUARED
    _task = "regression"

    @without_causes
    def fit(self, X: Table, y: Column = None, *, groups: Column = None, **unsupported: object) -> Self:
        """Fit on the rows of ``X`` (NumPy, SciPy sparse, pandas, polars, Dask) and the targets ``y``.

        ``groups`` holds the id of each row's person, a number or text. Then all rows of a person are protected together
        and count as one: see docs/people.md. With ``schema``, ``X`` is a table, a frame or the path of a file, that
        holds targets and people, too.
        """
        X, y, groups = self._table(X, y, groups)
        with fit_inputs(X, y) as (X, y):
            X, y = self._validate(X, numeric_target(y), unsupported, groups)
            return self._fit(X, y, self._assumed(), self._people_of(groups, len(y)))

    @without_causes
    @lazy_for_dask
    def predict(self, X: Table) -> Floats:
        """The target's prediction for each row."""
        return self._loss_of(1).inverse_link(self._margins(X))

    @without_causes
    def score(self, X: Table, y: Column, sample_weight: Column = None) -> float:
        """R^2 of the predictions. Not private: for rows that need no protection."""
        from sklearn.metrics import r2_score  # takes long to import

        check_structure(y, "y")
        predicted = self.predict(X)
        with concealed_comparison("a number"):
            return float(r2_score(y, predicted, sample_weight=sample_weight))

    def _store(self, coefficients: Floats, intercepts: Floats) -> None:
        super()._store(coefficients, intercepts)
        self.coef_, self.intercept_ = coefficients[0], float(intercepts[0])

    def _target_range(self) -> tuple[float, float] | None:
        if self.schema is not None:
            return Schema.of(self.schema).target.span
        bound = self.target_bound
        if bound is None:
            return None
        try:
            low, high = (-float(bound), float(bound)) if np.ndim(bound) == 0 else map(float, bound)
        except (TypeError, ValueError):
            raise ValueError(f"target_bound={bound!r} must be a positive number or a pair (low, high)") from None
        return (low, high)
