"""Private Frank-Wolfe over a polytope, the private LASSO (Talwar, Thakurta and Zhang, NIPS 2015, Algorithm 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from thresher.algorithms.defaults import check_positive, check_rounds, residual_clip, typical_margin
from thresher.algorithms.projections import hard_threshold
from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Adjacency, Budget
from thresher.privacy.conversions import zcdp_rho
from thresher.privacy.plan import Calibration, Plan
from thresher.privacy.releases import GumbelVertex, LaplaceVertex, Release
from thresher.privacy.sensitivity import gradient_sensitivity
from thresher.vaults import CentralVault
from thresher.vaults.polytopes import L1Ball, Polytope, Simplex, Walk, is_measured_here
from thresher.vaults.problem import LinearProblem

__all__ = ["FrankWolfe", "default_radius", "steps"]

PART = 20
"""Of the target's bound, for the clip of residuals. The paper's clip is the largest residual, radius * max_j K_j + B.
But the choice of a vertex only needs the direction of the gradient, which a low clip keeps, while the noise shrinks
with it (Huber loss)."""


@dataclass(frozen=True)
class FrankWolfe:
    """theta_{t+1} = (1 - mu_t) theta_t + mu_t v_t, mu_t = 2/(t+2), t = 1..T, from the origin; v_t a vertex of a public
    polytope chosen by the exponential mechanism with scores -<v, gradient(theta_t)>. At the end the s largest
    coefficients are kept.

    The polytope is the l1 ball of ``radius``, or ``polytope``; with an intercept one more pair of vertices moves it
    (``thresher.vaults.polytopes``). Residuals are clipped to [-clip, clip].

    Guarantee: T exponential mechanisms whose scores have sensitivity Delta = contributions * clip * reach / n, composed
    in zCDP: Gumbel noise of scale Delta sqrt(T / (2 rho)) (erratum E-16).

    Rounds: a choice among m vertices is off by about log(m) Delta sqrt(T / (2 rho)), the curvature G leaves an error of
    2 G / T, and their sum is least at T^(3/2) = 4 G sqrt(2 rho) / (Delta log m): Theorem 2.5 with rho for epsilon. See
    ``default_rounds`` for G.

    On sparse rows a step costs what it touches (docs/algorithms/frank-wolfe.md), so that its time depends on the rows;
    with ``constant_work=True`` every step reads all of them.

    ``calibration="printed"`` adds Laplace noise of the printed scale L1 ||C||_1 sqrt(8 T log(1/delta)) / (n epsilon) to
    every score, L1 = clip * max_j K_j; between replace-one neighbours that costs more than epsilon (erratum E-15).

    Parameters
    ----------
    iterations : int, optional
        Rounds T. None: ``default_rounds``.
    radius : float, optional
        Of the l1 ball. None: a public rule of the bounds.
    clip : float, optional
        What residuals are clipped to. None: a public rule of the bounds.
    polytope : L1Ball, Simplex or Polytope, optional
        The set to stay in, instead of the l1 ball of ``radius``.
    calibration : {"proved", "printed"}
        Noise that is proved to keep the budget, or that of the paper, whose real price the certificate states.
    constant_work : bool
        Read all rows at every step, so that the time taken tells nothing about them.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> from thresher.algorithms import FrankWolfe
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = SparseRegressor(
    ...     1, epsilon=2.0, feature_bound=1.0, target_bound=1.0, algorithm=FrankWolfe(iterations=10)
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.epsilon
    2.0
    """

    iterations: int | None = None
    radius: float | None = None
    clip: float | None = None
    polytope: L1Ball | Simplex | Polytope | None = None
    calibration: Calibration = "proved"
    constant_work: bool = False

    name: ClassVar[str] = "frank-wolfe"

    def __post_init__(self) -> None:
        check_rounds(self.iterations)
        check_positive(radius=self.radius, clip=self.clip)
        if self.polytope is not None and not is_measured_here(self.polytope):
            raise ValueError(f"polytope={self.polytope!r} must be an L1Ball, a Simplex or a Polytope, or None")
        if self.polytope is not None and self.radius is not None:
            raise ValueError(f"radius={self.radius!r} is that of the l1 ball; with a polytope leave it None")
        if self.calibration not in ("proved", "printed"):
            raise ValueError(f"calibration={self.calibration!r} must be 'proved' or 'printed'")

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        rho = zcdp_rho(budget.epsilon, budget.delta)
        clip = float(self.clip or residual_clip(problem, PART))
        polytope = self.polytope or L1Ball(self.radius or default_radius(problem))
        rounds = self.iterations or default_rounds(problem, polytope, clip, rho, budget.adjacency)
        release: Release = GumbelVertex.for_rho(rho, times=rounds)
        notes: tuple[str, ...] = ()
        if self.calibration == "printed":
            scale = printed_scale(rounds, clip, problem, polytope, budget)
            sensitivity = gradient_sensitivity(clip * polytope.reach(problem), problem.n, budget.adjacency)
            release = LaplaceVertex(rounds, scale / sensitivity)
            notes = ("noise as printed in the paper; see erratum E-15",)
        settings = {"rounds": rounds, "clip": clip, "polytope": repr(polytope)}
        if self.polytope is None:
            settings["radius"] = polytope.norm
        return Plan(self.name, problem, budget, (release,), settings, self.calibration, notes)

    def run(self, vault: CentralVault) -> Floats:
        (release,) = vault.plan.releases
        settings, problem = vault.plan.settings, vault.problem
        polytope = self.polytope or L1Ball(settings["radius"])
        walk = Walk(polytope, problem, steps(release.times))
        for _ in range(release.times):
            walk.towards(vault.vertex(walk, release, polytope, settings["clip"], constant_work=self.constant_work))
        return hard_threshold(walk.theta, problem)


def steps(rounds: int) -> list[float]:
    """mu_t = 2/(t+2), t = 1..T: the mean of the points gone towards, the t-th weighted by t + 1."""
    return [2 / (t + 2) for t in range(1, rounds + 1)]


def default_radius(problem: LinearProblem, q: float = 1.0) -> float:
    """The l_q norm of s equal coefficients that make a typical margin of columns uniform within [-K, K]."""
    coefficient = typical_margin(problem) * math.sqrt(3 / problem.sparsity) / problem.bounds.largest_entry(problem.d)
    return coefficient * math.pow(problem.sparsity, 1 / q)


def default_rounds(
    problem: LinearProblem, polytope: L1Ball | Simplex | Polytope, clip: float, rho: float, adjacency: Adjacency
) -> int:
    """T^(3/2) = 4 G sqrt(2 rho) / (Delta log m) with G = sqrt(spread) curvature reach^2 / 50, from 5 to 80.

    The worst case is G = 4 curvature reach^2. But margins of typical rows are far below their reach, the more so the
    smaller a typical entry is against the largest possible one (``spread``).
    """
    reach = polytope.reach(problem)
    curvature = math.sqrt(spread(problem)) * problem.curvature * reach * reach / 50
    off = gradient_sensitivity(clip * reach, problem.n, adjacency) * math.log(polytope.count(problem) + 1)
    return round(min(max(math.pow(4 * curvature * math.sqrt(2 * rho) / off, 2 / 3), 5), 80))


def spread(problem: LinearProblem) -> float:
    """The size of an entry of isotropic rows at their bound over the largest entry there can be."""
    return problem.bounds.row_norm(problem.d) / math.sqrt(problem.d) / problem.bounds.largest_entry(problem.d)


def printed_scale(
    rounds: int, clip: float, problem: LinearProblem, polytope: L1Ball | Simplex | Polytope, budget: Budget
) -> float:
    """L1 ||C||_1 sqrt(8 T log(1/delta)) / (n epsilon), with L1 = clip * max_j K_j: residuals are clipped."""
    lipschitz = clip * problem.bounds.largest_entry(problem.d)
    root = math.sqrt(8 * rounds * math.log(1 / budget.delta))
    return lipschitz * polytope.norm * root / (problem.n * budget.epsilon)
