"""Speed, as ratios measured side by side in one run: against textbook code, other libraries, and the memory's floor.

Run: ./dev bench [--out FOLDER] [--only WORD]. Writes speed.md and speed.svg into FOLDER (default: build/bench).
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import textbook
from machine import bandwidth, best, best_of_each, describe
from sets import classes, e2006_like, even, numbers, rcv1_like
from thresher import SparseClassifier, SparseRegressor
from thresher.algorithms import DPIGHT, IGHT, FrankWolfe, Peeling, Pursuit
from thresher.algorithms.hard_threshold import hard_threshold
from thresher.budget import Budget
from thresher.clipping import Bounds
from thresher.plan import Problem
from thresher.randomness import NoiseSource
from thresher.vaults import CentralVault


@dataclass(frozen=True)
class Ratio:
    """One measured ratio. ``must`` and ``aim`` are least values if more is better, else largest."""

    what: str
    value: float
    must: float | None = None
    aim: float | None = None
    more_is_better: bool = True
    detail: str = ""

    @property
    def verdict(self) -> str:
        def reached(limit: float | None) -> bool:
            return limit is not None and (self.value >= limit if self.more_is_better else self.value <= limit)

        return "-" if self.must is None else "aim" if reached(self.aim) else "must" if reached(self.must) else "MISSED"


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"


def times(ours: float, theirs: float, name: str) -> str:
    return f"ours {milliseconds(ours)}, {name} {milliseconds(theirs)}"


# -- one step of DP-IGHT ----------------------------------------------------------------------------------------


def dp_ight_step(X: Any, y: Any, sparsity: int, rounds: int) -> Callable[[], object]:
    """One step of ours on an open vault: the question, the move, the threshold."""
    n, d = X.shape
    problem = Problem(n, d, sparsity, "logistic", Bounds(row=1.0), intercept=False)
    plan = DPIGHT(iterations=rounds).plan(problem, Budget(2.0, 1e-5))
    (release,) = plan.releases
    vault = CentralVault(X, y, plan, NoiseSource())
    theta = hard_threshold(np.random.default_rng(0).standard_normal(d), problem)
    clip = plan.settings["clip"]
    count = iter(range(10**9))

    def step() -> object:
        theta[0] = next(count)  # another point every time: a vault remembers the last one
        return hard_threshold(theta - 4.0 * vault.gradient(theta, release, clip), problem)

    return step


def steps() -> Iterator[Ratio]:
    rng = np.random.default_rng(0)
    floors = {"E2006-like": (2.2, 1.5)}
    for name, X, repeats in (("RCV1-like", rcv1_like(), 100), ("E2006-like", e2006_like(), 15)):
        y = classes(X)
        theta = np.where(np.arange(X.shape[1]) < 500, rng.standard_normal(X.shape[1]), 0.0)
        calls = {
            "ours": dp_ight_step(X, y, 500, 4 * repeats),
            "textbook": lambda X=X, y=y, theta=theta: textbook.dp_ight_step(X, y, theta, 1e-3, 500, rng),
        }
        spent = best_of_each(calls, repeats)
        detail = times(spent["ours"], spent["textbook"], "textbook")
        yield Ratio(f"DP-IGHT step, {name}: textbook / ours", spent["textbook"] / spent["ours"], 2.5, 3.5, True, detail)
        floor = (X.data.nbytes + X.indices.nbytes) / bandwidth()
        detail = f"{(X.data.nbytes + X.indices.nbytes) / 1e6:.0f} MB of entries, read once: {milliseconds(floor)}"
        yield Ratio(
            f"DP-IGHT step, {name}: ours / floor", spent["ours"] / floor, *floors.get(name, (None, None)), False, detail
        )
    X = rng.standard_normal((5000, 5000)) / math.sqrt(5000)
    spent_dense = best(dp_ight_step(X, (rng.random(5000) < 0.5).astype(np.float64), 500, 200), 30)
    floor = X.nbytes / bandwidth()
    detail = f"{X.nbytes / 1e6:.0f} MB, read once: {milliseconds(floor)}"
    yield Ratio("DP-IGHT step, dense 5000 x 5000: ours / floor", spent_dense / floor, 1.2, 1.05, False, detail)


def peeling() -> Iterator[Ratio]:
    X = rcv1_like()
    y, s, rounds = numbers(X), 50, 10
    rng = np.random.default_rng(0)
    theta = np.zeros(X.shape[1])
    model = SparseRegressor(s, row_bound=1.0, target_bound=1.0, algorithm=Peeling(iterations=rounds))
    spent = best_of_each({
        "ours": lambda: model.fit(X, y),
        "textbook": lambda: textbook.peeling_step(X, y, theta, 1e-3, s, rng),
    }, 3)  # fmt: skip
    ratio = rounds * spent["textbook"] / spent["ours"]
    yield Ratio(
        f"peeling, {rounds} rounds, whole fit, RCV1-like: textbook / ours",
        ratio,
        detail=times(spent["ours"], rounds * spent["textbook"], "textbook"),
    )


# -- whole fits -------------------------------------------------------------------------------------------------


def peers() -> dict[str, Callable[[Any, Any], object]]:
    """Sparse logistic regression by other libraries, without privacy."""
    from sklearn.linear_model import LogisticRegression

    found: dict[str, Callable[[Any, Any], object]] = {
        "liblinear": lambda X, y: LogisticRegression(l1_ratio=1.0, solver="liblinear").fit(X, y),
        "saga": lambda X, y: LogisticRegression(l1_ratio=1.0, solver="saga").fit(X, y),
    }
    try:
        from skglm import SparseLogisticRegression

        found["skglm"] = lambda X, y: SparseLogisticRegression(alpha=1 / len(y), fit_intercept=False).fit(
            sparse.csc_matrix(X), y
        )
    except ImportError:
        print("skglm is not installed; left out", file=sys.stderr)
    try:
        import celer

        found["celer"] = lambda X, y: celer.LogisticRegression(C=1.0).fit(sparse.csc_matrix(X), y)
    except ImportError:
        print("celer is not installed; left out", file=sys.stderr)
    return found


def fits() -> Iterator[Ratio]:
    X = rcv1_like()
    y = classes(X)
    model = SparseClassifier(500, epsilon=2.0, row_bound=1.0, classes=[0, 1], algorithm=DPIGHT(iterations=50))
    calls: dict[str, Callable[[], object]] = {"ours": lambda: model.fit(X, y)}
    calls |= {name: lambda fit=fit: fit(X, y) for name, fit in peers().items()}
    spent = best_of_each(calls, 5)
    for name, seconds in list(spent.items())[1:]:
        limits = (1.0, 0.5) if name == "liblinear" else (None, None)
        detail = times(spent["ours"], seconds, name)
        yield Ratio(
            f"DP-IGHT, 50 steps, whole fit, RCV1-like: ours / {name} l1",
            spent["ours"] / seconds,
            *limits,
            False,
            detail,
        )


def pursuit() -> Iterator[Ratio]:
    X = even(20_000, 50_000, 50)
    y = numbers(X)
    rounds = converged(X, y)
    shared: dict[str, Any] = {"sparsity": 50, "row_bound": 1.5, "target_bound": 1.0}
    private = SparseRegressor(**shared, epsilon=1.0, algorithm=Pursuit())
    exact = SparseRegressor(**shared, epsilon=math.inf, algorithm=IGHT(iterations=rounds))
    spent = best_of_each({"ours": lambda: private.fit(X, y), "ight": lambda: exact.fit(X, y)}, 5)
    detail = times(spent["ours"], spent["ight"], f"IGHT, {rounds} steps to convergence")
    yield Ratio(
        "pursuit, whole fit, 20000 x 50000, s = 50: ours / IGHT", spent["ours"] / spent["ight"], 1.0, 0.3, False, detail
    )


def converged(X: Any, y: Any) -> int:
    """Steps after which IGHT's model changes by less than 1e-4 of itself, found by doubling."""
    rounds, last = 25, None
    while rounds < 3200:
        model = SparseRegressor(
            50, epsilon=math.inf, row_bound=1.5, target_bound=1.0, algorithm=IGHT(iterations=rounds)
        ).fit(X, y)
        if last is not None and np.linalg.norm(model.coef_ - last) <= 1e-4 * np.linalg.norm(last):
            return rounds // 2
        last, rounds = model.coef_, 2 * rounds
    return rounds


