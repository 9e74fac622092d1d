"""Questions whose answer is a noisy minimiser of the regularised loss, or one of that loss randomly tilted."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from thresher.privacy.arrays import Floats, Indices
from thresher.privacy.bounds import LARGEST, SMALLEST
from thresher.privacy.budget import Adjacency
from thresher.privacy.plan import Plan
from thresher.privacy.questions import CertifiedSearch
from thresher.privacy.releases import RandomTrials, Release
from thresher.privacy.sensitivity import ROUND_OFF, norm_error, round_off
from thresher.vaults.central.rows import Rows, margins_of
from thresher.vaults.engines import Engine
from thresher.vaults.problem import LinearProblem

__all__ = [
    "MOST_SEARCHED",
    "Minimisers",
    "Perturbation",
    "assumed_of_searches",
    "certified_search",
    "check_ridge",
    "curvature_ratio",
    "minimise_strongly_convex",
]

Objective = Callable[[Floats], tuple[float, Floats]]


def minimise_strongly_convex(
    objective: Objective,
    start: Floats,
    strong_convexity: float,
    smoothness: float,
    tolerance: float,
    l1: Floats | float = 0.0,
) -> Floats:
    """A point where objective + sum_j l1_j |theta_j| has a subgradient of l2 norm at most ``tolerance``, hence within
    tolerance/strong_convexity of the minimiser (erratum E-7).

    L-BFGS does the work. If it stops short, accelerated proximal gradient descent goes on (Nesterov 2004, scheme
    2.2.11; with an l1 term, Beck 2017, Theorem 10.42). Its linear rate holds for every such function, and as its steps
    shrink so does the least subgradient, so the certificate is always reached and there is no fall-back that could
    depend on the data.
    """
    theta = previous = _quasi_newton(objective, start, tolerance, l1)
    gradient = objective(theta)[1]
    root = np.sqrt(strong_convexity / smoothness)
    momentum = (1 - root) / (1 + root)
    while not np.linalg.norm(_least_subgradient(theta, gradient, l1)) <= tolerance:
        ahead = theta + momentum * (theta - previous)
        previous, theta = theta, _soft_threshold(ahead - objective(ahead)[1] / smoothness, l1 / smoothness)
        gradient = objective(theta)[1]
    return theta


def _quasi_newton(objective: Objective, start: Floats, tolerance: float, l1: Floats | float) -> Floats:
    """L-BFGS, with an l1 term on the positive and negative parts of theta."""
    options = {"gtol": tolerance / np.sqrt(start.size), "ftol": 0.0, "maxiter": 1000}
    if not np.any(l1):
        plain: Floats = minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x
        return plain

    def of_parts(parts: Floats) -> tuple[float, Floats]:
        value, gradient = objective(parts[0::2] - parts[1::2])
        slopes = np.empty_like(parts)
        slopes[0::2], slopes[1::2] = gradient + l1, l1 - gradient
        return value + float(np.sum(l1 * (parts[0::2] + parts[1::2]))), slopes

    parts = np.zeros(2 * start.size)
    parts[0::2], parts[1::2] = np.maximum(start, 0), np.maximum(-start, 0)
    bounds = [(0, None)] * parts.size
    found = minimize(of_parts, parts, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    difference: Floats = found[0::2] - found[1::2]
    return difference


def _soft_threshold(theta: Floats, limit: Floats | float) -> Floats:
    shrunk: Floats = np.sign(theta) * np.maximum(np.abs(theta) - limit, 0.0)
    return shrunk


def _least_subgradient(theta: Floats, gradient: Floats, l1: Floats | float) -> Floats:
    """The subgradient of least norm of a function with this gradient plus sum_j l1_j |theta_j|."""
    return np.where(theta == 0, _soft_threshold(gradient, l1), gradient + l1 * np.sign(theta))


# -- the minimiser itself, plus noise ---------------------------------------------------------------------------------


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
        return self._release_noisy(theta, release, clip, self._sensitivity(release, clip, search), error=0.0)

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


# -- objective perturbation, on public columns ------------------------------------------------------------------------


PRECISION = 1e-5  # of the gradient at the minimiser, over clip / n: how far from it the search may stop
LARGEST_DRAW = 40.0  # standard deviations; a floating-point normal never reaches it, an exact one with chance e^-800


class Perturbation(Minimisers):
    """argmin (1/n) sum_i l_i + (ridge/2)||phi||^2 + b'phi with noise b, columns in units of their public bounds."""

    def perturbed_minimiser(self, support: Indices, release: Release, clip: float, ridge: float) -> Floats:
        """phi / units on ``support``, phi = argmin (1/n) sum_i l_i + (ridge/2)||phi||^2 + b'phi, plus a little noise.

        b ~ N(0, (multiplier * Delta_2)^2 I). The search is deterministic and stops within a public distance r of the
        exact minimiser phi*. Given phi*, the rows determine b and so the point found, and those of two neighbours lie
        within 2 r of each other: releasing it with N(0, (sd_per_tolerance * 2 r)^2 I) on top of phi* is a Gaussian
        mechanism, composed with the release of phi*.
        """
        clip, ridge = float(clip), float(ridge)
        self._check_support(support)
        check_ridge(ridge)
        self._check_ratio(support, release, ridge)
        if math.isinf(clip):
            raise ValueError(f"clip={clip!r}: the search for the minimiser needs a finite scale, even without noise")
        whole = self._charge("perturbed minimiser", release, clip, self.problem.origin())
        engine, units, norms = self._restricted(whole, support)
        limits = self._limits_of(norms, clip)
        sensitivity = self._sensitivity(release, clip)
        tilt, scale = self._noise.gaussian(np.zeros(len(support)), sensitivity, release.multiplier)
        tolerance, off = self._precision(support, clip, ridge, scale)
        # n * curvature_ratio is the largest second derivative of a row's loss, over ridge; how many rows there are
        # sets the search's steps, not its precision, which is public
        smoothness = ridge * (1 + len(self._targets) * curvature_ratio(self.problem, support, ridge))
        objective = self._objective(engine, limits, ridge, tilt)
        phi = minimise_strongly_convex(objective, np.zeros(len(support)), ridge, smoothness, tolerance)
        distance = (tolerance + off) / ridge
        phi, _ = self._noise.gaussian(phi, 2 * distance, getattr(release, "sd_per_tolerance", 0.0))
        self._record(release, clip, sensitivity, scale)
        return phi / units

    def _check_ratio(self, support: Indices, release: Release, ridge: float) -> None:
        """The Jacobian's share of the privacy loss is log(1 + ratio): it is paid for up to the release's ratio."""
        paid = getattr(release, "curvature_ratio", math.inf)  # a release without one is exact, or refused when charged
        ratio = curvature_ratio(self.problem, support, ridge)
        if not ratio <= paid:
            least = ridge * ratio / paid if paid > 0 else math.inf
            raise ValueError(
                f"ridge={ridge!r} is too small: curvature_ratio={paid!r} pays for a ridge of at least {least:.6g}"
            )

    def _precision(self, support: Indices, clip: float, ridge: float, scale: float) -> tuple[float, float]:
        """The gradient norm at which the search stops, and what round-off may hide of a gradient: public numbers.

        ridge ||phi|| is at most steepest: the gradients of at most 2 n rows and the tilt add up to no more. A margin is
        off by at most size u ||x|| ||phi||, and each of the three terms of the gradient by its own rounding.
        """
        size, row_norm = len(support), _row_norm(self.problem, support)
        steepest = MOST_SEARCHED * clip + LARGEST_DRAW * scale * math.sqrt(size)
        margins = MOST_SEARCHED * size * self.problem.curvature * row_norm**2 / ridge
        n = self.problem.n
        summed = round_off(n, clip, MOST_SEARCHED * n) + norm_error(self.problem.dimension, clip) / n
        off = summed + 4 * ROUND_OFF * (margins + 2) * steepest
        return PRECISION * clip / self.problem.n + 4 * off, off


def curvature_ratio(problem: LinearProblem, support: Indices, ridge: float) -> float:
    """curvature * ||x_i||^2 / (n ridge) at most, x_i a row restricted to ``support`` in units: its norm *squared*."""
    return problem.curvature * _row_norm(problem, support) ** 2 / (problem.n * ridge)


def _row_norm(problem: LinearProblem, support: Indices) -> float:
    """The l2 norm no row exceeds on ``support``, in units; counted with the intercept whether or not it is there."""
    return problem.norm_in_units(int(np.sum(support < problem.d)))
