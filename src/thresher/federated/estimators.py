"""Front doors for parties that cannot share rows: a list of data sets in, one model and its certificate out.

All parties live in this process: a simulation, or, with a real back-end, a rehearsal. ``thresher federate`` runs each
party on a machine of its own (``thresher.federated.session``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np

from thresher.algorithms.protocol import Algorithm
from thresher.data.concealment import without_causes
from thresher.federated.model import Backend, DataPairs, DenseFederatedModel, FederatedModel
from thresher.models.classifier import ClassifierModel
from thresher.models.options import AdjacencyName
from thresher.models.regressor import RegressorModel, Target

if TYPE_CHECKING:
    from thresher.models.options import Bound, Labels, Seed

__all__ = [
    "FederatedDenseClassifier",
    "FederatedDenseRegressor",
    "FederatedSparseClassifier",
    "FederatedSparseRegressor",
]


@dataclass(eq=False, repr=False, kw_only=True)
class FederatedOptions:
    """What users choose of a fit by parties."""

    epsilon: float = 1.0
    delta: float | None = None
    feature_bound: Bound = None
    row_bound: float | None = None
    aggregation: Backend = "reference"
    adjacency: AdjacencyName = "replace-one"
    fit_intercept: bool = True
    random_state: Seed = None
    verbose: int = 0


@dataclass(eq=False, repr=False)
class FederatedSparseOptions(FederatedOptions):
    """Of a sparse model."""

    sparsity: int = 10
    algorithm: str | Algorithm = field(default="dp-ight", kw_only=True)


@dataclass(eq=False, repr=False)
class FederatedDenseOptions(FederatedOptions):
    """Of a model with a coefficient for every column."""

    epsilon: float = 1.0
    delta: float | None = None
    algorithm: str | Algorithm = field(default="mpc-grad-p", kw_only=True)
    penalty: float = field(default=0.0, kw_only=True)


class _FederatedRegressor(FederatedModel, RegressorModel):
    @without_causes
    def fit(self, data_sets: DataPairs) -> Self:  # type: ignore[override]
        """Fit on a list of pairs (X, y), one for each party: NumPy, SciPy sparse, pandas or polars."""
        rows, targets = self._party_blocks(data_sets)
        return self._fit(rows, np.concatenate(targets), ())


class _FederatedClassifier(FederatedModel, ClassifierModel):
    @without_causes
    def fit(self, data_sets: DataPairs) -> Self:  # type: ignore[override]
        """Fit on a list of pairs (X, y), one for each party; ``y`` holds labels."""
        rows, targets = self._party_blocks(data_sets)
        classes, belongs, assumptions = self._classes_in(np.concatenate(targets))
        with self._with_labels(classes):
            return self._fit(rows, belongs, assumptions)


@dataclass(eq=False, repr=False)
class FederatedSparseRegressor(FederatedSparseOptions, _FederatedRegressor):
    """Sparse linear regression over the rows of several parties, as if one curator had them all.

    ``fit`` takes a list of pairs (X, y), one for each party. How many rows each party holds is public.

    Parameters
    ----------
    sparsity : int
        How many coefficients the model may have.
    epsilon : float
        The privacy budget of the fit; ``float("inf")`` switches privacy off.
    delta : float
        Of the same budget. None means 1/n^2, for the n rows of all parties.
    feature_bound : float or sequence
        |x_ij| is clipped to this public bound: one for all columns, or one for each.
    row_bound : float
        ||x_i||_2 is clipped to this public bound. This or ``feature_bound`` is required.
    target_bound : float or (low, high)
        The target is clipped to [-B, B], or to [low, high]. Required, and public.
    algorithm : str or instance
        "dp-ight", "noisy-frank-wolfe", "mpc-out-p" (each party's own minimiser, averaged), or an instance from
        ``thresher.algorithms`` that asks for noisy gradients or one minimiser.
    aggregation : "reference", "mpyc", "spu" or "skellam"
        How the parties add up. "reference" does it in this process; the others run the real protocol between processes
        on this machine.
    adjacency : "replace-one" or "add-remove"
        Which data sets count as neighbours.
    fit_intercept : bool
        Fit a constant as well.
    random_state : int
        Repeatable noise, for tests and research only; it marks the certificate. With "reference" alone.
    verbose : int
        1 shows a progress bar on a terminal.

    Attributes
    ----------
    coef_, intercept_, support_
        The model; ``support_`` holds the positions of its nonzero coefficients.
    certificate_, plan_, algorithm_
        What it cost, what was planned, and what ran.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.federated import FederatedSparseRegressor
    >>> rng = np.random.default_rng(0)
    >>> def party(rows):
    ...     X = rng.uniform(-1, 1, (rows, 5))
    ...     return X, 2 * X[:, 0]
    >>> model = FederatedSparseRegressor(1, epsilon=2, delta=1e-6, feature_bound=1, target_bound=2, random_state=0)
    >>> model.fit([party(2000), party(3000)]).support_
    array([0])
    """

    target_bound: Target = field(default=None, kw_only=True)


@dataclass(eq=False, repr=False)
class FederatedSparseClassifier(FederatedSparseOptions, _FederatedClassifier):
    """Sparse logistic regression over the rows of several parties, as if one curator had them all.

    ``fit`` takes a list of pairs (X, y), one for each party, whose ``y`` are labels. How many rows each party holds is
    public.

    Parameters
    ----------
    sparsity : int
        How many coefficients the model may have.
    epsilon : float
        The privacy budget of the fit; ``float("inf")`` switches privacy off.
    delta : float
        Of the same budget. None means 1/n^2, for the n rows of all parties.
    feature_bound : float or sequence
        |x_ij| is clipped to this public bound: one for all columns, or one for each.
    row_bound : float
        ||x_i||_2 is clipped to this public bound. This or ``feature_bound`` is required.
    classes : sequence
        The labels, public. If they are not given they are read from the data, and the certificate says so.
    algorithm : str or instance
        "dp-ight", "noisy-frank-wolfe", "mpc-out-p" (each party's own minimiser, averaged), or an instance from
        ``thresher.algorithms`` that asks for noisy gradients or one minimiser.
    aggregation : "reference", "mpyc", "spu" or "skellam"
        How the parties add up. "reference" does it in this process; the others run the real protocol between processes
        on this machine.
    adjacency : "replace-one" or "add-remove"
        Which data sets count as neighbours.
    fit_intercept : bool
        Fit a constant as well.
    random_state : int
        Repeatable noise, for tests and research only; it marks the certificate. With "reference" alone.
    verbose : int
        1 shows a progress bar on a terminal.

    Attributes
    ----------
    coef_, intercept_, support_, classes_
        The model; ``support_`` holds the positions of its nonzero coefficients.
    certificate_, plan_, algorithm_
        What it cost, what was planned, and what ran.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.federated import FederatedSparseClassifier
    >>> rng = np.random.default_rng(0)
    >>> def party(rows):
    ...     X = rng.uniform(-1, 1, (rows, 5))
    ...     return X, X[:, 0] > 0
    >>> model = FederatedSparseClassifier(1, epsilon=2, delta=1e-6, feature_bound=1, classes=[0, 1], random_state=0)
    >>> model.fit([party(2000), party(3000)]).support_
    array([0])
    """

    classes: Labels = field(default=None, kw_only=True)


@dataclass(eq=False, repr=False)
class FederatedDenseClassifier(FederatedDenseOptions, DenseFederatedModel, _FederatedClassifier):
    """Logistic regression on all features over the rows of several parties: chapter 6 of the thesis, made sound.

    ``fit`` takes a list of pairs (X, y), one for each party, whose ``y`` are labels. How many rows each party holds is
    public.

    Parameters
    ----------
    epsilon : float
        The privacy budget of the fit; ``float("inf")`` switches privacy off.
    delta : float
        Of the same budget. None means 1/n^2, for the n rows of all parties.
    algorithm : str or instance
        "mpc-grad-p" (gradient descent with joint noise), "mpc-out-p" (the parties' own minimisers, averaged, with joint
        noise). Baselines where each party adds noise of its own: "local-grad-p", "local-out-p" and "local-obj-p"
        (noise in each party's objective; its ridge is at least what epsilon asks of the smallest party, whose size
        ``fit`` learns and ``plan`` does not know). "pathak" is "mpc-out-p" with the joint noise of the smallest party
        alone, m times more than needed. "rajkumar-agarwal" spends epsilon in every round: its certificate has the grade
        "printed" and no epsilon.
    aggregation : "reference", "mpyc", "spu" or "skellam"
        How the parties add up. "reference" does it in this process; the others run the real protocol between processes
        on this machine.
    feature_bound : float or sequence
        |x_ij| is clipped to this public bound: one for all columns, or one for each.
    row_bound : float
        ||x_i||_2 is clipped to this public bound. This or ``feature_bound`` is required.
    penalty : float
        The strength of the ridge. Public, so it needs no noise.
    classes : sequence
        The labels, public. If they are not given they are read from the data, and the certificate says so.
    adjacency : "replace-one" or "add-remove"
        Which data sets count as neighbours.
    fit_intercept : bool
        Fit a constant as well.
    random_state : int
        Repeatable noise, for tests and research only; it marks the certificate. With "reference" alone.
    verbose : int
        1 shows a progress bar on a terminal.

    Attributes
    ----------
    coef_, intercept_, support_, classes_
        The model; ``support_`` holds the positions of its nonzero coefficients.
    certificate_, plan_, algorithm_
        What it cost, what was planned, and what ran.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.federated import FederatedDenseClassifier
    >>> rng = np.random.default_rng(0)
    >>> def party(rows):
    ...     X = rng.uniform(-1, 1, (rows, 5))
    ...     return X, X[:, 0] > 0
    >>> model = FederatedDenseClassifier(2.0, 1e-6, row_bound=2.0, penalty=0.01, classes=[0, 1], random_state=0)
    >>> bool(model.fit([party(2000), party(3000)]).coef_[0, 0] > 0)
    True
    """

    classes: Labels = field(default=None, kw_only=True)


@dataclass(eq=False, repr=False)
class FederatedDenseRegressor(FederatedDenseOptions, DenseFederatedModel, _FederatedRegressor):
    """Linear regression on all features over the rows of several parties: chapter 6 of the thesis, made sound.

    ``fit`` takes a list of pairs (X, y), one for each party. How many rows each party holds is public.

    Parameters
    ----------
    epsilon : float
        The privacy budget of the fit; ``float("inf")`` switches privacy off.
    delta : float
        Of the same budget. None means 1/n^2, for the n rows of all parties.
    algorithm : str or instance
        "mpc-grad-p" (gradient descent with joint noise), "mpc-out-p" (the parties' own minimisers, averaged, with joint
        noise). Baselines where each party adds noise of its own: "local-grad-p", "local-out-p" and "local-obj-p"
        (noise in each party's objective; its ridge is at least what epsilon asks of the smallest party, whose size
        ``fit`` learns and ``plan`` does not know). "pathak" is "mpc-out-p" with the joint noise of the smallest party
        alone, m times more than needed. "rajkumar-agarwal" spends epsilon in every round: its certificate has the grade
        "printed" and no epsilon.
    aggregation : "reference", "mpyc", "spu" or "skellam"
        How the parties add up. "reference" does it in this process; the others run the real protocol between processes
        on this machine.
    feature_bound : float or sequence
        |x_ij| is clipped to this public bound: one for all columns, or one for each.
    row_bound : float
        ||x_i||_2 is clipped to this public bound. This or ``feature_bound`` is required.
    target_bound : float or (low, high)
        The target is clipped to [-B, B], or to [low, high]. Required, and public.
    penalty : float
        The strength of the ridge. Public, so it needs no noise.
    adjacency : "replace-one" or "add-remove"
        Which data sets count as neighbours.
    fit_intercept : bool
        Fit a constant as well.
    random_state : int
        Repeatable noise, for tests and research only; it marks the certificate. With "reference" alone.
    verbose : int
        1 shows a progress bar on a terminal.

    Attributes
    ----------
    coef_, intercept_, support_
        The model; ``support_`` holds the positions of its nonzero coefficients.
    certificate_, plan_, algorithm_
        What it cost, what was planned, and what ran.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.federated import FederatedDenseRegressor
    >>> rng = np.random.default_rng(0)
    >>> def party(rows):
    ...     X = rng.uniform(-1, 1, (rows, 5))
    ...     return X, 2 * X[:, 0]
    >>> model = FederatedDenseRegressor(2.0, 1e-6, row_bound=2.0, target_bound=2.0, penalty=0.01, random_state=0)
    >>> bool(model.fit([party(2000), party(3000)]).coef_[0] > 0)
    True
    """

    target_bound: Target = field(default=None, kw_only=True)
