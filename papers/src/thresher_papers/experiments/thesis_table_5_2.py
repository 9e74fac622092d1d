"""Table 5.2 of the thesis: MNIST, multinomial logistic regression, with and without Laplacian smoothing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from thresher.algorithms import DPLSSGD, DPSGD
from thresher.models.dense import DenseClassifier
from thresher.report.charts import Chart
from thresher_papers.datasets import load, unit_rows
from thresher_papers.experiments.experiment import Cell, Experiment, Grid, Note, Part, Row, Verdict
from thresher_papers.experiments.rows import Mean, curve, means, values_of

__all__ = ["EXPERIMENT"]

DELTA, PENALTY = 1e-5, 1e-4
BUDGETS = (0.30, 0.25, 0.20, 0.15, 0.10)
PRINTED = {
    0: ((81.74, 0.96), (81.45, 1.59), (78.92, 1.14), (77.03, 0.69), (73.49, 1.60)),
    1: ((84.21, 0.51), (83.27, 0.35), (81.56, 0.79), (79.46, 1.33), (76.29, 0.53)),
    2: ((84.23, 0.65), (83.65, 0.76), (82.15, 0.59), (80.77, 1.26), (76.31, 0.93)),
    3: ((85.11, 0.45), (82.97, 0.48), (82.22, 0.28), (80.81, 1.03), (77.13, 0.77)),
}
"""Accuracy in % and its sd, by sigma and for each of BUDGETS."""
KINDS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "no momentum, last iterate": {"momentum": 0.0, "output": "last"},
}
FAR = 2.0  # standard errors


def cells(quick: bool) -> list[Cell]:
    kinds: tuple[str, ...] = ("defaults",)
    sigmas: tuple[int, ...] = (0, 1, 3)
    budgets: tuple[float, ...] = (0.3, 0.2, 0.1)
    seeds = 2
    if not quick:
        kinds, sigmas, budgets, seeds = tuple(KINDS), tuple(PRINTED), BUDGETS, 5
    return [
        {"kind": kind, "sigma": sigma, "epsilon": epsilon, "seed": seed}
        for kind in kinds for sigma in sigmas for epsilon in budgets for seed in range(seeds)
    ]  # fmt: skip


def run(kind: str, sigma: int, epsilon: float, seed: int) -> list[Row]:
    X, y, X_test, y_test = _digits()
    algorithm = DPLSSGD(smoothing=float(sigma), **KINDS[kind]) if sigma else DPSGD(**KINDS[kind])
    model = DenseClassifier(
        epsilon, DELTA, algorithm=algorithm, row_bound=1.0, classes=range(10), penalty=PENALTY, random_state=seed
    ).fit(X, y)
    (release,) = model.plan_.releases
    return [{
        "kind": kind, "sigma": sigma, "epsilon": epsilon, "seed": seed,
        "accuracy": 100 * float(model.score(X_test, y_test)), "real epsilon": model.plan_.epsilon,
        "multiplier": release.multiplier,
    }]  # fmt: skip


@cache
def _digits() -> tuple[Any, Any, Any, Any]:
    """The thesis trains on 50,000 of the 60,000 rows."""
    data = load("mnist")
    X, X_test = (unit_rows(images.astype(np.float32)) for images in (data.X[:50_000], data.X_test))
    return X, data.y[:50_000], X_test, data.y_test


# -- what the rows show ---------------------------------------------------------------------------------------------


def show(rows: Sequence[Row]) -> list[Part]:
    kinds = values_of(rows, "kind")
    verdicts: list[Part] = [_above_printed(rows), *(_helps(rows, kind) for kind in kinds), _same_price(rows)]
    charts = [_chart(rows, kind) for kind in kinds]
    return [*verdicts, *charts, *(_table(rows, kind) for kind in kinds), _printed(), CODE]


CODE = Note(
    "The printed numbers come from code that clips the mean of a batch, not each row, with a fifth of the variance "
    "that the theorem asks for; the theorem itself applies to no budget of the table (erratum E-20). So what they cost "
    "is unknown, and they stand here as targets only."
)


def _means(rows: Sequence[Row], kind: str) -> dict[tuple[int, float], Mean]:
    found: Any = means([row for row in rows if row["kind"] == kind], ("sigma", "epsilon"), "accuracy")
    return found  # type: ignore[no-any-return]


def _gains(rows: Sequence[Row], kind: str) -> dict[tuple[int, float], Mean]:
    """Over the same seeds without smoothing, so that most of the noise cancels."""
    mine = [row for row in rows if row["kind"] == kind]
    base = {(row["epsilon"], row["seed"]): row["accuracy"] for row in mine if row["sigma"] == 0}
    gains = [{**row, "gain": row["accuracy"] - base[row["epsilon"], row["seed"]]} for row in mine if row["sigma"]]
    found: Any = means(gains, ("sigma", "epsilon"), "gain")
    return found  # type: ignore[no-any-return]


def _above_printed(rows: Sequence[Row]) -> Verdict:
    """The least accuracy of ours at each budget, whatever the smoothing, against the best that is printed."""
    told, holds = [], True
    for epsilon in sorted(values_of(rows, "epsilon"), reverse=True):
        ours = min(
            mean.value
            for kind in values_of(rows, "kind")
            for key, mean in _means(rows, kind).items()
            if key[1] == epsilon
        )
        theirs = max(line[BUDGETS.index(epsilon)][0] for line in PRINTED.values())
        holds = holds and ours > theirs
        told.append(f"{ours:.2f} against {theirs:.2f} at {epsilon:g}")
    return Verdict(
        f"Every accuracy with sound noise is above the best that is printed for its budget: "
        f"{', '.join(told)}.",
        holds,
        ("E-20",),
    )  # fmt: skip


def _helps(rows: Sequence[Row], kind: str) -> Verdict:
    gains = {epsilon: gain for (sigma, epsilon), gain in _gains(rows, kind).items() if sigma == 1}
    told = ", ".join(f"{gain.value:+.2f} ± {gain.error:.2f} at {epsilon:g}" for epsilon, gain in gains.items())
    holds = all(gain.value > FAR * gain.error for gain in gains.values())
    return Verdict(
        f"Smoothing with sigma 1 helps at every budget ({kind}), by more than {FAR:g} standard errors: {told} points.",
        holds,
    )


def _same_price(rows: Sequence[Row]) -> Verdict:
    prices: dict[tuple[str, float], set[tuple[float, float]]] = {}
    for row in rows:
        prices.setdefault((row["kind"], row["epsilon"]), set()).add((row["real epsilon"], row["multiplier"]))
    same = all(len(found) == 1 for found in prices.values())
    worst = max(row["real epsilon"] / row["epsilon"] for row in rows)
    return Verdict(
        f"Smoothing changes no privacy number: epsilon and noise multiplier are {'equal' if same else 'unequal'} for "
        f"all sigma, and at most {worst:.4f} of each budget is used.",
        same and worst <= 1 + 1e-9,
        ("E-21",),
    )  # fmt: skip


def _chart(rows: Sequence[Row], kind: str) -> Chart:
    found, budgets = _means(rows, kind), values_of(rows, "epsilon")
    series = {
        f"sigma {sigma}": curve({epsilon: _error(found[sigma, epsilon]) for epsilon in budgets})
        for sigma in sorted(values_of(rows, "sigma"))
    }
    for sigma in (0, 3):
        printed = {epsilon: Mean(*PRINTED[sigma][BUDGETS.index(epsilon)], runs=5) for epsilon in budgets}
        series[f"sigma {sigma} (printed)"] = curve({epsilon: _error(mean) for epsilon, mean in printed.items()})
    return Chart(f"MNIST, {kind}", "epsilon", "test error in %", series)


def _error(accuracy: Mean) -> Mean:
    return accuracy._replace(value=100 - accuracy.value)


def _table(rows: Sequence[Row], kind: str) -> Grid:
    found, gains, budgets = _means(rows, kind), _gains(rows, kind), values_of(rows, "epsilon")
    lines = []
    for sigma in sorted(values_of(rows, "sigma")):
        line = [f"{found[sigma, e].value:.2f} ({found[sigma, e].sd:.2f})" for e in budgets]
        if sigma:
            more = [gains[sigma, e] for e in budgets]
            line = [f"{cell}, {gain.value:+.2f} ± {gain.error:.2f}" for cell, gain in zip(line, more, strict=True)]
        lines.append((str(sigma), *line))
    title = f"Sound, {kind}: accuracy in % (sd), and gain over the same seeds without smoothing"
    return Grid(title, ("sigma", *(f"epsilon {epsilon:g}" for epsilon in budgets)), lines)


def _printed() -> Grid:
    lines = [(str(sigma), *(f"{value:.2f} ± {sd:.2f}" for value, sd in line)) for sigma, line in PRINTED.items()]
    return Grid("Printed: accuracy in %", ("sigma", *(f"epsilon {epsilon:g}" for epsilon in BUDGETS)), lines)


EXPERIMENT = Experiment(
    "x17",
    "Multinomial logistic regression on MNIST with Laplacian smoothing",
    "Thesis, Table 5.2 and Figures 5.3, 5.4",
    "Smoothing makes DP-SGD more accurate at every budget, the more so the larger sigma.",
    f"50,000 training rows, each over its own norm, delta {DELTA}, replace-one, Poisson batches, each row clipped by "
    f"itself, ridge {PENALTY} as in the thesis. Public defaults for passes, batches and steps, whose constants were "
    "chosen on MNIST and other sets, test rows included; the thesis picked the best of six step lengths. The full run "
    "adds sigma 2, two budgets, and a variant without momentum and averaging.",
    cells,
    run,
    show,
    needs=("mnist",),
)
