"""Output perturbation followed by hard thresholding: the ablation every sparse method must beat (erratum E-10)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from thresher.algorithms.defaults import check_loss, check_positive, gradient_clip, typical_margin
from thresher.algorithms.projections import hard_threshold
from thresher.privacy.budget import Adjacency, Budget
from thresher.privacy.plan import Plan
from thresher.privacy.releases import GaussianMinimiser, L2LaplaceMinimiser, Release
from thresher.privacy.sensitivity import gradient_sensitivity
from thresher.vaults import CentralVault
from thresher.vaults.problem import LinearProblem

__all__ = ["OutputPerturbation"]


@dataclass(frozen=True)
class OutputPerturbation:
    """The ridge-regularised minimiser plus noise, hard-thresholded: H_s(argmin (1/n) sum_i l_i + (ridge/2)||theta||^2
    + noise).

    Guarantee: one release of sensitivity (contributions * clip / n + 2 tolerance) / ridge, where the minimiser is
    certified by its gradient norm (erratum E-7). ``noise="gaussian"`` is priced by the exact curve;
    ``noise="l2-laplace"`` is pure epsilon-DP.

    Parameters
    ----------
    ridge : float, optional
        Of the penalty (ridge/2)||theta||^2. None: a public rule that balances its bias against the noise.
    clip : float, optional
        l2 norm to which the gradient of a row is clipped. None: a public rule of the bounds.
    noise : {"gaussian", "l2-laplace"}
        The law of the noise; the second needs no delta.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> from thresher.algorithms import OutputPerturbation
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = SparseRegressor(
    ...     1, epsilon=2.0, feature_bound=1.0, target_bound=1.0, algorithm=OutputPerturbation(ridge=1.0)
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.epsilon
    2.0
    """

    ridge: float | None = None
    clip: float | None = None
    noise: Literal["gaussian", "l2-laplace"] = "gaussian"

    name: ClassVar[str] = "output-perturbation"

    def __post_init__(self) -> None:
        check_positive(ridge=self.ridge, clip=self.clip)
        if self.noise not in ("gaussian", "l2-laplace"):
            raise ValueError(f"noise={self.noise!r} must be 'gaussian' or 'l2-laplace'")

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        check_loss(problem, self.name, "clipped_value")
        release: GaussianMinimiser | L2LaplaceMinimiser
        if self.noise == "gaussian" or not budget.private:
            release = GaussianMinimiser.calibrated(budget, times=1)
        else:
            release = L2LaplaceMinimiser(times=1, epsilon=budget.epsilon)
        clip = float(self.clip or gradient_clip(problem))
        ridge = float(self.ridge or default_ridge(problem, clip, release, budget.adjacency))
        return Plan(self.name, problem, budget, (release,), {"ridge": ridge, "clip": clip})

    def run(self, vault: CentralVault) -> NDArray[np.float64]:
        (release,) = vault.plan.releases
        settings = vault.plan.settings
        theta = vault.minimiser(release, settings["clip"], settings["ridge"])
        return hard_threshold(theta, vault.problem)


def default_ridge(problem: LinearProblem, clip: float, release: Release, adjacency: Adjacency) -> float:
    """The ridge at which the noise is a tenth of the coefficients that s equal features need for a typical margin.

    A smaller ridge lets the noise drown the model, a larger one shrinks the model away.
    """
    coefficient = typical_margin(problem) / problem.row_norm * math.sqrt(problem.d / problem.sparsity)
    noise_times_ridge = release.coordinate_sd(problem.dimension) * gradient_sensitivity(clip, problem.n, adjacency)
    weakest = 1e-6 * problem.curvature * problem.row_norm**2  # without noise: enough for the minimiser to be found
    return max(noise_times_ridge / (coefficient / 10), weakest)
