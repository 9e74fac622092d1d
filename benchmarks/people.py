"""What it costs to protect a person rather than a row, on diabetes130, where a patient has a row for each stay.

The default algorithm with its public defaults, at most 20 of 1175 features, delta 1/n^2 (n the number of rows, or of
people), replace-one. Scored on the stays of other patients: accuracy over rows, accuracy over people (the average over
people of the share of their rows that is right), and the area under the ROC curve. Means over seeds. Prints Markdown.

Run: THRESHER_DATA=... python benchmarks/people.py
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from sets import two_classes
from thresher import SparseClassifier
from thresher_papers.datasets import RealSet, load

SEEDS = 5
EPSILONS = (0.5, 1, 4, 8, float("inf"))
SPARSITY = 20
SCORES = ("accuracy over rows", "accuracy over people", "area under the ROC curve")


def ways(data: RealSet) -> dict[str, tuple[Any, Any, Any]]:
    """X, y and groups of each way to fit."""
    _, first = np.unique(data.groups, return_index=True)
    return {
        "all rows, protects a row": (data.X, data.y, None),
        "all rows, protects a person": (data.X, data.y, data.groups),
        "first row of each, protects a person": (data.X[first], data.y[first], None),
    }


def share_of_people(flags: NDArray[np.bool_], groups: Any) -> float:
    """The average over people of the share of their rows that have the flag."""
    _, person = np.unique(groups, return_inverse=True)
    return float(np.mean(np.bincount(person, flags) / np.bincount(person)))


def scores(data: RealSet, way: tuple[Any, Any, Any], epsilon: float, seeds: int = SEEDS) -> NDArray[np.float64]:
    """A row for each seed, a column for each of SCORES."""
    X, y, groups = way
    found = []
    for seed in range(seeds if np.isfinite(epsilon) else 1):
        model = SparseClassifier(min(SPARSITY, data.X.shape[1]), epsilon=epsilon, random_state=seed, **data.bounds).fit(
            X, y, groups=groups
        )
        right = model.predict(data.X_test) == data.y_test
        area = roc_auc_score(data.y_test, model.decision_function(data.X_test))
        found.append((right.mean(), share_of_people(right, data.groups_test), area))
    return np.array(found)


def main() -> None:
    warnings.simplefilter("ignore")  # that privacy is off in the last line of each table
    report(load("diabetes130"))


def report(data: RealSet, epsilons: Iterable[float] = EPSILONS, seeds: int = SEEDS) -> None:
    people, counts = np.unique(data.groups, return_counts=True)
    several, most = np.mean(counts > 1), counts.max()
    print(f"{len(data.y)} rows of {len(people)} people, of whom {several:.0%} have several; the most is {most}.")
    never = data.y_test == min(data.bounds["classes"])
    print(f"Trivial model: {never.mean():.3f} over rows, {share_of_people(never, data.groups_test):.3f} over people.")
    found = ways(data)
    table = {epsilon: [scores(data, way, epsilon, seeds) for way in found.values()] for epsilon in epsilons}
    for at, name in enumerate(SCORES):
        print(f"\n| {name}: epsilon |", " | ".join(found), "|")
        print("|---" * (len(found) + 1) + "|")
        for epsilon, cells in table.items():
            told = [f"{cell[:, at].mean():.3f} ± {cell[:, at].std():.3f}" for cell in cells]
            print(f"| {epsilon} |", " | ".join(told), "|")


def smallest() -> None:
    report(two_classes(), epsilons=[4], seeds=1)


if __name__ == "__main__":
    main()
