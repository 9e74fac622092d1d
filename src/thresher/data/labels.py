"""Labels of classes, and which of the public classes a row is in: a function of its own label, whatever kind of array
the labels came in.

One label that is text makes text of a whole column, and a column without it is read as numbers. So a number and its
text are one label: 1, 1.0, "1" and "1.0".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from thresher.data.typing import Column, Values
from thresher.privacy.arrays import Indices

__all__ = ["label_array", "places_among"]

Label: TypeAlias = str | float | bool


def label_array(values: Column) -> Values:
    """Targets or class labels as numbers where all of them are numbers, as they are otherwise."""
    column = np.asarray(values)
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError):
        return column


def places_among(classes: Values, labels: Column) -> Indices:
    """The position of each label among the classes, -1 for one that is none of them."""
    labels = np.asarray(labels)
    place = _place(classes.tolist())
    if labels.dtype.kind == "O":
        return np.fromiter(map(place, labels.tolist()), np.intp, len(labels))
    different, which = np.unique(labels, return_inverse=True)
    return np.array([place(label) for label in different.tolist()], dtype=np.intp)[which]


def _place(classes: list[Label]) -> Callable[[Label], int]:
    name: Callable[[Label], Label] = _as_number
    if len({name(each) for each in classes}) < len(classes):  # "1" and "1.0" are two classes here
        name = _as_text
    known = {name(each): at for at, each in enumerate(classes)}

    def place(label: Label) -> int:
        if isinstance(label, bool) and str(label) in known:
            return known[str(label)]
        return known.get(name(label), -1)

    return place


def _as_number(label: Label) -> float | str:
    """The number that a label is, or that its text is; else its text."""
    try:
        number = float(label)
    except (TypeError, ValueError, OverflowError):
        return _as_text(label)
    return number if math.isfinite(number) else _as_text(label)


def _as_text(label: Label) -> str:
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label).strip()
