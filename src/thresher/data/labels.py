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

__all__ = ["check_classes", "label_array", "places_among"]

Label: TypeAlias = str | float | bool


def label_array(values: Column) -> Values:
    """Targets or class labels as numbers where all of them are numbers, as they are otherwise."""
    column = np.asarray(values)
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError):
        return column


def check_classes(classes: Values) -> None:
    """Refuse classes of which a label that was read as a number could be several, or none.

    Whether it is read as one is decided by all labels together: one that is text keeps "01" and "1" apart for all.
    """
    names = [_as_number(each) for each in classes.tolist()]
    for name, each in zip(names, classes.tolist(), strict=True):
        if names.count(name) > 1 or (isinstance(name, str) and _is_float(name)):
            raise ValueError(
                f"classes: {str(each)!r} is the same as another class, or no number, where labels are read as numbers; "
                "write a letter before it, or declare the target in a schema, which reads texts as they stand"
            )


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


def _is_float(text: str) -> bool:
    """Of a text that names no finite number: whether it is read as an infinite one, or as a gap."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _as_text(label: Label) -> str:
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label).strip()
