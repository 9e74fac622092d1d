"""The Lasso on reported labels (Wang and Xu, ICML 2019, section 5)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from thresher.algorithms.defaults import check_positive
from thresher.algorithms.label_noise import check_calibration, label_plan
from thresher.algorithms.projections import hard_threshold
from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Budget
from thresher.privacy.plan import Calibration, Plan
from thresher.vaults import LabelVault
from thresher.vaults.problem import LinearProblem

__all__ = ["LabelLasso"]


@dataclass(frozen=True)
class LabelLasso:
    """argmin (1/2n) sum_i (y~_i - <x_i, theta>)^2 + penalty ||theta||_1, of which the ``sparsity`` largest are kept.

    y~_i is person i's label, randomised once as in Label-LDP-IHT, with the same guarantee. ``penalty=None`` is sd
    sqrt(2 log(d)/n) times the root mean square of the public features, sd the known noise of a label: what the noise
    alone reaches in its largest correlation, O(sqrt(log d/(n epsilon^2))).

    Parameters
    ----------
    penalty : float, optional
        On ||theta||_1. None: what the noise of the labels alone reaches.
    noise : str
        "auto" (the least variance, by public constants), "piecewise", "laplace" or "gaussian".
    calibration : {"proved", "printed"}
        Noise that is proved to keep the budget, or that of the paper, whose real price the certificate states.
    noise_bound : float
        C of the printed calibration: what the noise of the regression itself does not exceed.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import LocalSparseRegressor
    >>> from thresher.algorithms import LabelLasso
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = LocalSparseRegressor(
    ...     1, epsilon=2.0, feature_bound=1.0, target_bound=1.0, algorithm=LabelLasso(noise="laplace")
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.epsilon
    2.0
    """

    penalty: float | None = None
    noise: str = "auto"
    calibration: Calibration = "proved"
    noise_bound: float = 0.05

    name: ClassVar[str] = "label-lasso"

    def __post_init__(self) -> None:
        check_positive(penalty=self.penalty, noise_bound=self.noise_bound)
        check_calibration(self.noise, self.calibration)

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        if problem.loss.likelihood != "gaussian":
            raise ValueError(
                "algorithm='label-lasso' fits numbers that a linear model measures; use algorithm='label-ldp-iht' "
                "for classes and for other measurements"
            )
        return label_plan(self, problem, budget, {"penalty": self.penalty or "noise level"})

    def run(self, vault: LabelVault) -> Floats:
        from sklearn.linear_model import Lasso  # loads a plotting library where there is one

        (report,) = vault.plan.releases
        problem = vault.problem
        labels = vault.labels(report)
        level = vault.plan.settings["label_sd"] * math.sqrt(2 * math.log(max(problem.d, 2)) / problem.n)
        penalty = self.penalty or max(level, math.ulp(1.0)) * vault.feature_scale
        lasso = Lasso(alpha=penalty, fit_intercept=problem.intercept, max_iter=5_000)
        lasso.fit(vault.features, labels)
        theta = problem.origin()
        theta[: problem.d] = lasso.coef_
        if problem.intercept:
            theta[problem.d] = lasso.intercept_ / problem.intercept_column
        return hard_threshold(theta, problem)
