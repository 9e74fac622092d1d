"""Public rows for knowledge transfer, drawn with a public seed: nobody's data, and no noise that protects any."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from thresher.privacy.arrays import Floats

__all__ = ["PUBLIC_LAWS", "public_features"]

PUBLIC_LAWS = {"uniform": 1 / 3, "signs": 1.0}
"""Laws of an entry on [-1, 1] and their second moments."""


def public_features(law: str, bounds: Floats, columns: NDArray[np.intp], rows: int, seed: int) -> Floats:
    """``rows`` x ``columns`` public entries: bounds_j times independent draws from the law.

    Column j depends on ``seed`` and j alone, so the columns that are needed can be drawn without the others. (The 1
    keeps the stream apart from that of a plain seed, with which synthetic private rows may have been drawn.)
    """
    drawn = np.empty((rows, len(columns)), order="F")
    for at, j in enumerate(columns):
        entries = np.random.default_rng([seed, int(j), 1]).uniform(-1, 1, rows)
        drawn[:, at] = bounds[j] * (np.sign(entries) if law == "signs" else entries)
    return drawn
