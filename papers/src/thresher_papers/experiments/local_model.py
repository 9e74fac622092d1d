"""Relative errors in the local model against people, columns and epsilon: labels private, or whole records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.algorithms import LDPIHT, LabelLasso, LabelLDPIHT
from thresher.local.estimators import LocalSparseRegressor
from thresher.report.charts import Chart
from thresher_papers.datasets import ldp_law
from thresher_papers.experiments.experiment import Cell, Grid, Row
from thresher_papers.experiments.rows import Mean, curve, means, values_of
from thresher_papers.experiments.slopes import Slope, slope

__all__ = [
    "EXACT",
    "Panel",
    "cells_of",
    "chart",
    "exponents",
    "grid",
    "panel_means",
    "panel_rows",
    "relative_error",
    "run",
]

EXACT = "no noise (not private)"
DELTA = 1e-3  # the paper's, of its Gaussian noise only; erratum E-4
LABELS: dict[str, Any] = {
    "label-ldp-iht": LabelLDPIHT(),
    "label-ldp-iht, laplace": LabelLDPIHT(noise="laplace"),
    "label-ldp-iht (printed)": LabelLDPIHT(calibration="printed"),
}
METHODS: dict[str, dict[str, Any]] = {
    "labels": {**LABELS, "label-lasso": LabelLasso(), EXACT: LabelLDPIHT()},
    "rates of labels": LABELS,
    "records": {
        "ldp-iht": LDPIHT(),
        "ldp-iht, the paper's loop": LDPIHT(iterations=2, step=1.0, clip=1.5),
        EXACT: LDPIHT(),
    },
}
AXES = {"n": "people n", "d": "columns p", "epsilon": "epsilon"}


@dataclass(frozen=True)
class Panel:
    """Errors along ``axis`` ("n", "d" or "epsilon"), all else as ``base`` says (n, d, s, epsilon).

    ``law`` is "figure", that of the paper's experiment, or "theorem": theta of norm 1 with s equal coefficients.
    """

    law: str
    axis: str
    values: tuple[float, ...]
    base: Mapping[str, float]

    @property
    def points(self) -> list[dict[str, Any]]:
        return [{"law": self.law, **self.base, self.axis: value} for value in self.values]


def cells_of(task: str, panels: Sequence[Panel], seeds: int) -> list[Cell]:
    """Every point once, also where panels cross."""
    points = {tuple(point.items()) for panel in panels for point in panel.points}
    return [{"task": task, **dict(point), "seed": seed} for point in sorted(points) for seed in range(seeds)]


# -- one draw -------------------------------------------------------------------------------------------------------


def run(task: str, law: str, n: int, d: int, s: int, epsilon: float, seed: int) -> list[Row]:
    """All methods of the task on one draw of the law."""
    place = {"law": law, "n": n, "d": d, "s": s, "epsilon": epsilon, "seed": seed}
    rows: list[Row] = []
    for method, algorithm in METHODS[task].items():
        error, cost = relative_error(algorithm, law, n, d, s, math.inf if method == EXACT else epsilon, seed)
        rows.append({"method": method, **place, "error": error, "real epsilon": cost})
    return rows


def relative_error(algorithm: Any, law: str, n: int, d: int, s: int, epsilon: float, seed: int) -> tuple[float, float]:
    """||theta - theta*|| / ||theta*|| of one fit, and the epsilon that its noise really costs."""
    drawn = ldp_law(n, d, s, unit=law == "theorem")
    X, y, theta = drawn.draw(seed)
    bound = drawn.largest_target if law == "theorem" else 3 * drawn.target_deviation
    printed = getattr(algorithm, "calibration", "") == "printed"
    model = LocalSparseRegressor(
        s, epsilon, algorithm=algorithm, delta=DELTA if printed else 0.0, feature_bound=1.0, target_bound=bound,
        fit_intercept=False, random_state=seed,
    ).fit(X, y)  # fmt: skip
    return float(np.linalg.norm(model.coef_ - theta) / np.linalg.norm(theta)), model.plan_.epsilon


# -- what the rows show ---------------------------------------------------------------------------------------------


def panel_rows(rows: Sequence[Row], panel: Panel) -> list[Row]:
    """The rows of the panel's points."""
    fixed = {name: value for name, value in panel.base.items() if name != panel.axis}
    return [row for row in rows if row["law"] == panel.law and all(row[name] == value for name, value in fixed.items())]


def panel_means(rows: Sequence[Row], panel: Panel) -> dict[str, dict[float, Mean]]:
    """By method, then by the value on the axis, in rising order."""
    mine = panel_rows(rows, panel)
    found = means(mine, ("method", panel.axis), "error")
    values = sorted(values_of(mine, panel.axis))
    return {method: {value: found[method, value] for value in values} for method in values_of(mine, "method")}


def chart(rows: Sequence[Row], panel: Panel) -> Chart:
    series = {method: curve(points) for method, points in panel_means(rows, panel).items()}
    return Chart(_title(panel), AXES[panel.axis], "relative error", series, log_x=True, log_y=True)


def grid(rows: Sequence[Row], panel: Panel) -> Grid:
    found = panel_means(rows, panel)
    values = list(next(iter(found.values())))
    lines = [(method, *(str(points[value]) for value in values)) for method, points in found.items()]
    return Grid(
        f"{_title(panel)}: relative error", ("method", *(f"{AXES[panel.axis]}={value:,g}" for value in values)), lines
    )


def _title(panel: Panel) -> str:
    fixed = [f"{'p' if name == 'd' else name}={value:,g}" for name, value in panel.base.items() if name != panel.axis]
    law = ", ||theta*||=1" if panel.law == "theorem" else ""
    return f"Against {AXES[panel.axis]}: {', '.join(fixed)}{law}"


def exponents(rows: Sequence[Row], panel: Panel, method: str) -> Slope:
    """The exponent of the squared error along the panel's axis."""
    mine = [row for row in panel_rows(rows, panel) if row["method"] == method]
    values = sorted(values_of(mine, panel.axis))
    squares = np.array([[row["error"] ** 2 for row in mine if row[panel.axis] == value] for value in values])
    return slope(np.array(values, dtype=float), squares)
