"""What the law of every report refuses, and what it makes of a value that is none."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from thresher.privacy.arrays import Floats
from thresher.privacy.budget import is_whole

__all__ = ["LARGEST_EPSILON", "check_dimension", "check_epsilon", "check_width", "numbers"]

LARGEST_EPSILON = 50.0
"""Beyond it all but one in e^50 reports would be the truth. Coins have steps of 2^-53 = e^-36.7; every chance to lie is
rounded up to a step, so that a report never costs more than its epsilon."""


def numbers(values: ArrayLike) -> Floats:
    """The values within [-1, 1]; what is no number counts as 0."""
    values = np.asarray(values, dtype=np.float64)
    return np.clip(np.where(np.isnan(values), 0.0, values), -1, 1)


def check_width(values: Floats, dimension: int) -> None:
    if values.ndim != 2 or values.shape[1] != dimension:
        raise ValueError(f"values of shape {values.shape} must have a row per person and {dimension} columns")


def check_dimension(dimension: int) -> None:
    if not (is_whole(dimension) and dimension >= 1):
        raise ValueError(f"dimension={dimension!r} must be a whole number of at least 1")


def check_epsilon(epsilon: float) -> None:
    if not 0 < epsilon <= LARGEST_EPSILON:
        raise ValueError(
            f"epsilon={epsilon!r} of a randomiser must lie above 0 and not above {LARGEST_EPSILON:g}; "
            'epsilon=float("inf") switches privacy off'
        )
