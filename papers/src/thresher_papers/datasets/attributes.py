"""Adult and KDDCup99: numbers over public bounds, attributes one-hot over published lists, rows of norm 1.

A row is made of itself and of public facts alone; nothing is learnt from other rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher_papers.datasets import levels
from thresher_papers.datasets.files import Files, loader
from thresher_papers.datasets.formats import arrays, lines, one_hot, unit_rows
from thresher_papers.datasets.real_set import RealSet, shuffled

__all__ = ["adult", "kddcup99"]

Cells = Sequence[Sequence[str]]
UNIT = {"row_bound": 1.0, "classes": (-1, 1)}
OFFICIAL = 32_561
"""Rows of adult.data."""

TRAINING, TESTING = 70_000, 20_000
"""Rows drawn of KDDCup99's files: as many as the thesis draws."""


class Fields(NamedTuple):
    """Numbers, codes of attributes (-1: a value of no list), +1 or -1; and what the columns are called."""

    numbers: Any
    codes: Any
    y: NDArray[np.int8]
    number_names: Sequence[str]
    levels: Mapping[str, Sequence[str]]

    @property
    def names(self) -> list[str]:
        return [*self.number_names, *(f"{name}={level}" for name, found in self.levels.items() for level in found)]

    def rows(self, numbers: Any) -> Any:
        counts = [len(found) for found in self.levels.values()]
        return unit_rows(np.hstack([numbers, *one_hot(self.codes, counts)]))


@loader
def adult(here: Files) -> RealSet:
    """UCI Adult, its official split: more than 50,000 dollars a year?"""
    train, test = adult_fields(here)
    bounds = [levels.ADULT_BOUNDS[name] for name in train.number_names]
    X, X_test = (part.rows(part.numbers / bounds) for part in (train, test))
    about = "Adult: over 50,000 dollars a year? Numbers over public bounds, attributes one-hot, rows over their norm"
    return RealSet(here.name, X, train.y, X_test, test.y, UNIT, about, train.names)


def adult_fields(here: Files) -> tuple[Fields, Fields]:
    """The training and the test rows of Adult as they were published."""
    if files := here.all_of("adult.data", "adult.test"):
        train, test = (_parsed(file, _cells(lines(file)), _adult_facts) for file in files)
        return train, test
    if files := here.all_of("adult.npz"):
        return _stored(files[0], "train"), _stored(files[0], "test")
    if here.download:
        return _fetched_adult()
    raise here.missing(fetched=True)


@loader
def kddcup99(here: Files) -> RealSet:
    """70,000 connections of the 10 % file and 20,000 of ``corrected``, whose attacks are not all known to the first:
    an attack or not? For rows that are drawn alike, split the training rows.
    """
    if files := here.all_of("kddcup.data_10_percent", "corrected"):
        train, test = (
            _parsed(file, _cells(_some(lines(file), count)), _kdd_facts)
            for file, count in zip(files, (TRAINING, TESTING), strict=True)
        )
    elif files := here.all_of("kddcup99_70k.npz"):
        train, test = (_stored(files[0], part) for part in ("train", "test"))
    elif here.download:
        train, test = _fetched_kddcup99()
    else:
        raise here.missing(fetched=True)
    bounds = np.log1p([levels.KDD_BOUNDS.get(name, 1.0) for name in train.number_names])
    X, X_test = (part.rows(np.log1p(part.numbers) / bounds) for part in (train, test))
    about = "KDDCup99: an attack? Logs of counts over public bounds, attributes one-hot, rows over their norm"
    return RealSet(here.name, X, train.y, X_test, test.y, UNIT, about, train.names)


# -- sources ----------------------------------------------------------------------------------------------------


def _stored(path: Path, part: str) -> Fields:
    data = arrays(path)
    found = {str(name): [str(level) for level in data[f"levels_{name}"]] for name in data["cat_names"]}
    names = [str(name) for name in data["num_names"]]
    return Fields(data[f"X_num_{part}"], data[f"X_cat_{part}"], data[f"y_{part}"], names, found)


def _cells(rows: Iterable[str]) -> list[list[str]]:
    return [[cell.strip() for cell in row.split(",")] for row in rows]


def _some(rows: Sequence[Any], count: int) -> list[Any]:
    """``count`` rows drawn without replacement, or all."""
    return [rows[at] for at in shuffled(len(rows), seed=0)[:count]]


def _adult_facts(cells: Cells) -> Fields:
    y = [1 if row[len(levels.ADULT_COLUMNS)].startswith(">50K") else -1 for row in cells]
    return _coded(cells, levels.ADULT_COLUMNS, levels.ADULT_LEVELS, y)


def _kdd_facts(cells: Cells) -> Fields:
    y = [-1 if row[len(levels.KDD_COLUMNS)].startswith("normal") else 1 for row in cells]
    return _coded(cells, levels.KDD_COLUMNS, levels.KDD_LEVELS, y)


def _coded(cells: Cells, columns: Sequence[str], lists: Mapping[str, Sequence[str]], y: list[int]) -> Fields:
    numbers = [at for at, name in enumerate(columns) if name not in lists]
    codes = {name: {level: code for code, level in enumerate(found)} for name, found in lists.items()}
    return Fields(
        np.array([[float(row[at]) for at in numbers] for row in cells]),
        np.array([[codes[name].get(row[columns.index(name)], -1) for name in lists] for row in cells]),
        np.array(y, dtype=np.int8),
        [columns[at] for at in numbers],
        lists,
    )


def _parsed(path: Path, cells: Cells, facts: Any) -> Fields:
    """No message quotes a cell."""
    try:
        found: Fields = facts(cells)
    except (ValueError, IndexError):
        raise ValueError(f"{path} does not have the columns it was published with; take the original file") from None
    return found


def _fetched_adult() -> tuple[Fields, Fields]:
    """OpenML's copy has the rows of adult.data first, and nothing where the original has a question mark."""
    from sklearn.datasets import fetch_openml

    found = fetch_openml("adult", version=2, as_frame=False, parser="liac-arff")
    named = [found.categories.get(name) for name in found.feature_names]
    cells = [
        [_openml_cell(value, known) for value, known in zip(row, named, strict=True)] + [str(label)]
        for row, label in zip(found.data, found.target, strict=True)
    ]
    return _adult_facts(cells[:OFFICIAL]), _adult_facts(cells[OFFICIAL:])


def _openml_cell(value: Any, known: Sequence[str] | None) -> str:
    if known is None:
        return str(value)
    return known[int(value)] if value == value else "?"


def _fetched_kddcup99() -> tuple[Fields, Fields]:
    """``corrected`` cannot be fetched: the test rows are others of the 10 % file."""
    from sklearn.datasets import fetch_kddcup99

    found = fetch_kddcup99(percent10=True)
    drawn = _some(range(len(found.target)), TRAINING + TESTING)
    cells = [[_kdd_cell(value) for value in (*found.data[at], found.target[at])] for at in drawn]
    return _kdd_facts(cells[:TRAINING]), _kdd_facts(cells[TRAINING:])


def _kdd_cell(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
