"""Objective perturbation (Chaudhuri, Monteleoni, Sarwate 2011; Kifer, Smith, Thakurta 2012), and what it costs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from thresher.algorithms.defaults import check_loss, check_positive, residual_clip
from thresher.privacy.accounting import Cost
from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Budget
from thresher.privacy.plan import Plan
from thresher.privacy.releases import PerturbedMinimiser
from thresher.privacy.releases.minimisers import TOLERANCE_FACTOR
from thresher.vaults import CentralVault
from thresher.vaults.central.minimisers import curvature_ratio
from thresher.vaults.problem import LinearProblem

__all__ = ["ObjectivePerturbation", "calibrated", "default_ridge"]

JACOBIAN_SHARE = 0.4
"""Of the epsilon that is left, what the curvature ratio takes by default: less means more ridge."""

LEAST_RIDGE, LEAST_RIDGE_WITHOUT_NOISE = 1e-4, 1e-6
"""Over the largest curvature of a row: enough for the minimiser to be found so precisely that it costs no accuracy."""

LARGEST_EXPONENT = 700.0  # of what a float can hold


@dataclass(frozen=True)
class ObjectivePerturbation:
    """argmin (1/n) sum_i l_i + (ridge/2)||phi||^2 + b'phi over all columns, b Gaussian, phi theta in units of bounds.

    Guarantee: ``thresher.privacy.releases.PerturbedMinimiser``. Of a small ``ridge`` the curvature term log(1 + k), k =
    curvature ||x||^2 / (n ridge), would take most of epsilon or all of it (erratum E-27); so where the ridge asked for
    is below ``default_ridge``, that one is taken. ``ridge`` is that of theta, in units of the smallest bound.

    Parameters
    ----------
    ridge : float, optional
        Of the penalty (ridge/2)||theta||^2, raised where it is below ``default_ridge``. None: that.
    clip : float, optional
        What the residual of a row at its bound is clipped to. None: a public rule.

    Examples
    --------
    With as many coefficients as columns, since all of them are released at once:

    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> from thresher.algorithms import ObjectivePerturbation
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = SparseRegressor(
    ...     5, epsilon=2.0, feature_bound=1.0, target_bound=1.0, algorithm=ObjectivePerturbation()
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.epsilon
    2.0
    """

    ridge: float | None = None
    clip: float | None = None  # of the residual of a row at its bound

    name: ClassVar[str] = "objective-perturbation"
    many_outputs: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_positive(ridge=self.ridge, clip=self.clip)

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        check_loss(problem, self.name, "clipped_value")
        asked = (self.ridge or 0.0) / float(problem.bounds.entries(problem.d).min()) ** 2
        whole = replace(problem, sparsity=problem.d)  # all columns are released at once
        ridge = max(asked, default_ridge(whole, budget))
        settings = {"ridge": ridge, "clip": float(self.clip or residual_clip(problem))}
        return Plan(self.name, problem, budget, (calibrated(whole, budget, ridge),), settings)

    def run(self, vault: CentralVault) -> Floats:
        (release,) = vault.plan.releases
        problem, settings = vault.problem, vault.plan.settings
        clip = settings["clip"] * problem.norm_in_units(problem.d)
        return vault.perturbed_minimiser(np.arange(problem.dimension), release, clip, settings["ridge"])


def default_ridge(problem: LinearProblem, budget: Budget, beside: Cost | None = None) -> float:
    """The ridge at which the Jacobian takes its share of what releases ``beside`` this one leave of epsilon.

    The shrinkage of a coefficient and its noise both fall like 1/n at a fixed ratio, so the share need not know n.
    """
    steepest = problem.curvature * problem.norm_in_units(problem.sparsity) ** 2
    if not budget.private:
        return LEAST_RIDGE_WITHOUT_NOISE * steepest
    ratio = math.expm1(min(JACOBIAN_SHARE * _left(budget, beside), LARGEST_EXPONENT))
    return max(steepest / (problem.n * ratio), LEAST_RIDGE * steepest)


def calibrated(problem: LinearProblem, budget: Budget, ridge: float, beside: Cost | None = None) -> PerturbedMinimiser:
    """The minimiser on problem.sparsity columns with the least noise for which it, and what is released ``beside`` it,
    cost budget.epsilon."""
    ratio = curvature_ratio(problem, np.append(np.arange(problem.sparsity), problem.d), ridge)
    if not budget.private:
        return PerturbedMinimiser(1, 0.0, ratio, 0.0)
    least = ratio * ridge / math.expm1(min(_left(budget, beside), LARGEST_EXPONENT))
    if not ridge > least:
        raise ValueError(
            f"ridge={ridge:g} leaves nothing of epsilon={budget.epsilon:g} for the noise; "
            f"take one well above {least:.6g}, or None for the public default"
        )

    def release(sd: float) -> PerturbedMinimiser:
        return PerturbedMinimiser(1, sd, ratio, TOLERANCE_FACTOR * sd)

    def fits(sd: float) -> bool:
        return ((beside or Cost()) + release(sd).cost()).epsilon(budget.delta)[0] <= budget.epsilon

    low, high = 0.0, 1.0
    while not fits(high):
        low, high = high, 2 * high
        if high > 1e12:  # its Renyi curve is only known up to a largest order, which proves no smaller epsilon
            raise ValueError(
                f"epsilon={budget.epsilon:g} is too small for objective perturbation; take a larger one, or another "
                "algorithm"
            )
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return release(high)


def _left(budget: Budget, beside: Cost | None) -> float:
    """What is left of epsilon. A privacy loss bounded by that much always fits in beside the rest."""
    return budget.epsilon - (beside.epsilon(budget.delta)[0] if beside else 0.0)
