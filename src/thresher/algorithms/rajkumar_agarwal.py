"""Rajkumar and Agarwal (AISTATS 2012): gradient descent whose every round spends epsilon. A baseline, not private."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from thresher.algorithms.dp_sgd import DPGD
from thresher.algorithms.stochastic import Output, State
from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Budget
from thresher.privacy.plan import Plan
from thresher.privacy.releases import PrintedGradient
from thresher.vaults.problem import LinearProblem

__all__ = ["RajkumarAgarwal"]


@dataclass(frozen=True)
class RajkumarAgarwal(DPGD):
    """Gradient descent with ``thresher.privacy.releases.PrintedGradient``: noise for epsilon in each round, not in all.

    Guarantee: none that is stated (the thesis itself says that it "does not provide the same level of privacy"); the
    certificate's grade is "printed" and its epsilon None.

    Parameters
    ----------
    passes : float, optional
        How often every row is asked about on the average. None: a public rule of n, d and the budget.
    batch : int, optional
        Expected number of rows in a batch. None: a public rule; n takes all rows, and no batch is drawn.
    step : float, optional
        Length of a step. None: as long as the noise, known in advance, lets it be useful.
    clip : float, optional
        l2 norm to which the gradient of a row is clipped. None: a public rule of the bounds.
    sampling : {"poisson", "fixed"}
        Each row joins a batch by a coin of its own, or a batch is a random set of a fixed size (replace-one
        only).
    output : {"average", "last", "random"}
        The mean of the last quarter of the iterates, the last one, or one drawn at random.
    momentum : float
        Part of the step before that goes on, from 0 to below 1.

    Examples
    --------
    Parties ask it (``thresher.federated``), a curator never does; what it really costs stands in the plan:

    >>> from thresher import Budget
    >>> from thresher.algorithms import RajkumarAgarwal
    >>> from thresher.privacy.bounds import Bounds
    >>> from thresher.vaults.losses import SQUARED
    >>> from thresher.vaults.problem import LinearProblem
    >>> problem = LinearProblem(1000, 5, Bounds(feature=1.0, target=(-1.0, 1.0)), sparsity=5, loss=SQUARED)
    >>> RajkumarAgarwal(passes=2).plan(problem, Budget(1.0, 1e-6)).calibration
    'printed'
    """

    momentum: float = 0.0
    output: Output = "last"

    name: ClassVar[str] = "rajkumar-agarwal"
    many_outputs: ClassVar[bool] = False

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        plan = super().plan(problem, budget)
        release = PrintedGradient.printed(budget, plan.settings["rounds"])
        notes = (*plan.notes, f"the epsilon claimed is spent in each of {release.times} rounds")
        return replace(plan, releases=(release,), calibration="printed", notes=notes)

    def _ask(self, vault: Any, state: State) -> Floats:  # of parties: a curator is never asked
        (release,) = vault.plan.releases
        answer: Floats = vault.printed_gradient(state["theta"], release, vault.plan.settings["clip"])
        return answer