# -- Frank-Wolfe ------------------------------------------------------------------------------------------------


def frank_wolfe() -> Iterator[Ratio]:
    X = rcv1_like()
    for regime, epsilon, limits in (
        ("near-uniform", 0.1, {False: (100, 300), True: (50, 120)}),
        ("concentrated", 1e4, {False: (2.5, 5.0), True: (2.5, 5.0)}),
    ):
        for logistic in (False, True):
            yield from walks(X, regime, epsilon, logistic, limits[logistic])


def walks(
    X: Any, regime: str, epsilon: float, logistic: bool, limits: tuple[float, float], rounds: int = 1000
) -> Iterator[Ratio]:
    y = classes(X) if logistic else numbers(X)
    n, d = X.shape
    rng, radius = np.random.default_rng(0), 20.0
    problem = Problem(
        n,
        d,
        50,
        "logistic" if logistic else "squared",
        Bounds(row=1.0, target=None if logistic else (-1.0, 1.0)),
        intercept=False,
    )

    def run(constant_work: bool, rounds: int) -> float:
        algorithm = FrankWolfe(iterations=rounds, radius=radius, clip=0.5, constant_work=constant_work)
        plan = algorithm.plan(problem, Budget(epsilon, 1e-5))
        with CentralVault(X, y, plan, NoiseSource(0)) as vault:
            start = time.perf_counter()
            algorithm.run(vault)
            return time.perf_counter() - start

    def naive(scale: float, rounds: int) -> float:
        theta, start = np.zeros(d), time.perf_counter()
        for t in range(1, rounds + 1):
            theta = textbook.frank_wolfe_step(X, y, theta, t, radius, scale, logistic, rng)
        return time.perf_counter() - start

    scale = (
        FrankWolfe(iterations=rounds, radius=radius, clip=0.5)
        .plan(problem, Budget(epsilon, 1e-5))
        .releases[0]
        .multiplier
        * 2
        * 0.5
        * radius
        / n
    )
    ours, whole, theirs = math.inf, math.inf, math.inf
    for _ in range(3):
        ours = min(ours, run(False, rounds))
        whole = min(whole, run(True, 100) * rounds / 100)
        theirs = min(theirs, naive(scale, 50) * rounds / 50)
    name = f"Frank-Wolfe, T = {rounds}, {regime}, {'logistic' if logistic else 'squared'}"
    yield Ratio(
        f"{name}: textbook / ours", theirs / ours, *limits, True, times(ours, theirs, "textbook (50 steps timed)")
    )
    if regime == "concentrated":
        yield Ratio(
            f"{name}: our full recompute / ours",
            whole / ours,
            0.9,
            None,
            True,
            times(ours, whole, "full recompute (100 steps timed)"),
        )


