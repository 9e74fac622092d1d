"""Relative error against epsilon, for every sparse method of the central model: the figure of the README.

One public law (dpsl_kt_law of the papers), defaults only, delta None (1/n^2), the same draws for every method. The
constants of pursuit's defaults were chosen on this law with other draws; benchmarks/accuracy.py has laws they were not
chosen on.

Run: ./dev figure. Writes docs/figures/methods.svg and docs/figures/methods.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from laws import relative_error
from thresher import SparseRegressor
from thresher.algorithms import REGISTRY
from thresher.planning.chart import save_figure
from thresher_papers.datasets import SparseLaw, dpsl_kt_law

LAW = dpsl_kt_law(n=4000, d=1000, s=10)
MODEL = SparseRegressor(LAW.s, feature_bound=1.0, target_bound=8.0)  # |y| is at most about 5 under the law
DRAWS = 10
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
NOT_PRIVATE = "ight"
COLOURS = {  # Paul Tol's muted scheme, made for colour-blind readers; each line also has its own marker and its name
    "pursuit": "#332288", "peeling": "#117733", "two-stage": "#cc6677", "dpsl-kt": "#44aa99", "frank-wolfe": "#aa4499",
    "dp-ight": "#999933", "output-perturbation": "#882255", "noisy-frank-wolfe": "#4f9fc6",
}  # fmt: skip
SPARE = iter(("#ddcc77", "#88ccee", "#dddddd", "#000000"))  # of those that have no colour yet
COLOURS |= {name: next(SPARE) for name in REGISTRY if name not in {*COLOURS, NOT_PRIVATE}}
MARKERS = dict(zip(COLOURS, "osD^vPX*<>ph", strict=False))
GREY = "#8a8f99"
APART = 1.018  # by this factor the points of two methods, so that their ranges can be told apart

FOLDER = Path(__file__).parent.parent / "docs" / "figures"

Errors = dict[str, NDArray[np.float64]]
"""By method, draws x epsilons."""


def of_one_draw(seed: int, law: SparseLaw = LAW, epsilons: Sequence[float] = EPSILONS) -> dict[str, list[float]]:
    warnings.simplefilter("ignore")  # of random_state, which makes the figure the same every time
    X, y, theta = law.draw(seed)
    MODEL.set_params(random_state=seed)

    def error(algorithm: str, epsilon: float) -> float:
        fitted = MODEL.set_params(algorithm=algorithm, epsilon=epsilon).fit(X, y)
        return relative_error(fitted.coef_, X, theta)

    found = {name: [error(name, epsilon) for epsilon in epsilons] for name in COLOURS}
    return found | {NOT_PRIVATE: [error(NOT_PRIVATE, float("inf"))] * len(epsilons)}


def measure() -> Errors:
    found = Parallel(n_jobs=-1)(delayed(of_one_draw)(seed) for seed in range(DRAWS))
    return {name: np.array([each[name] for each in found]) for name in found[0]}


def setting() -> str:
    return f"{LAW.n} rows, {LAW.d} columns, {LAW.s} true features, delta 1/n^2; median and range of {DRAWS} draws"


def table(errors: Errors) -> str:
    chosen = MODEL.set_params(algorithm="auto").plan(LAW.n, LAW.d).algorithm
    lines = [
        "# Error against epsilon",
        "",
        "Relative error ||theta - theta*|| / ||theta*|| on one synthetic law: `dpsl_kt_law`, entries",
        f"and coefficients U(-1, 1), noise variance .1. {setting()}.",
        "Public defaults, replace-one; the zero model has 1; `ight` is not private.",
        f"`auto` chooses `{chosen}` here; the constants of its defaults were chosen on this law, with other draws.",
        "Written by `./dev figure`.",
        "",
        "| method | " + " | ".join(f"epsilon {epsilon:g}" for epsilon in EPSILONS) + " |",
        "|---" * (1 + len(EPSILONS)) + "|",
    ]
    for name, found in errors.items():
        cells = [f"{np.median(each):.3f} ({each.min():.3f} to {each.max():.3f})" for each in found.T]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def draw(errors: Errors) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    figure.suptitle(f"Synthetic law dpsl_kt_law, defaults of every method\n{setting()}", fontsize=10)
    axes: Any = figure.subplots()
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="relative error of the coefficients")
    ends = {f"{NOT_PRIVATE} (not private)": float(np.median(errors[NOT_PRIVATE])), "the zero model": 1.0}
    for level, colour, style in zip(ends.values(), ("black", GREY), ("--", ":"), strict=True):
        axes.axhline(level, color=colour, linestyle=style, linewidth=1.2)
    for at, name in enumerate(COLOURS):
        middle = np.median(errors[name], axis=0)
        reach = np.abs(np.array([errors[name].min(axis=0), errors[name].max(axis=0)]) - middle)
        axes.errorbar(
            np.array(EPSILONS) * APART ** (at - (len(COLOURS) - 1) / 2), middle, yerr=reach, color=COLOURS[name],
            marker=MARKERS[name], markersize=5, linewidth=2.4 if name == "pursuit" else 1.5, elinewidth=0.8,
        )  # fmt: skip
        ends["pursuit (auto)" if name == "pursuit" else name] = float(middle[-1])
    tick(axes)
    label(axes, ends)
    return figure


def tick(axes: Any) -> None:
    for axis, ticks in ((axes.xaxis, EPSILONS), (axes.yaxis, (0.01, 0.03, 0.1, 0.3, 1, 3))):
        axis.set_ticks(ticks, [f"{each:g}" for each in ticks])
        axis.set_ticks([], minor=True)
    axes.set_xlim(EPSILONS[0] / 1.15, EPSILONS[-1] * 1.15)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def label(axes: Any, ends: Mapping[str, float]) -> None:
    """Names at the right ends of their lines, pushed apart where lines end close together."""
    names = sorted(ends, key=lambda name: ends[name])
    for name, place in zip(names, spread(np.log([ends[name] for name in names]), gap=0.25), strict=True):
        method = name.removesuffix(" (auto)")
        axes.annotate(
            name, (1.02, float(np.exp(place))), xycoords=("axes fraction", "data"), va="center", fontsize=9,
            color=COLOURS.get(method, "black"), fontweight="bold" if method == "pursuit" else "normal",
        )  # fmt: skip


def spread(wanted: NDArray[np.float64], gap: float) -> NDArray[np.float64]:
    """The places nearest to the wanted ones, in their order, that are at least ``gap`` apart."""
    groups: list[tuple[float, int]] = []  # each its first place and how many follow, a gap apart
    for place in wanted:
        first, count = float(place), 1
        while groups and groups[-1][0] + groups[-1][1] * gap > first:
            before, many = groups.pop()
            first = (many * before + count * (first - many * gap)) / (many + count)
            count += many
        groups.append((first, count))
    return np.concatenate([first + gap * np.arange(count) for first, count in groups])


def smallest() -> None:
    print(of_one_draw(0, dpsl_kt_law(n=100, d=30, s=10), EPSILONS[-1:]))


if __name__ == "__main__":
    measured = measure()
    print(table(measured))
    (FOLDER / "methods.md").write_text(table(measured))
    save_figure(draw(measured), FOLDER / "methods.svg")
