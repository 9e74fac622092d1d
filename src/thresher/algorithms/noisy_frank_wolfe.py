"""Frank-Wolfe with Gaussian noise on the gradient, over any convex set (Talwar, Thakurta and Zhang, Theorem 2.6)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from thresher.algorithms.defaults import check_positive, check_rounds, gradient_clip, typical_margin
from thresher.algorithms.frank_wolfe import default_radius, steps
from thresher.algorithms.projections import hard_threshold
from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Budget
from thresher.privacy.conversions import gaussian_mu
from thresher.privacy.plan import Plan
from thresher.privacy.releases import GaussianGradient
from thresher.privacy.sensitivity import gradient_sensitivity
from thresher.vaults import CentralVault
from thresher.vaults.polytopes import least_on_ball
from thresher.vaults.problem import LinearProblem

__all__ = ["NoisyFrankWolfe"]


@dataclass(frozen=True)
class NoisyFrankWolfe:
    """theta_{t+1} = (1 - mu_t) theta_t + mu_t v_t, mu_t = 2/(t+2), t = 1..T, from the origin; v_t the point of a public
    convex set C where <gradient(theta_t) + noise, v> is least. At the end the s largest coefficients are kept.

    C is the ball ||theta||_q <= radius, or the set over which ``oracle`` minimises: a function that takes the noisy
    gradient of the d coefficients to the best point of C, with ``radius`` an l2 bound on C (used for the number of
    rounds only). The intercept has an interval of its own.

    Guarantee: T Gaussian releases of sensitivity contributions * clip / n, composed by the exact Gaussian curve; the
    rest is post-processing. Excess risk O(G^(1/3) (L2 w)^(2/3) / (n epsilon)^(2/3)) up to logarithms, G the curvature
    constant, L2 = clip and w the Gaussian width of C (Theorem 2.6). T balances 2 G / T against sd * w.

    Parameters
    ----------
    iterations : int, optional
        Rounds T. None: a public rule that balances 2 G / T against the noise.
    radius : float, optional
        Of the ball ||theta||_q <= radius, or an l2 bound on the set of ``oracle``. None: a public rule.
    q : float
        The norm of the ball, at least 1.
    oracle : callable, optional
        Takes a noisy gradient to the best point of another convex set.
    clip : float, optional
        l2 norm to which the gradient of a row is clipped. None: a public rule of the bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> from thresher.algorithms import NoisyFrankWolfe
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = SparseRegressor(
    ...     1, epsilon=2.0, feature_bound=1.0, target_bound=1.0, algorithm=NoisyFrankWolfe(iterations=5)
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.epsilon
    2.0
    """

    iterations: int | None = None
    radius: float | None = None
    q: float = 1.0
    oracle: Callable[[Floats], Floats] | None = None
    clip: float | None = None

    name: ClassVar[str] = "noisy-frank-wolfe"

    def __post_init__(self) -> None:
        check_rounds(self.iterations)
        check_positive(radius=self.radius, clip=self.clip)
        if not self.q >= 1:
            raise ValueError(f"q={self.q!r} must be at least 1: below, the ball is not convex")
        if self.oracle is not None and not callable(self.oracle):
            raise ValueError(f"oracle={self.oracle!r} must be a function from a gradient to a point, or None")
        if self.oracle is not None and self.radius is None:
            raise ValueError("radius=None: an oracle's set needs a public l2 bound")

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        clip = float(self.clip or gradient_clip(problem))
        radius = float(self.radius or default_radius(problem, self.q))
        width = radius * unit_width(problem.d, 2.0 if self.oracle else self.q)
        sensitivity = gradient_sensitivity(clip, problem.n, budget.adjacency)
        rounds = self.iterations or default_rounds(problem, budget, sensitivity * width)
        release = GaussianGradient.calibrated(budget, times=rounds)
        settings = {
            "rounds": rounds,
            "clip": clip,
            "radius": radius,
            "intercept_limit": typical_margin(problem),
            "set": "oracle" if self.oracle else f"l{self.q:g} ball",
        }
        return Plan(self.name, problem, budget, (release,), settings)

    def run(self, vault: CentralVault) -> Floats:
        (release,) = vault.plan.releases
        settings, problem = vault.plan.settings, vault.problem

        theta = problem.origin()
        for step in steps(release.times):
            gradient = vault.gradient(theta, release, settings["clip"])
            point = problem.origin()
            point[: problem.d] = self._least(gradient[: problem.d], settings["radius"])
            if problem.intercept:
                limit = settings["intercept_limit"] / problem.intercept_column
                point[problem.d] = -limit * np.sign(gradient[problem.d])
            theta = (1 - step) * theta + step * point
        return hard_threshold(theta, problem)

    def _least(self, gradient: Floats, radius: float) -> Floats:
        if self.oracle is None:
            return least_on_ball(gradient, self.q, radius)
        point = np.asarray(self.oracle(gradient), dtype=np.float64)
        if point.shape != gradient.shape or not np.all(np.isfinite(point)):
            raise ValueError(f"oracle must return {gradient.size} finite coordinates, not {point!r}")
        return point


def unit_width(d: int, q: float) -> float:
    """A bound on the Gaussian width of the unit l_q ball in d dimensions, E ||Z||_p <= (d E |Z|^p)^(1/p).

    1/p + 1/q = 1; beyond p = 2 log d a larger p changes ||Z||_p by less than a factor 2 and would only loosen it.
    """
    p = math.inf if q == 1 else 1.0 if math.isinf(q) else q / (q - 1)
    p = min(p, max(2.0, 2 * math.log(d)))
    log_moment = p / 2 * math.log(2) + math.lgamma((p + 1) / 2) - math.log(math.pi) / 2
    return math.exp((math.log(d) + log_moment) / p)


def default_rounds(problem: LinearProblem, budget: Budget, noise: float) -> int:
    """T^(3/2) = 4 G mu / noise with G = curvature * (2 margin)^2 for a typical margin, from 10 to 80.

    ``noise`` is sensitivity * width: sqrt(T)/mu times that is what noise adds to the error, the curvature adds 2 G / T.
    Fewer rounds would give single points of the set, however wrong, too much weight.
    """
    curvature = problem.curvature * (2 * typical_margin(problem)) ** 2
    rounds = math.pow(4 * curvature * gaussian_mu(budget.epsilon, budget.delta) / noise, 2 / 3)
    return round(min(max(rounds, 10), 80))
