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
    "check_structure",
    "clip_rows",
    "clip_targets",
    "counts_sensitivity",
    "gradient_sensitivity",
    "gram_sensitivity",
    "mean_loss_sensitivity",
    "minimiser_sensitivity",
    "momentum_clip",
    "report_sensitivity",
    "residual_limits",
    "rounded_down",
]

Floats = NDArray[np.float64]

SMALLEST, LARGEST = 1e-100, 1e100  # of clips: outside, squares under- or overflow and norms lie
SMALLEST_BOUND, LARGEST_BOUND = 1e-40, 1e40  # so that clips, ridges and radii that follow from bounds stay inside that
SMALLEST_SINGLE = 1e-30  # row bound in single precision: below, entries have too few digits to be shrunk exactly
_BLOCK = 2**18  # entries of a sparse matrix that are worked on at a time
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
    """A copy of ``X`` (dense, or CSC if sparse) whose rows obey ``bounds``, however wild they were.

    Single precision stays single precision (unless the row bound is next to nothing), everything else becomes double.
    """
    single = X.dtype == np.float32 and (bounds.row is None or bounds.row >= SMALLEST_SINGLE)
    kept = np.float32 if single else np.float64
    check_structure(X)
    if sparse.issparse(X):
        X = sparse.csc_array(X, dtype=kept, copy=X.format == "csc")  # any other format is copied on the way
        X.sum_duplicates()
        _trim(X)
        _clip_entries(X.data, _REPRESENTABLE)
        if isinstance(bounds.feature, tuple):
            features = np.asarray(bounds.feature)
            for entries in _blocks(X.nnz):
                _clip_entries(X.data[entries], features[_columns_of(X, entries)])
        elif bounds.feature is not None:
            _clip_entries(X.data, bounds.feature)
        if bounds.row is not None:
            factors = _shrink(row_norms(X), bounds.row, kept)
            for entries in _blocks(X.nnz):
                X.data[entries] *= factors[X.indices[entries]]
        return X
    X = np.array(X, dtype=kept, order="F")
    _clip_entries(X, _REPRESENTABLE)
    if bounds.feature is not None:
        _clip_entries(X, np.asarray(bounds.feature))
    if bounds.row is not None:
        X *= _shrink(row_norms(X), bounds.row, kept)[:, None]
    return X


def row_norms(X: Any) -> Floats:
    """||x_i||_2 for each row of a dense or a CSC matrix, without overflow for entries up to the largest float."""
    n = X.shape[0]
    if sparse.issparse(X):
        unit = _row_units(X)
        squares = np.zeros(n)
        for entries in _blocks(X.nnz):  # the squares of all entries at once would take as much memory as X
            rows, values = X.indices[entries], X.data[entries].astype(np.float64, copy=False)
            scaled = values if unit is None else values / unit[rows]
            squares += np.bincount(rows, scaled * scaled, minlength=n)
        return np.sqrt(squares) if unit is None else unit * np.sqrt(squares)
    with np.errstate(over="ignore"):
        norms: Floats = np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))
    odd = np.flatnonzero(~((norms > 1e-140) & (norms < 1e140)))  # squares may have over- or underflowed there
    if odd.size:
        wild = X[odd].astype(np.float64)
        largest = np.max(np.abs(wild), axis=1, initial=0.0)
        wild /= np.where(largest > 0, largest, 1.0)[:, None]
        norms[odd] = largest * np.sqrt(np.einsum("ij,ij->i", wild, wild))
    return norms


def rounded_down(limit: Floats | float, kind: Any) -> NDArray[Any]:
    """The largest number of this kind, single or double precision, that does not exceed each positive ``limit``."""
    limit = np.asarray(limit, dtype=np.float64)
    with np.errstate(over="ignore"):
        kept: NDArray[Any] = limit.astype(kind)
    return np.where(kept > limit, np.nextafter(kept, kept.dtype.type(0)), kept)


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


def momentum_clip(clip: float, difference_clip: float, momentum: float) -> float:
    """(1-g) C2 + g C1: the l2 norm of a row's part in a recursive momentum g (erratum E-18)."""
    if not 0 <= momentum <= 1:
        raise ValueError(f"momentum={momentum!r} must lie from 0 to 1")
    if not min(clip, difference_clip) >= 0:  # one below 0 would lower the sum, and with it the noise
        raise ValueError(f"clip={clip!r} and difference_clip={difference_clip!r} must both be at least 0")
    if momentum == 0:
        return difference_clip
    return clip if momentum == 1 else (1 - momentum) * difference_clip + momentum * clip


