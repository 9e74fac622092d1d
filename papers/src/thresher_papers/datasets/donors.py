"""KDDCup98: how much does a donor give?"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from thresher_papers.datasets.files import Files, loader
from thresher_papers.datasets.formats import lines, unit_rows
from thresher_papers.datasets.real_set import RealSet, shuffled

__all__ = ["kddcup98"]

SHARES = {"ETH": 16, "MARR": 4, "HHD": 12, "HHAS": 4, "LFC": 10, "OCC": 13, "EIC": 16, "SEC": 5, "AFC": 6, "VC": 4}
"""Of a donor's neighbours in the census, in per cent: ETH1 to ETH16, and so on."""

COUNTS = {
    "AGE": 98, "INCOME": 7, "WEALTH1": 9, "HIT": 250, "NUMPROM": 200, "CARDPROM": 100, "NUMPRM12": 100, "CARDPM12": 100,
    "NGIFTALL": 250, "CARDGIFT": 100, "TIMELAG": 1200,
}  # fmt: skip
DOLLARS = ("RAMNTALL", "MINRAMNT", "MAXRAMNT", "LASTGIFT", "AVGGIFT")
LARGEST_SUM, LARGEST_GIFT = 1e4, 200
"""In dollars; what is above counts as this much."""

TRAINING, TESTING = 50_000, 20_000


@loader
def kddcup98(here: Files) -> RealSet:
    """The gift of a donor in dollars (most give nothing), from the census and the gifts before: 50,000 rows to fit and
    20,000 to score.

    The thesis takes 95 principal components, which are read from private rows at no charge. Here a column is a share, a
    count or the logarithm of a sum, each over a bound known beforehand, and a row is divided by its own norm.
    """
    files = here.all_of("cup98LRN.txt")
    if files is None:
        raise here.missing(stand_in="diabetes130_stay")
    names = [*(f"{name}{at}" for name, count in SHARES.items() for at in range(1, count + 1)), *COUNTS, *DOLLARS]
    table = _columns(files[0], [*names, "TARGET_D"])
    shares, counts, dollars = np.split(table[:, :-1], [sum(SHARES.values()), len(names) - len(DOLLARS)], axis=1)
    X = np.hstack([shares / 100, counts / list(COUNTS.values()), np.log1p(dollars) / np.log1p(LARGEST_SUM)])
    X = unit_rows(np.minimum(X, 1))
    drawn = shuffled(len(X), seed=0)
    fitted = min(TRAINING, TRAINING * len(X) // (TRAINING + TESTING))
    train, test = drawn[:fitted], drawn[fitted:][:TESTING]
    y = np.minimum(table[:, -1], LARGEST_GIFT)
    bounds = {"row_bound": 1.0, "target_bound": (0, LARGEST_GIFT)}
    about = "KDDCup98: a donor's gift in dollars, from the census and the gifts before; rows over their norm"
    return RealSet(here.name, X[train], y[train], X[test], y[test], bounds, about, names)


def _columns(path: Path, names: list[str]) -> Any:
    """The named columns as numbers; an empty cell counts as nothing, and so does what is below it."""
    reader = csv.reader(lines(path))
    header = [name.strip() for name in next(reader, [])]
    missing = [name for name in names if name not in header]
    if missing:
        raise ValueError(f"{path} has no column {missing[0]!r}; take the original file, whose first line names all")
    at = [header.index(name) for name in names]
    try:
        return np.array([[max(float(row[column].strip() or 0), 0) for column in at] for row in reader])
    except (ValueError, IndexError):
        raise ValueError(f"{path} has a line that is not of {len(header)} columns; take the original file") from None
