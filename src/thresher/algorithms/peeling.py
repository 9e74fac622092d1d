"""Peeling: noisy iterative hard thresholding that pays for the chosen coordinates only (Cai, Wang, Zhang 2021)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from thresher.algorithms.defaults import check_positive, check_rounds, residual_clip
from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Budget
from thresher.privacy.conversions import zcdp_rho
from thresher.privacy.plan import Plan
from thresher.privacy.pricing import positions
from thresher.privacy.releases import GaussianRestrictedGradient, GumbelSelection
from thresher.vaults import CentralVault
from thresher.vaults.problem import LinearProblem

__all__ = ["Peeling"]


@dataclass(frozen=True)
class Peeling:
    """theta_t = P_s(theta_{t-1} - step * gradient(theta_{t-1})): P_s chooses s coordinates and adds noise to them only.

    Guarantee: in each of T rounds the s largest of |theta - step * gradient| are picked at once with Gumbel noise
    (errata 3c, item 1: as good as peeling them off one by one), s epsilon_0^2/8-zCDP, and the values of those s get
    Gaussian noise. The picks need the l-infinity sensitivity only: one residual clip times one entry, not a whole row.

    ``step`` is in units in which every column's bound is 1.

    Parameters
    ----------
    iterations : int, optional
        Rounds T. None: a public rule of n, d, s and the budget.
    step : float, optional
        Length of a step in units in which every bound is 1. None: a public rule.
    clip : float, optional
        What residuals are clipped to. None: a public rule of the bounds.
    share : float
        Of the budget, for the picks; the values get the rest.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> from thresher.algorithms import Peeling
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = SparseRegressor(
    ...     1, epsilon=2.0, feature_bound=1.0, target_bound=1.0, algorithm=Peeling(iterations=3)
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.epsilon
    2.0
    """

    iterations: int | None = None
    step: float | None = None
    clip: float | None = None  # of a residual
    share: float = 0.5  # of the budget for the picks

    name: ClassVar[str] = "peeling"

    def __post_init__(self) -> None:
        check_rounds(self.iterations)
        check_positive(step=self.step, clip=self.clip)
        if not 0 < self.share < 1:
            raise ValueError(f"share={self.share!r} of the picks must lie strictly between 0 and 1")

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        rho = zcdp_rho(budget.epsilon, budget.delta)
        rounds = self.iterations or default_rounds(problem, rho)
        picks = GumbelSelection.for_rho(self.share * rho, rounds, problem.sparsity)
        values = GaussianRestrictedGradient.for_rho((1 - self.share) * rho, rounds)
        settings = {
            "rounds": rounds,
            "step": float(self.step or STEP / problem.curvature),
            "clip": float(self.clip or residual_clip(problem)),
            "share": self.share,
            "order": positions((picks, values), [picks, values] * rounds),
        }
        return Plan(self.name, problem, budget, (picks, values), settings)

    def run(self, vault: CentralVault) -> Floats:
        picks, values = vault.plan.releases
        problem, settings, clip = vault.problem, vault.plan.settings, vault.plan.settings["clip"]
        steps = settings["step"] / problem.entry_bounds**2
        if problem.intercept:
            steps[problem.d] = 1 / (problem.curvature * problem.intercept_column**2)
        theta = problem.origin()
        for _ in range(picks.times):
            offset = (theta / (steps * problem.entry_bounds))[: problem.d]
            support = vault.selection(theta, picks, clip, offset)
            support = np.append(support, np.arange(problem.d, problem.dimension))
            gradient = vault.restricted_gradient(theta, support, values, clip * problem.norm_in_units(problem.sparsity))
            kept = theta[support] - steps[support] * gradient
            theta = problem.origin()
            theta[support] = kept
        return theta


STEP = 2.0
"""Over the loss's curvature: one over the second moment of a column that fills its bound as a uniform one does is 3."""


def default_rounds(problem: LinearProblem, rho: float) -> int:
    """More rounds where the noise of one is small against the signal: a public rule of n, s and the budget."""
    return round(min(max(problem.n * math.sqrt(rho) / (50 * problem.sparsity), 3), 20))
