"""A million rows of a million columns, 50 entries in each: time, and memory against that of the matrix alone.

Run: ./dev bench million
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from machine import describe
from thresher import SparseRegressor
from thresher.algorithms import SparseName

N, D, PER_ROW, SPARSITY = 1_000_000, 1_000_000, 50, 50
CHUNK = 10_000


def million(n: int = N, d: int = D) -> tuple[sparse.csr_array, NDArray[np.float64]]:
    """Rows of norm about 1, and a target that 50 columns explain in part. Made in chunks: nothing else is in memory."""
    rng = np.random.default_rng(0)
    indices = np.empty(n * PER_ROW, dtype=np.int32)
    for first in range(0, n, CHUNK):  # squares make low columns popular, as words are
        columns = np.sort((rng.random((CHUNK, PER_ROW)) ** 2 * d).astype(np.int32), axis=1)
        indices[first * PER_ROW : (first + CHUNK) * PER_ROW] = columns.ravel()
    values = rng.standard_normal(n * PER_ROW)
    values /= np.sqrt(PER_ROW)
    X = sparse.csr_array((values, indices, np.arange(0, n * PER_ROW + 1, PER_ROW, dtype=np.int32)), shape=(n, d))
    theta = np.zeros(d)
    theta[rng.choice(D // 10_000, SPARSITY, replace=False)] = 1.0  # popular columns: rare ones are hidden by design
    return X, X @ theta + 0.05 * rng.standard_normal(n)


def peak() -> float:
    """The most memory this process has held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def run(algorithm: SparseName, n: int = N, d: int = D) -> None:
    X, y = million(n, d)
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    before, start = peak(), time.perf_counter()
    model = SparseRegressor(SPARSITY, epsilon=1.0, row_bound=1.5, target_bound=1.0, algorithm=algorithm)
    model.fit(X, y)
    seconds = time.perf_counter() - start
    print(
        f"{algorithm}: {seconds:.1f} s; the matrix {size / 1e6:.0f} MB, peak {peak() / 1e6:.0f} MB = "
        f"{peak() / size:.2f}x (must 3; {before / size:.2f}x before the fit); {len(model.support_)} columns found",
        flush=True,
    )


def main() -> None:
    """Each algorithm in a process of its own, so that each has its own peak."""
    print(describe(), flush=True)
    for algorithm in ("pursuit", "dp-ight"):
        subprocess.run([sys.executable, __file__, algorithm], check=True)  # noqa: S603


def smallest() -> None:
    run("pursuit", CHUNK, 1_000)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(cast(SparseName, sys.argv[1]))
    else:
        main()
