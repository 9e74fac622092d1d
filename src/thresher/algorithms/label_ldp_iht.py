"""Label-LDP-IHT (Wang and Xu, ICML 2019, Algorithm 2): public features, each label randomised by its owner."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from thresher.algorithms.defaults import check_positive, check_rounds
from thresher.algorithms.descent import descend, descend_by
from thresher.algorithms.label_noise import check_calibration, label_plan
from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Budget
from thresher.privacy.plan import Calibration, Plan
from thresher.vaults import LabelVault
from thresher.vaults.problem import LinearProblem

__all__ = ["LabelLDPIHT"]

ROUNDS = 60


@dataclass(frozen=True)
class LabelLDPIHT:
    """One randomised label per person, then IHT on public rows and reported labels, which costs nothing more.

    theta_t = P_B(H_s(theta_{t-1} - step * (1/n) sum_i (f(<x_i, theta_{t-1}>) - y~_i) x_i)): the step descends (the
    printed sign ascends, erratum E-13).

    Guarantee: each label is epsilon-LDP, or (epsilon, delta)-LDP with Gaussian noise, on the public range it is clipped
    to (erratum E-12). The features are not protected at all. Reported labels are unbiased, so for classes too the loss
    on them, linear in the label, is unbiased.

    ``noise`` is "auto" (the least variance, by public constants), "piecewise", "laplace" or "gaussian". With
    ``step=None`` the step follows the gradients; a number is the paper's loop, ``ball`` its projection.
    ``calibration="printed"`` is the Gaussian noise of the paper for a regression whose own noise is within
    ``noise_bound`` = C: sd^2 = 32 C^2 log(1.25/delta)/epsilon^2, which hides far less than the label.

    Parameters
    ----------
    iterations : int, optional
        Steps T; they cost nothing. None: a public rule.
    step : float, optional
        Length of a step. None: it follows the released gradients; a number is the algorithm as printed.
    ball : float, optional
        Radius of the projection on an l2 ball. None: no projection.
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
    >>> from thresher.algorithms import LabelLDPIHT
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = LocalSparseRegressor(
    ...     1, epsilon=2.0, feature_bound=1.0, target_bound=1.0, algorithm=LabelLDPIHT(iterations=20)
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.epsilon
    2.0
    """

    iterations: int | None = None
    step: float | None = None
    ball: float | None = None
    noise: str = "auto"
    calibration: Calibration = "proved"
    noise_bound: float = 0.05

    name: ClassVar[str] = "label-ldp-iht"

    def __post_init__(self) -> None:
        check_rounds(self.iterations)
        check_positive(step=self.step, ball=self.ball, noise_bound=self.noise_bound)
        check_calibration(self.noise, self.calibration)

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        if not problem.loss.linear_in_target:
            raise ValueError(
                f"algorithm='label-ldp-iht' would be biased: the loss {problem.loss.name!r} is not linear in the "
                "target; use algorithm='ldp-iht'"
            )
        settings = {"rounds": self.iterations or ROUNDS, "step": self.step or "secant", "ball": self.ball}
        return label_plan(self, problem, budget, settings)

    def run(self, vault: LabelVault) -> Floats:
        (report,) = vault.plan.releases
        problem, rounds = vault.problem, vault.plan.settings["rounds"]
        vault.labels(report)
        if self.step is not None:
            return descend_by(self.step, vault.gradient, problem, rounds, self.ball)
        sd = vault.plan.settings["label_sd"] * vault.feature_scale / math.sqrt(problem.n)
        return descend(vault.gradient, problem, rounds, math.inf, sd, self.ball)
