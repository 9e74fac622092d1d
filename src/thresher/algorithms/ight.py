"""IGHT, the non-private baseline (Yuan, Li, Zhang 2014; Jain, Tewari, Kar 2014; DPSL-KT, Algorithm 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from thresher.algorithms.defaults import check_positive, check_ridge, check_rounds
from thresher.algorithms.descent import descend, descend_by
from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Budget
from thresher.privacy.plan import Plan
from thresher.privacy.questions import Gradient
from thresher.privacy.releases import ExactRelease
from thresher.vaults import CentralVault
from thresher.vaults.problem import LinearProblem

__all__ = ["IGHT"]


@dataclass(frozen=True)
class IGHT:
    """Hard-thresholded gradient descent on exact gradients: theta_t = H_s(theta_{t-1} - step * gradient(theta_{t-1})).

    No privacy whatsoever; it only runs with ``epsilon=float("inf")``.

    Parameters
    ----------
    iterations : int, optional
        Rounds T. None: 200.
    step : float, optional
        Length of a step. None: one over the curvature.
    ridge : float
        Adds (ridge/2)||theta||^2 to the loss.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> from thresher.algorithms import IGHT
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = SparseRegressor(
    ...     1, epsilon=float("inf"), feature_bound=1.0, target_bound=1.0, algorithm=IGHT(iterations=20)
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.grade
    'none'
    """

    iterations: int | None = None  # None: 200
    step: float | None = None
    ridge: float = 0.0

    name: ClassVar[str] = "ight"

    def __post_init__(self) -> None:
        check_rounds(self.iterations)
        check_positive(step=self.step)
        check_ridge(self.ridge)

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        if budget.private:
            raise ValueError(
                f"algorithm='ight' is not private, so it cannot keep epsilon={budget.epsilon:g}; "
                "use epsilon=float('inf') for a non-private baseline, or algorithm='dp-ight'"
            )
        exact_gradient = ExactRelease(times=self.iterations or 200, question=Gradient())
        settings = {"rounds": exact_gradient.times, "step": self.step or "secant", "ridge": self.ridge}
        return Plan(self.name, problem, budget, (exact_gradient,), settings)

    def run(self, vault: CentralVault) -> Floats:
        (exact_gradient,) = vault.plan.releases

        def gradient(theta: Floats) -> Floats:
            return vault.gradient(theta, exact_gradient, math.inf) + self.ridge * theta

        if self.step is not None:
            return descend_by(self.step, gradient, vault.problem, exact_gradient.times)
        return descend(gradient, vault.problem, exact_gradient.times, clip=math.inf, sd=0.0)
