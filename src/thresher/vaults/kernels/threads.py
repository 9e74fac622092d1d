"""A second thread that shares blocks of work in compiled loops, which let go of Python's lock."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

__all__ = ["blocks_of", "share"]

THREADS, BLOCKS = 2, 8
Work = Callable[[int, int], None]

_pool: tuple[int, ThreadPoolExecutor] | None = None  # and the process it belongs to: a fork leaves its threads behind


def blocks_of(edges: NDArray[np.integer] | list[int]) -> list[tuple[int, int]]:
    """Neighbouring edges, in pairs."""
    return list(itertools.pairwise(int(edge) for edge in edges))


def share(work: Work, blocks: list[tuple[int, int]]) -> None:
    """Do every block once. Whoever is free takes the next, so ``work`` must not depend on who does it, or when."""
    left = iter(blocks)
    if len(blocks) < 2 or _threads() < 2:
        return _do(work, left)
    other = _workers().submit(_do, work, left)
    _do(work, left)
    if not other.cancel():  # it may not even have begun
        other.result()
    return None


def _do(work: Work, left: Iterator[tuple[int, int]]) -> None:
    for first, last in left:
        work(first, last)


def _workers() -> ThreadPoolExecutor:
    global _pool
    if _pool is None or _pool[0] != os.getpid():
        _pool = os.getpid(), ThreadPoolExecutor(THREADS - 1, thread_name_prefix="thresher")
    return _pool[1]


def _threads() -> int:
    """The usual limit if it is set (joblib sets it in its workers), else two."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(int(limit), THREADS) if limit.isdecimal() and limit != "0" else THREADS
