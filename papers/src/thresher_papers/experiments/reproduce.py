"""Runs experiments one after the other and writes what they show into one folder."""

from __future__ import annotations

import importlib.util
import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from thresher_papers.datasets import MissingDataError, load
from thresher_papers.experiments import find_experiments
from thresher_papers.experiments.experiment import Experiment
from thresher_papers.experiments.rows import read_rows, values_of, write_rows
from thresher_papers.experiments.runner import run_experiment
from thresher_papers.page import Outcome, markdown, reproduction_page, write_figures

__all__ = ["outcomes_in", "reproduce"]

PACKAGES = {"torch": "torch", "mpc": "mpyc"}  # what an extra brings


def reproduce(
    experiments: Sequence[Experiment], out: Path, *, quick: bool, jobs: int = -1, verbose: int = 0,
    tell: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:  # fmt: skip
    """One outcome for each; ``tell`` hears of every one as it comes.

    The folder then holds ``index.html``, ``results.md`` with ``figures/``, a CSV (and Parquet) file for each experiment
    and ``cells/``, from which an interrupted run goes on. The page is built from the files, not from memory.
    """
    start = time.perf_counter()
    records = {}
    for experiment in experiments:
        records[experiment.name] = _run(experiment, out, quick, jobs, verbose)
        tell(_outcome(experiment.name, records[experiment.name], out))
    told = f"Made by {_command(experiments, quick)}; {_versions()}."
    record = {"told": told, "seconds": round(time.perf_counter() - start, 1), "experiments": records}
    (out / "run.json").write_text(json.dumps(record, indent=2) + "\n")
    outcomes, _ = outcomes_in(out)
    write_figures(outcomes, out / "figures")
    (out / "results.md").write_text(markdown(outcomes, told))
    (out / "index.html").write_text(reproduction_page(outcomes, told))
    return outcomes


def outcomes_in(folder: Path) -> tuple[list[Outcome], str]:
    """What a folder holds, and how it was made."""
    record = json.loads((folder / "run.json").read_text())
    return [_outcome(name, each, folder) for name, each in record["experiments"].items()], record["told"]


def _outcome(name: str, record: Mapping[str, Any], folder: Path) -> Outcome:
    (experiment,) = find_experiments([name])
    rows = [] if record["missing"] else read_rows(folder / f"{name}.csv")
    return Outcome(experiment, rows, record["missing"], record["seconds"])


def _run(experiment: Experiment, out: Path, quick: bool, jobs: int, verbose: int) -> dict[str, Any]:
    """Leaves rows in the folder; returns what ``run.json`` tells of them."""
    missing = _missing(experiment)
    if missing:
        return {"missing": missing, "seconds": 0.0, "seeds": []}
    kept = out / "cells" / experiment.name
    rows, seconds = run_experiment(experiment, experiment.cells(quick), kept, jobs=jobs, verbose=verbose)
    write_rows(rows, out / f"{experiment.name}.csv")
    return {"missing": "", "seconds": round(seconds, 1), "seeds": values_of(rows, "seed")}


def _missing(experiment: Experiment) -> str:
    """What it needs and has not got, with the remedy."""
    if experiment.extra is not None and importlib.util.find_spec(PACKAGES[experiment.extra]) is None:
        return f"it needs one more package; run: pip install 'thresher[{experiment.extra}]'"
    for name in experiment.needs:
        try:
            load(name)
        except MissingDataError as error:
            return str(error)
    return ""


def _command(experiments: Sequence[Experiment], quick: bool) -> str:
    names = " ".join(experiment.name for experiment in experiments)
    return f"`thresher reproduce {names}{' --quick' if quick else ''}`"


def _versions() -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("thresher", "numpy", "scipy", "scikit-learn"))
    return f"{packages}, Python {platform.python_version()}"
