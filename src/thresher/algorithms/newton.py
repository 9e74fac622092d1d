"""Newton steps on private second moments; what is left is pruned on the quadratic that was released."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

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

__all__ = ["Newton", "Stage"]

START, FINISH = 0.02, 0.03  # of the whole: where an intercept starts, and its correction at the end
CLIP = (0.005, 0.03)  # of the whole: the least and the most that a clip costs
CLIP_ERROR = 25.0
STEPS, REFINEMENTS, REFINED = 4, 2, 0.3
MEAN, GRAM, GRAM_AGAIN = 0.045, 0.35, 0.15  # of a stage
STAGE_PICKS, STAGE_MEAN, STAGE_GRAM = 0.5, 0.02, 0.12
GROWTH, STAGE_GROWTH = 1.15, 1.4
OVER = 1.2
MOST_COLUMNS = 300
WEAK = 150.0
INWARD = 1 - 1e-12  # shares that add up to the whole must not exceed it by round-off


class Stage(NamedTuple):
    """Columns are picked, their second moments are asked, steps are made, and columns go until ``keep`` are left."""

    picks: int
    """Columns to pick; 0: none, it goes on with those there are, or with all if it is the first."""
    steps: int
    keep: int


@dataclass(frozen=True)
class Newton:
    """Newton."""

    name: ClassVar[str] = "newton"
    many_outputs: ClassVar[bool] = True

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        rho = zcdp_rho(budget.epsilon, budget.delta)
        stages = default_stages(problem, rho)
        asked = list(self._asked(problem, rho, stages))
        clips = sum(isinstance(each, GumbelNearMaximum) for each in asked)
        near = next(each for each in asked if isinstance(each, GumbelNearMaximum))
        releases = [GumbelNearMaximum(clips, near.scale_per_sensitivity)]
        releases += [each for each in asked if each is not near]
        order = positions(releases, [releases[0] if each == near else each for each in asked])
        settings = {"stages": [list(stage) for stage in stages], "clip": "near maxima, private", "order": order}
        return Plan(self.name, problem, budget, tuple(releases), settings)

    def run(self, vault: CentralVault) -> Floats:
        path = NewtonPath(vault)
        path.start()
        for picks, steps, keep in vault.plan.settings["stages"]:
            path.choose(picks)
            path.measure()
            for _ in range(steps):
                path.step()
            path.prune(keep)
        path.finish()
        return path.theta

    def _asked(self, problem: LinearProblem, rho: float, stages: list[Stage]) -> Iterator[Release]:
        """Every question in its order."""
        intercept, classes = problem.intercept, problem.loss.classifies
        clips = sum(1 + (stage.picks > 0) + (stage.picks > 0 or not at) * intercept + stage.steps
                    for at, stage in enumerate(stages)) + (intercept and not classes)
        each = rho if math.isinf(rho) else clip_share(problem, rho) * rho
        near = GumbelNearMaximum.for_rho(each)
        left = (rho - clips * each - intercept * (START + FINISH) * rho) * INWARD if math.isfinite(rho) else rho
        if intercept:
            yield (GaussianRestrictedGradient if classes else GumbelQuantile).for_rho(START * rho)
        for at, (stage, part) in enumerate(zip(stages, parts_of(stages) * left, strict=True)):
            mean, gram = (STAGE_MEAN, STAGE_GRAM) if stage.picks else (MEAN, GRAM) if not at else (0.0, GRAM_AGAIN)
            picks = STAGE_PICKS if stage.picks else 0.0
            mean *= intercept
            if picks:
                yield near
                yield GumbelSelection.for_rho(picks * part, picks=stage.picks)
            if mean:
                yield near
                yield GaussianMean.for_rho(mean * part)
            yield near
            yield GaussianGram.for_rho(gram * part)
            for share in geometric(GROWTH, stage.steps):
                yield near
                yield GaussianRestrictedGradient.for_rho((1 - picks - mean - gram) * share * part)
        if intercept:
            if not classes:
                yield near
            yield GaussianRestrictedGradient.for_rho(FINISH * rho)


def default_stages(problem: LinearProblem, rho: float) -> list[Stage]:
    d, s = problem.d, problem.sparsity
    strength = problem.n * math.sqrt(2 * rho)
    if d <= 3 * s or d <= min(150.0, 0.12 * strength) or d <= min(MOST_COLUMNS, 0.03 * strength):
        if d <= s or strength < WEAK or problem.outputs > 1:
            return [Stage(0, STEPS + REFINEMENTS, s)]
        return [Stage(0, STEPS, s), Stage(0, REFINEMENTS, s)]
    most = min(math.ceil(OVER * s), d)
    value = problem.n * math.sqrt(rho) / s
    stages = min(3 if value < 20 else 5 if value < 80 else 8, most)
    counts = np.diff(np.linspace(0, most, stages + 1).round().astype(int))
    return [*(Stage(int(k), 1, most) for k in counts[:-1]), Stage(int(counts[-1]), 1, s), Stage(0, REFINEMENTS, s)]


def parts_of(stages: list[Stage]) -> Floats:
    if stages[0].picks == 0:
        return np.array([1.0]) if len(stages) == 1 else np.array([1 - REFINED, REFINED])
    return geometric(STAGE_GROWTH, len(stages))


def geometric(growth: float, count: int) -> Floats:
    """Shares of one that grow."""
    parts: Floats = growth ** np.arange(count)
    return parts / parts.sum()


def clip_share(problem: LinearProblem, rho: float) -> float:
    return float(np.clip((CLIP_ERROR / (problem.n * math.sqrt(2 * rho))) ** 2, *CLIP))
