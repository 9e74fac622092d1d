"""A measured ratio, a table of them, and the same as a plot."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from machine import bandwidth, describe

FURTHEST = 5.5  # of a bar


@dataclass(frozen=True)
class Ratio:
    """``must`` and ``aim`` are least values if more is better, else largest; None if nothing is asked for."""

    what: str
    value: float
    must: float | None = None
    aim: float | None = None
    more_is_better: bool = True
    detail: str = ""

    @property
    def verdict(self) -> str:
        if self.must is None:
            return "-"
        return "aim" if self._reaches(self.aim) else "must" if self._reaches(self.must) else "MISSED"

    def _reaches(self, limit: float | None) -> bool:
        return limit is not None and (self.value >= limit if self.more_is_better else self.value <= limit)

    @property
    def margin(self) -> float:
        """How many times better than it must be."""
        must = self.must or self.value
        return self.value / must if self.more_is_better else must / self.value

    def row(self) -> str:
        sign = ">=" if self.more_is_better else "<="
        must, aim = (f"{sign} {limit:g}" if limit is not None else "" for limit in (self.must, self.aim))
        return f"| {self.what} | {self.value:.3g} | {must} | {aim} | {self.verdict} | {self.detail} |"


def faster(what: str, ours: float, theirs: float, name: str, must: float | None, aim: float | None) -> Ratio:
    """How many times faster ours is than something else."""
    return Ratio(f"{what}: {name} / ours", theirs / ours, must, aim, True, _times(ours, theirs, name))


def part_of(what: str, ours: float, theirs: float, name: str, must: float | None, aim: float | None) -> Ratio:
    """What part of the time of something else ours takes."""
    return Ratio(f"{what}: ours / {name}", ours / theirs, must, aim, False, _times(ours, theirs, name))


def _times(ours: float, theirs: float, name: str) -> str:
    return f"ours {1e3 * ours:.3g} ms, {name} {1e3 * theirs:.3g} ms"


def report(ratios: list[Ratio], folder: Path) -> None:
    """speed.md and speed.svg."""
    lines = [f"Measured on: {describe()}; two threads read {bandwidth() / 1e9:.0f} GB/s.", ""]
    lines += ["| what | measured | must | aim | reached | times |", "|---|---|---|---|---|---|"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "speed.md").write_text("\n".join([*lines, *(ratio.row() for ratio in ratios)]) + "\n")
    _draw([ratio for ratio in ratios if ratio.must is not None][::-1], folder / "speed.svg")
    print(f"written: {folder / 'speed.md'}, {folder / 'speed.svg'}")


def _draw(ratios: list[Ratio], path: Path) -> None:
    """How many times better than it must be each ratio is, on a logarithmic axis that is cut off; diamonds are aims."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("no plot: pip install 'thresher[report]'", file=sys.stderr)
        return
    figure = Figure(figsize=(10, 0.36 * len(ratios) + 1.2), layout="constrained")
    axes = figure.subplots()
    for at, ratio in enumerate(ratios):
        shown = min(ratio.margin, FURTHEST)
        axes.barh(at, shown - 1, left=1, color="tab:blue" if ratio.margin >= 1 else "tab:red")
        axes.text(0.52, at, f"{ratio.value:.3g}", va="center")
        if ratio.must is not None and ratio.aim is not None:
            axes.plot(max(ratio.aim / ratio.must, ratio.must / ratio.aim), at, "D", color="black", markersize=4)
    axes.set_yticks(range(len(ratios)), [ratio.what for ratio in ratios], fontsize=8)
    axes.set_xscale("log")
    ticks = [0.5, 1, 2, 3, 5]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlim(0.5, 1.3 * FURTHEST)
    axes.axvline(1, color="black")
    axes.set_xlabel("times better than it must be (left: the measured ratio)")
    figure.savefig(path, metadata={"Date": None})
