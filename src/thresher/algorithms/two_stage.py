"""Two stages: a private support, then objective perturbation on it (Kifer, Smith, Thakurta 2012)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from thresher.algorithms.defaults import check_loss, check_positive, residual_clip
from thresher.algorithms.objective_perturbation import calibrated, default_ridge
from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Budget, is_whole
from thresher.privacy.conversions import zcdp_rho
from thresher.privacy.plan import Plan
from thresher.privacy.pricing import positions
from thresher.privacy.releases import GumbelSelection, GumbelVotes
from thresher.vaults import CentralVault
from thresher.vaults.problem import LinearProblem

__all__ = ["TwoStage"]


@dataclass(frozen=True)
class TwoStage:
    """A private support A of s columns, then argmin (1/n) sum_i l_i + (ridge/2)||phi||^2 + b'phi over A, b Gaussian.

    Stage one: ``"marginal"`` takes the s largest |gradient at the origin| with Gumbel noise, ``"votes"`` the columns
    that most of ``blocks`` random blocks (None: about sqrt(n)) have in their Lasso. It gets ``share`` of the budget in
    zCDP, and stage two what is left of epsilon at delta (erratum E-25: stage one must be paid, too).

    Guarantee of stage two: ``thresher.privacy.releases.PerturbedMinimiser``, which prices any ridge by the ratio of a
    row's curvature, with its norm squared, to n ridge. The published calibration, sd(nb) = clip sqrt(8 log(2/delta) + 4
    epsilon)/epsilon with n ridge = 2 curvature/epsilon, holds for add-remove neighbours only: for replace-one ones a
    claim of epsilon=1 and delta=1e-8 is exceeded already in one dimension, more than fivefold in delta.

    Columns are measured in units of their bounds. ``clip`` is that of the residual of a row at its bound.

    Parameters
    ----------
    stage_one : {"marginal", "votes"}
        How the support is found.
    share : float
        Of the budget in zCDP, for stage one.
    clip : float, optional
        What residuals are clipped to. None: a public rule of the bounds.
    ridge : float, optional
        Of the penalty (ridge/2)||phi||^2. None: a public rule.
    blocks : int, optional
        Random blocks of rows that vote. None: about sqrt(n).

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> from thresher.algorithms import TwoStage
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = SparseRegressor(
    ...     1, epsilon=2.0, feature_bound=1.0, target_bound=1.0, algorithm=TwoStage(ridge=1.0)
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.epsilon
    2.0
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

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        check_loss(problem, self.name, "clipped_value")
        kind = GumbelVotes if self.stage_one == "votes" else GumbelSelection
        picks = kind.for_rho(self.share * zcdp_rho(budget.epsilon, budget.delta), picks=problem.sparsity)
        ridge = float(self.ridge or default_ridge(problem, budget, picks.cost()))
        values = calibrated(problem, budget, ridge, picks.cost())
        settings = {
            "stage_one": self.stage_one,
            "share": self.share,
            "clip": float(self.clip or residual_clip(problem)),
            "ridge": ridge,
            "order": positions((picks, values), (picks, values)),
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
