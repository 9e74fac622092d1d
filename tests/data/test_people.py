"""Ids of people: any numbers or text, numbered in order of appearance; what cannot be told apart is refused."""

import datetime

import numpy as np
import pandas
import polars
import pytest

from thresher.data.people import person_of_each_row

IDS = {
    "list of text": ["b", "a", "b", "c"],
    "list of numbers": [7, -3, 7, 10**30],
    "text": np.array(["b", "a", "b", "c"]),
    "bytes": np.array([b"b", b"a", b"b", b"c"]),
    "whole numbers": np.array([2**60 + 1, 2**60, 2**60 + 1, 5]),
    "floats": np.array([1.5, 0.0, 1.5, -2.0]),
    "objects": np.array(["b", 1, "b", 2.5], dtype=object),
    "pandas text": pandas.Series(["b", "a", "b", "c"], index=[9, 8, 7, 6]),
    "pandas categories": pandas.Series(["b", "a", "b", "c"]).astype("category"),
    "pandas Int64": pandas.Series([2, 1, 2, 3], dtype="Int64"),
    "polars text": polars.Series(["b", "a", "b", "c"]),
    "polars numbers": polars.Series([2, 1, 2, 3]),
}


@pytest.mark.parametrize("groups", IDS.values(), ids=IDS)
def test_people_are_numbered_in_the_order_in_which_they_appear(groups):
    owners = person_of_each_row(groups, 4)
    assert owners.tolist() == [0, 1, 0, 2]
    assert owners.dtype == np.intp


def test_numbers_that_are_equal_are_one_person_and_text_is_not():
    assert person_of_each_row([1, 1.0, True, "1"], 4).tolist() == [0, 0, 0, 1]


WRONG = {
    "None": [1, None, 2],
    "NaN": [1.0, float("nan"), float("nan")],
    "a nullable column": pandas.Series([1, None, 2], dtype="Int64"),
    "a polars null": polars.Series(["a", None, "b"]),
    "no text": ["a", "", "b"],
    "lists": [[1], [2, 3], [4]],
    "dates": np.array(["2020-01-01", "2020-01-02", "2020-01-01"], dtype="datetime64[D]"),
    "date objects": np.array([datetime.date(2020, 1, 1)] * 3, dtype=object),
}


@pytest.mark.parametrize("groups", WRONG.values(), ids=WRONG)
def test_a_missing_id_is_refused(groups):
    """Two rows without an id would pass for two people, each with half of the protection."""
    with pytest.raises(ValueError, match="an id is missing, or is neither a number nor text"):
        person_of_each_row(groups, 3)


@pytest.mark.parametrize("groups", [[1, 2], [1, 2, 3, 4], [[1, 2, 3]], 5, "abc"])
def test_one_id_per_row_is_asked_for_and_no_number_of_rows_is_told(groups):
    with pytest.raises(ValueError, match="one id for each row") as refused:
        person_of_each_row(groups, 3)
    assert not any(letter.isdigit() for letter in str(refused.value))


def test_ids_that_floats_cannot_tell_apart_are_refused():
    with pytest.raises(ValueError, match="lose digits"):
        person_of_each_row([2.0**60, 2.0**60 + 1, 1.0], 3)


def test_one_person_alone_is_refused():
    with pytest.raises(ValueError, match="a single id"):
        person_of_each_row(["a", "a", "a"], 3)
