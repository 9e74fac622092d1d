"""The data of the thesis' chapter 6, or what stands in for it: rows of norm 1, made of public facts alone.

Every number is divided by a bound that was known before the data was, every attribute is one-hot over its published
list of values, every row is divided by its own norm: nothing is learnt from other rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import train_test_split

Floats = NDArray[np.float64]

KDD_BOUNDS = {
    "duration": 1e5, "src_bytes": 2.0**31, "dst_bytes": 2.0**31, "count": 511, "srv_count": 511,
    "dst_host_count": 255, "dst_host_srv_count": 255, "hot": 100, "num_compromised": 1e4, "num_root": 1e4,
    "wrong_fragment": 3, "urgent": 10, "num_failed_logins": 10, "num_file_creations": 100, "num_shells": 10,
    "num_access_files": 10, "num_outbound_cmds": 10,
}  # fmt: skip
"""Of the counts; rates and flags end at 1."""

ADULT_BOUNDS = {
    "age": 90, "fnlwgt": 1.5e6, "education-num": 16, "capital-gain": 99_999, "capital-loss": 4500, "hours-per-week": 99,
}  # fmt: skip

LEFT_OUT = ("time_in_hospital", "diag", "medical_specialty", "payer_code", "weight")
"""Columns of diabetes130 that are the target itself, too many, or mostly missing."""

LONGEST_STAY = 14


class Rows(NamedTuple):
    """Rows to fit and to score; ``y`` holds 0 and 1, or numbers from -1 to 1."""

    X: Floats
    X_test: Floats
    y: Floats
    y_test: Floats
    regression: bool = False

    @property
    def split(self) -> str:
        return f"{len(self.y):,} training and {len(self.y_test):,} test rows, {self.X.shape[1]} columns"


def kddcup99(folder: Path) -> Rows:
    """50,000 and 20,000 of the 70,000 training rows, drawn alike; is it an attack?"""
    data = np.load(folder / "kddcup99_70k.npz")
    bounds = [KDD_BOUNDS.get(str(name), 1.0) for name in data["num_names"]]
    numbers = np.log1p(data["X_num_train"]) / np.log1p(bounds)
    X = unit_rows(np.hstack([numbers, *one_hot(data, "X_cat_train")]))
    return _split(X, np.asarray(data["y_train"] == 1, dtype=np.float64), regression=False)


def adult(folder: Path) -> Rows:
    """30,000 of the training rows and the official test rows; more than 50,000 dollars a year?"""
    data = np.load(folder / "adult.npz")
    bounds = [ADULT_BOUNDS[str(name)] for name in data["num_names"]]
    X, X_test = (
        unit_rows(np.hstack([data[f"X_num_{part}"] / bounds, *one_hot(data, f"X_cat_{part}")]))
        for part in ("train", "test")
    )
    y, y_test = (np.asarray(data[f"y_{part}"] == 1, dtype=np.float64) for part in ("train", "test"))
    some = np.random.default_rng(0).permutation(len(y))[:30_000]
    return Rows(X[some], X_test, y[some], y_test)


def diabetes130(folder: Path) -> Rows:
    """The first stay of 70,000 patients, 50,000 and 20,000: how long was it? It stands in for KDDCup98, which is not at
    hand. Days 1 to 14 are taken to -1 to 1."""
    data = np.load(folder / "diabetes130.npz")
    names = (folder / "diabetes130_features.txt").read_text().split("\n")
    kept = [at for at, name in enumerate(names) if name and not name.startswith(LEFT_OUT)]
    _, first = np.unique(data["patient"], return_index=True)
    X = sparse.csr_array(sparse.load_npz(folder / "diabetes130.npz"))[first][:, kept].toarray()
    middle = (1 + LONGEST_STAY) / 2
    y = (data["time_in_hospital"][first] - middle) / (LONGEST_STAY - middle)
    return _split(unit_rows(X), np.asarray(y, dtype=np.float64), regression=True)


SETS = {"KDDCup99": kddcup99, "Adult": adult, "diabetes130": diabetes130}


def one_hot(data: Any, table: str) -> list[Floats]:
    """A column for each published level of each attribute."""
    levels = [len(data[f"levels_{name}"]) for name in data["cat_names"]]
    return [np.eye(count)[codes] for count, codes in zip(levels, data[table].T, strict=True)]


def unit_rows(X: Floats) -> Floats:
    rows: Floats = X / np.linalg.norm(X, axis=1, keepdims=True)
    return rows


def _split(X: Floats, y: Floats, regression: bool) -> Rows:
    """50,000 rows to fit and 20,000 to score, drawn alike."""
    X, X_test, y, y_test = train_test_split(X, y, train_size=50_000, test_size=20_000, random_state=0)
    return Rows(X, X_test, y, y_test, regression)
