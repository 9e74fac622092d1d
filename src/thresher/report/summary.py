"""A fitted model in a few lines: its coefficients, how sure they are, and what they cost. Built without data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from thresher.algorithms.uncertainty import Uncertainty
from thresher.privacy.arrays import Floats, Indices
from thresher.privacy.certificate import Certificate
from thresher.report import page
from thresher.report.words import GRADES, UNITS, displayable

if TYPE_CHECKING:
    import pandas

__all__ = ["Coefficient", "FittedModel", "Output", "Summary", "summary_of"]

MOST_SHOWN = 50  # coefficients of a class; to_dict has all of them

Line = tuple[int | None, list[str]]
"""The position of a feature, if it is one's, and the cells of its line."""


class FittedModel(Protocol):
    """A fitted linear model as summaries and pages see it; one of classes has ``classes_``, too."""

    @property
    def certificate_(self) -> Certificate: ...

    @property
    def algorithm_(self) -> str: ...

    @property
    def coef_(self) -> Floats: ...

    @property
    def intercept_(self) -> Floats | float: ...

    @property
    def support_(self) -> Indices: ...

    @property
    def uncertainty_(self) -> Uncertainty | None: ...

    def intervals(self, level: float) -> Floats: ...

    def summary(self, level: float = ...) -> Summary: ...


@dataclass(frozen=True)
class Coefficient:
    """A coefficient that is not zero; NaN and None where the algorithm tells nothing about its error, or stability."""

    position: int
    name: str | None
    value: float
    unit: str = ""
    interval: tuple[float, float] | None = None
    noise: float = math.nan
    sampling: float = math.nan
    stability: float = math.nan

    @property
    def feature(self) -> str:
        """The name of its column, or its number."""
        return str(self.position) if self.name is None else self.name

    @property
    def title(self) -> str:
        """The feature where it stands alone: in a chart, in a sentence."""
        name = f"column {self.position}" if self.name is None else self.name
        return f"{name} ({self.unit})" if self.unit else name


@dataclass(frozen=True)
class Output:
    """The coefficients of a class, or of all there is: first those that move a prediction most over their range."""

    label: str | float | None
    coefficients: tuple[Coefficient, ...]
    intercept: float


