"""What can be done for free with a noisy quadratic: no row is asked about."""

from __future__ import annotations

import math

import numpy as np

from thresher.privacy.arrays import Floats, Indices

__all__ = ["eliminate", "inverse_root", "raised", "ridge_for"]


def raised(matrix: Floats, least: float) -> Floats:
    """A symmetric matrix whose eigenvalues are at least ``least``."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)


def inverse_root(matrix: Floats) -> Floats:
    """matrix^(-1/2), of a matrix that is positive definite."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors / np.sqrt(values)) @ vectors.T)


def ridge_for(hessian: Floats, most: float, least: float, free: int = 0) -> float:
    """The smallest ridge of a grid from ``least`` upwards that leaves at most ``most`` degrees of freedom.

    The last ``free`` coordinates have no ridge and count in full.
    """
    k = len(hessian)
    mask = np.ones(k)
    mask[k - free :] = 0.0
    ridge = least
    for _ in range(200):
        inverse = np.linalg.inv(hessian + np.diag(ridge * mask))
        if float(np.trace(inverse @ hessian)) <= most:
            break
        ridge *= 1.25
    return ridge


def eliminate(values: Floats, hessian: Floats, keep: int, fixed: int = 0) -> tuple[Floats, Indices]:
    """Backward elimination: the quadratic's minimum and which coordinates are left when at most ``keep`` may be.

    values is the minimum of (1/2) (v - values)' hessian (v - values). Again and again the coordinate goes whose going
    costs least, v_j^2 / (hessian^-1)_jj / 2, and the others move to the minimum without it. The last ``fixed`` stay.
    """
    k = len(values)
    left = np.arange(k)
    inverse = np.linalg.inv(hessian)
    values = values.copy()
    while len(left) - fixed > keep:
        room = len(left) - fixed
        cost = np.square(values[:room]) / np.diag(inverse)[:room]
        out = int(np.argmin(cost))
        kept = np.delete(np.arange(len(left)), out)
        column, corner = inverse[kept, out], inverse[out, out]
        values = values[kept] - column * values[out] / corner
        inverse = inverse[np.ix_(kept, kept)] - np.outer(column, column) / corner
        left = left[kept]
    return values, left
