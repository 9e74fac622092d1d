"""What may be spent: epsilon, delta, and which two data sets count as neighbours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from numbers import Integral, Real
from typing import TypeGuard

from thresher.privacy.warnings import PrivacyWarning

__all__ = ["Adjacency", "Budget", "BudgetExceeded", "PrivacyWarning"]


class BudgetExceeded(RuntimeError):  # noqa: N818  (the public name says what happened)
    """A question was asked that the plan does not pay for. Nothing was answered.

    Examples
    --------
    >>> from thresher import Budget, BudgetExceeded
    >>> from thresher.privacy.bounds import Bounds
    >>> from thresher.privacy.facts import PublicFacts
    >>> from thresher.privacy.plan import Meter, Plan
    >>> from thresher.privacy.releases import GaussianGradient
    >>> budget = Budget(1.0, 1e-6)
    >>> once = GaussianGradient.calibrated(budget, times=1)
    >>> meter = Meter(Plan("one-gradient", PublicFacts(1000, 5, Bounds(feature=1.0)), budget, (once,)))
    >>> meter.charge(once, "gradient")
    >>> try:
    ...     meter.charge(once, "gradient")
    ... except BudgetExceeded as refused:
    ...     print(str(refused).split("; ")[1])
    nothing was answered
    """


class Adjacency(StrEnum):
    """Which pairs of data sets the guarantee makes hard to tell apart.

    ``replace-one``: same number of rows, one row has other values.
    ``add-remove``: one data set has one row more; the row count used as normaliser is a public constant.

    Examples
    --------
    >>> from thresher.privacy.budget import Adjacency
    >>> Adjacency("add-remove").contributions, Adjacency("replace-one").contributions
    (1, 2)
    """

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"

    @property
    def contributions(self) -> int:
        """How many single-row contributions separate two neighbours: the only factor 2 in the library.

        A sum of terms of norm at most C moves by at most ``contributions * C`` between neighbours
        (erratum E-1: the papers print the factor of one adjacency with the definition of the other).
        """
        return 2 if self is Adjacency.REPLACE_ONE else 1


@dataclass(frozen=True)
class Budget:
    """A total privacy allowance: (epsilon, delta)-differential privacy for one adjacency.

    ``epsilon=float("inf")`` switches privacy off, for debugging only. ``delta=0`` is pure epsilon-DP, which only
    algorithms without Gaussian noise can keep.

    Parameters
    ----------
    epsilon : float
        At least 1e-6; typical values are 0.5 to 8.
    delta : float
        From 0 to below 1, far below one over the number of rows.
    adjacency : "replace-one" or "add-remove"
        Which two data sets count as neighbours.

    Examples
    --------
    >>> from thresher import Budget
    >>> Budget(1.0, 1e-6)
    Budget(epsilon=1.0, delta=1e-06, adjacency=<Adjacency.REPLACE_ONE: 'replace-one'>)
    >>> Budget(float("inf"), 1e-6).private
    False
    """

    epsilon: float
    delta: float
    adjacency: Adjacency = Adjacency.REPLACE_ONE

    def __post_init__(self) -> None:
        if not _is_number(self.epsilon) or not self.epsilon >= 1e-6:  # below, the exact curve loses its digits
            raise ValueError(
                f"epsilon={self.epsilon!r} must be a number above 0, at least 1e-6; typical values are 0.5 to 8, "
                'and float("inf") switches privacy off'
            )
        if not _is_number(self.delta) or not 0 <= self.delta < 1:
            raise ValueError(
                f"delta={self.delta!r} must lie strictly between 0 and 1, or be 0 for pure DP; use a value far below "
                "1/n, or None for 1/n^2"
            )
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta))
        try:
            object.__setattr__(self, "adjacency", Adjacency(self.adjacency))
        except ValueError:
            choices = ", ".join(repr(str(a)) for a in Adjacency)
            raise ValueError(f"adjacency={self.adjacency!r} must be one of {choices}") from None

    @property
    def private(self) -> bool:
        """Whether epsilon is finite."""
        return math.isfinite(self.epsilon)


def is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and not math.isnan(value)
