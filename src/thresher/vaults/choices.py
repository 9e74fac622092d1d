"""Questions whose answer is a choice among public candidates, made by the exponential mechanism."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from thresher.releases import GumbelSelection, Release
from thresher.vaults.rows import ROUND_OFF, Rows, margins_of

__all__ = ["Choices"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class Choices(Rows):
    """The candidates with the largest noisy scores."""

    def selection(
        self, theta: Floats, release: GumbelSelection, clip: float, offset: Floats | None = None,
        excluded: Indices | None = None,
    ) -> Indices:  # fmt: skip
        """The columns, intercept apart, with the largest |offset_j - g_j/K_j|, residuals clipped to [-clip, clip]."""
        clip, d = float(clip), self.problem.d
        excluded = np.empty(0, dtype=np.intp) if excluded is None else np.unique(excluded)
        if release.picks > d - len(excluded):
            raise ValueError(f"picks={release.picks} of only {d - len(excluded)} columns; ask for fewer")
        engine = self._charge("selection", release, clip, theta)
        scores = -self._mean_gradient(engine, margins_of(engine, theta), clip)[:d] / self.problem.entry_bounds[:d]
        if offset is not None:
            scores += offset
        scores = np.abs(scores)
        scores[excluded] = -np.inf
        # a coordinate's round-off, as in _round_off, and that of the division and the offset
        error = self._round_off(clip) + 4 * ROUND_OFF * (0.0 if offset is None else float(np.max(np.abs(offset))))
        return self._chosen(scores, release.picks, release, clip, self._mean_sensitivity(clip), error)

    def quantile(
        self, of: Literal["residuals", "gradient norms"], q: float, levels: Floats, theta: Floats, release: Release,
        support: Indices | None = None,
    ) -> float:  # fmt: skip
        """The public level that about ``q`` n rows do not exceed, by |r_i| or by |r_i| ||x_i,support||_2."""
        if support is not None:
            self._check_support(support)
        engine = self._charge("quantile", release, 1.0, theta)
        values = np.abs(self._residuals(margins_of(engine, theta)))
        if of == "gradient norms":
            values *= self._norms if support is None else engine.columns(support).row_norms()
        return self._level(values, q, levels, release)

    def column_quantile(self, column: int, q: float, levels: Floats, release: Release) -> float:
        """The public level that about ``q`` n entries of a column, over its bound K_j, do not exceed."""
        self._check_support(np.array([column]))
        engine = self._charge("quantile", release, 1.0, self.problem.origin())
        entries = engine.columns(np.array([column])).product(np.ones(1)) / self.problem.entry_bounds[column]
        return self._level(entries, q, levels, release)

    def _level(self, values: Floats, q: float, levels: Floats, release: Release) -> float:
        below = np.searchsorted(np.sort(values), levels, side="right")
        scores = -np.abs(below - q * self.problem.n)
        error = 4 * ROUND_OFF * self.problem.n
        (at,) = self._chosen(scores, 1, release, 1.0, 1.0, error)
        return float(levels[at])
