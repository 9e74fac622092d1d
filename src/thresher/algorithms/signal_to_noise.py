"""What to expect before anything is spent: noise against signal, from public facts alone."""

from __future__ import annotations

import math

from thresher.algorithms.pursuit import PICKS
from thresher.privacy.budget import Budget
from thresher.privacy.conversions import gaussian_mu, zcdp_rho
from thresher.privacy.releases import GaussianGradient, GumbelSelection
from thresher.privacy.sensitivity import gradient_sensitivity
from thresher.vaults.problem import LinearProblem

__all__ = ["noise_over_largest_signal", "noise_over_signal", "relative_noise"]

# A clipped Gaussian target keeps 0.8 of its correlation with a feature, and uniform entries have 0.58 of their bound
# as deviation.
CORRELATION_KEPT, DEVIATION = 0.8, 0.58


def noise_over_signal(problem: LinearProblem, budget: Budget) -> float:
    """The noise on the scores of s equally strong, unrelated features over those scores, for the better family.

    Above 1 such features drown; a few strong ones among weak ones may still be found. Each of s features has 1/sqrt(s)
    of the correlation. Noise on picks: the largest of d/s Gumbel draws. On whole gradients of isotropic rows: the
    largest of d/s Gaussians.
    """
    if not budget.private:
        return 0.0
    spread = math.log(max(problem.d / problem.sparsity, math.e))
    score = CORRELATION_KEPT * DEVIATION / math.sqrt(problem.sparsity)
    picks = _pick_noise(problem, budget, PICKS) * spread / score
    isotropic = CORRELATION_KEPT / math.sqrt(problem.sparsity * problem.d)  # of a row's norm
    return min(picks, _gradient_noise(problem, budget) * math.sqrt(2 * spread) / isotropic)


def noise_over_largest_signal(problem: LinearProblem, budget: Budget) -> float:
    """The same for a feature that decides the target alone, among s picks: no law of the data has a larger score.

    Above 1 no algorithm here can work on so few rows at this sparsity.
    """
    if not budget.private:
        return 0.0
    spread = math.log(max(problem.d, math.e))
    largest_entry = problem.bounds.largest_entry(problem.d) / problem.bounds.row_norm(problem.d)
    whole = _gradient_noise(problem, budget) * math.sqrt(2 * spread) / largest_entry
    return min(_pick_noise(problem, budget, 1.0) * spread, whole)


def relative_noise(budget: Budget, epsilon: float) -> float:
    """How many times as much noise the same answers would need at another epsilon; exact for Gaussian noise."""
    if budget.delta == 0:
        return budget.epsilon / epsilon
    return gaussian_mu(budget.epsilon, budget.delta) / gaussian_mu(epsilon, budget.delta)


def _pick_noise(problem: LinearProblem, budget: Budget, share: float) -> float:
    """The Gumbel scale of s picks on scores of clipped residuals, over the clip, columns in units."""
    rho = share * zcdp_rho(budget.epsilon, budget.delta)
    release = GumbelSelection.for_rho(rho, picks=1 if problem.as_many_as_pay else problem.sparsity)
    return release.multiplier * gradient_sensitivity(1.0, problem.n, budget.adjacency)


def _gradient_noise(problem: LinearProblem, budget: Budget) -> float:
    """The Gaussian deviation on one coordinate of a gradient, over a row's clip, all rounds taken together."""
    release = GaussianGradient.calibrated(budget, times=1)
    return release.multiplier * gradient_sensitivity(1.0, problem.n, budget.adjacency)
