"""The local model: what one report costs in accuracy, a million people, and real tables, as Markdown.

Errors against n, d and epsilon are experiments: thresher reproduce x9 x11.

Run: ./dev local [errors | crowd | tables]
"""

from __future__ import annotations

import os
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

import real
from thresher import LocalSparseClassifier, LocalSparseRegressor
from thresher.privacy.budget import PrivacyWarning
from thresher.vaults.randomisers import VECTOR_RANDOMISERS, Laplace, Piecewise
from thresher_papers.datasets import ldp_law

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)


def row(*values: Any) -> None:
    print("| " + " | ".join(f"{v:.3g}" if isinstance(v, float) else str(v) for v in values) + " |", flush=True)


def header(*names: str) -> None:
    print()
    row(*names)
    print("|" + "---|" * len(names))


def errors() -> None:
    """Mean squared error of one report, in units of the person's bound: known constants, nothing measured."""
    header("one report of +-1 vectors, d=100: error / d^2", *(f"epsilon {e:g}" for e in EPSILONS))
    for name, points in report_errors(100).items():
        row(name, *points)
    header("one label at a third of its range: variance", *(f"epsilon {e:g}" for e in EPSILONS))
    row("laplace", *(Laplace(e).variance(1 / 3) for e in EPSILONS))
    row("piecewise", *(Piecewise(e).variance(1 / 3) for e in EPSILONS))


def report_errors(d: int) -> dict[str, list[float]]:
    """The mean squared error of one report of a vector of +-1, over d^2, by randomiser."""
    radius = {name: d**0.5 if name in ("duchi-l2", "priv-unit") else 1.0 for name in VECTOR_RANDOMISERS}
    return {
        name: [make(d, epsilon).second_moment * radius[name] ** 2 / d**2 for epsilon in EPSILONS]
        for name, make in VECTOR_RANDOMISERS.items()
    }


def crowd(sizes: Iterable[int] = (100_000, 1_000_000)) -> None:
    """A million people with a hundred columns each."""
    header("people", "columns", "seconds", "memory beside the data (MB)", "relative error")
    for n in sizes:
        law = ldp_law(n, 100, 5, unit=True)
        X, y, theta = law.draw(seed=0)
        model = LocalSparseRegressor(5, 1.0, feature_bound=1.0, target_bound=law.largest_target, random_state=0)
        start = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
        tracemalloc.start()
        model.fit(X, y)
        memory = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        row(n, 100, seconds, memory, float(np.linalg.norm(model.coef_ - theta)))


def tables() -> None:
    """Test accuracy on real tables, each row of which plays a person; beside the trivial and the non-private model."""
    folder = Path(os.environ.get("THRESHER_DATA", ""))
    if not (folder / "a9a_train.npz").exists():
        print("\nReal data skipped: set THRESHER_DATA to the folder that holds a9a_train.npz and the other sets.")
        return
    names = ("label-ldp-iht", "ldp-iht")
    header("people x columns, features", "epsilon", *names, "trivial", "IGHT, not private")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        for task_name in ("a9a", "diabetes130", "covtype"):
            task = real.TASKS[task_name](folder)
            trivial, exact = task.trivial(), task.score("ight", float("inf"), 0)
            n, d = task.parts[0].shape
            for epsilon in (1.0, 4.0):
                scores = [np.mean([_accuracy(task, name, epsilon, seed) for seed in range(3)]) for name in names]
                row(f"{task_name}, {n} x {d}, {task.sparsity}", epsilon, *scores, trivial, exact)


def _accuracy(task: real.Task, algorithm: str, epsilon: float, seed: int) -> float:
    X, X_test, y, y_test = task.parts
    model = LocalSparseClassifier(task.sparsity, epsilon, algorithm=algorithm, random_state=seed, **task.data.bounds)
    return float(model.fit(X, y).score(X_test, y_test))


def main(arguments: list[str]) -> None:
    for name in arguments or TABLES:
        TABLES[name]()


TABLES: dict[str, Callable[[], None]] = {"errors": errors, "crowd": crowd, "tables": tables}


def smallest() -> None:
    errors()
    crowd([500])


if __name__ == "__main__":
    main(sys.argv[1:])
