"""Predicted errors by epsilon or by rows, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from thresher.planning.forecast import NOT_PRIVATE, Forecast, Prediction
from thresher.planning.reach import Over
from thresher.report.charts import PRINTED, Chart, Series, draw
from thresher.report.page import check_writable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ENDINGS", "check_plot", "draw_forecast", "save_figure"]

ENDINGS = (".svg", ".png", ".pdf")
APART = 1.025  # by this factor the points of two algorithms, so that their ranges can be told apart
TOP = 1.5  # errors above say no more than that the zero model is better


def check_plot(path: Path) -> None:
    """Refuse a picture that could not be made in the end, before anything is simulated."""
    if path.suffix not in ENDINGS:
        raise ValueError(f"--plot={str(path)!r} must end in {', '.join(ENDINGS)}")
    check_writable(path, "--plot")


def draw_forecast(forecast: Forecast, over: Over, n: int, epsilon: float) -> Figure:
    """A matplotlib figure: a line for each algorithm with the range of one run, by epsilon or by rows."""
    private = [each for each in forecast.predictions if each.algorithm != NOT_PRIVATE]
    xs = sorted({each.epsilon if over == "epsilon" else float(each.n) for each in private})
    shapes = [(n, x) if over == "epsilon" else (int(x), epsilon) for x in xs]
    series = {}
    for k, name in enumerate(forecast.private):
        apart = APART ** (k - (len(forecast.private) - 1) / 2)
        series[name] = _series([apart * x for x in xs], [forecast.one(name, *shape) for shape in shapes])
    exact = [forecast.one(NOT_PRIVATE, *shape).error.mean for shape in shapes]
    series[f"{NOT_PRIVATE} (not private)"] = Series(xs, exact)
    fixed = f"{n} rows" if over == "epsilon" else f"epsilon {epsilon:g}"
    title = f"{fixed}, {forecast.d} columns, {forecast.sparsity} true features, signal {forecast.signal:g}"
    y = f"error: mean, {forecast.chance_of_one_run:.0%} of runs"
    figure = draw(Chart(title, over, y, series, log_x=True, top=TOP))
    (axes,) = figure.axes
    axes.set_xticks(xs, [f"{x:g}" for x in xs])
    axes.set_xticks([], minor=True)
    axes.axhline(1.0, color=PRINTED, linestyle=":", linewidth=1.2, zorder=1)
    axes.annotate(
        "the zero model", (0.99, 1.0), (0, 2), xycoords=("axes fraction", "data"), textcoords="offset points",
        ha="right", fontsize=8, color=PRINTED,
    )  # fmt: skip
    return figure


def save_figure(figure: Figure, path: Path) -> None:
    """The same picture is the same file."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "thresher"}):
        figure.savefig(path, dpi=200, metadata={"Date": None} if path.suffix == ".svg" else None)


def _series(xs: Sequence[float], found: Sequence[Prediction]) -> Series:
    means = [each.error.mean for each in found]
    below = [each.error.mean - each.error.low for each in found]
    above = [each.error.high - each.error.mean for each in found]
    return Series(xs, means, (below, above))
