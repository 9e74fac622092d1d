"""Speed, as ratios measured side by side in one run: against textbook code, other libraries, and the memory's floor.

Run: ./dev bench [--out FOLDER] [--only PART]. Writes speed.md and speed.svg into FOLDER (default: build/bench).
"""

from __future__ import annotations

import argparse
import functools
import math
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from scipy import sparse
from sklearn.base import clone

import textbook
from machine import bandwidth, best, best_of_each, describe
from ratios import Ratio, faster, part_of, report
from sets import classes, e2006_like, numbers, rcv1_like, words
from thresher import SparseClassifier, SparseRegressor
from thresher.algorithms import DPIGHT, IGHT, FrankWolfe, Peeling, Pursuit
from thresher.algorithms.frank_wolfe import steps as frank_wolfe_steps
from thresher.algorithms.projections import hard_threshold
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.sensitivity import gradient_sensitivity
from thresher.vaults import CentralVault, kernels
from thresher.vaults.losses import LOGISTIC, loss_named
from thresher.vaults.polytopes import L1Ball, Walk
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

# -- one step of DP-IGHT ----------------------------------------------------------------------------------------


def dp_ight_step(X: Any, y: Any, sparsity: int, rounds: int) -> Callable[[], object]:
    """One step of ours on an open vault: the question, the move, the threshold."""
    n, d = X.shape
    problem = LinearProblem(n, d, Bounds(row=1.0), sparsity=sparsity, loss=LOGISTIC, intercept=False)
    plan = DPIGHT(iterations=rounds).plan(problem, Budget(2.0, 1e-5))
    (release,) = plan.releases
    vault = CentralVault(X, y, plan, NoiseSource())
    theta = hard_threshold(np.random.default_rng(0).standard_normal(d), problem)
    clip, changes = plan.settings["clip"], iter(range(10**9))

    def step() -> object:
        theta[0] = next(changes)  # another point every time: a vault remembers the margins of the last one
        return hard_threshold(theta - 4.0 * vault.gradient(theta, release, clip), problem)

    return step


ROW = 10  # steps timed in a row, as they come in a fit: what is in the cache is one's own


def in_a_row(step: Callable[[], object]) -> Callable[[], object]:
    return lambda: [step() for _ in range(ROW)]


def steps() -> Iterator[Ratio]:
    yield from sparse_steps("RCV1-like", rcv1_like(), 500, 30, (None, None))
    yield from sparse_steps("E2006-like", e2006_like(), 500, 5, (2.2, 1.5))
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((5000, 5000)) / math.sqrt(5000)
    alone = best(dp_ight_step(dense, (rng.random(5000) < 0.5).astype(np.float64), 50, 200), 60)
    yield part_of("DP-IGHT step, dense 5000 x 5000, s = 50", alone, dense.nbytes / bandwidth(), "floor", 1.2, 1.05)


def sparse_steps(name: str, X: Any, s: int, repeats: int, floors: tuple[float | None, float | None]) -> Iterator[Ratio]:
    """Against the textbook's, ours without a compiler, and reading the values and 32-bit indices once."""
    rng, y = np.random.default_rng(0), classes(X)
    theta = np.where(np.arange(X.shape[1]) < s, rng.standard_normal(X.shape[1]), 0.0)
    ours = in_a_row(dp_ight_step(X, y, s, 4 * ROW * repeats))
    with mock.patch.object(kernels, "_loops", None):
        plain = in_a_row(dp_ight_step(X, y, s, 4 * ROW * repeats))
    textbooks = in_a_row(functools.partial(textbook.dp_ight_step, X, y, theta, 1e-3, s, rng))
    calls = {"ours": ours, "textbook": textbooks, "plain": plain}
    spent = {each: seconds / ROW for each, seconds in best_of_each(calls, repeats).items()}
    floor = (X.data.nbytes + X.indices.nbytes) / bandwidth()
    yield faster(f"DP-IGHT step, {name}", spent["ours"], spent["textbook"], "textbook", 2.5, 3.5)
    yield faster(f"DP-IGHT step, {name}", spent["ours"], spent["plain"], "ours without a compiler", None, None)
    yield part_of(f"DP-IGHT step, {name}", spent["ours"], floor, "floor", *floors)


