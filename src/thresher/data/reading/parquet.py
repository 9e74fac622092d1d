"""Files of Parquet, at once or piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from thresher.data.typing import Cells, Values

if TYPE_CHECKING:
    import pyarrow
    from pyarrow import parquet

__all__ = ["ParquetFile"]

PIECE = 50_000  # rows that are read at a time


class ParquetFile:
    """A file that is opened when it is asked.

    Parameters
    ----------
    path : Path
        Where it is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def names(self) -> list[str]:
        """The columns."""
        with self._open() as file:
            return list(file.schema_arrow.names)

    @cached_property
    def rows(self) -> int:
        """How many there are."""
        with self._open() as file:
            return int(file.metadata.num_rows)

    def columns(self, names: Sequence[str] | None = None) -> dict[str, Values]:
        """The cells of some columns, or of all, as NumPy holds them."""
        with self._open() as file:
            table = file.read(columns=names)
            return {name: table.column(name).to_numpy() for name in names or table.column_names}

    def pieces(self, wanted: Sequence[str], tell: Callable[[float], None]) -> Iterator[dict[str, Cells]]:
        """The cells of some columns, some rows at a time; ``tell`` hears which part of the file is read."""
        with self._open() as file:
            rows, read = max(file.metadata.num_rows, 1), 0
            for batch in file.iter_batches(PIECE, columns=wanted):
                yield {name: _cells(batch.column(batch.schema.get_field_index(name))) for name in wanted}
                read += batch.num_rows
                tell(read / rows)

    def _open(self) -> AbstractContextManager[parquet.ParquetFile]:
        try:
            from pyarrow import parquet
        except ImportError:
            raise ValueError(
                f"DATA={str(self.path)!r}: Parquet needs one more package; run: pip install 'thresher[parquet]'"
            ) from None
        file: AbstractContextManager[parquet.ParquetFile] = parquet.ParquetFile(self.path)
        return file


def _cells(column: pyarrow.Array) -> Cells:
    plain = column.dictionary_decode() if hasattr(column, "dictionary_decode") else column
    if plain.null_count and str(plain.type).endswith("int64"):  # NumPy would make floating-point numbers of them
        return plain.to_pylist()
    return plain.to_numpy(zero_copy_only=False)
