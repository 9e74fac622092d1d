"""The local model: errors against n, d and epsilon with their exponents, the price of soundness, a million people.

Tables in Markdown and, where matplotlib is installed, the figure of docs/local.md. The law is that of the paper; no
number here was tuned.

Run: ./dev local [errors | labels | gradients | crowd | tables] [--figure FILE]
"""

from __future__ import annotations

import os
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

import real
from slopes import Cell, slope, squared_error
from thresher import LocalSparseClassifier, LocalSparseRegressor
from thresher.algorithms import LDPIHT, LabelLDPIHT
from thresher.budget import PrivacyWarning
from thresher.datasets import ldp_law
from thresher.randomisers import VECTOR_RANDOMISERS, Laplace, Piecewise

Floats = NDArray[np.float64]

DRAWS = 12
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
SOUND, PRINTED = LabelLDPIHT(noise="laplace"), LabelLDPIHT(calibration="printed")
LABELS = {"piecewise (default)": LabelLDPIHT(), "laplace": SOUND, "printed": PRINTED}


def squared_errors(algorithm: Any, cells: Sequence[Cell]) -> Floats:
    """One row per cell, one column per draw."""
    tasks = (delayed(squared_error)(algorithm, cell, seed) for cell in cells for seed in range(DRAWS))
    return np.array(Parallel(n_jobs=2)(tasks)).reshape(len(cells), DRAWS)


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


def labels() -> dict[str, Any]:
    """Label-LDP-IHT: flat in d, falling in n and epsilon; sound and printed noise side by side."""
    base = {"n": 8_000, "d": 1000, "s": 3, "epsilon": 1.0}
    axes: dict[str, tuple[float, ...]] = {
        "n": (8_000, 16_000, 32_000, 64_000), "d": (100, 316, 1000, 3162, 10_000), "epsilon": (0.7, 1.0, 1.4, 2.0),
    }  # fmt: skip
    found: dict[str, Any] = {}
    header("relative error, s=3 (piecewise / laplace / printed)", "", "", "", "", "")
    for axis, values in axes.items():
        cells = [_cell({**base, axis: value}, smaller=axis == "n") for value in values]
        found[axis] = values, {name: squared_errors(algorithm, cells) for name, algorithm in LABELS.items()}
        means = zip(*(np.sqrt(squares.mean(axis=1)) for squares in found[axis][1].values()), strict=True)
        row(axis, *(f"{v:g}: " + " / ".join(f"{m:.3f}" for m in cell) for v, cell in zip(values, means, strict=True)))
    header("exponent of error^2, Laplace noise", "claimed", "measured")
    for axis, claim in (("n", -1.0), ("epsilon", -2.0)):
        values, squares = found[axis]
        row(axis, claim, slope(np.array(values), squares["laplace"]))
    values, squares = found["d"]
    row("log d", "0 to 1", slope(np.log(values), squares["laplace"]))
    every, rates = _every(found, base)
    row("s log d / (n epsilon^2), all cells", 1.0, slope(rates, every))
    return found


def _cell(facts: dict[str, Any], *, smaller: bool) -> Cell:
    return int(facts["n"]), 200 if smaller else int(facts["d"]), int(facts["s"]), float(facts["epsilon"])


def _every(found: dict[str, Any], base: dict[str, Any]) -> tuple[Floats, Floats]:
    """All cells' errors with Laplace noise, and the rate that the paper's Theorem 5 gives each."""
    squares, rates = [], []
    for axis, (values, by_noise) in found.items():
        for value, cell in zip(values, by_noise["laplace"], strict=True):
            n, d, s, epsilon = _cell({**base, axis: value}, smaller=axis == "n")
            squares.append(cell)
            rates.append(s * np.log(d) / (n * epsilon**2))
    return np.array(squares), np.array(rates)


