"""The scikit-learn front doors of the central model: a curator holds the rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from thresher.models.classifier import ClassifierModel
from thresher.models.options import SparseOptions
from thresher.models.regressor import RegressorModel

if TYPE_CHECKING:
    from thresher.models.options import Labels, Target

__all__ = ["SparseClassifier", "SparseRegressor"]


@dataclass(eq=False, repr=False)
class SparseRegressor(SparseOptions, RegressorModel):
    """Sparse linear regression with differential privacy.

    Parameters
    ----------
    sparsity : int or None
        How many coefficients the model may have. None: as many as pay for their noise, at most 50 (with "newton", which
        "auto" then takes).
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
        "auto" (newton, pursuit, dp-ight or screened-ight, by public facts), "newton", "pursuit", "dp-ight",
        "screened-ight", "peeling", "frank-wolfe", "noisy-frank-wolfe", "two-stage", "dpsl-kt", "output-perturbation",
        "ight" (not private), or an instance from ``thresher.algorithms``.
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
    coef_, intercept_, support_
        The model; ``support_`` holds the positions of its nonzero coefficients.
    certificate_, plan_, algorithm_
        What it cost, what was planned, and what ran.
    uncertainty_
        With "newton" and "pursuit": standard errors (privacy noise, sampling) and stability of the selected
        coefficients, an ``thresher.algorithms.uncertainty.Uncertainty``; otherwise None. ``intervals(level)`` are the
        intervals.
    why_no_intervals_
        With "newton": a sentence that says why ``uncertainty_`` is None, if it is; otherwise None.
    auxiliary_
        With "dpsl-kt": the labelled public data set (rows, labels) that was released.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (4000, 50))
    >>> y = 2 * X[:, 3] - X[:, 7] + rng.normal(0, 0.1, 4000)
    >>> model = SparseRegressor(2, epsilon=1.0, delta=1e-6, feature_bound=1.0, target_bound=4.0, random_state=0)
    >>> model.fit(X, y).support_
    array([3, 7])
    >>> model.certificate_.epsilon, model.certificate_.verify().ok
    (1.0, True)
    """

    target_bound: Target = field(default=None, kw_only=True)


@dataclass(eq=False, repr=False)
class SparseClassifier(SparseOptions, ClassifierModel):
    """Sparse logistic regression of two or more classes with differential privacy.

    Parameters
    ----------
    sparsity : int or None
        How many coefficients the model may have; with K > 2 classes, how many of each class on average. None: as many
        as pay for their noise, at most 50 (with "newton", which "auto" then takes).
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
        "auto" (newton, pursuit, dp-ight or screened-ight, by public facts), "newton", "pursuit", "dp-ight",
        "screened-ight", "peeling", "frank-wolfe", "noisy-frank-wolfe", "two-stage", "dpsl-kt", "output-perturbation",
        "ight" (not private), or an instance from ``thresher.algorithms``.
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
    coef_, intercept_, support_
        The model; ``support_`` holds the positions of its nonzero coefficients. With K > 2 classes there are K rows of
        coefficients and K intercepts.
    classes_
        The labels.
    certificate_, plan_, algorithm_
        What it cost, what was planned, and what ran.
    uncertainty_
        With "newton" and "pursuit": standard errors (privacy noise, sampling) and stability of the selected
        coefficients, an ``thresher.algorithms.uncertainty.Uncertainty``; otherwise None. ``intervals(level)`` are the
        intervals.
    why_no_intervals_
        With "newton": a sentence that says why ``uncertainty_`` is None, if it is; otherwise None.
    auxiliary_
        With "dpsl-kt": the labelled public data set (rows, labels) that was released.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import SparseClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (8000, 50))
    >>> y = np.where(4 * X[:, 3] - 4 * X[:, 7] + rng.logistic(size=8000) > 0, "yes", "no")
    >>> model = SparseClassifier(2, epsilon=2.0, delta=1e-6, feature_bound=1.0, classes=["no", "yes"], random_state=0)
    >>> model.fit(X, y).support_
    array([3, 7])
    >>> model.predict_proba(X[:1]).shape
    (1, 2)
    """

    classes: Labels = field(default=None, kw_only=True)
