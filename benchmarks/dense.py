"""Dense private models: the thesis' tables with sound noise, what smoothing brings, and an epoch against Opacus.

Hyper-parameters are the library's public defaults, the same for every set and budget; rows are clipped to public
bounds. The constants of those defaults were chosen on a9a, ijcnn1, MNIST and other sets, their test rows included, but
not on diabetes130: that one is untouched.

Run: THRESHER_DATA=... ./dev dense [tables | untouched | smoothing | speed]
"""

from __future__ import annotations

import math
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from accuracy import header, row
from machine import describe
from ratios import Ratio, faster
from thresher import ERMClassifier
from thresher.algorithms import DPGD, DPLSSGD, DPSGD, RRPSGD, STORM
from thresher.budget import Budget, PrivacyWarning
from thresher.clipping import Bounds
from thresher.datasets import load, unit_rows
from thresher.plan import Problem
from thresher.randomness import NoiseSource
from thresher.vaults import CentralVault

Floats = NDArray[np.float64]
Rows = tuple[Any, Any, Any, Any, float]  # X, X_test, y, y_test, row bound

RUNS, DELTA, PENALTY, TURNS = 10, 1e-5, 1e-3, 6
METHODS: dict[str, Any] = {
    "DP-SRM": "dp-srm",
    "DP-SGD": "dp-sgd",
    "DP-GD": "dp-gd",
    "DP-GD, 20 passes": DPGD(passes=20),
    "DP-AGD": "dp-agd",
    "RRPSGD": RRPSGD(),
    "DP-Adam": "dp-adam",
    "DP-LSSGD": "dp-lssgd",
    "DP-LSAdam": "dp-lsadam",
}
PRINTED = {
    ("a9a", 0.2): {"DP-SRM": 0.3579, "DP-GD": 0.4155, "DP-AGD": 0.3713, "RRPSGD": 0.4019},
    ("a9a", 0.5): {"DP-SRM": 0.3506, "DP-GD": 0.3859, "DP-AGD": 0.3627, "RRPSGD": 0.3861},
    ("ijcnn1", 0.2): {"DP-SRM": 0.2503, "DP-GD": 0.3160, "DP-AGD": 0.2645, "RRPSGD": 0.3110},
    ("ijcnn1", 0.5): {"DP-SRM": 0.2341, "DP-GD": 0.2717, "DP-AGD": 0.2416, "RRPSGD": 0.3033},
}


# -- tables 4.2 and 4.3 of the thesis -------------------------------------------------------------------------------


def known(name: str, folder: Path) -> Rows:
    data = load(name, folder)
    return data.X, data.X_test, data.y, data.y_test, data.bounds["row_bound"]


def losses(rows: Rows, algorithm: Any, epsilon: float, seed: int) -> tuple[float, float, float]:
    """The test loss without and with the penalty, and the passes over the rows."""
    X, X_test, y, y_test, bound = rows
    warnings.simplefilter("ignore", PrivacyWarning)
    facts: dict[str, Any] = {"row_bound": bound, "loss": "nonconvex-logistic", "penalty": PENALTY}
    model = ERMClassifier(epsilon, DELTA, algorithm=algorithm, random_state=seed, **facts).fit(X, y)
    margins = model.decision_function(X_test)
    loss = float(np.mean(np.logaddexp(0, margins) - (y_test == model.classes_[1]) * margins))
    settings, n = model.plan_.settings, X.shape[0]
    answers = sum(answer["count"] for entry in model.certificate_.releases for answer in entry["answers"])
    passes = answers if "batch" not in settings else settings["rounds"] * settings["batch"] / n
    return loss, loss + model.plan_.problem.penalty.value(np.ravel(model.coef_)), passes


def table(name: str, rows: Rows, methods: dict[str, Any]) -> None:
    storm = Parallel(n_jobs=2)(delayed(losses)(rows, STORM(batch=256, passes=100), math.inf, seed) for seed in range(2))
    print(f"\n{name}: without privacy (STORM), {np.mean(storm, axis=0)[0]:.4f}\n")
    header("epsilon", "method", "printed", "test loss (sd)", "with penalty", "passes")
    for epsilon in (0.2, 0.5):
        for method, algorithm in methods.items():
            found = Parallel(n_jobs=2)(delayed(losses)(rows, algorithm, epsilon, seed) for seed in range(RUNS))
            loss, with_penalty, passes = np.mean(found, axis=0)
            printed = PRINTED.get((name, epsilon), {}).get(method, "")
            sd = np.std(found, axis=0, ddof=1)[0]
            row(epsilon, method, printed, f"{loss:.4f} ({sd:.4f})", f"{with_penalty:.4f}", f"{passes:.0f}")


