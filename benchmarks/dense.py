"""Dense private models: the methods of the thesis' tables on a set of ours, and an epoch against Opacus.

The constants of the public defaults were chosen on a9a, ijcnn1, MNIST and other sets, their test rows included, but not
on diabetes130: that one is untouched. The thesis' own tables are experiments: thresher reproduce x12 x13 x17.

Run: THRESHER_DATA=... ./dev dense [untouched | speed]
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from accuracy import header, row
from machine import describe
from ratios import Ratio, faster
from thresher import DenseClassifier
from thresher.algorithms import DPSGD
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.vaults import CentralVault
from thresher.vaults.losses import LOGISTIC
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource
from thresher_papers.experiments.dense_tables import EXACT, run

RUNS, DELTA, TURNS = 10, 1e-5, 6
SHAPES = ((32_561, 123, 256), (32_561, 123, 64), (50_000, 784, 256))  # rows, columns, batch


# -- a set that no default was chosen on ----------------------------------------------------------------------------


def untouched() -> None:
    """The methods of `thresher reproduce x12` on diabetes130."""
    (storm,) = run("diabetes130", EXACT, math.inf, 0)
    print(f"\ndiabetes130: without privacy (STORM), {storm['loss']:.4f}\n")
    header("epsilon", "method", "test loss (sd)", "with penalty", "passes")
    for epsilon in (0.2, 0.5):
        for method in ("dp-srm", "dp-sgd", "dp-gd", "dp-agd"):
            tasks = (delayed(run)("diabetes130", method, epsilon, seed) for seed in range(RUNS))
            found = [row for rows in Parallel(n_jobs=2)(tasks) for row in rows]
            losses = [fit["loss"] for fit in found]
            penalised, passes = (np.mean([fit[column] for fit in found]) for column in ("with penalty", "passes"))
            loss = f"{np.mean(losses):.4f} ({np.std(losses, ddof=1):.4f})"
            row(epsilon, method, loss, f"{penalised:.4f}", f"{passes:.0f}")


# -- an epoch against Opacus ----------------------------------------------------------------------------------------


def opacus_epoch(X: Any, y: Any, batch: int) -> Callable[[], None]:
    """One epoch of Opacus over Poisson batches: hooks, clips, noise, SGD."""
    import torch
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    table = TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32))
    module = torch.nn.Linear(X.shape[1], 1)
    module, optimizer, loader = PrivacyEngine().make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), lr=0.1), data_loader=DataLoader(table, batch),
        noise_multiplier=1.0, max_grad_norm=1.0,
    )  # fmt: skip
    loss = torch.nn.BCEWithLogitsLoss()

    def epoch() -> None:
        for rows, targets in loader:
            optimizer.zero_grad()
            loss(module(rows)[:, 0], targets).backward()
            optimizer.step()

    return epoch


def our_epoch(X: Any, y: Any, batch: int) -> Callable[[], None]:
    """The same of ours: a pass of rounds over a vault that holds the rows, as Opacus's loader does."""
    algorithm = DPSGD(batch=batch, passes=TURNS, momentum=0.0)
    problem = LinearProblem(len(y), X.shape[1], Bounds(row=4.0), sparsity=X.shape[1], loss=LOGISTIC)
    vault = CentralVault(X, y, algorithm.plan(problem, Budget(1.0, DELTA)), NoiseSource())
    state = algorithm.start(vault)

    def epoch() -> None:
        nonlocal state
        for _ in range(vault.plan.settings["rounds"] // TURNS):
            state = algorithm.advance(vault, state)

    return epoch


def our_fit(X: Any, y: Any, batch: int) -> Callable[[], Any]:
    """From raw rows to the certificate, five passes."""
    algorithm = DPSGD(batch=batch, passes=5, momentum=0.0)
    model = DenseClassifier(1.0, DELTA, algorithm=algorithm, row_bound=4.0, classes=[0, 1])
    return lambda: model.fit(X, y)


def speed(shapes: Iterable[tuple[int, int, int]] = SHAPES, turns: int = TURNS) -> list[Ratio]:
    """Medians of alternating turns in one run."""
    rng, ratios = np.random.default_rng(0), []
    for n, d, batch in shapes:
        X = rng.random((n, d)) * (rng.random((n, d)) < 14 / d)
        y = (rng.random(n) < 0.3).astype(float)
        kinds = [make(X, y, batch) for make in (our_epoch, opacus_epoch, our_fit)]
        times: list[list[float]] = [[] for _ in kinds]
        for turn in range(turns):
            for kind, spent in zip(kinds, times, strict=True):
                start = time.perf_counter()
                kind()
                if turn:  # the first of each warms up, and calibrates
                    spent.append(time.perf_counter() - start)
        ours, theirs, fit = (float(np.median(spent)) for spent in times)
        what = f"logistic regression, {n:,} x {d}, batch {batch}"
        ratios.append(faster(f"DP-SGD epoch, {what}", ours, theirs, "Opacus", 5.0, None))
        ratios.append(faster(f"whole fit, 5 passes, {what}", fit, 5 * theirs, "5 epochs of Opacus", None, None))
    return ratios


def main(wanted: list[str]) -> None:
    warnings.simplefilter("ignore")
    for name in wanted or ["untouched", "speed"]:
        if name == "speed":
            print(f"\nMeasured on: {describe()}.\n")
            header("what", "measured", "must", "aim", "reached", "times")
            for ratio in speed():
                print(ratio.row(), flush=True)
        else:
            untouched()


def smallest() -> None:
    for ratio in speed([(400, 5, 20)], turns=2):
        print(ratio.row())


if __name__ == "__main__":
    main(sys.argv[1:])
