"""thresher ledger: grants, spending and proofs of an account book."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from thresher.cli.errors import complain
from thresher.cli.options import AsJson
from thresher.privacy.budget import Adjacency
from thresher.privacy.trust import Unit

if TYPE_CHECKING:
    from thresher.ledger import Entry

__all__ = ["ledger"]

ledger = typer.Typer(
    help="What may be spent on data sets, and what was: fits with --ledger count, across processes and crashes.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Book = Annotated[
    str, typer.Argument(metavar="LEDGER", help="A file such as budget.db, or postgresql://user@host/database.")
]
KeyFile = Annotated[
    Path | None, typer.Option("--key", help="The ledger's secret. Default: $THRESHER_LEDGER_KEY, or LEDGER.key.")
]
Dataset = Annotated[str, typer.Argument(help="The name of the data set.")]


@ledger.command()
def create(book: Book, key: KeyFile = None, as_json: AsJson = False) -> None:
    """Make an empty ledger and its key.

    Keep the key: without it nobody can read on, and with it anybody could forge. Example: thresher ledger create
    budget.db
    """
    from thresher.cli.display import out, show_json
    from thresher.ledger import Ledger

    made = Ledger(book, key=key)
    made.create()
    if as_json:
        show_json({"ledger": made.name, "key": str(made.key_path)})
        return
    out.print(f"{made!r} is there, and its key in {made.key_path}. Next: thresher ledger grant")


@ledger.command()
def grant(
    book: Book,
    dataset: Dataset,
    epsilon: Annotated[float, typer.Option(help="What all fits together may cost.")],
    delta: Annotated[float, typer.Option(help="At which delta; far below one over the number of rows.")],
    analyst: Annotated[str | None, typer.Option(help="Limit one analyst to this part of the data set's grant.")] = None,
    adjacency: Annotated[
        str,
        typer.Option(help="replace-one or add-remove; fits must use the same.", autocompletion=lambda: list(Adjacency)),
    ] = "replace-one",
    unit: Annotated[
        str,
        typer.Option(
            help="row, or person: all rows of one; fits must protect the same.",
            autocompletion=lambda: list(get_args(Unit)),
        ),
    ] = "row",
    key: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Allow so much to be spent on DATASET; a later grant takes the place of an earlier one.

    Example: thresher ledger grant budget.db patients --epsilon 3 --delta 1e-6
    """
    from thresher.cli.display import out, show_json
    from thresher.ledger import Ledger

    opened = Ledger(book, key=key)
    opened.grant(dataset, epsilon, delta, analyst=analyst, adjacency=adjacency, unit=unit)
    if as_json:
        show_json(opened.summary(dataset))
        return
    whose = "" if analyst is None else f", to {analyst}"
    out.print(f"Granted for {dataset!r}{whose}: epsilon {epsilon:g} at delta {delta:g}.")


@ledger.command()
def show(book: Book, key: KeyFile = None, as_json: AsJson = False) -> None:
    """Every data set: what was granted, what is spent or reserved, what one more fit may have."""
    from thresher.cli.display import show_json
    from thresher.ledger import Ledger

    opened = Ledger(book, key=key)
    records = [record for dataset in opened.datasets for record in opened.summary(dataset)]
    if as_json:
        show_json(records)
    else:
        _show_accounts(records)


@ledger.command()
def history(book: Book, dataset: Dataset, key: KeyFile = None, as_json: AsJson = False) -> None:
    """Every grant and fit of DATASET, in their order. A fit that is only reserved was stopped; it counts."""
    from thresher.cli.display import show_json
    from thresher.ledger import Ledger

    entries = Ledger(book, key=key).history(dataset)
    if as_json:
        show_json([asdict(entry) for entry in entries])
    else:
        _show_history(dataset, entries)


@ledger.command()
def verify(
    book: Book,
    head: Annotated[str | None, typer.Option(help="The hash that an earlier check printed.")] = None,
    model: Annotated[Path | None, typer.Option(help="A model that must have an entry here.")] = None,
    key: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Check that no entry was changed, left out or put in; exit status 1 if one was.

    Entries cut off at the end leave a whole chain: keep the hash this prints, and give it the next time.
    """
    from thresher.cli.display import out, show_json
    from thresher.ledger import Ledger
    from thresher.privacy.certificate import Certificate

    certificate = None if model is None else Certificate.read(model)
    check = Ledger(book, key=key).verify(head, certificate)
    if as_json:
        show_json(asdict(check))
    else:
        for problem in check.problems:
            complain(problem)
        if check:
            out.print(f"{check.entries} entries, none changed. Keep this hash: {check.head}")
        else:
            out.print("The ledger does NOT hold.")
    if not check:
        raise typer.Exit(1)


def _show_accounts(records: list[dict[str, Any]]) -> None:
    from thresher.cli.display import folding_grid, out

    grid = folding_grid("data set", "analyst", "granted", "spent", "one more fit", "fits", "unit")
    for record in records:
        unfinished = f", {record['reserved']} not finished" if record["reserved"] else ""
        grid.add_row(
            record["dataset"], record["analyst"] or "all",
            f"{record['granted']:g} at delta {record['delta']:g}", f"{record['spent']:.4g}",
            f"up to {record['affordable']:.4g}", f"{record['fits']}{unfinished}",
            f"{record['unit']}, {record['adjacency']}",
        )  # fmt: skip
    out.print(grid)
    if not records:
        out.print("No data set has a grant yet: thresher ledger grant")


def _show_history(dataset: str, entries: list[Entry]) -> None:
    from thresher.cli.display import folding_grid, out

    grid = folding_grid("when", "what", "analyst", "epsilon", "delta", "status", "entry")
    for entry in entries:
        what = "grant" if entry.kind == "grant" else f"fit, {entry.algorithm}"
        costs = f"{entry.epsilon:.4g}", f"{entry.delta:g}"
        grid.add_row(entry.at, what, entry.analyst or "", *costs, entry.status, entry.id)
    grid.title = dataset
    out.print(grid)
