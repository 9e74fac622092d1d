"""What a round costs more on Dask: a noisy gradient over 8 partitions on 2 worker processes, against one in memory.

Run: ./dev bench dask
"""

from __future__ import annotations

import os
import platform
import time

import numpy as np
from scipy import sparse

from thresher.algorithms import DPIGHT
from thresher.data.dask import Collection
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.vaults import CentralVault
from thresher.vaults.losses import SQUARED
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

N, D, PER_ROW, SPARSITY, PARTITIONS, WORKERS, ROUNDS = 20_000, 50_000, 50, 20, 8, 2, 60
WARM = 5  # rounds that are not counted


def some_rows(rng: np.random.Generator, n: int, d: int) -> sparse.csr_array:
    entries = rng.integers(0, d, n * PER_ROW)
    return sparse.csr_array((rng.normal(size=n * PER_ROW), entries, np.arange(0, n * PER_ROW + 1, PER_ROW)), (n, d))


def round_times(X: object, y: np.ndarray, d: int, rounds: int) -> np.ndarray:
    """Milliseconds of each noisy gradient."""
    problem = LinearProblem(
        len(y), d, Bounds(row=1.0, target=(-1.0, 1.0)), sparsity=SPARSITY, loss=SQUARED, intercept=True
    )
    plan = DPIGHT(iterations=rounds).plan(problem, Budget(1.0, 1e-9))
    (release,) = plan.releases
    theta = problem.origin()
    theta[np.random.default_rng(1).choice(d, SPARSITY, replace=False)] = 0.1
    times = []
    with CentralVault(X, y, plan, NoiseSource(0)) as vault:
        for _ in range(rounds):
            theta *= 0.99  # a vault remembers what it computed for the theta before
            start = time.perf_counter()
            vault.gradient(theta, release, 1.0)
            times.append(1e3 * (time.perf_counter() - start))
    return np.array(times[WARM:])


def compare(n: int = N, d: int = D, rounds: int = ROUNDS, processes: bool = True) -> None:
    from dask import array
    from distributed import Client, LocalCluster

    rng = np.random.default_rng(0)
    rows, y = some_rows(rng, n, d), rng.uniform(-1, 1, n)
    here = round_times(rows, y, d, rounds)
    step = n // PARTITIONS
    blocks = [array.from_array(rows[at : at + step], chunks=(-1, -1), asarray=False) for at in range(0, n, step)]
    workers = {"n_workers": WORKERS, "threads_per_worker": 1, "processes": processes}
    with LocalCluster(**workers, dashboard_address=None) as cluster, Client(cluster) as client:
        there = round_times(Collection(array.concatenate(blocks), client).partitions([np.float64]), y, d, rounds)
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{n} rows, {d} columns, {PER_ROW} nonzeros a row, {PARTITIONS} partitions, {WORKERS} worker processes")
    for name, pick in (("fastest", np.min), ("median", np.median)):
        local, remote = pick(here), pick(there)
        print(f"{name}: in memory {local:.1f} ms, Dask {remote:.1f} ms, overhead {remote - local:.1f} ms")


def smallest() -> None:
    compare(n=200, d=60, rounds=WARM + 1, processes=False)


if __name__ == "__main__":
    compare()
