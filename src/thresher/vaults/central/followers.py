"""The private state of a Frank-Wolfe walk: margins and gradient of the rows, kept up to date move by move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from thresher.privacy.arrays import Floats
from thresher.privacy.releases import Release
from thresher.vaults.engines.lazy import LazyGradient, is_walkable
from thresher.vaults.frank_wolfe import Walk
from thresher.vaults.polytopes import L1Ball
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

__all__ = ["Follower", "can_follow"]

LARGEST_EXPONENT = 1e9  # of a weight: beyond it, bounds on exponents are off by more than one by round-off alone
FURTHEST_TARGET = 1e6  # in clips: beyond it, round-off in a residual is no longer small against the clip


def can_follow(
    engine: Any, problem: LinearProblem, noise: NoiseSource, release: Release, polytope: Any, clip: float
) -> bool:  # fmt: skip
    """Whether the vertices are on the axes, the rows sparse, the loss made of pieces, and the noise plain Gumbel.

    All other conditions are on public numbers: an exponent, score/scale, is at most n/(2 multiplier).
    """
    return (
        isinstance(polytope, L1Ball)
        and is_walkable(engine)
        and problem.loss.states("pieces")
        and release.noise == "gumbel"
        and not noise.hardened
        and problem.n <= LARGEST_EXPONENT * release.multiplier
        and problem.target_radius <= FURTHEST_TARGET * clip
    )


class Follower:
    """Stands where a public walk over the l1 ball stands, and draws the next vertex.

    The weight of the vertex +-c e_j is exp(-+ kappa_j g_j), g the sum of the rows' gradients, each times what the row
    counts, and kappa_j = c / (n scale): a column of weight 2 cosh(kappa_j g_j) and a sign. ``residual`` counts already.
    """

    def __init__(
        self, engine: Any, targets: Floats, residual: Callable[[Floats], Floats], walk: Walk, clip: float, scale: float,
        shares: Floats | None = None,
    ) -> None:  # fmt: skip
        problem = walk.problem
        pieces = problem.loss.pieces(targets, clip)
        unit = 1 / (problem.n * scale)
        self._walk, self._moved, self._d = walk, 0, problem.d
        self._radius, self._shift = walk.polytope.norm, -1.0  # below 0: there is no intercept
        if problem.intercept:
            self._shift = float(walk.polytope.entries(2 * problem.d, problem)[1][0])
        kappas = self._radius * unit, self._shift * unit
        self._gradient = LazyGradient(
            engine, residual, pieces, np.ones_like(targets) if shares is None else shares, walk.scales, *kappas, clip
        )

    def draw(self, uniforms: Callable[[int], Floats]) -> int:
        """The position of the next vertex."""
        d = self._d
        for vertex, weight in self._walk.moves[self._moved :]:  # in the order of L1Ball: all +, all -, the intercept's
            down, column = divmod(vertex, d) if vertex < 2 * d else (vertex - 2 * d, d)
            self._gradient.move(column, (-weight if down else weight) * (self._shift if column == d else self._radius))
        self._moved = len(self._walk.moves)
        column, down = self._gradient.draw(uniforms)
        return column + down * d if column < d else 2 * d + down
