"""The data of the thesis' chapter 6, or what stands in for it: rows of norm 1, made of public facts alone."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

from thresher.privacy.arrays import Floats
from thresher_papers.datasets import load
from thresher_papers.datasets.real_set import shuffled

__all__ = ["SETS", "Rows"]


class Rows(NamedTuple):
    """Rows to fit and to score; ``y`` holds 0 and 1, or numbers from -1 to 1."""

    X: Floats
    X_test: Floats
    y: Floats
    y_test: Floats
    regression: bool = False


def kddcup99() -> Rows:
    """50,000 and 20,000 of the 70,000 training rows, drawn alike; is it an attack?"""
    data = load("kddcup99")
    parts = train_test_split(data.X, _zero_one(data.y), train_size=50_000, test_size=20_000, random_state=0)
    return Rows(*parts)


def adult() -> Rows:
    """30,000 of the training rows and the official test rows; more than 50,000 dollars a year?"""
    data = load("adult")
    some = shuffled(len(data.y), seed=0)[:30_000]
    return Rows(data.X[some], data.X_test, _zero_one(data.y)[some], _zero_one(data.y_test))


def diabetes130_stay() -> Rows:
    """How long was the first stay of a patient? It stands in for KDDCup98, which is not at hand. Days 1 to 14 are taken
    to -1 to 1."""
    data = load("diabetes130_stay")
    low, high = data.bounds["target_bound"]
    middle = (low + high) / 2
    y, y_test = ((days - middle) / (high - middle) for days in (data.y, data.y_test))
    X, X_test = (np.asarray(part, dtype=np.float64) for part in (data.X, data.X_test))  # no cast in every product
    return Rows(X, X_test, y, y_test, regression=True)


SETS = {"kddcup99": kddcup99, "adult": adult, "diabetes130_stay": diabetes130_stay}
"""By their names in ``thresher_papers.datasets.load``."""


def _zero_one(y: Any) -> Floats:
    return np.asarray(y == 1, dtype=np.float64)
