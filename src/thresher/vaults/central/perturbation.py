"""Objective perturbation: the minimiser of the regularised loss plus a random linear term, on public columns."""

from __future__ import annotations

import math

import numpy as np

from thresher.privacy.arrays import Floats, Indices
from thresher.privacy.releases import Release
from thresher.privacy.sensitivity import ROUND_OFF, norm_error, round_off
from thresher.vaults.central.minimise import minimise_strongly_convex
from thresher.vaults.central.minimisers import MOST_SEARCHED, Minimisers, check_ridge
from thresher.vaults.problem import LinearProblem

__all__ = ["Perturbation", "curvature_ratio"]

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
