"""DP-IGHT on the columns that rows use most: for text, whose columns are many, rare and uneven."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from thresher.algorithms.defaults import between_classes, clip_levels, largest_residual
from thresher.algorithms.lazy_descent import LazyWalk
from thresher.algorithms.newton import INWARD, part_of, strength_of
from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Budget
from thresher.privacy.conversions import zcdp_rho
from thresher.privacy.facts import INTERCEPT_ENTRY
from thresher.privacy.plan import Plan
from thresher.privacy.pricing import positions
from thresher.privacy.releases import GaussianMean, GaussianRestrictedGradient, GumbelNearMaximum, Release
from thresher.vaults import CentralVault
from thresher.vaults.problem import LinearProblem

__all__ = ["ScreenedIGHT"]

ROUNDS, GROWTH = 15, 1.05  # every round has so many times the budget of the one before: its clip is smaller
MARGIN, MARGIN_OF_CLASSES = 1.0, 0.6  # of what the walk allows the noise: several classes err more often
FLOOR = 0.5  # of what the walk drops
LOOKED_AT, FEWEST = 10, 1000  # times as many columns are looked at as a model may have, and at least so many
MEANS, INTERCEPTS = 0.15, 0.05  # of what starts and clips leave: the means of all columns, and mean residuals
START_ERROR, START = 30.0, (0.02, 0.1)  # shares of classes may be off by so many rows in n sqrt(2 rho); the least and
# largest part of the budget for them
CLIP_ERROR, CLIP = 20.0, (0.002, 0.01)  # the same of each clip
LARGER = 2.0  # residuals than that of the longest row at the clip are clipped where their mean is asked
LEVELS = 30  # of a clip
ALLOWED, MOST_CLIPPED, LONG_ROWS = 4.0, 0.4, 0.05  # clipping so many times the noise of a sum, in rows, does as much
# harm as the noise; never more than this part of the rows, and of rows by their norm this one


@dataclass(frozen=True)
class ScreenedIGHT:
    """Hard-thresholded gradient descent on the columns with the largest noisy means, which are also taken off.

    (1) The means of all columns, once: where most entries are 0, a column's mean is how much the rows use it, and what
    few rows use says little. Only the columns with the largest are looked at from here on, so that rows are shorter and
    less noise is needed. (2) T rounds of gradients on these, clipped at a private near maximum, are added up before
    they are thresholded (``thresher.algorithms.lazy_descent``), as of centred columns: the direction in which all rows
    agree would allow short steps only.

    Several classes share one gradient, clipped as a whole.

    Guarantee: exponential mechanisms and Gaussians in a fixed order. Everything between answers is post-processing.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> from thresher.algorithms import ScreenedIGHT
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = SparseRegressor(
    ...     1, epsilon=2.0, feature_bound=1.0, target_bound=1.0, algorithm=ScreenedIGHT(), random_state=0
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.epsilon
    2.0
    """

    name: ClassVar[str] = "screened-ight"
    many_outputs: ClassVar[bool] = True

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        rho = zcdp_rho(budget.epsilon, budget.delta)
        strength = strength_of(problem, rho)
        starts = problem.intercept and problem.loss.classifies
        start = part_of(rho, START_ERROR / strength, START) if starts else 0.0
        clip = part_of(rho, CLIP_ERROR / strength, CLIP)
        left = rho if math.isinf(rho) else (rho - start - (ROUNDS + 1) * clip) * INWARD
        growing = GROWTH ** np.arange(ROUNDS)
        shares = growing / growing.sum() * (1 - MEANS) * left
        near = GumbelNearMaximum.for_rho((ROUNDS + 1) * clip, times=ROUNDS + 1)
        means = GaussianMean.for_rho(MEANS * left)
        asked: list[Release] = [GaussianRestrictedGradient.for_rho(start)] if starts else []
        asked += [means, near]
        for share in shares:
            part = INTERCEPTS * problem.intercept
            asked += [near, GaussianRestrictedGradient.for_rho((1 - part) * float(share))]
            asked += [GaussianRestrictedGradient.for_rho(part * float(share))] if problem.intercept else []
        releases = [near, *(each for each in asked if each is not near)]
        columns = min(max(LOOKED_AT * problem.sparsity, FEWEST), problem.d)
        settings = {
            "rounds": ROUNDS,
            "columns": columns,
            "clip": "private near maxima",
            "order": positions(releases, asked),
        }
        return Plan(self.name, problem, budget, tuple(releases), settings)

    def run(self, vault: CentralVault) -> Floats:
        path = _Screened(vault)
        path.look(path.shares())
        for _ in range(vault.plan.settings["rounds"]):
            path.step()
        return path.theta


class _Screened:
    """The model so far: log-odds or a number, and coefficients of the centred columns that are looked at."""

    def __init__(self, vault: CentralVault) -> None:
        self.vault, self.problem = vault, vault.problem
        self.outputs, self.n = self.problem.outputs, self.problem.n
        self.releases = deque(each for each in vault.plan.releases if not isinstance(each, GumbelNearMaximum))
        (self.near,) = (each for each in vault.plan.releases if isinstance(each, GumbelNearMaximum))
        self.largest = largest_residual(self.problem)

    def shares(self) -> Floats:
        """The log-odds of the shares of the classes, from noisy numbers of rows; of numbers their centre."""
        classes = max(self.outputs, 2)
        if not (self.problem.intercept and self.problem.loss.classifies):
            return np.zeros(self.outputs)
        # at the origin a residual is 1/2 - y, or for several classes at most 1 long
        clip = INTERCEPT_ENTRY / (2 if self.outputs == 1 else 1)
        found = 1 / classes - self._mean_residuals(self.releases.popleft(), self.problem.origin(), clip)
        least = min(max(self._noise / INTERCEPT_ENTRY, 1 / self.n), 0.5 / classes)
        shares = np.clip(found, least, 1 - least)
        odds: Floats = np.log(shares / (1 - shares)) if self.outputs == 1 else np.log(shares)
        return odds

    def look(self, odds: Floats) -> None:
        """Which columns are used most, their means, and how long rows are on them."""
        problem, count = self.problem, self.vault.plan.settings["columns"]
        longest = problem.bounds.row_norm(problem.d) / float(problem.bounds.entries(problem.d).min())
        means = self.vault.mean(np.arange(problem.d), self.releases.popleft(), min(longest, math.sqrt(problem.d)))
        self.support = np.sort(np.argsort(-np.abs(means), kind="stable")[:count])
        lucky = self._noise * math.sqrt(2 * math.log(problem.d / count))  # by what the largest are too large
        means = means[self.support]
        self.means = np.sign(means) * np.maximum(np.abs(means) - lucky, 0.0)
        longest = min(longest, math.sqrt(count))
        self.norm = self._near_maximum("row norms", longest, LONG_ROWS * self.n, problem.origin())
        self.small = replace(
            problem, d=count, sparsity=min(problem.sparsity, count),
            bounds=replace(problem.bounds, feature=None, row=self.norm),
        )  # fmt: skip
        self.model = self.small.origin()
        if problem.intercept:
            self.model[self.small.width :] = odds / self.small.intercept_column
        self.walk: LazyWalk | None = None

    def step(self) -> None:
        gradient, sd, clip = self._gradient()
        if self.walk is None:
            rounds = self.vault.plan.settings["rounds"]
            self.walk = LazyWalk(
                self.small, rounds, clip, sd, margin=MARGIN if self.outputs == 1 else MARGIN_OF_CLASSES, floor=FLOOR
            )
            self.walk.start_at(self.model)
        self.walk.step(gradient, sd)
        self.model = self.walk.model

    def _gradient(self) -> tuple[Floats, float, float]:
        """As of the centred columns, its noise and the clip."""
        theta, release = self.theta, self.releases.popleft()
        allowed = min(ALLOWED * math.sqrt(2 * self.small.width) * release.multiplier, MOST_CLIPPED * self.n)
        highest = self.largest * self.norm * (1 if self.outputs == 1 else math.sqrt(2))
        clip = self._near_maximum("gradient norms", highest, allowed, theta)
        answer = self.vault.restricted_gradient(theta, self.support, release, clip)
        sd = self._noise * math.sqrt(1 - 1 / self.outputs if self.outputs > 1 else 1.0)  # between classes
        table = answer.reshape(len(self.support), self.outputs) / self.problem.units[self.support][:, None]
        if self.problem.intercept:
            residual = min(self.largest, LARGER * (clip / self.norm))
            mean = self._mean_residuals(self.releases.popleft(), theta, INTERCEPT_ENTRY * residual)
            table = np.vstack([table - np.outer(self.means, mean), self.small.intercept_column * mean])
        stacked = self.small.stacked(table if self.outputs > 1 else table[:, 0])
        return between_classes(stacked, self.small), sd, clip

    @property
    def theta(self) -> Floats:
        """The model as the problem has it."""
        problem, count = self.problem, self.small.d
        table = self.small.by_column(self.model).reshape(-1, self.outputs)
        whole = np.zeros((problem.d + problem.intercept, self.outputs))
        whole[self.support] = table[:count] / problem.units[self.support][:, None]
        if problem.intercept:
            constant = table[count] * self.small.intercept_column - self.means @ table[:count]
            whole[problem.d] = constant / problem.intercept_column
        return problem.stacked(whole if self.outputs > 1 else whole[:, 0])

    def _mean_residuals(self, release: Release, theta: Floats, clip: float) -> Floats:
        """Of each output; the clip is that of a residual in the intercept's column."""
        answer = self.vault.restricted_gradient(theta, np.array([self.problem.d]), release, clip)
        return np.ravel(answer) / self.problem.intercept_column

    def _near_maximum(
        self, of: Literal["row norms", "gradient norms"], highest: float, allowed: float, theta: Floats
    ) -> float:
        levels, price = clip_levels(highest, LEVELS, self.near.multiplier, self.n)
        return self.vault.near_maximum(of, levels, min(allowed, self.n / 2), price, theta, self.near, self.support)

    @property
    def _noise(self) -> float:
        """The scale of the noise in the last answer, which is public."""
        return self.vault.answers[-1].scale
