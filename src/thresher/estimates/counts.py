"""How many cells of a table are not what its schema declares, counted privately."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from thresher.data.concealment import without_causes
from thresher.data.reading.csv import CsvPiece
from thresher.data.reading.source import source_of
from thresher.data.schema.cells import FAULTS, faults_of, ids_of
from thresher.data.schema.column import Column
from thresher.data.schema.schema import Schema
from thresher.data.typing import Table
from thresher.estimates.columns import ColumnShares, flags_of
from thresher.ledger import Ledger
from thresher.privacy.certificate import Certificate

__all__ = ["Counts", "count_faults"]


@dataclass(frozen=True)
class Counts:
    """About how many rows, or people, have a fault, and how far off that is.

    Of a person with several rows that have it in part, the part counts.

    Attributes
    ----------
    cells : dict
        By column and fault.
    odd_rows : float or None
        Rows with another number of cells than the first line; None where there cannot be any.
    standard_error : float
        Of each number.
    certificate : Certificate
        What they cost.
    """

    cells: dict[str, dict[str, float]]
    odd_rows: float | None
    standard_error: float
    certificate: Certificate

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        cost = {"epsilon": self.certificate.epsilon, "delta": self.certificate.delta}
        return {
            "cells": self.cells, "odd_rows": self.odd_rows, "standard_error": self.standard_error,
            "of": self.certificate.n_samples, "counted": self.certificate.counted, **cost,
        }  # fmt: skip


@without_causes
def count_faults(
    data: Table | str | Path, schema: Schema, *, epsilon: float, delta: float | None = None,
    ledger: Ledger | str | None = None, dataset: str | None = None, tell: Callable[[float], None] = lambda part: None,
) -> Counts:  # fmt: skip
    """Count the cells of each declared column that a fit would fill or clip.

    A cell has one fault at most, so a row sets at most one flag for each column, and one more if it is odd.

    Parameters
    ----------
    data : path or frame
        A .csv or .parquet file, a frame of pandas or polars.
    schema : Schema
        What its columns hold.
    epsilon : float
        What the counts may cost.
    delta : float, optional
        By default 1/n^2.
    ledger : Ledger or str, optional
        The account book that pays.
    dataset : str, optional
        The name of the data in it.
    tell : callable, optional
        Called with the part of the data that is read.

    Returns
    -------
    Counts

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from thresher import Schema
    >>> from thresher.estimates.counts import count_faults
    >>> bounds = {"age": {"bounds": [0, 110]}, "stay": {"role": "target", "bounds": [0, 40]}}
    >>> frame = pd.DataFrame({"age": np.where(np.arange(10_000) < 500, np.nan, 50.0), "stay": 3.0})
    >>> counts = count_faults(frame, Schema.from_dict({"columns": bounds}), epsilon=2.0)
    >>> bool(abs(counts.cells["age"]["missing"] - 500) < 10 * counts.standard_error)
    True
    """
    source = source_of(data, schema.dialect)
    whole = schema.for_columns(source.names)
    columns = [column for column in whole.columns if column.role != "ignore"]
    pieces, people, odd = [], [], False
    for piece in source.pieces([column.name for column in columns], tell):
        faults = [faults_of(column, piece[column.name], whole.dialect) for column in columns]
        if odd := isinstance(piece, CsvPiece):
            faults.append(np.where(piece.odd, 0, -1))
        pieces.append(flags_of(faults, len(FAULTS)))
        people += [] if whole.person is None else ids_of(piece[whole.person.name])
    if not pieces:
        raise ValueError("DATA has no rows: there is nothing to count")
    fit = ColumnShares(len(columns) + odd, epsilon=epsilon, delta=delta, ledger=ledger, dataset=dataset)
    fit.fit(sparse.vstack(pieces, format="csr"), groups=people or None)
    n = fit.certificate_.n_samples
    counts = (n * fit.shares_).tolist()
    by_column = {column.name: _possible_shares(column, counts[at * len(FAULTS) :]) for at, column in enumerate(columns)}
    at_odd = len(columns) * len(FAULTS)
    return Counts(by_column, counts[at_odd] if odd else None, n * fit.standard_error_, fit.certificate_)


def _possible_shares(column: Column, counts: list[float]) -> dict[str, float]:
    """Only what there can be: categories have no bounds, and an id is there or not."""
    possible = {"number": 3, "date": 3, "category": 2, "none": 1}[column.kind]
    return dict(zip(FAULTS[:possible], counts[:possible], strict=True))
