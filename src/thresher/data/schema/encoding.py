"""From declared columns to the columns of a matrix and back: one-hot, gaps, scaling to the bounds, original units."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from thresher.data.reading.csv import PLAIN, Dialect
from thresher.data.schema.cells import codes_of, numbers_of, several_codes_of
from thresher.data.schema.column import Category, Column
from thresher.data.typing import Cells
from thresher.privacy.arrays import Floats, Indices

__all__ = ["EncodedCells", "Encoding"]

Matrix: TypeAlias = Floats | sparse.csr_array

Codes: TypeAlias = NDArray[np.int32]

ReadCells: TypeAlias = Floats | Codes | tuple[Codes, Codes]
"""Numbers, codes of categories, or (row, code) of each category where a cell may hold several."""

Entries: TypeAlias = tuple[Indices, Indices, Floats]

SPARSE_BELOW = 0.25  # of the entries of a row: with fewer that are not zero, rows are kept sparse


@dataclass(frozen=True)
class Encoding:
    """The matrix that the features of a schema become. Public: it follows from the schema alone.

    A number or date is one column, clipped to its bounds; a category is one column of 0 and 1 for each declared name
    but the base; a gap may have a column of 0 and 1, too. With ``scale``, a number x enters a fit as (x - centre) /
    spread in [-1, 1], the centre being what is typical. Models are fitted on scaled columns and kept in original units,
    which is the same model: coef / spread, and an intercept that is smaller by the sum of coef * centre / spread.

    Attributes
    ----------
    features : tuple of Column
        What is encoded.
    centred : bool
        Whether what is typical becomes 0. Without an intercept nothing may be centred.
    dialect : Dialect
        How numbers are written in cells of text.
    """

    features: tuple[Column, ...]
    centred: bool
    dialect: Dialect = PLAIN

    @cached_property
    def blocks(self) -> list[list[str]]:
        """The names of the columns that each feature becomes."""
        return [_names(column) for column in self.features]

    @cached_property
    def names(self) -> list[str]:
        """The columns of the matrix."""
        return [name for block in self.blocks for name in block]

    @cached_property
    def units(self) -> list[str]:
        """The unit of each column; none for those of 0 and 1."""
        return [
            column.units if at == 0 and column.kind != "category" else ""
            for column, block in zip(self.features, self.blocks, strict=True)
            for at in range(len(block))
        ]

    @cached_property
    def centre(self) -> Floats:
        """What is taken off each column."""
        return self._per_column(self._centre, 0.0)

    @cached_property
    def spread(self) -> Floats:
        """What each column is divided by then."""
        return self._per_column(self._spread, 1.0)

    @cached_property
    def bounds(self) -> Floats:
        """The largest absolute value of each column, as it enters a fit."""
        return self._per_column(self._bound, 1.0)

    @cached_property
    def row_norm(self) -> float:
        """The l2 norm that no row exceeds: of a column of categories, one of 0 and 1 is set, or few are."""
        return math.sqrt(sum(self._squared_norm(column) for column in self.features))

    @property
    def is_sparse(self) -> bool:
        """Whether rows are kept sparse: few of their entries are not 0."""
        return len(self.features) < SPARSE_BELOW * len(self.names)

    # -- cells in, rows out --------------------------------------------------------------------------------------------

    def read(self, piece: Mapping[str, Cells]) -> EncodedCells:
        """Cells by name as numbers and codes: what has to be kept of a piece of a table."""
        return EncodedCells(
            len(piece[self.features[0].name]), [self._read(column, piece[column.name]) for column in self.features]
        )

    def matrix(self, pieces: Iterable[EncodedCells], *, scaled: bool) -> Matrix:
        """Rows of all pieces, dense or CSR, scaled as a fit takes them or in original units."""
        rows = [self._rows(piece, scaled) for piece in pieces]
        if not rows:
            return np.zeros((0, len(self.names)))
        return sparse.vstack(rows, format="csr") if self.is_sparse else np.concatenate(rows)

    def in_original_units(self, coefficients: Floats, intercepts: Floats) -> tuple[Floats, Floats]:
        """The same model for rows that are not scaled."""
        original = coefficients / self.spread
        return original, intercepts - original @ self.centre

    def _read(self, column: Column, cells: Cells) -> ReadCells:
        if column.kind != "category":
            return numbers_of(column, cells, self.dialect)
        return codes_of(column, cells) if column.separator is None else several_codes_of(column, cells)

    def _rows(self, piece: EncodedCells, scaled: bool) -> Matrix:
        entries: list[Entries] = []
        start = 0
        for column, block, cells in zip(self.features, self.blocks, piece.columns, strict=True):
            rows, at, values = _entries(column, cells)
            if scaled and column.kind != "category":
                values = np.where(at == 0, (values - self.centre[start]) / self.spread[start], values)
            entries.append((rows, start + at, values))
            start += len(block)
        rows, columns, values = (np.concatenate(parts) for parts in zip(*entries, strict=True))
        shape = (piece.n, len(self.names))
        if self.is_sparse:
            made = sparse.csr_array((values, (rows, columns)), shape=shape)
            made.eliminate_zeros()
            return made
        dense = np.zeros(shape)
        dense[rows, columns] = values
        return dense

    # -- public facts --------------------------------------------------------------------------------------------------

    def _per_column(self, of_numbers: Callable[[Column], float], of_indicators: float) -> Floats:
        values = [
            of_numbers(column) if at == 0 and column.kind != "category" else of_indicators
            for column, block in zip(self.features, self.blocks, strict=True)
            for at in range(len(block))
        ]
        return np.array(values, dtype=np.float64)

    def _centre(self, column: Column) -> float:
        return column.zero if self.centred and column.scale else 0.0

    def _spread(self, column: Column) -> float:
        """What a number is divided by."""
        return max(abs(end - self._centre(column)) for end in column.span) if column.scale else 1.0

    def _bound(self, column: Column) -> float:
        """The largest absolute value of a number, as it enters a fit."""
        return max(abs(end - self._centre(column)) for end in column.span) / self._spread(column)

    def _squared_norm(self, column: Column) -> float:
        if column.kind == "category":
            return 1.0 if column.separator is None else float(len(_names(column)))
        squared = self._bound(column) ** 2
        if not column.has_indicator:
            return squared
        return max(squared, ((column.fill - self._centre(column)) / self._spread(column)) ** 2 + 1.0)


@dataclass(frozen=True)
class EncodedCells:
    """Rows of a piece of a table, column by column."""

    n: int
    columns: list[ReadCells]


def _names(column: Column) -> list[str]:
    if column.kind != "category":
        return [column.name, *([f"{column.name} missing"] if column.has_indicator else [])]
    names = [f"{column.name}={category}" for category in _visible_categories(column)]
    names += [f"{column.name}=(other)"] if column.undeclared == "other" else []
    return names + ([f"{column.name} missing"] if column.has_indicator else [])


def _visible_categories(column: Column) -> list[Category]:
    """The categories that have a column: all but the one that they are compared with."""
    return [category for category in column.categories or () if column.base is None or category != column.base]


def _places(column: Column) -> NDArray[np.intp]:
    """Where each code stands among the columns of a category, those of OTHER and GAP last; -1 for nowhere."""
    shown = _visible_categories(column)
    places = [shown.index(category) if category in shown else -1 for category in column.categories or ()]
    if column.has_indicator:
        gap = len(_names(column)) - 1
    else:
        gap = -1 if column.missing is None else places[(column.categories or ()).index(column.missing)]
    return np.array([*places, len(shown) if column.undeclared == "other" else gap, gap], dtype=np.intp)


def _entries(column: Column, cells: Cells) -> Entries:
    """(row, column within the block, value) of what one feature puts into the matrix."""
    if column.kind == "category":
        return _indicators(column, cells)
    gaps = np.flatnonzero(np.isnan(cells))
    rows = np.arange(len(cells))
    values = cells.copy()
    values[gaps] = column.fill
    if not column.has_indicator:
        return rows, np.zeros_like(rows), values
    at = np.concatenate([np.zeros_like(rows), np.ones_like(gaps)])
    return np.concatenate([rows, gaps]), at, np.concatenate([values, np.ones(len(gaps))])


def _indicators(column: Column, cells: Cells) -> Entries:
    rows, codes = cells if column.separator is not None else (np.arange(len(cells)), cells)
    at = _places(column)[codes]
    rows, at = rows[at >= 0], at[at >= 0]
    if column.separator is not None:  # a gap that is filled by a category which is there as well counts once
        rows, at = np.unique(np.stack([rows, at]), axis=1)
    return rows, at, np.ones(len(at))
