"""The scikit-learn front doors of dense models: every feature may have a coefficient, a curator holds the rows."""

from __future__ import annotations

from typing import Any

from thresher.algorithms import Algorithm, resolve_dense
from thresher.models.linear import ClassifierModel, LinearModel, RegressorModel, Target
from thresher.vaults.penalties import Penalty

__all__ = ["DenseClassifier", "DenseRegressor"]

LOSSES = ("logistic", "nonconvex-logistic")


class _DenseModel(LinearModel):
    """What the two front doors share."""

    def _algorithm(self, outputs: int) -> Algorithm:
        return resolve_dense(self.algorithm)

    def _sparsity(self, n_features: int) -> int:
        return n_features

    def _penalty(self) -> Penalty:
        return Penalty("ridge", self.penalty)


class DenseClassifier(_DenseModel, ClassifierModel):
    """Logistic regression of two or more classes on all features, with differential privacy.

    Parameters that are not listed are those of ``thresher.SparseRegressor``.

    Parameters
    ----------
    epsilon : float
        The privacy budget of the fit; ``float("inf")`` switches privacy off.
    delta : float
        Of the same budget. None means 1/n^2.
    algorithm : str or instance
        "dp-srm", "dp-lssgd", "dp-lsadam", "dp-sgd", "dp-adam", "dp-gd", "dp-agd", "rrpsgd"; not private: "storm",
        "sgd", "lssgd". Or an instance from ``thresher.algorithms``, such as ``DPSGD(passes=10)``.
    feature_bound, row_bound : float
        |x_ij| and ||x_i||_2 are clipped to these public bounds. At least one is required.
    loss : "logistic" or "nonconvex-logistic"
        What ``penalty`` multiplies: the sum of t^2 / 2 over the coefficients t, or of t^2 / (1 + t^2).
    penalty : float
        Public, so it needs no noise.
    classes : sequence
        The labels, public. If they are not given they are read from the data, and the certificate says so.

    Attributes
    ----------
    coef_, intercept_, classes_, certificate_, plan_, algorithm_
        The model, what it cost, what was planned, and what ran.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        algorithm: str | Algorithm = "dp-srm",
        feature_bound: Any = None,
        row_bound: float | None = None,
        loss: str = "logistic",
        penalty: float = 0.0,
        classes: Any = None,
        adjacency: str = "replace-one",
        fit_intercept: bool = True,
        n_public: int | None = None,
        hardened: bool = True,
        ledger: Any = None,
        dataset: str | None = None,
        random_state: Any = None,
        schema: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.algorithm = algorithm
        self.feature_bound = feature_bound
        self.row_bound = row_bound
        self.loss = loss
        self.penalty = penalty
        self.classes = classes
        self.adjacency = adjacency
        self.fit_intercept = fit_intercept
        self.n_public = n_public
        self.hardened = hardened
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state
        self.schema = schema
        self.verbose = verbose

    def _penalty(self) -> Penalty:
        if self.loss not in LOSSES:
            raise ValueError(f"loss={self.loss!r} must be one of {', '.join(map(repr, LOSSES))}")
        return Penalty("nonconvex" if self.loss == "nonconvex-logistic" else "ridge", self.penalty)


class DenseRegressor(_DenseModel, RegressorModel):
    """Linear regression on all features, with differential privacy.

    Parameters are those of ``DenseClassifier`` without ``loss`` and ``classes``; the penalty is a ridge. And
    ``target_bound``: the target is clipped to [-B, B], or to a pair (low, high). Required, and public.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        algorithm: str | Algorithm = "dp-srm",
        feature_bound: Any = None,
        row_bound: float | None = None,
        target_bound: Target = None,
        penalty: float = 0.0,
        adjacency: str = "replace-one",
        fit_intercept: bool = True,
        n_public: int | None = None,
        hardened: bool = True,
        ledger: Any = None,
        dataset: str | None = None,
        random_state: Any = None,
        schema: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.algorithm = algorithm
        self.feature_bound = feature_bound
        self.row_bound = row_bound
        self.target_bound = target_bound
        self.penalty = penalty
        self.adjacency = adjacency
        self.fit_intercept = fit_intercept
        self.n_public = n_public
        self.hardened = hardened
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state
        self.schema = schema
        self.verbose = verbose
