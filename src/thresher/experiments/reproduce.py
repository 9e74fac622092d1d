"""Runs experiments one after the other and writes what they show into one folder."""

from __future__ import annotations

import importlib.util
import json
import platform
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

from thresher.datasets import MissingDataError, load
from thresher.experiments.experiment import Experiment
from thresher.experiments.rows import read_rows, write_rows
from thresher.experiments.runner import run_experiment
from thresher.report.reproduction import Outcome, markdown, reproduction_page, write_figures

__all__ = ["reproduce"]

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
    outcomes = []
    for experiment in experiments:
        outcome = _run(experiment, out, quick, jobs, verbose)
        outcomes.append(outcome)
        tell(outcome)
    told = f"Made by {_command(experiments, quick)}; {_versions()}."
    (out / "run.json").write_text(json.dumps(_record(outcomes, told, time.perf_counter() - start), indent=2) + "\n")
    write_figures(outcomes, out / "figures")
    (out / "results.md").write_text(markdown(outcomes, told))
    (out / "index.html").write_text(reproduction_page(outcomes, told))
    return outcomes


def _run(experiment: Experiment, out: Path, quick: bool, jobs: int, verbose: int) -> Outcome:
    missing = _missing(experiment)
    if missing:
        return Outcome(experiment, missing=missing)
    kept = out / "cells" / experiment.name
    rows, seconds = run_experiment(experiment, experiment.cells(quick), kept, jobs=jobs, verbose=verbose)
    file = out / f"{experiment.name}.csv"
    write_rows(rows, file)
    return Outcome(experiment, read_rows(file), seconds=seconds)


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


def _record(outcomes: Sequence[Outcome], told: str, seconds: float) -> dict[str, object]:
    each = {
        outcome.experiment.name: {
            "measurements": len(outcome.rows), "seeds": sorted({row["seed"] for row in outcome.rows if "seed" in row}),
            "seconds": round(outcome.seconds, 1), "missing": outcome.missing,
        }
        for outcome in outcomes
    }  # fmt: skip
    return {"told": told, "seconds": round(seconds, 1), "experiments": each}
