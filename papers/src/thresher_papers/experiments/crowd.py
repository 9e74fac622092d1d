"""Parties of one row each, as many as there are rows, in one object: the answers that as many real ones would give.

A real party is a Python object with a vault of its own; 50,000 of them would take minutes a round. A crowd does the
same row by row in whole arrays: each row's part is rounded to the grid on its own, each row's minimiser is its own.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.federated.vault import Party, whole_steps
from thresher.privacy.arrays import Floats, Integers
from thresher.privacy.questions import CertifiedSearch
from thresher.privacy.releases import Release
from thresher.vaults.central.minimisers import certified_search, curvature_ratio
from thresher.vaults.clipping import clip_rows

__all__ = ["Crowd"]

CHUNK = 2000  # rows worked on at a time
HALVINGS = 80  # of an interval: to the last digit


class Crowd(Party):
    """All rows of the problem, each a party: its answers are the means, its parts the sums of all of theirs.

    Gaussian noise of so many parties is drawn as the one Gaussian that its mean is. What ``Party`` adds to a
    perturbed minimiser for where its search stopped, a ten-thousandth of the rest, is left out.
    """

    def __init__(self, X: Floats, *arguments: Any) -> None:
        super().__init__(X, *arguments)
        if self.problem.intercept or np.any(self.problem.units != 1):
            raise ValueError("a crowd has no intercept, and columns bounded by 1")
        self._rows = np.ascontiguousarray(clip_rows(X, self.problem.bounds))
        self._one = replace(self.problem, n=1)

    # -- parts of joint answers ---------------------------------------------------------------------------------

    def gradient_part(self, theta: Floats, release: Release, clip: float, weight: float, grid: float) -> Integers:
        engine = self._charge("gradient", release, clip, theta)
        residuals = self._clipped_residuals(self._limits(clip))(self._margins(engine, theta))
        return self._rounded(residuals * (weight / self.problem.n), grid)

    def minimiser_part(self, release: Release, clip: float, ridge: float, weight: float, grid: float) -> Integers:
        self._charge("minimiser", release, clip, self.problem.origin())
        return self._rounded(self._along(clip, ridge, np.zeros(self.problem.n)) * (weight / self.problem.n), grid)

    def _rounded(self, factors: Floats, grid: float) -> Integers:
        """The sum of each row times its factor, in whole steps, rounded row by row."""
        total = np.zeros(self.problem.d, dtype=np.int64)
        for first in range(0, self.problem.n, CHUNK):
            some = slice(first, first + CHUNK)
            total += whole_steps(factors[some, None] * self._rows[some], grid).sum(axis=0)
        return total

    # -- answers with noise of their own ------------------------------------------------------------------------

    def gradient(self, theta: Floats, release: Release, clip: float) -> Floats:
        engine = self._charge("gradient", release, clip, theta)
        mean = self._mean_gradient(engine, self._margins(engine, theta), self._limits(clip))
        return self._mean_noised(mean, release, clip, self._sensitivity(release, clip))

    def minimiser(self, release: Release, clip: float, ridge: float) -> Floats:
        self._charge("minimiser", release, clip, self.problem.origin())
        mean = self._along(clip, ridge, np.zeros(self.problem.n)) @ self._rows / self.problem.n
        search = certified_search(self._one, self.problem.dimension, clip, ridge, self.problem.row_norm)
        return self._mean_noised(mean, release, clip, self._sensitivity(release, clip, search))

    def perturbed_minimiser(self, support: NDArray[np.intp], release: Any, clip: float, ridge: float) -> Floats:
        if not curvature_ratio(self._one, support, ridge) <= release.curvature_ratio:
            raise ValueError(f"ridge={ridge!r} is too small for parties of one row")
        self._charge("perturbed minimiser", release, clip, self.problem.origin())
        sensitivity = self._sensitivity(release, clip)
        scale = release.multiplier * sensitivity
        offsets, tilts = np.empty(self.problem.n), np.zeros(self.problem.d)
        for first in range(0, self.problem.n, CHUNK):
            rows = self._rows[first : first + CHUNK]
            tilt = scale * self._noise.standard_normal(rows.shape)
            offsets[first : first + CHUNK] = -np.einsum("ij,ij->i", rows, tilt) / ridge
            tilts += tilt.sum(axis=0)
        self._record(release, clip, sensitivity, scale)
        mean: Floats = (self._along(clip, ridge, offsets) @ self._rows - tilts / ridge) / self.problem.n
        return mean

    def _sensitivity(self, release: Release, clip: float, search: CertifiedSearch | None = None) -> float:
        """Of one row's own answer."""
        return release.sensitivity(clip, 1, self._plan.budget.adjacency, search)

    def _mean_noised(self, mean: Floats, release: Release, clip: float, sensitivity: float) -> Floats:
        answer, _ = self._noise.gaussian(mean, sensitivity / math.sqrt(self.problem.n), release.multiplier)
        self._record(release, clip, sensitivity, release.multiplier * sensitivity)
        return answer

    def _along(self, clip: float, ridge: float, offsets: Floats) -> Floats:
        """s_i of each row's minimiser s_i x_i (- tilt_i / ridge, which makes the offset of its margin).

        The gradient along x_i, residual(s ||x||^2 + offset) + ridge s, rises with s and changes its sign once.
        """
        limits, squares = self._limits(clip), np.square(self._norms())
        high = limits / ridge
        low = -high
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            rising = self._clipped_residuals(limits)(middle * squares + offsets) + ridge * middle > 0
            low, high = np.where(rising, low, middle), np.where(rising, middle, high)
        found: Floats = (low + high) / 2
        return found
