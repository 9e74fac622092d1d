"""A first version of a schema: what a table looks like, written down for a person who knows what is public about it.

A draft reads every cell and is not private: it says so, value by value. What it writes is coarse all the same: ranges
leave out the outermost cells and are rounded outwards to 1, 2 or 5 times a power of ten, dates to whole years, and a
category is listed only if ``FEWEST`` rows hold it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np

from thresher.data.concealment import without_causes
from thresher.data.schema.cells import numbers_of
from thresher.data.schema.column import Column
from thresher.data.schema.looks import FIRST_DAY, LAST_DAY, SURE, Looks, Undeclared, named_code, named_id, unnamed
from thresher.data.schema.writing import Facts, opening, outwards, rounded, sections, years

__all__ = ["FEWEST", "MOST_CATEGORIES", "OFTEN", "TAIL", "Guess", "draft"]

FEWEST = 20  # rows that must hold a category for it to be listed
MOST_CATEGORIES = 60  # more, and a column is taken for names or free text
MOST_KEPT = 5_000  # different texts of a column that are counted
MOST_NUMBERS = 200_000  # of a column, for its quantiles
TAIL = 0.005  # of the numbers at each end, which a range leaves out
OFTEN = 0.05  # of the rows: gaps that have a column of their own
FORMATS = ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d", "%d %b %Y", "%b %d, %Y")  # of dates, to be tried

OPENING = """\
# A draft. What stands above "read_from_data = true" was READ FROM THE DATA and may tell about people in it. Replace it
# by what is publicly known (a code book, the range of an instrument, the law), then remove read_from_data. As long as
# one is left, this file is as private as the data, and certificates are conditional on its values being public.
"""


@dataclass
class Guess:
    """What was seen of a column so far."""

    name: str
    rows: int = 0
    filled: int = 0
    numbers: int = 0
    days: int = 0
    kept: list[Any] = field(default_factory=list)  # numbers, or days
    texts: Counter[str] = field(default_factory=Counter)
    overflowed: bool = False

    def see(self, cells: Looks) -> None:
        numbers, days = cells.numbers[~np.isnan(cells.numbers)], cells.days[~np.isnan(cells.days)]
        self.rows += len(cells.texts)
        self.filled += cells.filled
        self.numbers += len(numbers)
        self.days += len(days)
        if self.numbers + self.days < MOST_NUMBERS:
            self.kept.append(numbers if len(numbers) >= len(days) else days)
        if not self.overflowed:
            self.texts.update(text for text in cells.texts if text)
            self.overflowed = len(self.texts) > MOST_KEPT

    def facts(self, *, is_target: bool) -> Facts:
        """What the draft says of it."""
        if is_target and self.is_pair and self.is_number:
            return Facts(self.name, categories=tuple(sorted(map(float, self.texts))), read=True)
        if not is_target and len(self.texts) > MOST_CATEGORIES:
            if unnamed(self.name):
                return Facts(self.name, ignored="without a name: the number of the row?")
            if named_id(self.name):
                return Facts(self.name, ignored='an id? If it says whose row it is: role = "person"')
        gaps = self.rows - self.filled > OFTEN * self.rows
        if not is_target and self.is_code:
            codes = tuple(sorted(map(float, self.categories)))
            return Facts(self.name, categories=codes, base=float(self.commonest), gaps=gaps, read=True)
        if self.is_number:
            bounds = outwards(*self._ends)
            typical = rounded(float(np.median(np.concatenate(self.kept))), bounds)
            return Facts(self.name, bounds=bounds, typical=typical, gaps=gaps, read=True)
        if self.is_date:
            first, last = (date.fromordinal(int(day) + 1) for day in self._ends)
            return Facts(self.name, bounds=years(first, last), gaps=gaps, read=True)
        if not self.categories and (found := self._otherwise_dated()):
            form, first, last = found
            return Facts(self.name, bounds=years(first, last), format=form, gaps=gaps, read=True)
        if is_target and len(self.categories) < 2:
            raise ValueError(
                f"--target={self.name!r}: its cells are neither numbers nor a few classes; choose another column"
            )
        if not self.categories:
            why = "empty, names or free text: too many different cells, or too few of each"
            return Facts(self.name, ignored=why)
        return Facts(self.name, categories=tuple(self.categories), base=self.commonest, gaps=gaps, read=True)

    @property
    def is_number(self) -> bool:
        return self.filled > 0 and self.numbers >= SURE * self.filled

    @property
    def is_date(self) -> bool:
        return self.filled > 0 and self.days >= SURE * self.filled

    @property
    def is_code(self) -> bool:
        """Few different numbers in a column that is named like codes."""
        return named_code(self.name) and self.is_number and len(self.texts) <= MOST_CATEGORIES

    @property
    def _ends(self) -> tuple[float, float]:
        low, high = np.quantile(np.concatenate(self.kept), [TAIL, 1 - TAIL], method="nearest")
        return float(low), float(high)

    def _otherwise_dated(self) -> tuple[str, date, date] | None:
        """A way to write dates that the texts have in common, and the ends of their range."""
        best: tuple[int, str, Any] = (0, "", None)
        for form in FORMATS:
            days = numbers_of(Column("", bounds=(FIRST_DAY, LAST_DAY), format=form), list(self.texts))
            counts = np.array([*self.texts.values()], dtype=np.intp)[~np.isnan(days)]
            best = max(best, (int(counts.sum()), form, np.repeat(days[~np.isnan(days)], counts)), key=lambda f: f[0])
        read, form, found = best
        if read == 0 or read < SURE * self.texts.total():
            return None
        low, high = np.quantile(found, [TAIL, 1 - TAIL], method="nearest")
        return form, date.fromordinal(int(low) + 1), date.fromordinal(int(high) + 1)

    @property
    def categories(self) -> list[str]:
        often = sorted(text for text, count in self.texts.items() if count >= FEWEST)
        return [] if self.overflowed or len(often) > MOST_CATEGORIES else often

    @property
    def commonest(self) -> str:
        """Of the categories."""
        return max(self.categories, key=self.texts.__getitem__)

    @property
    def is_pair(self) -> bool:
        """Two values and no more: classes, whatever they are."""
        return not self.overflowed and sum(count >= FEWEST for count in self.texts.values()) == 2 == len(self.texts)


@without_causes
def draft(data: Any, target: str, person: str | None = None, tell: Any = lambda part: None) -> str:
    """The text of a schema for a file or frame."""
    table = Undeclared.looked_into(data)
    table.require(target, *([] if person is None else [person]))
    guesses = {name: Guess(name) for name in table.names if name != person}
    for piece in table.looks(list(guesses), tell):
        for name, guess in guesses.items():
            guess.see(piece[name])
    facts = [
        Facts(name, person=True) if name == person else guesses[name].facts(is_target=name == target)
        for name in table.names
    ]
    return "\n".join([opening(OPENING, table.dialect), *sections(facts, target)])
