"""Questions whose answer is a noisy minimiser of the regularised loss."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from thresher.budget import Adjacency
from thresher.clipping import LARGEST, SMALLEST, minimiser_sensitivity
from thresher.engines import Engine
from thresher.plan import Problem
from thresher.releases import Release
from thresher.vaults.minimise import minimise_strongly_convex
from thresher.vaults.rows import ROUND_OFF, Rows, margins_of, round_off

__all__ = ["Minimisers", "check_ridge", "stability"]

Floats = NDArray[np.float64]


class Minimisers(Rows):
    """argmin (1/n) sum_i l_i + (ridge/2)||theta||^2, gradients of each l_i of l2 norm at most ``clip``."""

    def minimiser(self, release: Release, clip: float, ridge: float) -> Floats:
        """The minimiser + noise."""
        clip, ridge = float(clip), float(ridge)
        check_ridge(ridge)
        engine = self._charge("minimiser", release, clip, self.problem.origin())
        theta, sensitivity = self._certified_minimiser(engine, self._limits(clip), clip, ridge, self.problem.row_norm)
        return self._noised(theta, release, clip, sensitivity, error=0.0)

    def _certified_minimiser(
        self, engine: Engine, limits: Floats, clip: float, ridge: float, row_norm: float, l1: Floats | float = 0.0
    ) -> tuple[Floats, float]:
        """The minimiser over the columns of ``engine``, whose rows have l2 norm at most ``row_norm``, and how far it
        can be from that of a neighbour. ``l1`` adds sum_j l1_j |theta_j| to the objective, the same for both.
        """
        tolerance = _tolerance(self.problem, clip)
        objective = self._objective(engine, limits, ridge)
        smoothness = self.problem.curvature * row_norm**2 * self._present / self.problem.n + ridge
        theta = minimise_strongly_convex(objective, np.zeros(engine.dimension), ridge, smoothness, tolerance, l1)
        adjacency = self._plan.budget.adjacency
        return theta, stability(self.problem, adjacency, engine.dimension, clip, ridge, row_norm)

    def _objective(
        self, engine: Engine, limits: Floats, ridge: float, tilt: Floats | float = 0.0
    ) -> Callable[[Floats], tuple[float, Floats]]:
        """(1/n) sum_i l_i + (ridge/2)||theta||^2 + tilt'theta and its gradient."""

        def objective(theta: Floats) -> tuple[float, Floats]:
            margins = margins_of(engine, theta)
            losses = self._counted(self._loss.clipped_value(margins, self._targets, limits))
            value = float(losses.sum()) / self.problem.n
            gradient = self._mean_gradient(engine, margins, limits) + ridge * theta + tilt
            return value + ridge / 2 * float(theta @ theta) + float(np.sum(tilt * theta)), gradient

        return objective


def check_ridge(ridge: float) -> None:
    if not SMALLEST <= ridge <= LARGEST:
        raise ValueError(
            f"ridge={ridge!r} must be a number from {SMALLEST:g} to {LARGEST:g}: it is what bounds the sensitivity"
        )


def stability(problem: Problem, adjacency: Adjacency, size: int, clip: float, ridge: float, row_norm: float) -> float:
    """How far a certified minimiser over ``size`` columns can be from that of a neighbour: public numbers only, since
    the noise must not depend on how many rows there are.

    A margin is off by at most d u ||x|| ||theta||; ||theta|| <= 2 clip / ridge at a minimiser over at most 2 n rows, or
    people.
    """
    margins_off = 4 * size * ROUND_OFF * problem.curvature * row_norm**2 * clip / ridge
    certified = _tolerance(problem, clip) + round_off(problem.n, clip, problem.rows_each) + margins_off
    return minimiser_sensitivity(clip, problem.n, adjacency, ridge, certified)


def _tolerance(problem: Problem, clip: float) -> float:
    """Of the gradient at a minimiser: 1 % more noise, and reachable in floating point."""
    return 0.01 * clip / problem.n + 4 * round_off(problem.n, clip, problem.rows_each)
