"""Newton steps on private second moments; the columns to keep are found on the quadratic that was released."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from thresher.algorithms.newton_errors import why_untold
from thresher.algorithms.newton_path import NewtonPath
from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Budget
from thresher.privacy.conversions import zcdp_rho
from thresher.privacy.plan import Plan
from thresher.privacy.pricing import positions
from thresher.privacy.releases import (
    GaussianGram,
    GaussianMean,
    GaussianRestrictedGradient,
    GumbelNearMaximum,
    GumbelQuantile,
    GumbelSelection,
    Release,
)
from thresher.vaults import CentralVault
from thresher.vaults.problem import LinearProblem

__all__ = ["Newton", "fits_at_once"]

MEAT = 0.04  # of the budget: the second moments of gradients, which standard errors need, where there are any
START_ERROR, START = 30.0, (0.02, 0.2)  # shares of classes may be off by so many rows in n sqrt(2 rho); the least and
# largest part of the budget for them, and for a median
FINISH = 0.03  # of the budget, for its correction at the end
CLIP_ERROR, CLIP = 50.0, (0.003, 0.03)  # a clip may be off by so many rows in a budget's n sqrt(2 rho); its least and
# largest part of the budget
MEAN, GRAM = 0.045, 0.35  # of what the first stage has
SCREEN = 0.4  # the same, where its columns must be found first
REFINED, GRAM_AGAIN = 0.3, 0.15  # the part of the second stage, and what it has for its Gram matrix
STEPS, STEPS_OF_CLASSES, REFINEMENTS, GROWTH = 4, 2, 2, 1.15  # each step has so many times the budget of the one before
SCREENED = 1.5  # times as many columns as the model may have are looked at where there are too many for a Gram matrix
MOST_COLUMNS, EASY, CHEAP = 300, 150, (0.2, 0.03)  # parts of n sqrt(2 rho): so many columns are affordable up to EASY,
# and beyond
WEAK = 150.0  # below, n sqrt(2 rho) buys one stage only and no correction of the intercept, no eigenvalue below the
# noise's is believed, and every step starts from a shrunk model
FLOOR, FLOOR_OF_CLASSES = 0.1, 0.5  # parts of the noise's eigenvalues that none is believed below otherwise
SOUGHT = 10  # columns that are looked for where as many are kept as pay
INWARD = 1 - 1e-12  # shares that add up to the whole must not exceed it by round-off


class Stage(NamedTuple):
    """Columns are chosen, their second moments asked, steps made, and columns go until ``keep`` are left."""

    picks: int
    """Columns to pick; 0 in the first stage: all of them; 0 later: those that are left."""
    steps: int
    keep: int


@dataclass(frozen=True)
class Newton:
    """Newton's method on a noisy Gram matrix, with clips that hardly any row exceeds, pruned for nothing.

    (1) The intercept starts at a private median, or at noisy shares of the classes. (2) The columns are centred at
    noisy means, and their Gram matrix is asked once. (3) A few Newton steps: rows are turned by H^(-1/2), H the
    noisy Hessian with a ridge where it is lost in its noise, in which coordinates all directions need the same noise;
    the clip of their gradients is a private near maximum; and a step starts from the mean of all gradients so far. (4)
    Columns are eliminated one by one on the quadratic that is known by then, which costs nothing; (2) and (3) are done
    again for those that are left. (5) The mean residual corrects the intercept.

    Where there are too many columns for a Gram matrix, the few that go along most with the target are picked first.

    Guarantee: exponential mechanisms and Gaussians in a fixed order. Everything between answers is post-processing.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> from thresher.algorithms import Newton
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = SparseRegressor(
    ...     1, epsilon=2.0, feature_bound=1.0, target_bound=1.0, algorithm=Newton(), random_state=0
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.epsilon
    2.0
    """

    name: ClassVar[str] = "newton"
    many_outputs: ClassVar[bool] = True

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        if problem.loss.classifies and problem.outputs == 1 and problem.loss.likelihood is None:
            raise ValueError(
                f"algorithm='newton' knows no curvature of the loss {problem.loss.name!r}; use algorithm='dp-ight'"
            )
        if problem.penalty.strength:
            raise ValueError(
                f"penalty={problem.penalty.strength!r}: algorithm='newton' has a ridge of its own, just enough for the "
                "noise; use penalty=0, or algorithm='dp-srm'"
            )
        rho = zcdp_rho(budget.epsilon, budget.delta)
        stages = stages_of(problem, rho)
        asked = list(_questions(problem, rho, stages))
        clips = [each for each in asked if isinstance(each, GumbelNearMaximum)]
        near = GumbelNearMaximum(len(clips), clips[0].scale_per_sensitivity)
        others = [each for each in asked if not isinstance(each, GumbelNearMaximum)]
        order = positions([near, *others], [near if isinstance(each, GumbelNearMaximum) else each for each in asked])
        floor = FLOOR_OF_CLASSES if problem.loss.classifies else FLOOR
        settings = {
            "stages": [list(stage) for stage in stages],
            "why_no_intervals": _untold(problem, rho, stages),
            "weak": is_weak(problem, rho),
            "floor": 1.0 if is_weak(problem, rho) else floor,
            "clip": "private near maxima",
            "order": order,
        }
        most = f"at most {stages[0].keep} columns are kept, as many as pay for their noise"
        notes = (most,) * problem.as_many_as_pay
        return Plan(self.name, problem, budget, (near, *others), settings, notes=notes)

    def run(self, vault: CentralVault) -> Floats:
        path = NewtonPath(vault)
        path.start()
        for picks, steps, keep in vault.plan.settings["stages"]:
            path.choose(picks)
            path.measure()
            for _ in range(steps):
                path.step()
            path.prune(keep)
        path.shrink()
        vault.published |= path.told()
        path.finish()
        return path.theta


def strength_of(problem: LinearProblem, rho: float) -> float:
    """n sqrt(2 rho): one over the noise of a mean of numbers that move by 1."""
    return problem.n * math.sqrt(2 * rho)


def is_weak(problem: LinearProblem, rho: float) -> bool:
    """Whether noise is so large that an answer about the intercept alone would make it worse."""
    return strength_of(problem, rho) < WEAK


def fits_at_once(problem: LinearProblem, budget: Budget) -> bool:
    """Whether a Gram matrix of all columns is worth its noise, by public numbers alone."""
    strength = strength_of(problem, zcdp_rho(budget.epsilon, budget.delta))
    few, many = (part * strength for part in CHEAP)
    return problem.d <= max(3 * sought(problem), min(EASY, few), min(MOST_COLUMNS, many))


def sought(problem: LinearProblem) -> int:
    """How many columns are looked for: what is affordable must not depend on how many are kept at most."""
    return min(problem.sparsity, SOUGHT) if problem.as_many_as_pay else problem.sparsity


def stages_of(problem: LinearProblem, rho: float) -> list[Stage]:
    """What is done with all columns, or with those that are screened; and once more with those that are kept."""
    d, s, strength = problem.d, problem.sparsity, strength_of(problem, rho)
    few, many = (part * strength for part in CHEAP)
    at_once = d <= max(3 * sought(problem), min(EASY, few), min(MOST_COLUMNS, many))
    picks = 0 if at_once else min(math.ceil(SCREENED * sought(problem)), d)
    steps = STEPS_OF_CLASSES if problem.loss.classifies else STEPS
    is_pruned, s = (picks or d) > s or problem.as_many_as_pay, min(s, picks or d)
    if not is_pruned or is_weak(problem, rho) or problem.outputs > 1:
        return [Stage(picks, steps + REFINEMENTS, s)]
    return [Stage(picks, steps, s), Stage(0, REFINEMENTS, s)]


def _untold(problem: LinearProblem, rho: float, stages: list[Stage]) -> str | None:
    """Why there will be no standard errors."""
    first, last = stages[0], stages[-1]
    return why_untold(problem, rho, last.keep if last is not first else first.picks or problem.d, last.keep)


def _questions(problem: LinearProblem, rho: float, stages: list[Stage]) -> Iterator[Release]:
    """All of them, in their order."""
    classes, intercept = problem.loss.classifies, problem.intercept
    clip = part_of(rho, CLIP_ERROR / strength_of(problem, rho), CLIP)
    near = GumbelNearMaximum.for_rho(clip)
    first, told = stages[0], _untold(problem, rho, stages) is None
    clips = len(stages) + sum(stage.steps for stage in stages)
    finish = intercept and not is_weak(problem, rho)
    clips += (first.picks > 0) + intercept + (finish and not classes)
    start = part_of(rho, START_ERROR / strength_of(problem, rho), START)
    meat = MEAT * rho if told else 0.0
    left = rho if math.isinf(rho) else (rho - clips * clip - intercept * start - finish * FINISH * rho - meat) * INWARD
    if intercept:
        yield (GaussianRestrictedGradient if classes else GumbelQuantile).for_rho(start)
    for stage, part in zip(stages, [1.0] if len(stages) == 1 else [1 - REFINED, REFINED], strict=True):
        again = stage is not first
        picks, mean, gram = (0.0, 0.0, GRAM_AGAIN) if again else (SCREEN * (stage.picks > 0), MEAN * intercept, GRAM)
        if picks:
            yield near
            yield GumbelSelection.for_rho(picks * part * left, picks=stage.picks)
        if mean:
            yield near
            yield GaussianMean.for_rho(mean * (1 - picks) * part * left)
        yield near
        yield GaussianGram.for_rho(gram * (1 - picks) * part * left)
        growing = GROWTH ** np.arange(stage.steps)
        for share in growing / growing.sum():
            yield near
            yield GaussianRestrictedGradient.for_rho((1 - gram - mean) * (1 - picks) * part * float(share) * left)
    if told:
        yield GaussianGram.for_rho(MEAT * rho)
    if finish:
        if not classes:
            yield near
        yield GaussianRestrictedGradient.for_rho(FINISH * rho)


def part_of(rho: float, error: float, between: tuple[float, float]) -> float:
    """What an answer costs that may be off by this part of the rows: of a smaller budget a larger part."""
    return rho if math.isinf(rho) else float(np.clip(error**2, *between)) * rho
