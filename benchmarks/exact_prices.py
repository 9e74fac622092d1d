"""How much less noise plans need for what they cost in the order in which they ask, than in zCDP or in Renyi DP.

Run: ./dev bench prices. No row is read: 10 000 rows of 100 columns (10 for the scaler), ten features to be found, noise
by public rules. The last columns are the processor seconds that it took to find the noise, and the uses of a plan.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from accuracy import header, row
from thresher.algorithms import FrankWolfe, ObjectivePerturbation, Peeling, Pursuit, TwoStage
from thresher.algorithms.one_vs_rest import OneVsRest
from thresher.models.scaler import ColumnRanges
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.facts import PublicFacts
from thresher.privacy.plan import Plan
from thresher.vaults.losses import SQUARED, loss_named
from thresher.vaults.problem import LinearProblem

BUDGETS = [Budget(0.1, 1e-6), Budget(1.0, 1e-6), Budget(3.0, 1e-6), Budget(1.0, 1e-9), Budget(8.0, 1e-5)]

NUMBERS = LinearProblem(10_000, 100, Bounds(1.0, target=(-1.0, 1.0)), sparsity=10, loss=SQUARED, intercept=False)
THREE = LinearProblem(10_000, 100, Bounds(1.0), sparsity=10, loss=loss_named("multinomial"), intercept=False, outputs=3)
COLUMNS = PublicFacts(10_000, 10, Bounds(1.0, target=(-1.0, 1.0)))

PLANS: dict[str, tuple[Any, PublicFacts]] = {
    "frank-wolfe": (FrankWolfe(), NUMBERS),
    "peeling": (Peeling(), NUMBERS),
    "pursuit": (Pursuit(), NUMBERS),
    "private-scaler": (ColumnRanges(None, True), COLUMNS),
    "two-stage": (TwoStage(), NUMBERS),
    "objective-perturbation": (ObjectivePerturbation(), NUMBERS),
    "pursuit, three classes": (OneVsRest(Pursuit()), THREE),
}


def main() -> None:
    report(PLANS, BUDGETS)


def report(names: Iterable[str], budgets: list[Budget]) -> None:
    header("plan", *(f"({budget.epsilon:g}, {budget.delta:g})" for budget in budgets), "seconds", "uses")
    for name in names:
        algorithm, problem = PLANS[name]
        plans = [algorithm.plan(problem, budget) for budget in budgets]
        start = time.process_time()
        saved = [less_noise(plan) for plan in plans]
        seconds = (time.process_time() - start) / len(plans)
        uses = max(sum(release.times for release in plan.releases) for plan in plans)
        row(name, *(f"{100 * part:.1f} %" for part in saved), f"{seconds:.2f}", uses)


def less_noise(plan: Plan) -> float:
    """The part of its noise that a plan can do without."""
    least = plan.with_least_noise()
    return 1 - least.releases[0].multiplier / plan.releases[0].multiplier


def smallest() -> None:
    report(["two-stage"], BUDGETS[:1])


if __name__ == "__main__":
    main()
