"""docs/yard.md, from what was measured: every number on the page is written here by the command."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from yard.competitors import COMPETITORS
from yard.measuring import GRAM_OF_ALL, LARGEST, WIDEST, Measured
from yard.methods import DEFAULT, OURS, PAYING
from yard.references import SPARSITY
from yard.scores import NAMES, share
from yard.shares import AHEAD, Reached, Shares, ahead_by, best_of, error_of_median, reached_in, summary
from yard.tables import CHOSEN_BY, GROUPS, HOPELESS, TABLES, marked

__all__ = ["row", "yard_page"]

GOALS: Mapping[float, tuple[tuple[float, float, int], ...]] = {
    1.0: ((0.92, 0, 0), (0.96, 0.3, 0)),
    3.0: ((0.95, 0.5, 0), (0.98, 0.7, 0)),
    10.0: ((0.97, 0.75, 0), (0.99, 0.85, 0)),
}
"""By epsilon, what the default must reach and what it aims at: median, worst table, tables below .05."""
MOST_AHEAD = (3, 0)
"""Tables on which another method of ours may be ahead: must and aim."""
SLOWEST = (1.0, 0.3)
"""The time of a fit over that of the search without privacy: must and aim."""


def yard_page(found: Measured, methods: Sequence[str], epsilons: Sequence[float], fits: int) -> str:
    """The whole page."""
    reached, first = reached_in(found), min(epsilons)
    counted = [table for table in found.references if table not in HOPELESS]
    groups = {"all": counted} | {
        title: [table for table in counted if belongs(table)] for title, belongs in GROUPS.items()
    }
    facts = {"tables": len(found.references), "sparsity": SPARSITY, "chosen_by": CHOSEN_BY}
    parts = [INTRODUCTION.format(fits=fits, first=first, **facts)]
    parts += [
        _goals(found, reached, groups, methods, epsilons),
        METHODS,
        _by_method(found, reached, groups, methods, first),
    ]
    parts += [_ahead(reached, methods, counted, first), _unmeasured(found), _paying(reached, groups, epsilons)]
    parts += ["## Table by table", TABLE_BY_TABLE.format(first=first)]
    for kind in NAMES:
        rows = [table for table in found.references if TABLES[table].kind == kind]
        parts += [_rows(found, reached, rows, kind, methods, epsilons)] if rows else []
    parts += [f"`{name}`: {why}." for name, why in HOPELESS.items() if name in found.references]
    parts += [f"Skipped: `{name}`: {why}." for name, why in found.skipped.items()]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


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
Behind ± is a standard error: of the mean of the fits of a cell, or what the fits' noise does to a median.

Constants of defaults are chosen with tables in view, so tables are counted in three groups. **Open to constants** are
two thirds. The other third, by the hash of names and marked *, was **held out**, but half of it had been looked at when
the constants of `newton` were chosen, and its scores are known since. So tables marked † were added on 2026-11-19, and
**never seen**: chosen and described before any private model was fitted to them, by what is public about them
({chosen_by}).

![What part of the possible is reached, by table](figures/yard.svg)

## What is reached

What the default must reach, what it aims at, and what it does; (no) is neither.
"""

METHODS = """
## Every method

Methods of the literature are written in `benchmarks/yard/competitors.py` after their papers, under the same bounds and
budget: AdaSSP (Wang 2018), BoostedAdaSSP (Tang et al. 2023), columns by private Kendall correlation and then AdaSSP
(Dick, Gillenwater and Joseph 2023), and greedy coordinate descent, DP-GCD (Mangold et al. 2023). Dense models and the
two of AdaSSP use every column.
"""

TABLE_BY_TABLE = """
Shares of the default with their standard errors, and the best of the others at epsilon {first:g}. Tables that were held
out are marked *, those never seen †.
"""


# -- the default -------------------------------------------------------------------------------------------------------


def _goals(
    found: Measured,
    reached: Reached,
    groups: Mapping[str, Sequence[str]],
    methods: Sequence[str],
    epsilons: Sequence[float],
) -> str:
    """Must and aim beside what is reached, by group."""
    first = min(epsilons)
    there = {title: [t for t in tables if (t, DEFAULT, first) in reached] for title, tables in groups.items()}
    there = {title: tables for title, tables in there.items() if tables}
    if not there:
        return ""
    lines = [row(f"`{DEFAULT}`", "must", "aim", *(f"{title} ({len(tables)})" for title, tables in there.items()))]
    lines += ["|---" * (3 + len(there)) + "|"]
    for epsilon in epsilons:
        goals = GOALS.get(epsilon)
        shares = ([reached[table, DEFAULT, epsilon] for table in tables] for tables in there.values())
        told = [_three(*goal) for goal in goals] if goals else ["-", "-"]
        cells = [_beside_goals(each, goals) for each in shares]
        lines.append(row(f"epsilon {epsilon:g}: median / worst / below .05", *told, *cells))
    rivals = [method for method in methods if method in OURS and method != DEFAULT]
    if rivals:
        counts = [sum(_is_ahead(reached, table, rivals, first) for table in tables) for tables in there.values()]
        title = f"tables on which another method of ours is ahead by {AHEAD:g} at epsilon {first:g}"
        cells = [
            f"{counts[0]} ({_word(counts[0] <= MOST_AHEAD[0], counts[0] <= MOST_AHEAD[1])})",
            *map(str, counts[1:]),
        ]
        lines.append(row(title, *MOST_AHEAD, *cells))
    times = [_times(found, tables, first) for tables in there.values()]
    if any(times):
        title = f"seconds of a fit at epsilon {first:g} over those of the search without privacy: median / most"
        lines.append(row(title, *(f"{each:g}" for each in SLOWEST), *times))
    return "\n".join([*lines, "", TIMES.strip()])


