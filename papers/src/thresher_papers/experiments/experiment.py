"""What an experiment is: the cells it consists of, how one is run, and what its rows show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thresher.report.charts import Chart

__all__ = ["Cell", "Experiment", "Grid", "Note", "Part", "Row", "Verdict"]

Cell = Mapping[str, Any]
"""The arguments of one run, plain JSON: setting, seed, ..."""

Row = Mapping[str, Any]
"""One measured number with what it belongs to: setting, method, epsilon, seed, value, ..."""


@dataclass(frozen=True)
class Grid:
    """A table; ``title`` says what its cells are."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Note:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Verdict:
    """What came of a claim, in one sentence with numbers; ``errata`` is what it rests on. Computed, never typed."""

    text: str
    holds: bool
    errata: tuple[str, ...] = ()


Part = Grid | Chart | Note | Verdict


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper: what it printed, what its formula really gives, what the sound version gives."""

    name: str
    title: str
    source: str  # where it stands in the paper
    claim: str  # what the paper says of it
    about: str  # the law or data, and every choice that the paper leaves open
    cells: Callable[[bool], list[Cell]]  # of the quick run, or of the full one
    run: Callable[..., list[Row]]  # of one cell's arguments; the same cell gives the same rows
    show: Callable[[Sequence[Row]], list[Part]]
    needs: tuple[str, ...] = ()  # real sets, by their names in thresher_papers.datasets
    extra: str | None = None  # of pyproject.toml
