"""Frames of every library, read through narwhals: what is lazy is collected, and Arrow's columns go by their names."""

from __future__ import annotations

from collections.abc import Mapping

from thresher.data.typing import Cells, Table

__all__ = ["cells_by_name", "eager"]


def eager(table: Table) -> Table:
    """The same table with its rows at hand: a lazy frame is collected, anything else is as it was."""
    if not hasattr(table, "collect_schema"):
        return table
    import narwhals

    frame = narwhals.from_native(table, pass_through=True)
    return frame.collect().to_native() if isinstance(frame, narwhals.LazyFrame) else table


def cells_by_name(table: Table) -> Mapping[object, Cells] | None:
    """The columns of a frame by their names; None for a table that is no frame."""
    if hasattr(table, "column_names"):  # Arrow, whose columns have no names
        import narwhals

        frame = narwhals.from_native(table, eager_only=True)
        return {name: frame[name] for name in frame.columns}
    columns = getattr(table, "columns", None)
    return None if columns is None else {name: table[name] for name in columns}
