"""Runs cells in parallel and keeps each as it is finished: what was interrupted goes on where it stopped."""

from __future__ import annotations

import hashlib
import inspect
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config

from thresher.privacy.progress import progress_bar
from thresher.privacy.warnings import ThresherWarning
from thresher_papers.experiments.experiment import Cell, Experiment, Row

__all__ = ["run_experiment"]


def run_experiment(
    experiment: Experiment, cells: Sequence[Cell], kept: Path, *, jobs: int = -1, verbose: int = 0
) -> tuple[list[Row], float]:
    """The rows of all cells, in the order of the cells, and the seconds that they took; those in ``kept`` are read.

    A kept cell counts only for the same version of thresher and if the file that runs it is still what it was.
    """
    kept.mkdir(parents=True, exist_ok=True)
    whole = kept.resolve()  # processes are kept from earlier calls, and with them the folder they were started in
    files = [whole / f"{_digest(experiment, cell)}.json" for cell in cells]
    missing = [(cell, file) for cell, file in zip(cells, files, strict=True) if not file.exists()]
    with progress_bar(experiment.name, len(cells), enabled=verbose > 0) as advance:
        for _ in range(len(cells) - len(missing)):
            advance()
        for _ in _finished(experiment.run, missing, jobs):
            advance()
    found = [json.loads(file.read_text()) for file in files]
    return [row for record in found for row in record["rows"]], sum(record["seconds"] for record in found)


def _finished(run: Callable[..., list[Row]], todo: list[tuple[Cell, Path]], jobs: int) -> Iterator[None]:
    # one BLAS thread in each process: the cores are busy, and sums do not depend on how many there are
    with parallel_config(backend="loky", n_jobs=jobs, inner_max_num_threads=1):
        yield from Parallel(return_as="generator_unordered")(delayed(_run_one)(run, *task) for task in todo)


def _run_one(run: Callable[..., list[Row]], cell: Cell, file: Path) -> None:
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ThresherWarning)  # a delta of .01, printed noise, no privacy: all on purpose
        rows = run(**cell)
    record = {"cell": dict(cell), "seconds": time.perf_counter() - start, "rows": [dict(row) for row in rows]}
    part = file.with_suffix(".part")
    part.write_text(json.dumps(record, default=_number) + "\n")
    part.replace(file)  # all of it, or nothing


def _digest(experiment: Experiment, cell: Cell) -> str:
    source = Path(inspect.getfile(experiment.run)).read_text()
    told = [experiment.name, dict(cell), source, version("thresher")]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:20]


def _number(value: Any) -> Any:
    return value.item()
