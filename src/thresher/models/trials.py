"""What a private search asks: its price, and the trial that wins."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from sklearn.base import clone

from thresher.models.candidates import Params, told
from thresher.models.estimator import adopt, design_of
from thresher.models.linear import LinearModel
from thresher.privacy.budget import Budget, BudgetExceeded
from thresher.privacy.conversions import zcdp_rho
from thresher.privacy.plan import Plan
from thresher.privacy.releases import GaussianScore, RandomTrials
from thresher.vaults import Candidate, Trials
from thresher.vaults.problem import LinearProblem
from thresher.vaults.scoring import Scoring

__all__ = ["Search", "default_trials", "largest", "named"]

MOST_TRIALS = 8.0  # by default: more cost a trial over half of its epsilon (chosen on the sets of docs/tuning.md)
CLOSE = 2e-3  # a calibrated search costs at most this much less than the budget
SMALLEST = 1e-6  # epsilon of a trial


@dataclass(frozen=True, eq=False)
class Search:
    """Draw a candidate, fit it on some rows, score it on the others; a secret number of times; keep the best.

    All candidates are planned with one epsilon, the largest with which the whole search keeps its budget.
    """

    models: tuple[LinearModel, ...]
    params: tuple[Params, ...]
    trials: float
    validation: float
    scoring: Scoring
    name: ClassVar[str] = "private-search"

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        if budget.private and budget.delta == 0:
            raise ValueError("delta=0: a search has no pure guarantee; give a small delta, or None for 1/n^2")

        def search(epsilon: float) -> RandomTrials:
            return self.release_within(problem, replace(budget, epsilon=epsilon))

        def price(epsilon: float) -> float:
            return search(epsilon).cost().epsilon(budget.delta)[0]

        epsilon = largest(price, budget.epsilon) if budget.private else math.inf
        if epsilon is None:
            raise ValueError(
                f"trials={self.trials:g} leave nothing of epsilon={budget.epsilon:g} for a trial; use fewer trials or "
                "a larger epsilon"
            )
        release = search(epsilon)
        settings = {
            "trials": release.trials,
            "fit_rows": release.fit_rows,
            "score_rows": release.score_rows,
            "trial_epsilon": epsilon,
            "scoring": self.scoring.name,
            "candidates": [told(params) for params in self.params],
        }
        return Plan(self.name, problem, budget, (release,), settings)

    def run(self, vault: Trials) -> None:
        (release,) = vault.plan.releases
        assert isinstance(release, RandomTrials)  # noqa: S101
        budget = replace(vault.plan.budget, epsilon=vault.plan.settings["trial_epsilon"])
        pool = self._candidates(vault.problem, budget)
        best = vault.best(release, pool, self.scoring)
        at = next(at for at, candidate in enumerate(pool) if candidate is best.candidate)
        model: Any = clone(self.models[at]).set_params(epsilon=budget.epsilon, delta=budget.delta)
        adopt(model, pool[at].plan, best.theta, best.published)
        score = self.scoring.natural(best.score)
        vault.published = {"best_estimator": model, "best_params": self.params[at], "best_score": score}

    def release_within(self, problem: LinearProblem, budget: Budget) -> RandomTrials:
        """The search in which a trial has ``budget``. Who is scored is not fitted, so scoring takes as much again."""
        plans = [candidate.plan for candidate in self._candidates(problem, budget)]
        score = GaussianScore.for_rho(zcdp_rho(budget.epsilon, budget.delta))
        asked = dict.fromkeys((plan.releases, plan.order or ()) for plan in plans)
        fits, orders = zip(*asked, strict=True)
        fitted = plans[0].problem.n
        return RandomTrials(1, self.trials, fits, score, fitted, problem.n - fitted, orders if any(orders) else ())

    def _candidates(self, problem: LinearProblem, budget: Budget) -> list[Candidate]:
        """Every candidate's, for the rows that are fitted."""
        scored = round(self.validation * problem.n)
        if not 1 <= scored <= problem.n - 2:
            raise ValueError(
                f"validation={self.validation!r} of {problem.n} rows leaves {problem.n - scored} to fit and {scored} "
                "to score; change it, or bring more rows"
            )
        return [
            self._candidate(model, params, problem, problem.n - scored, budget)
            for model, params in zip(self.models, self.params, strict=True)
        ]

    def _candidate(self, model: Any, params: Params, problem: LinearProblem, rows: int, budget: Budget) -> Candidate:
        model = clone(model).set_params(epsilon=budget.epsilon, delta=budget.delta)
        with named(params):
            design = design_of(model, rows, problem.d, problem.outputs, problem.unit)
            plan = design.plan()
        if plan.calibration != "proved":
            raise ValueError(f"candidate {params!r}: noise as printed in a paper has no price; use 'proved'")
        return Candidate(design.algorithm, plan)


def default_trials(candidates: int) -> float:
    """Twice as many as there are candidates leave out a given one with a chance of e^-2; one needs no choice."""
    return min(2.0 * candidates, MOST_TRIALS) if candidates > 1 else 1.0


@contextmanager
def named(params: Params) -> Iterator[None]:
    """Says which candidate cannot be planned. Nothing has been spent, and no row read."""
    try:
        yield
    except (ValueError, TypeError, BudgetExceeded) as error:
        raise ValueError(f"candidate {params!r} cannot be planned: {error}") from error


def largest(price: Callable[[float], float], budget: float) -> float | None:
    """The largest epsilon of a trial, within CLOSE, whose search costs at most ``budget``; None if there is none.

    The price is about proportional to it, so the secant rule in logarithms gets there in a few steps; where plans
    change with their budget the price may jump, and halving the bracket goes on.
    """
    low, high, found = SMALLEST, budget, None
    trial, slope, last = 0.6 * budget, 1.0, (0.0, 0.0)
    for step in range(60):
        cost = price(trial)
        if cost <= budget:
            low = found = trial
        else:
            high = trial
        if budget * (1 - CLOSE) <= cost <= budget or high < low * (1 + CLOSE / 4):
            break
        now = math.log(trial), math.log(max(cost, 1e-300))
        if step > 0 and now[0] != last[0]:
            slope = min(max((now[1] - last[1]) / (now[0] - last[0]), 0.3), 3.0)
        last = now
        trial *= math.exp((math.log(budget * (1 - CLOSE / 2)) - now[1]) / slope)
        if not low < trial < high:
            trial = math.sqrt(low * high)
    return found
