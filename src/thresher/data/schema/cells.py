"""Cells of one column, read as the schema declares: numbers with NaN for gaps, or codes of categories.

Each cell is read by itself, so one row of the table decides about one row of the result and nothing else. Nothing here
raises for what a cell holds: what cannot be read is a gap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime

import numpy as np
from numpy.typing import NDArray

from thresher.data.reading.csv import PLAIN, Dialect
from thresher.data.schema.column import Column
from thresher.data.typing import Cell, Cells
from thresher.privacy.arrays import Floats

__all__ = [
    "FAULTS", "GAP", "NOBODY", "OTHER", "codes_of", "faults_of", "ids_of", "numbers_of", "several_codes_of", "texts_of",
]  # fmt: skip


GAP, OTHER = -1, -2  # codes of cells that hold no declared category: the last and the last but one of a list
NOBODY = "(missing)"  # whose rows are that tell no person
FAULTS = ("missing", "unreadable or undeclared", "outside of bounds")  # what may be wrong with a cell; one at a time


def numbers_of(column: Column, cells: Cells, dialect: Dialect = PLAIN) -> Floats:
    """Numbers, or days since the first of the bounds; outside of the bounds, as declared: clipped or a gap."""
    read = _numbers_or_days(column, cells, dialect)
    low, high = column.span
    if column.outside == "missing":
        with np.errstate(invalid="ignore"):
            return np.where((read >= low) & (read <= high), read, np.nan)
    clipped: Floats = np.clip(read, low, high)  # NaN stays NaN
    return clipped


def codes_of(column: Column, cells: Cells) -> NDArray[np.int32]:
    """The position of each cell's category; GAP or OTHER if it has none."""
    get = _lookup(column).get
    return np.fromiter((get(key, OTHER) for key in map(_key(column), _python_values(cells))), np.int32, len(cells))


def several_codes_of(column: Column, cells: Cells) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(row, code) of each category that cells with a separator hold, each once; a cell without any has a gap."""
    get = _lookup(column).get
    rows, codes = [], []
    for row, text in enumerate(map(_text, _python_values(cells))):
        parts = {get(part.strip(), OTHER) for part in text.split(column.separator)}
        found = sorted(parts - {GAP}) or [GAP]
        rows += [row] * len(found)
        codes += found
    return np.array(rows, dtype=np.int32), np.array(codes, dtype=np.int32)


def ids_of(cells: Cells) -> list[Cell]:
    """Whose each row is: numbers as they are, text without blanks at its ends; rows without an id share one."""
    return [_person(cell) for cell in _python_values(cells)]


def texts_of(cells: Cells) -> list[str]:
    """Cells as names of categories, "" for gaps; days in their usual form."""
    if _kind(cells) == "M":
        cells = _calendar_days(cells)
    return [_text(cell) for cell in _python_values(cells)]


def faults_of(column: Column, cells: Cells, dialect: Dialect = PLAIN) -> NDArray[np.int8]:
    """What is wrong with each cell: its position in FAULTS, or -1. Undeclared categories are unreadable."""
    faults = np.full(len(cells), -1, dtype=np.int8)
    if column.kind == "category":
        codes = codes_of(column, cells) if column.separator is None else _least_codes(column, cells)
        faults[codes == GAP], faults[codes == OTHER] = 0, 1
        return faults
    empty = np.array([text == "" for text in texts_of(cells)], dtype=bool)
    if column.kind != "none":
        read, (low, high) = _numbers_or_days(column, cells, dialect), column.span
        with np.errstate(invalid="ignore"):
            faults[(read < low) | (read > high)] = 2
        faults[np.isnan(read)] = 1
    faults[empty] = 0
    return faults


# -- numbers and dates -------------------------------------------------------------------------------------------------


def _numbers_or_days(column: Column, cells: Cells, dialect: Dialect) -> Floats:
    """Numbers, or days since the first of the bounds, wherever they lie; NaN for gaps."""
    return _days(column, cells) if column.kind == "date" else _numbers(cells, dialect)


def _numbers(cells: Cells, dialect: Dialect) -> Floats:
    if _kind(cells) in "biuf":
        return np.asarray(cells, dtype=np.float64)
    listed = _python_values(cells)
    if not dialect.is_pythonic:
        listed = [dialect.pythonic(cell) if isinstance(cell, str) else cell for cell in listed]
    return _read_each(float, listed)


def _days(column: Column, cells: Cells) -> Floats:
    first = column.first_day
    if _kind(cells) == "M":
        found = _calendar_days(cells)
        days = (found - np.datetime64(first, "D")).astype(np.float64)
        days[np.isnat(found)] = np.nan
        return days
    start = first.toordinal()
    read = date.fromisoformat if column.format is None else _reader(column.format)
    known: dict[str, float] = {}  # few days, many cells

    def day(cell: Cell) -> float:
        if not isinstance(cell, str):  # moments that are equal may be of different days, each by its own clock
            return float(_date(cell, read).toordinal() - start)
        if cell not in known:
            known[cell] = float(_date(cell, read).toordinal() - start)
        return known[cell]

    return _read_each(day, _python_values(cells))


def _calendar_days(cells: Cells) -> NDArray[np.datetime64]:
    """Of moments with a time zone, the day by the clock there, as of each by itself where a column has several."""
    local = cells.dt.tz_localize(None) if getattr(cells.dtype, "tz", None) is not None else cells
    return np.asarray(local, dtype="datetime64[D]")


def _reader(form: str) -> Callable[[str], date]:
    return lambda text: datetime.strptime(text, form).date()


def _date(cell: Cell, read: Callable[[str], date]) -> date:
    if isinstance(cell, datetime):
        return cell.date()
    if isinstance(cell, date):
        return cell
    text = cell.strip()
    try:
        return read(text)
    except ValueError:
        return read(text[:10])  # a day with a time behind it


def _read_each(read: Callable[[Cell], float], cells: Sequence[Cell]) -> Floats:
    """Every cell read; those that cannot be are NaN."""
    try:
        return np.fromiter(map(read, cells), np.float64, len(cells))
    except Exception:  # of whatever kind: a cell may be any object

        def careful(cell: Cell) -> float:
            try:
                return read(cell)
            except Exception:
                return math.nan

        return np.fromiter(map(careful, cells), np.float64, len(cells))


def _kind(cells: Cells) -> str:
    """NumPy's letter for what an array holds; "O" for lists."""
    return str(getattr(getattr(cells, "dtype", None), "kind", "O"))


