"""Questions whose answer is a noisy minimiser of the regularised loss."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from thresher.privacy.arrays import Floats
from thresher.privacy.bounds import LARGEST, SMALLEST
from thresher.privacy.budget import Adjacency
from thresher.privacy.plan import Plan
from thresher.privacy.questions import CertifiedSearch
from thresher.privacy.releases import RandomTrials, Release
from thresher.privacy.sensitivity import ROUND_OFF, norm_error, round_off
from thresher.vaults.central.minimise import minimise_strongly_convex
from thresher.vaults.central.rows import Rows, margins_of
from thresher.vaults.engines import Engine
from thresher.vaults.problem import LinearProblem

__all__ = ["MOST_SEARCHED", "Minimisers", "assumed_of_searches", "certified_search", "check_ridge"]

MOST_SEARCHED = 2
"""Rows, or people, times n, for which a search is certified to its precision. A minimiser over m of them may be as far
as (m/n) clip / ridge from the origin, where margins round off that much more, in m terms: no public bound on m that is
not close to n would leave a precision worth having."""


class Minimisers(Rows):
    """argmin (1/n) sum_i l_i + (ridge/2)||theta||^2, gradients of each l_i of l2 norm at most ``clip``."""

    def minimiser(self, release: Release, clip: float, ridge: float) -> Floats:
        """The minimiser + noise."""
        clip, ridge = float(clip), float(ridge)
        check_ridge(ridge)
        engine = self._charge("minimiser", release, clip, self.problem.origin())
        theta, search = self._certified_minimiser(engine, self._limits(clip), clip, ridge, self.problem.row_norm)
        return self._noised(theta, release, clip, self._sensitivity(release, clip, search), error=0.0)

    def _certified_minimiser(
        self, engine: Engine, limits: Floats, clip: float, ridge: float, row_norm: float, l1: Floats | float = 0.0
    ) -> tuple[Floats, CertifiedSearch]:
        """The minimiser over the columns of ``engine``, whose rows have l2 norm at most ``row_norm``, and how it was
        searched for. ``l1`` adds sum_j l1_j |theta_j| to the objective, the same for neighbours.
        """
        tolerance = _tolerance(self.problem, clip)
        objective = self._objective(engine, limits, ridge)
        # how many rows there are sets the search's steps, not its precision, which is public
        smoothness = self.problem.curvature * row_norm**2 * self._present / self.problem.n + ridge
        theta = minimise_strongly_convex(objective, np.zeros(engine.dimension), ridge, smoothness, tolerance, l1)
        return theta, certified_search(self.problem, engine.dimension, clip, ridge, row_norm)

    def _objective(
        self, engine: Engine, limits: Floats, ridge: float, tilt: Floats | float = 0.0
    ) -> Callable[[Floats], tuple[float, Floats]]:
        """(1/n) sum_i l_i + (ridge/2)||theta||^2 + tilt'theta and its gradient."""

        def objective(theta: Floats) -> tuple[float, Floats]:
            margins = margins_of(engine, theta)
            losses = self._counted(self.problem.loss.clipped_value(margins, self._targets, limits))
            value = float(losses.sum()) / self.problem.n
            gradient = self._mean_gradient(engine, margins, limits) + ridge * theta + tilt
            return value + ridge / 2 * float(theta @ theta) + float(np.sum(tilt * theta)), gradient

        return objective


def check_ridge(ridge: float) -> None:
    if not SMALLEST <= ridge <= LARGEST:
        raise ValueError(
            f"ridge={ridge!r} must be a number from {SMALLEST:g} to {LARGEST:g}: it is what bounds the sensitivity"
        )


def assumed_of_searches(plan: Plan) -> tuple[str, ...]:
    """What must be assumed where rows may come and go: how many are present is then not known, and never told."""
    releases = [
        part for whole in plan.releases for part in (whole.parts if isinstance(whole, RandomTrials) else [whole])
    ]
    if plan.budget.adjacency is Adjacency.REPLACE_ONE or not any(part.question.searched for part in releases):
        return ()
    return (
        f"at most twice as many {plan.problem.counted} are fitted as planned for: the search for a minimiser is "
        "certified for no more",
    )


def certified_search(problem: LinearProblem, size: int, clip: float, ridge: float, row_norm: float) -> CertifiedSearch:
    """How precisely a minimiser over ``size`` columns is found: public numbers only, since the noise must not depend on
    how many rows there are.

    A margin is off by at most d u ||x|| ||theta||; ||theta|| <= 2 clip / ridge at a minimiser over at most 2 n rows, or
    people.
    """
    margins_off = MOST_SEARCHED**2 * size * ROUND_OFF * problem.curvature * row_norm**2 * clip / ridge
    longer = norm_error(problem.dimension, clip) / problem.n
    summed = round_off(problem.n, clip, MOST_SEARCHED * problem.n) + longer
    return CertifiedSearch(ridge, _tolerance(problem, clip) + summed + margins_off)


def _tolerance(problem: LinearProblem, clip: float) -> float:
    """Of the gradient at a minimiser: 1 % more noise, and reachable in floating point."""
    return 0.01 * clip / problem.n + 4 * round_off(problem.n, clip, MOST_SEARCHED * problem.n)
