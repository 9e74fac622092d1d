"""thresher schema: a first version of a table's public facts, and a look at what a fit would make of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from thresher.display import out, show_schema
from thresher.guarded import check_folder, guarded
from thresher.options import AsJson
from thresher.progress import parts_bar
from thresher.schema.draft import draft as drafted
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
    as_json: AsJson = False,
) -> None:
    """Look at DATA and write a first version of its schema.

    It holds values that were READ FROM THE DATA, each marked: replace them by public knowledge. Until then the file is
    as private as the data, and certificates say what they rest on.

    Example: thresher schema draft patients.csv --target stay --out patients.toml
    """
    path = out_path or data.with_suffix(".toml")
    check_folder(path)
    if path.exists():
        raise ValueError(f"--out={str(path)!r} exists; a draft overwrites nothing, give another name")
    with parts_bar("reading", enabled=True) as tell:
        text = drafted(data, target, person, tell)
    path.write_text(text, encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(Schema.read(path).to_dict(), indent=2))
        return
    out.print(f"Written to {path}. Values marked read_from_data are private until you replace them.", markup=False)
    out.print(f"Next: edit it, then: thresher schema check {data} --schema {path}", markup=False)


@schema.command()
@guarded
def check(
    data: Table,
    table: Annotated[Path, typer.Option("--schema", help="The schema of DATA.")],
    as_json: AsJson = False,
) -> None:
    """Whether DATA has the columns that its schema declares, and what a fit makes of them.

    Reads the first line of DATA only: nothing it prints depends on a person.

    Example: thresher schema check patients.csv --schema patients.toml
    """
    declared = Schema.read(table)
    whole = declared.for_columns(source_of(data, declared.delimiter).names)
    whole.require(source_of(data, declared.delimiter))
    record = _record(whole)
    if as_json:
        typer.echo(json.dumps(record, indent=2))
    else:
        show_schema(whole, record)


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
