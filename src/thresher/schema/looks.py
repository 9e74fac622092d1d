"""How cells look before anything is declared about them: as numbers, as days, as texts; and a table cell by cell."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.schema.cells import numbers_of, texts_of
from thresher.schema.column import Column
from thresher.schema.schema import DELIMITERS
from thresher.schema.sources import Source, source_of

__all__ = ["FIRST_DAY", "LAST_DAY", "Looks", "Undeclared", "delimiter_of", "named_code", "named_id"]

Floats = NDArray[np.float64]

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
    def of(cls, cells: Any, decimal: str) -> Looks:
        texts = texts_of(cells)
        different = list(dict.fromkeys(texts))  # few texts, many cells
        numbers = numbers_of(ANY_NUMBER, different, decimal)
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
    """A table without a schema: what its first line tells, and its cells piece by piece."""

    source: Source
    delimiter: str = ","

    @classmethod
    def of(cls, data: Any) -> Undeclared:
        delimiter = delimiter_of(data)
        return cls(source_of(data, delimiter), delimiter)

    @cached_property
    def names(self) -> list[str]:
        return self.source.names

    @property
    def decimal(self) -> str:
        return "," if self.delimiter == ";" else "."

    def require(self, *names: str) -> None:
        for name in names:
            if name not in self.names:
                raise ValueError(f"{name!r} is not a column of DATA; look at the names in its first line")

    def looks(self, names: list[str], tell: Callable[[float], None]) -> Iterator[dict[str, Looks]]:
        for piece in self.source.pieces(names, tell):
            yield {name: Looks.of(piece[name], self.decimal) for name in names}


def named_id(name: str) -> bool:
    """Whether a column is named like ids."""
    return re.search(r"(^|[ _.-])(id|nr|no|key|uuid|ssn|mrn)$", name, flags=re.IGNORECASE) is not None


def named_code(name: str) -> bool:
    """Whether a column is named like codes, which are categories even if they are numbers."""
    return re.search(r"(^|[ _.-])(id|code|type|class|group|kind)$", name, flags=re.IGNORECASE) is not None


def delimiter_of(data: Any) -> str:
    """Of the first line of a .csv file: the one that is there most often."""
    if not (isinstance(data, (str, Path)) and Path(data).is_file() and Path(data).suffix == ".csv"):
        return ","
    with Path(data).open(encoding="utf-8-sig", errors="replace") as file:
        line = file.readline()
    return max(DELIMITERS, key=line.count)
