"""The cells of the yard measured: every method on every table at every epsilon, in two processes, results kept."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse

from yard.calibration import calibration_of
from yard.coverage import coverage_of
from yard.encoded import Encoded
from yard.frames import NotHereError
from yard.kept import FOLDER, Kept
from yard.methods import DEFAULT, PAYING, encoded_table, one_score
from yard.references import best_scores
from yard.scores import trivial

__all__ = ["GRAM_OF_ALL", "LARGEST", "MORE", "WIDEST", "Measured", "measure", "measure_more"]

MORE: dict[str, Callable[..., Any]] = {"coverage": coverage_of, "calibration": calibration_of}

PROCESSES = 2
WHEREVER = (DEFAULT, PAYING)
"""What is measured at every epsilon and on every table."""
LARGEST = {"numbers": 20e6, "coefficients": 1e5}  # of rows to fit, of a model: with more, all methods but the default
# together would take hours
WIDEST = 1000  # columns: with more, a Gram matrix of all of them takes minutes
GRAM_OF_ALL = "dense newton"
REFUSED, SECONDS = "refused", "seconds"


@dataclass
class Measured:
    """What came out.

    Attributes
    ----------
    references : dict
        By table: "rows", "columns", "numbers" in the rows to fit, "coefficients" of a model with all columns,
        "trivial" and the scores of the non-private models.
    scores : dict
        By (table, method, epsilon): the scores of all fits, none where the method does not take the table.
    skipped : dict
        By table: why it could not be loaded.
    seconds : dict
        By (table, method, epsilon): the processor's seconds of the quickest fit, the one least disturbed.
    """

    references: dict[str, dict[str, float]] = field(default_factory=dict)
    scores: dict[tuple[str, str, float], list[Any]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    seconds: dict[tuple[str, str, float], float] = field(default_factory=dict)

    @property
    def too_large(self) -> list[str]:
        """Tables on which only the default is measured."""
        return [
            table
            for table, known in self.references.items()
            if any(known[what] > most for what, most in LARGEST.items())
        ]

    @property
    def too_wide(self) -> list[str]:
        """Others, on which ``GRAM_OF_ALL`` is not measured."""
        known = self.references
        return [table for table in known if known[table]["columns"] > WIDEST and table not in self.too_large]

    def skips(self, table: str, method: str) -> bool:
        """Whether a method is not measured on a table, since that would take too long."""
        if method in WHEREVER:
            return False
        return table in self.too_large or (method == GRAM_OF_ALL and table in self.too_wide)

    def least_and_best(self, table: str) -> tuple[float, float]:
        """The trivial score and the best non-private one."""
        known = self.references[table]
        return known["trivial"], max(known.get("no penalty", -1e9), known["l1"])


def measure(
    tables: Sequence[str], methods: Iterable[str], epsilons: Sequence[float], fits: int, folder: Path = FOLDER
) -> Measured:
    """The default at every epsilon, whatever its sparsity, the others at the least; progress on standard error."""
    found = Measured()
    jobs = [delayed(_references)(folder, table) for table in tables]
    for table, known in _in_parallel(jobs, "references"):
        if isinstance(known, str):
            found.skipped[table] = known
            print(f"skipped: {table}: {known}", file=sys.stderr)
        else:
            found.references[table] = known
    here = [table for table in tables if table in found.references]
    jobs = [
        delayed(_cells)(folder, table, method, epsilons if method in WHEREVER else [min(epsilons)], fits)
        for table in here
        for method in methods
        if not found.skips(table, method)
    ]
    for table, method, cells in _in_parallel(jobs, "methods"):
        for epsilon, (scores, seconds) in cells.items():
            found.scores[table, method, epsilon] = scores
            if seconds:
                found.seconds[table, method, epsilon] = min(seconds)
    return found


def measure_more(
    what: str, tables: Sequence[str], method: str, epsilons: Sequence[float], fits: int, folder: Path = FOLDER
) -> Measured:
    """Of each fit, what else there is to know of it: a key of ``MORE``."""
    found = Measured()
    jobs = [delayed(_more)(folder, what, table, method, epsilons, fits) for table in tables]
    for table, cells in _in_parallel(jobs, what):
        if isinstance(cells, str):
            found.skipped[table] = cells
            print(f"skipped: {table}: {cells}", file=sys.stderr)
            continue
        for epsilon, fitted in cells.items():
            found.scores[table, method, epsilon] = fitted
    return found


def _references(folder: Path, table: str) -> tuple[str, dict[str, float] | str]:
    kept = Kept(folder, table, "references", 0)
    if not kept.found:
        try:
            encoded = encoded_table(table)
        except NotHereError as why:
            return table, str(why)
        known = {"trivial": trivial(encoded), **best_scores(encoded)}
        facts = {"rows": encoded.size, "columns": encoded.X.shape[1], "numbers": numbers_of(encoded)}
        facts["coefficients"] = facts["columns"] * outputs_of(encoded)
        kept.add("known", facts | known)
    return table, kept.found["known"]


def outputs_of(encoded: Encoded) -> int:
    """Linear predictors of a model: one, or one for each of several classes."""
    return 1 if encoded.classes is None or len(encoded.classes) == 2 else len(encoded.classes)


def numbers_of(encoded: Encoded) -> int:
    """How many numbers the rows to fit hold: of sparse ones, those that are stored."""
    X = encoded.X[np.flatnonzero(~encoded.test)]
    return int(X.nnz if sparse.issparse(X) else X.size)


def _cells(
    folder: Path, table: str, method: str, epsilons: Sequence[float], fits: int
) -> tuple[str, str, dict[float, tuple[list[float], list[float]]]]:
    found = {}
    for epsilon in epsilons:
        kept = Kept(folder, table, method, epsilon)
        scores = _fits(kept, fits, partial(one_score, table, method, epsilon))
        found[epsilon] = scores, [value for key, value in kept.found.items() if key.endswith(SECONDS)]
    return table, method, found


def _more(
    folder: Path, what: str, table: str, method: str, epsilons: Sequence[float], fits: int
) -> tuple[str, dict[float, list[Any]] | str]:
    found = {}
    for epsilon in epsilons:
        kept = Kept(folder, table, f"{what} of {method}", epsilon)
        try:
            found[epsilon] = _fits(kept, fits, partial(MORE[what], table, method, epsilon))
        except NotHereError as why:
            return table, str(why)
    return table, found


def _fits(kept: Kept, fits: int, one: Callable[[int], Any]) -> list[Any]:
    """The results of as many fits, by their seeds; none where the method does not take the table."""
    for seed in range(fits):
        if REFUSED in kept.found:
            return []
        if str(seed) not in kept.found:
            try:
                start = time.process_time()  # of one thread: whatever else the machine does
                result = one(seed)
                kept.found[f"{seed} {SECONDS}"] = time.process_time() - start
                kept.add(seed, result)
            except ValueError as why:
                kept.add(REFUSED, str(why))
    return [kept.found[str(seed)] for seed in range(fits)] if REFUSED not in kept.found else []


def _in_parallel(jobs: list[Any], what: str) -> Iterator[Any]:
    """Results as they come."""
    start = time.monotonic()
    running = Parallel(n_jobs=min(PROCESSES, max(1, len(jobs))), return_as="generator_unordered", batch_size=1)
    for done, result in enumerate(running(jobs), 1):
        named = " ".join(part for part in result if isinstance(part, str))[:60]
        print(f"{what} {done}/{len(jobs)}, {time.monotonic() - start:.0f} s: {named}", file=sys.stderr, flush=True)
        yield result
