"""Questions whose answer is a noisy average: over all rows, or over a random batch, which is never told."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from thresher.privacy.arrays import Floats, Indices
from thresher.privacy.bounds import LARGEST
from thresher.privacy.releases import Release, SampledRelease
from thresher.privacy.sensitivity import momentum_clip
from thresher.vaults.central.rows import Rows, clip_residuals
from thresher.vaults.engines import Batch, ByRows
from thresher.vaults.randomness import GRID_STEPS

__all__ = ["Averages", "Batches"]


class Averages(Rows):
    """(1/n) sum over rows of a clipped vector, plus noise."""

    def gradient(self, theta: Floats, release: Release, clip: float) -> Floats:
        """(1/n) sum_i clip(r_i) x_i + noise, each row's term clipped to l2 norm ``clip``."""
        clip = float(clip)  # a NumPy half-precision clip would make the sensitivity half-precision too: zero, at times
        engine = self._charge("gradient", release, clip, theta)
        value = self.problem.stacked(self._mean_gradient(engine, self._margins(engine, theta), self._limits(clip)))
        return self._noised_average(value, release, clip)

    def restricted_gradient(
        self, theta: Floats, support: Indices, release: Release, clip: float, basis: Floats | None = None
    ) -> Floats:
        """Coordinates ``support`` of the gradient + noise; with a public ``basis``, (1/n) sum_i r_i z_i + noise.

        Columns are measured in the problem's units, z_i = basis' x_i in them; there each row's term is clipped to l2
        norm ``clip``, with several outputs that of all of them together. One column of the answer for each output.
        """
        clip = float(clip)
        self._check_support(support)
        self._check_basis(basis, support)
        engine = self._charge("restricted gradient", release, clip, theta)
        columns, units, norms = self._restricted(engine, support, basis)
        value = self._mean_gradient(columns, self._margins(engine, theta), self._limits_of(norms, clip))
        answer = self._noised_average(value, release, clip)
        return answer if basis is not None else (answer.T * units).T

    def mean(self, support: Indices, release: Release, clip: float) -> Floats:
        """(1/n) sum_i x_i + noise over the columns in ``support`` in units, rows scaled to l2 norm ``clip``."""
        clip = float(clip)
        self._check_support(support)
        engine = self._charge("mean", release, clip, self.problem.origin())
        columns, _, norms = self._restricted(engine, support)
        factors = self._counted(np.minimum(1.0, self._limits_of(norms, clip)))
        return self._noised_average(columns.transposed_product(factors / self.problem.n), release, clip)

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
        return self._release_noisy(centred, release, clip, self._sensitivity(release, clip), error) + 0.5

    def gram(
        self, support: Indices, release: Release, norm: float, basis: Floats | None = None, theta: Floats | None = None
    ) -> Floats:
        """(1/n) sum_i x_i x_i' + noise over the columns in ``support`` in units, rows scaled to l2 norm ``norm``; with
        a public ``basis``, of z_i = basis' x_i.

        With ``theta``, of r_i x_i or r_i z_i, the second moments of the gradients there, each of l2 norm ``norm`` at
        most: two such terms have no negative inner product either, so sensitivity and price are those of any rows.
        """
        clip = float(norm) ** 2
        self._check_support(support)
        self._check_basis(basis, support)
        if theta is not None and self.problem.outputs > 1:
            raise ValueError("theta: second moments of gradients are those of one output; ask one_against_rest(k)")
        engine = self._charge("gram", release, clip, self.problem.origin() if theta is None else theta)
        columns, _, norms = self._restricted(engine, support, basis)
        limits = self._limits_of(norms, float(norm))
        if theta is None:
            factors = np.minimum(1.0, limits)
        else:
            factors = clip_residuals(self._residuals(self._margins(engine, theta)), limits)
        if self._shares is not None:
            factors *= np.sqrt(self._shares.of_rows)
        matrix = columns.gram(factors) / self.problem.n
        at = np.triu_indices(len(matrix))
        weights = np.where(at[0] == at[1], 1.0, math.sqrt(2))  # off the diagonal an entry stands for two
        sensitivity = self._sensitivity(release, clip)
        noisy = self._release_noisy(matrix[at] * weights, release, clip, sensitivity, self._round_off(clip)) / weights
        matrix[at] = noisy
        matrix.T[at] = noisy
        return matrix

    def _noised_average(self, value: Floats, release: Release, clip: float) -> Floats:
        return self._release_noisy(value, release, clip, self._sensitivity(release, clip), self._round_off(clip))


Residuals = Callable[[Batch, Indices], Floats]
"""Of a batch and which rows it holds: what each row is multiplied by, clipped."""