# -- small things -----------------------------------------------------------------------------------------------

FIRST_CALL = """
import time, numpy as np
from scipy import sparse
from thresher.engines import engine_for
X = sparse.random_array((2000, 1000), density=0.01, rng=np.random.default_rng(0), format="csc")
start = time.perf_counter()
engine = engine_for(X, 0.0)
engine.product(engine.transposed_product(np.ones(2000)))
first = time.perf_counter() - start
start = time.perf_counter()
engine.product(engine.transposed_product(np.ones(2000)))
print(first - (time.perf_counter() - start))
"""


def overheads(size: int = 2_000_000) -> Iterator[Ratio]:
    first = min(
        float(subprocess.run([sys.executable, "-c", FIRST_CALL], check=True, capture_output=True).stdout)
        for _ in range(3)
    )
    yield Ratio("first call of the loops, seconds more than the second", first, 1.0, 0.2, False)
    secure, hardened = NoiseSource(), NoiseSource(hardened=True)
    zeros, pcg = np.zeros(size), np.random.default_rng(0)
    spent = best_of_each({
        "ours": lambda: secure.gaussian(zeros, 1.0, 1.0),
        "pcg": lambda: zeros + 1.0 * pcg.standard_normal(size),
        "hardened": lambda: hardened.gaussian(zeros, 1.0, 1.0),
    }, 5)  # fmt: skip
    yield Ratio(
        "Gaussian noise from AES: ours / NumPy's PCG64",
        spent["ours"] / spent["pcg"],
        1.3,
        None,
        False,
        f"{size / spent['ours'] / 1e6:.0f} M/s",
    )
    yield Ratio(
        "Gaussian noise on the exact grid: ours / NumPy's PCG64",
        spent["hardened"] / spent["pcg"],
        detail=f"{size / spent['hardened'] / 1e6:.1f} M/s",
        more_is_better=False,
    )


