"""What several draws say about a number: its mean, and where one future run will be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

__all__ = ["LEVEL", "Spread", "chance_of_one_run"]

LEVEL = 0.9
"""The chance that the range of one run aims at; 19 draws are the fewest that have it."""


@dataclass(frozen=True)
class Spread:
    """``mean`` over the draws and its ``standard_error``; ``low`` to ``high`` is for ONE future run, not for the mean.

    The range reaches from the k-th smallest to the k-th largest of m draws. A further draw is equally likely to fall
    between any two of them, so it falls inside with a chance of at least 1 - 2k/(m + 1), whatever its law
    (``chance_of_one_run``).
    """

    mean: float
    standard_error: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        ordered = np.sort(np.asarray(values, dtype=float))
        k = _left_out(len(ordered))
        error = ordered.std(ddof=1) / np.sqrt(len(ordered))
        return cls(float(ordered.mean()), float(error), float(ordered[k - 1]), float(ordered[-k]))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def chance_of_one_run(draws: int) -> float:
    """The least chance that one future run falls into the range of so many draws."""
    return 1 - 2 * _left_out(draws) / (draws + 1)


def _left_out(draws: int) -> int:
    """k: the largest that keeps the level, or 1."""
    return max(1, int((draws + 1) * (1 - LEVEL) / 2 + 1e-9))
