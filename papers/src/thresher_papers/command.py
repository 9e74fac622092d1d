"""thresher reproduce: the papers' tables and figures, one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thresher.cli.options import AsJson
from thresher.report.page import check_writable

if TYPE_CHECKING:
    from thresher_papers.experiments.experiment import Experiment
    from thresher_papers.page import Outcome

__all__ = ["reproduce", "show_outcome"]


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[list | ID ...]",
            help="Experiments, such as x5 x6; all by default.",
            autocompletion=lambda: _names(),
        ),
    ] = None,
    quick: Annotated[bool, typer.Option(help="Fewer seeds, budgets and rows: minutes for all of them.")] = False,
    out_path: Annotated[Path, typer.Option("--out", help="A folder; what is finished in it is not run again.")] = Path(
        "reproduction"
    ),
    jobs: Annotated[int, typer.Option(help="Processes; -1 for all cores.")] = -1,
    as_json: AsJson = False,
) -> None:
    """The tables and figures of the papers: what they print, what the printed formulas give, what sound noise gives.

    Writes index.html, results.md and the measurements into a folder. Real data is read from the folder that the
    environment variable THRESHER_DATA names; what is missing is said and left out.

    Examples:

    \b
    thresher reproduce list
    thresher reproduce x5 --quick
    thresher reproduce --out results
    """
    from thresher.cli.display import out, quiet_output, show_json
    from thresher_papers.experiments import find_experiments
    from thresher_papers.experiments.reproduce import reproduce as run_experiments

    if names == ["list"]:
        known = find_experiments([])
        if as_json:
            kept = ("name", "title", "source", "needs", "extra")
            show_json([{name: getattr(each, name) for name in kept} for each in known])
        else:
            _show_experiments(known)
        return
    experiments = find_experiments(names or [])
    if out_path.exists() and not out_path.is_dir():
        raise ValueError(f"--out={str(out_path)!r} is a file; give a folder")
    out_path.mkdir(parents=True, exist_ok=True)
    check_writable(out_path / "index.html")
    with quiet_output(as_json):
        outcomes = run_experiments(experiments, out_path, quick=quick, jobs=jobs, verbose=1, tell=show_outcome)
        out.print(f"Written to {out_path / 'index.html'}.")
    if as_json:
        show_json([outcome.to_dict() for outcome in outcomes])


def _show_experiments(experiments: Iterable[Experiment]) -> None:
    from rich.table import Table as Grid

    from thresher.cli.display import out

    grid = Grid("id", "what", "where", "needs")
    for each in experiments:
        needs = [*each.needs, *([f"thresher[{each.extra}]"] if each.extra else [])]
        grid.add_row(each.name, each.title, each.source, ", ".join(needs))
    out.print(grid)


def show_outcome(outcome: Outcome) -> None:
    """The verdicts of an experiment, as it comes."""
    from thresher.cli.display import out
    from thresher_papers.experiments.experiment import Verdict

    if outcome.missing:
        out.print(f"{outcome.experiment.name}: not run: {outcome.missing}")
    for part in outcome.parts:
        if isinstance(part, Verdict):
            holds = "holds" if part.holds else "does not hold"
            out.print(f"{outcome.experiment.name}: {holds}: {part.text}")


def _names() -> list[str]:
    from thresher_papers.experiments import NAMES

    return ["list", *NAMES]