# -- whole fits -------------------------------------------------------------------------------------------------


def fits() -> Iterator[Ratio]:
    yield from fits_of("RCV1-like", rcv1_like(), 500, 5)


def fits_of(name: str, X: Any, s: int, repeats: int) -> Iterator[Ratio]:
    """Against sparse logistic regression by other libraries, which has no privacy."""
    y = classes(X)
    model = SparseClassifier(s, epsilon=2.0, row_bound=1.0, classes=[0, 1], algorithm=DPIGHT(iterations=50))
    calls = {"ours": model.fit, **peers()}
    spent = best_of_each({each: functools.partial(fit, X, y) for each, fit in calls.items()}, repeats)
    for peer in list(calls)[1:]:
        limits = (1.0, 0.5) if peer == "liblinear l1" else (None, None)
        yield part_of(f"DP-IGHT, 50 steps, whole fit, {name}", spent["ours"], spent[peer], peer, *limits)


def peers() -> dict[str, Callable[[Any, Any], object]]:
    from sklearn.linear_model import LogisticRegression

    found: dict[str, Callable[[Any, Any], object]] = {
        "liblinear l1": lambda X, y: LogisticRegression(l1_ratio=1.0, solver="liblinear").fit(X, y),
        "saga l1": lambda X, y: LogisticRegression(l1_ratio=1.0, solver="saga").fit(X, y),
    }
    try:
        from skglm import SparseLogisticRegression

        alone = SparseLogisticRegression(fit_intercept=False)
        found["skglm"] = lambda X, y: alone.set_params(alpha=1 / len(y)).fit(sparse.csc_matrix(X), y)
    except ImportError as error:
        print(f"skglm is left out: {error}", file=sys.stderr)
    try:
        import celer

        found["celer"] = lambda X, y: celer.LogisticRegression(C=1.0).fit(sparse.csc_matrix(X), y)
    except ImportError as error:
        print(f"celer is left out: {error}", file=sys.stderr)
    return found


def private_peer() -> Iterator[Ratio]:
    """diffprivlib takes dense rows and gives dense models; 20000 rows of 100 columns."""
    try:
        from diffprivlib.models import LogisticRegression as Private
    except ImportError as error:
        print(f"diffprivlib is left out: {error}", file=sys.stderr)
        return
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 100)) / 10
    y = (X[:, 0] > 0).astype(np.float64)
    model = SparseClassifier(10, epsilon=1.0, row_bound=1.0, classes=[0, 1])
    spent = best_of_each({"ours": lambda: model.fit(X, y), "theirs": lambda: Private(epsilon=1.0, data_norm=1.0).fit(X, y)}, 3)  # fmt: skip # noqa: E501
    yield part_of("whole private fit, dense 20000 x 100", spent["ours"], spent["theirs"], "diffprivlib", None, None)


def peeling() -> Iterator[Ratio]:
    X = rcv1_like()
    y, s, rounds = numbers(X), 50, 10
    model = SparseRegressor(s, row_bound=1.0, target_bound=1.0, algorithm=Peeling(iterations=rounds, loop="paper"))
    rng, theta = np.random.default_rng(0), np.zeros(X.shape[1])
    one_step = functools.partial(textbook.peeling_step, X, y, theta, 1e-3, s, rng)
    spent = best_of_each({"ours": lambda: model.fit(X, y), "textbook": one_step}, 3)
    name = f"peeling, {rounds} rounds, whole fit, RCV1-like"
    yield faster(name, spent["ours"], rounds * spent["textbook"], "textbook", None, None)


