"""Where the cells of a table come from: a .csv or .parquet file in pieces, or a frame in memory."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from thresher.data.schema.dialect import Dialect
from thresher.data.tables import is_numeric, pyarrow_parquet

__all__ = ["Piece", "Source", "in_memory", "source_of"]

PIECE = 50_000  # rows of a file that are read at a time

Pieces = Iterator[Mapping[str, Any]]


class Piece(dict[str, Any]):
    """Cells by name. Rows of a .csv file that are ``odd`` have not as many cells as columns; all of theirs are gaps."""

    odd: Sequence[bool] = ()


class Source:
    """Names of columns, and the cells of some of them piece by piece."""

    def __init__(self, names: list[str], pieces: Callable[[list[str], Callable[[float], None]], Pieces]) -> None:
        self.names = names
        self.pieces = pieces
        """(names of columns, what is called with the part of the table read so far) -> cells by name."""


def source_of(data: Any, dialect: Dialect) -> Source:
    """The source that ``data`` is: a path, or a pandas or polars frame."""
    if isinstance(data, Source):
        return data
    if isinstance(data, (str, Path)):
        path = Path(data)
        if not path.is_file():
            raise ValueError(f"DATA={str(path)!r} is not a file; give the path of a .csv or .parquet file")
        if path.suffix == ".csv":
            return _csv(path, dialect)
        if path.suffix == ".parquet":
            return _parquet(path)
        raise ValueError(f"DATA={str(path)!r}: a schema describes .csv and .parquet files; convert it to one of them")
    if hasattr(data, "dask"):
        raise TypeError("X is a Dask collection: a schema reads rows in memory; give X.compute()")
    if not hasattr(data, "columns"):
        raise TypeError(
            f"X is a {type(data).__name__}, and a schema needs the columns' names; give a pandas or polars frame, or "
            "the path of a .csv or .parquet file"
        )
    names = {str(name): name for name in data.columns}
    return Source(
        [str(name) for name in data.columns], lambda wanted, _: iter([{name: data[names[name]] for name in wanted}])
    )


def in_memory(columns: Mapping[str, Any]) -> Source:
    return Source(list(columns), lambda wanted, _: iter([{name: columns[name] for name in wanted}]))


# -- CSV ---------------------------------------------------------------------------------------------------------------


@contextmanager
def _opened(path: Path, dialect: Dialect) -> Iterator[tuple[Any, Any]]:
    """The rows, and the file for its position. Bytes that are no text are replaced: such a cell is in no category."""
    encoding = "utf-8-sig" if dialect.encoding == "utf-8" else dialect.encoding  # a mark at the start is no text
    with path.open(newline="", encoding=encoding, errors="replace") as file:
        try:
            yield csv.reader(file, delimiter=dialect.delimiter), file
        except csv.Error:
            raise ValueError(
                f"DATA={str(path)!r} is not a table: a quoted cell is longer than {csv.field_size_limit()} characters; "
                "is a quotation mark never closed?"
            ) from None


def _csv(path: Path, dialect: Dialect) -> Source:
    with _opened(path, dialect) as (rows, _):
        names = [name.strip() for name in next(rows, [])]
    if not names:
        raise ValueError(f"DATA={str(path)!r} is empty; its first line must name the columns")
    if any(is_numeric(name) for name in names):
        raise ValueError(f"DATA={str(path)!r}: its first line must name the columns, and it holds a number")

    def pieces(wanted: list[str], tell: Callable[[float], None]) -> Pieces:
        places = {name: j for j, name in enumerate(names)}
        at = [places[name] for name in wanted]
        size = max(path.stat().st_size, 1)
        blank = [""] * len(names)
        with _opened(path, dialect) as (rows, file):
            next(rows)
            whole = (row if len(row) == len(names) else blank for row in rows if row)
            while piece := list(islice(whole, PIECE)):
                columns = list(zip(*piece, strict=True))
                cells = Piece({names[j]: columns[j] for j in at})
                cells.odd = [row is blank for row in piece]
                yield cells
                tell(file.buffer.tell() / size)

    return Source(names, pieces)


# -- Parquet -----------------------------------------------------------------------------------------------------------


def _parquet(path: Path) -> Source:
    parquet = pyarrow_parquet(path)
    try:
        with parquet.ParquetFile(path) as file:
            names = list(file.schema_arrow.names)
    except (OSError, ValueError):
        raise ValueError(f"DATA={str(path)!r} cannot be read as Parquet; is the file whole?") from None

    def pieces(wanted: list[str], tell: Callable[[float], None]) -> Pieces:
        with parquet.ParquetFile(path) as file:
            rows, read = max(file.metadata.num_rows, 1), 0
            for batch in file.iter_batches(PIECE, columns=wanted):
                yield {name: _decoded(batch.column(batch.schema.get_field_index(name))) for name in wanted}
                read += batch.num_rows
                tell(read / rows)

    return Source(names, pieces)


def _decoded(column: Any) -> Any:
    plain = column.dictionary_decode() if hasattr(column, "dictionary_decode") else column
    if plain.null_count and str(plain.type).endswith("int64"):  # NumPy would make floating-point numbers of them
        return plain.to_pylist()
    return plain.to_numpy(zero_copy_only=False)
