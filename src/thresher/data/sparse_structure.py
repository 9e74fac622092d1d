"""Sparse matrices whose arrays do not describe one: compiled loops, SciPy's too, would read and write astray."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Integral

import numpy as np
from scipy import sparse

from thresher.data.typing import Cell, Table, Values
from thresher.privacy.arrays import Integers

__all__ = ["by_rows", "check_structure"]


def check_structure(X: Table, name: str = "X") -> None:
    """Refuse a sparse matrix, of any format, with an index that is out of range or arrays that do not fit together.

    To be called before anything else is done with a matrix: SciPy checks little when one is made, nothing when its
    arrays are changed, and conversions between formats trust it.
    """
    if not sparse.issparse(X):
        return
    if X.ndim != 2:
        raise ValueError(f"{name} is a sparse array of {X.ndim} dimension(s); give one with rows and columns")
    if not _SOUND[X.format](X):
        raise ValueError(f"{name}: an index of the sparse matrix is out of range; rebuild the matrix")


def by_rows(X: Table) -> sparse.csr_array:
    """A matrix as CSR, each row's entries, duplicates too, in the order in which the row holds them.

    SciPy sorts and adds up what it makes of COO, all rows as soon as one is out of order, and its sort puts duplicates
    into any order: a row's sums would depend on other rows. It does not where it is told that there are none.
    """
    if sparse.issparse(X) and X.format == "coo":
        X = sparse.coo_array((X.data, (X.row, X.col)), shape=X.shape)
        X.has_canonical_format = True
    return sparse.csr_array(X)


def _is_sound_csr(X: sparse.csr_array) -> bool:
    return _is_compressed(X, *X.shape) and X.data.ndim == 1


def _is_sound_csc(X: sparse.csc_array) -> bool:
    return _is_compressed(X, *X.shape[::-1]) and X.data.ndim == 1


def _is_sound_bsr(X: sparse.bsr_array) -> bool:
    if not isinstance(X.data, np.ndarray) or X.data.ndim != 3 or min(X.data.shape[1:]) < 1:
        return False
    (rows, columns), (high, wide) = X.shape, X.data.shape[1:]
    return rows % high == 0 and columns % wide == 0 and _is_compressed(X, rows // high, columns // wide)


def _is_compressed(X: sparse.csr_array | sparse.csc_array | sparse.bsr_array, major: int, minor: int) -> bool:
    """Whether ``indptr`` divides ``indices`` and ``data`` among ``major`` rows, or columns, of length ``minor``."""
    starts = X.indptr
    if not _are_indices(starts) or not _are_indices(X.indices) or not isinstance(X.data, np.ndarray):
        return False
    if len(starts) != major + 1 or starts[0] != 0 or np.any(starts[1:] < starts[:-1]):
        return False
    stored = int(starts[-1])
    return stored <= min(len(X.indices), len(X.data)) and _lie_within(X.indices[:stored], 0, minor - 1)


def _is_sound_coo(X: sparse.coo_array) -> bool:
    places = (X.row, X.col)
    if not all(map(_are_indices, places)) or not isinstance(X.data, np.ndarray) or X.data.ndim != 1:
        return False
    return all(
        len(at) == len(X.data) and _lie_within(at, 0, length - 1) for at, length in zip(places, X.shape, strict=True)
    )


def _is_sound_dia(X: sparse.dia_array) -> bool:
    if not _are_indices(X.offsets) or not isinstance(X.data, np.ndarray) or X.data.ndim != 2:
        return False
    rows, columns = X.shape
    return len(X.offsets) == len(X.data) and _lie_within(X.offsets, -rows, columns)


def _is_sound_lil(X: sparse.lil_array) -> bool:
    rows, columns = X.shape
    if any(not isinstance(part, np.ndarray) or part.shape != (rows,) for part in (X.rows, X.data)):
        return False
    pairs = list(zip(X.rows, X.data, strict=True))
    if not all(isinstance(at, list) and isinstance(values, list) and len(at) == len(values) for at, values in pairs):
        return False
    return all(_is_within(index, columns) for at, _ in pairs for index in at)


def _is_sound_dok(X: sparse.dok_array) -> bool:
    rows, columns = X.shape
    keys: Iterable[Cell] = X.keys()
    return all(
        isinstance(key, tuple) and len(key) == 2 and _is_within(key[0], rows) and _is_within(key[1], columns)
        for key in keys
    )


def _are_indices(values: Values) -> bool:
    return isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iu"


def _lie_within(values: Integers, lowest: int, highest: int) -> bool:
    return values.size == 0 or (int(values.min()) >= lowest and int(values.max()) <= highest)


def _is_within(index: Cell, length: int) -> bool:
    return isinstance(index, Integral) and 0 <= int(index) < length


_SOUND: dict[str, Callable[[sparse.sparray | sparse.spmatrix], bool]] = {
    "csr": _is_sound_csr,
    "csc": _is_sound_csc,
    "bsr": _is_sound_bsr,
    "coo": _is_sound_coo,
    "dia": _is_sound_dia,
    "lil": _is_sound_lil,
    "dok": _is_sound_dok,
}
