"""thresher fit: a private model of a table, with its certificate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thresher.cli.errors import check_outputs
from thresher.cli.front_door import takes_fields
from thresher.cli.options import (
    AlgorithmOption,
    Analyst,
    AsJson,
    Data,
    Force,
    LedgerUrl,
    Report,
    TargetBound,
    TaskKind,
    TaskOption,
    estimator_for,
    ledger_of,
)
from thresher.models.options import SparseOptions
from thresher.report.page import check_writable

if TYPE_CHECKING:
    from thresher.cli.options import Estimator

__all__ = ["fit"]


@takes_fields(SparseOptions)
def fit(
    data: Data,
    target: Annotated[
        str | None, typer.Option(help="The target's column (.csv, .parquet) or array (.npz, default y).")
    ] = None,
    table_schema: Annotated[
        Path | None,
        typer.Option(
            "--schema",
            help="Public facts about DATA: its target, people, bounds, categories; see thresher schema. DATA may then "
            "hold text, dates and gaps.",
        ),
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(
            help="The column or array with the id of each row's person, if some have several rows; it is no feature. "
            "All rows of a person are then protected together."
        ),
    ] = None,
    *,
    params: dict[str, Any],
    target_bound: TargetBound = None,
    task: TaskOption = TaskKind.REGRESSION,
    classes: Annotated[
        str | None, typer.Option(help="The public class labels, A,B or A,B,C. Default: read from DATA.")
    ] = None,
    algorithm: AlgorithmOption = "auto",
    out_path: Annotated[Path, typer.Option("--out", help="Where to write the model and its certificate.")] = Path(
        "model.json"
    ),
    report: Report = None,
    ledger: LedgerUrl = None,
    analyst: Analyst = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Fit a private sparse model to DATA and write it with its certificate.

    Examples:

    \b
    thresher fit patients.csv --schema patients.toml --sparsity 10 --epsilon 1
    thresher fit numbers.csv --target stay --feature-bound 1 --target-bound 0,30
    """
    from thresher.cli.display import out, show_certificate, show_coefficients
    from thresher.data.schema import Schema

    pays = ledger_of(ledger, analyst)
    kept = () if pays is None else pays.files
    check_outputs(force, inputs=(data, table_schema, *kept), out=out_path, report=report)
    if report is not None:
        check_writable(report)
    params |= {"algorithm": algorithm, "ledger": pays, "verbose": 1}
    if table_schema is not None:
        _reject_declared(target, person, params["feature_bound"], target_bound, classes)
        facts = Schema.read(table_schema)
        model = estimator_for(TaskKind(facts.task), None, schema=facts, **params).fit(data)
    else:
        model = estimator_for(task, target_bound, **params)
        _fit_numbers(model, data, target, person, classes)
    model.save(out_path)
    if report is not None:
        model.report(report)
    if as_json:
        typer.echo(out_path.read_text())
        return
    show_coefficients(model)
    show_certificate(model.certificate_)
    out.print(f"Written to {out_path}; check it with: thresher verify {out_path}")
    if report is not None:
        out.print(f"A page about the model, to read and to print: {report}")


def _fit_numbers(model: Estimator, data: Path, target: str | None, person: str | None, classes: str | None) -> None:
    """Fit to a table of numbers."""
    from thresher.data.labels import label_array
    from thresher.data.reading.table import read_table
    from thresher.models.linear import name_columns

    table = read_table(data, target or ("y" if data.suffix == ".npz" else None), person=person)
    if table.y is None:
        raise ValueError(f"--target={target!r}: name the column of {data.name} that holds the target")
    if classes is not None:
        model.set_params(classes=label_array(classes.split(",")))
    name_columns(model, table.names, table.assumptions)  # known to the fit, whose certificate binds them
    model.fit(table.X, table.y, groups=table.people)


def _reject_declared(*given: object) -> None:
    """Two sources for one fact are one too many."""
    for name, value in zip(("target", "person", "feature-bound", "target-bound", "classes"), given, strict=True):
        if value is not None:
            raise ValueError(f"--{name}={value}: the schema declares it; leave it out")
