"""The scikit-learn front doors: validate, plan, open a vault, run, certify."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from thresher.algorithms import Algorithm, resolve
from thresher.budget import Adjacency, Budget, PrivacyWarning
from thresher.certificate import Certificate, certify
from thresher.clipping import Bounds
from thresher.plan import Plan, Problem
from thresher.progress import answers_bar
from thresher.randomness import NoiseSource
from thresher.tables import numeric_target, reject_text, without_values
from thresher.vaults import CentralVault

__all__ = ["SparseClassifier", "SparseRegressor", "load_model"]

Floats = NDArray[np.float64]
Target = float | tuple[float, float] | None


class _SparseModel(BaseEstimator):
    """What the two front doors share."""

    _loss: str

    def plan(self, n_samples: int, n_features: int) -> Plan:
        """What would be released for data of this shape, and with what noise. Touches no data, spends nothing."""
        problem = Problem(
            n=n_samples,
            d=n_features,
            sparsity=self.sparsity,
            loss=self._loss,
            bounds=self._bounds(),
            intercept=self.fit_intercept,
        )
        delta = n_samples**-2.0 if self.delta is None else self.delta
        budget = Budget(self.epsilon, delta, self.adjacency)
        plan = self._algorithm().plan(problem, budget)
        if plan.problem != problem or plan.budget != budget:
            raise ValueError(f"algorithm={self.algorithm!r} planned for another problem or budget than it was given")
        return plan

    def save(self, path: str | Path) -> None:
        """Write the model and its certificate as plain JSON."""
        check_is_fitted(self, "certificate_")
        params = {**self.get_params(), "algorithm": self.algorithm_, "random_state": None}
        model = {
            "format": "thresher-model-1",
            "class": type(self).__name__,
            "params": params,
            "n_features": self.n_features_in_,
            "feature_names": getattr(self, "feature_names_in_", np.empty(0)).tolist() or None,
            "classes": getattr(self, "classes_", np.empty(0)).tolist() or None,
            "support": self.support_.tolist(),
            "coefficients": self._coefficients()[self.support_].tolist(),
            "intercept": float(np.ravel(self.intercept_)[0]),
            "certificate": json.loads(self.certificate_.to_json()),
        }
        Path(path).write_text(json.dumps(model, indent=2, allow_nan=False, default=_plain) + "\n")

    def _fit(self, X: Any, y: Floats, assumptions: tuple[str, ...]) -> Self:
        n, d = X.shape
        algorithm = self._algorithm()
        plan = self.plan(n if self.n_public is None else self.n_public, d)
        adjacency = plan.budget.adjacency
        if adjacency is Adjacency.REPLACE_ONE and self.n_public is not None:
            raise ValueError(
                f"n_public={self.n_public!r} has a meaning only with adjacency='add-remove'; leave it None"
            )
        if adjacency is Adjacency.ADD_REMOVE and self.n_public is None:
            assumptions += (f"the number of rows, {n}, is public: it was read from the data; declare n_public instead",)
        if self.n_public is not None and not n / 2 <= self.n_public <= 2 * n:
            raise ValueError(
                f"n_public={self.n_public!r} is not within a factor of two of the number of rows; correct it"
            )
        if self.random_state is not None:
            assumptions += ("random_state was set: whoever knows it can remove the noise",)
        _warn_about(plan)
        self.__dict__.pop("certificate_", None)  # from here on the old model is gone: an interrupted fit leaves none
        with (
            answers_bar(plan, enabled=self.verbose > 0) as watch,
            CentralVault(X, y, plan, NoiseSource(self.random_state, hardened=self.hardened), watch) as vault,
        ):
            theta = algorithm.run(vault)
            answers = vault.answers
            randomness = vault.randomness
        certificate = certify(plan, answers, randomness, assumptions)
        if not certificate.verify():
            raise RuntimeError(f"the certificate would not verify, so the model is dropped: {certificate.verify()}")
        self._keep(theta, plan)
        self.plan_ = plan
        self.algorithm_ = plan.algorithm
        self.certificate_ = certificate
        return self

    def _keep(self, theta: Floats, plan: Plan) -> None:
        problem = plan.problem
        coefficients = theta[: problem.d]
        intercept = problem.target_centre
        if problem.intercept:
            intercept += problem.intercept_column * theta[problem.d]
        self._store(coefficients, intercept)

    def _store(self, coefficients: Floats, intercept: float) -> None:
        self.coef_: Floats = coefficients
        self.intercept_: Any = intercept
        self.support_ = np.flatnonzero(coefficients)

    def _coefficients(self) -> Floats:
        return np.ravel(self.coef_)

    def _algorithm(self) -> Algorithm:
        return resolve(self.algorithm)

    def _bounds(self) -> Bounds:
        feature = self.feature_bound
        if feature is not None and np.ndim(feature) > 0:
            try:
                feature = tuple(float(bound) for bound in feature)
            except (TypeError, ValueError):
                raise ValueError(f"feature_bound={feature!r} must be a positive number, or one per column") from None
        return Bounds(feature, self.row_bound, self._target_range())

    def _target_range(self) -> tuple[float, float] | None:
        return None

    def _validate(self, X: Any, y: Any, unsupported: dict[str, Any]) -> tuple[Any, Any]:
        if unsupported:
            name = next(iter(unsupported))
            raise TypeError(
                f"{name} is not supported by {type(self).__name__}.fit: a weighted row would have another sensitivity "
                "than the one that is paid for; drop the argument"
            )
        reject_text(X)
        return self._checked(X, y, accept_sparse=("csc", "csr", "coo"), ensure_min_samples=2)  # type: ignore[no-any-return]

    def _checked(self, X: Any, *y: Any, **requirements: Any) -> Any:
        """scikit-learn's validation, its messages without the values they would print."""
        try:
            return validate_data(self, X, *y, dtype=[np.float64, np.float32], **requirements)
        except ValueError as error:
            raise ValueError(without_values(str(error))) from None

    def _margins(self, X: Any) -> Floats:
        check_is_fitted(self, "certificate_")
        reject_text(X)
        X = self._checked(X, accept_sparse=("csc", "csr"), reset=False)
        margins: Floats = np.ravel(safe_sparse_dot(X, self._coefficients())) + np.ravel(self.intercept_)[0]
        return margins

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class SparseRegressor(RegressorMixin, _SparseModel):
    """Sparse linear regression with differential privacy.

    Parameters
    ----------
    sparsity : int
        How many coefficients the model may have.
    epsilon, delta : float
        The privacy budget of the fit. ``delta=None`` means 1/n^2, ``epsilon=float("inf")`` switches privacy off.
    feature_bound : float or one per column
        |x_ij| is clipped to this public bound.
    row_bound : float
        ||x_i||_2 is clipped to this public bound. At least one of the two bounds is required.
    target_bound : float or (low, high)
        The target is clipped to [-B, B], or to [low, high]. Required, and public.
    algorithm : str or instance
        "auto", "dp-ight", "output-perturbation", "ight", or an instance from :mod:`thresher.algorithms`.
    adjacency : "replace-one" or "add-remove"
        Which data sets count as neighbours.
    fit_intercept : bool
        Fit a constant as well. It is one more coordinate of every release and costs 0.8 % more noise.
    n_public : int
        The public row count, with ``adjacency="add-remove"``.
    hardened : bool
        Put values and noise on an exact grid, so that the noise's floating point cannot leak.
    random_state : int
        Repeatable noise, for tests and research only; it marks the certificate.
    verbose : int
        1 shows a progress bar on a terminal.

    Attributes
    ----------
    coef_, intercept_, support_
        The model; ``support_`` holds the positions of its nonzero coefficients.
    certificate_, plan_, algorithm_
        What it cost, what was planned, and what ran.
    """

    _loss = "squared"

    def __init__(
        self,
        sparsity: int = 10,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        feature_bound: Any = None,
        row_bound: float | None = None,
        target_bound: Target = None,
        algorithm: str | Algorithm = "auto",
        adjacency: str = "replace-one",
        fit_intercept: bool = True,
        n_public: int | None = None,
        hardened: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.sparsity = sparsity
        self.epsilon = epsilon
        self.delta = delta
        self.feature_bound = feature_bound
        self.row_bound = row_bound
        self.target_bound = target_bound
        self.algorithm = algorithm
        self.adjacency = adjacency
        self.fit_intercept = fit_intercept
        self.n_public = n_public
        self.hardened = hardened
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, **unsupported: Any) -> Self:
        """Fit on the rows of ``X`` (NumPy, SciPy sparse, pandas, polars) and the targets ``y``."""
        X, y = self._validate(X, numeric_target(y), unsupported)
        return self._fit(X, y, ())

    def predict(self, X: Any) -> Floats:
        return self._margins(X)

    def _target_range(self) -> tuple[float, float] | None:
        bound = self.target_bound
        if bound is None:
            return None
        try:
            low, high = (-float(bound), float(bound)) if np.ndim(bound) == 0 else map(float, bound)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise ValueError(f"target_bound={bound!r} must be a positive number or a pair (low, high)") from None
        return (low, high)


