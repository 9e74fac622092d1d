"""Tables from files and frames: numbers in, clear refusals of anything else. Errors name columns, never cell values."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from thresher.data.concealment import without_causes
from thresher.data.sparse_structure import check_structure

__all__ = [
    "MOST_COLUMNS", "SVMLIGHT_READ", "Table", "check_width", "is_numeric", "labels", "listed", "numeric_target",
    "pyarrow_parquet", "read_table", "reject_missing", "reject_text", "unreadable", "without_counts", "without_values",
]  # fmt: skip

SVMLIGHT_READ = (
    "how many columns the svmlight file has, and whether it counts them from 0 or from 1, is public: the indices that "
    "rows hold told both; give a .csv, .parquet or .npz file instead"
)
MOST_COLUMNS = 2**27  # of files: coefficients for so many take a gigabyte


def reject_text(X: Any) -> None:
    """Raise if a column of a frame or array cannot be numbers; says which column and what to do."""
    columns = getattr(X, "columns", None)
    if columns is not None:
        for name in columns:
            _check_column(X[name], repr(str(name)))
    elif getattr(X, "dtype", None) is not None and X.dtype.kind in "OUS" and np.ndim(X) == 2:
        for j in range(X.shape[1]):
            _check_column(X[:, j], str(j))


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


def numeric_target(y: Any) -> Any:
    """``y`` as float64 numbers (None, which scikit-learn refuses itself, stays None)."""
    try:
        return None if y is None else np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "y: a regression target must be numbers and this one holds text; for class labels use SparseClassifier "
            "(--task classification)"
        ) from None


def _check_column(column: Any, name: str) -> None:
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


@dataclass(frozen=True)
class Table:
    """Rows, the target if the file has one, column names if it has any, and the ids of people if they are asked for.

    ``assumptions`` name what is taken for public and was read off the rows.
    """

    X: Any
    y: NDArray[Any] | None
    names: list[str] | None
    people: NDArray[Any] | None = None
    assumptions: tuple[str, ...] = ()


@without_causes
def read_table(path: str | Path, target: str | None, only: list[str] | None = None, person: str | None = None) -> Table:
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
        from thresher.data.folders import read_folder  # which reads its files by this function

        return read_folder(path, target)
    if not path.is_file():  # a pipe can be read once only, and a device may never end
        raise ValueError(f"DATA={str(path)!r} is not a file; give the path of one that is")
    readers = {".csv": _read_csv, ".parquet": _read_parquet, ".svm": _read_svm, ".libsvm": _read_svm, ".npz": _read_npz}
    if path.suffix not in readers:
        raise ValueError(f"DATA={str(path)!r} has an unknown ending; use one of {', '.join(readers)}")
    try:
        return readers[path.suffix](path, target, only, person)
    except Exception as error:
        if type(error) is ValueError or getattr(error, "errno", None) is not None:  # of ours, or of the file system
            raise
        raise ValueError(unreadable(path, error)) from None


def unreadable(path: Path | str, error: Exception) -> str:
    """What is said of a file whose reader failed: what the reader says may quote a cell, and so may its arguments."""
    kind = "text with commas, in UTF-8" if Path(path).suffix == ".csv" else "what its ending says"
    return f"DATA={str(path)!r} cannot be read ({type(error).__name__}); is it {kind}?"


def _read_csv(path: Path, target: str | None, only: list[str] | None, person: str | None) -> Table:
    with path.open(newline="", encoding="utf-8-sig") as file:
        names = next(csv.reader(file), [])
    if not names:
        raise ValueError(f"DATA={str(path)!r} is empty; its first line must name the columns")
    if len(set(names)) < len(names) or any(is_numeric(name) for name in names):
        raise ValueError(f"DATA={str(path)!r}: its first line must name the columns, each with a name of its own")
    try:
        values = _cells(path, np.float64)
    except ValueError:  # text somewhere: read as text, then say which column or take it as the target
        try:
            values = _cells(path, np.str_)
        except ValueError as error:
            if type(error) is not ValueError:
                raise
            raise ValueError(f"DATA={str(path)!r}: {error}") from None
    if not values.size:
        raise ValueError(f"DATA={str(path)!r} has no rows; give a file that has some")
    if values.shape[1] != len(names):
        raise ValueError(f"DATA={str(path)!r}: {len(names)} column names but {values.shape[1]} columns")
    columns = {name: values[:, j] for j, name in enumerate(names)}
    if person in columns:
        texts = _cells(path, np.str_, [names.index(person)])
        columns[person] = np.array([_id(text) for (text,) in texts.tolist()], dtype=object)
    return _split(columns, target, only, person)


def _id(text: str) -> Any:
    """The number that an id is, or its text: read by itself, since in a column of one kind, one id decides for all."""
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text.strip()


def is_numeric(name: str) -> bool:
    """Whether a column name is a number: then the first line is a person's row, not a header."""
    try:
        float(name)
    except ValueError:
        return False
    return True


