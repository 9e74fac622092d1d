"""How rows and targets are clipped to public bounds, and residuals to a clip: true of every possible row afterwards.

Nothing here is read off the data: the bounds are the caller's (``thresher.privacy.bounds``).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from thresher.data.sparse_structure import by_rows, check_structure
from thresher.privacy.arrays import Floats, Matrix, Numbers
from thresher.privacy.bounds import Bounds
from thresher.vaults.kernels.rows import squares

__all__ = [
    "clip_rows",
    "clip_targets",
    "residual_limits",
    "round_down",
    "without_duplicates",
]

SMALLEST_SINGLE = 1e-30  # row bound in single precision: below, entries have too few digits to be shrunk exactly
_BLOCK = 2**18  # entries of a sparse matrix that are worked on at a time
_REPRESENTABLE = 1e300  # larger entries (or infinite ones: sums of duplicates) count as this, so that norms stay finite


# -- clips ------------------------------------------------------------------------------------------------------


def clip_rows(X: Matrix, bounds: Bounds) -> Matrix:
    """A copy of ``X`` (dense, or CSC if sparse) whose rows obey ``bounds``, however wild they were.

    Single precision stays single precision (unless the row bound is next to nothing), everything else becomes double.
    """
    single = X.dtype == np.float32 and (bounds.row is None or bounds.row >= SMALLEST_SINGLE)
    kept = np.float32 if single else np.float64
    check_structure(X)
    if sparse.issparse(X):
        X = without_duplicates(X, kept)
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


def row_norms(X: Matrix) -> Floats:
    """||x_i||_2 for each row of a dense or a CSC matrix, without overflow for entries up to the largest float.

    A function of the row alone, to the last bit: by which formula a row is measured is decided by that row
    (docs/guarantees.md, "Row-locality").
    """
    with np.errstate(over="ignore"):
        norms: Floats = np.sqrt(_sparse_squares(X) if sparse.issparse(X) else squares(np.asfortranarray(X)))
    odd = ~((norms > 1e-140) & (norms < 1e140))  # squares may have over- or underflowed there
    if odd.any():
        norms[odd] = _wild_norms(X, odd)[odd] if sparse.issparse(X) else _scaled_norms(X[odd].astype(np.float64))
    return norms


def _sparse_squares(X: Matrix) -> Floats:
    """sum_j x_ij^2, in the order of the columns."""
    sums = np.zeros(X.shape[0])
    for entries in _blocks(X.nnz):  # the squares of all entries at once would take as much memory as X
        values = X.data[entries].astype(np.float64, copy=False)
        np.add.at(sums, X.indices[entries].astype(np.intp, copy=False), values * values)  # one after the other
    return sums


def _scaled_norms(X: Floats) -> Floats:
    """||x_i||_2 of dense rows, each first divided by its largest entry."""
    largest = np.max(np.abs(X), axis=1, initial=0.0)
    norms: Floats = largest * np.sqrt(squares(np.asfortranarray(X / np.where(largest > 0, largest, 1.0)[:, None])))
    return norms


def _wild_norms(X: Matrix, odd: NDArray[np.bool_]) -> Floats:
    """The same of the rows of a CSC matrix that are odd; 0 for the others."""
    largest, sums = np.zeros(X.shape[0]), np.zeros(X.shape[0])
    found = [entries.start + np.flatnonzero(odd[X.indices[entries]]) for entries in _blocks(X.nnz)]
    at = np.concatenate(found) if found else np.empty(0, dtype=np.intp)
    rows, values = X.indices[at].astype(np.intp, copy=False), X.data[at].astype(np.float64, copy=False)
    np.maximum.at(largest, rows, np.abs(values))
    scaled = values / np.where(largest > 0, largest, 1.0)[rows]
    np.add.at(sums, rows, scaled * scaled)
    return largest * np.sqrt(sums)


def round_down(limit: Floats | float, kind: DTypeLike) -> Numbers:
    """The largest number of this kind, single or double precision, that does not exceed each positive ``limit``."""
    limit = np.asarray(limit, dtype=np.float64)
    with np.errstate(over="ignore"):
        kept: Numbers = limit.astype(kind)
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


# -- helpers ----------------------------------------------------------------------------------------------------


def _clip_entries(values: Numbers, limit: Floats | float) -> None:
    largest = round_down(limit, values.dtype)
    np.clip(values, -largest, largest, out=values)


def _shrink(norms: Floats, bound: float, kept: DTypeLike) -> Floats:
    """Factors that bring rows of these norms inside ``bound`` and leave the others alone.

    A product in single precision may be rounded up, by 2^-24 of itself: rows that are shrunk end a little further in.
    """
    inward = 1 - 2.0**-22 if kept is np.float32 else 1.0
    return np.where(norms > bound, inward * _ratio(bound, norms), 1.0)


def without_duplicates(X: Matrix, kept: DTypeLike) -> Matrix:
    """A CSC copy in which every cell is stored once: duplicates are added up, in the order in which a row holds them.

    So the way leads through rows: SciPy sorts columns whose rows are not in order, and puts a row's duplicates into an
    order that depends on the other rows. From CSR, columns come out in order, and nothing is sorted.
    """
    if X.format == "csc":
        X = _without_flags(X)
        if X.has_canonical_format:
            return sparse.csc_array(X, dtype=kept, copy=True)
    X = sparse.csc_array(_without_flags(by_rows(X)), dtype=kept)
    X.sum_duplicates()
    _trim(X)
    return X


def _without_flags(X: Matrix) -> Matrix:
    """The same CSR or CSC matrix without what somebody may have said about its order and duplicates."""
    stored = slice(X.indptr[-1])
    return type(X)((X.data[stored], X.indices[stored], X.indptr), shape=X.shape)


def _trim(X: Matrix) -> None:
    """Give back the room that added-up duplicates leave at the end of the arrays, without a copy of what is kept."""
    for name in ("data", "indices"):
        size, base, start = getattr(X, name).size, getattr(X, name).base, getattr(X, name).ctypes.data
        if isinstance(base, np.ndarray) and base.flags.owndata and base.ctypes.data == start:
            setattr(X, name, base)  # the view must be gone before its memory may move
            base.resize(size, refcheck=False)


def _blocks(size: int) -> list[slice]:
    """Slices of an array of this size, small enough that what is computed from one of them takes little memory."""
    return [slice(first, first + _BLOCK) for first in range(0, size, _BLOCK)]


def _columns_of(X: Matrix, entries: slice) -> NDArray[np.intp]:
    """The columns of some stored entries of a CSC matrix."""
    at: NDArray[np.intp] = np.arange(entries.start, min(entries.stop, X.nnz))
    return np.searchsorted(X.indptr, at, side="right") - 1


def _ratio(bound: float, norms: Floats) -> Floats:
    """bound/norms; 0 for a row of zeros, which adds nothing whatever it is multiplied by."""
    with np.errstate(over="ignore"):
        ratio = np.divide(bound, norms, out=np.zeros_like(norms), where=norms > 0)
    # an infinite residual times a tiny entry must not become infinite, unless there is no clip at all
    return ratio if math.isinf(bound) else np.minimum(ratio, np.finfo(np.float64).max)
