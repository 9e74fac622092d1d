"""By which a data set is recognised: short keyed names of some of its rows, the same ones whatever their order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from thresher.clipping import check_structure
from thresher.ledger.chain import Key
from thresher.partitions import Partitions, Sealed

__all__ = ["Sketch", "alike", "sketch_of"]

Sketch = tuple[str, ...]

KEPT = 64  # rows in a sketch
BLOCK = 2**20  # entries that are hashed at a time


def sketch_of(X: Any, key: Key) -> Sketch:
    """The names of the rows whose names come first, each with how often it occurs.

    The names look random, so these are KEPT random rows, and of a part of the data about the same ones: a part that
    holds a share f of the rows has about f KEPT of them in common with the whole. Counts keep tables of few different
    rows, such as answers to three questions, apart. Targets do not count: other questions about the same people are
    still about them.
    """
    check_structure(X)
    if isinstance(X, Partitions):
        parts = X.client.gather(X.client.map(_sealed_names, X.parts, sealed_key=Sealed(key), pure=False))
    else:
        parts = (_names(block, key) for block in _blocks(X))
    return tuple(f"{name}*{count}" for name, count in sorted(_merged(parts).items()))


def alike(one: Sketch, other: Sketch) -> bool:
    """Whether half of the rows of the smaller data set are in the other."""
    return len(set(one) & set(other)) >= max(1, math.ceil(min(len(one), len(other)) / 2))


def _merged(parts: Iterable[Counter[str]]) -> Counter[str]:
    """The first KEPT names of all parts; a name that is among the first of all is among the first of every part."""
    total: Counter[str] = Counter()
    for part in parts:
        total += part
        total = _first(total)
    return total


def _first(names: Counter[str]) -> Counter[str]:
    return Counter({name: names[name] for name in sorted(names)[:KEPT]})


def _sealed_names(part: Sealed, sealed_key: Sealed) -> Counter[str]:
    return _merged(_names(block, sealed_key.value) for block in _blocks(part.value))


def _blocks(X: Any) -> Iterable[Any]:
    """Some rows at a time."""
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        step = max(1, BLOCK * X.shape[0] // max(X.nnz, 1))
    else:
        step = max(1, BLOCK // max(X.shape[1], 1))
    return (X[first : first + step] for first in range(0, X.shape[0], step))


def _names(rows: Any, key: Key) -> Counter[str]:
    """The first names of these rows; a row is its entries other than zero, as double precision holds them."""
    rows = sparse.csr_array(rows, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    places, values = memoryview(rows.indices.astype("<i8")), memoryview(rows.data.astype("<f8"))
    ends = rows.indptr.tolist()
    return _first(Counter(key.of_row(bytes(places[a:b]) + bytes(values[a:b])) for a, b in pairwise(ends)))
