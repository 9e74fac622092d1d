"""How time grows with rows, columns, sparsity and rounds: sweeps with fitted exponents.

Run: ./dev bench scaling [--out FOLDER]. Writes scaling.md and scaling.svg into FOLDER (default: build/bench).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from machine import best_of_each, describe
from sets import even, numbers
from thresher import SparseRegressor
from thresher.algorithms import DPIGHT, FrankWolfe, Peeling, Pursuit

PER_ROW = 20
BASE = {"n": 40_000, "d": 40_000, "s": 50, "T": 20}
VALUES: dict[str, list[int]] = {
    "n": [40_000, 80_000, 160_000, 320_000],
    "d": [40_000, 80_000, 160_000, 320_000],
    "s": [25, 50, 100, 200],
    "T": [20, 40, 80, 160],
}
LIMIT = 1.05  # of exponents in n and d
ALGORITHMS: dict[str, Callable[[int], Any]] = {
    "dp-ight": lambda T: DPIGHT(iterations=T),
    "pursuit": lambda T: Pursuit(stages=max(1, T // 5)),
    "peeling": lambda T: Peeling(iterations=T),
    "frank-wolfe": lambda T: FrankWolfe(iterations=50 * T),
}


@dataclass(frozen=True)
class Sweep:
    """Times over the values of one size, and the exponent of a line through their logarithms."""

    algorithm: str
    size: str
    values: NDArray[np.float64]
    seconds: NDArray[np.float64]

    @property
    def exponent(self) -> float:
        return float(np.polyfit(np.log(self.values), np.log(self.seconds), 1)[0])

    def __str__(self) -> str:
        limit = f" (at most {LIMIT}: {'yes' if self.exponent <= LIMIT else 'NO'})" if self.size in ("n", "d") else ""
        first, last = 1e3 * self.seconds[0], 1e3 * self.seconds[-1]
        return f"{self.algorithm:12} {self.size}: exponent {self.exponent:.2f}{limit}, {first:.0f} to {last:.0f} ms"


def fit(cell: dict[str, int], X: Any, y: Any, algorithm: str) -> Callable[[], object]:
    model = SparseRegressor(
        cell["s"], epsilon=1.0, row_bound=1.5, target_bound=1.0, algorithm=ALGORITHMS[algorithm](cell["T"])
    )
    return lambda: model.fit(X, y)


def sweep(size: str, sizes: Sequence[int], base: dict[str, int], repeats: int) -> list[Sweep]:
    """All algorithms on the same tables, whole fits, the fastest of several."""
    found = []
    for value in sizes:
        cell = base | {size: value}
        X = even(cell["n"], cell["d"], PER_ROW)
        y = numbers(X)
        found.append(best_of_each({name: fit(cell, X, y, name) for name in ALGORITHMS}, repeats))
    values = np.array(sizes, dtype=np.float64)
    return [Sweep(name, size, values, np.array([times[name] for times in found])) for name in ALGORITHMS]


def report(sweeps: list[Sweep], folder: Path) -> None:
    lines = [f"Measured on: {describe()}. Base: {BASE}, {PER_ROW} entries a row; whole fits.", ""]
    lines += ["| algorithm | size | values | milliseconds | exponent |", "|---|---|---|---|---|"]
    for s in sweeps:
        values, times = ", ".join(f"{v:g}" for v in s.values), ", ".join(f"{1e3 * t:.0f}" for t in s.seconds)
        lines.append(f"| {s.algorithm} | {s.size} | {values} | {times} | {s.exponent:.2f} |")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scaling.md").write_text("\n".join(lines) + "\n")
    draw(sweeps, folder / "scaling.svg")
    print(f"written: {folder / 'scaling.md'}, {folder / 'scaling.svg'}")


def draw(sweeps: list[Sweep], path: Path) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("no plot: pip install 'thresher[report]'", file=sys.stderr)
        return
    figure = Figure(figsize=(11, 3.2), layout="constrained")
    for axes, size in zip(figure.subplots(1, 4), VALUES, strict=True):
        for s in sweeps:
            if s.size == size:
                axes.loglog(s.values, s.seconds, "o-", label=f"{s.algorithm} ({s.exponent:.2f})")
        axes.set_xlabel(size)
        axes.legend(fontsize=7)
    figure.supylabel("seconds, whole fit")
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/bench"), help="where to write the table and the plot")
    parser.add_argument("--repeats", type=int, default=5, help="fits per cell, of which the fastest counts")
    options = parser.parse_args()
    print(describe(), flush=True)
    sweeps = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for size, sizes in VALUES.items():
            for s in sweep(size, sizes, BASE, options.repeats):
                sweeps.append(s)
                print(s, flush=True)
    report(sweeps, options.out)


def smallest() -> None:
    with tempfile.TemporaryDirectory() as folder:
        report(sweep("T", [5, 10], {"n": 200, "d": 60, "s": 5, "T": 5}, repeats=1), Path(folder))


if __name__ == "__main__":
    main()
