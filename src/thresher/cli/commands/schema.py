"""thresher schema: a first version of a table's public facts, and a look at what a fit would make of them."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thresher.cli.errors import check_outputs
from thresher.cli.options import Analyst, AsJson, Dataset, Delta, Force, LedgerUrl, ledger_of
from thresher.data.atomic_files import write_atomically
from thresher.privacy.progress import parts_bar

if TYPE_CHECKING:
    from thresher.data.schema.schema import Schema
    from thresher.estimates.counts import Counts

__all__ = ["schema"]

LARGEST = 1e9  # as in thresher.estimates.draft, which help must not import; a test compares them
MOST_COLUMNS = 50  # of a schema that are shown

schema = typer.Typer(
    help="Public facts about a table, in a small TOML file: roles, bounds, categories, what fills gaps.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Table = Annotated[Path, typer.Argument(metavar="DATA", help="A .csv or .parquet file.")]


@schema.command()
def draft(
    data: Table,
    target: Annotated[str, typer.Option(help="The column that a model should predict.")],
    person: Annotated[str | None, typer.Option(help="The column that says whose row it is.")] = None,
    out_path: Annotated[Path | None, typer.Option("--out", help="Where to write. Default: DATA.toml.")] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Estimate all values with this privacy budget; none is read from the data.")
    ] = None,
    delta: Delta = None,
    largest: Annotated[
        float, typer.Option(help="With --epsilon: what no number exceeds in magnitude; a public guess, far too large.")
    ] = LARGEST,
    ledger: LedgerUrl = None,
    dataset: Dataset = None,
    analyst: Analyst = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Look at DATA and write a first version of its schema.

    It holds values that were READ FROM THE DATA, each marked: replace them by public knowledge. Until then the file is
    as private as the data, and certificates say what they rest on. With --epsilon all values are estimated privately
    instead: the file may be shown to anybody, and what it cost is written beside it.

    Examples:

    \b
    thresher schema draft patients.csv --target stay --out patients.toml
    thresher schema draft patients.csv --target stay --epsilon 0.5
    """
    from thresher.cli.display import out
    from thresher.data.schema.draft import draft as write_draft
    from thresher.estimates.draft import estimate

    path = out_path or data.with_suffix(".toml")
    receipt = path.with_suffix(".certificate.json")
    pays = ledger_of(ledger, analyst)
    for each in (path, *([] if epsilon is None else [receipt])):
        check_outputs(force, inputs=(data, *(() if pays is None else pays.files)), out=each)
    with parts_bar("reading", enabled=True) as tell:
        if epsilon is None:
            _reject_spending(delta=delta, ledger=ledger, dataset=dataset, analyst=analyst)
            write_atomically(path, write_draft(data, target, person, tell))
            told = "Values marked read_from_data are private until you replace them."
        else:
            _reject_person(person)
            made = estimate(
                data, target, epsilon=epsilon, delta=delta, largest=largest, ledger=pays, dataset=dataset, tell=tell,
            )  # fmt: skip
            write_atomically(receipt, made.certificate.to_json())
            write_atomically(path, made.text)
            cost = f"epsilon {made.certificate.epsilon:g} at delta {made.certificate.delta:.3g}"
            told = f"It cost {cost} of the rows' budget: thresher verify {receipt}"
    if as_json:
        typer.echo(json.dumps(tomllib.loads(path.read_text(encoding="utf-8")), indent=2, default=str))
        return
    out.print(f"Written to {path}. {told}")
    out.print(f"Next: edit it, then: thresher schema check {data} --schema {path}")


