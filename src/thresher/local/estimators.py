"""The scikit-learn front doors of the local model: nobody holds the rows, or nobody holds the labels.

They simulate the people, all in one process; ``thresher.local`` has the two halves of a real deployment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from scipy import sparse
from sklearn.base import clone
from sklearn.utils.extmath import row_norms

from thresher.algorithms import LDPIHT, LocalAlgorithm, resolve_local
from thresher.data.tables import reject_text
from thresher.models.classifier import ClassifierModel
from thresher.models.estimator import checked_rows
from thresher.models.linear import LinearModel
from thresher.models.regressor import RegressorModel, Target
from thresher.privacy.arrays import Floats, Indices, Matrix
from thresher.privacy.bounds import Bounds
from thresher.privacy.plan import Plan
from thresher.vaults import LabelVault, SimulatedVault
from thresher.vaults.losses import Loss, measurement_of

if TYPE_CHECKING:
    from thresher.models.options import Bound, Labels, Seed

__all__ = ["LocalSparseClassifier", "LocalSparseRegressor", "features_are_public", "plan_for_public_rows"]


Measurement = tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]
"""An increasing function of the margin, and its derivative."""


@dataclass(eq=False, repr=False)
class LocalOptions:
    """What users choose of a fit in the local model."""

    sparsity: int = 10
    epsilon: float = 1.0
    algorithm: str | LocalAlgorithm = field(default="ldp-iht", kw_only=True)
    feature_bound: Bound = field(default=None, kw_only=True)
    row_bound: float | None = field(default=None, kw_only=True)
    fit_intercept: bool = field(default=True, kw_only=True)
    random_state: Seed = field(default=None, kw_only=True)
    verbose: int = field(default=0, kw_only=True)


class _LocalModel(LinearModel):
    """What the two local front doors share."""

    hardened = False  # reports have grids of their own
    _largest_row: float | None = None

    @property
    def _dtypes(self) -> Any:
        """People's records are read block by block, as they are: no copy of all of them as floats."""
        return super()._dtypes if features_are_public(self.algorithm) else "numeric"

    def _algorithm(self, outputs: int) -> LocalAlgorithm:
        return resolve_local(self.algorithm)

    def _vault(self) -> type[LabelVault] | type[SimulatedVault]:
        return LabelVault if features_are_public(self.algorithm) else SimulatedVault

    @contextmanager
    def _bounded_by_longest(self, X: Matrix) -> Iterator[None]:
        """Where rows are public so is the longest, which bounds the steps if the user states no bound."""
        self._largest_row = longest_row(X)
        try:
            yield
        finally:
            del self._largest_row

    def _fit(self, X: Matrix, y: Floats, assumptions: tuple[str, ...], owners: Indices | None = None) -> Self:
        with self._bounded_by_longest(X) if features_are_public(self.algorithm) else nullcontext():
            return super()._fit(X, y, assumptions, owners)

    def _bounds(self) -> Bounds:
        if self.feature_bound is None and self.row_bound is None and self._largest_row is not None:
            return Bounds(None, self._largest_row, self._target_range())
        return super()._bounds()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if not features_are_public(self.algorithm):  # then a table of a few hundred people says next to nothing
            if tags.regressor_tags is not None:
                tags.regressor_tags.poor_score = True
            if tags.classifier_tags is not None:
                tags.classifier_tags.poor_score, tags.classifier_tags.multi_class = True, False
        return tags


def features_are_public(algorithm: str | LocalAlgorithm) -> bool:
    """Whether this algorithm keeps labels private alone."""
    return not isinstance(resolve_local(algorithm), LDPIHT)


def longest_row(X: Matrix) -> float:
    """The l2 norm of the longest row; 1 if all are zero."""
    return float(row_norms(X).max()) or 1.0


def plan_for_public_rows(model: _LocalModel, X: Matrix) -> tuple[Matrix, Plan]:
    """Public rows, checked, and the plan for them; the longest bounds the steps if no bound is given."""
    reject_text(X)
    rows = checked_rows(model, X, accept_sparse=("csc", "csr", "coo"), ensure_min_samples=2)
    rows = sparse.csr_array(rows) if sparse.issparse(rows) else rows
    unbounded = model.feature_bound is None and model.row_bound is None
    planned = clone(model).set_params(row_bound=longest_row(rows)) if unbounded else model
    return rows, planned.plan(*rows.shape)


