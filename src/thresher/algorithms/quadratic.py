"""A quadratic that was released with noise, and what can be done with it for nothing: no row is asked about."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from thresher.privacy.arrays import Floats, Indices

__all__ = ["NoisyGram", "as_many_as_pay", "eliminate", "inverse_root", "ridge_for"]

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


class Elimination(NamedTuple):
    """A quadratic's least point without some of its coordinates."""

    lost: float
    """By how much it is above that with all of them."""
    values: Floats
    left: Indices


def eliminations(values: Floats, hessian: Floats, free: int) -> Iterator[Elimination]:
    """Backward elimination around ``values``: first nothing is gone, last all but the first ``free``.

    Again and again the coordinate goes whose going costs least, v_j^2 / (hessian^-1)_jj, and the others move to where
    the quadratic is least without it.
    """
    inverse, left, lost = np.linalg.inv(hessian), np.arange(len(values)), 0.0
    yield Elimination(lost, values, left)
    while len(left) > free:
        costs = np.square(values[free:]) / np.diag(inverse)[free:]
        out = free + int(np.argmin(costs))
        stay = np.delete(np.arange(len(left)), out)
        column, corner = inverse[stay, out], inverse[out, out]
        values = values[stay] - column * values[out] / corner
        inverse = inverse[np.ix_(stay, stay)] - np.outer(column, column) / corner
        left, lost = left[stay], lost + float(costs[out - free])
        yield Elimination(lost, values, left)


def eliminate(values: Floats, hessian: Floats, keep: int, free: int) -> tuple[Floats, Indices]:
    """Where the quadratic around ``values`` is least with ``keep`` coordinates, and which; the first ``free`` stay and
    do not count."""
    found = next(each for each in eliminations(values, hessian, free) if len(each.left) - free <= keep)
    return found.values, found.left


def as_many_as_pay(
    values: Floats, hessian: Floats, free: int, most: int, noise: float, noise_of: Callable[[int], float]
) -> int:
    """How many coordinates to keep, from 1 to ``most``, where each of the ``values`` has a ``noise`` of this variance
    in the quadratic's units, and will have ``noise_of(k)`` once k are left.

    What goes costs what the quadratic says but for the noise in it (Mallows 1973), what stays costs its own noise: the
    number with which both together are least.
    """
    whole = len(values) - free

    def expected(each: Elimination) -> float:
        kept = len(each.left) - free
        return each.lost - (whole - kept) * noise + kept * noise_of(kept)

    steps = [each for each in eliminations(values, hessian, free) if min(1, whole) <= len(each.left) - free <= most]
    return len(min(steps, key=expected).left) - free
