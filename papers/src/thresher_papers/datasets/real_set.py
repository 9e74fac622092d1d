"""A real data set with the public facts about it, and its halves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["RealSet", "halves", "shuffled"]


@dataclass(frozen=True, eq=False)
class RealSet:
    """Rows to fit and rows to score.

    ``bounds`` holds what was known before the data was, as keyword arguments of the estimators (``row_bound``,
    ``feature_bound``, ``target_bound``, ``classes``). ``names`` are those of the columns and ``groups`` the people whom
    the training rows belong to (``groups_test`` those of the test rows), where either is known. ``stand_in_for`` names
    the set of the papers that this one is used in place of.
    """

    name: str
    X: Any
    y: Any
    X_test: Any
    y_test: Any
    bounds: dict[str, Any]
    description: str
    names: list[str] | None = None
    groups: Any = None
    stand_in_for: str | None = None
    groups_test: Any = None

    @property
    def regression(self) -> bool:
        """Whether y holds numbers, not classes."""
        return "classes" not in self.bounds

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={value!r}" for name, value in self.bounds.items())
        stands = "" if self.stand_in_for is None else f", stand_in_for={self.stand_in_for!r}"
        return f"RealSet({self.name!r}, {self.X.shape} and {self.X_test.shape}, {facts}{stands})"


def halves(real_set: RealSet, seed: int) -> tuple[RealSet, RealSet]:
    """The private and the public half of the training rows, drawn by ``seed``; both keep all test rows.

    The private half has the row more if they are odd, as the 8044 and 8043 of the DPSL-KT paper. Where people have more
    than one row, half of the people are drawn: nobody is in both.
    """
    n = real_set.X.shape[0]
    people, person = (np.arange(n),) * 2 if real_set.groups is None else np.unique(real_set.groups, return_inverse=True)
    private = np.zeros(len(people), dtype=bool)
    private[shuffled(len(people), seed)[: (len(people) + 1) // 2]] = True
    return _rows(real_set, private[person]), _rows(real_set, ~private[person])


def shuffled(n: int, seed: int) -> NDArray[np.intp]:
    """The numbers below n, in an order that depends on ``seed`` alone."""
    return np.random.default_rng(seed).permutation(n)


def _rows(real_set: RealSet, kept: Any) -> RealSet:
    groups = None if real_set.groups is None else real_set.groups[kept]
    return replace(real_set, X=real_set.X[np.flatnonzero(kept)], y=real_set.y[kept], groups=groups)
