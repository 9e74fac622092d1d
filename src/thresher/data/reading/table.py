"""A table of numbers from a file, or from a folder that holds it in parts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from thresher.data.concealment import without_causes
from thresher.data.labels import label_array
from thresher.data.reading import svmlight
from thresher.data.reading.csv import CsvFile, is_numeric
from thresher.data.reading.parquet import ParquetFile
from thresher.data.sparse_structure import check_structure
from thresher.data.tables import check_column, check_width, first_names, reject_missing
from thresher.data.typing import Table, Values

__all__ = ["NumericTable", "read_table", "reading_failure"]


@dataclass(frozen=True)
class NumericTable:
    """Rows, the target if the file has one, column names if it has any, and the ids of people if they are asked for.

    ``assumptions`` name what is taken for public and was read off the rows.
    """

    X: Table
    y: Values | None
    names: list[str] | None
    people: Values | None = None
    assumptions: tuple[str, ...] = ()


@without_causes
def read_table(
    path: str | Path, target: str | None, only: list[str] | None = None, person: str | None = None
) -> NumericTable:
    """Read ``.csv``, ``.parquet``, ``.svm``/``.libsvm`` (svmlight) or ``.npz`` (a SciPy CSR matrix with ``y``).

    A folder of ``.parquet`` or ``.svm`` parts is read through Dask. ``only`` names the feature columns to take, in that
    order, from a file whose columns have names. ``person`` names the column (or array of ``.npz``) with the ids of the
    rows' people, which is no feature.
    """
    path = Path(path)
    if not path.exists():
        raise ValueError(f"DATA={str(path)!r} does not exist; give the path of a file that does")
    if path.is_dir():
        if person is not None:
            raise ValueError(
                f"--person={person!r}: a folder of parts has no people; give one .csv, .parquet or .npz file"
            )
        from thresher.data.reading.folders import read_folder  # which reads its files by this function

        return read_folder(path, target)
    if not path.is_file():  # a pipe can be read once only, and a device may never end
        raise ValueError(f"DATA={str(path)!r} is not a file; give the path of one that is")
    readers = {
        ".csv": _read_csv,
        ".parquet": _read_parquet,
        ".svm": _read_svmlight,
        ".libsvm": _read_svmlight,
        ".npz": _read_npz,
    }
    if path.suffix not in readers:
        raise ValueError(f"DATA={str(path)!r} has an unknown ending; use one of {', '.join(readers)}")
    try:
        return readers[path.suffix](path, target, only, person)
    except Exception as error:
        if type(error) is ValueError or getattr(error, "errno", None) is not None:  # of ours, or of the file system
            raise
        raise ValueError(reading_failure(path, error)) from None


def reading_failure(path: Path | str, error: Exception) -> str:
    """What is said of a file whose reader failed: what the reader says may quote a cell, and so may its arguments."""
    kind = "text with commas, in UTF-8" if Path(path).suffix == ".csv" else "what its ending says"
    return f"DATA={str(path)!r} cannot be read ({type(error).__name__}); is it {kind}?"


def _read_csv(path: Path, target: str | None, only: list[str] | None, person: str | None) -> NumericTable:
    file = CsvFile(path)
    names = file.names
    if len(set(names)) < len(names) or any(is_numeric(name) for name in names):
        raise ValueError(f"DATA={str(path)!r}: its first line must name the columns, each with a name of its own")
    values = file.numbers_or_texts()
    if not values.size:
        raise ValueError(f"DATA={str(path)!r} has no rows; give a file that has some")
    if values.shape[1] != len(names):
        raise ValueError(f"DATA={str(path)!r}: {len(names)} column names but {values.shape[1]} columns")
    columns = {name: values[:, j] for j, name in enumerate(names)}
    if person is not None and person in columns:
        columns[person] = np.array([_id(text) for text in file.texts(person)], dtype=object)
    return _split(columns, target, only, person)


def _id(text: str) -> float | str:
    """The number that an id is, or its text: read by itself, since in a column of one kind, one id decides for all."""
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text.strip()


def _read_parquet(path: Path, target: str | None, only: list[str] | None, person: str | None) -> NumericTable:
    return _split(ParquetFile(path).columns(), target, only, person)


def _read_svmlight(path: Path, target: str | None, only: list[str] | None, person: str | None) -> NumericTable:
    if person is not None:
        raise ValueError(f"--person={person!r}: svmlight has features and a target only; use .csv, .parquet or .npz")
    X, y = svmlight.read_svmlight(path)
    lowest, _ = svmlight.ends_of(X)
    X = svmlight.renumbered(X, svmlight.first_column(lowest))
    check_width(path, X.shape[1])
    return NumericTable(X, y, None, assumptions=(svmlight.READ,))


def _read_npz(path: Path, target: str | None, only: list[str] | None, person: str | None) -> NumericTable:
    with np.load(path, allow_pickle=False) as file:
        keys = set(file.files)
        for option, name in (("--target", target), ("--person", person)):
            if name is not None and name not in keys:
                raise ValueError(f"{option}={name!r} is not in {path.name}; it holds {', '.join(sorted(keys))}")
        y, people = (None if name is None else file[name] for name in (target, person))
        if "X" in keys:
            return NumericTable(file["X"], y, None, people)
    X = sparse.load_npz(path)
    check_structure(X)
    check_width(path, X.shape[1])
    return NumericTable(X, y, None, people)


def _split(columns: dict[str, Values], target: str | None, only: list[str] | None, person: str | None) -> NumericTable:
    """Features, target and ids of people; the target may be text (class labels), ids as well, a feature may not."""
    people = None
    if person is not None:
        if person not in columns or person == target:
            others = [name for name in columns if name != target]
            raise ValueError(
                f"--person={person!r} is not a column beside the target; the others are {first_names(others)}"
            )
        people = columns.pop(person)
    y = None
    if target is not None:
        if target not in columns:
            raise ValueError(f"--target={target!r} is not a column; the columns are {first_names(columns)}")
        y = columns.pop(target)
    if only is not None:
        missing = [name for name in only if name not in columns]
        if missing:
            raise ValueError(
                f"column {missing[0]!r} of the model is not in the table, which has {first_names(columns)}"
            )
        columns = {name: columns[name] for name in only}
    if not columns:
        used = " and ".join(filter(None, (target, person)))
        raise ValueError(f"DATA has no column beside {used}; give one that has features")
    features = []
    for name, column in columns.items():
        reject_missing(column, f"X: column {name!r}", "leave it out")
        check_column(column, repr(name))
        features.append(np.asarray(column, dtype=np.float64))
    if y is not None:
        reject_missing(
            y,
            f"y: column {target!r}",
            "choose another target: dropping rows by what they hold is not private",
        )
    return NumericTable(np.column_stack(features), y if y is None else label_array(y), list(columns), people)
