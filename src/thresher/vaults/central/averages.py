"""Questions whose answer is a noisy average over the rows: gradients, second moments and Gram matrices."""

from __future__ import annotations

import math

import numpy as np

from thresher.privacy.arrays import Floats, Indices
from thresher.privacy.releases import Release
from thresher.vaults.central.rows import Rows

__all__ = ["Averages"]


class Averages(Rows):
    """(1/n) sum over rows of a clipped vector, plus noise."""

    def gradient(self, theta: Floats, release: Release, clip: float) -> Floats:
        """(1/n) sum_i clip(r_i) x_i + noise, each row's term clipped to l2 norm ``clip``."""
        clip = float(clip)  # a NumPy half-precision clip would make the sensitivity half-precision too: zero, at times
        engine = self._charge("gradient", release, clip, theta)
        value = self.problem.stacked(self._mean_gradient(engine, self._margins(engine, theta), self._limits(clip)))
        return self._noised_average(value, release, clip)

    def restricted_gradient(self, theta: Floats, support: Indices, release: Release, clip: float) -> Floats:
        """Coordinates ``support`` of the gradient + noise.

        Columns are measured in the problem's units; there each row's restricted term is clipped to l2 norm ``clip``.
        """
        clip = float(clip)
        self._check_support(support)
        engine = self._charge("restricted gradient", release, clip, theta)
        columns, units, norms = self._restricted(engine, support)
        value = self._mean_gradient(columns, self._margins(engine, theta), self._limits_of(norms, clip))
        return self._noised_average(value, release, clip) * units

    def moments(self, columns: Indices, release: Release) -> Floats:
        """(1/n) sum_i (x_ij / K_j)^2 + noise for j in ``columns``, K_j the public bound on column j's entries."""
        self._check_support(columns)
        clip = math.sqrt(len(columns)) / 2  # of a row's squares minus 1/2, each within [-1/2, 1/2]
        engine = self._charge("moments", release, clip, self.problem.origin())
        shares = None if self._shares is None else self._shares.of_rows
        squares = engine.columns(columns).mean_squares(self.problem.n, shares) / self.problem.entry_bounds[columns] ** 2
        centred = squares - self._present / (2 * self.problem.n)
        # what is added up are the squares themselves, twice as large at most, and taking off a half rounds once more
        error = self._round_off(3 * clip)
        return self._noised(centred, release, clip, self._sensitivity(release, clip), error) + 0.5

    def gram(self, support: Indices, release: Release, norm: float) -> Floats:
        """(1/n) sum_i x_i x_i' + noise over the columns in ``support`` in units, rows scaled to l2 norm ``norm``."""
        clip = float(norm) ** 2
        self._check_support(support)
        engine = self._charge("gram", release, clip, self.problem.origin())
        columns, _, norms = self._restricted(engine, support)
        factors = np.minimum(1.0, self._limits_of(norms, float(norm)))
        if self._shares is not None:
            factors *= np.sqrt(self._shares.of_rows)
        matrix = columns.gram(factors) / self.problem.n
        at = np.triu_indices(len(support))
        weights = np.where(at[0] == at[1], 1.0, math.sqrt(2))  # off the diagonal an entry stands for two
        sensitivity = self._sensitivity(release, clip)
        noisy = self._noised(matrix[at] * weights, release, clip, sensitivity, self._round_off(clip)) / weights
        matrix[at] = noisy
        matrix.T[at] = noisy
        return matrix

    def _noised_average(self, value: Floats, release: Release, clip: float) -> Floats:
        return self._noised(value, release, clip, self._sensitivity(release, clip), self._round_off(clip))
