"""Private preprocessing: clip, centre and scale the columns of a real table into [-1, 1], within a stated budget."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from thresher.data.concealment import without_causes
from thresher.data.reading.frames import eager
from thresher.data.tables import reject_text
from thresher.data.typing import Column, Table
from thresher.models.estimator import Parts, PrivateEstimator, design_of
from thresher.models.options import CentralOptions
from thresher.privacy.arrays import Floats
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.conversions import zcdp_rho
from thresher.privacy.facts import PublicFacts
from thresher.privacy.plan import Plan, table_facts
from thresher.privacy.pricing import positions
from thresher.privacy.releases import GumbelQuantile
from thresher.privacy.warnings import WideRanges
from thresher.vaults import CentralVault
from thresher.vaults.clipping import without_duplicates
from thresher.vaults.losses import SQUARED
from thresher.vaults.problem import LinearProblem

__all__ = ["PrivateScaler"]

FINEST = 1e-9  # of a column's bound: what is closer to the middle than this counts as equal to it
TAILS = (0.05, 0.25)  # the fewest and the most rows that the default range leaves out at each end
MEDIAN_SHARE = 0.1  # of the budget: a median may be off by almost n/2 rows before it is useless, an end by its tail


def _geometric(last: float, ratio: float) -> Floats:
    """FINEST .. last, each about ``ratio`` times the one before."""
    return np.geomspace(FINEST, last, 1 + round(math.log(last / FINEST) / math.log(ratio)))


# In units of the bound. Geometric steps find a scale that the bound overstates a thousandfold as well as a tight one.
MIDDLES: Floats = np.concatenate([-_geometric(1.0, 1.02)[::-1], [0.0], _geometric(1.0, 1.02)])
OFFSETS: Floats = np.concatenate([[0.0], _geometric(2.0, 1.1)])


@dataclass(frozen=True)
class ColumnRanges:
    """The range of every column between two quantiles, each end an exponential mechanism over public levels.

    First the medians (with ``centre``; zero without), on levels that are geometric around zero and take a tenth of the
    budget. Then, on levels that are geometric around the median, the lower end among those below it and the upper end
    among those above it: the ends cannot cross, and the resolution is a tenth of their distance from the median.

    An end that is off by as many rows as lie beyond it may be anywhere up to the bound. ``quantiles=None`` therefore
    leaves out as many rows at each end as the noise makes uncertain, from 1/20 to 1/4.
    """

    quantiles: tuple[float, float] | None
    centre: bool
    name: ClassVar[str] = "private-scaler"

    def plan(self, problem: PublicFacts, budget: Budget) -> Plan:
        rho = zcdp_rho(budget.epsilon, budget.delta)
        share = MEDIAN_SHARE if self.centre else 0.0
        ends = GumbelQuantile.for_rho((1 - share) * rho, times=2 * problem.d)
        medians = (GumbelQuantile.for_rho(share * rho, times=problem.d),) if self.centre else ()
        # the exponential mechanism is more than scale * (log(levels) + t) below the best score with chance e^-t
        rank_error = ends.multiplier * (math.log(OFFSETS.size) + math.log(20))
        tail = min(max(rank_error / problem.n, TAILS[0]), TAILS[1])
        quantiles = list(self.quantiles or (tail, 1 - tail))
        releases = (*medians, ends)
        order = positions(releases, [*medians, ends, ends] * problem.d)
        settings = {"quantiles": quantiles, "centre": self.centre, "rank_error": rank_error, "order": order}
        return Plan(self.name, problem, budget, releases, settings)

    def run(self, vault: CentralVault) -> Floats:
        """Rows: the middle, the lower and the upper end of each column, in units of its bound."""
        return np.array([self._range(vault, j) for j in range(vault.problem.d)]).T

    def _range(self, vault: CentralVault, j: int) -> tuple[float, float, float]:
        *medians, ends = vault.plan.releases
        q_low, q_high = vault.plan.settings["quantiles"]
        middle = vault.column_quantile(j, 0.5, MIDDLES, medians[0]) if medians else 0.0
        below = np.unique(np.clip(middle - OFFSETS, -1, 1))
        above = np.unique(np.clip(middle + OFFSETS, -1, 1))
        # an answer is the upper end of the cell that holds the quantile; the level before it is the lower end
        at = int(np.searchsorted(below, vault.column_quantile(j, q_low, below, ends)))
        return middle, float(below[max(at - 1, 0)]), vault.column_quantile(j, q_high, above, ends)


@dataclass(eq=False, repr=False)
class PrivateScaler(OneToOneFeatureMixin, TransformerMixin, CentralOptions, PrivateEstimator):
    """Clip, centre and scale every column into [-1, 1] with differentially private quantiles.

    The numbers learnt are private and public knowledge afterwards, so the next step of a pipeline takes
    ``feature_bound=1.0``. Its rows are the same people's: the pipeline costs the SUM of its steps
    (``thresher.privacy.certificate.combine``).

    Parameters
    ----------
    epsilon : float
        The privacy budget of the fit; ``float("inf")`` switches privacy off.
    delta : float
        Of the same budget. None means 1/n^2.
    feature_bound : float or one per column
        A public bound on the raw |x_ij|; it may be generous, a thousand times too wide does no harm.
    quantiles : (low, high)
        The ends of the clipping range, low < 0.5 < high. Ends nearer to 0 and 1 clip less and need more rows. None is
        a public rule of rows, columns and budget: (0.05, 0.95) where there are rows enough, up to (0.25, 0.75).
    centre : bool
        Map the middle of the range to 0. With False, zeros stay zeros and the scale is the farther end; sparse input
        needs that, since centring would make it dense.
    adjacency : "replace-one" or "add-remove"
        Which data sets count as neighbours.
    n_public : int
        The public row count, with ``adjacency="add-remove"``.
    hardened : bool
        Make every choice with exact arithmetic, so that the noise's floating point cannot leak. With False, the
        certificate is ``conditional``: it says that noise is taken for real numbers.
    ledger : Ledger or its URL
        The account book that pays: the plan's cost is reserved in it before a row is read (``thresher.Ledger``).
    dataset : str
        The name of the ledger's account.
    random_state : int
        Repeatable noise, for tests and research only; it marks the certificate.
    verbose : int
        1 shows a progress bar on a terminal.

    Attributes
    ----------
    centre_, scale_
        A column becomes clip((x - centre_) / scale_, -1, 1). A column whose two quantiles are equal (constant, or
        rarely different from zero) has its ``feature_bound`` as scale.
    certificate_, plan_, algorithm_
        What it cost, what was planned, and what ran. ``plan_.settings["rank_error"]`` is the number of rows by which
        the rank of one end of one column is off at most, with probability 0.95.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import PrivateScaler
    >>> X = np.random.default_rng(0).normal(100, 10, (5000, 3))
    >>> scaler = PrivateScaler(epsilon=1.0, delta=1e-6, feature_bound=10_000.0, random_state=0).fit(X)
    >>> float(np.abs(scaler.transform(X)).max())
    1.0
    """

    epsilon: float = 1.0
    delta: float | None = None
    quantiles: tuple[float, float] | None = field(default=None, kw_only=True)
    centre: bool = field(default=True, kw_only=True)

    def _problem(self, n_samples: int, n_features: int, outputs: int) -> LinearProblem:
        return LinearProblem(n_samples, n_features, self._bounds(), sparsity=n_features, loss=SQUARED, intercept=False)

    @without_causes
    def fit(self, X: Table, y: Column = None, *, groups: Column = None) -> Self:
        """Learn the ranges of the columns of ``X`` (NumPy, SciPy sparse, pandas, polars); ``y`` is ignored.

        ``groups`` holds the id of each row's person, if some have several rows.
        """
        X = self._checked_to_fit(X, groups=groups)
        self._refuse_to_densify(X)
        owners = self._people_of(groups, X.shape[0])
        n, counted = (X.shape[0], "rows") if owners is None else (int(owners.max(initial=-1)) + 1, "people")
        plan = self._plan_design(design_of(self, n if self.n_public is None else self.n_public, X.shape[1]))
        low, high = plan.settings["quantiles"]
        tail = min(low, 1 - high) * plan.problem.n
        if plan.settings["rank_error"] > tail * (1 + 1e-9):  # the default tail is this very number, give or take an ulp
            closer = ", or quantiles closer to 0.5 such as (0.25, 0.75)" if min(low, 1 - high) < 0.25 else ""
            warnings.warn(
                f"epsilon={self.epsilon:g}, quantiles=({low:.3g}, {high:.3g}): the ends of a column's range may be off "
                f"by {plan.settings['rank_error']:.0f} {counted}, and only {tail:.0f} lie outside, so that ranges may "
                f"come out as wide as feature_bound; use a larger epsilon, more rows, fewer columns{closer}",
                WideRanges,
                stacklevel=3,
            )
        return self._fit(X, np.zeros(X.shape[0]), (), owners)

    @without_causes
    def transform(self, X: Table) -> Any:
        """The columns of ``X`` in [-1, 1], whatever values it holds."""
        X = self._taken(X)
        with np.errstate(over="ignore"):  # infinity is clipped like everything else
            if sparse.issparse(X):
                X.data = np.clip(X.data / self.scale_[X.indices], -1.0, 1.0)
                return X
            return np.clip((X - self.centre_) / self.scale_, -1.0, 1.0)

    @without_causes
    def inverse_transform(self, X: Table) -> Any:
        """Back to the raw units; what was clipped stays clipped."""
        X = self._taken(X)
        if sparse.issparse(X):
            X.data = X.data * self.scale_[X.indices]
            return X
        return X * self.scale_ + self.centre_

    def _taken(self, X: Table) -> Any:
        check_is_fitted(self, "certificate_")
        X = eager(X)
        reject_text(X)
        fewest = min(1, self._fewest)  # in a pipeline these are the rows of the fit, whose number may be private
        X = self._check_rows(X, accept_sparse=("csr", "csc", "coo"), ensure_min_samples=fewest, reset=False)
        self._refuse_to_densify(X)
        return without_duplicates(X, np.float64).tocsr() if sparse.issparse(X) else X

    def _refuse_to_densify(self, X: Table) -> None:
        if sparse.issparse(X) and self.centre:
            raise ValueError("centre=True would make sparse input dense; use centre=False, or give a dense X")

    def _keep(self, theta: Floats, plan: Plan) -> None:
        middle, low, high = theta
        bounds = table_facts(plan).entry_bounds
        centre = (low + high) / 2 if self.centre else np.zeros_like(middle)
        scale = (high - low) / 2 if self.centre else np.maximum(-low, high)
        flat = scale <= FINEST * (1 + 1e-9)  # the quantiles saw no spread: only the public bound is left
        self.centre_: Floats = bounds * np.where(flat, middle, centre)
        self.scale_: Floats = bounds * np.where(flat, 1.0, scale)

    def _model_parts(self) -> Parts:
        names = getattr(self, "feature_names_in_", None)
        return {"centre": self.centre_, "scale": self.scale_, "columns": None if names is None else list(names)}

    def _algorithm(self, outputs: int) -> ColumnRanges:
        if self.quantiles is None:
            return ColumnRanges(None, bool(self.centre))
        try:
            low, high = map(float, self.quantiles)
        except (TypeError, ValueError):
            low = high = math.nan
        if not 0 < low < 0.5 < high < 1:
            raise ValueError(
                f"quantiles={self.quantiles!r} must be a pair (low, high) with 0 < low < 0.5 < high < 1, "
                "for example (0.1, 0.9), or None"
            )
        return ColumnRanges((low, high), bool(self.centre))

    def _bounds(self) -> Bounds:
        if self.feature_bound is None:
            raise ValueError(
                "feature_bound=None: give a public bound on the raw values, one number or one per column; "
                "it may be generous"
            )
        return super()._bounds()

    def _target_range(self) -> tuple[float, float]:
        return (-1.0, 1.0)  # of the zeros that stand in for a target

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.centre
        return tags
