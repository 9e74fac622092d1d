"""A first version of a schema: what a table looks like, written down for a person who knows what is public about it.

A draft reads every cell and is not private: it says so, value by value. What it writes is coarse all the same: ranges
leave out the outermost cells and are rounded outwards to 1, 2 or 5 times a power of ten, dates to whole years, and a
category is listed only if ``FEWEST`` rows hold it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np

from thresher.data.concealment import without_causes
from thresher.data.reading.csv import DELIMITERS, PLAIN, THOUSANDS, Dialect, encoding_of
from thresher.data.reading.source import Source, source_of
from thresher.data.schema.cells import numbers_of, texts_of
from thresher.data.schema.column import Column
from thresher.data.schema.writing import (
    ColumnFacts,
    column_sections,
    file_header,
    round_outwards,
    round_within,
    whole_years,
)
from thresher.data.typing import Cells, Table
from thresher.privacy.arrays import Floats

__all__ = [
    "FEWEST", "FIRST_DAY", "LAST_DAY", "MOST_CATEGORIES", "OFTEN", "TAIL", "Guess", "UndeclaredCells",
    "UndeclaredTable", "draft", "is_code_name", "is_id_name",
]  # fmt: skip

FEWEST = 20  # rows that must hold a category for it to be listed
MOST_CATEGORIES = 60  # more, and a column is taken for names or free text
MOST_KEPT = 5_000  # different texts of a column that are counted
MOST_NUMBERS = 200_000  # of a column, for its quantiles
TAIL = 0.005  # of the numbers at each end, which a range leaves out
OFTEN = 0.05  # of the rows: gaps that have a column of their own
FORMATS = ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d", "%d %b %Y", "%b %d, %Y")  # of dates, to be tried

SURE = 0.9  # of the cells that are not empty must be of a kind
SEEN = 2**20  # bytes by which an encoding is recognised
FIRST = 1000  # rows by which marks between groups of digits are
FIRST_DAY, LAST_DAY = date(1, 1, 1), date(9999, 12, 31)
ANY_NUMBER = Column("", bounds=(-math.inf, math.inf))
ANY_DAY = Column("", bounds=(FIRST_DAY, LAST_DAY))


OPENING = """\
# A draft. What stands above "read_from_data = true" was READ FROM THE DATA and may tell about people in it. Replace it
# by what is publicly known (a code book, the range of an instrument, the law), then remove read_from_data. As long as
# one is left, this file is as private as the data, and certificates are conditional on its values being public.
"""


# -- cells before anything is declared about them: numbers, days, texts ------------------------------------------------


@dataclass(frozen=True)
class UndeclaredCells:
    """Cells of a column, each by itself; NaN for what is no number, or no day."""

    texts: list[str]
    numbers: Floats
    days: Floats  # since FIRST_DAY, of cells that are no numbers

    @classmethod
    def of(cls, cells: Cells, dialect: Dialect) -> UndeclaredCells:
        """What cells look like that are written so."""
        texts = texts_of(cells)
        different = list(dict.fromkeys(texts))  # few texts, many cells
        numbers = numbers_of(ANY_NUMBER, different, dialect)
        numbers[np.isinf(numbers)] = math.nan
        days = np.full(len(different), math.nan)
        others = np.flatnonzero(np.isnan(numbers))
        days[others] = numbers_of(ANY_DAY, [different[at] for at in others])
        places = {text: at for at, text in enumerate(different)}
        at = np.fromiter((places[text] for text in texts), np.intp, len(texts))
        return cls(texts, numbers[at], days[at])

    @classmethod
    def concatenate(cls, pieces: list[UndeclaredCells]) -> UndeclaredCells:
        """The cells of all pieces, one piece after the other."""
        none = np.empty(0)
        return cls(
            [text for piece in pieces for text in piece.texts],
            np.concatenate([none, *(piece.numbers for piece in pieces)]),
            np.concatenate([none, *(piece.days for piece in pieces)]),
        )

    @property
    def filled(self) -> int:
        """How many are no gaps."""
        return sum(text != "" for text in self.texts)


@dataclass(frozen=True)
class UndeclaredTable:
    """A table without a schema: how it is written, and its cells piece by piece."""

    source: Source
    dialect: Dialect

    @classmethod
    def from_first_line(cls, data: Table | str | Path) -> UndeclaredTable:
        """By what its first line tells."""
        dialect = dialect_of(data)
        return cls(source_of(data, dialect), dialect)

    @classmethod
    def from_first_rows(cls, data: Table | str | Path) -> UndeclaredTable:
        """By what its first cells tell, too. Not private."""
        dialect = dialect_of(data, SEEN)
        table = cls(source_of(data, dialect), dialect)
        return replace(table, dialect=replace(dialect, thousands=table._thousands()))

    @cached_property
    def names(self) -> list[str]:
        """The columns."""
        return self.source.names

    def require(self, *names: str) -> None:
        """Raise if one of these is no column."""
        for name in names:
            if name not in self.names:
                raise ValueError(f"{name!r} is not a column of DATA; look at the names in its first line")

    def cells(self, names: list[str], tell: Callable[[float], None]) -> Iterator[dict[str, UndeclaredCells]]:
        """The cells of some columns, piece by piece."""
        for piece in self.source.pieces(names, tell):
            yield {name: UndeclaredCells.of(piece[name], self.dialect) for name in names}

    def _thousands(self) -> str:
        """What stands between groups of three digits, if that makes numbers of a column's cells."""
        piece = next(self.source.pieces(self.names, lambda part: None), {})
        columns = [texts_of(list(islice(cells, FIRST))) for cells in piece.values()]
        texts = [cells for cells in columns if not _are_numbers(cells, self.dialect)]
        for mark in THOUSANDS:
            if mark != self.dialect.decimal:
                grouped = replace(self.dialect, thousands=mark)
                if any(_are_numbers(cells, grouped) for cells in texts):
                    return mark
        return ""


