"""Folders that hold one table in several files, Parquet or svmlight, read through Dask a piece at a time."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.dask import Refused, reject_infinite
from thresher.data.tables import (
    SVMLIGHT_READ,
    Table,
    check_width,
    labels,
    listed,
    pyarrow_parquet,
    read_table,
    reject_missing,
    unreadable,
)

__all__ = ["read_folder", "tables_of"]

PIECE = 2**26  # bytes of an svmlight file that are parsed at a time
SVMLIGHT = (".svm", ".libsvm")


@dataclass(frozen=True)
class Folder:
    """What reads each piece, how many rows it has, and the target of all."""

    readers: list[partial[Any]]
    rows: list[int]
    columns: int
    names: list[str] | None
    y: NDArray[Any] | None


def read_folder(path: Path, target: str | None) -> Table:
    """The table as a Dask array with a partition for each piece, and the target in memory."""
    folder = _opened(path, target, only=None, columns=None)
    from dask import array, delayed

    shapes = [(rows, folder.columns) for rows in folder.rows]
    pieces = [
        array.from_delayed(delayed(_quietly)(reader), shape, dtype=np.float64)
        for reader, shape in zip(folder.readers, shapes, strict=True)
    ]
    assumptions = (SVMLIGHT_READ,) if folder.names is None else ()
    return Table(array.concatenate(pieces), folder.y, folder.names, assumptions=assumptions)


def tables_of(path: Path, only: list[str] | None, columns: int) -> Iterator[Table]:
    """A file's rows, or those of a folder's pieces one after the other, with ``columns`` or the columns in ``only``."""
    if not path.is_dir():
        yield read_table(path, None, only)
        return
    folder = _opened(path, None, only, columns)
    if not any(folder.rows):
        raise ValueError(f"DATA={str(path)!r} has no rows; give a folder that has some")
    for reader, rows in zip(folder.readers, folder.rows, strict=True):
        if rows > 0:
            yield Table(_or_raise(_quietly(reader)), None, folder.names)


def _opened(path: Path, target: str | None, only: list[str] | None, columns: int | None) -> Folder:
    files = sorted(file for file in path.iterdir() if file.suffix in (".parquet", *SVMLIGHT))
    if not files or len({file.suffix in SVMLIGHT for file in files}) > 1:
        raise ValueError(
            f"DATA={str(path)!r} is a folder with {'both' if files else 'no'} .parquet and .svm/.libsvm files; "
            "give one that holds the parts of one table, all of one kind"
        )
    return _svmlight(files, columns) if files[0].suffix in SVMLIGHT else _parquet(files, target, only)


# -- Parquet ----------------------------------------------------------------------------------------------------


def _parquet(files: list[Path], target: str | None, only: list[str] | None) -> Folder:
    facts = _in_parallel(partial(_parquet_facts, file, target) for file in files)
    names = [name for name in facts[0][0] if name != target] if only is None else only
    for file, (found, _, _) in zip(files, facts, strict=True):
        missing = sorted(set(names) - set(found))
        extra = sorted(set(found) - set(names) - {target}) if only is None else []
        if missing or extra:
            raise ValueError(
                f"DATA={str(file)!r}: {'no' if missing else 'an extra'} column {(missing or extra)[0]!r}, unlike "
                f"{files[0].name if only is None else 'the model'}; give parts of one table"
            )
    y = None if target is None else labels(np.concatenate([found for _, _, found in facts]))
    readers = [partial(_parquet_rows, file, names) for file in files]
    return Folder(readers, [rows for _, rows, _ in facts], len(names), names, y)


def _parquet_facts(file: Path, target: str | None) -> tuple[list[str], int, Any]:
    """The names of the columns, the number of rows and the target."""
    opened = pyarrow_parquet(file).ParquetFile(file)
    names = opened.schema_arrow.names
    if target is None:
        return names, opened.metadata.num_rows, None
    if target not in names:
        raise ValueError(f"--target={target!r} is not a column; the columns are {listed(names)}")
    y = opened.read(columns=[target]).column(0).to_numpy()
    reject_missing(y, f"y: column {target!r}", "choose another target: dropping rows by what they hold is not private")
    return names, len(y), y


def _parquet_rows(file: Path, names: list[str]) -> Any:
    X = read_table(file, None, names).X
    reject_infinite(X, names)
    return X


# -- svmlight ---------------------------------------------------------------------------------------------------


def _svmlight(files: list[Path], columns: int | None) -> Folder:
    """The lowest index of all pieces tells whether columns are counted from 0 or from 1, the highest how many."""
    pieces = [(file, start, stop) for file in files for start, stop in _line_ranges(file)]
    if not pieces:
        raise ValueError(f"DATA={str(files[0].parent)!r} has no rows; give a folder that has some")
    facts = _in_parallel(partial(_svm_facts, *piece) for piece in pieces)
    lowest, highest = (pick(fact[at] for fact in facts) for pick, at in ((min, 0), (max, 1)))
    first = 1 if 0 < lowest < np.inf else 0
    found = int(max(highest, 0)) + 1 - first
    if columns is not None and found > columns:
        raise ValueError(
            f"DATA={str(files[0].parent)!r} has {found} columns where the model has {columns}; leave the others out"
        )
    check_width(files[0].parent, found)
    width = found if columns is None else columns
    readers = [partial(_svm_rows, *piece, first, width) for piece in pieces]
    y = np.concatenate([fact[2] for fact in facts])
    return Folder(readers, [len(fact[2]) for fact in facts], width, None, y)


def _line_ranges(file: Path) -> Iterator[tuple[int, int]]:
    """Ranges of bytes of about PIECE that begin and end where lines do.

    scikit-learn's own offset and length would read a row twice where a comment lies on the border.
    """
    size, start = file.stat().st_size, 0
    with file.open("rb") as opened:
        while start < size:
            opened.seek(min(start + PIECE, size))
            opened.readline()
            yield start, opened.tell()
            start = opened.tell()


def _svm_facts(file: Path, start: int, stop: int) -> tuple[float, float, Any]:
    """The lowest and the highest index, and the targets."""
    X, y = _svm(file, start, stop)
    indices = X.indices.astype(np.float64)  # which has a lowest and a highest even where there is none
    return np.min(indices, initial=np.inf), np.max(indices, initial=-np.inf), y


def _svm_rows(file: Path, start: int, stop: int, first: int, columns: int) -> Any:
    X, _ = _svm(file, start, stop)
    X = type(X)((X.data, X.indices - first, X.indptr), shape=(X.shape[0], columns))
    reject_infinite(X)
    return X


def _svm(file: Path, start: int, stop: int) -> Any:
    """The rows with their indices as they stand, and the targets."""
    from sklearn.datasets import load_svmlight_file

    with file.open("rb") as opened:
        opened.seek(start)
        text = opened.read(stop - start)
    try:
        return load_svmlight_file(io.BytesIO(text), zero_based=True)
    except ValueError:
        raise ValueError(f"DATA={str(file)!r} is not svmlight: each line must be 'target column:value ...'") from None


# -- through Dask -----------------------------------------------------------------------------------------------


def _in_parallel(readers: Iterable[partial[Any]]) -> list[Any]:
    try:
        import dask
    except ImportError:
        raise ValueError("DATA is a folder: that needs one more package; run: pip install 'thresher[dask]'") from None
    return [_or_raise(answer) for answer in dask.compute(*(dask.delayed(_quietly)(reader) for reader in readers))]


def _quietly(reader: partial[Any]) -> Any:
    """What a reader of a file answers, or why it has no answer: Dask would log what a task says that raises."""
    file = str(reader.args[0])
    try:
        return reader()
    except Exception as error:
        if type(error) is not ValueError:  # not a message of ours: it may quote a cell
            return Refused(unreadable(file, error))
        return Refused(str(error) if file in str(error) else f"DATA={file!r}: {error}")


def _or_raise(answer: Any) -> Any:
    if isinstance(answer, Refused):
        raise ValueError(answer.message)
    return answer