def _cells(path: Path, dtype: type, only: list[int] | None = None) -> NDArray[Any]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        next(csv.reader(file))  # the names, which may hold quoted line ends
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "loadtxt: input contained no data")
            return np.loadtxt(
                file, delimiter=",", quotechar='"', ndmin=2, dtype=dtype, comments=None, usecols=only
            )  # fmt: skip


def _read_parquet(path: Path, target: str | None, only: list[str] | None, person: str | None) -> Table:
    table = pyarrow_parquet(path).read_table(path)
    return _split({name: table.column(name).to_numpy() for name in table.column_names}, target, only, person)


def pyarrow_parquet(path: Path) -> Any:
    """The module that reads Parquet; ``path`` needs it."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise ValueError(
            f"DATA={str(path)!r}: Parquet needs one more package; run: pip install 'thresher[parquet]'"
        ) from None
    return parquet


def _read_svm(path: Path, target: str | None, only: list[str] | None, person: str | None) -> Table:
    if person is not None:
        raise ValueError(f"--person={person!r}: svmlight has features and a target only; use .csv, .parquet or .npz")
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(str(path))
    except (ValueError, OverflowError):
        raise ValueError(f"DATA={str(path)!r} is not svmlight: each line must be 'target column:value ...'") from None
    check_width(path, X.shape[1])
    return Table(X, y, None, assumptions=(SVMLIGHT_READ,))


def _read_npz(path: Path, target: str | None, only: list[str] | None, person: str | None) -> Table:
    with np.load(path, allow_pickle=False) as file:
        keys = set(file.files)
        for option, name in (("--target", target), ("--person", person)):
            if name is not None and name not in keys:
                raise ValueError(f"{option}={name!r} is not in {path.name}; it holds {', '.join(sorted(keys))}")
        y, people = (None if name is None else file[name] for name in (target, person))
        if "X" in keys:
            return Table(file["X"], y, None, people)
    X = sparse.load_npz(path)
    check_structure(X)
    check_width(path, X.shape[1])
    return Table(X, y, None, people)


def check_width(path: Path, columns: int) -> None:
    """One wild index of a sparse file makes a table so wide that no model of it fits into memory."""
    if columns > MOST_COLUMNS:
        raise ValueError(f"DATA={str(path)!r} has {columns} columns, more than {MOST_COLUMNS}; is an index wrong?")


def _split(columns: dict[str, NDArray[Any]], target: str | None, only: list[str] | None, person: str | None) -> Table:
    """Features, target and ids of people; the target may be text (class labels), ids as well, a feature may not."""
    people = None
    if person is not None:
        if person not in columns or person == target:
            others = [name for name in columns if name != target]
            raise ValueError(f"--person={person!r} is not a column beside the target; the others are {listed(others)}")
        people = columns.pop(person)
    y = None
    if target is not None:
        if target not in columns:
            raise ValueError(f"--target={target!r} is not a column; the columns are {listed(columns)}")
        y = columns.pop(target)
    if only is not None:
        missing = [name for name in only if name not in columns]
        if missing:
            raise ValueError(f"column {missing[0]!r} of the model is not in the table, which has {listed(columns)}")
        columns = {name: columns[name] for name in only}
    if not columns:
        used = " and ".join(filter(None, (target, person)))
        raise ValueError(f"DATA has no column beside {used}; give one that has features")
    features = []
    for name, column in columns.items():
        reject_missing(column, f"X: column {name!r}", "leave it out")
        _check_column(column, repr(name))
        features.append(np.asarray(column, dtype=np.float64))
    if y is not None:
        reject_missing(
            y,
            f"y: column {target!r}",
            "choose another target: dropping rows by what they hold is not private",
        )
    return Table(np.column_stack(features), y if y is None else labels(y), list(columns), people)


def reject_missing(column: NDArray[Any], name: str, remedy: str) -> None:
    kind = column.dtype.kind
    if (kind == "f" and np.any(np.isnan(column))) or (kind == "U" and np.any(column == "")):
        raise ValueError(
            f"{name} has missing values; declare in a schema what they count as (thresher schema draft), fill them "
            f"with a public constant, or {remedy}"
        )


def labels(values: ArrayLike) -> NDArray[Any]:
    """Targets or class labels as numbers where all of them are numbers, as they are otherwise."""
    column = np.asarray(values)
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError):
        return column


def listed(columns: Iterable[str]) -> str:
    """The first names, and how many there are."""
    names = list(columns)
    return ", ".join(names[:10]) + (f", ... ({len(names)} in all)" if len(names) > 10 else "")