def _are_numbers(texts: list[str], dialect: Dialect) -> bool:
    filled = [text for text in texts if text]
    return bool(np.isfinite(numbers_of(ANY_NUMBER, filled, dialect)).sum() > SURE * len(filled))


def is_id_name(name: str) -> bool:
    """Whether a column is named like ids: patient_nbr, Kunde Nr., CustomerID."""
    words = r"(^|[ _.-])(id|nr|no|nbr|number|key|uuid|guid|ssn|mrn)\W*$"
    return re.search(words, name, flags=re.IGNORECASE) is not None or re.search(r"[a-z]I[Dd]$", name) is not None


def has_no_name(name: str) -> bool:
    """Whether a column has no name, as the numbers of rows have none that pandas writes."""
    return re.fullmatch(r"(unnamed: \d+)?", name, flags=re.IGNORECASE) is not None


def is_code_name(name: str) -> bool:
    """Whether a column is named like codes, which are categories even if they are numbers."""
    return re.search(r"(^|[ _.-])(id|code|type|class|group|kind)$", name, flags=re.IGNORECASE) is not None


def dialect_of(data: Table | str | Path, seen: int = 0) -> Dialect:
    """Of a .csv file, by its first line, or as many bytes as are ``seen``: the delimiter that is there most often."""
    if not (isinstance(data, (str, Path)) and Path(data).is_file() and Path(data).suffix == ".csv"):
        return PLAIN
    with Path(data).open("rb") as file:
        start = file.read(seen) if seen else file.readline()
    encoding = encoding_of(start)
    first_line = start.decode(encoding, errors="replace").partition("\n")[0]
    delimiter = max(DELIMITERS, key=first_line.count)
    return Dialect(delimiter, "," if delimiter == ";" else ".", encoding=encoding)


# -- what is written down about them -----------------------------------------------------------------------------------


