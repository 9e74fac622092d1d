"""Section 5.4.2 of the thesis: Laplacian smoothing in the training of a network, a short version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thresher.algorithms import DPLSSGD, DPSGD, DPAdam, DPLSAdam
from thresher.report.charts import Chart
from thresher_papers.experiments.experiment import Cell, Experiment, Grid, Part, Row, Verdict
from thresher_papers.experiments.mnist_networks import ALL_ROWS, DELTA, digits_error
from thresher_papers.experiments.rows import Mean, curve, means, values_of

__all__ = ["EXPERIMENT"]

METHODS: dict[str, Any] = {"dp-sgd": DPSGD, "dp-lssgd": DPLSSGD, "dp-adam": DPAdam, "dp-lsadam": DPLSAdam}
SMOOTHED = {"dp-lssgd": "dp-sgd", "dp-lsadam": "dp-adam"}
PRINTED = {0.2: 5.0, 0.4: 3.2}  # points of accuracy that smoothing adds to DP-SGD
FAR = 2.0  # standard errors


def cells(quick: bool) -> list[Cell]:
    passes, seeds, budgets = (0.5, 1, (0.2,)) if quick else (2.0, 2, tuple(PRINTED))
    return [
        {"method": method, "epsilon": epsilon, "passes": passes, "seed": seed}
        for epsilon in budgets for method in METHODS for seed in range(seeds)
    ]  # fmt: skip


def run(method: str, epsilon: float, passes: float, seed: int) -> list[Row]:
    error, cost = digits_error(METHODS[method](passes=passes), epsilon, ALL_ROWS, seed)
    place = {"method": method, "epsilon": epsilon, "passes": passes, "seed": seed}
    return [{**place, "accuracy": 100 - error, "real epsilon": cost}]


def show(rows: Sequence[Row]) -> list[Part]:
    found = means(rows, ("method", "epsilon"), "accuracy")
    budgets = sorted(values_of(rows, "epsilon"))
    length = f"{values_of(rows, 'passes')[0]:g} passes"
    lines = [(method, *(_percent(found[method, e]) for e in budgets)) for method in METHODS]
    gains = _gains(rows)
    more = [(f"gain of {method}", *(_gain(gains[method, e]) for e in budgets)) for method in SMOOTHED]
    printed = ("printed gain of dp-lssgd", *(f"{PRINTED[e]:+.1f}" for e in budgets))
    return [
        *(_helps(gains, method, budgets) for method in SMOOTHED),
        _order(found, budgets),
        _same_price(rows),
        Chart(f"MNIST, {length}", "epsilon", "test error in %",
              {method: curve({e: _error(found[method, e]) for e in budgets}) for method in METHODS}),
        Grid(f"Test accuracy in %, {length}: mean (sd); gains over the same seeds without smoothing",
             ("method", *(f"epsilon {e:g}" for e in budgets)), [*lines, *more, printed]),
    ]  # fmt: skip


def _error(accuracy: Mean) -> Mean:
    return accuracy._replace(value=100 - accuracy.value)


def _percent(mean: Mean) -> str:
    return f"{mean.value:.2f}" if mean.runs == 1 else f"{mean.value:.2f} ({mean.sd:.2f})"


def _gain(mean: Mean) -> str:
    return f"{mean.value:+.2f}" if mean.runs == 1 else f"{mean.value:+.2f} ± {mean.error:.2f}"


def _gains(rows: Sequence[Row]) -> dict[Any, Mean]:
    """Over the same seeds without smoothing."""
    plain = {(row["method"], row["epsilon"], row["seed"]): row["accuracy"] for row in rows}
    gains = [
        {**row, "gain": row["accuracy"] - plain[SMOOTHED[row["method"]], row["epsilon"], row["seed"]]}
        for row in rows if row["method"] in SMOOTHED
    ]  # fmt: skip
    return means(gains, ("method", "epsilon"), "gain")


def _helps(gains: dict[Any, Mean], method: str, budgets: Sequence[float]) -> Verdict:
    mine = {epsilon: gains[method, epsilon] for epsilon in budgets}
    told = ", ".join(f"{_gain(gain)} at {epsilon:g}" for epsilon, gain in mine.items())
    if method == "dp-lssgd":
        told += f" ({', '.join(f'{PRINTED[epsilon]:+.1f}' for epsilon in budgets)} printed)"
    holds = all(gain.value > (FAR * gain.error if gain.runs > 1 else 0) for gain in mine.values())
    return Verdict(f"Smoothing adds accuracy to {SMOOTHED[method]} at every budget, in points: {told}.", holds)


def _order(found: dict[tuple[str, float], Mean], budgets: Sequence[float]) -> Verdict:
    told, holds = [], True
    for epsilon in budgets:
        ranked = sorted(METHODS, key=lambda method: -found[method, epsilon].value)
        holds = holds and ranked[0] == "dp-lsadam"
        told.append(f"{' > '.join(ranked)} at {epsilon:g}")
    return Verdict(f"dp-lsadam is the most accurate of the four: {'; '.join(told)}.", holds)


def _same_price(rows: Sequence[Row]) -> Verdict:
    prices: dict[float, set[float]] = {}
    for row in rows:
        prices.setdefault(row["epsilon"], set()).add(row["real epsilon"])
    worst = max(row["real epsilon"] / row["epsilon"] for row in rows)
    same = all(len(found) == 1 for found in prices.values())
    return Verdict(
        f"All four methods cost {'the same' if same else 'not the same'} epsilon, at most {worst:.4f} of the budget: "
        "smoothing is free, and neither more nor less private.",
        same and worst <= 1 + 1e-9,
        ("E-21",),
    )


EXPERIMENT = Experiment(
    "x18",
    "A network on MNIST with Laplacian smoothing (short version)",
    "Thesis, section 5.4.2, Figures 5.5 and 5.7",
    "Smoothing adds 3.2 points to DP-SGD at epsilon .4 and 5.0 at .2; DP-Adam is better than DP-LSSGD, DP-LSAdam best.",
    "A short version: half a pass at epsilon .2 (quick) or two passes (full, ten minutes of one core) over MNIST where "
    "the thesis has up to 60 epochs, and nothing searched, where it searched steps, epochs and noise on the data "
    f"(erratum E-28). The tutorials' network with tanh, delta {DELTA}, replace-one, Poisson batches, sigma 1, public "
    "defaults for networks, which were chosen for dp-sgd at larger budgets. Only the shape can be compared.",
    cells,
    run,
    show,
    needs=("mnist",),
    extra="torch",
)