class SparseClassifier(ClassifierMixin, _SparseModel):
    """Sparse logistic regression of a two-class target with differential privacy.

    Parameters are those of :class:`SparseRegressor` without ``target_bound``, and ``classes``: the two labels,
    public. If they are not given they are read from the data, and the certificate lists that as an assumption.
    """

    _loss = "logistic"

    def __init__(
        self,
        sparsity: int = 10,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        feature_bound: Any = None,
        row_bound: float | None = None,
        classes: Any = None,
        algorithm: str | Algorithm = "auto",
        adjacency: str = "replace-one",
        fit_intercept: bool = True,
        n_public: int | None = None,
        hardened: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.sparsity = sparsity
        self.epsilon = epsilon
        self.delta = delta
        self.feature_bound = feature_bound
        self.row_bound = row_bound
        self.classes = classes
        self.algorithm = algorithm
        self.adjacency = adjacency
        self.fit_intercept = fit_intercept
        self.n_public = n_public
        self.hardened = hardened
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, **unsupported: Any) -> Self:
        """Fit on the rows of ``X`` and the labels ``y``."""
        X, y = self._validate(X, y, unsupported)
        check_classification_targets(y)
        assumptions: tuple[str, ...] = ()
        classes = np.unique(y if self.classes is None else self.classes)
        if self.classes is None:
            assumptions = ("the class labels are public: they were read from the data; give classes= instead",)
        if len(classes) != 2:
            raise ValueError(
                f"Only binary classification is supported. {len(classes)} class(es) in "
                f"{'y' if self.classes is None else f'classes={self.classes!r}'}; give two, for example classes=[0, 1]"
            )
        if not np.all(np.isin(y, classes)):
            raise ValueError(f"y holds a label that is not in classes={self.classes!r}; add it or drop those rows")
        self._fit(X, (y == classes[1]).astype(np.float64), assumptions)
        self.classes_ = classes
        return self

    def decision_function(self, X: Any) -> Floats:
        """The log-odds of ``classes_[1]``."""
        return self._margins(X)

    def predict_proba(self, X: Any) -> Floats:
        positive = expit(self._margins(X))
        return np.column_stack([1 - positive, positive])

    def predict(self, X: Any) -> NDArray[Any]:
        positive = self._margins(X) > 0
        labels: NDArray[Any] = self.classes_[positive.astype(int)]
        return labels

    def _store(self, coefficients: Floats, intercept: float) -> None:
        self.coef_, self.intercept_ = coefficients[None, :], np.array([intercept])
        self.support_ = np.flatnonzero(coefficients)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def load_model(path: str | Path) -> SparseRegressor | SparseClassifier:
    """A model written by :meth:`SparseRegressor.save`, ready to predict, with its certificate."""
    model = json.loads(Path(path).read_text())
    if not isinstance(model, dict) or model.get("format") != "thresher-model-1":
        raise ValueError(f"{path} is not a model file written by thresher's save(); its 'format' is missing or unknown")
    known = {cls.__name__: cls for cls in (SparseRegressor, SparseClassifier)}
    estimator: Any = known[model["class"]](**model["params"])
    coefficients = np.zeros(model["n_features"])
    coefficients[model["support"]] = model["coefficients"]
    estimator._store(coefficients, model["intercept"])
    estimator.n_features_in_ = model["n_features"]
    if model["feature_names"]:
        estimator.feature_names_in_ = np.array(model["feature_names"], dtype=object)
    if model["classes"]:
        estimator.classes_ = np.array(model["classes"])
    estimator.certificate_ = Certificate.from_dict(model["certificate"])
    estimator.algorithm_ = estimator.certificate_.algorithm
    return estimator  # type: ignore[no-any-return]


def _warn_about(plan: Plan) -> None:
    budget, n = plan.budget, plan.problem.n
    if not budget.private:
        warnings.warn(
            "epsilon is infinite: privacy is OFF, the model may reveal single rows; never publish it",
            PrivacyWarning,
            stacklevel=4,
        )
    elif plan.calibration == "printed":
        warnings.warn(
            f"calibration='printed': the noise printed in the paper costs epsilon={plan.epsilon:.4g} where "
            f"{budget.epsilon:g} is claimed; it is for reproduction only, use calibration='proved'",
            PrivacyWarning,
            stacklevel=4,
        )
    if budget.private and budget.delta >= 1 / n:
        warnings.warn(
            f"delta={budget.delta:g} is not below 1/n={1 / n:g}: it allows publishing some rows in the clear "
            "(erratum E-4); use delta=None for 1/n^2",
            PrivacyWarning,
            stacklevel=4,
        )


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)
