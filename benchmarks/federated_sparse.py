"""One sparse model of three parties against a curator's: the same rows, the same noise, the same epsilon and delta.

a9a is split among three parties of unequal size. DP-IGHT runs over the reference aggregation, over three real MPyC
processes, over a curator's vault with Gaussian noise of the very same sd, and as a curator would plan it: with the
exact Gaussian curve in place of a Renyi curve, hence a little less noise.

Run: THRESHER_DATA=... ./dev federated sparse
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuracy import header, row
from machine import describe
from thresher import SparseClassifier
from thresher.algorithms import DPIGHT
from thresher.datasets import load
from thresher.federated import FederatedSparseClassifier
from thresher.randomness import NoiseSource
from thresher.releases import GaussianGradient
from thresher.vaults import CentralVault

RUNS, REAL_RUNS, EPSILON, DELTA, SPARSITY = 400, 10, 1.0, 1e-6, 20
SHARES = (0.1, 0.3, 0.6)

Errors = NDArray[np.float64]


def compare() -> None:
    a9a = load("a9a")
    X, X_test, y, y_test = a9a.X, a9a.X_test, a9a.y, a9a.y_test
    cuts = np.cumsum([round(share * len(y)) for share in SHARES])[:-1]
    sets = [(X[a:b], y[a:b]) for a, b in zip([0, *cuts], [*cuts, len(y)], strict=True)]
    settings: dict[str, Any] = {
        "sparsity": SPARSITY, "epsilon": EPSILON, "delta": DELTA,
        "row_bound": a9a.bounds["row_bound"], "classes": a9a.bounds["classes"],
    }  # fmt: skip

    def joint(aggregation: Any) -> Any:
        return FederatedSparseClassifier(**settings, aggregation=aggregation).fit(sets)

    plan = joint("reference").plan_
    (shared,) = plan.releases
    same_noise = replace(plan, releases=(GaussianGradient(shared.times, shared.multiplier),), trust="central")

    def curated() -> Any:
        model: Any = SparseClassifier(**settings, algorithm="dp-ight")
        with CentralVault(X, (y == y.max()).astype(float), same_noise, NoiseSource()) as vault:
            model._keep(DPIGHT().run(vault), same_noise)
        model.certificate_, model.n_features_in_ = None, X.shape[1]
        model.classes_ = np.unique(y)
        return model

    print(f"a9a, {len(y)} rows of 3 parties ({', '.join(str(len(t)) for _, t in sets)}), {shared.times} rounds, "
          f"{SPARSITY} features of {X.shape[1]}, epsilon {EPSILON:g}, delta {DELTA:g}; {describe()}\n")  # fmt: skip
    header("", "test error", "standard error", "runs", "s per fit")
    ways: dict[str, tuple[Callable[[], Any], int]] = {
        "three parties, MPyC": (lambda: joint("mpyc"), REAL_RUNS),
        "three parties, reference": (lambda: joint("reference"), RUNS),
        "one curator, the same noise": (curated, RUNS),
        "one curator, planned as such": (lambda: SparseClassifier(**settings, algorithm="dp-ight").fit(X, y), RUNS),
    }
    for name, (fit, runs) in ways.items():
        start = time.perf_counter()
        errors: Errors = np.array([1 - fit().score(X_test, y_test) for _ in range(runs)])
        each = (time.perf_counter() - start) / runs
        spread = np.std(errors, ddof=1) / np.sqrt(runs)
        row(name, f"{errors.mean():.4f}", f"{spread:.4f}", str(runs), f"{each:.2f}")


if __name__ == "__main__":
    compare()
