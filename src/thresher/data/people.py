"""Whose row is it? Ids of people, one per row, as numbers 0, 1, 2, ... in the order in which people first appear."""

from __future__ import annotations

from numbers import Real

import numpy as np

from thresher.data.typing import Cell, Column
from thresher.privacy.arrays import Indices

__all__ = ["person_of_each_row"]

LAST_WHOLE = 2.0**53  # up to here, different whole numbers are different floats


def person_of_each_row(groups: Column, rows: int, fewest: int = 2) -> Indices:
    """The number of each row's person, for ``rows`` rows. How many rows there are is private: no error tells it, and
    none tells whether there are ``fewest`` people where that is 0."""
    # of a list as it is: an array would make text of 1 and of 1.0, and so two people of one
    ids = np.asarray(groups, dtype=object if isinstance(groups, (list, tuple)) else None)
    if ids.ndim != 1 or len(ids) != rows:
        raise ValueError("groups must hold one id for each row of X: a list, array or column as long as X and y")
    values = ids.tolist()
    if not all(map(_is_id, values)):
        raise ValueError(
            "groups: an id is missing, or is neither a number nor text; give every row the id of its person"
        )
    if any(isinstance(value, float) and abs(value) > LAST_WHOLE for value in values):
        raise ValueError(
            "groups: ids beyond 2^53 lose digits as floating-point numbers, so that people would be mixed up; give "
            "whole numbers or text (in a .csv, a letter before each id)"
        )
    numbers: dict[Cell, int] = {}
    owners = np.fromiter((numbers.setdefault(value, len(numbers)) for value in values), np.intp, rows)
    if len(numbers) < fewest:
        raise ValueError(
            "groups holds a single id: one person cannot be hidden among others; give the id of each person"
        )
    return owners


def _is_id(value: Cell) -> bool:
    """Whether this names a person: NaN is not equal to itself, and two of them would pass for two people."""
    return isinstance(value, (str, bytes, Real)) and value == value and value not in ("", b"")
