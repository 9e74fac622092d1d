"""The question of private Frank-Wolfe: the vertex of a public polytope that the loss falls towards most."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from thresher.polytopes import L1Ball, Polytope, Simplex, is_measured_here
from thresher.releases import Release
from thresher.vaults.rows import ROUND_OFF, Rows, margins_of

__all__ = ["Vertices"]

Floats = NDArray[np.float64]


class Vertices(Rows):
    """The vertex with the largest noisy score."""

    def vertex(self, theta: Floats, release: Release, polytope: L1Ball | Simplex | Polytope, clip: float) -> int:
        """The position of the vertex v with the largest -<v, g> + noise, residuals clipped to [-clip, clip].

        A row adds r_i <v, x_i> / n to a score, with |r_i| <= clip and |<v, x_i>| <= reach: no more than clip * reach.
        """
        if not is_measured_here(polytope):
            raise TypeError(f"polytope={polytope!r} is no set of thresher.polytopes, so its reach cannot be trusted")
        clip = float(clip)
        contribution = clip * polytope.reach(self.problem)
        engine = self._charge("vertex", release, contribution, theta)
        scores = -polytope.products(self._mean_gradient(engine, margins_of(engine, theta), clip), self.problem)
        sensitivity = self._mean_sensitivity(contribution)
        (at,) = self._chosen(scores, 1, release, contribution, sensitivity, self._score_error(contribution))
        return int(at)

    def _score_error(self, contribution: float) -> float:
        """A bound on a score's round-off: that of the mean gradient and that of a product with d terms.

        Both are relative to sum_j |v_j| |g_j|, of which a row adds at most its contribution, too.
        """
        if math.isinf(contribution):
            return 0.0
        return self._round_off(contribution) + 4 * self.problem.dimension * ROUND_OFF * contribution
