"""The scikit-learn front doors of dense models: every feature may have a coefficient, a curator holds the rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from thresher.algorithms import Algorithm, resolve_dense
from thresher.models.classifier import ClassifierModel
from thresher.models.linear import LinearModel
from thresher.models.options import DenseOptions
from thresher.models.regressor import RegressorModel
from thresher.vaults.penalties import Penalty, PenaltyName

if TYPE_CHECKING:
    from thresher.models.options import Labels, LogisticName, Target

__all__ = ["DenseClassifier", "DenseRegressor"]

PENALTIES: dict[str, PenaltyName] = {"logistic": "ridge", "nonconvex-logistic": "nonconvex"}
"""By the loss: the non-convex logistic one is the logistic loss with a penalty that levels off."""


class _DenseModel(DenseOptions, LinearModel):
    """What the two front doors share."""

    def _algorithm(self, outputs: int) -> Algorithm:
        return resolve_dense(self.algorithm, outputs)

    def _sparsity(self, n_features: int) -> int:
        return n_features

    def _penalty(self) -> Penalty:
        return Penalty("ridge", self.penalty)


@dataclass(eq=False, repr=False)
class DenseClassifier(_DenseModel, ClassifierModel):
    """Logistic regression of two or more classes on all features, with differential privacy.

    Parameters
    ----------
    epsilon : float
        The privacy budget of the fit; ``float("inf")`` switches privacy off.
    delta : float
        Of the same budget. None means 1/n^2.
    feature_bound : float or one per column
        |x_ij| is clipped to this public bound.
    row_bound : float
        ||x_i||_2 is clipped to this public bound. At least one of the two bounds is required.
    classes : sequence
        The labels, public. If they are not given they are read from the data, and the certificate lists that as an
        assumption.
    algorithm : str or instance
        "auto" (newton where there are few columns, else dp-srm), "newton", "dp-srm", "dp-lssgd", "dp-lsadam", "dp-sgd",
        "dp-adam", "dp-gd", "dp-agd", "rrpsgd", "objective-perturbation"; not private: "storm", "sgd", "lssgd". Or an
        instance from ``thresher.algorithms``, such as ``DPSGD(passes=10)``.
    loss : "logistic" or "nonconvex-logistic"
        What ``penalty`` multiplies: the sum of t^2 / 2 over the coefficients t, or of t^2 / (1 + t^2).
    penalty : float
        Public, so it needs no noise.
    adjacency : "replace-one" or "add-remove"
        Which data sets count as neighbours.
    fit_intercept : bool
        Fit a constant as well. It is one more coordinate of every release and costs 0.8 % more noise.
    n_public : int
        The public row count (number of people, if ``fit`` takes ``groups``), with ``adjacency="add-remove"``.
    hardened : bool
        Put values and noise on an exact grid, so that the noise's floating point cannot leak. Where noise has no exact
        sampler (objective perturbation, l2-Laplace), and with False, the certificate is ``conditional``: it says that
        noise is taken for real numbers.
    ledger : Ledger or its URL
        The account book that pays: the plan's cost is reserved in it before a row is read (``thresher.Ledger``).
    dataset : str
        The name of the ledger's account.
    random_state : int
        Repeatable noise, for tests and research only; it marks the certificate.
    schema : Schema, path or dict
        Public facts about a table, with which ``fit`` and ``predict`` take raw tables; the bounds are then its.
        ``from_schema(schema, ...)`` makes such a model (``thresher.Schema``).
    verbose : int
        1 shows a progress bar on a terminal.

    Attributes
    ----------
    coef_, intercept_, classes_
        The model.
    certificate_, plan_, algorithm_
        What it cost, what was planned, and what ran.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import DenseClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(0, 0.4, (2000, 5))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> model = DenseClassifier(epsilon=2.0, delta=1e-6, row_bound=1.0, classes=[0, 1], random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.8
    True
    """

    loss: LogisticName = field(default="logistic", kw_only=True)
    classes: Labels = field(default=None, kw_only=True)

    def _penalty(self) -> Penalty:
        if self.loss not in PENALTIES:
            raise ValueError(f"loss={self.loss!r} must be one of {', '.join(map(repr, PENALTIES))}")
        return Penalty(PENALTIES[self.loss], self.penalty)


@dataclass(eq=False, repr=False)
class DenseRegressor(_DenseModel, RegressorModel):
    """Linear regression on all features, with differential privacy.

    Parameters
    ----------
    epsilon : float
        The privacy budget of the fit; ``float("inf")`` switches privacy off.
    delta : float
        Of the same budget. None means 1/n^2.
    feature_bound : float or one per column
        |x_ij| is clipped to this public bound.
    row_bound : float
        ||x_i||_2 is clipped to this public bound. At least one of the two bounds is required.
    target_bound : float or (low, high)
        The target is clipped to [-B, B], or to [low, high]. Required, and public.
    algorithm : str or instance
        "auto" (newton where there are few columns, else dp-srm), "newton", "dp-srm", "dp-lssgd", "dp-lsadam", "dp-sgd",
        "dp-adam", "dp-gd", "dp-agd", "rrpsgd", "objective-perturbation"; not private: "storm", "sgd", "lssgd". Or an
        instance from ``thresher.algorithms``, such as ``DPSGD(passes=10)``.
    penalty : float
        Of half the sum of squared coefficients. Public, so it needs no noise.
    adjacency : "replace-one" or "add-remove"
        Which data sets count as neighbours.
    fit_intercept : bool
        Fit a constant as well. It is one more coordinate of every release and costs 0.8 % more noise.
    n_public : int
        The public row count (number of people, if ``fit`` takes ``groups``), with ``adjacency="add-remove"``.
    hardened : bool
        Put values and noise on an exact grid, so that the noise's floating point cannot leak. Where noise has no exact
        sampler (objective perturbation, l2-Laplace), and with False, the certificate is ``conditional``: it says that
        noise is taken for real numbers.
    ledger : Ledger or its URL
        The account book that pays: the plan's cost is reserved in it before a row is read (``thresher.Ledger``).
    dataset : str
        The name of the ledger's account.
    random_state : int
        Repeatable noise, for tests and research only; it marks the certificate.
    schema : Schema, path or dict
        Public facts about a table, with which ``fit`` and ``predict`` take raw tables; the bounds are then its.
        ``from_schema(schema, ...)`` makes such a model (``thresher.Schema``).
    verbose : int
        1 shows a progress bar on a terminal.

    Attributes
    ----------
    coef_, intercept_
        The model.
    certificate_, plan_, algorithm_
        What it cost, what was planned, and what ran.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import DenseRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(0, 0.4, (2000, 5))
    >>> y = X[:, 0] - X[:, 1] + rng.normal(0, 0.1, 2000)
    >>> model = DenseRegressor(epsilon=2.0, delta=1e-6, row_bound=1.0, target_bound=2.0, random_state=0).fit(X, y)
    >>> model.coef_.shape
    (5,)
    """

    target_bound: Target = field(default=None, kw_only=True)
