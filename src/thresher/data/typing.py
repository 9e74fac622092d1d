"""What users hand in, by name: anything that the readers of this room take."""

from __future__ import annotations

from typing import Any

__all__ = ["Column", "Table"]

Table = Any
"""Rows: an array, a SciPy sparse matrix, a frame of pandas, polars or Arrow, a Dask collection; with a schema also the
path of a file. No type of Python's covers them, and no library of them need be installed."""

Column = Any
"""One value for each row of a table: targets, labels, ids of people."""
