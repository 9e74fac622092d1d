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
from thresher.budget import Budget
from thresher.clipping import Bounds
from thresher.partitions import Collection
from thresher.plan import Problem
from thresher.randomness import NoiseSource
from thresher.vaults import CentralVault

N, D, PER_ROW, SPARSITY, PARTITIONS, WORKERS, ROUNDS = 20_000, 50_000, 50, 20, 8, 2, 60


def some_rows(rng: np.random.Generator) -> sparse.csr_array:
    entries = rng.integers(0, D, N * PER_ROW)
    return sparse.csr_array((rng.normal(size=N * PER_ROW), entries, np.arange(0, N * PER_ROW + 1, PER_ROW)), (N, D))


def round_times(X: object, y: np.ndarray) -> np.ndarray:
    """Milliseconds of each noisy gradient."""
    problem = Problem(N, D, SPARSITY, "squared", Bounds(row=1.0, target=(-1.0, 1.0)), True)
    plan = DPIGHT(iterations=ROUNDS).plan(problem, Budget(1.0, 1e-9))
    (release,) = plan.releases
    theta = problem.origin()
    theta[np.random.default_rng(1).choice(D, SPARSITY, replace=False)] = 0.1
    times = []
    with CentralVault(X, y, plan, NoiseSource(0)) as vault:
        for _ in range(ROUNDS):
            theta *= 0.99  # a vault remembers what it computed for the theta before
            start = time.perf_counter()
            vault.gradient(theta, release, 1.0)
            times.append(1e3 * (time.perf_counter() - start))
    return np.array(times[5:])


def main() -> None:
    from dask import array
    from distributed import Client, LocalCluster

    rng = np.random.default_rng(0)
    rows, y = some_rows(rng), rng.uniform(-1, 1, N)
    here = round_times(rows, y)
    step = N // PARTITIONS
    blocks = [array.from_array(rows[at : at + step], chunks=(-1, -1), asarray=False) for at in range(0, N, step)]
    with LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as c:
        there = round_times(Collection(array.concatenate(blocks), c).partitions([np.float64]), y)
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{N} rows, {D} columns, {PER_ROW} nonzeros a row, {PARTITIONS} partitions, {WORKERS} worker processes")
    for name, pick in (("fastest", np.min), ("median", np.median)):
        local, remote = pick(here), pick(there)
        print(f"{name}: in memory {local:.1f} ms, Dask {remote:.1f} ms, overhead {remote - local:.1f} ms")


if __name__ == "__main__":
    main()
