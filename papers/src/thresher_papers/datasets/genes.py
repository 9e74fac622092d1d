"""More columns than rows: genotypes of mice, expressions of genes."""

from __future__ import annotations

from typing import Any

import numpy as np

from thresher_papers.datasets.files import Files, loader
from thresher_papers.datasets.formats import arrays
from thresher_papers.datasets.real_set import RealSet

__all__ = ["colon", "duke", "leukemia", "mice_genomics"]

LARGEST_EXPRESSION = 1e5
"""What a scanner of such chips can show, rounded up."""


@loader
def mice_genomics(here: Files) -> RealSet:
    """Body weight in grams from 10,346 genotypes 0, 1, 2, taken to -1, 0, 1."""
    from sklearn.model_selection import train_test_split

    data = _only(here, "mice_genomics.npz")
    X, X_test, y, y_test = train_test_split(data["X"] - 1.0, data["body_weight"], test_size=0.2, random_state=0)
    bounds = {"feature_bound": 1.0, "target_bound": (10, 40)}
    about = "body weight of mice in grams from genotypes -1, 0, 1; a grown mouse weighs 10 to 40"
    return RealSet(here.name, X, y, X_test, y_test, bounds, about, [str(name) for name in data["marker_names"]])


@loader
def leukemia(here: Files) -> RealSet:
    """72 patients, two kinds of leukemia (Golub)."""
    return _expressions(here, "leukemia_golub.npz", "leukemia: 72 patients, 7,129 genes, signed log expression")


@loader
def colon(here: Files) -> RealSet:
    """62 samples of the colon, with a tumour or not (Alon)."""
    return _expressions(here, "colon_alon.npz", "colon: 62 samples, 2,000 genes, signed log expression")


@loader
def duke(here: Files) -> RealSet:
    """38 samples of breast cancer, already scaled and centred where they were taken from."""
    about = "duke breast cancer: 38 samples, 7,129 genes; features are clipped to 1"
    data = _only(here, "duke_breast_train.npz")
    return _split(here, data["X"], data["y"], about)


def _expressions(here: Files, file: str, about: str) -> RealSet:
    """Signed log expression over its largest possible value."""
    data = _only(here, file)
    X = np.sign(data["X"]) * np.log1p(np.abs(data["X"])) / np.log1p(LARGEST_EXPRESSION)
    return _split(here, X, data["y"], about)


def _split(here: Files, X: Any, y: Any, about: str) -> RealSet:
    """30 % to score, the classes as common in both parts."""
    from sklearn.model_selection import train_test_split

    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    return RealSet(here.name, X, y, X_test, y_test, {"feature_bound": 1.0, "classes": (-1, 1)}, about)


def _only(here: Files, name: str) -> Any:
    files = here.all_of(name)
    if files is None:
        raise here.missing()
    return arrays(files[0])
