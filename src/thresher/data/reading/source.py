"""Where the cells of a table come from: a .csv or .parquet file in pieces, or a frame in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from thresher.data.reading.csv import CsvFile, Dialect, is_numeric
from thresher.data.reading.frames import cells_by_name, eager
from thresher.data.reading.parquet import ParquetFile
from thresher.data.typing import Cells, Table

__all__ = ["Source", "source_in_memory", "source_of"]


@dataclass(frozen=True)
class Source:
    """Names of columns, and the cells of some of them piece by piece."""

    names: list[str]
    pieces: Callable[[list[str], Callable[[float], None]], Iterator[Mapping[str, Cells]]]
    """(names of columns, what is called with the part of the table read so far) -> cells by name."""


def source_of(data: Table | str | Path | Source, dialect: Dialect) -> Source:
    """The source that ``data`` is: a path, or a frame of pandas, polars or Arrow."""
    if isinstance(data, Source):
        return data
    if isinstance(data, (str, Path)):
        return _source_in_file(Path(data), dialect)
    if hasattr(data, "dask"):
        raise TypeError("X is a Dask collection: a schema reads rows in memory; give X.compute()")
    data = eager(data)
    columns = cells_by_name(data)
    if columns is None:
        raise TypeError(
            f"X is a {type(data).__name__}, and a schema needs the columns' names; give a frame of pandas, polars or "
            "Arrow, or the path of a .csv or .parquet file"
        )
    listed = data.column_names if hasattr(data, "column_names") else data.columns  # a name may be there twice
    named = source_in_memory({str(name): cells for name, cells in columns.items()})
    return Source([str(name) for name in listed], named.pieces)


def source_in_memory(columns: Mapping[str, Cells]) -> Source:
    """The source that cells by name are."""
    return Source(list(columns), lambda wanted, _: iter([{name: columns[name] for name in wanted}]))


def _source_in_file(path: Path, dialect: Dialect) -> Source:
    if not path.is_file():
        raise ValueError(f"DATA={str(path)!r} is not a file; give the path of a .csv or .parquet file")
    if path.suffix == ".csv":
        text = CsvFile(path, dialect, errors="replace")
        names = [name.strip() for name in text.names]
        if any(is_numeric(name) for name in names):
            raise ValueError(f"DATA={str(path)!r}: its first line must name the columns, and it holds a number")
        return Source(names, text.pieces)
    if path.suffix == ".parquet":
        file = ParquetFile(path)
        try:
            return Source(file.names, file.pieces)
        except (OSError, ValueError) as error:
            if type(error) is ValueError:  # of ours: a package is missing
                raise
            raise ValueError(f"DATA={str(path)!r} cannot be read as Parquet; is the file whole?") from None
    raise ValueError(f"DATA={str(path)!r}: a schema describes .csv and .parquet files; convert it to one of them")
