"""What one noisy sum of vectors costs, by back-end: seconds and megabytes, as a Markdown table.

Run: ./dev federated sums. Parties and servers are processes of this machine, but for masks, whose parties take turns
in one; a session is open and one sum has been made before the first that is timed. SPU is measured if it is installed
(./dev spu).
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.dithered import DitheredBinomial
from thresher.federated.mpyc import MPyCAggregation
from thresher.federated.skellam_aggregation import SkellamAggregation
from thresher.federated.spu import VARIABLE, SPUAggregation
from thresher.skellam import Skellam

LAW = DitheredBinomial()
LENGTHS = {104: 5, 10_000: 1}  # coordinates, and sums of which the median is taken


@dataclass(frozen=True)
class Measurement:
    """One row of the table."""

    backend: str
    who: str
    length: int
    bits: int | None
    seconds: float
    megabytes: float | None

    def row(self) -> str:
        bits = "" if self.bits is None else f"{self.bits}"
        sent = "" if self.megabytes is None else f"{self.megabytes:.2f}"
        return f"| {' | '.join([self.backend, self.who, f'{self.length:,}', bits, f'{self.seconds:.2f}', sent])} |"


THESIS = Measurement("Yao's circuits, as printed in the thesis", "2 servers", 104, None, 22.3, 777)


def mpyc(parties: int, length: int) -> Measurement:
    """By the parties themselves, an honest majority of them."""
    with MPyCAggregation(parties, timeout=600.0) as aggregation:
        return _measured("MPyC", f"{parties} parties", aggregation, parties, length)


def spu(protocol: Any, servers: int, length: int) -> Measurement:
    """By servers, to whom three parties share their vectors."""
    with closing(SPUAggregation(3, protocol=protocol, timeout=600.0)) as aggregation:
        return _measured(f"SPU, {protocol.upper()}", f"{servers} servers", aggregation, 3, length)


def masks(parties: int, length: int) -> Measurement:
    """By a server that adds up masked vectors, each with a share of Skellam noise; seconds of all parties together."""
    law = Skellam(LAW.variance)
    with closing(SkellamAggregation(parties, colluding=(parties - 1) // 2)) as aggregation:
        parts = _parts(parties, length)
        seconds = _median_seconds(lambda: aggregation.noisy_sum(parts, law), LENGTHS[length])
    return Measurement("masks, Skellam noise", f"{parties} parties", length, None, seconds, None)


def _measured(backend: str, who: str, aggregation: Any, parties: int, length: int) -> Measurement:
    parts, times = _parts(parties, length), LENGTHS[length]
    aggregation.noisy_sum([part[:1] for part in parts], LAW)
    if backend.startswith("SPU"):
        aggregation.noisy_sum(parts, LAW)  # it compiles a program for each length
    before = aggregation.bytes_sent
    seconds = _median_seconds(lambda: aggregation.noisy_sum(parts, LAW), times)
    return Measurement(backend, who, length, LAW.bits, seconds, (aggregation.bytes_sent - before) / times / 1e6)


def _parts(parties: int, length: int) -> list[NDArray[np.int64]]:
    rng = np.random.default_rng(0)
    return [rng.integers(-(2**40), 2**40, length) for _ in range(parties)]


def _median_seconds(noisy_sum: Callable[[], NDArray[np.int64]], times: int) -> float:
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        noisy_sum()
        spent.append(time.perf_counter() - start)
    return statistics.median(spent)


MEASUREMENTS: list[Callable[[], Measurement]] = [
    lambda: mpyc(3, 104),
    lambda: mpyc(3, 10_000),
    lambda: mpyc(5, 104),
    lambda: masks(10, 104),
    lambda: masks(10, 10_000),
]
SPU: list[Callable[[], Measurement]] = [
    lambda: spu("cheetah", 2, 104),
    lambda: spu("cheetah", 2, 10_000),
    lambda: spu("aby3", 3, 104),
    lambda: spu("aby3", 3, 10_000),
]


def main() -> None:
    print("| back-end | who computes | d | bits per coordinate | seconds | MB sent in all |")
    print("|---|---|---|---|---|---|")
    print(THESIS.row())
    for measure in MEASUREMENTS + (SPU if VARIABLE in os.environ else []):
        print(measure().row(), flush=True)


if __name__ == "__main__":
    main()
