"""Questions about a random batch of the rows: which rows were drawn is never told, and that hides them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from thresher.clipping import gradient_sensitivity, momentum_clip
from thresher.engines import Batch
from thresher.releases import Release, SampledGradient, SampledMomentum
from thresher.vaults.rows import Rows, clip_residuals

__all__ = ["Batches"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class Batches(Rows):
    """(1/b) sum over a batch of a clipped vector, plus noise; b is the expected size, so that the true one stays in."""

    def sampled_gradient(self, theta: Floats, release: Release, clip: float) -> Floats:
        """The gradient of a batch + noise, each row's term clipped to l2 norm ``clip``."""
        clip = float(clip)
        self._charge("sampled gradient", release, clip, theta)
        batch, rows = self._drawn(release)
        residuals = clip_residuals(self._batch_residuals(batch, rows, theta), self._limits(clip)[rows])
        return self._noised_sum(batch, residuals, release, clip)

    def sampled_momentum(
        self, theta: Floats, before: Floats, release: Release, clip: float, difference_clip: float, momentum: float
    ) -> Floats:
        """(1-g) clip_C2(gradient at ``theta`` - gradient ``before``) + g clip_C1(gradient at ``theta``), + noise.

        Both clips are of every row by itself, with C1 = ``clip``, C2 = ``difference_clip``, g = ``momentum``.
        """
        clip, difference_clip = float(clip), float(difference_clip)
        total = momentum_clip(clip, difference_clip, momentum)
        self._check_question(release, total, before)
        self._charge("sampled momentum", release, total, theta)
        batch, rows = self._drawn(release)
        now, then = (self._batch_residuals(batch, rows, at) for at in (theta, before))
        # the clip of differences may follow the moves, so its limits are worked out for the batch alone
        residuals = (1 - momentum) * clip_residuals(now - then, self._limits_of(self._norms()[rows], difference_clip))
        residuals += momentum * clip_residuals(now, self._limits(clip)[rows])
        return self._noised_sum(batch, residuals, release, total)

    def whole_number(self, below: int) -> int:
        """A number that has nothing to do with the rows: 0, ..., below - 1, all alike."""
        return self._noise.whole_number(below)

    def _drawn(self, release: Release) -> tuple[Batch, Indices]:
        if not isinstance(release, (SampledGradient, SampledMomentum)):
            raise TypeError(f"{release!r} does not say how a batch is drawn")
        rows = self._noise.batch(len(self._targets), release.rate, release.sampling)
        by_rows = self._known("by rows", None, self._open().by_rows)
        return by_rows.take(rows), rows

    def _batch_residuals(self, batch: Batch, rows: Indices, theta: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            margins = batch.product(self.problem.by_column(theta))
        return self._residuals(margins, rows)

    def _noised_sum(self, batch: Batch, residuals: Floats, release: Release, clip: float) -> Floats:
        assert isinstance(release, (SampledGradient, SampledMomentum))  # noqa: S101
        residuals /= release.batch
        value = self.problem.stacked(batch.transposed_product(residuals))
        sensitivity = gradient_sensitivity(clip, release.batch, self._plan.budget.adjacency)
        error = self._round_off(clip) * self.problem.n / release.batch  # at worst every row is drawn
        return self._noised(value, release, clip, sensitivity, error)
