"""What linear models share, whoever holds the rows: validation, coefficients, predictions, files."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from thresher.algorithms import resolve
from thresher.algorithms.uncertainty import Uncertainty
from thresher.data.atomic_files import write_atomically
from thresher.data.concealment import concealed_comparison, without_causes
from thresher.data.dask import fit_inputs, is_dask, map_rows
from thresher.data.labels import places_among
from thresher.data.schema import Schema
from thresher.data.sparse_structure import check_structure
from thresher.data.tables import numeric_target, reject_text
from thresher.data.typing import Column, Table
from thresher.models.estimator import Parts
from thresher.models.fit import Planner, Published
from thresher.models.tables import TabularModel
from thresher.privacy import logs
from thresher.privacy.arrays import Floats
from thresher.privacy.model_hash import linear_parts
from thresher.privacy.plan import Plan
from thresher.report.summary import Summary, summary_of
from thresher.vaults.losses import LOGISTIC, SQUARED, Loss, is_own
from thresher.vaults.penalties import NO_PENALTY, Penalty
from thresher.vaults.problem import LinearProblem, linear_problem

__all__ = ["KINDS", "ClassifierModel", "LinearModel", "Predictions", "RegressorModel", "Target", "class_membership"]

Target = float | tuple[float, float] | None

Predictions = Any
"""An array of NumPy for rows in memory, of Dask for rows that are not."""

WITH_UNCERTAINTY = ("pursuit",)


Model = TypeVar("Model", bound="LinearModel")


def _lazy_for_dask(method: Callable[[Model, Table], Predictions]) -> Callable[[Model, Table], Predictions]:
    """A method of rows that answers a Dask collection with a Dask array, computed when it is asked for."""

    @functools.wraps(method)
    def answer(self: Model, X: Table) -> Predictions:
        return map_rows(getattr(self, method.__name__), X) if is_dask(X) else method(self, X)

    return answer


KINDS: dict[str, type[LinearModel]] = {}
"""The front doors by name, wherever they are: models are read back from files by it."""


class LinearModel(TabularModel):
    """What all front doors share."""

    _loss: Loss
    """What is fitted. A subclass may have another: docs/adding.md."""

    _columns: list[str] | None = None
    """Names of columns that the rows themselves do not carry."""

    uncertainty_: Uncertainty | None = None
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
            loss=self._loss_of(outputs),
            bounds=self._bounds(),
            intercept=self.fit_intercept,
            outputs=outputs,
            penalty=self._penalty(),
        )

    def _sparsity(self, n_features: int) -> int:
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

    def _released(self) -> Parts:
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
        reject_text(X)
        X = self._checked(X, accept_sparse=("csc", "csr"), reset=False)
        return safe_sparse_dot(X, self._coefficients().T)  # type: ignore[no-any-return]


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
            return self._fit(X, y, self._assumed(), self._owners(groups, len(y)))

    @without_causes
    @_lazy_for_dask
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


class ClassifierModel(ClassifierMixin, LinearModel):
    """A linear model of two or more classes."""

    _loss: Loss = LOGISTIC
    _task = "classification"
    _labels: NDArray[Any] | None = None

    @without_causes
    def fit(self, X: Table, y: Column = None, *, groups: Column = None, **unsupported: object) -> Self:
        """Fit on the rows of ``X`` and the labels ``y``; ``groups`` holds the id of each row's person, if some have
        several rows. With ``schema``, ``X`` is a table, a frame or the path of a file, that holds labels and people,
        too."""
        X, y, groups = self._table(X, y, groups)
        with fit_inputs(X, y) as (X, y):
            X, y = self._validate(X, y, unsupported, groups)
            classes, belongs, assumptions = self._classes_in(y)
            with self._labelled(classes):
                return self._fit(X, belongs, (*assumptions, *self._assumed()), self._owners(groups, len(y)))

    @contextmanager
    def _labelled(self, classes: NDArray[Any]) -> Iterator[None]:
        """A fit keeps these labels with its coefficients, before its certificate is made; one that fails, neither."""
        self._labels = classes
        try:
            yield
        finally:
            del self._labels

    def _keep(self, theta: Floats, plan: Plan) -> None:
        super()._keep(theta, plan)
        if self._labels is not None:
            self.classes_ = self._labels

    def _classes_in(self, y: Column) -> tuple[NDArray[Any], Floats, tuple[str, ...]]:
        """The classes, which row belongs to which, and what must be assumed where the data named them."""
        assumptions: tuple[str, ...] = ()
        declared = self._classes_declared()
        classes = np.unique(y if declared is None else declared)
        if declared is None:
            check_classification_targets(y)  # only here: it warns if rows are few for their labels, a private fact
            assumptions = ("the class labels are public: they were read from the data; give classes= instead",)
        if len(classes) < 2:
            raise ValueError(
                f"{len(classes)} class(es) in {'y' if declared is None else f'classes={declared!r}'}; "
                "a classifier needs at least two, for example classes=[0, 1]"
            )
        places = places_among(classes, y)
        if np.any(places < 0):
            raise ValueError(
                f"y holds a label that is not in classes={declared!r}; add it, or give those rows one of the classes"
            )
        belongs = places == 1 if len(classes) == 2 else np.equal.outer(places, np.arange(len(classes)))
        return classes, belongs.astype(np.float64), assumptions

    def _classes_declared(self) -> Any:
        """The public labels; None if nobody declared them."""
        return self.classes if self.schema is None else Schema.of(self.schema).target.categories

    @without_causes
    @_lazy_for_dask
    def decision_function(self, X: Table) -> Floats:
        """The log-odds of ``classes_[1]``, or a score for each of more than two classes."""
        return self._margins(X)

    @without_causes
    @_lazy_for_dask
    def predict_proba(self, X: Table) -> Floats:
        """The chance of each of ``classes_`` for each row."""
        margins = self._margins(X)
        chances = self._loss_of(1 if margins.ndim == 1 else margins.shape[1]).inverse_link(margins)
        return np.column_stack([1 - chances, chances]) if chances.ndim == 1 else chances

    @without_causes
    @_lazy_for_dask
    def predict(self, X: Table) -> NDArray[Any]:
        """The likeliest class of each row."""
        margins = self._margins(X)
        at = (margins > 0).astype(int) if margins.ndim == 1 else margins.argmax(axis=1)
        labels: NDArray[Any] = self.classes_[at]
        return labels

    @without_causes
    def score(self, X: Table, y: Column, sample_weight: Column = None) -> float:
        """The share of rows whose class is predicted. Not private: for rows that need no protection."""
        from sklearn.metrics import accuracy_score  # takes long to import

        check_structure(y, "y")
        predicted = self.predict(X)
        with concealed_comparison("a class"):
            return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def _outputs_declared(self) -> int:
        declared = self._classes_declared()
        known = 2 if declared is None else len(np.unique(declared))
        return known if known > 2 else 1


def class_membership(model: ClassifierModel, y: Any) -> Floats:
    """Which row belongs to which class a model declares: 1 for the second of two, a column for each of more."""
    return model._classes_in(y)[1]


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _one_or_all(values: list[Any]) -> Any:
    """The only value, or the list of several outputs' values."""
    return values[0] if len(values) == 1 else values
