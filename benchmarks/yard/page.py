"""docs/yard.md and its picture, from what was measured: every number on the page is written here by the command."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.report.charts import Chart, Series, draw
from yard.competitors import COMPETITORS
from yard.coverage import LEVEL
from yard.measuring import Measured
from yard.methods import DEFAULT, OURS
from yard.references import SPARSITY
from yard.scores import NAMES, share
from yard.tables import CHOSEN_BY, HOPELESS, TABLES, is_never_seen, is_untouched

__all__ = ["calibration_page", "coverage_page", "picture", "yard_page"]

FAILED = 0.05  # of what is possible: below it, a model is not worth publishing
AHEAD = 0.05  # by so much another method must be better, to be told
LOWEST = -0.5  # shown in the picture


@dataclass(frozen=True)
class Shares:
    """What part of the possible one method reached on one table at one epsilon."""

    mean: float
    error: float  # standard error of the mean; NaN of one fit

    def __str__(self) -> str:
        return f"{self.mean:.2f}" if np.isnan(self.error) else f"{self.mean:.2f} ± {self.error:.2f}"


def yard_page(found: Measured, methods: Sequence[str], epsilons: Sequence[float], fits: int) -> str:
    """The whole page."""
    reached = _shares(found)
    counted = [table for table in found.references if table not in HOPELESS]
    groups = {title: [table for table in counted if belongs(table)] for title, belongs in GROUPS.items()}
    facts = {"tables": len(found.references), "sparsity": SPARSITY, "chosen_by": CHOSEN_BY}
    parts = [INTRODUCTION.format(fits=fits, first=min(epsilons), **facts)]
    for title, tables in groups.items():
        parts += [_overview(found, reached, methods, epsilons, tables, title)] if tables else []
    parts += [_ahead(reached, methods, epsilons, counted), _times(found, min(epsilons))]
    parts += ["## Table by table\n", TABLE_BY_TABLE]
    for kind in NAMES:
        rows = [table for table in found.references if TABLES[table].kind == kind]
        parts += [_rows(found, reached, rows, kind, methods, epsilons)] if rows else []
    parts += [f"`{name}`: {why}." for name, why in HOPELESS.items() if name in found.references]
    parts += [f"Skipped: `{name}`: {why}." for name, why in found.skipped.items()]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


GROUPS: Mapping[str, Callable[[str], bool]] = {
    "open to constants": lambda table: not is_untouched(table),
    "held out, seen before": lambda table: is_untouched(table) and not is_never_seen(table),
    "never seen": is_never_seen,
}

INTRODUCTION = """
# Real tables

<!-- written by ./dev yard -->

{tables} tables of the kind people bring, each with a schema that was written by hand as a sensible person would who
knows the code book and not the rows; the descriptions lie in `benchmarks/yard/descriptions/`.

A share is (score - trivial) / (best without privacy - trivial): R2 for numbers, AUC for two classes, accuracy for more.
Trivial is the mean, one half, or the majority. The best without privacy is the better of an l1 model with a
cross-validated penalty and an unpenalised one, on the same columns. A third of the rows, or of the people where rows
have owners, is for scoring. Sparse models have at most {sparsity} columns; delta is 1/n^2, neighbours replace one row
(or one person); {fits} fits a cell. Predictions of numbers are clipped to the target's public bounds, for all methods.

Constants of defaults are chosen with tables in view, so tables are counted in three groups. **Open to constants** are
two thirds. The other third, by the hash of names and marked *, was **held out**, but half of it had been looked at when
the constants of `newton` were chosen, and its scores are known since. So tables marked † were added on 2026-11-19, and
**never seen**: chosen and described before any private model was fitted to them, by what is public about them
({chosen_by}).

![What part of the possible is reached, by table, at epsilon {first:g}](figures/yard.svg)

