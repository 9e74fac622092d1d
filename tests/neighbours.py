"""Neighbouring data sets for tests: one wild row more, or in place of another."""

import numpy as np
from hypothesis import strategies as st

from thresher.privacy.bounds import Bounds

WILD_ENTRIES = st.sampled_from([0.0, 1.0, -1.0, 0.3, 1e300, -1e300, 1e6, -1e6, 1e-320])
WILD_TARGETS = {"squared": st.sampled_from([0.0, 0.5, 1e300, -1e300, 1e6]), "logistic": st.sampled_from([0.0, 1.0])}
PER_COLUMN = (0.1, 1.0, 2.0, 5.0, 0.3)
SOME_BOUNDS = [
    Bounds(feature=1.0),
    Bounds(row=1.0),
    Bounds(feature=PER_COLUMN),
    Bounds(feature=0.5, row=0.8),
    Bounds(feature=PER_COLUMN, row=1.2),
]


def with_row(X, y, row, target, adjacency, at):
    """A neighbour: one row replaced, or one row added (the public row count stays)."""
    if adjacency == "add-remove":
        return np.vstack([X, row]), np.append(y, target)
    X, y = X.copy(), y.copy()
    X[at], y[at] = row, target
    return X, y


def round_off_paid(adjacency, hardened, roundings=300):
    """The part of what one row moves that hardened noise pays for round-off on top, on both sides.

    Where rows may come or go, for as many of them as can be: 2^33. Where their number is fixed, next to nothing.
    """
    return 2 * roundings * 2.0**-53 * 2**33 if hardened and adjacency == "add-remove" else 0.0
