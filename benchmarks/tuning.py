"""Does a private search pay? Fixed choices against PrivateSearchCV at equal total epsilon, on real data.

For each question that a user may have about a set: the score on test rows of a guess, of the candidates of the pool on
average (somebody who picks one blindly), of the search, and of the best candidate in hindsight, which nobody knows
without paying. All but the search fit all rows with the whole budget. Means over SEEDS seeds with standard errors;
accuracy for classes, R^2 for numbers; delta is 1/n^2, replace-one. Before that, the price table.

Run: THRESHER_DATA=... ./dev tuning [prices | NAME ...]
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from accuracy import header, row
from thresher import DenseClassifier, PrivateSearchCV, SparseClassifier, SparseRegressor
from thresher.models.candidates import candidates_of
from thresher_papers.datasets import load

SEEDS, EPSILONS = 10, (1.0, 4.0)
TRIALS = (1, 2, 3, 5, 8, 10, 20, 50)


@dataclass(frozen=True)
class Question:
    """What is not known about a set, what would be guessed, and what is tried."""

    data: str
    words: str
    kind: Any
    guess: dict[str, Any]
    pool: dict[str, list[Any]]


QUESTIONS = {
    "a9a": Question(
        "a9a", "how many features, which algorithm", SparseClassifier, {},
        {"sparsity": [5, 10, 20, 40], "algorithm": ["pursuit", "dp-ight"]},
    ),
    "diabetes130": Question(
        "diabetes130", "how many features, which algorithm", SparseClassifier, {},
        {"sparsity": [5, 10, 20, 40], "algorithm": ["pursuit", "dp-ight"]},
    ),
    "imdb": Question("imdb", "how many words", SparseClassifier, {}, {"sparsity": [10, 30, 100, 300, 1000]}),
    "adult": Question(
        "adult", "how long rows are (guess: ten times too long)", DenseClassifier,
        {"row_bound": 10.0, "algorithm": "dp-sgd"}, {"row_bound": [0.1, 0.3, 1.0, 3.0, 10.0]},
    ),
    "imdb_rating": Question(
        "imdb_rating", "on which scale films are rated (guess: up to 100)", SparseRegressor,
        {"sparsity": 300, "target_bound": (0.0, 100.0)},
        {"target_bound": [(0.0, 5.0), (0.0, 10.0), (0.0, 20.0), (0.0, 50.0), (0.0, 100.0)]},
    ),
    "stay": Question(
        "diabetes130_stay", "how long patients stay (guess: a year at most)", SparseRegressor,
        {"target_bound": (0.0, 365.0)},
        {"target_bound": [(0.0, 7.0), (0.0, 14.0), (0.0, 30.0), (0.0, 90.0), (0.0, 365.0)]},
    ),
}  # fmt: skip


def prices(expected: Sequence[int] = TRIALS, epsilons: Sequence[float] = (0.5, 1.0, 4.0)) -> None:
    """What is left for one trial of what epsilon buys in all, by the expected number of trials."""
    print("\nA trial's part of epsilon by the expected number of trials, n = 10,000, delta 1e-6\n")
    kinds: dict[str, Any] = {
        "Gaussian (dp-ight)": SparseClassifier(5, row_bound=1.0, algorithm="dp-ight"),
        "batches (dp-sgd)": DenseClassifier(row_bound=1.0, algorithm="dp-sgd"),
        "choices (pursuit)": SparseClassifier(5, row_bound=1.0, algorithm="pursuit"),
    }
    header("noise", "epsilon", *expected)
    for name, model in kinds.items():
        for epsilon in epsilons:
            plans = [
                PrivateSearchCV(model, {"row_bound": [1.0]}, epsilon=epsilon, delta=1e-6, trials=trials).plan(
                    10_000, 50
                )
                for trials in expected
            ]
            row(name, epsilon, *(f"{plan.settings['trial_epsilon'] / epsilon:.2f}" for plan in plans))


def report(question: Question, folder: Path) -> None:
    data = load(question.data, folder)
    known = {**data.bounds, **question.guess}
    model = question.kind(**known)
    params = candidates_of(model, question.pool, 1)
    for epsilon in EPSILONS:

        def score(fitted: Any, seed: int, epsilon: float = epsilon) -> float:
            fitted = clone(fitted).set_params(epsilon=epsilon, random_state=seed).fit(data.X, data.y)
            return float(fitted.score(data.X_test, data.y_test))

        guess = [score(model, seed) for seed in range(SEEDS)]
        pool = np.array([[score(model.set_params(**each), s) for s in range(SEEDS)] for each in params])
        model = question.kind(**known)
        search = [score(PrivateSearchCV(model, question.pool), seed) for seed in range(SEEDS)]
        best = pool[np.argmax(pool.mean(axis=1))]
        columns = (guess, pool.mean(axis=0), search, best)
        row(question.data, question.words, epsilon, *map(_told, columns))


def _told(scores: Any) -> str:
    return f"{np.mean(scores):.3f} ± {np.std(scores, ddof=1) / np.sqrt(len(scores)):.3f}"


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    if not names or "prices" in names:
        prices()
    asked = [name for name in names or QUESTIONS if name != "prices"]
    folder = Path(os.environ.get("THRESHER_DATA", ""))
    if not (folder / "a9a_train.npz").exists():
        print("\nReal data skipped: set THRESHER_DATA to the folder that holds a9a_train.npz and the other sets.")
        return
    print()
    header("data", "not known", "epsilon", "guess", "mean of the pool", "search", "best of the pool, in hindsight")
    for name in asked:
        report(QUESTIONS[name], folder)


def smallest() -> None:
    prices([2], [4.0])


if __name__ == "__main__":
    main(sys.argv[1:])