@dataclass(frozen=True)
class Summary:
    """What ``summary()`` of a fitted model answers: ``print`` it, show it in a notebook, or take ``to_dict()``.

    Attributes
    ----------
    outputs : tuple of Output
        The coefficients of each class, or of all there is.
    level : float
        Of the intervals.
    effect : str
        What a coefficient does, in a sentence.
    why_no_intervals : str or None
        Why there are none, if there are none.
    certificate : Certificate
        What the model cost.
    """

    outputs: tuple[Output, ...]
    level: float
    effect: str
    why_no_intervals: str | None
    certificate: Certificate

    @property
    def columns(self) -> list[str]:
        """The head of the table."""
        several, certain = len(self.outputs) > 1, self.why_no_intervals is None
        interval = [f"{100 * self.level:g} % interval", "stability"] if certain else []
        return ["class"] * several + ["feature"] + ["unit"] * self._has_units + ["coefficient", *interval]

    def lines(self) -> Iterator[Line]:
        """The cells under ``columns``, as text."""
        for output in self.outputs:
            label = [str(output.label)] if len(self.outputs) > 1 else []
            for coefficient in output.coefficients[:MOST_SHOWN]:
                yield coefficient.position, [*label, *self._cells(coefficient)]
            left = len(output.coefficients) - MOST_SHOWN
            if left > 0:
                yield None, self._pad([*label, f"... and {left} more"])
            unit = [""] * self._has_units
            yield None, self._pad([*label, "(intercept)", *unit, f"{output.intercept:+.4g}"])

    @property
    def reading(self) -> list[str]:
        """How to read the table, in sentences."""
        counted = self.certificate.counted
        if not any(output.coefficients for output in self.outputs):
            remedy = f"More {counted}, a larger epsilon or tighter bounds help."
            return [f"No feature stood out of the noise: the zero model. {remedy}"]
        if self.why_no_intervals is not None:
            return [self.effect, f"No intervals: {self.why_no_intervals}."]
        fresh = f"a fresh run on fresh {counted} keeps the feature, if it is as strong as found"
        return [self.effect, f"Stability: the chance that {fresh}."]

    @property
    def cost(self) -> list[str]:
        """What the model cost in privacy, in sentences."""
        of = self.certificate
        grade = f"Grade {of.grade}: {GRADES[of.grade]}."
        if of.epsilon is None:
            asked = "" if of.claimed_epsilon is None else f"; epsilon {of.claimed_epsilon:g} was asked for"
            return [f"Cost: no guarantee{asked}. {grade}"]
        return [
            f"Cost: epsilon {of.epsilon:g} at delta {of.delta:.3g}, {of.adjacency} neighbours. {grade}",
            f"Protected is {UNITS[of.unit]}.",
            *(f"Assumed: {assumption}." for assumption in of.assumptions),
        ]

    def to_dict(self) -> dict[str, object]:
        """For JSON: every coefficient, the intercepts, the cost."""
        of = self.certificate
        return {
            "level": self.level,
            "coefficients": [
                {
                    "class": output.label, "feature": c.feature, "position": c.position, "unit": c.unit or None,
                    "coefficient": c.value, "interval": None if c.interval is None else list(c.interval),
                    "stability": c.stability if math.isfinite(c.stability) else None,
                }
                for output in self.outputs for c in output.coefficients
            ],
            "intercepts": [{"class": output.label, "intercept": output.intercept} for output in self.outputs],
            "cost": {name: getattr(of, name) for name in ("epsilon", "delta", "adjacency", "grade", "unit")},
            "reading": self.reading,
        }  # fmt: skip

    def to_frame(self) -> pandas.DataFrame:
        """The coefficients as a pandas DataFrame."""
        import pandas

        return pandas.DataFrame(self.to_dict()["coefficients"])

    def __str__(self) -> str:
        table = [self.columns, *([displayable(cell) for cell in cells] for _, cells in self.lines())]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        left = self.columns.index("coefficient")  # names and units to the left, numbers to the right
        rows = [
            "  ".join(cell.ljust(width) if j < left else cell.rjust(width) for j, (cell, width) in enumerate(pairs))
            for pairs in (zip(cells, widths, strict=True) for cells in table)
        ]
        return "\n".join([*(row.rstrip() for row in rows), "", *map(displayable, (*self.reading, *self.cost))])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        words = [page.paragraph(sentence) for sentence in (*self.reading, *self.cost)]
        return "\n".join([page.table(self.columns, [cells for _, cells in self.lines()]), *words])

    @property
    def _has_units(self) -> bool:
        return any(c.unit for output in self.outputs for c in output.coefficients)

    def _cells(self, coefficient: Coefficient) -> list[str]:
        unit = [coefficient.unit] * self._has_units
        cells = [coefficient.feature, *unit, f"{coefficient.value:+.4g}"]
        if self.why_no_intervals is not None:
            return cells
        low, high = coefficient.interval or (math.nan, math.nan)
        interval = "unknown" if math.isnan(low) else f"{low:+.4g} to {high:+.4g}"
        return [*cells, interval, "unknown" if math.isnan(coefficient.stability) else f"{coefficient.stability:.0%}"]

    def _pad(self, cells: list[str]) -> list[str]:
        return cells + [""] * (len(self.columns) - len(cells))


def summary_of(model: FittedModel, level: float, why_no_intervals: str | None, effect: str, spread: Floats) -> Summary:
    """Of any fitted linear model that carries a certificate.

    ``effect`` is what a coefficient adds to, in words; ``spread`` what one step of each column is, as it was fitted.
    """
    values = np.atleast_2d(model.coef_)
    classes = getattr(model, "classes_", None)
    labels = classes.tolist() if classes is not None and len(values) > 1 else [None]
    intercepts = np.ravel(model.intercept_).tolist()
    outputs = tuple(
        Output(
            label,
            _coefficients_of(model, k, level, model.uncertainty_ if why_no_intervals is None else None, spread),
            intercept,
        )
        for k, (label, intercept) in enumerate(zip(labels, intercepts, strict=True))
    )
    words = f"One unit more of a feature, all else equal, adds its coefficient to the {effect}."
    return Summary(outputs, level, words, why_no_intervals, model.certificate_)


def _coefficients_of(
    model: FittedModel, k: int, level: float, sure: Uncertainty | None, spread: Floats
) -> tuple[Coefficient, ...]:
    values, support = np.atleast_2d(model.coef_), model.support_
    row = values[k]
    names, units = getattr(model, "feature_names_in_", None), getattr(model, "units_", None)
    nothing = (None, math.nan, math.nan, math.nan)
    errors: list[tuple[tuple[float, float] | None, float, float, float]] = [nothing] * len(support)
    if sure is not None:
        intervals = np.reshape(model.intervals(level), (len(values), len(support), 2))[k].tolist()
        parts = (np.atleast_2d(part)[k].tolist() for part in (sure.noise, sure.sampling, sure.stability))
        errors = [
            (None if math.isnan(low) else (low, high), *rest)
            for (low, high), *rest in zip(intervals, *parts, strict=True)
        ]
    found = [
        Coefficient(
            j, None if names is None else str(names[j]), float(row[j]), "" if units is None else str(units[j]), *error
        )
        for j, error in zip(support.tolist(), errors, strict=True)
        if row[j]
    ]
    return tuple(sorted(found, key=lambda coefficient: -abs(coefficient.value) * spread[coefficient.position]))
