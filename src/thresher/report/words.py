"""Numbers and terms of certificates in plain words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["BOUNDS", "GRADES", "UNITS", "between", "short", "told"]

GRADES = {
    "proved": "every bound is enforced by the code and the accounting is sound",
    "conditional": "the accounting is sound if the assumptions listed below hold",
    "printed": "a formula is used as a paper prints it, which is for reproduction only",
    "none": "privacy was switched off",
}

UNITS = {
    "row": "a row: of a person with several rows each is protected by itself, not all together",
    "person": "a person: all rows with one id are protected together",
}

BOUNDS = {
    "feature": "a feature's value",
    "row": "a row's norm",
    "target": "the target",
    "gradient": "a row's gradient",
    "row_norm": "a row's norm, with the intercept's constant",
    "intercept_column": "the intercept's constant",
}


def between(values: Iterable[Any]) -> str:
    """The only value, or the least and the largest."""
    values = [float(value) for value in values]
    low, high = (short(min(values)), short(max(values))) if values else ("-", "-")
    return low if low == high else f"{low} to {high}"


def short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) and math.isfinite(value) else str(value)


def told(value: Any) -> str:
    """A setting or bound: long lists of numbers by their range, mappings by their entries."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {told(each)}" for name, each in value.items())
    if isinstance(value, (list, tuple)):
        if len(value) > 3 and all(isinstance(each, (int, float)) for each in value):
            return f"{between(value)} ({len(value)} values)"
        return "; ".join(map(told, value)) if len(value) != 2 else " to ".join(map(told, value))
    return short(value)
