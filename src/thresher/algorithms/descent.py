"""Hard-thresholded gradient descent whose step follows the gradients it is given.

The loop sees released gradients only, so everything here, step sizes included, is post-processing and costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from thresher.algorithms.defaults import removable_loss
from thresher.algorithms.projections import hard_threshold, noise_floor, project
from thresher.privacy.arrays import Floats
from thresher.vaults.problem import LinearProblem

__all__ = ["descend", "descend_by"]


OVERSHOT, TOO_SHORT = 0.25, -0.5


def descend(
    gradient: Callable[[Floats], Floats],
    problem: LinearProblem,
    rounds: int,
    clip: float,
    sd: float,
    ball: float | None = None,
) -> Floats:
    """``rounds`` steps theta <- H_s(theta - step * gradient(theta)) from the origin, each projected on a ``ball``.

    ``sd`` is the known noise in every gradient. Coefficients that cannot be told from it are dropped on the way, and
    with noise the answer is the mean of the later half of the iterates on the last support.
    """
    steps = SecantSteps(problem, clip)
    theta, later = problem.origin(), problem.origin()
    for t in range(rounds):
        theta, slope, step = steps.adapt(theta, gradient(theta))
        if t > rounds // 2:
            later += theta
        theta = hard_threshold(theta - step * slope, problem, noise_floor(step[0] * sd, problem))
        theta = project(theta, problem, ball)
    if sd == 0:
        return theta
    mean = (later + theta) / math.ceil(rounds / 2)
    mean[: problem.width][theta[: problem.width] == 0] = 0
    return mean


def descend_by(
    step: float, gradient: Callable[[Floats], Floats], problem: LinearProblem, rounds: int, ball: float | None = None
) -> Floats:
    """``rounds`` steps of fixed length from the origin: IGHT as the papers write it, each projected on a ``ball``.

    The papers have no intercept; its column is much larger than the others, so its step is at most 1/curvature.
    """
    steps = np.full(problem.dimension, step)
    if problem.intercept:
        steps[problem.width :] = min(step, 1 / (problem.curvature * problem.intercept_column**2))
    theta = problem.origin()
    for _ in range(rounds):
        theta = project(hard_threshold(theta - steps * gradient(theta), problem), problem, ball)
    return theta


class SecantSteps:
    """One step length for all coefficients, corrected by what the next gradient says about the last move.

    The first step is Polyak's: what would remove the loss one may hope to remove if the gradient stayed as it is.
    After a move m, the slope g'm at its end, in units of the slope at its start, tells whether m was right: 0 is the
    minimum along m, above 0 it overshot, -1 means that the slope has not changed. An overshot move is cut back to the
    zero of the slope (secant rule) and the steps are shortened alike; a move that used less than half of the slope
    lengthens them.
    """

    def __init__(self, problem: LinearProblem, clip: float) -> None:
        self._problem = problem
        self._hope = removable_loss(problem, clip)
        # 1 / (curvature of a coordinate of isotropic rows at the row bound), times 3: clipping flattens the loss
        self._longest = 3 * problem.d / (problem.curvature * problem.row_norm**2)
        self._growth = 2.0
        self._steps: Floats | None = None
        self._last = (problem.origin(), problem.origin())

    def adapt(self, theta: Floats, gradient: Floats) -> tuple[Floats, Floats, Floats]:
        """Where to go on from (cut back if the move to ``theta`` overshot), the gradient there, the steps."""
        if self._steps is None:
            self._steps = self._first_steps(gradient)
        else:
            start, gradient_at_start = self._last
            move = theta - start
            at = np.flatnonzero(move != 0)  # few: both ends are sparse
            scale = move[at] @ (move[at] / self._steps[at])
            slope = gradient[at] @ move[at] / scale if scale > 0 else 0.0
            if slope > OVERSHOT:
                part = 1 / (1 + slope)
                theta = start + part * move
                gradient = gradient_at_start + part * (gradient - gradient_at_start)
                self._steps = part * self._steps
                self._growth = 1.2  # after an overshoot, lengthen only gently
            elif slope < TOO_SHORT:
                self._steps = min(self._growth, self._longest / self._steps[0]) * self._steps
        self._last = theta, gradient
        return theta, gradient, self._steps

    def _first_steps(self, gradient: Floats) -> Floats:
        problem = self._problem
        kept = hard_threshold(gradient, problem)[: problem.width]
        slope = float(np.sum(kept[kept != 0] ** 2))
        step = min(self._longest, self._hope / slope) if slope > 0 else self._longest
        steps = np.full(problem.dimension, step)
        if problem.intercept:
            steps[problem.width :] = 2 / problem.intercept_column**2  # its curvature is at most the column squared
        return steps
