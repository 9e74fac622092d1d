"""One run of a method of chapter 6 on real rows, its iterates compared with the exact minimiser.

Every method gets the same budget but Rajkumar and Agarwal, whose every round takes it whole. Gradient methods run 100
rounds with momentum .8 and hand over the mean of the last quarter. Their step is a public rule: that with which the
ridge alone would halve theta, log 2 / (lambda rounds), unless stability or the method's own noise (DP-GD's rule) asks
for a shorter one. The rule was chosen after a look at the gaps of a few steps and rounds on these very sets; on
KDDCup99 and Adult .5 to .8 in place of log 2 would do as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from thresher.algorithms import DPGD, ObjectivePerturbation, OutputPerturbation, RajkumarAgarwal
from thresher.algorithms.stochastic import Stochastic
from thresher.federated.protocols import Noise
from thresher.federated.vault import DataSets, Party, parties_of
from thresher.privacy.arrays import Floats
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.plan import Plan
from thresher.privacy.releases import GaussianGradient
from thresher.privacy.sensitivity import gradient_sensitivity
from thresher.vaults.losses import LOGISTIC, SQUARED
from thresher.vaults.penalties import Penalty
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource
from thresher_papers.experiments.chapter6_sets import SETS, Rows
from thresher_papers.experiments.crowd import Crowd
from thresher_papers.experiments.experiment import Row
from thresher_papers.experiments.judge import Judge
from thresher_papers.experiments.parties import open_vault, plan_for

__all__ = ["EPSILON", "HANDED_OVER", "METHODS", "ROUNDS", "run"]


EPSILON, RIDGE, CLIP = 0.5, 1e-3, 1.0
ROUNDS, MOMENTUM, WATCHED = 100, 0.8, 5
HANDED_OVER = -1  # in place of an iteration


class Method(NamedTuple):
    """An algorithm for a problem and the sd of the noise in a gradient, and who adds that noise."""

    algorithm: Callable[[LinearProblem, float], Any]
    noise: Noise


def step(problem: LinearProblem, sd: float) -> float:
    """The public rule, for gradients whose noise has this sd."""
    halving = math.log(2) / (problem.penalty.curvature * ROUNDS)
    return min(halving, DPGD(momentum=MOMENTUM).default_step(problem, ROUNDS, sd))


def descent(problem: LinearProblem, sd: float) -> DPGD:
    return DPGD(passes=ROUNDS, step=step(problem, sd), clip=CLIP, momentum=MOMENTUM)


def spendthrift(problem: LinearProblem, sd: float) -> RajkumarAgarwal:
    return RajkumarAgarwal(passes=ROUNDS, step=step(problem, 0.0), clip=CLIP, momentum=MOMENTUM, output="average")


def output(problem: LinearProblem, sd: float) -> OutputPerturbation:
    return OutputPerturbation(ridge=RIDGE, clip=CLIP)


def objective(problem: LinearProblem, sd: float) -> ObjectivePerturbation:
    return ObjectivePerturbation(ridge=RIDGE, clip=CLIP)


METHODS = {
    "MPC Grad P": Method(descent, "joint"),
    "MPC Out P": Method(output, "joint"),
    "Local Grad P": Method(descent, "separate"),
    "Local Out P": Method(output, "separate"),
    "Local Obj P": Method(objective, "separate"),
    "Pathak": Method(output, "smallest"),
    "Rajkumar-Agarwal (printed)": Method(spendthrift, "printed"),
}
"""By the thesis' names."""


@cache
def judge_of(data: str) -> Judge:
    return Judge(SETS[data](), RIDGE, CLIP)


# -- one run --------------------------------------------------------------------------------------------------------


def run(data: str, method: str, parties: int, delta: float, seed: int) -> list[Row]:
    """One method, all rows dealt out to so many parties: how good its iterates are, and what it hands over."""
    judge, chosen = judge_of(data), METHODS[method]
    problem, budget = problem_of(judge.rows), Budget(EPSILON, delta)
    sizes = (problem.n // parties,) * parties
    algorithm = algorithm_for(chosen, problem, budget, parties)
    plan = plan_for(algorithm, chosen.noise, problem, budget, sizes)
    noise = NoiseSource(seed)
    facts = {
        "method": method, "parties": parties, "records": sizes[0], "delta": delta, "seed": seed,
        "real epsilon": plan.epsilon,
    }  # fmt: skip
    rows: list[Row] = []
    with open_vault(chosen.noise, parties_for(judge.rows, plan, sizes, noise), sizes, plan, noise) as vault:
        for iteration, theta in models(algorithm, vault):
            gap, loss = judge.judged(theta)
            rows.append({**facts, "iteration": iteration, "gap": gap, "loss": loss, **judge.facts})
    return rows


def problem_of(rows: Rows) -> LinearProblem:
    n, d = rows.X.shape
    loss, target = (SQUARED, (-1.0, 1.0)) if rows.regression else (LOGISTIC, None)
    return LinearProblem(
        n,
        d,
        Bounds(row=1.0, target=target),
        sparsity=d,
        loss=loss,
        intercept=False,
        penalty=Penalty("ridge", RIDGE),
    )


def algorithm_for(method: Method, problem: LinearProblem, budget: Budget, m: int) -> Any:
    """With a step that suits its own noise: that of m parties which each add some is sqrt(m) times as large."""
    release = GaussianGradient.calibrated(budget, ROUNDS)
    sd = release.multiplier * gradient_sensitivity(CLIP, problem.n, budget.adjacency)
    return method.algorithm(problem, sd * (math.sqrt(m) if method.noise == "separate" else 1.0))


def parties_for(rows: Rows, plan: Plan, sizes: tuple[int, ...], noise: NoiseSource) -> Sequence[Party]:
    """The library's own; where each has one record, a crowd of them."""
    if len(sizes) == len(rows.y):
        return [Crowd(rows.X, rows.y, plan, noise)]
    return parties_of(DataSets(np.split(rows.X, np.cumsum(sizes)[:-1])), rows.y, plan, noise, sizes)


def models(algorithm: Any, vault: Any) -> Iterator[tuple[int, Floats]]:
    """The iterates of a gradient method, every few rounds; at last what is handed over."""
    if not isinstance(algorithm, Stochastic):
        yield HANDED_OVER, algorithm.run(vault)
        return
    state = algorithm.start(vault)
    for t in range(1, vault.plan.settings["rounds"] + 1):
        state = algorithm.advance(vault, state)
        if t % WATCHED == 0:
            yield t, state["theta"]
    yield HANDED_OVER, algorithm.finish(vault, state)
