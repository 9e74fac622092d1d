"""Files of text with a cell between delimiters: how one is written, and how it is read, at once or piece by piece."""

from __future__ import annotations

import codecs
import csv
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Literal, TextIO

import numpy as np

from thresher.data.typing import Values

__all__ = ["DELIMITERS", "PLAIN", "THOUSANDS", "CsvFile", "CsvPiece", "Dialect", "encoding_of", "is_numeric"]

PIECE = 50_000  # rows that are read at a time

DELIMITERS = (",", ";", "\t", "|")
THOUSANDS = (",", ".", "'", " ")
BLANKS = " \u00a0\u202f"  # of which one may stand where a blank is declared


@dataclass(frozen=True)
class Dialect:
    """How a file is written. Public: it says nothing about what cells hold.

    Attributes
    ----------
    delimiter : str
        What stands between cells.
    decimal : str
        What stands before the decimals of a number.
    thousands : str
        What stands between groups of three digits, if anything.
    encoding : str
        What makes texts of bytes.
    """

    delimiter: str = ","
    decimal: str = "."
    thousands: str = ""  # between groups of three digits
    encoding: str = "utf-8"

    @classmethod
    def from_dict(cls, table: Mapping[str, str]) -> Dialect:
        """What ``[table]`` of a schema declares."""
        known = [field.name for field in fields(cls)]
        for key in table:
            if key not in known:
                raise ValueError(f"schema: [table] has the unknown key {key!r}; use {', '.join(known)}")
        made = cls(**table)
        made._check()
        return made

    def to_dict(self) -> dict[str, str]:
        """For JSON and TOML; of the last two, what is not as usual."""
        always = ("delimiter", "decimal")
        return {key: value for key, value in asdict(self).items() if key in always or value != getattr(PLAIN, key)}

    def pythonic(self, text: str) -> str:
        """A number as Python writes it; of groups that are not of three digits nothing is left, so that it is a gap."""
        if self.thousands and self._mark.search(text):
            text = self._mark.sub("", text) if self._grouped.fullmatch(text.strip()) else ""
        return text.replace(self.decimal, ".")

    @property
    def is_pythonic(self) -> bool:
        """Whether numbers are written as Python writes them."""
        return self.decimal == "." and not self.thousands

    @cached_property
    def _mark(self) -> re.Pattern[str]:
        """What stands between groups, wherever it is between digits."""
        return re.compile(rf"(?<=\d)[{BLANKS if self.thousands == ' ' else self.thousands}](?=\d)")

    @cached_property
    def _grouped(self) -> re.Pattern[str]:
        """A number of groups of three digits."""
        return re.compile(rf"[+-]?\d{{1,3}}(?:{self._mark.pattern}\d{{3}})+(?:[{self.decimal}]\d*)?")

    def _check(self) -> None:
        if self.delimiter not in DELIMITERS:
            raise ValueError(
                f"schema: delimiter = {self.delimiter!r} must be one of {', '.join(map(repr, DELIMITERS))}"
            )
        if self.decimal not in (".", ","):
            raise ValueError(f"schema: decimal = {self.decimal!r} must be '.' or ','")
        if self.thousands and (self.thousands not in THOUSANDS or self.thousands == self.decimal):
            raise ValueError(
                f"schema: thousands = {self.thousands!r} must be one of {', '.join(map(repr, THOUSANDS))}, and another "
                "one than decimal; leave it out if nothing stands between groups of three digits"
            )
        try:
            "".encode(self.encoding)  # refuses what is no encoding of texts, too
        except (LookupError, TypeError, UnicodeError):
            raise ValueError(
                f"schema: encoding = {self.encoding!r} is unknown; use utf-8, cp1252 (Western Windows), utf-16, ..."
            ) from None


PLAIN = Dialect()


def encoding_of(start: bytes) -> str:
    """Of the first bytes of a file: UTF-16 has a mark, and hardly anything else is UTF-8 by chance."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)  # the last character may be cut off
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


class CsvPiece(dict[str, Sequence[str]]):
    """Cells by name. Rows that are ``odd`` have not as many cells as the file has columns; all of theirs are gaps."""

    odd: Sequence[bool] = ()


class CsvFile:
    """A file whose first line names its columns.

    Parameters
    ----------
    path : Path
        Where it is.
    dialect : Dialect, optional
        How it is written.
    errors : {"strict", "replace"}, optional
        What is done with bytes that are no text: a cell in which they are replaced is in no category.

    Attributes
    ----------
    names : list of str
        What the first line says, as it stands.
    """

    def __init__(
        self, path: Path, dialect: Dialect = PLAIN, *, errors: Literal["strict", "replace"] = "strict"
    ) -> None:
        self.path = path
        self.dialect = dialect
        self.errors = errors
        with self._open() as file:
            self.names = self._first_line(file)
        if not self.names:
            raise ValueError(f"DATA={str(path)!r} is empty; its first line must name the columns")

    def numbers_or_texts(self) -> Values:
        """All cells: numbers if all of them are, else texts; an error says which row has another number of cells."""
        try:
            return self._cells(np.float64)
        except ValueError:
            try:
                return self._cells(np.str_)
            except ValueError as error:
                if type(error) is not ValueError:
                    raise
                raise ValueError(f"DATA={str(self.path)!r}: {error}") from None

    def texts(self, name: str) -> list[str]:
        """The cells of one column, as they stand."""
        return [text for (text,) in self._cells(np.str_, [self.names.index(name)]).tolist()]

    def pieces(self, wanted: Sequence[str], tell: Callable[[float], None]) -> Iterator[CsvPiece]:
        """The cells of some columns, some rows at a time; ``tell`` hears which part of the file is read."""
        places = {name.strip(): j for j, name in enumerate(self.names)}
        at = {name: places[name] for name in wanted}
        size = max(self.path.stat().st_size, 1)
        blank = [""] * len(self.names)
        with self._open() as file:
            rows = csv.reader(file, delimiter=self.dialect.delimiter)
            next(rows)
            whole = (row if len(row) == len(self.names) else blank for row in rows if row)
            while piece := list(islice(whole, PIECE)):
                columns = list(zip(*piece, strict=True))
                cells = CsvPiece({name: columns[j] for name, j in at.items()})
                cells.odd = [row is blank for row in piece]
                yield cells
                tell(file.buffer.tell() / size)

    @contextmanager
    def _open(self) -> Iterator[TextIO]:
        encoding = self.dialect.encoding
        encoding = "utf-8-sig" if encoding == "utf-8" else encoding  # a mark at the start is no text
        with self.path.open(newline="", encoding=encoding, errors=self.errors) as file:
            try:
                yield file
            except csv.Error:
                raise ValueError(
                    f"DATA={str(self.path)!r} is not a table: a quoted cell is longer than {csv.field_size_limit()} "
                    "characters; is a quotation mark never closed?"
                ) from None

    def _first_line(self, file: TextIO) -> list[str]:
        """The names, which may hold quoted line ends."""
        return next(csv.reader(file, delimiter=self.dialect.delimiter), [])

    def _cells(self, dtype: type, only: Sequence[int] | None = None) -> Values:
        with self._open() as file:
            self._first_line(file)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "loadtxt: input contained no data")
                return np.loadtxt(
                    file, dtype, delimiter=self.dialect.delimiter, quotechar='"', ndmin=2, comments=None, usecols=only
                )


def is_numeric(name: str) -> bool:
    """Whether a column name is a number: then the first line is a person's row, not a header."""
    try:
        float(name)
    except ValueError:
        return False
    return True
