"""The scikit-learn front doors of the central model: a curator holds the rows."""

from __future__ import annotations

from typing import Any

from thresher.algorithms import Algorithm
from thresher.models.linear import ClassifierModel, RegressorModel, Target

__all__ = ["SparseClassifier", "SparseRegressor"]


class SparseRegressor(RegressorModel):
    """Sparse linear regression with differential privacy.

    Parameters
    ----------
    sparsity : int
        How many coefficients the model may have.
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
        "auto" (pursuit or dp-ight, by public bounds), "pursuit", "dp-ight", "peeling", "frank-wolfe",
        "noisy-frank-wolfe", "two-stage", "dpsl-kt", "output-perturbation", "ight" (not private), or an instance from
        ``thresher.algorithms``.
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
        With "pursuit": standard errors (privacy noise, sampling) and stability of the selected coefficients, an
        ``thresher.algorithms.uncertainty.Uncertainty``; otherwise None. ``intervals(level)`` are the intervals.
    auxiliary_
        With "dpsl-kt": the labelled public data set (rows, labels) that was released.
    """

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
        hardened: bool = True,
        ledger: Any = None,
        dataset: str | None = None,
        random_state: Any = None,
        schema: Any = None,
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
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state
        self.schema = schema
        self.verbose = verbose


class SparseClassifier(ClassifierModel):
    """Sparse logistic regression of two or more classes with differential privacy.

    Parameters are those of ``SparseRegressor`` without ``target_bound``, and ``classes``: the labels, public. If
    they are not given they are read from the data, and the certificate lists that as an assumption. With K > 2 classes
    there are K rows of coefficients, ``sparsity`` in each on average.
    """

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
        hardened: bool = True,
        ledger: Any = None,
        dataset: str | None = None,
        random_state: Any = None,
        schema: Any = None,
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
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state
        self.schema = schema
        self.verbose = verbose
