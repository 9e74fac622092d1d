"""A first version of a schema within a stated budget: nothing in it is read off the data, everything is estimated.

Three fits on the same rows: what kind each column is of, then bounds of those that are numbers or dates, then
categories of those that are texts. What each may cost is fixed before the first: which columns the later ones are asked
about depends on answers, what they cost does not.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from thresher.data.concealment import without_causes
from thresher.data.schema.column import Category
from thresher.data.schema.draft import (
    FIRST_DAY,
    LAST_DAY,
    MOST_CATEGORIES,
    OFTEN,
    UndeclaredCells,
    UndeclaredTable,
    is_code_name,
    is_id_name,
)
from thresher.data.schema.writing import (
    ColumnFacts,
    column_sections,
    file_header,
    round_outwards,
    round_within,
    toml_table,
    whole_years,
)
from thresher.data.typing import Table
from thresher.estimates.columns import ColumnBounds, ColumnCategories, ColumnShares, flags_of
from thresher.ledger import Ledger
from thresher.models.fit import Fit
from thresher.models.scaler import TAILS
from thresher.privacy.arrays import Floats
from thresher.privacy.bounds import LARGEST_BOUND
from thresher.privacy.budget import Budget
from thresher.privacy.certificate import Certificate, combine
from thresher.privacy.conversions import gaussian_epsilon, zcdp_epsilon, zcdp_rho
from thresher.privacy.plan import Plan
from thresher.privacy.warnings import WideRanges

__all__ = ["Estimate", "Steps", "estimate"]

LARGEST = 1e9
ZERO_DAY = date(2000, 1, 1)  # dates are estimated as days since this one: levels are finest around 0
LARGEST_DAY = float((LAST_DAY - ZERO_DAY).days)
PARTS = {"kinds": 0.2, "bounds": 0.4, "categories": 0.4}  # of the zCDP that the budget has
KINDS = ("number", "date", "text")
EMPTY = 3 * math.sqrt(len(KINDS))  # standard errors: a column of which fewer cells are filled counts as empty


@dataclass(frozen=True)
class Estimate:
    """A schema that was estimated.

    Attributes
    ----------
    text : str
        TOML.
    certificate : Certificate
        What it cost.
    """

    text: str
    certificate: Certificate


@dataclass(frozen=True)
class Steps:
    """The three fits, unfitted: together within (epsilon, delta), however many columns each is asked about.

    Delta has four parts. One is the chance that a text is published which one row holds; three are the fits' own. So
    the zCDP that proves epsilon at 3/4 of delta may be spent in all, and a fixed part of it by each.

    Attributes
    ----------
    kinds : ColumnShares
        What each column holds: numbers, dates, texts, nothing.
    bounds : ColumnBounds
        The ranges of numbers and dates.
    categories : ColumnCategories
        The texts that many rows hold.
    """

    kinds: ColumnShares
    bounds: ColumnBounds
    categories: ColumnCategories

    @classmethod
    def within(cls, budget: Budget, columns: int, largest: float) -> Steps:
        """The three fits for a table of so many columns, whose numbers are within +-``largest``."""
        quarter = budget.delta / 4
        rho = {step: part * zcdp_rho(budget.epsilon, 3 * quarter) for step, part in PARTS.items()}
        as_gaussian = {step: gaussian_epsilon(math.sqrt(2 * rho[step]), quarter) for step in ("kinds", "categories")}
        return cls(
            ColumnShares(columns, epsilon=as_gaussian["kinds"], delta=quarter),
            ColumnBounds(largest, epsilon=zcdp_epsilon(rho["bounds"], quarter), delta=quarter),
            ColumnCategories(epsilon=as_gaussian["categories"], delta=2 * quarter),
        )

    def largest_plan(self, budget: Budget, n: int, columns: int) -> Plan:
        """What they cost at most: every column asked about by every fit."""
        plans = [
            self.kinds.plan(n, len(KINDS) * columns),
            self.bounds.plan(n, columns),
            self.categories.plan(n, columns),
        ]
        releases = tuple(release for plan in plans for release in plan.releases)
        return Plan("schema draft", plans[-1].problem, budget, releases)

    def refuse_few(self, n: int, columns: int) -> None:
        """Nothing is spent on a draft that could not tell a full column from an empty one."""
        error = self.kinds.plan(n, len(KINDS) * columns).settings["standard_error"]
        if EMPTY * error > 1 / 2:
            raise ValueError(
                f"DATA has {n} rows, too few to draft {columns} columns with this budget (about "
                f"{2 * EMPTY * error * n:.0f} would do): use a larger --epsilon, leave columns out, or write the "
                "schema by hand; nothing was spent"
            )


@without_causes
def estimate(
    data: Table | str | Path, target: str, *, epsilon: float, delta: float | None = None, largest: float = LARGEST,
    ledger: Ledger | str | None = None, dataset: str | None = None, tell: Callable[[float], None] = lambda part: None,
) -> Estimate:  # fmt: skip
    """A first version of a schema for a file or frame, whose values are estimated within a budget.

    Parameters
    ----------
    data : path or frame
        A .csv or .parquet file, a frame of pandas or polars.
    target : str
        The column that a model should predict.
    epsilon : float
        What all estimates together may cost.
    delta : float, optional
        By default 1/n^2.
    largest : float, optional
        What no number exceeds in magnitude: a public guess, far too large.
    ledger : Ledger or str, optional
        The account book that pays.
    dataset : str, optional
        The name of the data in it.
    tell : callable, optional
        Called with the part of the data that is read.

    Returns
    -------
    Estimate
        The text of the schema, and the certificate of what it cost.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from thresher.estimates.draft import estimate
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"age": rng.integers(18, 95, 20_000), "stay": rng.uniform(0, 30, 20_000)})
    >>> made = estimate(frame, "stay", epsilon=4.0)
    >>> "[columns.age]" in made.text, made.certificate.epsilon
    (True, 4.0)
    """
    unread = UndeclaredTable.from_first_line(data)
    unread.require(target)
    if len(set(unread.names)) < len(unread.names):
        raise ValueError("DATA has two columns of one name; rename one")
    cells_of = _all_cells(unread, tell)
    n, columns = len(cells_of[target].texts), len(cells_of)
    if n < 2:
        raise ValueError(f"DATA has {n} row(s): there is nothing to estimate")
    budget = Budget(epsilon, n**-2.0 if delta is None else delta)
    if not 0 < largest <= LARGEST_BOUND:
        raise ValueError(f"--largest={largest!r} must be a positive number, what no number in DATA exceeds")
    if not budget.private:
        raise ValueError("epsilon=inf: without it, a draft reads its values from the data and marks each")
    steps = Steps.within(budget, columns, largest)
    most = steps.largest_plan(budget, n, columns)
    steps.refuse_few(n, columns)
    whole = Fit(most)
    whole.pay(ledger, dataset)
    with whole.counted():
        drafted = _Draft(steps, cells_of, target)
    certificate = drafted.certificate(budget)
    if whole.paid is not None:
        certificate = whole.paid.settle(certificate)
    return Estimate(drafted.text(unread, budget), certificate)


def _all_cells(unread: UndeclaredTable, tell: Callable[[float], None]) -> dict[str, UndeclaredCells]:
    pieces = list(unread.cells(unread.names, tell))
    return {name: UndeclaredCells.concatenate([piece[name] for piece in pieces]) for name in unread.names}


class _Draft:
    """The fits, one after the other; each is asked about the columns that the first one found for it."""

    def __init__(self, steps: Steps, cells_of: dict[str, UndeclaredCells], target: str) -> None:
        self.steps, self.target, self.names = steps, target, list(cells_of)
        self.n = len(cells_of[target].texts)
        steps.kinds.fit(flags_of([_codes(cells) for cells in cells_of.values()], len(KINDS)))
        self.shares = dict(zip(cells_of, steps.kinds.shares_.reshape(-1, len(KINDS)), strict=True))
        self.kinds = {name: self._kind(name) for name in cells_of}
        self.measured = [name for name, kind in self.kinds.items() if kind in ("number", "date")]
        self.named = [name for name, kind in self.kinds.items() if kind in ("text", "code")]
        if self.measured:
            self._warn_of_wide_ranges()
            steps.bounds.set_params(largest=[self._largest(name) for name in self.measured])
            steps.bounds.fit(np.column_stack([_numbers(cells_of[name], self.kinds[name]) for name in self.measured]))
        if self.named:
            steps.categories.fit(np.array([cells_of[name].texts for name in self.named], dtype=object).T)

    def _warn_of_wide_ranges(self) -> None:
        """Public: it follows from the number of rows and what was found so far."""
        off = self.steps.bounds.plan(self.n, len(self.measured)).settings["rank_error"]
        if off > TAILS[1] * self.n:
            warnings.warn(
                f"an end of one of {len(self.measured)} ranges may be off by {off:.0f} of {self.n} rows: bounds may "
                "come out as wide as --largest; use a larger --epsilon, or leave columns out",
                WideRanges,
                stacklevel=4,
            )

    @property
    def threshold(self) -> float:
        """The number of rows that a category needs."""
        plan = self.steps.categories.plan(self.n, max(len(self.named), 1))
        return float(plan.settings["threshold"])

    def _kind(self, name: str) -> str:
        """number, date, code or text; or empty."""
        number, day, _ = self.shares[name]
        filled = self._filled(name)
        if filled < EMPTY * self.steps.kinds.standard_error_:
            return "empty"
        if number >= filled / 2:
            return "code" if name != self.target and (is_code_name(name) or is_id_name(name)) else "number"
        return "date" if day >= filled / 2 else "text"

    def _filled(self, name: str) -> float:
        return float(self.shares[name].sum())

    def _largest(self, name: str) -> float:
        return LARGEST_DAY if self.kinds[name] == "date" else float(np.max(self.steps.bounds.largest))

    # -- what is written -----------------------------------------------------------------------------------------------

    def facts(self, name: str) -> ColumnFacts:
        gaps = 1 - self._filled(name) > OFTEN
        if name in self.measured:
            at = self.measured.index(name)
            ends = float(self.steps.bounds.low_[at]), float(self.steps.bounds.high_[at])
            if self.kinds[name] == "date":
                return ColumnFacts(name, bounds=whole_years(*map(_day, ends)), gaps=gaps)
            bounds = round_outwards(*ends)
            classes = "classes? Then write categories = [0, 1], or what they are, in the place of the next three lines"
            return ColumnFacts(
                name, bounds=bounds, typical=round_within(float(self.steps.bounds.median_[at]), bounds), gaps=gaps,
                remark=classes if name == self.target else "",
            )  # fmt: skip
        texts = self.steps.categories.categories_[self.named.index(name)] if name in self.named else []
        found: Sequence[Category] = texts
        if self.kinds[name] == "code":
            found = list(dict.fromkeys(float(text) for text in texts if _is_number(text)))
        if name == self.target:
            few = "fewer than two classes are held by rows enough: write the public ones here"
            return ColumnFacts(name, categories=tuple(sorted(found)), remark=few if len(found) < 2 else "")
        if not found or len(found) > MOST_CATEGORIES:
            return ColumnFacts(
                name, ignored="empty, ids, names or free text: too many different cells, or too few of each"
            )
        return ColumnFacts(name, categories=tuple(sorted(found)), base=found[0], gaps=gaps)

    def text(self, unread: UndeclaredTable, budget: Budget) -> str:
        spent = toml_table("spent", [f"epsilon = {budget.epsilon!r}", f"delta = {budget.delta!r}"])
        comment = OPENING.format(n=self.n, epsilon=budget.epsilon, delta=budget.delta, threshold=self.threshold)
        parts = [file_header(comment, unread.dialect), spent]
        return "\n".join([*parts, *column_sections([self.facts(name) for name in self.names], self.target)])

    def certificate(self, budget: Budget) -> Certificate:
        """Of all fits together. The whole budget counts, even if the first left nothing to ask for another."""
        made = [self.steps.kinds, *([self.steps.bounds] if self.measured else [])]
        made += [self.steps.categories] if self.named else []
        note = "a schema was drafted; what each fit may cost was fixed before the first, and all of it counts"
        total = replace(combine(*made), delta=budget.delta)
        cost = total.verify()
        told = f"epsilon={cost.epsilon:.6g} at delta={budget.delta:.6g} by {cost.method}, over {len(made)} fits"
        return replace(
            total, epsilon=budget.epsilon, claimed_epsilon=budget.epsilon, composition=f"{told} on the same rows",
            notes=(*total.notes, note),
        )  # fmt: skip


OPENING = """\
# A draft whose values were ESTIMATED with differential privacy: epsilon = {epsilon:g}, delta = {delta:.2g} of the rows'
# budget was spent on it. What was read off the data is the names of its columns and the number of its rows, {n}.
# Bounds leave out a few rows at each end; gaps took part in them as 0, or as 2000-01-01. A category is listed if about
# {threshold:.0f} rows hold it. Replace what you know better from public sources; keep [spent], which certificates tell.
"""


def _codes(cells: UndeclaredCells) -> NDArray[np.int8]:
    """Of each cell the position of its kind in KINDS, or -1 for a gap."""
    codes = np.array([2 if text else -1 for text in cells.texts], dtype=np.int8)
    codes[~np.isnan(cells.days)] = 1
    codes[~np.isnan(cells.numbers)] = 0
    return codes


def _numbers(cells: UndeclaredCells, kind: str) -> Floats:
    """Numbers, or days since ZERO_DAY; whatever is neither counts as 0."""
    values = cells.numbers if kind == "number" else cells.days - (ZERO_DAY - FIRST_DAY).days
    return np.nan_to_num(values, nan=0.0)


def _day(days: float) -> date:
    first, last = (FIRST_DAY - ZERO_DAY).days, (LAST_DAY - ZERO_DAY).days
    return ZERO_DAY + timedelta(days=min(max(round(days), first), last))


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