Methods of the literature are written in `benchmarks/yard/competitors.py` after their papers, under the same bounds and
budget: AdaSSP (Wang 2018), BoostedAdaSSP (Tang et al. 2023), columns by private Kendall correlation and then AdaSSP
(Dick, Gillenwater and Joseph 2023), and greedy coordinate descent, DP-GCD (Mangold et al. 2023). Dense models and the
two of AdaSSP use every column.
"""

TABLE_BY_TABLE = """
Shares of the default with their standard errors, and the best of the others at the least epsilon. Untouched tables are
marked *.
"""


# -- summaries ---------------------------------------------------------------------------------------------------------


Reached = Mapping[tuple[str, str, float], Shares]


def _shares(found: Measured) -> dict[tuple[str, str, float], Shares]:
    made = {}
    for (table, method, epsilon), scores in found.scores.items():
        if scores:
            each = share(scores, *found.least_and_best(table))
            error = float(np.std(each, ddof=1) / np.sqrt(len(each))) if len(each) > 1 else float("nan")
            made[table, method, epsilon] = Shares(float(np.mean(each)), error)
    return made


def _overview(
    found: Measured,
    reached: Reached,
    methods: Iterable[str],
    epsilons: Sequence[float],
    tables: Sequence[str],
    title: str,
) -> str:
    lines = [f"## Tables {title}", "", "Median / mean / worst / tables below .05.", ""]
    lines += [_row("method", "tables", *(f"epsilon {epsilon:g}" for epsilon in epsilons))]
    lines += ["|---" * (2 + len(epsilons)) + "|"]
    for method in methods:
        at = [[reached[t, method, e].mean for t in tables if (t, method, e) in reached] for e in epsilons]
        if at and at[0]:
            name = f"**{method}**" if method == DEFAULT else method
            lines.append(_row(name, len(at[0]), *map(_four, at)))
    few = [share(found.references[t]["few columns"], *found.least_and_best(t)) for t in tables]
    lines.append(_row(f"{SPARSITY} columns, not private", len(few), *[_four(few)] * len(epsilons)))
    return "\n".join(lines)


def _four(shares: Sequence[float]) -> str:
    failed = sum(each < FAILED for each in shares)
    return f"{statistics.median(shares):.2f} / {statistics.mean(shares):.2f} / {min(shares):.2f} / {failed}"


def _ahead(reached: Reached, methods: Sequence[str], epsilons: Sequence[float], tables: Sequence[str]) -> str:
    """Of those that were measured beside the default: nobody is behind whom nobody was compared with."""
    lines = ["## Where another method is ahead", "", f"By {AHEAD:g} or more of what is possible.", ""]
    for whose, names in (("ours", OURS), ("the literature", tuple(COMPETITORS))):
        rivals = [method for method in methods if method in names and method != DEFAULT]
        if not rivals:
            lines.append(f"* None of {whose} was measured in this run.")
            continue
        for epsilon in epsilons:
            others = [_best(reached, table, rivals, epsilon) for table in tables]
            found = [
                f"{table} ({name} {best:.2f}, {DEFAULT} {reached[table, DEFAULT, epsilon].mean:.2f})"
                for table, (name, best) in zip(tables, others, strict=True)
                if (table, DEFAULT, epsilon) in reached and best > reached[table, DEFAULT, epsilon].mean + AHEAD
            ]
            listed = f": {', '.join(found)}" if found else ""
            lines.append(f"* epsilon {epsilon:g}, of {whose}: {len(found)} of {len(tables)} tables{listed}.")
    return "\n".join(lines)


def _times(found: Measured, epsilon: float) -> str:
    """Beside who searches for a penalty without privacy."""
    ratios = {
        table: seconds / found.references[table]["seconds"]
        for (table, method, at), seconds in found.seconds.items()
        if method == DEFAULT and at == epsilon
    }
    if not ratios:
        return ""
    slowest = max(ratios, key=lambda table: ratios[table])
    return (
        f"## How long a fit takes\n\nAt epsilon {epsilon:g}, from the table to a scored model, over the l1 model with "
        "its cross-validation on the encoded rows, in seconds of one processor, the quickest fit: a median of "
        f"{statistics.median(ratios.values()):.2f}, at most {ratios[slowest]:.1f} ({slowest})."
    )


def _best(reached: Reached, table: str, methods: Iterable[str], epsilon: float) -> tuple[str, float]:
    """Of the others."""
    known = {m: reached[table, m, epsilon].mean for m in methods if m != DEFAULT and (table, m, epsilon) in reached}
    best = max(known, key=lambda name: known[name], default="")
    return best, known.get(best, float("-inf"))


def _rows(
    found: Measured,
    reached: Reached,
    tables: Sequence[str],
    kind: str,
    methods: Sequence[str],
    epsilons: Sequence[float],
) -> str:
    first = min(epsilons)
    shown = [f"epsilon {epsilon:g}" for epsilon in epsilons]
    titles = ("table", "rows x columns", f"best {NAMES[kind]}", *shown, f"best of our others ({first:g})", "literature")
    lines = [f"### {kind.capitalize()}", "", _row(*titles), "|---" * len(titles) + "|"]
    for table in tables:
        facts, (_, best) = found.references[table], found.least_and_best(table)
        cells = [str(reached.get((table, DEFAULT, epsilon), "-")) for epsilon in epsilons]
        others = [_best(reached, table, [m for m in methods if m in names], first) for names in (OURS, COMPETITORS)]
        told = [f"{name} {value:.2f}" if name else "-" for name, value in others]
        size = f"{facts['rows']:.0f} x {facts['columns']:.0f}"
        lines.append(_row(_marked(table), size, f"{best:.3f}", *cells, *told))
    return "\n".join(lines)


def _marked(table: str) -> str:
    return f"{table} †" if is_never_seen(table) else f"{table} *" if is_untouched(table) else table


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


# -- the picture -------------------------------------------------------------------------------------------------------


def picture(found: Measured, epsilon: float, methods: Sequence[str]) -> Any:
    """Shares from the worst table to the best, a line for each method: the higher the better."""
    reached = _shares(found)
    series = {}
    for method in methods:
        shares = sorted(
            max(each.mean, LOWEST)
            for (table, name, at), each in reached.items()
            if name == method and at == epsilon and table not in HOPELESS
        )
        if shares:
            series[method] = Series([float(x) for x in np.linspace(0, 100, len(shares))], shares)
    title = f"Real tables at epsilon {epsilon:g}"
    return draw(Chart(title, "tables, the worst first (%)", "part of the possible that is reached", series, top=1.1))


# -- intervals and chances ---------------------------------------------------------------------------------------------


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
    lines = [words, "", _row("table", *(f"epsilon {epsilon:g}" for epsilon in epsilons))]
    lines += ["|---" * (1 + len(epsilons)) + "|"]
    tables = [table for table in TABLES if any(key[0] == table and found.scores[key] for key in found.scores)]
    for table in tables:
        lines.append(_row(_marked(table), *(cell(found.scores[table, DEFAULT, epsilon]) for epsilon in epsilons)))
    for title, belongs in GROUPS.items():
        those = [table for table in tables if belongs(table) and table not in HOPELESS]
        together = ([fit for t in those for fit in found.scores[t, DEFAULT, epsilon]] for epsilon in epsilons)
        lines.append(_row(f"**all {title}**", *map(cell, together)))
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