class Batches(Rows):
    """(1/b) sum over a batch of a clipped vector, plus noise; b is the expected size, so that the true one stays in."""

    def sampled_gradient(self, theta: Floats, release: Release, clip: float) -> Floats:
        """The gradient of a batch + noise, each row's term clipped to l2 norm ``clip``."""
        clip = float(clip)
        self._charge("sampled gradient", release, clip, theta)

        def residuals(batch: Batch, rows: Indices) -> Floats:
            return clip_residuals(self._batch_residuals(batch, rows, theta), self._limits(clip)[rows])

        return self._noised_sum(residuals, release, clip)

    def sampled_momentum(
        self, theta: Floats, before: Floats, release: Release, clip: float, difference_clip: float, momentum: float
    ) -> Floats:
        """(1-g) clip_C2(gradient at ``theta`` - gradient ``before``) + g clip_C1(gradient at ``theta``), + noise.

        Both clips are of every row by itself, with C1 = ``clip``, C2 = ``difference_clip``, g = ``momentum``.
        """
        clip, difference_clip = float(clip), float(difference_clip)
        self._check_question(release, clip, before)  # the sum of the two clips would not show that one is negative
        if not 0 <= difference_clip <= (LARGEST if release.multiplier > 0 else math.inf):
            raise ValueError(f"difference_clip={difference_clip!r} must be a number from 0 to {LARGEST:g}")
        total = self._total_clip(clip, difference_clip, momentum)
        self._charge("sampled momentum", release, total, theta)

        def residuals(batch: Batch, rows: Indices) -> Floats:
            now, then = (self._batch_residuals(batch, rows, at) for at in (theta, before))
            with np.errstate(invalid="ignore"):
                change = now - then
            change[np.isnan(change)] = 0.0  # inf - inf: it must not become a NaN in everybody's answer
            # the clip of changes may follow the moves, so its limits are worked out for the batch alone
            limits = self._limits_of(self._norms()[rows], difference_clip)
            parts = (1 - momentum) * clip_residuals(change, limits)
            parts += momentum * clip_residuals(now, self._limits(clip)[rows])
            return parts

        return self._noised_sum(residuals, release, total)

    def whole_number(self, below: int) -> int:
        """A number that has nothing to do with the rows: 0, ..., below - 1, all alike."""
        return self._noise.whole_number(below)

    def _total_clip(self, clip: float, difference_clip: float, momentum: float) -> float:
        return momentum_clip(clip, difference_clip, momentum)

    def _draw_batch(self, release: SampledRelease) -> Indices:
        """The rows of a batch, or of the people in it. How many there are is public if their number is fixed, and as
        planned."""
        count = self._present
        if release.sampling == "fixed" and count != release.population:
            counted = self.problem.counted
            raise ValueError(f"{release!r} draws from {release.population} {counted}, not from {count}; plan for these")
        drawn = self._noise.batch(count, release.rate, release.sampling)
        return drawn if self._shares is None else self._shares.rows_of(drawn)

    def _batch(self, rows: Indices) -> Batch:
        by_rows: ByRows = self._cached("by rows", None, self._open().by_rows)
        return by_rows.take(rows)

    def _batch_residuals(self, batch: Batch, rows: Indices, theta: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            margins = batch.product(self.problem.by_column(theta))
        return self._residuals(margins, rows)

    def _noised_sum(self, residuals: Residuals, release: Release, clip: float) -> Floats:
        if not isinstance(release, SampledRelease):
            raise TypeError(f"{release!r} does not say how a batch is drawn")
        value = self._batch_sum(residuals, self._draw_batch(release)) / release.batch
        sensitivity = self._sensitivity(release, clip)
        error = self._round_off(clip) * self.problem.n / release.batch  # at worst every row is drawn
        if release.sampling == "poisson":
            # Priced is how far each neighbour is from the batch without its row: rounding may move both, so what the
            # hardened mode allows for one move, twice the error and a grid step per coordinate, is allowed for twice.
            rounding = release.multiplier * sensitivity / GRID_STEPS * math.sqrt(value.size)
            error = 2 * error + rounding / 2
        return self._release_noisy(value, release, clip, sensitivity, error)

    def _batch_sum(self, residuals: Residuals, rows: Indices) -> Floats:
        batch = self._batch(rows)
        parts = residuals(batch, rows)
        if self._shares is not None:
            parts *= self._shares.of_rows[rows] if parts.ndim == 1 else self._shares.of_rows[rows, None]
        return self.problem.stacked(batch.transposed_product(parts))
