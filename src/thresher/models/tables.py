"""Models that read tables by a schema: its bounds in, coefficients in the table's own units out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from thresher.algorithms.uncertainty import Uncertainty
from thresher.data.schema import Encoding, Schema
from thresher.data.typing import Column, Table
from thresher.models.estimator import PrivateEstimator
from thresher.privacy.arrays import Floats
from thresher.privacy.bounds import Bounds
from thresher.privacy.plan import Plan

__all__ = ["TabularModel"]

DECLARED = ("feature_bound", "target_bound", "classes")


class TabularModel(PrivateEstimator):
    """What a model with ``schema`` does; without one, nothing changes.

    Rows are read, filled, clipped and scaled one by one as the schema declares, so a table that differs in one row
    becomes a matrix that differs in one row: the guarantee of the fit holds for the table.
    """

    schema: Any = None
    _task: str
    _read: tuple[str, ...] = ()
    """What must be assumed since it was read off the rows before they came here."""

    @classmethod
    def from_schema(cls, schema: Schema | str | Path | Mapping[str, Any], **params: Any) -> Self:
        """A model that reads tables as a schema declares: ``fit(table)`` with a frame or the path of a file.

        Bounds, classes, the target and whose each row is come from the schema; ``params`` are the others.
        """
        model = cls(schema=Schema.of(schema), **params)
        model._check_schema(model.schema)
        return model

    def _check_schema(self, schema: Schema) -> None:
        if schema.task != self._task:
            kind = {"regression": "bounds, for a regressor", "classification": "categories, for a classifier"}
            raise ValueError(
                f"schema: the target {schema.target.name!r} has {kind[schema.task]}; {type(self).__name__} is for "
                f"{self._task}"
            )
        for name in DECLARED:
            if getattr(self, name, None) is not None:
                raise ValueError(f"{name}={getattr(self, name)!r}: the schema declares it; leave it out")

    def _table(self, data: Table, y: Column, groups: Column) -> tuple[Any, Any, Any]:
        """Rows, targets and people of a table."""
        if self.schema is None:
            return data, y, groups
        schema = Schema.of(self.schema)
        self._check_schema(schema)
        if schema.person is not None and groups is not None:
            raise ValueError(f"groups: the schema says whose rows are, {schema.person.name!r}; leave the argument out")
        self.schema_, rows = schema.rows(data, y, centred=bool(self.fit_intercept), verbose=self.verbose)
        return rows.X, rows.y, groups if rows.people is None else rows.people

    def _encoding(self) -> Encoding:
        """Of the table that is fitted, or before that of the schema."""
        declared, read = Schema.of(self.schema), getattr(self, "schema_", None)
        schema = read if read is not None and read.extends(declared) else declared
        return schema.encoding(centred=bool(self.fit_intercept))

    def _name_columns(self) -> None:
        if self.schema is not None:
            encoding = self._encoding()
            self.feature_names_in_ = np.array(encoding.names, dtype=object)
            self.units_ = np.array(encoding.units, dtype=object)

    def _column_spreads(self) -> Floats:
        """What one step of each column is, as it was fitted: half of its range where a schema scales it, or 1."""
        return np.ones(self.n_features_in_) if self.schema is None else self._encoding().spread

    def _original(self, coefficients: Floats, intercepts: Floats) -> tuple[Floats, Floats]:
        if self.schema is None:
            return coefficients, intercepts
        return self._encoding().in_original_units(coefficients, intercepts)

    def _original_errors(self, found: Uncertainty, support: NDArray[np.intp]) -> Uncertainty:
        if self.schema is None:
            return found
        spread = self._encoding().spread[support]
        return replace(found, noise=found.noise / spread, sampling=found.sampling / spread)

    def _margins_of_table(self, data: Table, coefficients: Floats) -> Floats:
        """The linear part of each row, in original units."""
        parts = [piece @ coefficients.T for piece in self.schema_.features_of(data, verbose=self.verbose)]
        dense = [part.toarray() if sparse.issparse(part) else part for part in parts]
        return np.concatenate(dense) if dense else np.zeros((0, len(coefficients)))

    def plan(self, n_samples: int, n_features: int | None = None) -> Plan:
        """What would be released for data of this shape, and with what noise. Touches no data, spends nothing.

        For a fit with ``groups``, ``n_samples`` is the number of people. With ``schema`` the number of features is its.
        """
        if self.schema is not None:
            if Schema.of(self.schema).others is not None and not hasattr(self, "schema_"):
                raise ValueError("schema: [others] is spelled out by a table only; declare its columns to plan without")
            n_features = len(self._encoding().names)
        elif n_features is None:
            raise ValueError("n_features=None: give the number of columns")
        return super().plan(n_samples, n_features)

    # -- public facts for the plan and the certificate -----------------------------------------------------------------

    def _bounds(self) -> Bounds:
        if self.schema is None:
            return super()._bounds()
        encoding = self._encoding()
        alike = bool(np.all(encoding.bounds == encoding.bounds[0]))
        feature: Any = float(encoding.bounds[0]) if alike else tuple(encoding.bounds.tolist())
        row = encoding.row_norm if self.row_bound is None else min(self.row_bound, encoding.row_norm)
        return Bounds(feature, row, self._target_range())

    def _with_notes(self, plan: Plan, X: Table) -> Plan:
        if self.schema is None:
            return super()._with_notes(plan, X)
        return replace(plan, notes=(*plan.notes, *self.schema_.notes))

    def _assumed(self) -> tuple[str, ...]:
        """What the guarantee rests on where the schema, or what else is public of the rows, was read from the data."""
        return self._read if self.schema is None else self.schema_.assumptions
