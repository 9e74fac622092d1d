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
from sets import two_classes
from thresher import SparseClassifier
from thresher.algorithms import DPIGHT
from thresher.federated import FederatedSparseClassifier
from thresher.models.estimator import adopt
from thresher.privacy.releases import GaussianGradient
from thresher.vaults import CentralVault
from thresher.vaults.randomness import NoiseSource
from thresher_papers.datasets import RealSet, load

RUNS, REAL_RUNS, EPSILON, DELTA, SPARSITY = 400, 10, 1.0, 1e-6, 20
SHARES = (0.1, 0.3, 0.6)

Errors = NDArray[np.float64]


def compare(data: RealSet, runs: int = RUNS, real_runs: int = REAL_RUNS) -> None:
    X, X_test, y, y_test = data.X, data.X_test, data.y, data.y_test
    cuts = np.cumsum([round(share * len(y)) for share in SHARES])[:-1]
    sets = [(X[a:b], y[a:b]) for a, b in zip([0, *cuts], [*cuts, len(y)], strict=True)]
    settings: dict[str, Any] = {
        "sparsity": min(SPARSITY, X.shape[1]), "epsilon": EPSILON, "delta": DELTA,
        "row_bound": data.bounds["row_bound"], "classes": data.bounds["classes"],
    }  # fmt: skip

    def joint(aggregation: Any) -> Any:
        return FederatedSparseClassifier(**settings, aggregation=aggregation).fit(sets)

    plan = joint("reference").plan_
    (shared,) = plan.releases
    same_noise = replace(plan, releases=(GaussianGradient(shared.times, shared.multiplier),), trust="central")

    def curated() -> Any:
        model: Any = SparseClassifier(**settings, algorithm="dp-ight")
        with CentralVault(X, (y == y.max()).astype(float), same_noise, NoiseSource()) as vault:
            adopt(model, same_noise, DPIGHT().run(vault), {})
        model.certificate_, model.n_features_in_ = None, X.shape[1]
        model.classes_ = np.unique(y)
        return model

    shares = ", ".join(str(len(t)) for _, t in sets)
    print(f"{data.name}, {len(y)} rows of 3 parties ({shares}), {shared.times} rounds, "
          f"{SPARSITY} features of {X.shape[1]}, epsilon {EPSILON:g}, delta {DELTA:g}; {describe()}\n")  # fmt: skip
    header("", "test error", "standard error", "runs", "s per fit")
    ways: dict[str, tuple[Callable[[], Any], int]] = {
        "three parties, MPyC": (lambda: joint("mpyc"), real_runs),
        "three parties, reference": (lambda: joint("reference"), runs),
        "one curator, the same noise": (curated, runs),
        "one curator, planned as such": (lambda: SparseClassifier(**settings, algorithm="dp-ight").fit(X, y), runs),
    }
    for name, (fit, times) in ways.items():
        start = time.perf_counter()
        errors: Errors = np.array([1 - fit().score(X_test, y_test) for _ in range(times)])
        each = (time.perf_counter() - start) / times
        spread = np.std(errors, ddof=1) / np.sqrt(times)
        row(name, f"{errors.mean():.4f}", f"{spread:.4f}", str(times), f"{each:.2f}")


def smallest() -> None:
    compare(two_classes(), runs=2, real_runs=2)


if __name__ == "__main__":
    compare(load("a9a"))
