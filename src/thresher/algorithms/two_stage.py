"""Two stages: a private support, then objective perturbation on it (Kifer, Smith, Thakurta 2012)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from thresher.accounting import zcdp_rho
from thresher.algorithms.defaults import check_positive, residual_clip
from thresher.budget import Budget, is_whole
from thresher.plan import Plan, Problem
from thresher.releases import GumbelSelection, GumbelVotes, PerturbedMinimiser, Release
from thresher.vaults import CentralVault
from thresher.vaults.perturbation import curvature_ratio

__all__ = ["TwoStage"]

Floats = NDArray[np.float64]

JACOBIAN_SHARE = 0.4
"""Of the epsilon that the support leaves, what the curvature ratio takes by default: less means more ridge."""

LEAST_RIDGE, LEAST_RIDGE_WITHOUT_NOISE = 1e-4, 1e-6
"""Over the largest curvature of a row: enough for the minimiser to be found so precisely that it costs no accuracy."""

LARGEST_EXPONENT = 700.0  # of what a float can hold

TOLERANCE_FACTOR = 10.0
"""sd_per_tolerance over sd_per_sensitivity: where the search stopped costs 1 % of what the tilt costs."""


@dataclass(frozen=True)
class TwoStage:
    """A private support A of s columns, then argmin (1/n) sum_i l_i + (ridge/2)||phi||^2 + b'phi over A, b Gaussian.

    Stage one: ``"marginal"`` takes the s largest |gradient at the origin| with Gumbel noise, ``"votes"`` the columns
    that most of ``blocks`` random blocks (None: about sqrt(n)) have in their Lasso. It gets ``share`` of the budget in
    zCDP, and stage two what is left of epsilon at delta (erratum E-25: stage one must be paid, too).

    Guarantee of stage two: :class:`~thresher.releases.PerturbedMinimiser`, which prices any ridge by the ratio of a
    row's curvature, with its norm squared, to n ridge. The published calibration, sd(nb) = clip sqrt(8 log(2/delta) + 4
    epsilon)/epsilon with n ridge = 2 curvature/epsilon, holds for add-remove neighbours only: for replace-one ones a
    claim of epsilon=1 and delta=1e-8 is exceeded already in one dimension, more than fivefold in delta.

    Columns are measured in units of their bounds. ``clip`` is that of the residual of a row at its bound.
    """

    stage_one: Literal["marginal", "votes"] = "marginal"
    share: float = 0.5
    clip: float | None = None
    ridge: float | None = None
    blocks: int | None = None

    name: ClassVar[str] = "two-stage"

    def __post_init__(self) -> None:
        if self.stage_one not in ("marginal", "votes"):
            raise ValueError(f"stage_one={self.stage_one!r} must be 'marginal' or 'votes'")
        if not 0 < self.share < 1:
            raise ValueError(f"share={self.share!r} of the support must lie strictly between 0 and 1")
        check_positive(clip=self.clip, ridge=self.ridge)
        if self.blocks is not None and not (is_whole(self.blocks) and self.blocks >= 1):
            raise ValueError(f"blocks={self.blocks!r} must be a whole number of at least 1, or None for about sqrt(n)")

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        kind = GumbelVotes if self.stage_one == "votes" else GumbelSelection
        picks = kind.for_rho(self.share * zcdp_rho(budget.epsilon, budget.delta), picks=problem.sparsity)
        ridge = float(self.ridge or default_ridge(problem, budget, picks))
        values = calibrated(problem, budget, picks, ridge)
        settings = {
            "stage_one": self.stage_one,
            "share": self.share,
            "clip": float(self.clip or residual_clip(problem)),
            "ridge": ridge,
        }
        if self.stage_one == "votes":
            settings["blocks"] = int(self.blocks or math.isqrt(problem.n))
        return Plan(self.name, problem, budget, (picks, values), settings)

    def run(self, vault: CentralVault) -> Floats:
        picks, values = vault.plan.releases
        problem, settings = vault.problem, vault.plan.settings
        theta = problem.origin()
        if self.stage_one == "votes":
            chosen = vault.votes(picks, settings["blocks"])
        else:
            chosen = vault.selection(theta, picks, settings["clip"])
        support = np.append(chosen, np.arange(problem.d, problem.dimension))
        clip = settings["clip"] * problem.norm_in_units(problem.sparsity)
        theta[support] = vault.perturbed_minimiser(support, values, clip, settings["ridge"])
        return theta


def default_ridge(problem: Problem, budget: Budget, picks: Release) -> float:
    """The ridge at which the Jacobian takes its share of what the support leaves of epsilon.

    The shrinkage of a coefficient and its noise both fall like 1/n at a fixed ratio, so the share need not know n.
    """
    steepest = problem.curvature * problem.norm_in_units(problem.sparsity) ** 2
    if not budget.private:
        return LEAST_RIDGE_WITHOUT_NOISE * steepest
    ratio = math.expm1(min(JACOBIAN_SHARE * _left(budget, picks), LARGEST_EXPONENT))
    return max(steepest / (problem.n * ratio), LEAST_RIDGE * steepest)


def calibrated(problem: Problem, budget: Budget, picks: Release, ridge: float) -> PerturbedMinimiser:
    """The perturbed minimiser with the least noise for which it and the support together cost budget.epsilon."""
    ratio = curvature_ratio(problem, np.append(np.arange(problem.sparsity), problem.d), ridge)
    if not budget.private:
        return PerturbedMinimiser(1, 0.0, ratio, 0.0)
    least = ratio * ridge / math.expm1(min(_left(budget, picks), LARGEST_EXPONENT))
    if not ridge > least:
        raise ValueError(
            f"ridge={ridge:g} leaves nothing of epsilon={budget.epsilon:g} for the noise; "
            f"take one well above {least:.6g}, or None for the public default"
        )

    def release(sd: float) -> PerturbedMinimiser:
        return PerturbedMinimiser(1, sd, ratio, TOLERANCE_FACTOR * sd)

    def fits(sd: float) -> bool:
        return (picks.cost() + release(sd).cost()).epsilon(budget.delta)[0] <= budget.epsilon

    low, high = 0.0, 1.0
    while not fits(high):
        low, high = high, 2 * high
        if high > 1e12:  # its Renyi curve is only known up to a largest order, which proves no smaller epsilon
            raise ValueError(
                f"epsilon={budget.epsilon:g} is too small for objective perturbation; take a larger one, or another "
                "algorithm"
            )
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return release(high)


def _left(budget: Budget, picks: Release) -> float:
    """What the support leaves of epsilon. A privacy loss bounded by that much always fits in beside it."""
    return budget.epsilon - picks.cost().epsilon(budget.delta)[0]
