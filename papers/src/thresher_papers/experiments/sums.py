"""What one noisy sum of vectors costs a back-end: seconds and megabytes, on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.privacy.laws.dithered_binomial import DitheredBinomial

__all__ = ["LAW", "Backend", "Sum", "timed_sums"]

LAW = DitheredBinomial()


class Backend(NamedTuple):
    """Who computes, how many parties give vectors, how a session is opened, and the noise that it adds."""

    who: str
    parties: int
    opened: Callable[[], Any]
    law: Any = LAW


class Sum(NamedTuple):
    """One sum; ``megabytes`` are those that all parties or servers sent, None where nobody counts them."""

    seconds: float
    megabytes: float | None


def timed_sums(backend: Backend, length: int, times: int) -> list[Sum]:
    """So many sums of vectors of this length, in a session that has made two before: SPU compiles a program for each
    length."""
    with closing(backend.opened()) as session:
        parts = _parts(backend.parties, length, 0)
        for some in ([part[:1] for part in parts], parts):
            session.noisy_sum(some, backend.law)
        return [_timed(session, _parts(backend.parties, length, seed), backend.law) for seed in range(times)]


def _timed(session: Any, parts: list[NDArray[np.int64]], law: Any) -> Sum:
    before, start = _sent(session), time.perf_counter()
    session.noisy_sum(parts, law)
    seconds, after = time.perf_counter() - start, _sent(session)
    return Sum(seconds, None if before is None or after is None else (after - before) / 1e6)


def _sent(session: Any) -> int | None:
    return getattr(session, "bytes_sent", None)


def _parts(parties: int, length: int, seed: int) -> list[NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(-(2**40), 2**40, length) for _ in range(parties)]
