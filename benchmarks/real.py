"""Every algorithm with its public defaults on real data, beside the non-private model and the trivial one.

Bounds are public facts about each table (a one-hot attribute has one 1, a tf-idf row has norm 1, a genotype is 0, 1 or
2); delta is 1/n^2, replace-one. Accuracy for classes, R^2 for numbers, on rows that were not fitted. Prints Markdown.

Run: THRESHER_DATA=... ./dev accuracy real [NAME ...]
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.model_selection import train_test_split

from thresher import SparseClassifier, SparseRegressor
from thresher.algorithms import REGISTRY

SEEDS = 5
EPSILONS = (0.5, 1, 4)
PRIVATE = ("auto", *(name for name in REGISTRY if name != "ight"))


@dataclass(frozen=True)
class Task:
    """Rows to fit and rows to score, and the public facts that go with them."""

    parts: tuple[Any, Any, Any, Any]  # X, X_test, y, y_test
    sparsity: int
    bounds: dict[str, Any] = field(default_factory=dict)
    regression: bool = False
    algorithms: tuple[str, ...] = PRIVATE

    def score(self, algorithm: str, epsilon: float, seed: int) -> float:
        X, X_test, y, y_test = self.parts
        kind: Any = SparseRegressor if self.regression else SparseClassifier
        model = kind(self.sparsity, epsilon=epsilon, algorithm=algorithm, random_state=seed, **self.bounds)
        return float(model.fit(X, y).score(X_test, y_test))

    def trivial(self) -> float:
        _, _, y, y_test = self.parts
        if self.regression:
            return 0.0
        labels, counts = np.unique(y, return_counts=True)
        return float(np.mean(y_test == labels[np.argmax(counts)]))


def tf_idf(path: Path, idf: Any) -> Any:
    """Unit tf-idf rows from raw counts."""
    X = sparse.csr_array(sparse.load_npz(path))
    X.data = (1 + np.log(X.data)) * idf[X.indices]
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(np.maximum(norms, 1e-12), np.diff(X.indptr))
    return X


def text(folder: Path, name: str, target: str, **facts: Any) -> Task:
    files = [folder / f"{name}_{part}.npz" for part in ("train", "test")]
    idf = np.load(files[0])["idf"]
    X, X_test = (tf_idf(file, idf) for file in files)
    y, y_test = (np.load(file)[target] for file in files)
    return Task((X, X_test, y, y_test), **facts)


def imdb(folder: Path) -> Task:
    return text(folder, "imdb", "y", sparsity=500, bounds={"row_bound": 1.0})


def imdb_rating(folder: Path) -> Task:
    bounds = {"row_bound": 1.0, "target_bound": (1, 10)}
    return text(folder, "imdb", "rating", sparsity=500, bounds=bounds, regression=True)


def many_classes(folder: Path, name: str, classes: int) -> Task:
    """auto shares one gradient; the other one stands for all that fit one class against the rest."""
    bounds = {"row_bound": 1.0, "classes": range(classes)}
    return text(folder, name, "y", sparsity=200, bounds=bounds, algorithms=("auto", "output-perturbation"))


def news20(folder: Path) -> Task:
    return many_classes(folder, "news20", 20)


def reuters(folder: Path) -> Task:
    return many_classes(folder, "reuters_r52", 52)


def a9a(folder: Path) -> Task:
    """14 attributes, one-hot."""
    files = [folder / f"a9a_{part}.npz" for part in ("train", "test")]
    X, X_test = (sparse.load_npz(file) for file in files)
    y, y_test = (np.load(file)["y"] for file in files)
    return Task((X, X_test, y, y_test), 20, {"feature_bound": 1.0, "row_bound": 14**0.5})


def diabetes130(folder: Path) -> Task:
    """8 numbers over their maxima, 33 one-hot attributes, up to 3 diagnoses; is the patient readmitted?"""
    data = np.load(folder / "diabetes130.npz")
    X = sparse.csr_array(sparse.load_npz(folder / "diabetes130.npz"))
    test = data["is_test"].astype(bool)
    parts = (X[~test], X[test], data["y_any"][~test], data["y_any"][test])
    return Task(parts, 20, {"feature_bound": 1.0, "row_bound": 44**0.5})


COVTYPE_RANGES = (4000, 360, 90, 2000, 1000, 8000, 255, 255, 255, 8000)
"""Metres, degrees and shades of the ten numeric columns, rounded up; the other 44 are 0 or 1, two of them 1."""


def covtype(folder: Path) -> Task:
    """Lodgepole pine or not."""
    data = np.load(folder / "covtype.npz")
    X = data["X"] / np.concatenate([COVTYPE_RANGES, np.ones(44)])
    X, X_test, y, y_test = train_test_split(X, data["y"] == 2, test_size=0.2, random_state=0)
    return Task((X, X_test, y, y_test), 20, {"feature_bound": 1.0, "row_bound": 12**0.5})


def mice_genomics(folder: Path) -> Task:
    """Body weight in grams from 10346 genotypes 0, 1, 2, taken to -1, 0, 1."""
    data = np.load(folder / "mice_genomics.npz")
    X, X_test, y, y_test = train_test_split(data["X"] - 1.0, data["body_weight"], test_size=0.2, random_state=0)
    return Task((X, X_test, y, y_test), 10, {"feature_bound": 1.0, "target_bound": (10, 40)}, regression=True)


def leukemia(folder: Path) -> Task:
    """72 patients: signed log expression over its largest possible value."""
    data = np.load(folder / "leukemia_golub.npz")
    X = np.sign(data["X"]) * np.log1p(np.abs(data["X"])) / np.log1p(1e5)
    X, X_test, y, y_test = train_test_split(X, data["y"], test_size=0.3, random_state=0, stratify=data["y"])
    return Task((X, X_test, y, y_test), 5, {"feature_bound": 1.0})


TASKS: dict[str, Callable[[Path], Task]] = {
    task.__name__: task
    for task in (imdb, imdb_rating, diabetes130, a9a, covtype, mice_genomics, leukemia, news20, reuters)
}


def report(name: str, folder: Path) -> None:
    task = TASKS[name](folder)
    n, d = task.parts[0].shape
    exact, trivial = task.score("ight", float("inf"), 0), task.trivial()
    print(f"\n{name}, {n} x {d}, {task.sparsity} features; non-private IGHT {exact:.3f}, trivial {trivial:.3f}\n")
    print("| epsilon |", " | ".join(task.algorithms), "|")
    print("|---" * (len(task.algorithms) + 1) + "|")
    for epsilon in EPSILONS:
        cells = [np.mean([task.score(each, epsilon, seed) for seed in range(SEEDS)]) for each in task.algorithms]
        print(f"| {epsilon} |", " | ".join(f"{cell:.3f}" for cell in cells), "|", flush=True)


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    folder = Path(os.environ.get("THRESHER_DATA", ""))
    if not (folder / "imdb_train.npz").exists():
        print("\nReal data skipped: set THRESHER_DATA to the folder that holds imdb_train.npz and the other sets.")
        return
    for name in names or TASKS:
        report(name, folder)


if __name__ == "__main__":
    main(sys.argv[1:])
