"""What one noisy sum of vectors costs, by back-end: seconds and megabytes, as a Markdown table.

Run: OMP_NUM_THREADS=1 python benchmarks/aggregation.py. All parties are processes of this machine; a session is open
and one sum has been made before the first that is timed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher.dithered import DitheredBinomial
from thresher.federated.mpyc import MPyCAggregation

LAW = DitheredBinomial()
LENGTHS = {104: 5, 10_000: 1}  # coordinates, and sums of which the median is taken


@dataclass(frozen=True)
class Measurement:
    """One row of the table."""

    backend: str
    parties: int
    length: int
    bits: int | None
    seconds: float
    megabytes: float

    def row(self) -> str:
        bits = "" if self.bits is None else f"{self.bits}"
        cells = self.backend, self.parties, f"{self.length:,}", bits, f"{self.seconds:.2f}", f"{self.megabytes:.1f}"
        return f"| {' | '.join(map(str, cells))} |"


THESIS = Measurement("Yao's circuits, as printed in the thesis", 2, 104, None, 22.3, 777)


def mpyc(parties: int, length: int) -> Measurement:
    """By the parties themselves, an honest majority of them."""
    rng = np.random.default_rng(0)
    parts = [rng.integers(-(2**40), 2**40, length) for _ in range(parties)]
    with MPyCAggregation(parties, timeout=600.0) as aggregation:
        aggregation.noisy_sum([part[:1] for part in parts], LAW)
        before = aggregation.bytes_sent
        seconds = _median_seconds(lambda: aggregation.noisy_sum(parts, LAW), LENGTHS[length])
        megabytes = (aggregation.bytes_sent - before) / LENGTHS[length] / 1e6
    return Measurement("MPyC", parties, length, LAW.bits, seconds, megabytes)


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
]


def main() -> None:
    print("| back-end | parties | d | bits per coordinate | seconds | MB sent in all |")
    print("|---|---|---|---|---|---|")
    print(THESIS.row())
    for measure in MEASUREMENTS:
        print(measure().row(), flush=True)


if __name__ == "__main__":
    main()
