"""Sums over rows whose round-off does not grow with the number of rows.

``SUM_ERROR`` of ``thresher.privacy.sensitivity`` bounds it, for sums of up to CAPACITY terms. Terms
are added in blocks of at most 256 and the totals of blocks with compensation, or in blocks of 32 and those in blocks
again: 256 u and a few more, or 32 log_32(CAPACITY) u = 211 u.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from thresher.privacy.arrays import Floats

__all__ = ["BLOCK", "add_up", "gram_of", "segment_sums"]

BLOCK = 256
FEW, MANY = 32, 64  # terms of a block where blocks are summed up in blocks again; blocks that are multiplied at a time


def add_up(parts: Iterable[Floats]) -> Floats:
    """The sum of arrays of one shape, added with compensation (Knuth's two-sum)."""
    left = iter(parts)
    total = np.array(next(left), dtype=np.float64)
    carry = np.zeros_like(total)
    with np.errstate(over="ignore", invalid="ignore"):
        for part in left:
            grown = total + part
            added = grown - total
            lost = (total - (grown - added)) + (part - added)
            carry += np.where(np.isfinite(lost), lost, 0.0)  # a sum that has overflowed stays infinite
            total = grown
        return total + carry


def segment_sums(terms: Floats, starts: NDArray[np.integer]) -> Floats:
    """The sum of terms[starts[j]:starts[j+1]] for each j, in blocks, and those in blocks again."""
    terms = terms[: starts[-1]]
    while np.max(lengths := np.diff(starts), initial=0) > 1:
        blocks = -(-lengths // FEW)
        ends = np.append(0, np.cumsum(blocks))
        within = np.arange(ends[-1]) - np.repeat(ends[:-1], blocks)
        terms = np.add.reduceat(terms, np.repeat(starts[:-1], blocks) + FEW * within)
        starts = ends
    sums = np.zeros(len(lengths))
    sums[lengths == 1] = terms
    return sums


def gram_of(rows: Floats) -> Floats:
    """sum_i x_i x_i' of dense rows."""
    n, d = rows.shape
    half = BLOCK // 2
    rows = np.ascontiguousarray(rows)
    edge = n - n % half
    blocks = rows[:edge].reshape(-1, half, d)
    parts = (blocks[first : first + MANY] for first in range(0, len(blocks), MANY))
    whole = ((part.transpose(0, 2, 1) @ part).sum(axis=0) for part in parts)
    return add_up([rows[edge:].T @ rows[edge:], *whole])
