"""How cells look before anything is declared about them: as numbers, as days, as texts; and a table cell by cell."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from thresher.data.reading.csv import DELIMITERS, PLAIN, THOUSANDS, Dialect, encoding_of
from thresher.data.reading.source import Source, source_of
from thresher.data.schema.cells import numbers_of, texts_of
from thresher.data.schema.column import Column
from thresher.privacy.arrays import Floats

__all__ = ["FIRST_DAY", "LAST_DAY", "SURE", "Looks", "Undeclared", "named_code", "named_id", "unnamed"]

SURE = 0.9  # of the cells that are not empty must be of a kind
SEEN = 2**20  # bytes by which an encoding is recognised
FIRST = 1000  # rows by which marks between groups of digits are
FIRST_DAY, LAST_DAY = date(1, 1, 1), date(9999, 12, 31)
ANY_NUMBER = Column("", bounds=(-math.inf, math.inf))
ANY_DAY = Column("", bounds=(FIRST_DAY, LAST_DAY))


@dataclass(frozen=True)
class Looks:
    """Cells of a column, each by itself; NaN for what is no number, or no day."""

    texts: list[str]
    numbers: Floats
    days: Floats  # since FIRST_DAY, of cells that are no numbers

    @classmethod
    def of(cls, cells: Any, dialect: Dialect) -> Looks:
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
    def joined(cls, pieces: list[Looks]) -> Looks:
        none = np.empty(0)
        return cls(
            [text for piece in pieces for text in piece.texts],
            np.concatenate([none, *(piece.numbers for piece in pieces)]),
            np.concatenate([none, *(piece.days for piece in pieces)]),
        )

    @property
    def filled(self) -> int:
        return sum(text != "" for text in self.texts)


@dataclass(frozen=True)
class Undeclared:
    """A table without a schema: how it is written, and its cells piece by piece."""

    source: Source
    dialect: Dialect

    @classmethod
    def of(cls, data: Any) -> Undeclared:
        """By what its first line tells."""
        dialect = dialect_of(data)
        return cls(source_of(data, dialect), dialect)

    @classmethod
    def looked_into(cls, data: Any) -> Undeclared:
        """By what its first cells tell, too. Not private."""
        dialect = dialect_of(data, SEEN)
        table = cls(source_of(data, dialect), dialect)
        return replace(table, dialect=replace(dialect, thousands=table._thousands()))

    @cached_property
    def names(self) -> list[str]:
        return self.source.names

    def require(self, *names: str) -> None:
        for name in names:
            if name not in self.names:
                raise ValueError(f"{name!r} is not a column of DATA; look at the names in its first line")

    def looks(self, names: list[str], tell: Callable[[float], None]) -> Iterator[dict[str, Looks]]:
        for piece in self.source.pieces(names, tell):
            yield {name: Looks.of(piece[name], self.dialect) for name in names}

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


def named_id(name: str) -> bool:
    """Whether a column is named like ids: patient_nbr, Kunde Nr., CustomerID."""
    words = r"(^|[ _.-])(id|nr|no|nbr|number|key|uuid|guid|ssn|mrn)\W*$"
    return re.search(words, name, flags=re.IGNORECASE) is not None or re.search(r"[a-z]I[Dd]$", name) is not None


def unnamed(name: str) -> bool:
    """Whether a column has no name, as the numbers of rows have none that pandas writes."""
    return re.fullmatch(r"(unnamed: \d+)?", name, flags=re.IGNORECASE) is not None


def named_code(name: str) -> bool:
    """Whether a column is named like codes, which are categories even if they are numbers."""
    return re.search(r"(^|[ _.-])(id|code|type|class|group|kind)$", name, flags=re.IGNORECASE) is not None


def dialect_of(data: Any, seen: int = 0) -> Dialect:
    """Of a .csv file, by its first line, or as many bytes as are ``seen``: the delimiter that is there most often."""
    if not (isinstance(data, (str, Path)) and Path(data).is_file() and Path(data).suffix == ".csv"):
        return PLAIN
    with Path(data).open("rb") as file:
        start = file.read(seen) if seen else file.readline()
    encoding = encoding_of(start)
    first_line = start.decode(encoding, errors="replace").partition("\n")[0]
    delimiter = max(DELIMITERS, key=first_line.count)
    return Dialect(delimiter, "," if delimiter == ";" else ".", encoding=encoding)
