"""Tables 4.2 and 4.3 of the thesis: logistic regression with a non-convex penalty, by every dense method."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from thresher.algorithms import DPGD, RRPSGD, STORM
from thresher.models.dense import DenseClassifier
from thresher.report.charts import Chart, Series
from thresher.vaults.problem import linear_problem
from thresher_papers.datasets import RealSet, load
from thresher_papers.experiments.experiment import Cell, Experiment, Grid, Part, Row, Verdict
from thresher_papers.experiments.rows import Mean, means, values_of

__all__ = ["EXACT", "METHODS", "Printed", "dense_experiment", "run"]

DELTA, PENALTY = 1e-5, 1e-3
EPSILONS = (0.2, 0.5)
EXACT = "storm (not private)"
METHODS: dict[str, Any] = {
    "dp-srm": "dp-srm",
    "dp-sgd": "dp-sgd",
    "dp-gd": "dp-gd",
    "dp-gd, 20 passes": DPGD(passes=20),
    "dp-agd": "dp-agd",
    "rrpsgd": RRPSGD(),
    "dp-adam": "dp-adam",
    "dp-lssgd": "dp-lssgd",
    "dp-lsadam": "dp-lsadam",
    EXACT: STORM(batch=256, passes=100),
}
RIVALS = ("dp-gd, 20 passes", "dp-agd", "rrpsgd")  # those of the thesis, with its passes
SEEDS = {"rrpsgd": 3, EXACT: 2}  # slow ones; of the full run
QUICK = {"dp-srm": 2, "dp-sgd": 2, "dp-gd": 2, "dp-gd, 20 passes": 2, "dp-agd": 2, EXACT: 1}
FAR = 2.0  # standard errors of a difference


class Printed(NamedTuple):
    """What the thesis prints: the test loss (it says "error"), its sd, passes, and the gradient's norm."""

    loss: float
    sd: float
    passes: int
    gradient: float


def dense_experiment(
    name: str, data: str, source: str, printed: Mapping[tuple[str, float], Printed], storm: float, about: str
) -> Experiment:  # fmt: skip
    """One of the two tables; ``printed`` is by method and epsilon, ``storm`` what is printed without privacy."""

    def cells(quick: bool) -> list[Cell]:
        runs = QUICK if quick else {method: SEEDS.get(method, 10) for method in METHODS}
        return [
            {"data": data, "method": method, "epsilon": epsilon, "seed": seed}
            for method, seeds in runs.items()
            for epsilon in ((math.inf,) if method == EXACT else EPSILONS)
            for seed in range(seeds)
        ]

    def show(rows: Sequence[Row]) -> list[Part]:
        verdicts: list[Part] = [_below_printed(rows, printed), _rivals(rows), _advantage(rows), _budget(rows)]
        charts = [_chart(rows, epsilon, data) for epsilon in EPSILONS]
        return [*verdicts, *charts, _table(rows, printed, storm)]

    return Experiment(
        name,
        f"Non-convex logistic regression on {data}",
        source,
        "DP-SRM has a lower test error than DP-GD, DP-AGD and RRPSGD, in fewer passes.",
        f"Logistic loss with the penalty {PENALTY} sum t^2/(1+t^2), delta {DELTA}, replace-one. What the thesis calls "
        "test error is a loss (erratum E-19). Hyper-parameters are the library's public defaults, the same for both "
        "tables and budgets (the thesis tuned steps, batches and clips on the data, erratum E-28). Their constants "
        "were chosen on this set and others, test rows included, so these tables flatter them somewhat; docs/dense.md "
        "has a set that was not looked at. The gradient's norm is that of the training objective. rrpsgd, one row a "
        f"round, is in the full run only, with {SEEDS['rrpsgd']} seeds. {about}",
        cells,
        run,
        show,
        needs=(data,),
    )


# -- one fit --------------------------------------------------------------------------------------------------------


def run(data: str, method: str, epsilon: float, seed: int) -> list[Row]:
    """One fit: the test loss without and with the penalty, the gradient's norm, and the passes over the rows."""
    rows = _rows(data)
    facts: dict[str, Any] = {"row_bound": rows.bounds["row_bound"], "loss": "nonconvex-logistic", "penalty": PENALTY}
    model = DenseClassifier(epsilon, DELTA, algorithm=METHODS[method], random_state=seed, **facts).fit(rows.X, rows.y)
    margins = model.decision_function(rows.X_test)
    loss = float(np.mean(np.logaddexp(0, margins) - (rows.y_test == model.classes_[1]) * margins))
    return [{
        "data": data, "method": method, "epsilon": epsilon, "seed": seed, "loss": loss,
        "with penalty": loss + linear_problem(model.plan_).penalty.value(np.ravel(model.coef_)),
        "gradient": _gradient(model, rows), "passes": _passes(model, rows.X.shape[0]),
        "real epsilon": model.plan_.epsilon,
    }]  # fmt: skip


@cache
def _rows(name: str) -> RealSet:
    return load(name)


def _gradient(model: Any, rows: RealSet) -> float:
    """The norm of the training objective's gradient, intercept included: for judging, not a release."""
    residuals = expit(model.decision_function(rows.X)) - (rows.y == model.classes_[1])
    slopes = rows.X.T @ residuals / len(residuals) + model.plan_.problem.penalty.gradient(np.ravel(model.coef_))
    return float(np.hypot(np.linalg.norm(slopes), residuals.mean()))


