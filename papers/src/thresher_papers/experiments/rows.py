"""Rows of results: means with standard errors, and files that give back what was written."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from thresher.report.charts import Series
from thresher_papers.experiments.experiment import Row

__all__ = ["Mean", "curve", "means", "read_rows", "values_of", "write_rows"]


class Mean(NamedTuple):
    """A mean over seeds; ``error`` is its standard error, nan for one seed."""

    value: float
    sd: float
    runs: int

    @property
    def error(self) -> float:
        return self.sd / math.sqrt(self.runs)

    def __str__(self) -> str:
        return f"{self.value:.3g}" if self.runs == 1 else f"{self.value:.3g} ± {self.error:.1g}"


def means(rows: Iterable[Row], by: Sequence[str], value: str) -> dict[tuple[Any, ...], Mean]:
    """The mean of ``value`` for every combination of the columns ``by``, in the order of the rows."""
    groups: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row[value])
    return {key: Mean(float(np.mean(found)), _deviation(found), len(found)) for key, found in groups.items()}


def _deviation(found: list[float]) -> float:
    if len(found) == 1 or not np.all(np.isfinite(found)):
        return math.nan
    return float(np.std(found, ddof=1))


def curve(points: Mapping[Any, Mean]) -> Series:
    """Means against what they are keyed by, in its order."""
    xs = sorted(points)
    return Series(xs, [points[x].value for x in xs], [points[x].error for x in xs])


def values_of(rows: Iterable[Row], name: str) -> list[Any]:
    """The values of a column, each once, in the order of the rows."""
    return list(dict.fromkeys(row[name] for row in rows))


def write_rows(rows: Sequence[Row], path: Path) -> None:
    """As CSV and, where pyarrow is installed, as Parquet beside it."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        return
    table = pyarrow.Table.from_pydict({name: [row.get(name) for row in rows] for name in names})
    parquet.write_table(table, path.with_suffix(".parquet"))


def read_rows(path: Path) -> list[Row]:
    """Numbers as numbers, nothing as None."""
    with path.open(newline="") as file:
        return [{name: _plain(text) for name, text in row.items()} for row in csv.DictReader(file)]


def _plain(text: str) -> Any:
    if text in ("", "True", "False"):
        return {"": None, "True": True, "False": False}[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
