"""The picture of the yard: a line for each table, what is reached on it from left to right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from yard.competitors import COMPETITORS
from yard.measuring import Measured
from yard.methods import DEFAULT, OURS
from yard.shares import Reached, best_of, reached_in
from yard.tables import GROUPS, HOPELESS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["picture"]

LOWEST, HIGHEST = -0.55, 1.15  # what lies outside is drawn at the edge
WIDTH, LINE = 6.4, 0.155  # inches: of the picture, and between tables
BLUES = ("#9ec4e8", "#4f8fcb", "#17457a")  # of the default, darker with epsilon
RIVALS = {"best other of ours": (OURS, "D", "#c0392b"), "best of the literature": (tuple(COMPETITORS), "x", "#8a8f99")}


def picture(found: Measured, epsilons: Sequence[float]) -> Figure:
    """Groups below each other, in each the best table on top."""
    from matplotlib.figure import Figure

    reached, first = reached_in(found), min(epsilons)
    shown = [table for table in found.references if (table, DEFAULT, first) in reached and table not in HOPELESS]
    groups = {title: [table for table in shown if belongs(table)] for title, belongs in GROUPS.items()}
    groups = {title: tables for title, tables in groups.items() if tables}
    heights = [len(tables) + 2.5 for tables in groups.values()]
    figure = Figure(figsize=(WIDTH, LINE * sum(heights) + 1), layout="constrained")
    parts = figure.subplots(len(groups), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (title, tables) in zip(parts, groups.items(), strict=True):
        tables.sort(key=lambda table: reached[table, DEFAULT, first].mean)
        _lines(axes, reached, tables, sorted(epsilons))
        axes.set_title(f"tables {title}", fontsize=9, loc="left")
    parts[-1].set_xlabel("part of the possible that is reached", fontsize=9)
    parts[-1].tick_params(labelsize=8, axis="x")
    figure.legend(*parts[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return figure


def _lines(axes: Axes, reached: Reached, tables: Sequence[str], epsilons: Sequence[float]) -> None:
    at = np.arange(len(tables))
    for epsilon, colour in zip(epsilons, BLUES[-len(epsilons) :], strict=False):
        shares = [reached[table, DEFAULT, epsilon] for table in tables]
        places = [_within(each.mean) for each in shares]
        errors = np.nan_to_num([each.error for each in shares])
        axes.errorbar(
            places, at, xerr=errors, fmt="o", color=colour, markersize=4, linewidth=1,
            label=f"{DEFAULT}, epsilon {epsilon:g}",
        )  # fmt: skip
    for words, (methods, marker, colour) in RIVALS.items():
        best = [best_of(reached, table, methods, epsilons[0])[1] for table in tables]
        there = np.isfinite(best)
        if there.any():
            label = f"{words}, epsilon {epsilons[0]:g}"
            places = [_within(each) for each in np.array(best)[there]]
            axes.plot(places, at[there], marker, color=colour, markersize=3.5, fillstyle="none", label=label)
    axes.set_yticks(at, tables, fontsize=7, parse_math=False)
    axes.set_ylim(-0.8, len(tables) - 0.2)
    axes.set_xlim(LOWEST - 0.03, HIGHEST)
    axes.axvline(0, color="#1d2433", linewidth=0.8)
    axes.axvline(1, color="#1d2433", linewidth=0.8)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _within(share: float) -> float:
    return min(max(share, LOWEST), HIGHEST)
