"""Folders that hold one table in several files, Parquet or svmlight, read through Dask a piece at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np
from scipy import sparse

from thresher.data.dask import Refused, reject_infinite
from thresher.data.labels import label_array
from thresher.data.reading import svmlight
from thresher.data.reading.parquet import ParquetFile
from thresher.data.reading.table import NumericTable, read_table, reading_failure
from thresher.data.tables import check_width, first_names, reject_missing
from thresher.data.typing import Values
from thresher.privacy.arrays import Floats

__all__ = ["read_folder", "read_pieces"]

SVMLIGHT = (".svm", ".libsvm")

Answer = TypeVar("Answer")
Rows: TypeAlias = Floats | sparse.csr_matrix


@dataclass(frozen=True)
class Folder:
    """What reads each piece, how many rows it has, and the target of all."""

    readers: list[partial[Rows]]
    rows: list[int]
    columns: int
    names: list[str] | None
    y: Values | None


def read_folder(path: Path, target: str | None) -> NumericTable:
    """The table as a Dask array with a partition for each piece, and the target in memory."""
    folder = _open_folder(path, target, only=None, columns=None)
    from dask import array, delayed

    shapes = [(rows, folder.columns) for rows in folder.rows]
    pieces = [
        array.from_delayed(delayed(_answer_or_refusal)(reader), shape, dtype=np.float64)
        for reader, shape in zip(folder.readers, shapes, strict=True)
    ]
    assumptions = (svmlight.READ,) if folder.names is None else ()
    return NumericTable(array.concatenate(pieces), folder.y, folder.names, assumptions=assumptions)


def read_pieces(path: Path, only: list[str] | None, columns: int) -> Iterator[NumericTable]:
    """A file's rows, or those of a folder's pieces one after the other, with ``columns`` or the columns in ``only``."""
    if not path.is_dir():
        yield read_table(path, None, only)
        return
    folder = _open_folder(path, None, only, columns)
    if not any(folder.rows):
        raise ValueError(f"DATA={str(path)!r} has no rows; give a folder that has some")
    for reader, rows in zip(folder.readers, folder.rows, strict=True):
        if rows > 0:
            yield NumericTable(_unwrap(_answer_or_refusal(reader)), None, folder.names)


def _open_folder(path: Path, target: str | None, only: list[str] | None, columns: int | None) -> Folder:
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
    y = None if target is None else label_array(np.concatenate([found for _, _, found in facts]))
    readers = [partial(_parquet_rows, file, names) for file in files]
    return Folder(readers, [rows for _, rows, _ in facts], len(names), names, y)


def _parquet_facts(path: Path, target: str | None) -> tuple[list[str], int, Values | None]:
    """The names of the columns, the number of rows and the target."""
    file = ParquetFile(path)
    if target is None:
        return file.names, file.rows, None
    if target not in file.names:
        raise ValueError(f"--target={target!r} is not a column; the columns are {first_names(file.names)}")
    y = file.columns([target])[target]
    reject_missing(y, f"y: column {target!r}", "choose another target: dropping rows by what they hold is not private")
    return file.names, len(y), y


def _parquet_rows(file: Path, names: list[str]) -> Floats:
    X: Floats = read_table(file, None, names).X
    reject_infinite(X, names)
    return X


# -- svmlight ---------------------------------------------------------------------------------------------------


def _svmlight(files: list[Path], columns: int | None) -> Folder:
    """The lowest index of all pieces tells whether columns are counted from 0 or from 1, the highest how many."""
    pieces = [(file, *ends) for file in files for ends in svmlight.line_ranges(file, svmlight.PIECE)]
    if not pieces:
        raise ValueError(f"DATA={str(files[0].parent)!r} has no rows; give a folder that has some")
    facts = _in_parallel(partial(_svmlight_facts, *piece) for piece in pieces)
    first = svmlight.first_column(min(lowest for lowest, _, _ in facts))
    found = int(max(0, *(highest for _, highest, _ in facts))) + 1 - first
    if columns is not None and found > columns:
        raise ValueError(
            f"DATA={str(files[0].parent)!r} has {found} columns where the model has {columns}; leave the others out"
        )
    check_width(files[0].parent, found)
    width = found if columns is None else columns
    readers = [partial(_svmlight_rows, *piece, first, width) for piece in pieces]
    targets = [y for _, _, y in facts]
    return Folder(readers, [len(y) for y in targets], width, None, np.concatenate(targets))


def _svmlight_facts(file: Path, start: int, stop: int) -> tuple[float, float, Floats]:
    """The lowest and the highest index, and the targets."""
    X, y = svmlight.read_svmlight(file, start, stop)
    return *svmlight.ends_of(X), y


def _svmlight_rows(file: Path, start: int, stop: int, first: int, columns: int) -> sparse.csr_matrix:
    X, _ = svmlight.read_svmlight(file, start, stop)
    X = svmlight.renumbered(X, first, columns)
    reject_infinite(X)
    return X


# -- through Dask -----------------------------------------------------------------------------------------------


def _in_parallel(readers: Iterable[partial[Answer]]) -> list[Answer]:
    try:
        import dask
    except ImportError:
        raise ValueError("DATA is a folder: that needs one more package; run: pip install 'thresher[dask]'") from None
    return [
        _unwrap(answer) for answer in dask.compute(*(dask.delayed(_answer_or_refusal)(reader) for reader in readers))
    ]


def _answer_or_refusal(reader: partial[Answer]) -> Answer | Refused:
    """What a reader of a file answers, or why it has no answer: Dask would log what a task says that raises."""
    file = str(reader.args[0])
    try:
        return reader()
    except Exception as error:
        if type(error) is not ValueError:  # not a message of ours: it may quote a cell
            return Refused(reading_failure(file, error))
        return Refused(str(error) if file in str(error) else f"DATA={file!r}: {error}")


def _unwrap(answer: Answer | Refused) -> Answer:
    if isinstance(answer, Refused):
        raise ValueError(answer.message)
    return answer
