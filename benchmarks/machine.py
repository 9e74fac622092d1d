"""What the numbers were measured on, and how fast it reads memory."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import scipy
import sklearn

from thresher.vaults.kernels import compiled


def describe() -> str:
    """One line about processor, cores, versions and loops."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.processor() or platform.machine()
    loops = "compiled loops" if compiled() else "SciPy loops"
    return (
        f"{model}, {os.cpu_count()} cores, {platform.system()}; Python {platform.python_version()}, "
        f"NumPy {np.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}; {loops}"
    )


def best(call: Callable[[], object], repeats: int) -> float:
    """The fastest of several calls after a first one, in seconds: the one least disturbed by the machine."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def best_of_each(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The same for several calls in turn, so that a disturbance of the machine meets all of them."""
    fastest = dict.fromkeys(calls, np.inf)
    for _ in range(repeats + 1):  # the first round warms up; it can only be slower
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            fastest[name] = min(fastest[name], time.perf_counter() - start)
    return fastest


@cache
def bandwidth(megabytes: int = 400) -> float:
    """Bytes a second that two threads read from memory, each the maximum of its half of a large array."""
    numbers = np.random.default_rng(0).random(megabytes * 2**17)
    halves = np.array_split(numbers, 2)
    with ThreadPoolExecutor(2) as pool:
        return numbers.nbytes / best(lambda: list(pool.map(np.max, halves)), 10)
