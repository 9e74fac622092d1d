"""Files of svmlight: a target and the cells that are not 0 in each line, at once or a range of lines."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy import sparse

from thresher.privacy.arrays import Floats

__all__ = ["PIECE", "READ", "ends_of", "first_column", "line_ranges", "read_svmlight", "renumbered"]

PIECE = 2**26  # bytes that are parsed at a time

READ = (
    "how many columns the svmlight file has, and whether it counts them from 0 or from 1, is public: the indices that "
    "rows hold told both; give a .csv, .parquet or .npz file instead"
)


def read_svmlight(path: Path, start: int = 0, stop: int | None = None) -> tuple[sparse.csr_matrix, Floats]:
    """The rows between two bytes of the file, with the columns' numbers as they stand, and the targets."""
    from sklearn.datasets import load_svmlight_file

    try:
        if stop is None:
            return load_svmlight_file(str(path), zero_based=True)  # type: ignore[no-any-return]
        with path.open("rb") as file:
            file.seek(start)
            text = io.BytesIO(file.read(stop - start))
        return load_svmlight_file(text, zero_based=True)  # type: ignore[no-any-return]
    except (ValueError, OverflowError):
        raise ValueError(f"DATA={str(path)!r} is not svmlight: each line must be 'target column:value ...'") from None


def ends_of(X: sparse.csr_matrix) -> tuple[float, float]:
    """The lowest and the highest number of a column; where there is none, infinity and minus infinity."""
    numbers = X.indices.astype(np.float64)
    return np.min(numbers, initial=np.inf), np.max(numbers, initial=-np.inf)


def first_column(lowest: float) -> int:
    """Whether columns are counted from 0 or from 1, by the lowest number of one."""
    return 1 if 0 < lowest < np.inf else 0


def renumbered(X: sparse.csr_matrix, first: int, columns: int | None = None) -> sparse.csr_matrix:
    """The same rows, columns counted from 0; there are as many as said, or as the highest number tells."""
    width = X.shape[1] - first if columns is None else columns
    return type(X)((X.data, X.indices - first, X.indptr), shape=(X.shape[0], width))


def line_ranges(path: Path, piece: int) -> Iterator[tuple[int, int]]:
    """Ranges of about so many bytes that begin and end where lines do.

    scikit-learn's own offset and length would read a row twice where a comment lies on the border.
    """
    size, start = path.stat().st_size, 0
    with path.open("rb") as file:
        while start < size:
            file.seek(min(start + piece, size))
            file.readline()
            yield start, file.tell()
            start = file.tell()
