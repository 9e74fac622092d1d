"""What one noisy sum of vectors costs, by back-end: seconds and megabytes, as a Markdown table.

Run: ./dev federated sums. Parties and servers are processes of this machine, but for masks, whose parties take turns
in one; a session is open and two sums have been made before the first that is timed. SPU is measured if it is installed
(./dev spu). Table 6.2 of the thesis, for its own numbers of features, is `thresher reproduce x25`.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterable
from functools import partial

from accuracy import header, row
from thresher.federated.mpyc import MPyCAggregation
from thresher.federated.skellam_aggregation import SkellamAggregation
from thresher.federated.spu import VARIABLE
from thresher.privacy.laws.skellam import Skellam
from thresher_papers.experiments.sums import LAW, Backend, timed_sums
from thresher_papers.experiments.thesis_table_6_2 import BACKENDS, MPYC, SPU

FEW, MANY = 104, 10_000  # coordinates
TIMES = {FEW: 5, MANY: 1}  # sums of which the median is taken

FIVE = Backend("5 parties", 5, partial(MPyCAggregation, 5, timeout=600.0))
MASKS = Backend("10 parties", 10, partial(SkellamAggregation, 10, colluding=4), Skellam(LAW.variance))

Asked = tuple[str, Backend, int]  # a back-end's name, the back-end, coordinates


def main() -> None:
    asked = [(MPYC, BACKENDS[MPYC], FEW), (MPYC, BACKENDS[MPYC], MANY), (MPYC, FIVE, FEW)]
    asked += [("masks, Skellam noise", MASKS, length) for length in TIMES]
    if VARIABLE in os.environ:
        asked += [(name, backend, length) for name, backend in SPU.items() for length in TIMES]
    report(asked)


def report(asked: Iterable[Asked]) -> None:
    header("back-end", "who computes", "d", "bits per coordinate", "seconds", "MB sent in all")
    for name, backend, length in asked:
        found = timed_sums(backend, length, TIMES.get(length, 1))
        seconds, sent = statistics.median(each.seconds for each in found), found[0].megabytes
        bits = "" if isinstance(backend.law, Skellam) else backend.law.bits
        row(name, backend.who, f"{length:,}", bits, f"{seconds:.2f}", "" if sent is None else f"{sent:.2f}")


def smallest() -> None:
    report([("masks, Skellam noise", MASKS, 4)])


if __name__ == "__main__":
    main()
