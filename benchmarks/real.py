"""Every algorithm with its public defaults on real data, beside the non-private model and the trivial one.

Bounds are public facts about each table (docs/data.md); delta is 1/n^2, replace-one. Accuracy for classes, R^2 for
numbers, on rows that were not fitted. Prints Markdown.

Run: THRESHER_DATA=... ./dev accuracy real [NAME ...]
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sets import two_classes
from thresher import SparseClassifier, SparseRegressor
from thresher.algorithms import REGISTRY
from thresher_papers.datasets import RealSet, load

SEEDS = 5
EPSILONS = (0.5, 1, 4)
PRIVATE = ("auto", *(name for name in REGISTRY if name != "ight"))


@dataclass(frozen=True)
class Task:
    """A real set, and how many of its features a model may use."""

    data: RealSet
    sparsity: int
    algorithms: tuple[str, ...] = PRIVATE

    @property
    def parts(self) -> tuple[Any, Any, Any, Any]:
        return self.data.X, self.data.X_test, self.data.y, self.data.y_test

    def score(self, algorithm: str, epsilon: float, seed: int) -> float:
        X, X_test, y, y_test = self.parts
        kind: Any = SparseRegressor if self.data.regression else SparseClassifier
        model = kind(self.sparsity, epsilon=epsilon, algorithm=algorithm, random_state=seed, **self.data.bounds)
        return float(model.fit(X, y).score(X_test, y_test))

    def trivial(self) -> float:
        _, _, y, y_test = self.parts
        if self.data.regression:
            return 0.0
        labels, counts = np.unique(y, return_counts=True)
        return float(np.mean(y_test == labels[np.argmax(counts)]))


def of(name: str, sparsity: int, algorithms: tuple[str, ...] = PRIVATE) -> Callable[[Path], Task]:
    return lambda folder: Task(load(name, folder), sparsity, algorithms)


MANY_CLASSES = ("auto", "output-perturbation")
"""auto shares one gradient; the other one stands for all that fit one class against the rest."""

TASKS: dict[str, Callable[[Path], Task]] = {
    "imdb": of("imdb", 500),
    "imdb_rating": of("imdb_rating", 500),
    "diabetes130": of("diabetes130", 20),
    "a9a": of("a9a", 20),
    "covtype": of("covertype", 20),
    "mice_genomics": of("mice_genomics", 10),
    "leukemia": of("leukemia", 5),
    "news20": of("news20", 200, MANY_CLASSES),
    "reuters": of("reuters", 200, MANY_CLASSES),
}


def report(name: str, task: Task, epsilons: Iterable[float] = EPSILONS, seeds: int = SEEDS) -> None:
    n, d = task.parts[0].shape
    exact, trivial = task.score("ight", float("inf"), 0), task.trivial()
    print(f"\n{name}, {n} x {d}, {task.sparsity} features; non-private IGHT {exact:.3f}, trivial {trivial:.3f}\n")
    print("| epsilon |", " | ".join(task.algorithms), "|")
    print("|---" * (len(task.algorithms) + 1) + "|")
    for epsilon in epsilons:
        cells = [np.mean([task.score(each, epsilon, seed) for seed in range(seeds)]) for each in task.algorithms]
        print(f"| {epsilon} |", " | ".join(f"{cell:.3f}" for cell in cells), "|", flush=True)


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    folder = Path(os.environ.get("THRESHER_DATA", ""))
    if not (folder / "imdb_train.npz").exists():
        print("\nReal data skipped: set THRESHER_DATA to the folder that holds imdb_train.npz and the other sets.")
        return
    for name in names or TASKS:
        report(name, TASKS[name](folder))


def smallest() -> None:
    report("classes", Task(two_classes(), 2, ("auto", "dp-ight")), epsilons=[4], seeds=1)


if __name__ == "__main__":
    main(sys.argv[1:])
