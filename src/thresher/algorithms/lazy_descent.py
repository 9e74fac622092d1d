"""Hard-thresholded descent on noisy gradients that forgets nothing: gradients add up unthresholded.

The loop sees released gradients only, so everything here, step sizes included, is post-processing and costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from thresher.algorithms.defaults import guess_loss, removable_loss, typical_margin
from thresher.algorithms.projections import hard_threshold, noise_floor, project
from thresher.privacy.arrays import Floats
from thresher.vaults.problem import LinearProblem

__all__ = ["LazyWalk", "descend_lazily"]


OVERSHOT, TOO_SHORT = 0.25, -0.5
HOPE = (
    10.0  # times the loss one may hope to remove, as the energy of all coordinates and not only of the kept ones counts
)
NOISE_MARGIN = 2 / 3  # the noise of all rounds may move a margin by this part of what a useful model does
SURE = 2.0  # slopes within so many deviations of their noise say nothing


def descend_lazily(
    gradient: Callable[[Floats], Floats],
    problem: LinearProblem,
    rounds: int,
    clip: float,
    sd: float,
    ball: float | None = None,
) -> Floats:
    """``rounds`` steps V <- V - step * gradient(H_s(V)) from the origin; the answer is the last H_s(V), in a ``ball``.

    ``sd`` is the known noise in every coordinate of a gradient. Over the rounds the signal in V grows with their number
    and the noise with its root, so a feature need not stand out of the noise of any single round; H_s drops what the
    noise summed up so far could explain. (Where every round is thresholded, what it drops is lost.)
    """
    walk = LazyWalk(problem, rounds, clip, sd, ball)
    for _ in range(rounds):
        walk.step(gradient(walk.model))
    return walk.model


class LazyWalk:
    """The sum V, the model H_s(V), and one step length for all coefficients.

    The first step is Polyak's: what would remove the loss one may hope to remove if the gradient stayed as it is, but
    not so long that the noise of all rounds could move a margin by more than a useful model does. After a move m, the
    slope g'm at its end in units of the slope at its start tells whether m was right: 0 is the minimum along m, above 0
    it overshot, -1 means that the slope has not changed. An overshot move is cut back to the zero of the slope (secant
    rule) and the steps are shortened alike; a move that used less than half of the slope lengthens them.
    """

    def __init__(
        self, problem: LinearProblem, rounds: int, clip: float, sd: float, ball: float | None = None,
        margin: float = NOISE_MARGIN, floor: float = 1.0,
    ) -> None:  # fmt: skip
        self.problem, self.sd, self.ball = problem, sd, ball
        self.floor = floor  # what is dropped is below this part of what the noise reaches
        self.hope = HOPE * removable_loss(problem, clip)
        # 1 / (curvature of a coordinate of isotropic rows at the row bound), times 3: clipping flattens the loss
        self.longest = 3 * problem.d / (problem.curvature * problem.row_norm**2)
        useful = guess_loss(problem) if problem.loss.residuals_stay else typical_margin(problem)
        moved = problem.row_norm * sd * math.sqrt(rounds)  # what noise does to a margin, per unit of step
        self.longest = min(self.longest, margin * useful / max(moved, 1e-300))
        self.total = self.model = problem.origin()
        self.variance = 0.0  # of the noise in every coordinate of V
        self.steps: Floats | None = None
        self.growth = 2.0
        self.last: tuple[Floats, Floats, Floats, float] | None = None

    def start_at(self, model: Floats) -> None:
        """From here instead of the origin."""
        self.total = self.model = model

    def step(self, gradient: Floats, sd: float | None = None) -> None:
        """``sd`` is the noise in this gradient, if it is not the one that was planned with."""
        self.sd = self.sd if sd is None else sd
        if self.steps is None:
            self.steps = self._first_steps(gradient)
        gradient = self._corrected(gradient)
        self.last = self.total, self.model, gradient, self.variance
        self.total = self.total - self.steps * gradient
        self.variance += (self.steps[0] * self.sd) ** 2
        floor = self.floor * noise_floor(math.sqrt(self.variance), self.problem)
        self.model = project(hard_threshold(self.total, self.problem, floor), self.problem, self.ball)

    def _first_steps(self, gradient: Floats) -> Floats:
        """Polyak's, on the energy of the gradient less that of its noise."""
        problem = self.problem
        energy = float(np.sum(gradient[: problem.width] ** 2)) - problem.width * self.sd**2
        steps = np.full(problem.dimension, min(self.longest, self.hope / energy) if energy > 0 else self.longest)
        if problem.intercept:
            # half of what its largest curvature allows: its noise is not averaged away
            steps[problem.width :] = 0.5 / (problem.curvature * problem.intercept_column**2)
        return steps

    def _corrected(self, gradient: Floats) -> Floats:
        """The gradient where the walk goes on from: at the last model, or on the way to it if that overshot."""
        if self.last is None or self.steps is None:
            return gradient
        total, model, before, variance = self.last
        move = self.model - model
        at = np.flatnonzero(move != 0)  # few: both models are sparse
        blur = self.sd * float(np.linalg.norm(move[at]))  # the noise of a slope along the move
        # the gradient made the move, so its own noise looks like slope: take the expectation of that off
        own = self.sd**2 * float(np.sum(self.steps[self.model != 0]))
        start, end = max(-float(before[at] @ move[at]) - own, blur), float(gradient[at] @ move[at])
        slope = end / start if abs(end) > SURE * blur and start > 0 else 0.0
        if slope > OVERSHOT:
            part = 1 / (1 + slope)
            self.total, self.model = total + part * (self.total - total), model + part * move
            self.variance = variance + part**2 * (self.variance - variance)
            self.steps, self.growth = part * self.steps, 1.2  # after an overshoot, lengthen only gently
            return before + part * (gradient - before)
        if slope < TOO_SHORT:
            self.steps = min(self.growth, self.longest / self.steps[0]) * self.steps
        return gradient