SECTIONS = {
    "step": steps,
    "peeling": peeling,
    "fit": fits,
    "pursuit": pursuit,
    "frank-wolfe": frank_wolfe,
    "overhead": overheads,
}


def report(ratios: list[Ratio], folder: Path) -> None:
    """The table in Markdown, and the same as bars against what must be reached."""
    lines = [f"Measured on: {describe()}; two threads read {bandwidth() / 1e9:.0f} GB/s.", ""]
    lines += ["| what | measured | must | aim | reached | times |", "|---|---|---|---|---|---|"]
    for r in ratios:
        limits = [
            f"{'>=' if r.more_is_better else '<='} {limit:g}" if limit is not None else "" for limit in (r.must, r.aim)
        ]
        lines.append(f"| {r.what} | {r.value:.3g} | {limits[0]} | {limits[1]} | {r.verdict} | {r.detail} |")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "speed.md").write_text("\n".join(lines) + "\n")
    draw(ratios, folder / "speed.svg")
    print(f"written: {folder / 'speed.md'}, {folder / 'speed.svg'}")


def draw(ratios: list[Ratio], path: Path) -> None:
    """How many times better than what must be reached each ratio is, on a logarithmic axis."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("no plot: pip install 'thresher[report]'", file=sys.stderr)
        return
    shown = [r for r in ratios if r.must is not None][::-1]
    margins = [r.value / r.must if r.more_is_better else r.must / r.value for r in shown if r.must is not None]
    figure = Figure(figsize=(9, 0.4 * len(shown) + 1.2), layout="constrained")
    axes = figure.subplots()
    axes.barh(
        [r.what for r in shown],
        [m - 1 for m in margins],
        left=1,
        color=["tab:blue" if m >= 1 else "tab:red" for m in margins],
    )
    axes.set_xscale("log")
    axes.axvline(1, color="black")
    axes.set_xlabel("times better than what must be reached")
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/bench"), help="where to write the table and the plot")
    parser.add_argument("--only", choices=SECTIONS, help="measure one part only")
    options = parser.parse_args()
    print(describe(), flush=True)
    ratios = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, section in SECTIONS.items():
            if options.only in (None, name):
                for ratio in section():
                    ratios.append(ratio)
                    print(f"{ratio.verdict:>6}  {ratio.value:8.3g}  {ratio.what}  ({ratio.detail})", flush=True)
    report(ratios, options.out)


if __name__ == "__main__":
    main()
