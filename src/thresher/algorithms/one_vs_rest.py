"""More than two classes with an algorithm for two: one problem per class, an equal part of the budget for each."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from thresher.algorithms.protocol import Algorithm
from thresher.privacy.accounting import Cost
from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Budget
from thresher.privacy.plan import Plan
from thresher.vaults import CentralVault
from thresher.vaults.problem import LinearProblem

__all__ = ["OneVsRest"]

INWARD = 1 - 1e-12  # K parts that add up to the whole must not exceed it by round-off


@dataclass(frozen=True)
class OneVsRest:
    """theta_k tells class k from the rest; every row takes part in every problem, so the costs of all K add up."""

    each: Algorithm

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        part = self._part(problem, budget)
        share = part.budget.epsilon if part.budget.private else str(part.budget.epsilon)  # JSON knows no infinity
        settings: dict[str, object] = {
            **part.settings,
            "classes": problem.outputs,
            "class_epsilon": share,
            "class_delta": part.budget.delta,
        }
        if part.order is not None:
            settings["order"] = part.order * problem.outputs
        note = f"one class against the rest, {problem.outputs} times, each with epsilon={part.budget.epsilon:.4g}"
        return Plan(
            part.algorithm, problem, budget, part.releases * problem.outputs, settings, part.calibration,
            (*part.notes, note),
        )  # fmt: skip

    def run(self, vault: CentralVault) -> Floats:
        problem, settings = vault.problem, vault.plan.settings
        share = replace(
            vault.plan.budget, epsilon=float(settings["class_epsilon"]), delta=float(settings["class_delta"])
        )
        planned = self.each.plan(problem.of_one_output(), share)
        # the noise is that of the whole plan, whose budget all classes share
        releases = vault.plan.releases[: len(planned.releases)]
        part = replace(planned, releases=releases, budget=vault.plan.budget)
        parts, published = [], []
        for k in range(problem.outputs):
            parts.append(self.each.run(vault.one_against_rest(k, part)))
            published.append(dict(vault.published))  # a by-product of every class
        vault.published.update({name: [of_class[name] for of_class in published] for name in vault.published})
        return np.concatenate([theta[: problem.d] for theta in parts] + [theta[problem.d :] for theta in parts])

    def _part(self, problem: LinearProblem, budget: Budget) -> Plan:
        """The plan of one class: as much epsilon as K such plans may have together."""
        one, classes = problem.of_one_output(), problem.outputs
        plan = self.each.plan(one, replace(budget, epsilon=budget.epsilon / classes, delta=budget.delta / classes))
        if not budget.private or plan.calibration == "printed":
            return plan
        low, high = budget.epsilon / classes * INWARD, budget.epsilon
        plan = self.each.plan(one, replace(budget, epsilon=low, delta=budget.delta / classes))
        for _ in range(12):  # basic composition always fits, K-fold composition by the accountant allows more
            middle = math.sqrt(low * high)
            larger = self.each.plan(one, replace(budget, epsilon=middle))
            if sum((larger.cost for _ in range(classes)), Cost()).epsilon(budget.delta)[0] <= budget.epsilon:
                low, plan = middle, larger
            else:
                high = middle
        return plan
