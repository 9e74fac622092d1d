"""Numbers and terms of certificates in plain words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["BOUNDS", "GRADES", "QUESTIONS", "UNITS", "asked", "between", "short", "told"]

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

QUESTIONS = {
    "gradient": "in which direction the coefficients should move",
    "restricted gradient": "in which direction the coefficients of the columns in use should move",
    "sampled gradient": "in which direction the coefficients should move, by a random batch of rows",
    "sampled momentum": "how that direction changed, by a random batch of rows",
    "moments": "how large the values of the columns in use are",
    "gram": "how the columns in use vary together",
    "selection": "which columns go along most with what is not explained yet",
    "votes": "which columns most blocks of rows would select",
    "categories": "which texts of a column many rows hold",
    "quantile": "at which size the values of a quantity should be cut off",
    "vertex": "along which column to move next",
    "step length": "how far to move",
    "trials": "which of a secret number of trials is best",
    "score": "how well a model does on rows it was not fitted to",
    "minimiser": "the best coefficients, found at once",
    "perturbed minimiser": "the best coefficients for a randomly tilted loss",
    "labels": "what a model of the rows predicts for public rows",
    "local gradient": "each person's own direction, randomised before it is sent",
    "local labels": "each person's own label, randomised before it is sent",
    "printed gradient": "in which direction the coefficients should move, with noise as printed",
    "printed labels": "what a model of the rows predicts for public rows, with noise as printed",
}


def asked(question: str, unit: str) -> str:
    """What a question asks, in words; of people where rows are not the unit."""
    words = QUESTIONS.get(question, question)
    if unit == "row":
        return words
    return words.replace("random batch of rows", "random batch of people").replace("blocks of rows", "blocks of people")


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