TIMES = """
Times are seconds of one processor of the quickest fit, from the table to a scored model; the search is that of the l1
model's penalty with its cross-validation, on rows that are encoded already.
"""


def _beside_goals(shares: Sequence[Shares], goals: Sequence[tuple[float, float, int]] | None) -> str:
    median, worst, failed = summary(shares)
    told = _three(median, worst, failed, error_of_median(shares))
    if not goals:
        return told
    must, aim = (median >= goal[0] and worst >= goal[1] and failed <= goal[2] for goal in goals)
    return f"{told} ({_word(must, aim)})"


def _word(must: bool, aim: bool) -> str:
    return "aim" if aim else "must" if must else "no"


def _three(median: float, worst: float, failed: int, error: float = math.nan) -> str:
    """To three places, so that nobody is told to miss what two places show to be reached."""
    uncertain = "" if math.isnan(error) else f" ± {error:.3f}"
    return f"{median:.3f}{uncertain} / {worst:.3f} / {failed}"


def _times(found: Measured, tables: Sequence[str], epsilon: float) -> str:
    ratios = {
        table: found.seconds[table, DEFAULT, epsilon] / found.references[table]["seconds"]
        for table in tables
        if (table, DEFAULT, epsilon) in found.seconds
    }
    if not ratios:
        return ""
    slowest = max(ratios, key=lambda table: ratios[table])
    most = ratios[slowest]
    word = _word(most <= SLOWEST[0], most <= SLOWEST[1])
    return f"{statistics.median(ratios.values()):.2f} / {most:.1f}, {slowest} ({word})"


# -- the others --------------------------------------------------------------------------------------------------------


def _by_method(
    found: Measured, reached: Reached, groups: Mapping[str, Sequence[str]], methods: Sequence[str], epsilon: float
) -> str:
    """Each method on the tables that it was measured on, and how often it is ahead of the default."""
    shown = {title: tables for title, tables in groups.items() if tables}
    lines = [
        f"Median / worst / tables below .05 at epsilon {epsilon:g}; and on how many tables the default is ahead of"
    ]
    lines[0] += f" the method by {AHEAD:g}, level with it, or behind."
    lines += ["", row("method", "tables", *shown, "ahead / level / behind"), "|---" * (3 + len(shown)) + "|"]
    for method in methods:
        known = [table for table in groups["all"] if (table, method, epsilon) in reached]
        if not known:
            continue
        shares = ([reached[t, method, epsilon] for t in tables if t in known] for tables in shown.values())
        cells = [_three(*summary(each)) if each else "-" for each in shares]
        name, against = (
            (f"**{method}**", "") if method == DEFAULT else (method, _against(reached, known, method, epsilon))
        )
        lines.append(row(name, len(known), *cells, against))
    few = ([_few_columns(found, table) for table in tables] for tables in shown.values())
    lines.append(
        row(f"{SPARSITY} columns, not private", len(groups["all"]), *(_three(*summary(each)) for each in few), "")
    )
    return "\n".join(lines)


def _few_columns(found: Measured, table: str) -> Shares:
    return Shares(float(share(found.references[table]["few columns"], *found.least_and_best(table))), float("nan"))


def _against(reached: Reached, tables: Sequence[str], method: str, epsilon: float) -> str:
    """On how many tables the default is ahead, level, behind."""
    leads = [lead for table in tables if (lead := ahead_by(reached, table, method, epsilon)) is not None]
    behind, ahead = (sum(sign * lead > AHEAD for lead in leads) for sign in (1, -1))
    return f"{ahead} / {len(leads) - ahead - behind} / {behind}"


def _is_ahead(reached: Reached, table: str, methods: Sequence[str], epsilon: float) -> bool:
    return best_of(reached, table, methods, epsilon)[1] > reached[table, DEFAULT, epsilon].mean + AHEAD


