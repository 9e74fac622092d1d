"""Bounds, how rows, labels and residuals are clipped to them, and the sensitivity each clip buys.

Nothing here is read off the data: the bounds are the caller's, the clips make them true for every possible row, and
the ``*_sensitivity`` functions are the only place where a clip and an adjacency become a sensitivity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from thresher.budget import Adjacency

__all__ = [
    "LARGEST",
    "SMALLEST",
    "Bounds",
    "clip_rows",
    "clip_targets",
    "gradient_sensitivity",
    "gram_sensitivity",
    "minimiser_sensitivity",
    "report_sensitivity",
    "residual_limits",
]

Floats = NDArray[np.float64]

SMALLEST, LARGEST = 1e-100, 1e100  # of clips: outside, squares under- or overflow and norms lie
SMALLEST_BOUND, LARGEST_BOUND = 1e-40, 1e40  # so that clips, ridges and radii that follow from bounds stay inside that
_REPRESENTABLE = 1e300  # larger entries (or infinite ones: sums of duplicates) count as this, so that norms stay finite


@dataclass(frozen=True)
class Bounds:
    """Public bounds: |x_ij| <= feature (a number or one per column), ||x_i||_2 <= row, low <= y_i <= high."""

    feature: float | tuple[float, ...] | None = None
    row: float | None = None
    target: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.feature is None and self.row is None:
            raise ValueError(
                "feature_bound=None and row_bound=None: give at least one of them, from public knowledge "
                "(feature_bound clips every |x_ij|, row_bound clips every ||x_i||_2)"
            )
        feature = self.feature
        if isinstance(feature, tuple):
            feature = tuple(_checked("feature_bound", bound) for bound in feature)
        elif feature is not None:
            feature = _checked("feature_bound", feature)
        object.__setattr__(self, "feature", feature)
        if self.row is not None:
            object.__setattr__(self, "row", _checked("row_bound", self.row))
        if self.target is not None:
            low, high = map(float, self.target)
            object.__setattr__(self, "target", (low, high))
            if not (max(abs(low), abs(high)) <= LARGEST_BOUND and high - low >= SMALLEST_BOUND):
                raise ValueError(
                    f"target_bound={self.target!r} must be a positive number or a pair (low, high) with low < high, "
                    "from public knowledge about the target"
                )

    def row_norm(self, d: int) -> float:
        """The l2 norm no clipped row of ``d`` columns exceeds."""
        norms = [] if self.row is None else [self.row]
        if isinstance(self.feature, tuple):
            if len(self.feature) != d:
                raise ValueError(
                    f"feature_bound has {len(self.feature)} values for {d} columns; give one number or one per column"
                )
            norms.append(math.hypot(*self.feature))
        elif self.feature is not None:
            norms.append(self.feature * math.sqrt(d))
        return min(norms)

    @property
    def target_span(self) -> tuple[float, float]:
        """The middle and the half-width of the public target range."""
        if self.target is None:
            raise ValueError("target_bound=None: there is no public range of the target; give one")
        low, high = self.target
        return (low + high) / 2, (high - low) / 2

    def entries(self, d: int) -> Floats:
        """What no clipped entry of each of ``d`` columns exceeds in magnitude."""
        feature = np.inf if self.feature is None else np.asarray(self.feature)
        entries: Floats = np.minimum(np.broadcast_to(feature, d), np.inf if self.row is None else self.row)
        return entries

    def largest_entry(self, d: int) -> float:
        """What no clipped entry of any of ``d`` columns exceeds in magnitude."""
        return float(self.entries(d).max())


# -- clips ------------------------------------------------------------------------------------------------------


def clip_rows(X: Any, bounds: Bounds) -> Any:
    """A float64 copy of ``X`` (dense, or CSC if sparse) whose rows obey ``bounds``, however wild they were."""
    if sparse.issparse(X):
        X = sparse.csc_array(X, dtype=np.float64, copy=True)
        X.sum_duplicates()
        _clip_entries(X.data, _REPRESENTABLE)
        if bounds.feature is not None:
            _clip_entries(X.data, np.repeat(np.broadcast_to(bounds.feature, X.shape[1]), np.diff(X.indptr)))
        if bounds.row is not None:
            X.data *= _shrink(row_norms(X), bounds.row)[X.indices]
        return X
    X = np.array(X, dtype=np.float64, order="F")
    _clip_entries(X, _REPRESENTABLE)
    if bounds.feature is not None:
        _clip_entries(X, np.asarray(bounds.feature))
    if bounds.row is not None:
        X *= _shrink(row_norms(X), bounds.row)[:, None]
    return X


def row_norms(X: Any) -> Floats:
    """||x_i||_2 for each row, without overflow for entries up to the largest float."""
    n = X.shape[0]
    if sparse.issparse(X):
        largest = np.zeros(n)
        np.maximum.at(largest, X.indices, np.abs(X.data))
        unit = np.where(largest > 0, largest, 1.0)
        return largest * np.sqrt(np.bincount(X.indices, (X.data / unit[X.indices]) ** 2, minlength=n))
    largest = np.max(np.abs(X), axis=1, initial=0.0)
    scaled = X / np.where(largest > 0, largest, 1.0)[:, None]
    norms: Floats = largest * np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
    return norms


def clip_targets(y: Floats, bounds: Bounds) -> Floats:
    """``y`` clipped into the public target range."""
    if bounds.target is None:
        return y
    return np.clip(y, *bounds.target)


def residual_limits(norms: Floats, clip: float) -> Floats:
    """The largest |residual| of each row that keeps its gradient residual * x_i within l2 norm ``clip``.

    Clipping the residual turns the squared loss into a Huber loss: convex, smooth, and with a gradient bound that
    holds for every row (erratum E-3: the printed Lipschitz constants do not).
    """
    return _ratio(clip, norms)


# -- sensitivities ----------------------------------------------------------------------------------------------


def gradient_sensitivity(clip: float, n: int, adjacency: Adjacency) -> float:
    """l2 sensitivity of (1/n) sum_i g_i with ||g_i||_2 <= clip."""
    return adjacency.contributions * float(clip) / int(n)


def gram_sensitivity(clip: float, n: int, adjacency: Adjacency) -> float:
    """Frobenius sensitivity of (1/n) sum_i x_i x_i' with ||x_i||_2^2 <= clip.

    ||x x' - z z'||^2 = ||x||^4 + ||z||^4 - 2 (x'z)^2: the two terms are never more than a right angle apart.
    """
    return math.sqrt(adjacency.contributions) * float(clip) / int(n)


def minimiser_sensitivity(clip: float, n: int, adjacency: Adjacency, ridge: float, tolerance: float) -> float:
    """l2 sensitivity of a certified minimiser of (1/n) sum_i l_i + (ridge/2)||theta||^2 with ||grad l_i||_2 <= clip.

    The objective is ridge-strongly convex and its gradient moves by at most contributions*clip/n between neighbours,
    so the minimisers are within that over ridge of each other. A found point whose gradient is within ``tolerance``
    of zero is within tolerance/ridge of its minimiser (erratum E-7).
    """
    return (gradient_sensitivity(clip, n, adjacency) + 2 * tolerance) / float(ridge)


def report_sensitivity(clip: float, adjacency: Adjacency) -> float:
    """How far apart two values of a ball of radius ``clip`` may be: what one person's report must hide."""
    return adjacency.contributions * float(clip)


# -- helpers ----------------------------------------------------------------------------------------------------


def _clip_entries(values: Floats, limit: Floats | float) -> None:
    np.clip(values, -np.asarray(limit), limit, out=values)


def _shrink(norms: Floats, bound: float) -> Floats:
    """Factors that bring rows of these norms inside ``bound`` and leave the others alone."""
    return np.minimum(1.0, _ratio(bound, norms))


def _ratio(bound: float, norms: Floats) -> Floats:
    """bound/norms; 0 for a row of zeros, which adds nothing whatever it is multiplied by."""
    with np.errstate(over="ignore"):
        ratio = np.divide(bound, norms, out=np.zeros_like(norms), where=norms > 0)
    # an infinite residual times a tiny entry must not become infinite, unless there is no clip at all
    return ratio if math.isinf(bound) else np.minimum(ratio, np.finfo(np.float64).max)


def _checked(name: str, value: float) -> float:
    """``value`` as a plain float, in a range whose squares and ratios a double can hold."""
    if not (isinstance(value, Real) and SMALLEST_BOUND <= value <= LARGEST_BOUND):
        raise ValueError(
            f"{name}={value!r} must be a positive finite number, taken from public knowledge "
            f"(and from {SMALLEST_BOUND:g} to {LARGEST_BOUND:g})"
        )
    return float(value)
