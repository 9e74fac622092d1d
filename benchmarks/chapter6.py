"""One run of a method of chapter 6 on real rows, its iterates compared with the exact minimiser.

Every method gets the same budget but Rajkumar and Agarwal, whose every round takes it whole. Gradient methods run 100
rounds with momentum .8 and hand over the mean of the last quarter. Their step is a public rule: that with which the
ridge alone would halve theta, log 2 / (lambda rounds), unless stability or the method's own noise (DP-GD's rule) asks
for a shorter one. The rule was chosen after a look at the gaps of a few steps and rounds on these very sets; on
KDDCup99 and Adult .5 to .8 in place of log 2 would do as well.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowd import Crowd
from hospitals import SETS, Rows
from parties import open_vault, plan_for
from thresher.algorithms import DPGD, ObjectivePerturbation, OutputPerturbation, RajkumarAgarwal
from thresher.algorithms.stochastic import Stochastic
from thresher.budget import Budget
from thresher.clipping import Bounds, gradient_sensitivity
from thresher.federated.parties import DataSets, Party
from thresher.federated.protocols import Noise
from thresher.federated.vault import parties_of
from thresher.losses import LOSSES
from thresher.penalties import Penalty
from thresher.plan import Plan, Problem
from thresher.randomness import NoiseSource
from thresher.releases import GaussianGradient
from thresher.vaults.minimise import minimise_strongly_convex

Floats = NDArray[np.float64]

EPSILON, RIDGE, CLIP = 0.5, 1e-3, 1.0
ROUNDS, MOMENTUM, WATCHED = 100, 0.8, 5


class Method(NamedTuple):
    """An algorithm for a problem and the sd of the noise in a gradient, and who adds that noise."""

    algorithm: Callable[[Problem, float], Any]
    noise: Noise


def step(problem: Problem, sd: float) -> float:
    """The public rule, for gradients whose noise has this sd."""
    halving = math.log(2) / (problem.penalty.curvature * ROUNDS)
    return min(halving, DPGD(momentum=MOMENTUM)._step(problem, ROUNDS, sd))


def descent(problem: Problem, sd: float) -> DPGD:
    return DPGD(passes=ROUNDS, step=step(problem, sd), clip=CLIP, momentum=MOMENTUM)


def spendthrift(problem: Problem, sd: float) -> RajkumarAgarwal:
    return RajkumarAgarwal(passes=ROUNDS, step=step(problem, 0.0), clip=CLIP, momentum=MOMENTUM, output="average")


def output(problem: Problem, sd: float) -> OutputPerturbation:
    return OutputPerturbation(ridge=RIDGE, clip=CLIP)


def objective(problem: Problem, sd: float) -> ObjectivePerturbation:
    return ObjectivePerturbation(ridge=RIDGE, clip=CLIP)


METHODS = {
    "MPC Grad P": Method(descent, "joint"),
    "MPC Out P": Method(output, "joint"),
    "Local Grad P": Method(descent, "separate"),
    "Local Out P": Method(output, "separate"),
    "Local Obj P": Method(objective, "separate"),
    "Pathak": Method(output, "smallest"),
    "Rajkumar-Agarwal (no guarantee)": Method(spendthrift, "printed"),
}


class Point(NamedTuple):
    """How good a model is after so many iterations; that which is handed over has -1 of them."""

    data: str
    method: str
    parties: int | None
    delta: float
    seed: int
    iteration: int
    gap: float
    loss: float


class Judge:
    """What a model is compared with: the exact minimiser of J = mean loss + (lambda/2)||theta||^2."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._loss = LOSSES["squared" if rows.regression else "logistic"]
        self._limits = np.full(len(rows.y), CLIP)  # of rows of norm 1
        smoothness = self._loss.curvature + RIDGE
        origin = np.zeros(rows.X.shape[1])
        self.best = minimise_strongly_convex(self.objective, origin, RIDGE, smoothness, 1e-8)  # J to 5e-14
        self.least, self.error = self.objective(self.best)[0], self._error(self.best)
        self.start = self.objective(origin)[0]

    def objective(self, theta: Floats) -> tuple[float, Floats]:
        margins = self.rows.X @ theta
        values = self._loss.clipped_value(margins, self.rows.y, self._limits)
        slopes = np.clip(self._loss.residual(margins, self.rows.y), -self._limits, self._limits)
        gradient = slopes @ self.rows.X / len(slopes) + RIDGE * theta
        return float(values.mean()) + RIDGE / 2 * float(theta @ theta), gradient

    def _error(self, theta: Floats) -> float:
        margins = self.rows.X_test @ theta
        if self.rows.regression:
            return float(np.mean(np.square(margins - self.rows.y_test)))
        return float(np.mean((margins > 0) != (self.rows.y_test > 0)))

    def judged(self, theta: Floats) -> tuple[float, float]:
        """The optimality gap, and how much larger the test error is than that of the exact minimiser."""
        return self.objective(theta)[0] - self.least, self._error(theta) - self.error


@cache
def judge_of(name: str, folder: Path) -> Judge:
    return Judge(SETS[name](folder))


# -- one run --------------------------------------------------------------------------------------------------------


def problem_of(rows: Rows) -> Problem:
    n, d = rows.X.shape
    loss, target = ("squared", (-1.0, 1.0)) if rows.regression else ("logistic", None)
    return Problem(n, d, d, loss, Bounds(row=1.0, target=target), intercept=False, penalty=Penalty("ridge", RIDGE))


def algorithm_for(method: Method, problem: Problem, budget: Budget, m: int) -> Any:
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
    """The iterates of a gradient method, every few rounds; at last, with -1, what is handed over."""
    if not isinstance(algorithm, Stochastic):
        yield -1, algorithm.run(vault)
        return
    state = algorithm.start(vault)
    for t in range(1, vault.plan.settings["rounds"] + 1):
        state = algorithm.advance(vault, state)
        if t % WATCHED == 0:
            yield t, state["theta"]
    yield -1, algorithm.finish(vault, state)


def run(data: str, name: str, m: int | None, delta: float, seed: int, folder: Path) -> list[Point]:
    warnings.simplefilter("ignore")
    judge, method = judge_of(data, folder), METHODS[name]
    problem = problem_of(judge.rows)
    count = m or problem.n
    sizes = (problem.n // count,) * count
    budget = Budget(EPSILON, delta)
    algorithm = algorithm_for(method, problem, budget, count)
    plan = plan_for(algorithm, method.noise, problem, budget, sizes)
    assert method.noise == "printed" or plan.epsilon <= EPSILON
    noise = NoiseSource(seed)
    with open_vault(method.noise, parties_for(judge.rows, plan, sizes, noise), sizes, plan, noise) as vault:
        found = [(t, *judge.judged(theta)) for t, theta in models(algorithm, vault)]
    return [Point(data, name, m, delta, seed, *each) for each in found]
