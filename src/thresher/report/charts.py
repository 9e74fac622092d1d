"""Charts of results, one set of axes each: small enough for a phone, every method in its own colour everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from thresher.privacy.arrays import Integers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = ["Chart", "Series", "bars", "dots", "draw"]

BASELINE, PRINTED = "#1d2433", "#8a8f99"
COLOURS = ("#c0392b", "#2c6fbb", "#2e8b57", "#e08e0b", "#7d4fb0", "#0f9aa8", "#b0568a", "#6b7a1e", "#8c5a2b", "#4b5563")
NAMED = {
    "pursuit": 0, "dp-ight": 1, "peeling": 2, "frank-wolfe": 3, "two-stage": 4, "dpsl-kt": 5, "output-perturbation": 6,
    "noisy-frank-wolfe": 7, "auto": 0,
}  # fmt: skip
MARKERS = "osD^vPX*h<"
MOST_MARKED = 15  # points of a series; more are a line
WIDTH = 4.6  # inches: on a phone, ten points are then ten pixels
LONGEST = 30  # characters of a name beside an axis


@dataclass(frozen=True)
class Series:
    """One line of a chart: values with their standard errors (None where there is nothing to be uncertain about).

    Where bars are not even, ``errors`` is a pair: how far they reach below, and how far above.
    """

    x: Sequence[float]
    y: Sequence[float]
    errors: Sequence[float] | tuple[Sequence[float], Sequence[float]] | None = None


@dataclass(frozen=True)
class Chart:
    """One set of axes. Names of series are those of methods, each of which has a colour."""

    title: str
    x: str
    y: str
    series: Mapping[str, Series]
    log_x: bool = False
    log_y: bool = False
    top: float | None = None  # nothing above this is shown


def draw(chart: Chart) -> Figure:
    """A matplotlib figure. Series called "... (printed)" are dotted, "... (not private)" and "... (limit)" dashed."""
    figure, axes = _canvas(3.1 + 0.2 * ((len(chart.series) + 1) // 2))  # with the legend's lines
    for at, (name, series) in enumerate(chart.series.items()):
        _line(axes, name, series, NAMED.get(name, at))
    axes.set_title(chart.title, fontsize=10, parse_math=False)
    axes.set_xlabel(chart.x)
    axes.set_ylabel(chart.y)
    if chart.log_x:
        axes.set_xscale("log")
        _plain_ticks(axes.xaxis)
    if chart.log_y:
        axes.set_yscale("log")
        _plain_ticks(axes.yaxis)
    if not chart.log_y and all(np.nanmin(series.y) >= 0 for series in chart.series.values() if len(series.y)):
        axes.set_ylim(bottom=0.0)
    if chart.top is not None:
        axes.set_ylim(top=chart.top)
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=2, fontsize=9, frameon=False)
    return figure


def dots(
    names: Sequence[str], values: Sequence[float], intervals: Sequence[Sequence[float]] | None, x: str, title: str = ""
) -> Figure:
    """A value for each name, the first on top, with its interval if there are any."""
    figure, axes = _canvas(0.9 + 0.24 * len(names))
    at = np.arange(len(names))[::-1]
    if intervals is not None:
        axes.hlines(at, *np.transpose(intervals), color=COLOURS[1], linewidth=2.5, alpha=0.5)
    axes.plot(values, at, "o", color=COLOURS[1], markersize=4)
    axes.axvline(0, color=BASELINE, linewidth=0.8)
    _name(axes, at, names)
    axes.set_xlabel(x)
    axes.set_title(title, fontsize=10, parse_math=False)
    return figure


def bars(names: Sequence[str], shares: Sequence[float], x: str) -> Figure:
    """Parts of a whole, each with its percentage."""
    figure, axes = _canvas(0.8 + 0.36 * len(names))
    at = np.arange(len(names))[::-1]
    axes.barh(at, [100 * share for share in shares], color=COLOURS[1], height=0.6)
    for y, share in zip(at, shares, strict=True):
        axes.annotate(f"{100 * share:.3g} %", (100 * share, y), (4, 0), textcoords="offset points", va="center")
    _name(axes, at, names)
    axes.set_xlim(0, 118 * max(shares))  # room for the percentage
    axes.set_xlabel(x)
    return figure


def _canvas(height: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _plain_ticks(axis: Axis) -> None:
    """1, 2, 5, 10 instead of powers, on a logarithmic axis that spans few of them."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    if high < 2000 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(FormatStrFormatter("%g"))
        axis.set_minor_formatter(NullFormatter())


def _name(axes: Axes, at: Integers, names: Sequence[str]) -> None:
    cut = [name if len(name) <= LONGEST else f"{name[: LONGEST - 3]}..." for name in names]
    axes.set_yticks(at, cut, parse_math=False)
    axes.set_ylim(-0.7, len(names) - 0.3)
    axes.grid(axis="x", alpha=0.3)


class _LineStyle(TypedDict, total=False):
    color: str
    marker: str
    markersize: float
    capsize: float
    linewidth: float
    linestyle: str


def _line(axes: Axes, name: str, series: Series, place: int) -> None:
    errors = None if series.errors is None else np.nan_to_num(np.asarray(series.errors, dtype=float))
    marker = MARKERS[place % len(MARKERS)] if len(series.x) <= MOST_MARKED else ""
    style: _LineStyle = {
        "color": COLOURS[place % len(COLOURS)], "marker": marker, "markersize": 4.5,
        "capsize": 2, "linewidth": 1.4,
    }  # fmt: skip
    if name.endswith("(printed)"):
        style |= {"color": PRINTED, "linestyle": ":"}
    if name.endswith(("(not private)", "(limit)")):
        style |= {"color": BASELINE, "linestyle": "--", "marker": ""}
    axes.errorbar(series.x, series.y, yerr=errors, label=name, **style)
