"""Relative error with public defaults on synthetic laws: ||theta - theta*|| / ||theta*||, 1 for the zero model.

Two tables in Markdown: pursuit against peeling on the law it was made for, and both off it. The
constants of the defaults were chosen on these laws with other draws. Real data: benchmarks/real.py.

Run: ./dev accuracy [targets | laws | real [NAME ...]]
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import laws
import real
from thresher import SparseRegressor
from thresher.algorithms import Peeling
from thresher_papers.datasets import dpsl_kt_law

DRAWS = 10
FEW = 3  # draws for the non-private baseline, which varies little
ROUNDS = (1, 2, 3, 5, 10)  # of peeling; the best one counts

Draw = Callable[[int], laws.Drawn]


def errors(draw: Draw, algorithm: Any, draws: int, **facts: Any) -> NDArray[np.float64]:
    """One relative error per draw, in the metric of the columns' scales."""
    found = []
    for seed in range(draws):
        X, y, theta = draw(seed)
        model = SparseRegressor(algorithm=algorithm, random_state=seed, **facts).fit(X, y)
        found.append(laws.relative_error(model.coef_, X, theta))
    return np.array(found)


def best_peeling(draw: Draw, draws: int = DRAWS, **facts: Any) -> float:
    return min(float(np.mean(errors(draw, Peeling(iterations=T, loop="paper"), draws, **facts))) for T in ROUNDS)


def ight(draw: Draw, **facts: Any) -> float:
    return float(np.mean(errors(draw, "ight", FEW, **{**facts, "epsilon": float("inf")})))


Setting = tuple[int, int, int, float, float, float]

TARGETS: tuple[Setting, ...] = (  # n, d, s, epsilon, delta, target bound
    (800, 1000, 10, 2, 1e-2, 8),
    (800, 1000, 10, 5, 1e-2, 8),
    (4000, 1000, 10, 1, 1e-6, 8),
    (20000, 1000, 20, 1, 1e-6, 8),
    (4000, 5000, 50, 2, 1e-2, 16),
    (4000, 5000, 50, 5, 1e-2, 16),
)


def targets(settings: Iterable[Setting] = TARGETS, draws: int = DRAWS) -> None:
    header("n, d, s, epsilon, delta", "pursuit (worst)", "auto", "peeling (paper), best T", "dp-ight", "IGHT")
    for n, d, s, epsilon, delta, bound in settings:
        draw = dpsl_kt_law(n, d, s).draw
        facts = {"sparsity": s, "epsilon": epsilon, "delta": delta, "feature_bound": 1.0, "target_bound": bound}
        pursuit = errors(draw, "pursuit", draws, **facts)
        others = [np.mean(errors(draw, name, draws, **facts)) for name in ("auto", "dp-ight")]
        cells = (others[0], best_peeling(draw, draws, **facts), others[1], ight(draw, **facts))
        setting = f"{n}, {d}, {s}, {epsilon}, {delta:g}"
        row(setting, f"{pursuit.mean():.3f} ({pursuit.max():.3f})", *(f"{cell:.3f}" for cell in cells))


def off_laws() -> None:
    header("law (d=1000, epsilon 1, delta 1e-6)", "n, s", "pursuit (worst)", "peeling (paper), best T", "IGHT")
    for name, law in laws.LAWS.items():
        for n, s in ((4000, 10), (20000, 20)):

            def draw(seed: int, law: Any = law, n: int = n, s: int = s) -> laws.Drawn:
                drawn: laws.Drawn = law(np.random.default_rng(seed), n, 1000, s)
                return drawn

            facts: dict[str, Any] = {
                "sparsity": s,
                "epsilon": 1.0,
                "delta": 1e-6,
                "feature_bound": 1.0,
                "target_bound": 8.0,
            }
            pursuit = errors(draw, "pursuit", DRAWS, **facts)
            row(
                name, f"{n}, {s}", f"{pursuit.mean():.3f} ({pursuit.max():.3f})",
                f"{best_peeling(draw, **facts):.3f}", f"{ight(draw, **facts):.3g}",
            )  # fmt: skip


def header(*cells: object) -> None:
    row(*cells)
    print("|---" * len(cells) + "|")


def row(*cells: object) -> None:
    print("|", " | ".join(map(str, cells)), "|", flush=True)


TABLES = {
    "targets": ("Entries U(-1, 1), theta U(-1, 1), noise variance .1", targets),
    "laws": ("Off that law", off_laws),
}


def main(wanted: Iterable[str]) -> None:
    warnings.simplefilter("ignore")
    for name in wanted:
        title, table = TABLES[name]
        print(f"\n{title} (mean of {DRAWS} draws):\n")
        table()


def smallest() -> None:
    targets([(100, 20, 2, 1.0, 1e-2, 8.0)], draws=1)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["real"]:
        real.main(arguments[1:])
    else:
        main(arguments or TABLES)
        if not arguments:
            real.main([])
