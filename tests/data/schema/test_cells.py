"""Cells as numbers, days, codes and ids; whatever they hold, nothing is raised."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from thresher.data.reading.csv import PLAIN, Dialect
from thresher.data.reading.source import source_of
from thresher.data.schema import Column
from thresher.data.schema.cells import GAP, OTHER, codes_of, ids_of, numbers_of, several_codes_of, texts_of

NAN = float("nan")


def column(**entries):
    return Column.from_dict("x", entries)


NUMBER = column(bounds=[-10, 10])


@pytest.mark.parametrize(
    ("cells", "read"),
    [
        (["1", " 2.5 ", "-3e0", "", "n/a", "1,5", "12 kg", None], [1, 2.5, -3, NAN, NAN, NAN, NAN, NAN]),
        (["99", "-99", "inf", "-inf", "1e999", "nan"], [10, -10, 10, -10, 10, NAN]),
        ([1, 2.5, True, None, object(), [1]], [1, 2.5, 1, NAN, NAN, NAN]),
        (np.array([1, 2, 300]), [1, 2, 10]),
        (np.array([1.5, np.nan, np.inf], dtype=np.float32), [1.5, NAN, 10]),
        (np.array([True, False]), [1, 0]),
        (pd.Series([1, None, 3], dtype="Int64"), [1, NAN, 3]),
        (pd.Series(["1", "x", None]), [1, NAN, NAN]),
        (pd.Series(["1", "2", "1"], dtype="category"), [1, 2, 1]),
        (pl.Series([1, None, 3]), [1, NAN, 3]),
        (pl.Series(["1", None, "?"]), [1, NAN, NAN]),
        ([10**400, -(10**400)], [NAN, NAN]),
    ],
)
def test_numbers_are_read_clipped_or_a_gap(cells, read):
    assert np.array_equal(numbers_of(NUMBER, cells), read, equal_nan=True)


LONG = [2**53 + 1, 2**53 + 2, 2**53 + 3, 5]  # as floating-point numbers, not all of them would stay what they are
HOLDERS = {
    "list": list,
    "pandas Int64": lambda cells: pd.Series(cells, dtype="Int64"),
    "pandas UInt64": lambda cells: pd.Series(cells, dtype="UInt64"),
    "pandas of arrow": lambda cells: pd.Series(cells, dtype="int64[pyarrow]"),
    "pandas category": lambda cells: pd.Series(pd.Categorical(cells)),
    "pandas object": lambda cells: pd.Series(cells, dtype=object),
    "polars": pl.Series,
}


@pytest.mark.parametrize("held", HOLDERS.values(), ids=HOLDERS)
def test_a_gap_in_one_row_changes_the_whole_numbers_of_no_other(held):
    """As an array, a column with a gap becomes one of floating-point numbers."""
    declared = column(categories=[str(cell) for cell in LONG])
    for last in (7, None):
        cells = held([*LONG, last])
        assert codes_of(declared, cells).tolist()[:4] == [0, 1, 2, 3]
        assert ids_of(cells)[:4] == LONG
        assert texts_of(cells)[:4] == [str(cell) for cell in LONG]


def test_a_gap_in_one_row_of_a_parquet_file_changes_the_whole_numbers_of_no_other(tmp_path):
    declared = column(categories=[str(cell) for cell in LONG])
    for last in (7, None):
        parquet.write_table(pyarrow.table({"x": pyarrow.array([*LONG, last], pyarrow.int64())}), tmp_path / "t.parquet")
        (piece,) = source_of(tmp_path / "t.parquet", PLAIN).pieces(["x"], lambda part: None)
        assert codes_of(declared, piece["x"]).tolist()[:4] == [0, 1, 2, 3]
        assert ids_of(piece["x"])[:4] == LONG
        assert numbers_of(NUMBER, piece["x"]).tolist()[:4] == [10, 10, 10, 5]


def test_a_moment_is_the_day_that_its_own_clock_shows():
    """Moments of different zones may be equal, and the day of the first must not become that of the others."""
    day = column(bounds=[date(2020, 1, 1), date(2020, 12, 31)])
    here = datetime(2020, 5, 1, 23, 30, tzinfo=UTC)
    there = here.astimezone(timezone(timedelta(hours=2)))
    assert here == there
    assert numbers_of(day, [here, there]).tolist() == [121, 122]
    assert numbers_of(day, [there, here]).tolist() == [122, 121]


def test_moments_of_one_zone_are_read_as_they_are_beside_others():
    """pandas has a kind of column for moments of one zone; one cell of another kind makes objects of all of them."""
    day = column(bounds=[date(2020, 1, 1), date(2020, 12, 31)])
    late = [pd.Timestamp("2020-05-01 23:30", tz="America/New_York"), pd.Timestamp("2020-05-02", tz="America/New_York")]
    for last in (late[0], pd.NaT, pd.Timestamp("2020-05-01", tz="Europe/Berlin"), "unknown"):
        cells = pd.Series([*late, last])
        assert numbers_of(day, cells)[:2].tolist() == [121, 122]
    assert texts_of(pd.Series(late)) == ["2020-05-01", "2020-05-02"]


def unspeakable():
    raise LookupError


class Strange:
    __str__ = __float__ = lambda self: unspeakable()


STRANGE = [np.array([1, 2]), [1, 2], 10**5000, Decimal("sNaN"), object(), {1: 2}, b"x", 1j, pd.NaT, Strange()]


@pytest.mark.parametrize("held", [list, HOLDERS["pandas object"]], ids=["list", "pandas object"])
@pytest.mark.parametrize("strange", STRANGE, ids=lambda cell: type(cell).__name__)
def test_no_cell_raises_or_changes_how_others_are_read(strange, held):
    readers = [
        lambda cells: numbers_of(NUMBER, cells).tolist(),
        lambda cells: numbers_of(column(bounds=[date(2020, 1, 1), date(2020, 12, 31)]), cells).tolist(),
        lambda cells: codes_of(column(categories=["5", "x"]), cells).tolist(),
        lambda cells: codes_of(column(categories=[5, 6]), cells).tolist(),
        lambda cells: several_codes_of(column(categories=["5", "x"], separator=";"), cells)[1].tolist(),
        ids_of,
        texts_of,
    ]
    plain = ["5", "x", "2020-02-02"]
    for read in readers:
        np.testing.assert_equal(read(held([*plain, strange]))[:3], read(held(plain)))


def test_what_is_outside_may_be_declared_a_gap_and_a_comma_a_point():
    strict = column(bounds=[0, 10], outside="missing")
    assert np.array_equal(numbers_of(strict, ["5", "999", "-1", "10", "0"]), [5, NAN, NAN, 10, 0], equal_nan=True)
    assert numbers_of(NUMBER, ["1,5", "1.5"], Dialect(decimal=",")).tolist() == [1.5, 1.5]


@pytest.mark.parametrize(
    ("dialect", "cells", "read"),
    [
        (Dialect(thousands=","), ["1,234", "-1,234,567.5", " 12,345 ", "+1,000.", "12", "1e3"],
         [1234, -1234567.5, 12345, 1000, 12, 1000]),
        (Dialect(decimal=",", thousands="."), ["1.234", "6.023,50", "800,25", "-1.000.000"],
         [1234, 6023.5, 800.25, -1e6]),
        (Dialect(decimal=",", thousands=" "), ["1 234,5", "1\u00a0234", "1\u202f234\u202f567"],
         [1234.5, 1234, 1234567]),
        (Dialect(thousands="'"), ["1'234.5", 1234.5, None], [1234.5, 1234.5, NAN]),
        (Dialect(thousands=","), ["1,23", "12,34,567", "1234,567", "1,234,56", "1.5,000", "1,2"], [NAN] * 6),
        (Dialect(decimal=",", thousands="."), ["3.24", "01.02.2020", "192.168.0.1"], [NAN] * 3),
    ],
)  # fmt: skip
def test_groups_of_digits_are_of_three_or_a_gap(dialect, cells, read):
    np.testing.assert_array_equal(numbers_of(column(bounds=[-1e7, 1e7]), cells, dialect), read)


@given(st.floats(-1e12, 1e12), st.integers(0, 6), st.sampled_from([(".", ","), (".", " "), (".", "'"), (",", ".")]))
def test_numbers_are_read_as_they_were_written(number, digits, marks):
    decimal, thousands = marks
    written = f"{number:,.{digits}f}"
    cell = written.translate(str.maketrans({",": thousands, ".": decimal}))
    read = numbers_of(column(bounds=[-1e12, 1e12]), [cell], Dialect(decimal=decimal, thousands=thousands))
    assert read == [float(written.replace(",", ""))]


DAYS = column(bounds=[date(2020, 1, 1), date(2020, 12, 31)])


@pytest.mark.parametrize(
    ("cells", "read"),
    [
        (["2020-01-01", " 2020-01-31 ", "2020-02-01 23:59:59", "2020-02-01T10:00:00Z"], [0, 30, 31, 31]),
        (["1999-01-01", "2031-01-01", "31.12.2020", "", None, "2020-13-01"], [0, 365, NAN, NAN, NAN, NAN]),
        ([date(2020, 1, 2), datetime(2020, 1, 3, 12), NAN, 5], [1, 2, NAN, NAN]),
        (np.array(["2020-01-05", "NaT"], dtype="datetime64[ns]"), [4, NAN]),
        (pd.Series(pd.to_datetime(["2020-01-05", None])), [4, NAN]),
        (pl.Series([date(2020, 1, 5), None]), [4, NAN]),
    ],
)
def test_days_are_counted_from_the_first_bound(cells, read):
    assert np.array_equal(numbers_of(DAYS, cells), read, equal_nan=True)


def test_a_format_says_how_days_are_written():
    german = column(bounds=["2020-01-01", "2020-12-31"], format="%d.%m.%Y")
    assert np.array_equal(numbers_of(german, ["02.01.2020", "2020-01-02"]), [1, NAN], equal_nan=True)


def test_categories_are_codes_and_everything_else_is_a_gap_or_undeclared():
    words = column(categories=["a", "b", "1"])
    assert codes_of(words, ["b", " a ", "A", "", None, NAN, "zzz", 1, 1.0, pd.NA]).tolist() == [
        1, 0, OTHER, GAP, GAP, GAP, OTHER, 2, 2, GAP,
    ]  # fmt: skip
    numbers = column(categories=[1, 2.5])
    assert codes_of(numbers, ["1", "1.0", "01", 1, "2.5", "3", "x", ""]).tolist() == [0, 0, 0, 0, 1, OTHER, OTHER, GAP]
    assert codes_of(words, pd.Series(["a", None, "b"], dtype="category")).tolist() == [0, GAP, 1]
    assert codes_of(words, np.array(["a", "q"])).tolist() == [0, OTHER]


def test_a_cell_may_hold_several_categories_each_once():
    several = column(categories=["a", "b"], separator=";")
    rows, codes = several_codes_of(several, ["b; a", "b;b", "", None, "z;a", ";"])
    pairs = sorted(zip(rows.tolist(), codes.tolist(), strict=True))
    assert pairs == [(0, 0), (0, 1), (1, 1), (2, GAP), (3, GAP), (4, OTHER), (4, 0), (5, GAP)]


def test_ids_are_kept_and_rows_without_one_belong_together():
    assert ids_of([" p1 ", "p2", "", None, NAN, 7, 7.0]) == ["p1", "p2", "(missing)", "(missing)", "(missing)", 7, 7.0]