# -- categories and ids ------------------------------------------------------------------------------------------------


def _lookup(column: Column) -> dict[Cell, int]:
    key = _key(column)
    return {key(category): at for at, category in enumerate(column.categories or ())} | {key(None): GAP}


def _least_codes(column: Column, cells: Cells) -> NDArray[np.int32]:
    """Of cells with several categories: OTHER if one is not declared, GAP if there is none."""
    rows, codes = several_codes_of(column, cells)
    least = np.zeros(len(cells), dtype=np.int32)
    np.minimum.at(least, rows, codes)
    return least


def _key(column: Column) -> Callable[[Cell], Cell]:
    return _as_number if column.of_numbers else _text


def _as_number(cell: Cell) -> Cell:
    """Categories that are numbers are compared as numbers; what is none is text, which is no category."""
    try:
        value = float(cell)
    except Exception:
        return _text(cell)
    return "" if math.isnan(value) else value


def _text(cell: Cell) -> str:
    """A cell as a category's name; a whole number in floating point as it would be written."""
    if isinstance(cell, str):
        return cell.strip()
    try:
        if cell is None or type(cell).__name__ == "NAType" or cell != cell:  # NaN and NaT differ from themselves
            return ""
        return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
    except Exception:
        return ""


def _person(cell: Cell) -> Cell:
    if isinstance(cell, (int, float)) and cell == cell:
        return cell
    return _text(cell) or NOBODY


def _python_values(cells: Cells) -> Sequence[Cell]:
    """As Python's own values, which are compared and looked up faster than NumPy's.

    A column of a frame is listed by itself: an array of whole numbers and one gap would be of floating-point numbers.
    """
    if isinstance(cells, (list, tuple)):
        return cells
    if str(getattr(cells, "dtype", "")) == "category":  # of pandas
        cells = cells.astype(object)
    listed: Iterable[Cell] = cells.to_list() if hasattr(cells, "to_list") else np.asarray(cells).tolist()
    return list(listed)
