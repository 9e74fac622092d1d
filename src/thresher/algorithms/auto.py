"""The default: pursuit or DP-IGHT, whichever adds less noise to what the features are chosen by."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from thresher.algorithms.dp_ight import DPIGHT
from thresher.algorithms.pursuit import Pursuit, has_standard_errors
from thresher.privacy.budget import Budget
from thresher.privacy.plan import Plan
from thresher.vaults import CentralVault
from thresher.vaults.problem import LinearProblem

__all__ = ["Auto"]

AHEAD = 2.0


@dataclass(frozen=True)
class Auto:
    """Chooses by public bounds alone; the certificate says which and why.

    To choose s features, pursuit pays for s picks, each as sensitive as the largest entry K of a row: noise of order K
    sqrt(s). DP-IGHT pays for whole gradients, as sensitive as the l2 norm of a row. Rows bounded in every entry are
    far longer than K sqrt(s); rows bounded in l2 norm only (text) are not. Up to twice the noise pursuit still wins,
    since it measures the curvature of what it picks. Classes beyond two share DP-IGHT's gradient.
    """

    name: ClassVar[str] = "auto"
    many_outputs: ClassVar[bool] = True

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        chosen, why = choose(problem)
        plan = chosen.plan(problem, budget)
        return replace(plan, notes=(*plan.notes, why))

    def run(self, vault: CentralVault) -> NDArray[np.float64]:
        return choose(vault.problem)[0].run(vault)


def choose(problem: LinearProblem) -> tuple[Pursuit | DPIGHT, str]:
    """The algorithm for a problem, and the reason in words."""
    if problem.outputs > 1:
        return DPIGHT(), f"auto chose dp-ight: one gradient serves all {problem.outputs} classes"
    if not has_standard_errors(problem):
        return DPIGHT(), f"auto chose dp-ight: pursuit has no formulas for the loss {problem.loss.name!r}"
    picks = problem.bounds.largest_entry(problem.d) * math.sqrt(problem.sparsity)
    row = problem.bounds.row_norm(problem.d)
    noise = f"noise of order {picks:.3g} (largest entry times sqrt(sparsity)) against {row:.3g} (norm of a row)"
    if picks < AHEAD * row:
        return Pursuit(), f"auto chose pursuit: {noise} for dp-ight"
    return DPIGHT(), f"auto chose dp-ight: pursuit has {noise} for dp-ight"