def pursuit() -> Iterator[Ratio]:
    """Against our own IGHT, as many steps as it needs."""
    X = words(20_000, 50_000, 50)
    y = numbers(X)
    shared: dict[str, Any] = {"sparsity": 50, "row_bound": 1.5, "target_bound": 1.0}
    rounds = converged(X, y, shared)
    private = SparseRegressor(**shared, epsilon=1.0, algorithm=Pursuit())
    exact = SparseRegressor(**shared, epsilon=math.inf, algorithm=IGHT(iterations=rounds))
    spent = best_of_each({"ours": lambda: private.fit(X, y), "ight": lambda: exact.fit(X, y)}, 5)
    name = f"IGHT to convergence ({rounds} steps)"
    yield part_of("pursuit, whole fit, 20000 x 50000, s = 50", spent["ours"], spent["ight"], name, 1.0, 0.3)


def hardened() -> Iterator[Ratio]:
    """What exact noise costs: whole fits with it and without."""
    tall, wide = np.random.default_rng(0).standard_normal((20_000, 500)), words(20_000, 50_000, 50)
    tables: tuple[tuple[str, Any, dict[str, Any]], ...] = (
        ("dense 20000 x 500", tall, {"feature_bound": 3.0}),
        ("sparse 20000 x 50000", wide, {"row_bound": 1.5}),
    )
    for name, X, bounds in tables:
        y = np.clip(X[:, 0], -1, 1) if X is tall else numbers(X)
        for algorithm in ("pursuit", "dp-ight", "peeling", "noisy-frank-wolfe"):
            model = SparseRegressor(10, target_bound=1.0, algorithm=algorithm, **bounds)
            exact, plain = (clone(model).set_params(hardened=kind) for kind in (True, False))
            calls: dict[str, Callable[[], object]] = {
                "exact": functools.partial(exact.fit, X, y), "plain": functools.partial(plain.fit, X, y)
            }  # fmt: skip
            spent = best_of_each(calls, 5)
            what = f"{algorithm}, whole fit, {name}, hardened"
            yield part_of(what, spent["exact"], spent["plain"], "hardened=False", 1.6, 1.3)


def converged(X: Any, y: Any, shared: dict[str, Any]) -> int:
    """Steps after which IGHT's model is within 1e-3 of where twice as many lead, found by doubling."""
    rounds, last = 25, None
    while rounds < 3200:
        model = SparseRegressor(**shared, epsilon=math.inf, algorithm=IGHT(iterations=rounds)).fit(X, y)
        if last is not None and np.linalg.norm(model.coef_ - last) <= 1e-3 * np.linalg.norm(last):
            return rounds // 2
        last, rounds = model.coef_, 2 * rounds
    return rounds


# -- Frank-Wolfe ------------------------------------------------------------------------------------------------

ROUNDS, RADIUS, CLIP = 1000, 20.0, 0.5
NAIVE_STEPS, FULL_STEPS = 50, 100  # timed; a step costs the same whenever it is


def frank_wolfe() -> Iterator[Ratio]:
    X = rcv1_like()
    for logistic, uniform in ((False, (100, 300)), (True, (50, 120))):
        y = classes(X) if logistic else numbers(X)
        loss = "logistic" if logistic else "squared"
        ours, theirs, _ = walks(X, y, loss, epsilon=0.1)
        yield faster(f"Frank-Wolfe, T = {ROUNDS}, near-uniform, {loss}", ours, theirs, "textbook", *uniform)
        ours, theirs, full = walks(X, y, loss, epsilon=1e4)
        name = f"Frank-Wolfe, T = {ROUNDS}, concentrated, {loss}"
        yield faster(name, ours, theirs, "textbook", 2.5, 5.0)
        yield faster(name, ours, full, "our full recompute", 0.9, None)


