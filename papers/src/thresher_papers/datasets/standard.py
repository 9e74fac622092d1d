"""a9a, ijcnn1 and Covertype."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from thresher_papers.datasets.files import Files, loader
from thresher_papers.datasets.formats import arrays, integers, matrix, svmlight
from thresher_papers.datasets.real_set import RealSet

__all__ = ["a9a", "covertype", "ijcnn1"]

TWO_CLASSES = {"classes": (-1, 1)}

RANGES = (4000, 360, 90, 2000, 1000, 8000, 255, 255, 255, 8000)
"""Metres, degrees and shades of Covertype's ten numeric columns, rounded up; the other 44 are 0 or 1, two of them 1."""


@loader
def a9a(here: Files) -> RealSet:
    """Adult as LIBSVM has it: 14 attributes, one-hot."""
    if files := here.all_of("a9a", "a9a.t"):
        (X, y), (X_test, y_test) = (svmlight(file, 123) for file in files)
        y, y_test = y.astype(np.int8), y_test.astype(np.int8)
    elif files := here.all_of("a9a_train.npz", "a9a_test.npz"):
        X, X_test = (matrix(file) for file in files)
        y, y_test = (arrays(file)["y"] for file in files)
    else:
        raise here.missing()
    bounds = {"feature_bound": 1.0, "row_bound": 14**0.5, **TWO_CLASSES}
    return RealSet(here.name, X, y, X_test, y_test, bounds, "a9a: Adult, 14 one-hot attributes; over 50,000 a year?")


@loader
def ijcnn1(here: Files) -> RealSet:
    """22 columns; where its test file is not at hand, a fifth of the training rows is held back."""
    if files := here.all_of("ijcnn1", "ijcnn1.t"):
        (X, y), (X_test, y_test) = (_dense(file) for file in files)
    elif files := here.all_of("ijcnn1_train.npz"):
        data = arrays(files[0])
        X, X_test, y, y_test = _held_back(data["X"], data["y"])
    else:
        raise here.missing()
    about = "ijcnn1, an engine that misfires or not; rows are clipped to norm 1"
    return RealSet(here.name, X, y, X_test, y_test, {"row_bound": 1.0, **TWO_CLASSES}, about)


def _dense(file: Path) -> tuple[Any, Any]:
    X, y = svmlight(file, 22)
    return X.toarray().astype(np.float32), y.astype(np.int8)


@loader
def covertype(here: Files) -> RealSet:
    """Lodgepole pine or not: class 2 against the rest, as LIBSVM has it; a fifth of the rows is held back."""
    X, y = _forests(here)
    X = X / np.concatenate([RANGES, np.ones(44)])
    X, X_test, y, y_test = _held_back(X, np.where(y == 2, 1, -1).astype(np.int8))
    bounds = {"feature_bound": 1.0, "row_bound": 12**0.5, **TWO_CLASSES}
    about = "Covertype: lodgepole pine or not; numbers over the ends of their ranges"
    return RealSet(here.name, X, y, X_test, y_test, bounds, about)


def _forests(here: Files) -> tuple[Any, Any]:
    """54 columns and the kind of forest, which is 2 for lodgepole pine in every source."""
    if files := here.all_of("covtype.data"):
        table = integers(files[0], 55)
        return table[:, :54], table[:, 54]
    if files := here.all_of("covtype.libsvm.binary"):
        X, y = svmlight(files[0], 54)
        return X.toarray(), y
    if files := here.all_of("covtype.npz"):
        data = arrays(files[0])
        return data["X"], data["y"]
    if here.download:
        from sklearn.datasets import fetch_covtype

        found = fetch_covtype()
        return found.data, found.target
    raise here.missing(fetched=True)


def _held_back(X: Any, y: Any) -> Any:
    from sklearn.model_selection import train_test_split

    return train_test_split(X, y, test_size=0.2, random_state=0)
