"""Processes that spend from one grant at the same time, or are killed while they do."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from thresher import BudgetExceeded, Ledger, SparseRegressor
from thresher.vaults.vault import Vault

EPSILON, DELTA = 0.05, 1e-6


def small_rows(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (n, 4))
    return X, X[:, 0] + 0.1 * rng.normal(size=n)


def a_model(ledger: Any, **other: Any) -> SparseRegressor:
    facts = {"epsilon": EPSILON, "delta": DELTA, "feature_bound": 1.0, "target_bound": 2.0, "algorithm": "dp-ight"}
    return SparseRegressor(2, **{**facts, "ledger": ledger, "dataset": "people", **other})


def attempt(model: SparseRegressor, X: np.ndarray, y: np.ndarray) -> str:
    """Whether a fit was made. It is here since workers import what they run, and another distribution may have put a
    package named ``tests`` before ours."""
    try:
        model.fit(X, y)
    except BudgetExceeded:
        return "refused"
    return "made"


def spend(address: str, key: str, fits: int) -> tuple[int, int]:
    """Try so many fits; how many were made and how many refused."""
    X, y = small_rows()
    model = a_model(Ledger(address, key=key))
    made = 0
    for _ in range(fits):
        try:
            model.fit(X, y)
            made += 1
        except BudgetExceeded:
            pass
    return made, fits - made


def killed_while_spending(address: str, key: str, truth: Path, times: int, seed: int) -> None:
    """Fork a process that fits again and again, kill it at a random moment, and so on.

    Every fourth one kills itself while it gives an answer, however fast or slow the machine is. A byte is in ``truth``
    for each fit of which an answer has left the vault; it is written first.
    """
    X, y = small_rows()
    model = a_model(Ledger(address, key=key))
    moments = np.random.default_rng(seed)
    model.fit(X, y)  # warm: imports, caches
    start = time.perf_counter()
    for _ in range(10):
        model.fit(X, y)
    lasts = (time.perf_counter() - start) / 10
    log = os.open(truth, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(log, b"." * 11)
    for at in range(times):
        child = os.fork()
        if child == 0:
            told = _telling(log, deadly=at % 4 == 0)
            while True:
                told.clear()
                model.fit(X, y)
        if at % 4:
            time.sleep(moments.uniform(0.0, 6 * lasts))
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _telling(log: int, deadly: bool) -> list[bool]:
    """Make vaults write a byte before the first answer of a fit leaves them; a deadly one is the last."""
    told: list[bool] = []
    record = Vault._record

    def tell(self: Vault, *answer: Any) -> None:
        if not told:
            told.append(True)
            os.write(log, b".")
            if deadly:
                os.kill(os.getpid(), signal.SIGKILL)
        record(self, *answer)

    Vault._record = tell  # type: ignore[method-assign]
    return told


if __name__ == "__main__":
    killed_while_spending(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
