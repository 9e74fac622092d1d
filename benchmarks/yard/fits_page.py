"""Pages about each fit of the default rather than its score: whether intervals hold, and whether chances come true."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from yard.coverage import LEVEL
from yard.measuring import Measured
from yard.methods import DEFAULT
from yard.page import row
from yard.tables import GROUPS, HOPELESS, TABLES, marked

__all__ = ["calibration_page", "coverage_page"]

Fits = Sequence[Mapping[str, Any]]


def coverage_page(found: Measured, epsilons: Sequence[float]) -> str:
    """A table: by epsilon, the part of intervals that held the refit, and how wide they are."""
    words = (
        f"{LEVEL:.0%} intervals of `{DEFAULT}`: the part that held the refit without privacy on the chosen columns of "
        "the same rows / median width over that of the refit's own intervals."
    )
    return _page_of_fits(found, epsilons, words, _held)


def calibration_page(found: Measured, epsilons: Sequence[float]) -> str:
    """A table: by epsilon, how chances compare with rates, and what they are worth."""
    words = (
        f"Chances of `{DEFAULT}` on rows that were not fitted: the mean chance of the rarest class over its rate, the "
        "median of the fits / by what part the log-loss is below that of the rates, the worst of the fits."
    )
    return _page_of_fits(found, epsilons, words, _came_true)


def _page_of_fits(found: Measured, epsilons: Sequence[float], words: str, cell: Callable[[Fits], str]) -> str:
    lines = [words, "", row("table", *(f"epsilon {epsilon:g}" for epsilon in epsilons))]
    lines += ["|---" * (1 + len(epsilons)) + "|"]
    tables = [table for table in TABLES if any(key[0] == table and found.scores[key] for key in found.scores)]
    for table in tables:
        lines.append(row(marked(table), *(cell(found.scores[table, DEFAULT, epsilon]) for epsilon in epsilons)))
    for title, belongs in GROUPS.items():
        those = [table for table in tables if belongs(table) and table not in HOPELESS]
        together = ([fit for t in those for fit in found.scores[t, DEFAULT, epsilon]] for epsilon in epsilons)
        lines.append(row(f"**all {title}**", *map(cell, together)))
    without = sorted({table for table, _, _ in found.scores} - set(tables))
    lines += ["", f"Not there: {', '.join(without)}."] if without else []
    return "\n".join(lines) + "\n"


def _held(fits: Fits) -> str:
    of = sum(fit["of"] for fit in fits)
    if not of:
        return "-"
    width = statistics.median(fit["width"] for fit in fits if fit["width"] is not None)
    return f"{sum(fit['held'] for fit in fits) / of:.2f} / {width:.1f}"


def _came_true(fits: Fits) -> str:
    if not fits:
        return "-"
    return f"{statistics.median(fit['rate'] for fit in fits):.2f} / {min(fit['gain'] for fit in fits):.2f}"
