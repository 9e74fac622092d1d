"""What tables may hold: numbers, and clear refusals of anything else. Errors name columns, never cell values."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from thresher.data.reading.frames import cells_by_name
from thresher.data.typing import Cells, Column, Table, Values
from thresher.privacy.arrays import Floats

__all__ = [
    "MOST_COLUMNS", "check_column", "check_width", "first_names", "numeric_target",
    "reject_missing", "reject_text", "without_counts", "without_values",
]  # fmt: skip

MOST_COLUMNS = 2**27  # of files: coefficients for so many take a gigabyte


def reject_text(X: Table) -> None:
    """Raise if a column of a frame or array cannot be numbers; says which column and what to do."""
    columns = cells_by_name(X)
    if columns is not None:
        for name, cells in columns.items():
            check_column(cells, repr(str(name)))
    elif getattr(X, "dtype", None) is not None and X.dtype.kind in "OUS" and np.ndim(X) == 2:
        for j in range(X.shape[1]):
            check_column(X[:, j], str(j))


def without_values(message: str) -> str:
    """A message of scikit-learn or NumPy without the cells it quotes."""
    message = re.sub(
        r"could not convert string to float.*", "X holds text; encode it as numbers first", message, flags=re.S
    )
    message = re.sub(r"(Complex data not supported).*", r"\1", message, flags=re.S)
    return re.sub(r"\s*array=.*?(?=Reshape|\Z)", " ", message, flags=re.S)


def without_counts(message: str) -> str:
    """A message of scikit-learn or NumPy without the numbers of rows it quotes, which are private where people are the
    unit, or where n_public stands for them."""
    message = re.sub(r"(inconsistent numbers of samples).*", r"\1; give a target for each row", message, flags=re.S)
    message = re.sub(r"\(\d+(?=[,)])", "(rows", message)  # the first entry of a shape
    return re.sub(r"\b\d+ (sample\(s\))", r"too few \1", message)


def numeric_target(y: Column) -> Floats | None:
    """``y`` as float64 numbers (None, which scikit-learn refuses itself, stays None)."""
    try:
        return None if y is None else np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "y: a regression target must be numbers and this one holds text; for class labels use SparseClassifier "
            "(--task classification)"
        ) from None


def check_column(column: Cells, name: str) -> None:
    """Raise if the column cannot be numbers."""
    kind = getattr(getattr(column, "dtype", None), "kind", None)
    if kind in tuple("biuf"):
        return
    try:
        np.asarray(column, dtype=np.float64)
    except (ValueError, OverflowError):
        raise ValueError(
            f"X: column {name} holds text; declare its categories in a schema (thresher schema draft writes a first "
            "one), encode it as numbers, or leave it out"
        ) from None
    except TypeError:  # not text but something stranger: scikit-learn's own message says what
        return


def check_width(path: Path, columns: int) -> None:
    """One wild index of a sparse file makes a table so wide that no model of it fits into memory."""
    if columns > MOST_COLUMNS:
        raise ValueError(f"DATA={str(path)!r} has {columns} columns, more than {MOST_COLUMNS}; is an index wrong?")


def reject_missing(column: Values, name: str, remedy: str) -> None:
    """Raise if a cell is missing, which no row may be left out for."""
    kind = column.dtype.kind
    if (kind == "f" and np.any(np.isnan(column))) or (kind == "U" and np.any(column == "")):
        raise ValueError(
            f"{name} has missing values; declare in a schema what they count as (thresher schema draft), fill them "
            f"with a public constant, or {remedy}"
        )


def first_names(columns: Iterable[str]) -> str:
    """The first names, and how many there are."""
    names = list(columns)
    return ", ".join(names[:10]) + (f", ... ({len(names)} in all)" if len(names) > 10 else "")