def mean_loss_sensitivity(clip: float, n: int) -> float:
    """What one row moves a mean over n of losses between 0 and ``clip``: as much for either adjacency."""
    return float(clip) / int(n)


def gram_sensitivity(clip: float, n: int, adjacency: Adjacency) -> float:
    """Frobenius sensitivity of (1/n) sum_i x_i x_i' with ||x_i||_2^2 <= clip.

    ||x x' - z z'||^2 = ||x||^4 + ||z||^4 - 2 (x'z)^2: the two terms are never more than a right angle apart.
    """
    return math.sqrt(adjacency.contributions) * float(clip) / int(n)


def counts_sensitivity(adjacency: Adjacency) -> float:
    """l2 sensitivity of the numbers of rows that hold each of several texts, where a row holds at most one.

    A row that comes or goes moves one count by 1; one that is replaced moves one down and another up.
    """
    return math.sqrt(adjacency.contributions)


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


def _clip_entries(values: NDArray[Any], limit: Floats | float) -> None:
    limit = rounded_down(limit, values.dtype)
    np.clip(values, -limit, limit, out=values)


def _shrink(norms: Floats, bound: float, kept: type[np.floating[Any]]) -> Floats:
    """Factors that bring rows of these norms inside ``bound`` and leave the others alone.

    A product in single precision may be rounded up, by 2^-24 of itself: rows that are shrunk end a little further in.
    """
    inward = 1 - 2.0**-22 if kept is np.float32 else 1.0
    return np.where(norms > bound, inward * _ratio(bound, norms), 1.0)


def check_structure(X: Any) -> None:
    """Refuse a CSR or CSC matrix whose arrays do not describe one: compiled loops, SciPy's too, would read astray."""
    if not sparse.issparse(X) or X.format not in ("csr", "csc"):
        return
    inner = X.shape[1 if X.format == "csr" else 0]
    stored = X.indices[: X.indptr[-1]]
    within = stored.size == 0 or (stored.min() >= 0 and stored.max() < inner)
    if not within or X.indptr[0] != 0 or np.any(np.diff(X.indptr) < 0) or X.indptr[-1] > X.data.size:
        raise ValueError("X: an index of the sparse matrix is out of range; rebuild the matrix")


def _trim(X: Any) -> None:
    """Give back the room that added-up duplicates leave at the end of the arrays, without a copy of what is kept."""
    for name in ("data", "indices"):
        size, base, start = getattr(X, name).size, getattr(X, name).base, getattr(X, name).ctypes.data
        if isinstance(base, np.ndarray) and base.flags.owndata and base.ctypes.data == start:
            setattr(X, name, base)  # the view must be gone before its memory may move
            base.resize(size, refcheck=False)


def _blocks(size: int) -> list[slice]:
    """Slices of an array of this size, small enough that what is computed from one of them takes little memory."""
    return [slice(first, first + _BLOCK) for first in range(0, size, _BLOCK)]


def _columns_of(X: Any, entries: slice) -> NDArray[np.intp]:
    """The columns of some stored entries of a CSC matrix."""
    at: NDArray[np.intp] = np.arange(entries.start, min(entries.stop, X.nnz))
    return np.searchsorted(X.indptr, at, side="right") - 1


def _row_units(X: Any) -> Floats | None:
    """By what to divide the entries of each row of a CSC matrix so that their squares neither over- nor underflow: its
    largest entry. None in the usual case that nothing needs to be done."""
    if all(_has_plain_squares(X.data[entries]) for entries in _blocks(X.nnz)):
        return None
    largest = np.zeros(X.shape[0])
    np.maximum.at(largest, X.indices, np.abs(X.data))
    return np.where(largest > 0, largest, 1.0)


def _has_plain_squares(values: NDArray[Any]) -> bool:
    sizes = np.abs(values, dtype=np.float64)
    return bool(np.all((sizes < 1e150) & ((sizes > 1e-150) | (sizes == 0))))


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
