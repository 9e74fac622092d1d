"""Chapter 6 of the thesis with sound noise: Figures 6.1 to 6.9 as tables, curves and plots, and Table 6.1.

Run: THRESHER_DATA=... ./dev federated figures [--quick] [--out FOLDER] [NAME ...]
     ./dev federated noise
"""

from __future__ import annotations

import argparse
import csv
import os
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

import noise_levels
from accuracy import header, row
from chapter6 import METHODS, Point, judge_of, run
from curves import plot
from hospitals import SETS

DELTAS, SEEDS = (1e-3, 1e-6), 3
PARTIES: tuple[int | None, ...] = (100, 1000, None)  # None: one record each


def figures(names: list[str], quick: bool, out: Path | None) -> None:
    folder = Path(os.environ.get("THRESHER_DATA", "../shared/data"))
    parties, seeds = (PARTIES[:2], 1) if quick else (PARTIES, SEEDS)
    for data in names or SETS:
        tasks = [
            (name, m, delta, seed) for m in parties for name in METHODS for delta in DELTAS for seed in range(seeds)
        ]
        found = Parallel(n_jobs=2)(delayed(run)(data, *task, folder) for task in tasks)
        points = [point for points in found for point in points]
        judge = judge_of(data, folder)
        told = "mean squared error" if judge.rows.regression else "share of test rows misclassified"
        print(f"\n### {data}: {judge.rows.split}\n")
        print(f"J is {judge.start:.4f} at the origin and {judge.least:.4f} at its minimiser, whose {told} is "
              f"{judge.error:.4f}. Mean of {seeds} run(s), and their sd.\n")  # fmt: skip
        table("J - J*", points, "gap", parties)
        print()
        table(f"{told}, less that of the minimiser", points, "loss", parties)
        if out:
            out.mkdir(parents=True, exist_ok=True)
            write(points, out / f"{data}.csv")
            plot(data, points, told, out)


def table(title: str, points: list[Point], what: str, parties: tuple[int | None, ...]) -> None:
    columns = [(m, delta) for delta in DELTAS for m in parties]
    header(title, *(f"{f'm={m}' if m else 'one record each'}, delta {delta:g}" for m, delta in columns))
    handed_over = [point for point in points if point.iteration == -1]
    for name in METHODS:
        cells = []
        for column in columns:
            values = [getattr(p, what) for p in handed_over if p.method == name and (p.parties, p.delta) == column]
            sd = f" ({np.std(values, ddof=1):.1g})" if len(values) > 1 else ""
            cells.append(f"{np.mean(values):.2g}{sd}")
        row(name, *cells)


def write(points: list[Point], file: Path) -> None:
    with file.open("w", newline="") as text:
        writer = csv.writer(text)
        writer.writerow(Point._fields)
        writer.writerows(points)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["figures", "noise"])
    parser.add_argument("names", nargs="*", help=f"which sets of {', '.join(SETS)}; all if none is named")
    parser.add_argument("--quick", action="store_true", help="100 and 1000 parties, one seed")
    parser.add_argument("--out", type=Path, help="where curves and plots go")
    asked = parser.parse_intermixed_args()
    if not set(asked.names) <= set(SETS):
        parser.error(f"NAME must be one of {', '.join(SETS)}")
    if asked.what == "noise":
        noise_levels.main()
    else:
        figures(asked.names, asked.quick, asked.out)


if __name__ == "__main__":
    main()