def _ahead(reached: Reached, methods: Sequence[str], tables: Sequence[str], epsilon: float) -> str:
    """Of those that were measured beside the default: nobody is behind whom nobody was compared with."""
    lines = [f"## Who is level or ahead at epsilon {epsilon:g}", ""]
    lines += [f"Ahead is by {AHEAD:g} or more of what is possible; level, by less than that one way or the other.", ""]
    there = [table for table in tables if (table, DEFAULT, epsilon) in reached]
    for whose, names in (("our others", OURS), ("the literature", tuple(COMPETITORS))):
        rivals = [method for method in methods if method in names and method != DEFAULT]
        if not rivals:
            lines.append(f"* None of {whose} was measured in this run.")
            continue
        ahead = [table for table in there if _is_ahead(reached, table, rivals, epsilon)]
        told = (_lead(reached, table, *best_of(reached, table, rivals, epsilon), epsilon) for table in ahead)
        lines.append(f"* Of {whose}, some method is ahead on {len(ahead)} of {len(there)} tables{_listed(told)}.")
    for method in methods:
        leads = {table: ahead_by(reached, table, method, epsilon) for table in there}
        known = {table: lead for table, lead in leads.items() if lead is not None}
        if method not in COMPETITORS or not known:
            continue
        ahead = [table for table, lead in known.items() if lead > AHEAD]
        level = [table for table, lead in known.items() if abs(lead) <= AHEAD]
        told = (_lead(reached, table, "", reached[table, method, epsilon].mean, epsilon) for table in ahead)
        words = f"ahead on {len(ahead)} of {len(known)}{_listed(told)}"
        lines.append(f"* {method}: {words}; level on {len(level)}{_listed(map(marked, level))}.")
    return "\n".join(lines)


def _lead(reached: Reached, table: str, name: str, best: float, epsilon: float) -> str:
    return f"{marked(table)} ({f'{name} {best:.2f}'.strip()}, {DEFAULT} {reached[table, DEFAULT, epsilon].mean:.2f})"


def _listed(names: Iterable[str]) -> str:
    found = ", ".join(names)
    return f": {found}" if found else ""


def _paying(reached: Reached, groups: Mapping[str, Sequence[str]], epsilons: Sequence[float]) -> str:
    """The default with as many columns as pay for their noise."""
    there = {title: [t for t in tables if (t, PAYING, min(epsilons)) in reached] for title, tables in groups.items()}
    there = {title: tables for title, tables in there.items() if tables}
    if not there:
        return ""
    shown = [f"{title} ({len(tables)})" for title, tables in there.items()]
    lines = ["## As many columns as pay", "", AS_MANY_AS_PAY.strip().format(sparsity=SPARSITY), ""]
    lines += [row("`sparsity=None`", *shown, "ahead / level / behind"), "|---" * (2 + len(shown)) + "|"]
    for epsilon in epsilons:
        shares = ([reached[table, PAYING, epsilon] for table in tables] for tables in there.values())
        cells = [_three(*summary(each), error_of_median(each)) for each in shares]
        against = _against(reached, there["all"], PAYING, epsilon)
        lines.append(row(f"epsilon {epsilon:g}: median / worst / below .05", *cells, against))
    return "\n".join(lines)


AS_MANY_AS_PAY = """
With `sparsity=None` the default keeps as many columns as pay for their noise, at most 50, instead of {sparsity}; last,
on how many tables {sparsity} columns are ahead, level, or behind.
"""


def _unmeasured(found: Measured) -> str:
    """What was left out, by the rule."""
    told = []
    if found.too_large:
        numbers, coefficients = (f"{most / 1e6:g} million {what}" for what, most in LARGEST.items())
        told.append(
            f"Of tables with more than {numbers} to fit, or more than {coefficients} of a model with all columns, only "
            f"the default is measured, since the others together would take hours: {_listed_tables(found.too_large)}."
        )
    if found.too_wide:
        told.append(
            f"`{GRAM_OF_ALL}` is not measured with more than {WIDEST:,} columns, of which a Gram matrix takes minutes: "
            f"{_listed_tables(found.too_wide)}."
        )
    return " ".join(told)


def _listed_tables(tables: Sequence[str]) -> str:
    return ", ".join(map(marked, tables))


# -- table by table ----------------------------------------------------------------------------------------------------


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
    lines = [f"### {kind.capitalize()}", "", row(*titles), "|---" * len(titles) + "|"]
    for table in tables:
        facts, (_, best) = found.references[table], found.least_and_best(table)
        cells = [str(reached.get((table, DEFAULT, epsilon), "-")) for epsilon in epsilons]
        others = [best_of(reached, table, [m for m in methods if m in names], first) for names in (OURS, COMPETITORS)]
        told = [f"{name} {value:.2f}" if name else "-" for name, value in others]
        size = f"{facts['rows']:.0f} x {facts['columns']:.0f}"
        lines.append(row(marked(table), size, f"{best:.3f}", *cells, *told))
    return "\n".join(lines)


def row(*cells: object) -> str:
    """Of a table in Markdown."""
    return f"| {' | '.join(map(str, cells))} |"
