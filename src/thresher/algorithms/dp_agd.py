"""DP-AGD (Lee and Kifer, KDD 2018): gradient descent that decides while it runs how much each round may cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from thresher.algorithms.defaults import between_classes, check_loss, check_positive, check_rounds, guess_loss
from thresher.algorithms.stochastic import residual_bound, typical_coefficient
from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Budget, BudgetExceeded
from thresher.privacy.plan import Plan
from thresher.privacy.releases import GaussianGradient, GumbelStep, ZCDPFilter
from thresher.vaults import CentralVault
from thresher.vaults.problem import LinearProblem

__all__ = ["DPAGD"]

CANDIDATES = 20  # step lengths beside 0, as in the paper's code
REVIEW = 10  # moves after which the longest step is reconsidered


@dataclass(frozen=True)
class DPAGD:
    """A noisy gradient; a noisy choice among step lengths along it, 0 included, by the loss; move, or pay for more.

    If length 0 wins, the gradient was too noisy: its price is raised by ``growth`` and the difference buys a second
    opinion, averaged with the first. It goes on until a ``thresher.privacy.releases.ZCDPFilter`` refuses. The choice is
    by Gumbel noise (erratum E-26: the released code adds one-sided noise of the wrong sign, which costs 20 times as
    much).

    Parameters
    ----------
    splits : int, optional
        The first round may cost 1/splits of the budget. None: a public rule.
    growth : float
        By which part the price of a gradient is raised that was too noisy.
    clip : float, optional
        l2 norm to which the gradient of a row is clipped. None: a public rule of the bounds.
    loss_clip : float, optional
        What the loss of a row is clipped to where lengths are compared. None: a public rule.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import DenseRegressor
    >>> from thresher.algorithms import DPAGD
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = DenseRegressor(
    ...     epsilon=2.0, feature_bound=1.0, target_bound=1.0, algorithm=DPAGD(splits=4)
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.epsilon
    2.0
    """

    splits: int | None = None  # the first round may cost 1/splits of the budget
    growth: float = 0.1
    clip: float | None = None
    loss_clip: float | None = None

    name: ClassVar[str] = "dp-agd"
    many_outputs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_rounds(self.splits, "splits")
        if self.splits == 1:
            raise ValueError("splits=1: the first round alone would take the whole budget; use at least 2")
        check_positive(growth=self.growth, clip=self.clip, loss_clip=self.loss_clip)

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        if not budget.private:
            raise ValueError("epsilon=inf: dp-agd runs until its budget is spent; use 'dp-gd' without privacy")
        check_loss(problem, self.name, "value")
        settings = {
            "splits": self.splits or 60,
            "growth": self.growth,
            "clip": float(self.clip or residual_bound(problem) * problem.row_norm),
            "loss_clip": float(self.loss_clip or typical_loss(problem)),
            "longest": typical_coefficient(problem) * math.sqrt(problem.dimension) / 2,
        }
        return Plan(self.name, problem, budget, (ZCDPFilter.calibrated(budget),), settings)

    def run(self, vault: CentralVault) -> Floats:
        (cap,) = vault.plan.releases
        assert isinstance(cap, ZCDPFilter)  # noqa: S101
        spending = _Spending(cap.rho / vault.plan.settings["splits"] / 2, vault.plan.settings["longest"])
        theta = vault.problem.origin()
        while True:  # the filter ends it: what is refused was neither answered nor counted
            try:
                theta = self._round(vault, theta, spending)
            except BudgetExceeded:
                return theta

    def _round(self, vault: CentralVault, theta: Floats, spending: _Spending) -> Floats:
        """From ``theta`` to the next point."""
        gradient = self._ask(vault, theta, spending.gradient)
        while True:
            direction = gradient + vault.problem.penalty_gradient(theta)
            direction /= np.linalg.norm(direction) or 1.0
            lengths = np.linspace(0.0, spending.longest, CANDIDATES + 1)
            choice = GumbelStep.for_rho(spending.choice)
            at = vault.step_length(theta, direction, lengths, choice, vault.plan.settings["loss_clip"])
            if at > 0:
                spending.moved(float(lengths[at]))
                moved: Floats = theta - lengths[at] * direction
                return moved
            more = self.growth * spending.gradient
            second = self._ask(vault, theta, more)
            gradient = (spending.gradient * gradient + more * second) / (spending.gradient + more)
            spending.gradient += more

    def _ask(self, vault: CentralVault, theta: Floats, rho: float) -> Floats:
        answer = vault.gradient(theta, GaussianGradient.for_rho(rho), vault.plan.settings["clip"])
        return between_classes(answer, vault.problem)


@dataclass
class _Spending:
    """What a gradient and a choice cost now, and how long a step may be; all follow from answers alone."""

    choice: float
    longest: float
    gradient: float = field(init=False)
    recent: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.gradient = self.choice

    def moved(self, length: float) -> None:
        self.recent.append(length)
        if len(self.recent) == REVIEW:
            self.longest = 1.1 * max(self.recent)
            self.recent.clear()


def typical_loss(problem: LinearProblem) -> float:
    """Where a row's loss is clipped: three times what it is at the origin, or for a typical residual."""
    if problem.loss.residuals_stay:
        return 3 * guess_loss(problem)
    return float(residual_bound(problem) ** 2)