@dataclass
class Guess:
    """What was seen of a column so far."""

    name: str
    rows: int = 0
    filled: int = 0
    numbers: int = 0
    days: int = 0
    kept: list[Floats] = field(default_factory=list)  # numbers, or days
    texts: Counter[str] = field(default_factory=Counter)
    overflowed: bool = False

    def add(self, cells: UndeclaredCells) -> None:
        """Count the cells of one more piece."""
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

    def facts(self, *, is_target: bool) -> ColumnFacts:
        """What the draft says of it."""
        if is_target and self.is_pair and self.is_number:
            return ColumnFacts(self.name, categories=tuple(sorted(map(float, self.texts))), read=True)
        if not is_target and len(self.texts) > MOST_CATEGORIES:
            if has_no_name(self.name):
                return ColumnFacts(self.name, ignored="without a name: the number of the row?")
            if is_id_name(self.name):
                return ColumnFacts(self.name, ignored='an id? If it says whose row it is: role = "person"')
        gaps = self.rows - self.filled > OFTEN * self.rows
        if not is_target and self.is_code:
            codes = tuple(sorted(map(float, self.categories)))
            return ColumnFacts(self.name, categories=codes, base=float(self.commonest), gaps=gaps, read=True)
        if self.is_number:
            bounds = round_outwards(*self._ends)
            typical = round_within(float(np.median(np.concatenate(self.kept))), bounds)
            return ColumnFacts(self.name, bounds=bounds, typical=typical, gaps=gaps, read=True)
        if self.is_date:
            first, last = (date.fromordinal(int(day) + 1) for day in self._ends)
            return ColumnFacts(self.name, bounds=whole_years(first, last), gaps=gaps, read=True)
        if not self.categories and (found := self._other_date_format()):
            form, first, last = found
            return ColumnFacts(self.name, bounds=whole_years(first, last), format=form, gaps=gaps, read=True)
        if is_target and len(self.categories) < 2:
            raise ValueError(
                f"--target={self.name!r}: its cells are neither numbers nor a few classes; choose another column"
            )
        if not self.categories:
            why = "empty, names or free text: too many different cells, or too few of each"
            return ColumnFacts(self.name, ignored=why)
        return ColumnFacts(self.name, categories=tuple(self.categories), base=self.commonest, gaps=gaps, read=True)

    @property
    def is_number(self) -> bool:
        """Most of the filled cells are numbers."""
        return self.filled > 0 and self.numbers >= SURE * self.filled

    @property
    def is_date(self) -> bool:
        """Most of the filled cells are days."""
        return self.filled > 0 and self.days >= SURE * self.filled

    @property
    def is_code(self) -> bool:
        """Few different numbers in a column that is named like codes."""
        return is_code_name(self.name) and self.is_number and len(self.texts) <= MOST_CATEGORIES

    @property
    def _ends(self) -> tuple[float, float]:
        low, high = np.quantile(np.concatenate(self.kept), [TAIL, 1 - TAIL], method="nearest")
        return float(low), float(high)

    def _other_date_format(self) -> tuple[str, date, date] | None:
        """A way to write dates that the texts have in common, and the ends of their range."""
        best: tuple[int, str, Floats] = (0, "", np.empty(0))
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
        """The texts that rows enough hold, unless there are too many."""
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
def draft(
    data: Table | str | Path, target: str, person: str | None = None,
    tell: Callable[[float], None] = lambda part: None,
) -> str:  # fmt: skip
    """The text of a schema for a file or frame."""
    table = UndeclaredTable.from_first_rows(data)
    table.require(target, *([] if person is None else [person]))
    guesses = {name: Guess(name) for name in table.names if name != person}
    for piece in table.cells(list(guesses), tell):
        for name, guess in guesses.items():
            guess.add(piece[name])
    facts = [
        ColumnFacts(name, person=True) if name == person else guesses[name].facts(is_target=name == target)
        for name in table.names
    ]
    return "\n".join([file_header(OPENING, table.dialect), *column_sections(facts, target)])
