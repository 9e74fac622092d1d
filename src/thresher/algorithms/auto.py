"""The defaults: an algorithm chosen by public facts alone, and said to be so in the certificate."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from thresher.algorithms.dp_ight import DPIGHT
from thresher.algorithms.dp_srm import DPSRM
from thresher.algorithms.newton import Newton, fits_at_once
from thresher.algorithms.pursuit import Pursuit, has_standard_errors
from thresher.algorithms.screened_ight import ScreenedIGHT
from thresher.privacy.budget import Budget
from thresher.privacy.plan import Plan
from thresher.vaults import CentralVault
from thresher.vaults.problem import LinearProblem

__all__ = ["Auto", "DenseAuto"]

AHEAD = 2.0


@dataclass(frozen=True)
class Auto:
    """Chooses by public facts alone; the certificate says which and why.

    Newton's method, where the noise of a Gram matrix of all columns is affordable: it knows how columns vary together,
    and clips hardly any row. Else, to choose s features, pursuit pays for s picks, each as sensitive as the largest
    entry K of a row: noise of order K sqrt(s). DP-IGHT pays for whole gradients, as sensitive as the l2 norm of a row.
    Rows bounded in every entry are far longer than K sqrt(s); rows bounded in l2 norm only (text) are not: there
    screened-ight finds the columns that rows use. Up to twice the noise pursuit still wins, since it measures the
    curvature of what it picks. Classes beyond two share one gradient.
    """

    name: ClassVar[str] = "auto"
    many_outputs: ClassVar[bool] = True

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        chosen, why = choose(problem, budget)
        plan = chosen.plan(problem, budget)
        return replace(plan, notes=(*plan.notes, why))

    def run(self, vault: CentralVault) -> NDArray[np.float64]:
        return choose(vault.problem, vault.plan.budget)[0].run(vault)


@dataclass(frozen=True)
class DenseAuto:
    """For a coefficient in every column: Newton's method where its Gram matrix is affordable, else random batches."""

    name: ClassVar[str] = "auto"

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        chosen, why = choose_dense(problem, budget)
        plan = chosen.plan(problem, budget)
        return replace(plan, notes=(*plan.notes, why))

    def run(self, vault: CentralVault) -> NDArray[np.float64]:
        return choose_dense(vault.problem, vault.plan.budget)[0].run(vault)


def choose(problem: LinearProblem, budget: Budget) -> tuple[Newton | Pursuit | DPIGHT | ScreenedIGHT, str]:
    """The algorithm for a problem, and the reason in words."""
    known = has_standard_errors(problem) or problem.outputs > 1
    if known and fits_at_once(problem, budget):
        return Newton(), f"auto chose newton: with n={problem.n} a Gram matrix of {problem.d} columns is affordable"
    if known and problem.as_many_as_pay:
        return Newton(), "auto chose newton: it alone tells how many columns pay for their noise"
    if not known:
        return DPIGHT(), f"auto chose dp-ight: pursuit has no formulas for the loss {problem.loss.name!r}"
    picks = problem.bounds.largest_entry(problem.d) * math.sqrt(problem.sparsity)
    row = problem.bounds.row_norm(problem.d)
    noise = f"noise of order {picks:.3g} (largest entry times sqrt(sparsity)) against {row:.3g} (norm of a row)"
    shared = f"; one gradient serves all {problem.outputs} classes" if problem.outputs > 1 else ""
    if picks >= AHEAD * row:
        return ScreenedIGHT(), f"auto chose screened-ight: pursuit has {noise}{shared}"
    if problem.outputs > 1:
        return DPIGHT(), f"auto chose dp-ight: one gradient serves all {problem.outputs} classes"
    return Pursuit(), f"auto chose pursuit: {noise} for whole gradients"


def choose_dense(problem: LinearProblem, budget: Budget) -> tuple[Newton | DPSRM, str]:
    """The same for dense models."""
    known = has_standard_errors(problem) or problem.outputs > 1
    if problem.penalty.strength:
        return DPSRM(), "auto chose dp-srm: newton has a ridge of its own and takes no penalty"
    # every column is kept, so that sparsity is no reason to look at more than the budget pays for
    if known and fits_at_once(replace(problem, sparsity=1), budget):
        return Newton(), f"auto chose newton: with n={problem.n} a Gram matrix of {problem.d} columns is affordable"
    return DPSRM(), f"auto chose dp-srm: with n={problem.n} a Gram matrix of {problem.d} columns costs too much noise"
