"""Private bounds of columns of numbers, wide enough for all but a few rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from thresher.data.schema.draft import TAIL
from thresher.models.estimator import PrivateEstimator
from thresher.models.scaler import TAILS, ColumnRanges
from thresher.privacy.arrays import Floats
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.plan import Plan
from thresher.vaults import CentralVault
from thresher.vaults.losses import SQUARED
from thresher.vaults.problem import LinearProblem, linear_problem

__all__ = ["ColumnBounds", "WidestRanges"]

SURELY = 2  # rank errors: an end is off by one with a chance of up to 1/20, by two with one of 1/(400 levels)


@dataclass(frozen=True)
class WidestRanges:
    """Ranges that leave out as few rows as they can: two rank errors at each end, and not less than a draft does."""

    name: ClassVar[str] = ColumnRanges.name
    ranges: ClassVar[ColumnRanges] = ColumnRanges(quantiles=None, centre=True)

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        usual = self.ranges.plan(problem, budget)
        tail = min(max(SURELY * usual.settings["rank_error"] / problem.n, TAIL), TAILS[1])
        return replace(usual, settings={**usual.settings, "quantiles": [tail, 1 - tail]})

    def run(self, vault: CentralVault) -> Floats:
        return self.ranges.run(vault)


class ColumnBounds(PrivateEstimator):
    """The range of each column of numbers, and its median, within a stated budget.

    Parameters
    ----------
    largest : float or one per column
        A public bound on |x_ij|, as generous as you like; numbers closer to 0 than 1e-9 of it count as 0.
    epsilon, delta, random_state, verbose
        As of every private fit.

    Attributes
    ----------
    low_, high_, median_
        For each column, of public levels: see ``thresher.models.scaler.ColumnRanges``.
    certificate_, plan_, algorithm_
        What it cost, what was planned, and what ran.
    """

    def __init__(
        self,
        largest: Any,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.largest = largest
        self.epsilon = epsilon
        self.delta = delta
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Floats) -> Self:
        """Learn the ranges of the columns of ``X``, finite numbers."""
        return self._fit(X, np.zeros(len(X)), ())

    def _problem(self, n_samples: int, n_features: int, outputs: int) -> LinearProblem:
        largest = np.broadcast_to(np.asarray(self.largest, dtype=float), n_features)
        bounds = Bounds(tuple(largest.tolist()), None, (-1.0, 1.0))  # the targets are all 0
        return LinearProblem(n_samples, n_features, bounds, sparsity=n_features, loss=SQUARED, intercept=False)

    def _algorithm(self, outputs: int) -> WidestRanges:
        return WidestRanges()

    def _keep(self, theta: Floats, plan: Plan) -> None:
        self.median_, self.low_, self.high_ = theta * linear_problem(plan).entry_bounds
