"""The plots of Figures 6.1 to 6.9: optimality gap and test error against iterations, one panel for each m."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

STYLES = {1e-3: "-", 1e-6: "--"}
SHOWN = {"gap": (1e-4, 2.0), "loss": (-0.02, 0.5)}


def plot(data: str, points: Sequence[Any], error: str, folder: Path) -> None:
    """Two rows of panels as PNG and SVG; methods that ask once are horizontal lines."""
    from matplotlib.figure import Figure

    parties = list(dict.fromkeys(point.parties for point in points))
    methods = list(dict.fromkeys(point.method for point in points))
    figure = Figure(figsize=(4 * len(parties), 6.5), layout="constrained")
    panels = figure.subplots(2, len(parties), squeeze=False, sharex=True, sharey="row")
    for column, m in enumerate(parties):
        panels[0, column].set_title(f"m = {m}" if m else "one record for each party")
        panels[1, column].set_xlabel("iterations")
        for line, what in enumerate(SHOWN):
            axes = panels[line, column]
            for at, method in enumerate(methods):
                for delta, style in STYLES.items():
                    own = [p for p in points if (p.method, p.parties, p.delta) == (method, m, delta)]
                    _draw(axes, own, what, f"C{at}", style)
            axes.set_ylim(*SHOWN[what])
            axes.grid(alpha=0.3)
        panels[0, column].set_yscale("log")
        panels[1, column].set_yscale("symlog", linthresh=0.01)
    panels[0, 0].set_ylabel("optimality gap")
    panels[1, 0].set_ylabel(f"{error},\nless that of the minimiser")
    lines = [panels[0, 0].plot([], [], f"C{at}", label=method)[0] for at, method in enumerate(methods)]
    lines += [panels[0, 0].plot([], [], f"k{style}", label=f"delta {delta:g}")[0] for delta, style in STYLES.items()]
    figure.legend(handles=lines, loc="outside lower center", ncols=5, fontsize="small")
    figure.suptitle(f"{data}, epsilon .5; lines that are missing lie above the panel")
    for kind in ("png", "svg"):
        figure.savefig(folder / f"federated_{data}.{kind}", dpi=120)


def _draw(axes: Any, points: Sequence[Any], what: str, colour: str, style: str) -> None:
    """The mean over seeds at each iteration."""
    iterations = sorted({point.iteration for point in points})
    means = {t: np.mean([getattr(p, what) for p in points if p.iteration == t]) for t in iterations}
    if iterations == [-1]:
        axes.axhline(means[-1], color=colour, linestyle=style, linewidth=1)
    else:
        watched = [t for t in iterations if t > 0]
        axes.plot(watched, [means[t] for t in watched], color=colour, linestyle=style, linewidth=1.5)
