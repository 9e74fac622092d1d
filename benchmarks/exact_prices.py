"""How much less noise plans need for what they cost in the order in which they ask, than in zCDP or in Renyi DP.

Run: ./dev bench prices. No row is read: 10 000 rows of 100 columns (10 for the scaler), ten features to be found, noise
by public rules. The last columns are the largest part of delta that the grid proves too much, against one of four times
as many cells; the most processor seconds that it took to find the noise of one of these plans, with nothing remembered
of another; and the most steps of one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from accuracy import header, row
from thresher.algorithms import FrankWolfe, Newton, ObjectivePerturbation, Peeling, Pursuit, TwoStage
from thresher.algorithms.one_vs_rest import OneVsRest
from thresher.models.scaler import ColumnRanges
from thresher.privacy import composition, pricing, profiles
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
    "newton, 10 columns": (Newton(), replace(NUMBERS, d=10, sparsity=5, intercept=True)),
    "newton, 50 columns": (Newton(), replace(NUMBERS, d=50, intercept=True)),
    "newton, 150 columns": (Newton(), replace(NUMBERS, d=150, intercept=True)),
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
    header("plan", *(f"({budget.epsilon:g}, {budget.delta:g})" for budget in budgets), "grid", "seconds", "steps")
    for name in names:
        algorithm, problem = PLANS[name]
        plans = [algorithm.plan(problem, budget) for budget in budgets]
        found = [less_noise(plan) for plan in plans]
        steps = max(sum(release.times * len(release.steps or ()) for release in plan.releases) for plan in plans)
        saved = (f"{100 * part:.1f} %" for part, _ in found)
        seconds, grid = max(took for _, took in found), max(too_much(plan) for plan in plans)
        row(name, *saved, f"{100 * grid:.1f} %", f"{seconds:.2f}", steps)


def less_noise(plan: Plan) -> tuple[float, float]:
    """The part of its noise that a plan can do without, and the seconds that it took to find it."""
    for kept in (pricing._least_factor, pricing._priced, pricing._steps, profiles._tail_of_means):
        kept.cache_clear()
    start = time.process_time()
    least = plan.with_least_noise()
    return 1 - least.releases[0].multiplier / plan.releases[0].multiplier, time.process_time() - start


def too_much(plan: Plan) -> float:
    """The part of delta that is not proved on a finer grid, with the least noise that was found."""
    steps = pricing._steps(plan.with_least_noise().releases, plan.order) or ()
    finer = composition.composed_delta(steps, plan.budget.epsilon, 4 * composition.CELLS + 0.5)
    return 1 - finer / composition.composed_delta(steps, plan.budget.epsilon)


def smallest() -> None:
    report(["two-stage"], BUDGETS[:1])


if __name__ == "__main__":
    main()