def _passes(model: Any, n: int) -> float:
    settings = model.plan_.settings
    if "batch" in settings:
        return float(settings["rounds"] * settings["batch"] / n)
    return float(sum(answer["count"] for entry in model.certificate_.releases for answer in entry["answers"]))


# -- what the rows show ---------------------------------------------------------------------------------------------


def _losses(rows: Sequence[Row]) -> dict[tuple[str, float], Mean]:
    return means(rows, ("method", "epsilon"), "loss")


def _table(rows: Sequence[Row], printed: Mapping[tuple[str, float], Printed], storm: float) -> Grid:
    found = {column: means(rows, ("method", "epsilon"), column) for column in ("loss", "with penalty", "gradient")}
    passes = means(rows, ("method", "epsilon"), "passes")
    lines = []
    for epsilon in (*EPSILONS, math.inf):
        for method in values_of([row for row in rows if row["epsilon"] == epsilon], "method"):
            key, paper = (method, epsilon), printed.get((method.split(",")[0], epsilon))
            theirs = (
                ("", "", "") if paper is None else (f"{paper.loss} ({paper.sd})", f"{paper.gradient}", paper.passes)
            )
            if method == EXACT:
                theirs = (f"{storm}", "", "")
            ours = [_with_sd(found[column][key]) for column in found]
            lines.append((f"{epsilon:g}", method, *theirs, *ours, f"{passes[key].value:.0f}"))
    columns = ("epsilon", "method", "printed loss", "printed gradient", "printed passes",
               "test loss", "with penalty", "gradient", "passes")  # fmt: skip
    return Grid("Printed, and measured with sound noise: mean (sd)", columns, lines)


def _with_sd(mean: Mean) -> str:
    return f"{mean.value:.4f}" if mean.runs == 1 else f"{mean.value:.4f} ({mean.sd:.4f})"


def _chart(rows: Sequence[Row], epsilon: float, data: str) -> Chart:
    losses, passes = _losses(rows), means(rows, ("method", "epsilon"), "passes")
    best = losses[EXACT, math.inf].value
    series = {}
    for method in values_of(rows, "method"):
        if method != EXACT:
            loss = losses[method, epsilon]
            series[method] = Series([passes[method, epsilon].value], [loss.value - best], [loss.error])
    title = f"{data}, epsilon {epsilon:g}"
    return Chart(title, "passes over the rows", "test loss, less that without privacy", series, log_x=True)


def _below_printed(rows: Sequence[Row], printed: Mapping[tuple[str, float], Printed]) -> Verdict:
    losses = _losses(rows)
    told = [
        f"{losses['dp-srm', e].value:.4f} against {printed['dp-srm', e].loss:.4f} printed at {e:g}" for e in EPSILONS
    ]
    holds = all(losses["dp-srm", e].value <= printed["dp-srm", e].loss for e in EPSILONS)
    return Verdict(
        f"With sound noise dp-srm has a loss below the printed one: {', '.join(told)}.", holds, ("E-17", "E-18")
    )


def _rivals(rows: Sequence[Row]) -> Verdict:
    losses = _losses(rows)
    rivals = [method for method in values_of(rows, "method") if method in RIVALS]
    told = [
        f"{losses['dp-srm', e].value:.4f} against "
        + ", ".join(f"{losses[rival, e].value:.4f} ({rival})" for rival in rivals) + f" at {e:g}"
        for e in EPSILONS
    ]  # fmt: skip
    holds = all(losses["dp-srm", e].value < losses[rival, e].value for rival in rivals for e in EPSILONS)
    return Verdict(f"dp-srm has less loss than the thesis' competitors: {'; '.join(told)}.", holds, ("E-26",))


def _advantage(rows: Sequence[Row]) -> Verdict:
    """Whether it is ahead of every method once all have sound noise, one step rule, and as many passes as they like."""
    losses = _losses(rows)
    told, holds = [], True
    others = [method for method in values_of(rows, "method") if method not in ("dp-srm", EXACT)]
    for epsilon in EPSILONS:
        mine = losses["dp-srm", epsilon]
        best = min(others, key=lambda method: losses[method, epsilon].value)
        theirs = losses[best, epsilon]
        error = math.hypot(mine.error, theirs.error)
        holds = holds and mine.value < theirs.value - FAR * error
        told.append(f"{mine.value:.4f} against {theirs.value:.4f} of {best} (± {error:.4f}) at {epsilon:g}")
    return Verdict(
        f"dp-srm is ahead of every private method by more than {FAR:g} standard errors: {'; '.join(told)}.", holds
    )


def _budget(rows: Sequence[Row]) -> Verdict:
    mine = [row for row in rows if row["method"] != EXACT]
    worst = max(row["real epsilon"] / row["epsilon"] for row in mine)
    return Verdict(
        f"Every fit keeps its budget by the library's accountants (at most {worst:.3f} of it is used), which the "
        "thesis' own lemma cannot show at these budgets, whatever the noise.",
        worst <= 1 + 1e-9,
        ("E-17", "E-19"),
    )