def tables(folder: Path) -> None:
    """The test file of ijcnn1 is not at hand: a fifth of the training file stands in."""
    for name in ("a9a", "ijcnn1"):
        table(name, known(name, folder), METHODS)


def untouched(folder: Path) -> None:
    methods = {name: METHODS[name] for name in ("DP-SRM", "DP-SGD", "DP-GD", "DP-AGD")}
    table("diabetes130", known("diabetes130", folder), methods)


# -- table 5.2 of the thesis ----------------------------------------------------------------------------------------

SMOOTHINGS = (0.0, 1.0, 2.0, 3.0)
BUDGETS = (0.30, 0.25, 0.20, 0.15, 0.10)


def mnist(folder: Path) -> Rows:
    """The thesis' split: 50,000 training rows, each over its own norm."""
    data = load("mnist", folder)
    X, X_test = (unit_rows(images.astype(np.float32)) for images in (data.X, data.X_test))
    return X[:50_000], X_test, data.y[:50_000], data.y_test, 1.0


def accuracy(rows: Rows, algorithm: Any, epsilon: float, seed: int) -> float:
    X, X_test, y, y_test, bound = rows
    model = ERMClassifier(
        epsilon, DELTA, algorithm=algorithm, row_bound=bound, classes=range(10), penalty=1e-4, random_state=seed
    )
    return 100 * float(model.fit(X, y).score(X_test, y_test))


def smoothing(folder: Path) -> None:
    """The gain over the same seeds without smoothing, so that most of the noise cancels, with its standard error."""
    rows, runs = mnist(folder), 5
    plain = {"momentum": 0.0, "output": "last"}
    kinds: dict[str, dict[str, Any]] = {"defaults": {}, "no momentum, last iterate": plain}
    for title, kind in kinds.items():
        print(f"\nMNIST, multinomial logistic regression, accuracy in % over {runs} runs; {title}\n")
        header("smoothing", *(f"epsilon {epsilon:g}" for epsilon in BUDGETS))
        base: dict[float, Floats] = {}
        for sigma in SMOOTHINGS:
            cells = []
            for epsilon in BUDGETS:
                algorithm = DPLSSGD(smoothing=sigma, **kind) if sigma else DPSGD(**kind)
                found = np.array([accuracy(rows, algorithm, epsilon, seed) for seed in range(runs)])
                gain = found - base.setdefault(epsilon, found)
                error = gain.std(ddof=1) / math.sqrt(runs)
                cells.append(f"{found.mean():.2f} ({found.std(ddof=1):.2f})" + (
                    f", {gain.mean():+.2f} ± {error:.2f}" if sigma else ""))  # fmt: skip
            row(f"{sigma:g}", *cells)


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
    problem = Problem(len(y), X.shape[1], X.shape[1], "logistic", Bounds(row=4.0))
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
    model = ERMClassifier(1.0, DELTA, algorithm=algorithm, row_bound=4.0, classes=[0, 1])
    return lambda: model.fit(X, y)


def speed() -> list[Ratio]:
    """Medians of alternating turns in one run."""
    rng, ratios = np.random.default_rng(0), []
    for n, d, batch in ((32_561, 123, 256), (32_561, 123, 64), (50_000, 784, 256)):
        X = rng.random((n, d)) * (rng.random((n, d)) < 14 / d)
        y = (rng.random(n) < 0.3).astype(float)
        kinds = [make(X, y, batch) for make in (our_epoch, opacus_epoch, our_fit)]
        times: list[list[float]] = [[] for _ in kinds]
        for turn in range(TURNS):
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
    folder = Path(os.environ.get("THRESHER_DATA", "../shared/data"))
    for name in wanted or ["tables", "untouched", "smoothing", "speed"]:
        if name == "speed":
            print(f"\nMeasured on: {describe()}.\n")
            header("what", "measured", "must", "aim", "reached", "times")
            for ratio in speed():
                print(ratio.row(), flush=True)
        else:
            {"tables": tables, "untouched": untouched, "smoothing": smoothing}[name](folder)


if __name__ == "__main__":
    main(sys.argv[1:])
