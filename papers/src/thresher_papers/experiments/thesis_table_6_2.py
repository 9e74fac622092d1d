"""Table 6.2 of the thesis: what one noisy sum costs, as printed for its circuits and as measured for our back-ends."""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from thresher.federated.aggregation import ReferenceAggregation
from thresher.federated.mpyc import MPyCAggregation
from thresher.federated.spu import VARIABLE, SPUAggregation
from thresher.privacy.laws.dithered_binomial import DitheredBinomial
from thresher.vaults.randomness import NoiseSource
from thresher_papers.experiments.experiment import Cell, Experiment, Grid, Note, Part, Row, Verdict
from thresher_papers.experiments.rows import values_of
from thresher_papers.experiments.sums import LAW, Backend, timed_sums

__all__ = ["EXPERIMENT", "MPYC", "PRINTED", "SPU"]

PRINTED: Mapping[str, Mapping[str, float]] = {
    "Adult": {"features": 104, "gates": 40_733_500, "gc": 776.93, "ot": 35.17, "yao": 22.28, "dualex": 56.46},
    "KDDCup99": {"features": 122, "gates": 47_781_200, "gc": 911.35, "ot": 41.19, "yao": 26.45, "dualex": 65.21},
    "KDDCup98": {"features": 95, "gates": 37_209_600, "gc": 709.72, "ot": 32.28, "yao": 20.31, "dualex": 50.67},
}
"""Table 6.2: megabytes of garbled circuits and of oblivious transfer, seconds by two protocols."""

FAINT = DitheredBinomial(coins=2, dither=0)  # two coins a coordinate: the sum with next to no noise
TIMEOUT = 600.0


def _reference() -> ReferenceAggregation:
    return ReferenceAggregation(NoiseSource(0))


FLOOR, MPYC, ALONE = "reference, no cryptography", "MPyC", "MPyC, 2 coins for noise"
BACKENDS = {
    FLOOR: Backend("this process", 3, _reference),
    MPYC: Backend("3 parties", 3, partial(MPyCAggregation, 3, timeout=TIMEOUT)),
    ALONE: Backend("3 parties", 3, partial(MPyCAggregation, 3, timeout=TIMEOUT), FAINT),
}
SPU = {
    "SPU, CHEETAH": Backend("2 servers", 3, partial(SPUAggregation, 3, protocol="cheetah", timeout=TIMEOUT)),
    "SPU, ABY3": Backend("3 servers", 3, partial(SPUAggregation, 3, protocol="aby3", timeout=TIMEOUT)),
}
NOISE_SHARE = 0.1  # printed: less than 2 s of 22 are not noise


def cells(quick: bool) -> list[Cell]:
    """One cell: what is timed must not run beside something else of this experiment."""
    names = [*BACKENDS, *(SPU if VARIABLE in os.environ else ())]
    return [{"backends": names, "times": 5 if quick else 25}]


def run(backends: Sequence[str], times: int) -> list[Row]:
    rows: list[Row] = []
    for name in backends:
        backend = (BACKENDS | SPU)[name]
        for data, printed in PRINTED.items():
            length = int(printed["features"])
            for seed, found in enumerate(timed_sums(backend, length, times)):
                rows.append({
                    "back-end": name, "who": backend.who, "data": data, "features": length, "coins": backend.law.bits,
                    "seed": seed, "seconds": found.seconds, "megabytes": found.megabytes, "cores": os.cpu_count(),
                })  # fmt: skip
    return rows


# -- what the rows show ---------------------------------------------------------------------------------------------


def show(rows: Sequence[Row]) -> list[Part]:
    return [_cheaper(rows), _linear(rows), _noise(rows), _grid(rows), _note(rows)]


def _median(rows: Sequence[Row], name: str, data: str, what: str) -> float:
    found: list[float] = [row[what] for row in rows if (row["back-end"], row["data"]) == (name, data)]
    return statistics.median(found)


def _traffic(data: str) -> float:
    """Megabytes, as printed."""
    return PRINTED[data]["gc"] + PRINTED[data]["ot"]


