"""How steep the loss is along the columns a pursuit has chosen: from noisy second moments, or a noisy Gram matrix."""

from __future__ import annotations

import math

import numpy as np

from thresher.privacy.arrays import Floats

__all__ = ["GramCurvature", "MomentCurvature"]


class MomentCurvature:
    """Columns one by one: their second moments, at least three times their noise and 0.3 of their mean."""

    def __init__(self, fixed: Floats) -> None:
        self._fixed = fixed  # the columns known from the start: the intercept's
        self._squares = np.empty(0)

    def add(self, squares: Floats, sd: float) -> None:
        """The noisy second moments of new columns."""
        self._squares = np.append(self._squares, np.maximum(squares, 3 * sd))

    def matrix(self) -> Floats:
        squares = self._squares
        return np.diag(np.append(self._fixed, np.maximum(squares, 0.3 * squares.mean())))


class GramCurvature:
    """Columns together: the mean of the Gram matrices of a growing set, weighted by one over their noise variance."""

    def __init__(self) -> None:
        self._total = self._weight = np.zeros((0, 0))

    def add(self, gram: Floats, sd: float) -> None:
        """One more noisy Gram matrix; new columns come last. ``sd`` is the noise on its diagonal."""
        more = (0, len(gram) - len(self._total))
        variance = max(sd, 1e-150) ** 2 if sd > 0 else 1.0  # a smaller sd would have no square
        self._total = np.pad(self._total, more) + gram / variance
        self._weight = np.pad(self._weight, more) + 1 / variance
        self._noisy = sd > 0

    def matrix(self) -> Floats:
        """The mean, its eigenvalues raised to the size of its noise and to a tenth of their median."""
        values, vectors = np.linalg.eigh(self._total / self._weight)
        noise = math.sqrt(2 * len(values) * float(np.mean(1 / self._weight))) if self._noisy else 0.0
        least = max(noise, 0.1 * float(np.median(values)), 1e-12)
        raised: Floats = (vectors * np.maximum(values, least)) @ vectors.T
        return raised
