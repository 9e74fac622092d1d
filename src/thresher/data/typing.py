"""Tables by what is in them: anything that the readers of this room take, and what they make of it."""

from __future__ import annotations

from typing import Any, TypeAlias

from numpy.typing import NDArray

__all__ = ["Cell", "Cells", "Column", "Table", "Values"]

Table: TypeAlias = Any
"""Rows: an array, a SciPy sparse matrix, a frame of pandas, polars or Arrow, a Dask collection; with a schema also the
path of a file. No type of Python's covers them, and no library of them need be installed."""

Column: TypeAlias = Any
"""One value for each row of a table: targets, labels, ids of people."""

Cells: TypeAlias = Any
"""The cells of one column as a reader gives them: a list, an array, a column of a frame."""

Cell: TypeAlias = Any
"""What one of them holds: a number, a text, a date, whatever stands for a gap."""

Values: TypeAlias = NDArray[Any]
"""An array of numbers, or of texts."""
