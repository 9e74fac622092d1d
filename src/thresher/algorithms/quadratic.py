"""A quadratic that was released with noise, and what can be done with it for nothing: no row is asked about."""

from __future__ import annotations

import math

import numpy as np

from thresher.privacy.arrays import Floats, Indices

__all__ = ["NoisyGram", "eliminate", "inverse_root", "ridge_for"]

FINER = 1.25  # ratio of neighbouring ridges that are tried
EXACT = 1e-9  # the least eigenvalue where there is no noise


class NoisyGram:
    """The mean of the Gram matrices of a set of columns that grows and shrinks, weighted by one over their noise."""

    def __init__(self) -> None:
        self._total = self._weight = np.zeros((0, 0))

    def add(self, gram: Floats, sd: float) -> None:
        """One more; columns that are new come last. ``sd`` is the noise on its diagonal."""
        more = (0, len(gram) - len(self._total))
        weight = 1 / max(sd, 1e-150) ** 2 if sd > 0 else 1.0  # a smaller sd would have no square
        self._total = np.pad(self._total, more) + weight * gram
        self._weight = np.pad(self._weight, more) + weight
        self._exact = sd == 0

    def keep(self, left: Indices) -> None:
        """Forget the other columns."""
        self._total, self._weight = self._total[np.ix_(left, left)], self._weight[np.ix_(left, left)]

    @property
    def noise(self) -> float:
        """How large the eigenvalues of the noise get: for a symmetric matrix of k columns, sd sqrt(2k)."""
        return 0.0 if self._exact else math.sqrt(2 * len(self._total) * float(np.mean(1 / self._weight)))

    def raised(self, part: float) -> tuple[Floats, float]:
        """The mean, its eigenvalues raised to this ``part`` of the noise's, and that."""
        values, vectors = np.linalg.eigh(self._total / self._weight)
        least = max(part * self.noise, EXACT)
        return (vectors * np.maximum(values, least)) @ vectors.T, least


def inverse_root(matrix: Floats) -> Floats:
    """matrix^(-1/2) of a positive definite one."""
    values, vectors = np.linalg.eigh(matrix)
    root: Floats = (vectors / np.sqrt(values)) @ vectors.T
    return root


def ridge_for(hessian: Floats, free: int, least: float, most: float) -> Floats:
    """The hessian and the smallest ridge from ``least`` upwards with which it has at most ``most`` degrees of freedom;
    the first ``free`` coordinates have no ridge and do not count."""
    values = np.maximum(np.linalg.eigvalsh(hessian[free:, free:]), 0.0)
    ridge = least
    while float(np.sum(values / (values + ridge))) > most:
        ridge *= FINER
    return hessian + ridge * np.diag(np.arange(len(hessian)) >= free)


def eliminate(values: Floats, hessian: Floats, keep: int, free: int) -> tuple[Floats, Indices]:
    """Backward elimination: where the quadratic around ``values`` is least with ``keep`` coordinates, and which.

    Again and again the coordinate goes whose going costs least, v_j^2 / (hessian^-1)_jj, and the others move to where
    the quadratic is least without it. The first ``free`` stay and do not count.
    """
    inverse, left = np.linalg.inv(hessian), np.arange(len(values))
    while len(left) - free > keep:
        costs = np.square(values[free:]) / np.diag(inverse)[free:]
        out = free + int(np.argmin(costs))
        stay = np.delete(np.arange(len(left)), out)
        column, corner = inverse[stay, out], inverse[out, out]
        values = values[stay] - column * values[out] / corner
        inverse = inverse[np.ix_(stay, stay)] - np.outer(column, column) / corner
        left = left[stay]
    return values, left
