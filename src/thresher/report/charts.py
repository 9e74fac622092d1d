"""Charts of results, one set of axes each: small enough for a phone, every method in its own colour everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from thresher.experiments.experiment import Chart, Series

__all__ = ["draw"]

BASELINE, PRINTED = "#1d2433", "#8a8f99"
COLOURS = ("#c0392b", "#2c6fbb", "#2e8b57", "#e08e0b", "#7d4fb0", "#0f9aa8", "#b0568a", "#6b7a1e", "#8c5a2b", "#4b5563")
NAMED = {
    "pursuit": 0, "dp-ight": 1, "peeling": 2, "frank-wolfe": 3, "two-stage": 4, "dpsl-kt": 5, "output-perturbation": 6,
    "noisy-frank-wolfe": 7, "auto": 0,
}  # fmt: skip
MARKERS = "osD^vPX*h<"


def draw(chart: Chart) -> Any:
    """A matplotlib figure. Series called "... (printed)" are dotted grey, those called "... (not private)" dashed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 3.9), layout="constrained")
    axes = figure.subplots()
    for at, (name, series) in enumerate(chart.series.items()):
        _line(axes, name, series, NAMED.get(name, at))
    axes.set_title(chart.title, fontsize=10)
    axes.set_xlabel(chart.x)
    axes.set_ylabel(chart.y)
    axes.set_xscale("log" if chart.log_x else "linear")
    axes.set_yscale("log" if chart.log_y else "linear")
    if not chart.log_y:
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    if chart.top is not None:
        axes.set_ylim(top=chart.top)
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return figure


def _line(axes: Any, name: str, series: Series, place: int) -> None:
    errors = None if series.errors is None else np.nan_to_num(np.asarray(series.errors, dtype=float))
    style: dict[str, Any] = {
        "color": COLOURS[place % len(COLOURS)], "marker": MARKERS[place % len(MARKERS)], "markersize": 4.5,
        "capsize": 2, "linewidth": 1.4,
    }  # fmt: skip
    if name.endswith("(printed)"):
        style |= {"color": PRINTED, "linestyle": ":"}
    if name.endswith("(not private)"):
        style |= {"color": BASELINE, "linestyle": "--", "marker": ""}
    axes.errorbar(series.x, series.y, yerr=errors, label=name, **style)
