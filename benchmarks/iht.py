"""Speed of one DP-IGHT step and of the noise, as ratios measured side by side in one run.

Run: ./dev bench
"""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from thresher.algorithms import DPIGHT
from thresher.algorithms.hard_threshold import hard_threshold
from thresher.budget import Budget
from thresher.clipping import Bounds, gradient_sensitivity
from thresher.plan import Problem
from thresher.randomness import NoiseSource
from thresher.vaults import CentralVault

Floats = NDArray[np.float64]

N, D, PER_ROW, SPARSITY, ROUNDS = 20_242, 47_236, 73, 500, 400


def rcv1_like(rng: np.random.Generator) -> tuple[sparse.csr_array, Floats]:
    """A sparse matrix of the shape of RCV1's training set, unit rows, columns as unevenly used as words are."""
    popularity = 1 / (np.arange(D) + 100.0)
    popularity /= popularity.sum()
    rows = [np.unique(row) for row in rng.choice(D, size=(N, 2 * PER_ROW), p=popularity)]
    rows = [np.sort(rng.choice(row, size=min(PER_ROW, len(row)), replace=False)) for row in rows]
    indptr = np.append(0, np.cumsum([len(row) for row in rows])).astype(np.int32)
    data = rng.random(indptr[-1]) + 0.1
    X = sparse.csr_array((data, np.concatenate(rows).astype(np.int32), indptr), shape=(N, D))
    X.data /= np.repeat(np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel()), np.diff(X.indptr))
    return X, (rng.random(N) < 0.5).astype(np.float64)


def textbook_step(X: sparse.csr_array, y: Floats, theta: Floats, sd: float, rng: np.random.Generator) -> Floats:
    """One step as the papers' readers write it: CSR products, NumPy's generator, a full sort."""
    residual = np.clip(1 / (1 + np.exp(-(X @ theta))) - y, -0.5, 0.5)
    gradient = X.T @ residual / len(y) + rng.normal(0, sd, len(theta))
    theta = theta - 4.0 * gradient
    theta[np.argsort(np.abs(theta))[:-SPARSITY]] = 0
    return theta


def best(call: Callable[[], object], repeats: int = 200) -> float:
    """The fastest of several calls, in seconds: the one least disturbed by the machine."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def step_ratio() -> None:
    rng = np.random.default_rng(0)
    X, y = rcv1_like(rng)
    problem = Problem(N, D, SPARSITY, "logistic", Bounds(row=1.0), intercept=False)
    plan = DPIGHT(iterations=ROUNDS).plan(problem, Budget(2.0, 1e-5))
    (release,) = plan.releases
    clip = plan.settings["clip"]
    sd = release.multiplier * gradient_sensitivity(clip, N, plan.budget.adjacency)
    vault = CentralVault(X, y, plan, NoiseSource())
    theta = hard_threshold(rng.standard_normal(D), problem)
    ours = best(lambda: hard_threshold(theta - 4.0 * vault.gradient(theta, release, clip), problem))
    textbook = best(lambda: textbook_step(X, y, theta, sd, rng))
    floor = best(lambda: X.data.sum() + X.indices.sum())
    print(f"DP-IGHT step, {N} x {D}, {X.nnz / N:.0f} nonzeros a row:")
    print(f"  textbook {textbook * 1e3:.2f} ms, ours {ours * 1e3:.2f} ms: {textbook / ours:.2f}x faster (must 2.3)")
    print(f"  reading the matrix once takes {floor * 1e3:.2f} ms: {ours / floor:.2f}x of that")


def noise_ratio(size: int = 2_000_000) -> None:
    secure, hardened = NoiseSource(), NoiseSource(hardened=True)
    zeros, pcg = np.zeros(size), np.random.default_rng(0)
    ours = best(lambda: secure.gaussian(zeros, 1.0, 1.0), 10)
    numpy = best(lambda: zeros + 1.0 * pcg.standard_normal(size), 10)
    grid = best(lambda: hardened.gaussian(zeros, 1.0, 1.0), 5)
    print(f"Gaussian noise: {ours / numpy:.2f}x the time of NumPy's PCG64 (must 1.3), {size / ours / 1e6:.0f} M/s")
    print(f"  hardened: {grid / numpy:.1f}x, {size / grid / 1e6:.1f} M/s")


def import_cost() -> None:
    def seconds(code: str) -> float:
        return best(lambda: subprocess.run([sys.executable, "-c", code], check=True), 5)  # noqa: S603

    sklearn = seconds("import sklearn.base, sklearn.utils.validation, sklearn.utils.extmath, sklearn.utils.multiclass")
    thresher = seconds("import thresher")
    print(
        f"import thresher: {thresher:.2f} s, {max(0.0, thresher - sklearn):.2f} s beyond scikit-learn's {sklearn:.2f} s"
    )


if __name__ == "__main__":
    print(
        f"{platform.machine()}, {platform.python_implementation()} {platform.python_version()}, NumPy {np.__version__}"
    )
    step_ratio()
    noise_ratio()
    import_cost()
