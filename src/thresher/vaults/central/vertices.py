"""The question of private Frank-Wolfe: the vertex of a public polytope that the loss falls towards most."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeGuard

import numpy as np

from thresher.privacy.arrays import Floats
from thresher.privacy.releases import Release
from thresher.privacy.sensitivity import ROUND_OFF
from thresher.vaults.central.rows import Rows
from thresher.vaults.engines import Engine
from thresher.vaults.engines.lazy import LazyGradient, is_walkable
from thresher.vaults.engines.sparse import SparseEngine
from thresher.vaults.polytopes import L1Ball, Polytope, Simplex, Walk, is_measured_here
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

__all__ = ["Follower", "Vertices", "can_follow"]

LARGEST_EXPONENT = 1e9  # of a weight: beyond it, bounds on exponents are off by more than one by round-off alone
FURTHEST_TARGET = 1e6  # in clips: beyond it, round-off in a residual is no longer small against the clip


def can_follow(
    engine: Engine, problem: LinearProblem, noise: NoiseSource, release: Release, polytope: object, clip: float
) -> TypeGuard[SparseEngine]:  # fmt: skip
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
        self, engine: SparseEngine, targets: Floats, residual: Callable[[Floats], Floats], walk: Walk, clip: float,
        scale: float, shares: Floats | None = None,
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


NOTHING = 1e-300  # a coefficient that changes no margin


def without_zeros(theta: Floats) -> Floats:
    """The same point for a product that reads every column: how many entries those of a support have is private."""
    return np.where(theta == 0, NOTHING, theta)


class Vertices(Rows):
    """The vertex with the largest noisy score."""

    def vertex(
        self, at: Floats | Walk, release: Release, polytope: L1Ball | Simplex | Polytope, clip: float, *,
        constant_work: bool = False,
    ) -> int:  # fmt: skip
        """The position of the vertex v with the largest -<v, g> + noise, residuals clipped to [-clip, clip].

        A row adds r_i <v, x_i> / n to a score, with |r_i| <= clip and |<v, x_i>| <= reach: no more than clip * reach.
        ``at`` is a point, or a walk over the polytope, which the vault follows at the cost of what each move touches
        where it can. Its time then depends on the rows; with ``constant_work`` it does not, given their number and that
        of their entries.
        """
        if not is_measured_here(polytope):
            raise TypeError(
                f"polytope={polytope!r} is no set of thresher.vaults.polytopes, so its reach cannot be trusted"
            )
        walk = at if isinstance(at, Walk) else None
        if walk is not None and walk.polytope is not polytope:
            raise ValueError("polytope is not the one the walk is over")
        if walk is not None and walk.problem is not self.problem and walk.problem != self.problem:
            raise ValueError("the walk is for other public facts than this vault's, so its steps cannot be priced")
        clip = float(clip)
        contribution = clip * self._cached("reach", polytope, lambda: polytope.reach(self.problem))
        engine = self._charge("vertex", release, contribution, None if isinstance(at, Walk) else at)
        sensitivity = self._sensitivity(release, contribution)
        asked = self.problem, self._noise, release, polytope, clip
        if walk is not None and not constant_work and can_follow(engine, *asked):
            index, scale = self._follow(engine, walk, release, clip, sensitivity)
            self._record(release, contribution, sensitivity, scale)
            return index
        theta = at.theta if isinstance(at, Walk) else at
        scores = self._scores(engine, without_zeros(theta) if constant_work else theta, polytope, clip)
        error = self._score_error(contribution, polytope.terms)
        (index,) = self._release_choice(scores, 1, release, contribution, sensitivity, error)
        return int(index)

    def _follow(
        self, engine: SparseEngine, walk: Walk, release: Release, clip: float, sensitivity: float
    ) -> tuple[int, float]:
        """The position of the vertex and the scale of the noise, by following the walk."""
        scale = self._noise.gumbel_scale(sensitivity, release.multiplier)

        def start() -> Follower:
            shares = None if self._shares is None else self._shares.of_rows
            return Follower(engine, self._targets, self._clipped_residuals(clip), walk, clip, scale, shares)

        follower: Follower = self._cached("follower", (walk, clip, scale), start)
        try:
            return follower.draw(self._noise.uniform), scale
        except BaseException:  # it may have stopped between two moves
            del self._cache["follower"]
            raise

    def _scores(self, engine: Engine, theta: Floats, polytope: L1Ball | Simplex | Polytope, clip: float) -> Floats:
        """-<v, g> of every vertex v."""
        return -polytope.products(self._mean_gradient(engine, self._margins(engine, theta), clip), self.problem)

    def _score_error(self, contribution: float, terms: int) -> float:
        """A bound on a score's round-off: that of the mean gradient and that of a product with so many terms.

        Both are relative to sum_j |v_j| |g_j|, of which a row adds at most its contribution, too.
        """
        if math.isinf(contribution):
            return 0.0
        product = 4 * terms * ROUND_OFF * (self._most_present / self.problem.n) * contribution
        return self._round_off(contribution) + product