@dataclass(eq=False, repr=False)
class LocalSparseRegressor(LocalOptions, _LocalModel, RegressorModel):
    """Sparse regression where each person randomises their own record, or label, and nobody collects the true ones.

    Parameters
    ----------
    sparsity : int
        How many coefficients the model may have.
    epsilon : float
        The privacy of every single report. ``float("inf")`` switches privacy off.
    algorithm : str or instance
        "ldp-iht": rows and targets are private; each person reports one randomised gradient. "label-ldp-iht" and
        "label-lasso": rows are PUBLIC, only targets are private; each person reports one randomised target. Or an
        instance of ``thresher.algorithms.LDPIHT``, ``LabelLDPIHT`` or ``LabelLasso``.
    delta : float
        0 for pure epsilon-LDP, the default; only ``LabelLDPIHT(noise="gaussian")`` needs more.
    feature_bound : float or sequence
        |x_ij| is clipped to this public bound: one for all columns, or one for each. "ldp-iht" needs it or
        ``row_bound``.
    row_bound : float
        ||x_i||_2 is clipped to this public bound.
    target_bound : float or (low, high)
        The target is clipped to [-B, B], or to [low, high]. Required, and public.
    measurement : str or (function, derivative)
        y = f(<x, theta>) + noise for an increasing f: "linear", "logistic", "probit", "cube root", or your own.
    fit_intercept : bool
        Fit a constant as well.
    random_state : int
        Repeatable noise, for tests and research only; it marks the certificate.
    verbose : int
        1 shows a progress bar on a terminal.

    Attributes
    ----------
    coef_, intercept_, support_
        The model; ``support_`` holds the positions of its nonzero coefficients.
    certificate_, plan_, algorithm_
        What it cost, what was planned, and what ran. ``certificate_.trust`` says who must be trusted with what.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import LocalSparseRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (5000, 5))
    >>> model = LocalSparseRegressor(1, 4.0, feature_bound=1.0, target_bound=2.0, random_state=0)
    >>> model.fit(X, 2 * X[:, 0]).support_
    array([0])
    """

    delta: float = field(default=0.0, kw_only=True)
    target_bound: Target = field(default=None, kw_only=True)
    measurement: str | Measurement = field(default="linear", kw_only=True)

    def save(self, path: str | Path) -> None:
        """Write the model and its certificate as plain JSON."""
        if not isinstance(self.measurement, str):
            raise ValueError(
                f"measurement={self.measurement!r} is a function, which no JSON file can hold; "
                "use a measurement that has a name, or save coef_ and intercept_ yourself"
            )
        super().save(path)

    def _loss_of(self, outputs: int) -> Loss:
        return super()._loss_of(outputs) if self.measurement == "linear" else measurement_of(self.measurement)


@dataclass(eq=False, repr=False)
class LocalSparseClassifier(LocalOptions, _LocalModel, ClassifierModel):
    """Sparse logistic regression where each person randomises their own record, or class label.

    More than two classes need public features (``algorithm="label-ldp-iht"``).

    Parameters
    ----------
    sparsity : int
        How many coefficients the model may have.
    epsilon : float
        The privacy of every single report. ``float("inf")`` switches privacy off.
    algorithm : str or instance
        "ldp-iht": rows and labels are private; each person reports one randomised gradient. "label-ldp-iht" and
        "label-lasso": rows are PUBLIC, only labels are private; each person reports one randomised label. Or an
        instance of ``thresher.algorithms.LDPIHT``, ``LabelLDPIHT`` or ``LabelLasso``.
    feature_bound : float or sequence
        |x_ij| is clipped to this public bound: one for all columns, or one for each. "ldp-iht" needs it or
        ``row_bound``.
    row_bound : float
        ||x_i||_2 is clipped to this public bound.
    classes : sequence
        The labels, public. If they are not given they are read from the data, and the certificate says so.
    fit_intercept : bool
        Fit a constant as well.
    random_state : int
        Repeatable noise, for tests and research only; it marks the certificate.
    verbose : int
        1 shows a progress bar on a terminal.

    Attributes
    ----------
    coef_, intercept_, support_, classes_
        The model; ``support_`` holds the positions of its nonzero coefficients.
    certificate_, plan_, algorithm_
        What it cost, what was planned, and what ran. ``certificate_.trust`` says who must be trusted with what.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import LocalSparseClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, (5000, 5))
    >>> model = LocalSparseClassifier(1, 4.0, feature_bound=1.0, classes=[0, 1], random_state=0)
    >>> model.fit(X, X[:, 0] > 0).support_
    array([0])
    """

    delta = 0.0  # every report of a class is pure

    classes: Labels = field(default=None, kw_only=True)