def _cheaper(rows: Sequence[Row]) -> Verdict:
    told, ratios = [], []
    for data, printed in PRINTED.items():
        seconds, megabytes = (_median(rows, MPYC, data, what) for what in ("seconds", "megabytes"))
        told.append(
            f"{printed['features']:g} features {seconds:.2g} s and {megabytes:.3g} MB "
            f"(printed {printed['yao']:g} s, {_traffic(data):.0f} MB)"
        )
        ratios += [seconds / printed["yao"], megabytes / _traffic(data)]
    text = (
        f"A sum with joint coins takes less time and traffic than the printed circuit: {'; '.join(told)}. This depends "
        "on the machine, and is no reproduction: other noise, other protocol, other trust (a majority of three "
        "parties, not one of two servers), other hardware."
    )
    return Verdict(text, max(ratios) < 1, ("E-24",))


def _linear(rows: Sequence[Row]) -> Verdict:
    """Of counts, which do not depend on the machine; messages have heads, so they are not quite in proportion."""
    gates = [printed["gates"] / printed["features"] for printed in PRINTED.values()]
    sent = [1e3 * _median(rows, MPYC, data, "megabytes") / printed["features"] for data, printed in PRINTED.items()]
    text = (
        f"The cost grows in proportion to the features: {min(sent):.4g} to {max(sent):.4g} kB for each (printed: "
        f"{min(gates):,.0f} to {max(gates):,.0f} gates)."
    )
    return Verdict(text, max(sent) <= 1.1 * min(sent), ("E-24",))


def _noise(rows: Sequence[Row]) -> Verdict:
    shares = {
        what: [_median(rows, ALONE, data, what) / _median(rows, MPYC, data, what) for data in PRINTED]
        for what in ("megabytes", "seconds")
    }
    text = (
        f"Nearly all of the cost is noise: with {FAINT.bits} coins a coordinate in place of {LAW.bits} a sum sends at "
        f"most {max(shares['megabytes']):.1%} of the bytes (limit: {NOISE_SHARE:.0%}) and takes at most "
        f"{max(shares['seconds']):.0%} of the time. Printed: less than 2 s of 20 or more are not noise."
    )
    return Verdict(text, max(shares["megabytes"]) <= NOISE_SHARE, ("E-24",))


def _grid(rows: Sequence[Row]) -> Grid:
    lines: list[list[Any]] = [
        ["Yao's circuits, as printed", "2 servers", "", *(f"{p['yao']:g} s, {_traffic(d):.0f} MB" for d, p in
                                                         PRINTED.items())],
        ["DualEx, as printed", "2 servers", "", *(f"{p['dualex']:g} s" for p in PRINTED.values())],
    ]  # fmt: skip
    for name in values_of(rows, "back-end"):
        first = next(row for row in rows if row["back-end"] == name)
        lines.append([name, first["who"], first["coins"], *(_cell(rows, name, data) for data in PRINTED)])
    columns = ("back-end", "who computes", "coins per coordinate")
    sets = [f"{data}, {printed['features']:g} features" for data, printed in PRINTED.items()]
    return Grid("One noisy sum: median seconds, and megabytes sent by all", (*columns, *sets), lines)


def _cell(rows: Sequence[Row], name: str, data: str) -> str:
    mine = [row for row in rows if (row["back-end"], row["data"]) == (name, data)]
    seconds = f"{_median(rows, name, data, 'seconds'):.2g} s"
    counted = all(row["megabytes"] is not None for row in mine)
    return f"{seconds}, {_median(rows, name, data, 'megabytes'):.3g} MB" if counted else seconds


def _note(rows: Sequence[Row]) -> Note:
    spu = any(row["back-end"] in SPU for row in rows)
    missing = "" if spu else f" SPU was not run: it needs an environment of its own, named by {VARIABLE} (./dev spu)."
    return Note(
        f"Seconds are of this machine of {rows[0]['cores']} cores, medians of {len(values_of(rows, 'seed'))} sums, "
        f"with whatever else it was doing; they cannot be compared with those of other hardware.{missing}"
    )


EXPERIMENT = Experiment(
    "x25",
    "What a secure noisy sum costs",
    "thesis, Table 6.2",
    "About 391,600 gates for each feature; the sum itself takes less than 2 s, the rest is the noise.",
    "One sum of as many numbers as each set has features in the thesis. The printed circuit draws noise by logarithms "
    "and rejection; as released, it reveals exact averages modulo the scale, and rejected draws (erratum E-24), so its "
    "cost is not that of private noise. Ours is linear in fair coins (docs/federated.md). Parties and servers are "
    "processes of this machine; a session is open, and two sums have been made, before the first that is timed. The "
    "same cell does not give the same seconds twice. The quick run times 5 sums of each, the full one 25.",
    cells,
    run,
    show,
    extra="mpc",
)
