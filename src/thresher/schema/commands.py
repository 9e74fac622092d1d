"""thresher schema: a first version of a table's public facts, and a look at what a fit would make of them."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from thresher.display import out, show_counts, show_schema
from thresher.guarded import check_folder, guarded
from thresher.options import Analyst, AsJson, Dataset, Delta, LedgerUrl, ledger_of
from thresher.progress import parts_bar
from thresher.schema.counts import count_faults
from thresher.schema.draft import draft as drafted
from thresher.schema.estimate import LARGEST, estimate
from thresher.schema.schema import Schema
from thresher.schema.sources import source_of

__all__ = ["schema"]

schema = typer.Typer(
    help="Public facts about a table, in a small TOML file: roles, bounds, categories, what fills gaps.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Table = Annotated[Path, typer.Argument(metavar="DATA", help="A .csv or .parquet file.")]


@schema.command()
@guarded
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
    path = out_path or data.with_suffix(".toml")
    _check_free(path)
    with parts_bar("reading", enabled=True) as tell:
        if epsilon is None:
            _reject_spending(delta=delta, ledger=ledger, dataset=dataset, analyst=analyst)
            path.write_text(drafted(data, target, person, tell), encoding="utf-8")
            told = "Values marked read_from_data are private until you replace them."
        else:
            _reject_person(person)
            _check_free(receipt := path.with_suffix(".certificate.json"))
            made = estimate(
                data, target, epsilon=epsilon, delta=delta, largest=largest, ledger=ledger_of(ledger, analyst),
                dataset=dataset, tell=tell,
            )  # fmt: skip
            receipt.write_text(made.certificate.to_json(), encoding="utf-8")
            path.write_text(made.text, encoding="utf-8")
            cost = f"epsilon {made.certificate.epsilon:g} at delta {made.certificate.delta:.3g}"
            told = f"It cost {cost} of the rows' budget: thresher verify {receipt}"
    if as_json:
        typer.echo(json.dumps(tomllib.loads(path.read_text(encoding="utf-8")), indent=2, default=str))
        return
    out.print(f"Written to {path}. {told}", markup=False)
    out.print(f"Next: edit it, then: thresher schema check {data} --schema {path}", markup=False)


@schema.command()
@guarded
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
    show_schema(whole, record)
    if counts is not None:
        show_counts(counts)


def _check_free(path: Path) -> None:
    check_folder(path)
    if path.exists():
        raise ValueError(f"--out={str(path)!r} exists; a draft overwrites nothing, give another name")


def _reject_person(person: str | None) -> None:
    if person is not None:
        raise ValueError(
            f"--person={person!r}: estimates with --epsilon protect rows, not people with several of them; draft a "
            "table with one row for each person, or write the schema by hand"
        )


def _reject_spending(**given: Any) -> None:
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
