"""Linear models of two or more classes, whoever holds the rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from thresher.data.concealment import concealed_comparison, without_causes
from thresher.data.dask import fit_inputs
from thresher.data.labels import check_classes, places_among
from thresher.data.schema import Schema
from thresher.data.sparse_structure import check_structure
from thresher.data.typing import Column, Table
from thresher.models.linear import LinearModel, lazy_for_dask
from thresher.privacy.arrays import Floats
from thresher.privacy.plan import Plan
from thresher.vaults.losses import LOGISTIC, Loss

__all__ = ["ClassifierModel", "class_membership", "classes_in"]


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
            with self._with_labels(classes):
                return self._fit(X, belongs, (*assumptions, *self._assumed()), self._people_of(groups, len(y)))

    @contextmanager
    def _with_labels(self, classes: NDArray[Any]) -> Iterator[None]:
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
        if self.classes is not None:  # a schema's are texts, and labels are read as it declares
            check_classes(classes)
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
    @lazy_for_dask
    def decision_function(self, X: Table) -> Floats:
        """The log-odds of ``classes_[1]``, or a score for each of more than two classes."""
        return self._margins(X)

    @without_causes
    @lazy_for_dask
    def predict_proba(self, X: Table) -> Floats:
        """The chance of each of ``classes_`` for each row."""
        margins = self._margins(X)
        chances = self._loss_of(1 if margins.ndim == 1 else margins.shape[1]).inverse_link(margins)
        return np.column_stack([1 - chances, chances]) if chances.ndim == 1 else chances

    @without_causes
    @lazy_for_dask
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


def classes_in(model: ClassifierModel, y: Column) -> tuple[NDArray[Any], Floats, tuple[str, ...]]:
    """The classes, which row belongs to which, and what must be assumed where the data named them."""
    return model._classes_in(y)


def class_membership(model: ClassifierModel, y: Any) -> Floats:
    """Which row belongs to which class a model declares: 1 for the second of two, a column for each of more."""
    return model._classes_in(y)[1]
