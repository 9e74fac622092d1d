"""What a ledger costs a fit: time with one over time without, side by side, and what it is spent on."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy import sparse

from thresher import Ledger, SparseRegressor
from thresher.ledger.chain import Key
from thresher.ledger.fingerprint import sketch_of

REPEATS = 7


def timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def tables() -> dict[str, tuple[Any, Any]]:
    rng = np.random.default_rng(0)
    small = rng.uniform(-1, 1, (1_000, 20))
    middle = rng.uniform(-1, 1, (10_000, 500))
    wide = sparse.random_array((200_000, 50_000), density=20 / 50_000, format="csr", random_state=rng)
    long = rng.uniform(-1, 1, (1_000_000, 10))
    named = {
        "1,000 x 20": small, "10,000 x 500": middle, "200,000 x 50,000, 20 entries a row": wide,
        "1,000,000 x 10": long,
    }  # fmt: skip
    return {
        name: (X, X[:, [0]].sum(axis=1) if not sparse.issparse(X) else X @ np.ones(50_000)) for name, X in named.items()
    }


def ratios(X: Any, y: Any, folder: Path, repeats: int = REPEATS) -> tuple[float, float, float]:
    """Seconds of a fit without a ledger, with one, and of naming the rows."""
    ledger = Ledger(folder / "budget.db")
    ledger.grant("people", 1e6, 1e-9)
    facts: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-9, "feature_bound": 1.0, "target_bound": 3.0}
    plain = SparseRegressor(5, **facts)
    paying = SparseRegressor(5, **facts, ledger=ledger, dataset="people")
    pairs = [(timed(lambda: plain.fit(X, y)), timed(lambda: paying.fit(X, y))) for _ in range(repeats)]
    naming = timed(lambda: sketch_of(X, Key(bytes(32))))
    return median(pair[0] for pair in pairs), median(pair[1] for pair in pairs), naming


def main() -> None:
    print("| table | fit | fit with a ledger | ratio | of which naming the rows |\n|---|---|---|---|---|")
    for name, (X, y) in tables().items():
        with tempfile.TemporaryDirectory() as folder:
            plain, paying, naming = ratios(X, y, Path(folder))
        print(
            f"| {name} | {plain * 1e3:.0f} ms | {paying * 1e3:.0f} ms | {paying / plain:.2f} | {naming * 1e3:.0f} ms |"
        )


def smallest() -> None:
    X = np.random.default_rng(0).uniform(-1, 1, (100, 5))
    with tempfile.TemporaryDirectory() as folder:
        print(ratios(X, X[:, 0], Path(folder), repeats=1))


if __name__ == "__main__":
    main()
