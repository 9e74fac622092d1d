"""Accuracy with public defaults on the papers' synthetic laws and, if the data folder is there, on three text sets.

The constants of the defaults were chosen with the synthetic laws and IMDB in view; Reuters and 20 Newsgroups were
not looked at. Prints the Markdown tables of the README.

Run: ./dev accuracy
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from thresher import PrivacyWarning, SparseClassifier, SparseRegressor
from thresher.datasets import SparseLaw, dp_ight_law, dpsl_kt_law

DRAWS, SEEDS = 20, 5
ALGORITHMS = ("dp-ight", "output-perturbation")


def _of_classes(part: Any, prefixes: tuple[str, ...]) -> Any:
    wanted = [k for k, name in enumerate(part["classes"]) if str(name).startswith(prefixes)]
    return np.isin(part["y"], wanted)


TEXTS: tuple[tuple[str, str, int, Callable[[Any], Any]], ...] = (
    ("IMDB, 25000 x 35432, 500 words", "imdb", 500, lambda part: part["y"] > 0),
    ("Reuters 'earn', 6532 x 12163, 200 words", "reuters_r52", 200, lambda part: _of_classes(part, ("earn",))),
    ("Newsgroups comp+sci, 11293 x 42254, 200 words", "news20", 200, lambda part: _of_classes(part, ("comp", "sci"))),
)


def relative_errors(law: SparseLaw, epsilon: float, algorithm: str, **bounds: Any) -> list[float]:
    errors = []
    for seed in range(DRAWS):
        X, y, theta = law.draw(seed)
        model = SparseRegressor(
            law.s,
            epsilon=epsilon,
            delta=0.01,
            target_bound=3 * law.target_deviation,
            algorithm=algorithm,
            random_state=seed,
            **bounds,
        )
        errors.append(float(np.linalg.norm(model.fit(X, y).coef_ - theta) / np.linalg.norm(theta)))
    return errors


def tf_idf(path: Path, idf: Any) -> Any:
    """Unit tf-idf rows from raw counts."""
    X = sparse.csr_array(sparse.load_npz(path))
    X.data = (1 + np.log(X.data)) * idf[X.indices]
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(np.maximum(norms, 1e-12), np.diff(X.indptr))
    return X


def synthetic() -> None:
    row("law (delta .01, mean of 20 draws)", "epsilon", *ALGORITHMS, "non-private IGHT", header=True)
    laws = (
        ("DP-IGHT paper, n=d=1000, s=10", dp_ight_law(), {"row_bound": 20.0}, (2, 4, 10)),
        ("DPSL-KT paper, n=800, d=1000, s=10", dpsl_kt_law(), {"feature_bound": 1.0}, (0.8, 2, 5)),
    )
    for name, law, bounds, epsilons in laws:
        baseline = np.mean(relative_errors(law, float("inf"), "ight", **bounds))
        for epsilon in epsilons:
            cells = [relative_errors(law, epsilon, algorithm, **bounds) for algorithm in ALGORITHMS]
            row(name, epsilon, *(f"{np.mean(e):.2f} (worst {max(e):.2f})" for e in cells), f"{baseline:.2f}")


def accuracy(data: Any, epsilon: float, algorithm: str, seeds: int) -> str:
    X, y, X_test, y_test, sparsity = data
    start, scores = time.perf_counter(), []
    for seed in range(seeds):
        model = SparseClassifier(
            sparsity, epsilon=epsilon, delta=1e-5, row_bound=1.0, algorithm=algorithm, random_state=seed
        )
        scores.append(model.fit(X, y).score(X_test, y_test))
    return f"{np.mean(scores):.3f} ({(time.perf_counter() - start) / seeds:.1f} s)"


def texts(folder: Path) -> None:
    row("text (delta 1e-5, mean of 5)", "epsilon", *ALGORITHMS, "non-private IGHT", "majority class", header=True)
    for name, file, sparsity, positive in TEXTS:
        parts = [np.load(folder / f"{file}_{part}.npz") for part in ("train", "test")]
        X, X_test = (tf_idf(folder / f"{file}_{part}.npz", parts[0]["idf"]) for part in ("train", "test"))
        y, y_test = (positive(part) for part in parts)
        data = (X, y, X_test, y_test, sparsity)
        baseline = accuracy(data, float("inf"), "ight", 1)
        for epsilon in (1, 2, 4, 8):
            cells = [accuracy(data, epsilon, algorithm, SEEDS) for algorithm in ALGORITHMS]
            row(name, epsilon, *cells, baseline, f"{max(np.mean(y_test), 1 - np.mean(y_test)):.3f}")


def row(*cells: object, header: bool = False) -> None:
    print("|", " | ".join(map(str, cells)), "|")
    if header:
        print("|---" * len(cells) + "|")


if __name__ == "__main__":
    warnings.simplefilter("ignore", PrivacyWarning)
    print("Relative error ||theta - theta*|| / ||theta*|| (the zero model has 1):\n")
    synthetic()
    folder = Path(os.environ.get("THRESHER_DATA", ""))
    if (folder / "imdb_train.npz").exists():
        print("\nTest accuracy on unit tf-idf rows (seconds to fit and score):\n")
        texts(folder)
    else:
        print("\nText skipped: set THRESHER_DATA to the folder that holds imdb_train.npz and the other sets.")