def walks(X: Any, y: Any, loss: str, epsilon: float) -> tuple[float, float, float]:
    """Seconds for all rounds: ours, the textbook's, and ours with a full pass in every step. Vaults are open."""
    (n, d), budget = X.shape, Budget(epsilon, 1e-5)
    target = None if loss == "logistic" else (-1.0, 1.0)
    problem = LinearProblem(n, d, Bounds(row=1.0, target=target), sparsity=50, loss=loss_named(loss), intercept=False)
    (release,) = FrankWolfe(iterations=ROUNDS, radius=RADIUS, clip=CLIP).plan(problem, budget).releases
    scale = release.multiplier * gradient_sensitivity(CLIP * RADIUS, n, budget.adjacency)

    def run(follow: bool) -> float:
        algorithm = FrankWolfe(iterations=ROUNDS, radius=RADIUS, clip=CLIP)
        with CentralVault(X, y, algorithm.plan(problem, budget), NoiseSource(0)) as vault:
            start = time.perf_counter()
            if follow:
                algorithm.run(vault)
            else:  # asked about points, the vault computes each answer from scratch
                ball, (release,) = L1Ball(RADIUS), vault.plan.releases
                walk = Walk(ball, problem, frank_wolfe_steps(ROUNDS))
                for _ in range(FULL_STEPS):
                    walk.towards(vault.vertex(walk.theta, release, ball, CLIP))
            return time.perf_counter() - start

    def naive(rounds: int) -> float:
        theta, rng, start = np.zeros(d), np.random.default_rng(0), time.perf_counter()
        for t in range(1, rounds + 1):
            theta = textbook.frank_wolfe_step(X, y, theta, t, RADIUS, scale, loss == "logistic", rng)
        return time.perf_counter() - start

    spent = [(run(True), naive(NAIVE_STEPS) * ROUNDS / NAIVE_STEPS, run(False) * ROUNDS / FULL_STEPS) for _ in range(3)]
    ours, theirs, full = (min(times) for times in zip(*spent, strict=True))
    return ours, theirs, full


# -- small things -----------------------------------------------------------------------------------------------

FIRST_CALL = """
import time, numpy as np
from scipy import sparse
from thresher.vaults.engines import engine_for
X = sparse.random_array((2000, 1000), density=0.01, random_state=np.random.default_rng(0), format="csc")
def call():
    start = time.perf_counter()
    engine = engine_for(X.copy(), 0.0)
    engine.product(engine.transposed_product(np.ones(2000)))
    return time.perf_counter() - start
print(call() - call())
"""


def overheads(size: int = 2_000_000) -> Iterator[Ratio]:
    command = [sys.executable, "-c", FIRST_CALL]
    first = min(float(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(3))  # noqa: S603
    yield Ratio("first call of the loops, seconds more than the second", max(first, 1e-6), 1.0, 0.2, False)
    secure, hardened = NoiseSource(), NoiseSource(hardened=True)
    zeros, pcg = np.zeros(size), np.random.default_rng(0)
    # each by itself: the source draws ahead, and in turns that would happen in the others' time
    ours = best(lambda: secure.gaussian(zeros, 1.0, 1.0), 10)
    numpy = best(lambda: zeros + 1.0 * pcg.standard_normal(size), 10)
    grid = best(lambda: hardened.gaussian(zeros, 1.0, 1.0), 5)
    yield part_of("2 million Gaussians from AES", ours, numpy, "NumPy's PCG64", 1.3, None)
    yield part_of("2 million Gaussians on the exact grid", grid, numpy, "NumPy's PCG64", None, None)


PARTS: dict[str, Callable[[], Iterator[Ratio]]] = {
    "step": steps,
    "fit": fits,
    "private": private_peer,
    "peeling": peeling,
    "pursuit": pursuit,
    "hardened": hardened,
    "frank-wolfe": frank_wolfe,
    "overhead": overheads,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/bench"), help="where to write the table and the plot")
    parser.add_argument("--only", choices=PARTS, help="measure one part only")
    options = parser.parse_args()
    print(describe(), flush=True)
    ratios = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, part in PARTS.items():
            if options.only in (None, name):
                for ratio in part():
                    ratios.append(ratio)
                    print(f"{ratio.verdict:>6}  {ratio.value:8.3g}  {ratio.what}  ({ratio.detail})", flush=True)
    report(ratios, options.out)


def smallest() -> None:
    """A step, fits beside all libraries that are there, and the report."""
    X = words(300, 200, 10)
    ratios = [*sparse_steps("smallest", X, 10, 1, (None, None)), *fits_of("smallest", X, 10, 1)]
    with tempfile.TemporaryDirectory() as folder:
        report(ratios, Path(folder))


if __name__ == "__main__":
    main()
