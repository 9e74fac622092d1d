"""What everybody may know about a table before anybody looks: how many rows or people, which columns, which bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import is_whole
from thresher.privacy.trust import Unit

__all__ = ["INTERCEPT_ENTRY", "MOST_ROWS_EACH", "PEOPLE_NOTE", "PublicCounts", "PublicFacts", "Settings"]

Settings = Mapping[str, Any]
"""What is settled, by name: numbers, words, lists, or nothing, as JSON has them. Each algorithm knows its own."""

LARGEST_COUNT = 2**53  # beyond, floating-point numbers tell no two whole ones apart

MOST_ROWS_EACH = 64
"""Rows of one person that count. The average of 64 is off that of all by an eighth of their spread, which is little
beside how people differ."""

PEOPLE_NOTE = (
    f"a person is all rows with one id: of a person with k rows each counts 1/k, and of one with more than "
    f"{MOST_ROWS_EACH} rows so many count, drawn at random; how many rows there are is private"
)
"""What every certificate of people tells."""

INTERCEPT_SHARE = 1 / 8
"""The intercept's constant column, in units of the row bound: it costs sqrt(1 + 1/64) - 1 = 0.8 % more noise."""

INTERCEPT_ENTRY = 0.5
"""The intercept's constant column, in units of the other columns' bounds, where only a few columns are asked about."""


@dataclass(frozen=True)
class PublicCounts:
    """How many there are of what, and how many numbers an answer has: all that every plan is about."""

    n: int
    """Rows, or people: a declared number where how many there are is private."""
    d: int
    """Columns, or whatever else an answer has a number for."""
    unit: Unit = field(default="row", kw_only=True)
    """What n counts and neighbours differ in. How many rows people have is private."""

    def __post_init__(self) -> None:
        for name in ("n", "d"):
            self._set_whole(name)
        if self.unit not in get_args(Unit):
            raise ValueError(f"unit={self.unit!r} must be one of {', '.join(map(repr, get_args(Unit)))}")

    def _set_whole(self, name: str) -> None:
        value = getattr(self, name)
        if not is_whole(value) or not 1 <= value <= LARGEST_COUNT:
            raise ValueError(f"{name}={value!r:.40} must be a whole number of at least 1, and at most 2^53")
        object.__setattr__(self, name, int(value))  # NumPy's small integers wrap around

    @property
    def outputs(self) -> int:
        """Linear predictors that are asked about side by side."""
        return 1

    @property
    def counted(self) -> str:
        """What n counts, in words."""
        return "people" if self.unit == "person" else "rows"

    @property
    def dimension(self) -> int:
        """Coordinates of an answer."""
        return self.d

    @property
    def enforced(self) -> Settings:
        """What code makes true of every row, as certificates list it."""
        raise NotImplementedError

    @property
    def public_choices(self) -> Settings:
        """What else certificates list: choices that cost no privacy but shape what is found."""
        return {}

    @property
    def assumed(self) -> tuple[str, ...]:
        """What a guarantee rests on, of all that was declared, and no code enforces."""
        return ()

    def origin(self) -> NDArray[np.float64]:
        """Where an iteration starts."""
        return np.zeros(self.dimension)


@dataclass(frozen=True)
class PublicFacts(PublicCounts):
    """Public facts about a table. Nothing here is read from the data except n and d.

    Parameters
    ----------
    n : int
        Rows, or people: a declared number where how many there are is private.
    d : int
        Columns.
    bounds : Bounds
        What rows and targets are clipped to.
    intercept : bool
        Whether every row ends in a public constant.
    unit : "row" or "person"
        What n counts and neighbours differ in.

    Examples
    --------
    >>> from thresher.privacy.bounds import Bounds
    >>> from thresher.privacy.facts import PublicFacts
    >>> facts = PublicFacts(1000, 4, Bounds(feature=1.0), intercept=True)
    >>> facts.dimension, facts.intercept_column
    (5, 0.25)
    """

    bounds: Bounds
    intercept: bool = False
    """Whether every row ends in a public constant, for an intercept."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "intercept", bool(self.intercept))
        super().__post_init__()
        self.bounds.row_norm(self.d)  # raises if a per-column bound has the wrong length

    @property
    def dimension(self) -> int:
        """Coordinates of an answer about all columns, the constant one included."""
        return self.d + self.intercept

    @property
    def intercept_column(self) -> float:
        """The constant that stands in the intercept's column of every row."""
        return INTERCEPT_SHARE * self.bounds.row_norm(self.d) if self.intercept else 0.0

    @property
    def units(self) -> NDArray[np.float64]:
        """What columns are divided by where only a few are asked about: each its bound, so that entries lie in [-1, 1].

        The intercept's column then is 1/2, about the size of the others; left as it is it would cost most of the noise.
        """
        units = self.entry_bounds
        units[self.d :] = self.intercept_column / INTERCEPT_ENTRY
        return units

    def norm_in_units(self, columns: int) -> float:
        """The l2 norm that no clipped row exceeds on so many columns in ``units``, and the intercept's."""
        norm = math.sqrt(columns)
        if self.bounds.row is not None:
            norm = min(norm, self.bounds.row / float(self.bounds.entries(self.d).min()))
        return math.hypot(norm, INTERCEPT_ENTRY if self.intercept else 0.0)

    @property
    def entry_bounds(self) -> NDArray[np.float64]:
        """What no clipped entry of a column exceeds in magnitude, the intercept's constant column last."""
        bounds = np.full(self.d + self.intercept, self.intercept_column)
        bounds[: self.d] = self.bounds.entries(self.d)
        return bounds

    @property
    def row_norm(self) -> float:
        """The l2 norm no clipped row exceeds, intercept column included."""
        return math.hypot(self.bounds.row_norm(self.d), self.intercept_column)

    @property
    def target_centre(self) -> float:
        """The public midpoint of the target range, taken off the targets when an intercept can give it back."""
        return 0.0 if self.bounds.target is None or not self.intercept else sum(self.bounds.target) / 2

    @property
    def target_radius(self) -> float:
        """No centred, clipped target is larger than this."""
        if self.bounds.target is None:
            return 1.0
        return max(abs(bound - self.target_centre) for bound in self.bounds.target)

    @property
    def enforced(self) -> Settings:
        """The bounds, as certificates list them."""
        return {**asdict(self.bounds), "row_norm": self.row_norm, "intercept_column": self.intercept_column}
