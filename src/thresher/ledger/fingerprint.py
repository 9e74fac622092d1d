"""By which a data set is recognised: short keyed names of some of its rows, the same ones whatever their order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from thresher.data.dask import Partitions, Sealed
from thresher.data.sparse_structure import check_structure
from thresher.ledger.chain import Key
from thresher.privacy.arrays import Matrix

__all__ = ["KEPT", "ODD", "Sketch", "are_alike", "scrambled", "sketch_of"]

Words = NDArray[np.uint64]
Sketch = tuple[str, ...]

KEPT = 64  # rows in a sketch
LEAST = 16  # rows that data sets which are alike have in common
BLOCK = 2**18  # entries that are hashed at a time
ODD = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], dtype=np.uint64)


def sketch_of(X: Matrix, key: Key) -> Sketch:
    """The names of the rows whose hashes are smallest, each with how often it occurs.

    Hashes look random, so these are KEPT random rows, and of a part of the data about the same ones: a part that holds
    a share f of the rows has about f KEPT of them in common with the whole. Counts keep tables of few different rows,
    such as answers to three questions, apart. Targets do not count: other questions about the same people are still
    about them.
    """
    check_structure(X)
    if isinstance(X, Partitions):
        parts = X.client.gather(X.client.map(_smallest_sealed, X.parts, sealed_key=Sealed(key), pure=False))
    else:
        parts = [_smallest(X, key)]
    found: Counter[int] = sum(parts, Counter())
    return tuple(sorted(f"{key.of_row(hashed)}*{found[hashed]}" for hashed in sorted(found)[:KEPT]))


def are_alike(one: Sketch, other: Sketch) -> bool:
    """Whether about half of the rows of the smaller data set, or more, are in the other.

    A few rows in common never are enough: or whoever may spend on some account could ask about single rows of another.
    """
    return len(set(one) & set(other)) >= max(LEAST, math.ceil(min(len(one), len(other)) / 2))


def _smallest_sealed(part: Sealed, sealed_key: Sealed) -> Counter[int]:
    return _smallest(part.value, sealed_key.value)


def _smallest(X: Matrix, key: Key) -> Counter[int]:
    """The KEPT smallest hashes and how often they occur; one of the smallest of all is one of each part that has it."""
    columns = scrambled(np.arange(X.shape[1], dtype=np.uint64) * ODD[0] + np.uint64(key.number))
    kept: Counter[int] = Counter()
    for rows in _blocks(X):
        hashes = _hashes(rows, columns)
        if len(kept) == KEPT:
            hashes = hashes[hashes <= np.uint64(max(kept))]
        values, counts = np.unique(hashes, return_counts=True)
        kept += Counter(dict(zip(values[:KEPT].tolist(), counts[:KEPT].tolist(), strict=True)))
        kept = Counter({hashed: kept[hashed] for hashed in sorted(kept)[:KEPT]})
    return kept


def _blocks(X: Matrix) -> Iterable[Matrix]:
    """Some rows at a time."""
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        step = max(1, BLOCK * X.shape[0] // max(X.nnz, 1))
    else:
        step = max(1, BLOCK // max(X.shape[1], 1))
    return (X[first : first + step] for first in range(0, X.shape[0], step))


def _hashes(rows: Matrix, columns: Words) -> Words:
    """Of each row the sum of hashes of its entries other than zero, as double precision holds them, modulo 2^64."""
    if sparse.issparse(rows):
        rows = sparse.csr_array(rows, dtype=np.float64, copy=True)
        rows.sum_duplicates()
        entries = np.where(rows.data != 0, scrambled(rows.data.view(np.uint64) ^ columns[rows.indices]), np.uint64(0))
        total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(entries, dtype=np.uint64)])
        sums: Words = total[rows.indptr[1:]] - total[rows.indptr[:-1]]  # exact, for it is modulo 2^64
        return sums
    values = np.ascontiguousarray(rows, dtype=np.float64)
    entries = scrambled(values.view(np.uint64) ^ columns)
    entries[values == 0] = 0
    hashes: Words = entries.sum(axis=1, dtype=np.uint64)
    return hashes


def scrambled(words: Words) -> Words:
    """A bijection after which words look random; the words given are overwritten."""
    for shift, odd in ((30, ODD[1]), (27, ODD[2])):
        words ^= words >> np.uint64(shift)
        words *= odd
    words ^= words >> np.uint64(31)
    return words
