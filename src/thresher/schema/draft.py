"""A first version of a schema: what a table looks like, written down for a person who knows what is public about it.

A draft reads every cell and is not private: it says so, value by value. What it writes is coarse all the same: ranges
leave out the outermost cells and are rounded outwards to 1, 2 or 5 times a power of ten, dates to whole years, and a
category is listed only if ``FEWEST`` rows hold it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from thresher.schema.cells import NOBODY, ids_of, numbers_of
from thresher.schema.column import Column
from thresher.schema.schema import DELIMITERS
from thresher.schema.sources import source_of

__all__ = ["Guess", "delimiter_of", "draft"]

FEWEST = 20  # rows that must hold a category for it to be listed
MOST_CATEGORIES = 60  # more, and a column is taken for names or free text
MOST_KEPT = 5_000  # different texts of a column that are counted
MOST_NUMBERS = 200_000  # of a column, for its quantiles
TAIL = 0.005  # of the numbers at each end, which a range leaves out
OFTEN = 0.05  # of the rows: gaps that have a column of their own
SURE = 0.9  # of the cells that are not empty must be of a kind
ANY_NUMBER = Column("", bounds=(-math.inf, math.inf))
ANY_DAY = Column("", bounds=(date(1, 1, 1), date(9999, 12, 31)))


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

    def see(self, cells: Any, decimal: str) -> None:
        filled = [str(cell) for cell in ids_of(cells) if cell != NOBODY]
        self.rows += len(cells)
        self.filled += len(filled)
        numbers = _finite(numbers_of(ANY_NUMBER, filled, decimal))
        days = _finite(numbers_of(ANY_DAY, filled)) if len(numbers) < len(filled) else numbers[:0]
        self.numbers += len(numbers)
        self.days += len(days)
        if self.numbers + self.days < MOST_NUMBERS:
            self.kept.append(numbers if len(numbers) >= len(days) else days)
        if not self.overflowed:
            self.texts.update(filled)
            self.overflowed = len(self.texts) > MOST_KEPT

    @property
    def is_number(self) -> bool:
        return self.filled > 0 and self.numbers >= SURE * self.filled

    @property
    def is_date(self) -> bool:
        return self.filled > 0 and self.days >= SURE * self.filled

    @property
    def is_id(self) -> bool:
        """Whole numbers or texts that are different in almost every row, or whose name says so."""
        named = re.search(r"(^|[ _.-])(id|nr|no|key|uuid|ssn|mrn)$", self.name, flags=re.IGNORECASE) is not None
        return named and len(self.texts) > MOST_CATEGORIES

    @property
    def is_code(self) -> bool:
        """Few different numbers in a column that is named like codes."""
        named = re.search(r"(^|[ _.-])(id|code|type|class|group|kind)$", self.name, flags=re.IGNORECASE) is not None
        return named and self.is_number and len(self.texts) <= MOST_CATEGORIES

    @property
    def bounds(self) -> tuple[float, float]:
        return outwards(*self._ends)

    @property
    def typical(self) -> float:
        """The median to one digit, within the bounds."""
        return float(np.clip(float(f"{np.median(np.concatenate(self.kept)):.0e}"), *self.bounds))

    @property
    def years(self) -> tuple[date, date]:
        first, last = (date.fromordinal(int(day) + 1) for day in self._ends)
        return date(first.year, 1, 1), date(last.year, 12, 31)

    @property
    def _ends(self) -> tuple[float, float]:
        low, high = np.quantile(np.concatenate(self.kept), [TAIL, 1 - TAIL], method="nearest")
        return float(low), float(high)

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


def _finite(values: Any) -> Any:
    return values[np.isfinite(values)]


def outwards(low: float, high: float) -> tuple[float, float]:
    """A range around these with ends that are 0, 1, 2 or 5 times a power of ten."""
    down, up = (
        (-_round_up(-low) if low < 0 else _round_down(low)),
        (_round_up(high) if high > 0 else -_round_down(-high)),
    )
    return (down, up) if down < up else (down, down + 1.0)


def _round_up(value: float) -> float:
    if value == 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in (1.0, 2.0, 5.0) if value <= step * power), 10.0 * power)


def _round_down(value: float) -> float:
    if value == 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in (5.0, 2.0) if step * power <= value), power)


def delimiter_of(data: Any) -> str:
    """Of the first line of a .csv file: the one that is there most often."""
    if not (isinstance(data, (str, Path)) and Path(data).is_file() and Path(data).suffix == ".csv"):
        return ","
    with Path(data).open(encoding="utf-8-sig", errors="replace") as file:
        line = file.readline()
    return max(DELIMITERS, key=line.count)


def draft(data: Any, target: str, person: str | None = None, tell: Any = lambda part: None) -> str:
    """The text of a schema for a file or frame."""
    delimiter = delimiter_of(data)
    source = source_of(data, delimiter)
    for name in (target, *([] if person is None else [person])):
        if name not in source.names:
            raise ValueError(f"{name!r} is not a column of DATA; look at the names in its first line")
    decimal = "," if delimiter == ";" else "."
    guesses = {name: Guess(name) for name in source.names if name != person}
    for piece in source.pieces(list(guesses), tell):
        for name, guess in guesses.items():
            guess.see(piece[name], decimal)
    parts = [_opening(delimiter, decimal)]
    for name in source.names:
        if name == person:
            parts.append(section(name, ['role = "person"']))
        else:
            parts.append(section(name, _target(guesses[name]) if name == target else _feature(guesses[name])))
    return "\n".join(parts)


# -- the text ----------------------------------------------------------------------------------------------------------

BASE = "# what the others are compared with"
READ = "read_from_data = true  # replace by public knowledge, then remove this line"


OPENING = """\
# A draft. What stands above "read_from_data = true" was READ FROM THE DATA and may tell about people in it. Replace it
# by what is publicly known (a code book, the range of an instrument, the law), then remove read_from_data. As long as
# one is left, this file is as private as the data, and certificates are conditional on its values being public.
#
# Whatever a cell holds: outside of bounds it is clipped, and what is not declared or cannot be read counts as missing.
# A missing number counts as what is typical, and a missing category as the base, unless the column says otherwise:
# missing = 40, missing = "Private", or missing = "indicator" for a column of its own.
"""


def _opening(delimiter: str, decimal: str) -> str:
    return "\n".join([OPENING, "[table]", f"delimiter = {quoted(delimiter)}", f"decimal = {quoted(decimal)}", ""])


def _feature(guess: Guess) -> list[str]:
    if guess.is_id:
        return ['role = "ignore"  # an id? If it says whose row it is: role = "person"']
    if guess.is_code:
        base = f"base = {_number(float(guess.commonest))}  {BASE}"
        return [f"categories = {_codes(guess.categories)}", base, *_missing(guess), READ]
    if guess.is_number:
        typical = f"typical = {_number(guess.typical)}  # what is expected where nothing is known, about the median"
        return [f"bounds = {_range(guess.bounds)}", typical, 'unit = ""', *_missing(guess), READ]
    if guess.is_date:
        first, last = guess.years
        return [f"bounds = [{first}, {last}]", *_missing(guess), READ]
    if not guess.categories:
        return ['role = "ignore"  # empty, names or free text: too many different cells, or too few of each']
    base = f"base = {quoted(guess.commonest)}  {BASE}"
    return [f"categories = {_list(guess.categories)}", base, *_missing(guess), READ]


def _target(guess: Guess) -> list[str]:
    if guess.is_pair and guess.is_number:
        return ['role = "target"', f"categories = {_codes(guess.texts)}", READ]
    if guess.is_number:
        middle = sum(guess.bounds) / 2
        return ['role = "target"', f"bounds = {_range(guess.bounds)}", 'unit = ""',
                f"missing = {_number(middle)}  # what a target that is missing counts as", READ]  # fmt: skip
    names = guess.categories
    if len(names) < 2:
        raise ValueError(
            f"--target={guess.name!r}: its cells are neither numbers nor a few classes; choose another column"
        )
    return ['role = "target"', f"categories = {_list(names)}",
            f"missing = {quoted(names[0])}  # what a target that is missing counts as", READ]  # fmt: skip


def _missing(guess: Guess) -> list[str]:
    """Gaps in more than a few rows may mean something."""
    often = guess.rows - guess.filled > OFTEN * guess.rows
    return ['missing = "indicator"  # a column of its own; or a constant'] if often else []


def section(name: str, lines: Iterable[str]) -> str:
    bare = re.fullmatch(r"[A-Za-z0-9_-]+", name) is not None
    return "\n".join([f"[columns.{name if bare else quoted(name)}]", *lines, ""])


def quoted(text: str) -> str:
    """A TOML string."""
    escapes = {"\\": "\\\\", '"': '\\"', "\t": "\\t", "\n": "\\n", "\r": "\\r"}
    escaped = "".join(escapes.get(c, c if c >= " " and c != "\x7f" else f"\\u{ord(c):04x}") for c in text)
    return f'"{escaped}"'


def _list(names: list[str]) -> str:
    return f"[{', '.join(map(quoted, names))}]"


def _codes(texts: Iterable[str]) -> str:
    return f"[{', '.join(_number(value) for value in sorted({float(text) for text in texts}))}]"


def _range(bounds: tuple[float, float]) -> str:
    return f"[{', '.join(map(_number, bounds))}]"


def _number(value: float) -> str:
    return f"{value:.12g}" if abs(value) < 1e12 else f"{value:.12e}"
