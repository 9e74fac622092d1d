"""What linear models share, whoever holds the rows: validation, coefficients, predictions, files."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from thresher.algorithms import resolve
from thresher.algorithms.uncertainty import Uncertainty
from thresher.data.atomic_files import write_atomically
from thresher.data.dask import is_dask, map_rows
from thresher.data.reading.frames import eager
from thresher.data.schema import Schema
from thresher.data.tables import reject_text
from thresher.data.typing import Column, Table
from thresher.models.estimator import Parts
from thresher.models.fit import Planner, Published
from thresher.models.tables import TabularModel
from thresher.privacy import logs
from thresher.privacy.arrays import Floats
from thresher.privacy.model_hash import linear_parts
from thresher.privacy.plan import Plan
from thresher.report.summary import Summary, summary_of
from thresher.vaults.losses import Loss, is_own
from thresher.vaults.penalties import NO_PENALTY, Penalty
from thresher.vaults.problem import LinearProblem, linear_problem

__all__ = [
    "KINDS",
    "LinearModel",
    "Predictions",
    "lazy_for_dask",
    "name_columns",
    "outputs_of",
    "parts_of",
    "problem_of",
    "restore",
    "target_range_of",
]

Predictions = Any
"""An array of NumPy for rows in memory, of Dask for rows that are not."""

WITH_UNCERTAINTY = ("newton", "pursuit")


Model = TypeVar("Model", bound="LinearModel")


def lazy_for_dask(method: Callable[[Model, Table], Predictions]) -> Callable[[Model, Table], Predictions]:
    """A method of rows that answers a Dask collection with a Dask array, computed when it is asked for."""

    @functools.wraps(method)
    def answer(self: Model, X: Table) -> Predictions:
        return map_rows(getattr(self, method.__name__), X) if is_dask(X) else method(self, X)

    return answer


MOST_THAT_PAY = 50
"""Coefficients that a model has at most which may have as many as pay: more are hard to read."""

KINDS: dict[str, type[LinearModel]] = {}
"""The front doors by name, wherever they are: models are read back from files by it."""


class LinearModel(TabularModel):
    """What all front doors share."""

    _loss: Loss
    """What is fitted. A subclass may have another: docs/adding.md."""

    _columns: list[str] | None = None
    """Names of columns that the rows themselves do not carry."""

    uncertainty_: Uncertainty | None = None
    why_no_intervals_: str | None = None
    """Standard errors and stability of the selected coefficients, where the algorithm that ran has a formula."""

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if any("__init__" in vars(kind) for kind in cls.__mro__[:-1]):  # not what only others inherit from
            KINDS[cls.__name__] = cls

    def _problem(self, n_samples: int, n_features: int, outputs: int) -> LinearProblem:
        return LinearProblem(
            n=n_samples,
            d=n_features,
            sparsity=self._sparsity(n_features),
            as_many_as_pay=getattr(self, "sparsity", n_features) is None,  # dense models have none
            loss=self._loss_of(outputs),
            bounds=self._bounds(),
            intercept=self.fit_intercept,
            outputs=outputs,
            penalty=self._penalty(),
        )

    def _sparsity(self, n_features: int) -> int:
        if self.sparsity is None:
            return min(MOST_THAT_PAY, n_features)
        if self.schema is not None:  # who declares a table need not count the columns that it becomes
            return min(self.sparsity, n_features)  # type: ignore[no-any-return]
        return self.sparsity  # type: ignore[no-any-return]

    def _penalty(self) -> Penalty:
        return NO_PENALTY

    def _loss_of(self, outputs: int) -> Loss:
        return self._loss.for_outputs(outputs)

    def _algorithm(self, outputs: int) -> Planner:
        return resolve(self.algorithm, outputs)

    def fit(self, X: Table, y: Column = None, *, groups: Column = None) -> Self:
        """Fit on rows and targets, as the front doors say."""
        raise NotImplementedError

    def predict(self, X: Table) -> Predictions:
        """What the model says of each row: an array, of Dask for a Dask collection."""
        raise NotImplementedError

    def score(self, X: Table, y: Column, sample_weight: Column = None) -> float:
        """How well it predicts rows that need no protection."""
        raise NotImplementedError

    def save(self, path: str | Path) -> None:
        """Write the model and its certificate as plain JSON; they replace what is there when all is on the disk."""
        check_is_fitted(self, "certificate_")
        params = {**self.get_params(), "algorithm": self.algorithm_, "random_state": None}
        if "ledger" in params:  # a model is published, the address of its ledger is not
            params |= {"ledger": None, "dataset": None}
        if self.schema is not None:
            params["schema"] = self.schema_.to_dict()
        if not np.isfinite(params["epsilon"]):
            params["epsilon"] = str(params["epsilon"])  # JSON knows no infinity
        model = {
            "format": "thresher-model-1",
            "class": type(self).__name__,
            "params": params,
            "n_features": self.n_features_in_,
            "feature_names": getattr(self, "feature_names_in_", np.empty(0)).tolist() or None,
            "classes": getattr(self, "classes_", np.empty(0)).tolist() or None,
            "support": self.support_.tolist(),
            "coefficients": _one_or_all(self._coefficients()[:, self.support_].tolist()),
            "intercept": _one_or_all(np.ravel(self.intercept_).tolist()),
            "certificate": json.loads(self.certificate_.to_json()),
            "uncertainty": None if self.uncertainty_ is None else self.uncertainty_.to_dict(),
            "why_no_intervals": self.why_no_intervals_,
        }
        write_atomically(path, json.dumps(model, indent=2, allow_nan=False, default=_plain) + "\n")
        logs.saved(path)

    def report(self, path: str | Path) -> None:
        """Write an HTML page about the model and its privacy: plots, tables, the certificate. Needs no data."""
        from thresher.report.model import model_page
        from thresher.report.page import check_writable

        check_is_fitted(self, "certificate_")
        check_writable(Path(path), "path")
        facts, outputs = self.certificate_, len(self._coefficients())
        curated = facts.trust["model"] not in ("local", "labels")
        problem = self._problem(facts.n_samples, facts.n_features, outputs) if curated else None
        write_atomically(path, model_page(self, problem))

    def summary(self, level: float = 0.9) -> Summary:
        """Coefficients with intervals at ``level`` and stability, and what they cost: a table to print, or to show in a
        notebook. Computed from what was released anyway: free of charge."""
        check_is_fitted(self, "certificate_")
        effect = self._loss_of(len(self._coefficients())).adds_to(getattr(self, "classes_", None))
        return summary_of(self, level, self._why_no_intervals(), effect, self._column_spreads())

    def intervals(self, level: float = 0.9) -> Floats:
        """(low, high) for each of ``support_``, one row per class if there are several: privacy noise and sampling.

        Computed from what was released anyway: free of charge.
        """
        check_is_fitted(self, "certificate_")
        if self.uncertainty_ is None:
            raise ValueError(f"intervals: {self._why_no_intervals()}")
        values = self._coefficients()[:, self.support_]
        return self.uncertainty_.intervals(values[0] if len(values) == 1 else values, level)

    def _why_no_intervals(self) -> str | None:
        if self.uncertainty_ is not None:
            return None
        loss = self._loss_of(len(self._coefficients()))
        if not is_own(loss):
            return f"no standard errors are known for the loss {loss.name!r}"
        if self.why_no_intervals_ is not None:
            return self.why_no_intervals_
        if self.algorithm_ in WITH_UNCERTAINTY:
            return "the file of this model was written by a version that kept no standard errors; fit it again"
        return (
            f"the answers that algorithm={self.algorithm_!r} releases do not tell how far its coefficients may be off; "
            f"those of {' and '.join(map(repr, WITH_UNCERTAINTY))} do"
        )

    def _publish(self, published: Published) -> None:
        """Of standard errors, those of the support."""
        found = published.get("uncertainty")
        if found is not None:
            of_classes = found if isinstance(found, list) else [found]
            rows = [row.of(k, self.support_) for row, k in zip(of_classes, self._coefficients(), strict=True)]
            of_support = rows[0] if len(rows) == 1 else Uncertainty.stacked(rows)
            published = {**published, "uncertainty": self._original_errors(of_support, self.support_)}
        super()._publish(published)

    def _keep(self, theta: Floats, plan: Plan) -> None:
        self._store(*self._original(*linear_problem(plan).model_of(theta)))
        self._name_columns()
        if self._columns is not None:
            self.feature_names_in_ = np.array(self._columns, dtype=object)

    def _store(self, coefficients: Floats, intercepts: Floats) -> None:
        """One row of coefficients and one intercept per output."""
        self.coef_: Floats = coefficients
        self.intercept_: Any = intercepts
        self.support_ = np.flatnonzero(coefficients.any(axis=0))

    def _model_parts(self) -> Parts:
        names, classes = (getattr(self, name, None) for name in ("feature_names_in_", "classes_"))
        return linear_parts(self._coefficients(), self.intercept_, names, classes)

    def _coefficients(self) -> Floats:
        return np.atleast_2d(self.coef_)

    def _validate(self, X: Table, y: Column, unsupported: dict[str, object], groups: Column) -> tuple[Any, Any]:
        if unsupported:
            name = next(iter(unsupported))
            raise TypeError(
                f"{name} is not supported by {type(self).__name__}.fit: a weighted row would have another sensitivity "
                "than the one that is paid for; drop the argument"
            )
        return self._checked_to_fit(X, y, groups=groups)  # type: ignore[no-any-return]

    def _margins(self, X: Table) -> Floats:
        check_is_fitted(self, "certificate_")
        margins: Floats = self._linear(X) + np.ravel(self.intercept_)
        return margins if margins.shape[1] > 1 else margins[:, 0]

    def _linear(self, X: Table) -> Floats:
        if self.schema is not None:
            return self._margins_of_table(X, self._coefficients())
        X = eager(X)
        reject_text(X)
        X = self._check_rows(X, accept_sparse=("csc", "csr"), reset=False)
        return safe_sparse_dot(X, self._coefficients().T)  # type: ignore[no-any-return]


def problem_of(model: LinearModel, n_samples: int, n_features: int, outputs: int) -> LinearProblem:
    """The public facts of a fit to data of this shape."""
    return model._problem(n_samples, n_features, outputs)


def outputs_of(model: LinearModel) -> int:
    """How many linear predictors a model declares: 1, or the number of more than two classes."""
    return model._outputs_declared()


def target_range_of(model: LinearModel) -> tuple[float, float] | None:
    """The public range of a model's targets, if it is of numbers and somebody declared it."""
    return model._target_range()


def parts_of(model: LinearModel) -> Parts:
    """What the certificate's hash is of."""
    return model._model_parts()


def name_columns(model: LinearModel, names: list[str] | None, assumptions: tuple[str, ...] = ()) -> None:
    """Give the next fit the names of columns that rows do not carry, and what was assumed when the rows were read."""
    model._columns, model._read = names, assumptions


def restore(model: LinearModel, coefficients: Floats, intercepts: Floats, published: Published) -> None:
    """Make what a file holds the fitted attributes of a model: as after its fit, by which they were published."""
    model._store(coefficients, intercepts)
    model.n_features_in_ = coefficients.shape[1]
    if model.schema is not None:
        model.schema_ = Schema.of(model.schema)
        model._name_columns()
    model._published = list(published)
    for name, value in published.items():
        setattr(model, name, value)


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _one_or_all(values: list[Any]) -> Any:
    """The only value, or the list of several outputs' values."""
    return values[0] if len(values) == 1 else values