@schema.command()
def check(
    data: Table,
    table: Annotated[Path, typer.Option("--schema", help="The schema of DATA.")],
    epsilon: Annotated[
        float | None, typer.Option(help="Count cells that are missing or odd, with this privacy budget.")
    ] = None,
    delta: Delta = None,
    ledger: LedgerUrl = None,
    dataset: Dataset = None,
    analyst: Analyst = None,
    as_json: AsJson = False,
) -> None:
    """Whether DATA has the columns that its schema declares, and what a fit makes of them.

    Reads the first line of DATA only: nothing it prints depends on a person. With --epsilon it reads the rest, too, and
    tells about how many cells of each column are missing, cannot be read or lie outside of the bounds.

    Examples:

    \b
    thresher schema check patients.csv --schema patients.toml
    thresher schema check patients.csv --schema patients.toml --epsilon 0.1
    """
    from thresher.data.reading.source import source_of
    from thresher.data.schema.schema import Schema
    from thresher.estimates.counts import count_faults

    declared = Schema.read(table)
    whole = declared.for_columns(source_of(data, declared.dialect).names)
    record, counts = _record(whole), None
    if epsilon is None:
        _reject_spending(delta=delta, ledger=ledger, dataset=dataset, analyst=analyst)
    else:
        with parts_bar("reading", enabled=True) as tell:
            counts = count_faults(
                data, declared, epsilon=epsilon, delta=delta, ledger=ledger_of(ledger, analyst), dataset=dataset,
                tell=tell,
            )  # fmt: skip
        record["counts"] = counts.to_dict()
    if as_json:
        typer.echo(json.dumps(record, indent=2))
        return
    _show_schema(whole, record)
    if counts is not None:
        _show_counts(counts)


def _reject_person(person: str | None) -> None:
    if person is not None:
        raise ValueError(
            f"--person={person!r}: estimates with --epsilon protect rows, not people with several of them; draft a "
            "table with one row for each person, or write the schema by hand"
        )


def _reject_spending(**given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"--{name}={value}: nothing is spent without --epsilon; give it, or leave this out")


def _record(whole: Schema) -> dict[str, Any]:
    encoding = whole.encoding()
    return {
        "task": whole.task,
        "target": whole.target.name,
        "person": None if whole.person is None else whole.person.name,
        "features": len(whole.features),
        "columns": len(encoding.names),
        "row_norm": encoding.row_norm,
        "read_from_data": [column.name for column in whole.columns if column.read_from_data],
        "sha256": whole.digest,
    }


def _show_schema(schema: Schema, record: dict[str, Any]) -> None:
    from rich.table import Table as Grid

    from thresher.cli.display import out
    from thresher.data.tables import first_names

    grid = Grid("column", "role", "holds", "a gap counts as", "in the model")
    encoding = schema.encoding()
    blocks = dict(zip((column.name for column in encoding.features), encoding.blocks, strict=True))
    for column in schema.columns[:MOST_COLUMNS]:
        made = blocks.get(column.name, [])
        shown = str(len(made)) + (" columns" if len(made) > 1 else " column") if made else ""
        grid.add_row(column.name, column.role, column.holds, column.gap, shown)
    if len(schema.columns) > MOST_COLUMNS:
        grid.add_row(f"... and {len(schema.columns) - MOST_COLUMNS} more", "", "", "", "")
    out.print(grid)
    people = f", protecting each {schema.person.name!r} with all rows" if schema.person is not None else ""
    out.print(
        f"A {schema.task} of {schema.target.name!r} on {record['features']} features in {record['columns']} columns"
        f"{people}; no row is longer than {record['row_norm']:.3g}.",
    )
    d = record["columns"]
    task = " --task classification" if schema.task == "classification" else ""
    out.print(f"What to expect: thresher plan --n ROWS --d {d} --sparsity {min(10, d)} --epsilon 1{task}")
    if record["read_from_data"]:
        out.print(
            f"Read from the data, to be replaced by public knowledge: {first_names(record['read_from_data'])}. "
            "Until then certificates are conditional on these values being public.",
        )


def _show_counts(counts: Counts) -> None:
    from thresher.cli.display import folding_grid, out
    from thresher.data.schema.cells import FAULTS

    certificate = counts.certificate
    grid = folding_grid("column", *FAULTS)
    for name, found in counts.cells.items():
        grid.add_row(name, *(f"{found[fault]:.0f}" if fault in found else "" for fault in FAULTS))
    grid.title = f"about how many of {certificate.n_samples} {certificate.counted}"
    out.print(grid)
    if counts.odd_rows is not None:
        out.print(f"Rows with another number of cells than the first line: about {counts.odd_rows:.0f}.")
    out.print(
        f"The standard error of each number is {counts.standard_error:.3g}; what is below 0 is noise. It cost epsilon "
        f"{certificate.epsilon:g} at delta {certificate.delta:.3g} of the budget of the {certificate.counted}."
    )
