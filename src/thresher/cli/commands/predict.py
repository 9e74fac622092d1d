"""thresher predict: what a fitted model says of each row of a table, piece by piece, as CSV or JSON."""

from __future__ import annotations

import csv
import itertools
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO, TypeAlias

import typer

from thresher.cli.errors import check_outputs
from thresher.cli.options import (
    AsJson,
    Data,
    Force,
)
from thresher.data.atomic_files import atomic_file
from thresher.report.words import DisplayableStream

if TYPE_CHECKING:
    from thresher.data.reading.table import NumericTable
    from thresher.data.typing import Values
    from thresher.models.linear import LinearModel

__all__ = ["predict"]

Stream: TypeAlias = TextIO | DisplayableStream


def predict(
    model: Annotated[Path, typer.Argument(help="A model written by thresher fit.")],
    data: Data,
    out_path: Annotated[Path | None, typer.Option("--out", help="Where to write; default: standard output.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Predict every row of DATA. Extra columns (the target, say) are ignored if the columns have names.

    With --json standard output gets a list with an object per row; with --out the file is CSV, and standard output gets
    its name and how many rows it has.
    """
    from thresher.cli.display import show_json
    from thresher.models.files import load_model

    check_outputs(force, inputs=(model, data), out=out_path)
    fitted = load_model(model)
    tables = _columns(fitted, data)
    first = _predictions(fitted, next(tables))  # of what cannot be predicted nothing is printed
    pieces = itertools.chain([first], (_predictions(fitted, table) for table in tables))
    if out_path is None:
        to_people = sys.stdout.isatty()  # a pipe gets what labels hold
        stream: Stream = DisplayableStream(sys.stdout) if to_people else sys.stdout
        (write_json if as_json else write_csv)(stream, pieces)
        return
    with atomic_file(out_path) as file:
        rows = write_csv(file, pieces)
    if as_json:
        show_json({"out": str(out_path), "rows": rows})


def _columns(model: LinearModel, data: Path) -> Iterator[NumericTable]:
    """The table, or each of its pieces: the columns in the order the model was fitted on, others left out."""
    from thresher.data.reading.folders import read_pieces
    from thresher.data.reading.table import NumericTable

    if model.schema is not None:
        return (NumericTable(piece, None, None) for piece in model.schema_.pieces_of(data))
    wanted = getattr(model, "feature_names_in_", None)
    return read_pieces(data, None if wanted is None else list(wanted), model.n_features_in_)


def _predictions(model: LinearModel, table: NumericTable) -> dict[str, Values]:
    from thresher.models.classifier import ClassifierModel

    X = table.X
    if hasattr(model, "feature_names_in_"):
        del model.feature_names_in_  # the columns were put in order by name already
    if isinstance(model, ClassifierModel):
        probabilities = {
            f"probability_{label}": p for label, p in zip(model.classes_, model.predict_proba(X).T, strict=True)
        }
        if len(probabilities) == 2:  # the other one is what is left of 1
            probabilities.pop(f"probability_{model.classes_[0]}")
        return {"prediction": model.predict(X), **probabilities}
    return {"prediction": model.predict(X)}


def write_csv(file: Stream, pieces: Iterable[dict[str, Values]]) -> int:
    """How many rows were written."""
    writer, rows = csv.writer(file), 0
    for at, columns in enumerate(pieces):
        if at == 0:
            writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
        rows += len(columns["prediction"])
    return rows


def write_json(file: Stream, pieces: Iterable[dict[str, Values]]) -> None:
    """A list with an object per row, one per line, written as they come."""
    before = "[\n"
    for columns in pieces:
        for values in zip(*(column.tolist() for column in columns.values()), strict=True):
            file.write(before + json.dumps(dict(zip(columns, values, strict=True))))
            before = ",\n"
    file.write("\n]\n")