def gradients() -> dict[str, Any]:
    """LDP-IHT: error^2 grows like d and falls like 1/(n epsilon^2), for the default and for the paper's loop."""
    base = {"n": 400_000, "d": 16, "s": 3, "epsilon": 0.5}
    axes: dict[str, tuple[float, ...]] = {
        "n": (100_000, 200_000, 400_000, 800_000), "d": (8, 16, 32, 64), "epsilon": (0.25, 0.5, 0.7, 1.0),
    }  # fmt: skip
    loops = {"default": LDPIHT(), "the paper's loop": LDPIHT(iterations=2, step=1.0, clip=1.5)}
    found: dict[str, Any] = {}
    header("LDP-IHT, s=3: relative error (default / paper's loop)", "", "", "", "", "exponent of error^2", "claimed")
    for axis, claim in (("n", -1.0), ("d", 1.0), ("epsilon", -2.0)):
        values = axes[axis]
        cells = [_cell({**base, axis: value}, smaller=False) for value in values]
        found[axis] = values, {name: squared_errors(loop, cells) for name, loop in loops.items()}
        means = zip(*(np.sqrt(squares.mean(axis=1)) for squares in found[axis][1].values()), strict=True)
        row(
            axis, *(f"{v:g}: " + " / ".join(f"{m:.3f}" for m in cell) for v, cell in zip(values, means, strict=True)),
            " / ".join(str(slope(np.array(values), squares)) for squares in found[axis][1].values()), claim,
        )  # fmt: skip
    return found


def crowd() -> None:
    """A million people with a hundred columns each."""
    header("people", "columns", "seconds", "memory beside the data (MB)", "relative error")
    for n in (100_000, 1_000_000):
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


def figure(labels_found: dict[str, Any], gradients_found: dict[str, Any], path: str) -> None:
    """Relative errors against n, d and epsilon: labels above, whole records below. On the right the price of soundness
    on a linear scale, and the error of one report.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "thresher", "font.size": 9, "axes.titlesize": 9})
    rows = (("labels private (Label-LDP-IHT)", labels_found), ("records private (LDP-IHT)", gradients_found))
    canvas, panels = plt.subplots(2, 4, figsize=(13, 6), layout="constrained")
    for line, (title, found) in zip(panels, rows, strict=True):
        for panel, axis in zip(line[:3], ("n", "d", "epsilon"), strict=True):
            _plot(panel, found[axis], {"n": "people", "d": "columns"}.get(axis, axis))
            panel.set_ylim(0.5 * min(_means(found)), 2 * max(_means(found)))
        line[0].set_ylabel(f"{title}\nrelative error")
        line[2].legend(fontsize=8)
    _plot(panels[0, 3], labels_found["epsilon"], "epsilon", scale="linear")
    panels[0, 3].set(ylim=(0, None), title="the price of soundness, linear scale")
    for name, points in report_errors(100).items():
        panels[1, 3].plot(EPSILONS, points, marker="o", markersize=4, label=name)
    _ticks(panels[1, 3], EPSILONS, "epsilon", "log")
    panels[1, 3].set_title("error of one report, d=100")
    panels[1, 3].legend(fontsize=8)
    canvas.savefig(path, metadata={"Date": None})
    print(f"\nwrote {path}")


def _plot(panel: Any, found: tuple[Sequence[float], dict[str, Floats]], label: str, scale: str = "log") -> None:
    """Root mean squared errors with one standard error."""
    values, by_name = found
    for name, squares in by_name.items():
        means = squares.mean(axis=1)
        off = squares.std(axis=1, ddof=1) / np.sqrt(squares.shape[1]) / (2 * np.sqrt(means))
        panel.errorbar(values, np.sqrt(means), yerr=off, marker="o", markersize=4, capsize=2, label=name)
    _ticks(panel, values, label, scale)


def _ticks(panel: Any, values: Sequence[float], label: str, scale: str) -> None:
    panel.set(xscale=scale, yscale=scale, xlabel=label)
    panel.set_xticks(values, [f"{value:,g}" if value < 1e4 else f"{value / 1000:g}k" for value in values])
    panel.minorticks_off()
    panel.grid(alpha=0.3)


def _means(found: dict[str, Any]) -> list[float]:
    """All mean errors of a row of panels."""
    return [
        float(np.sqrt(mean))
        for _, by_name in found.values()
        for squares in by_name.values()
        for mean in squares.mean(axis=1)
    ]


def main(arguments: list[str]) -> None:
    path = arguments[arguments.index("--figure") + 1] if "--figure" in arguments else None
    tables = [name for name in arguments if name in TABLES] or list(TABLES)
    found: dict[str, Any] = {name: TABLES[name]() for name in tables}
    if path:
        figure(found["labels"], found["gradients"], path)


TABLES: dict[str, Callable[[], Any]] = {
    "errors": errors,
    "labels": labels,
    "gradients": gradients,
    "crowd": crowd,
    "tables": tables,
}

if __name__ == "__main__":
    main(sys.argv[1:])
