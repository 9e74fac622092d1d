"""The first figure of the LDP paper: private labels, public features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from thresher_papers.experiments.experiment import Cell, Experiment, Grid, Part, Row, Verdict
from thresher_papers.experiments.local_model import (
    EXACT,
    Panel,
    cells_of,
    chart,
    exponents,
    grid,
    panel_means,
    panel_rows,
    run,
)
from thresher_papers.experiments.rows import values_of
from thresher_papers.experiments.slopes import slope

__all__ = ["EXPERIMENT"]

SOUND, PRINTED = "label-ldp-iht", "label-ldp-iht (printed)"
BASE = {"n": 20_000, "d": 100, "s": 10, "epsilon": 1.0}
QUICK = (
    Panel("figure", "n", (5_000, 20_000, 80_000), BASE),
    Panel("figure", "d", (25, 100, 400), BASE),
    Panel("figure", "epsilon", (0.5, 1.0, 2.0), BASE),
)
FULL = (
    Panel("figure", "n", (5_000, 10_000, 20_000, 40_000, 80_000), BASE),
    Panel("figure", "d", (25, 100, 400, 800), BASE),
    Panel("figure", "epsilon", (0.5, 1.0, 2.0, 4.0), BASE),
)
THEORY = {"n": 8_000, "d": 1000, "s": 3, "epsilon": 1.0}
RATES = (
    Panel("theorem", "n", (8_000, 16_000, 32_000, 64_000), {**THEORY, "d": 200}),
    Panel("theorem", "d", (100, 316, 1000, 3162), THEORY),
    Panel("theorem", "epsilon", (0.7, 1.0, 1.4, 2.0), THEORY),
)
CLAIMS = {"n": -1.0, "epsilon": -2.0}
FLAT = 1.5  # insensitive to p: at most so many times the error from the fewest to the most columns


def cells(quick: bool) -> list[Cell]:
    return (
        cells_of("labels", QUICK, 3) if quick else cells_of("labels", FULL, 12) + cells_of("rates of labels", RATES, 12)
    )


def show(rows: Sequence[Row]) -> list[Part]:
    parts: list[Part] = [_flat(rows), _falling(rows, FULL[0]), _falling(rows, FULL[2]), _price(rows)]
    parts += [chart(rows, panel) for panel in FULL] + [grid(rows, panel) for panel in FULL] + [_costs(rows)]
    if any(row["law"] == "theorem" for row in rows):
        parts += [grid(rows, panel) for panel in RATES] + [_rates(rows)]
    return parts


def _flat(rows: Sequence[Row]) -> Verdict:
    points = panel_means(rows, FULL[1])[SOUND]
    few, many = min(points), max(points)
    ratio = points[many].value / points[few].value
    return Verdict(
        f"Insensitive to p: with sound noise the error goes from {points[few]} at p={few:g} to {points[many]} at "
        f"p={many:g}, {ratio:.2f} times (sqrt(log p) would give {math.sqrt(math.log(many) / math.log(few)):.2f}, "
        f"sqrt(p) {math.sqrt(many / few):.2g}; insensitive: at most {FLAT:g}).",
        ratio <= FLAT,
    )  # fmt: skip


def _falling(rows: Sequence[Row], panel: Panel) -> Verdict:
    points = panel_means(rows, panel)[SOUND]
    found = [mean.value for mean in points.values()]
    told = ", ".join(f"{mean} at {value:g}" for value, mean in points.items())
    return Verdict(
        f"The error falls with {panel.axis} under sound noise: {told}.",
        all(after < before for before, after in pairwise(found)),
    )


def _price(rows: Sequence[Row]) -> Verdict:
    """Whether the printed noise costs what is claimed, and what the sound one costs in accuracy."""
    ratios = [
        points[SOUND][value].value / points[PRINTED][value].value
        for points in (panel_means(rows, panel) for panel in FULL)
        for value in points[SOUND]
    ]
    printed = [row for row in rows if row["method"] == PRINTED]
    worst = max(printed, key=lambda row: row["real epsilon"] / row["epsilon"])
    return Verdict(
        f"The noise as printed keeps its claim: it hides labels within 4C only and costs "
        f"{worst['real epsilon']:.3g} where {worst['epsilon']:g} is claimed. Noise that covers the label's range has "
        f"{min(ratios):.2g} to {max(ratios):.2g} times its error.",
        all(row["real epsilon"] <= row["epsilon"] for row in printed),
        ("E-4", "E-12", "E-13"),
    )  # fmt: skip


def _costs(rows: Sequence[Row]) -> Grid:
    mine = panel_rows(rows, FULL[2])
    methods = [method for method in values_of(mine, "method") if method != EXACT]
    budgets = sorted(values_of(mine, "epsilon"))
    costs = {(row["method"], row["epsilon"]): row["real epsilon"] for row in mine}
    lines = [(method, *(float(costs[method, epsilon]) for epsilon in budgets)) for method in methods]
    return Grid("The epsilon that a report really costs", ("method", *(f"claimed {e:g}" for e in budgets)), lines)


def _rates(rows: Sequence[Row]) -> Grid:
    """Theorem 5: error^2 ~ s log p / (n epsilon^2)."""
    method = "label-ldp-iht, laplace"
    lines = [(panel.axis, CLAIMS[panel.axis], str(exponents(rows, panel, method))) for panel in (RATES[0], RATES[2])]
    squares, predicted = [], []
    for panel in RATES:
        for point in panel.points:
            squares.append([
                row["error"] ** 2 for row in panel_rows(rows, panel)
                if row["method"] == method and row[panel.axis] == point[panel.axis]
            ])  # fmt: skip
            predicted.append(point["s"] * math.log(point["d"]) / (point["n"] * point["epsilon"] ** 2))
    every = slope(np.array(predicted), np.array(squares))
    return Grid(
        "Exponents of the squared error, Laplace noise, theta* of norm 1",
        ("in", "claimed", "measured"),
        [*lines, ("s log p / (n epsilon^2), all points", 1.0, str(every))],
    )


EXPERIMENT = Experiment(
    "x9",
    "Sparse regression with private labels",
    "LDP paper (Wang and Xu, ICML 2019), Figure 1a-c",
    "The error of Label-LDP-IHT is insensitive to p and falls with n and epsilon.",
    "theta* has s=10 coefficients U[0, 1], x is uniform on {-1, 1}^p, y has noise U[-C, C], C=.05, as in the paper; "
    "its n and p stand only in the figure, so those here are ours. Labels are clipped to three deviations of the law, "
    "a public bound; label-ldp-iht takes the randomiser of least variance (piecewise) and steps that follow reported "
    "gradients, not the paper's T and step, which cost nothing either way. The sign of the printed step is corrected "
    "and its projection left out (erratum E-13). Printed noise: delta 1e-3. Error bars: one standard error. The full "
    "run adds a law with ||theta*||=1, as the theorems have it, for the exponents.",
    cells,
    run,
    show,
)
