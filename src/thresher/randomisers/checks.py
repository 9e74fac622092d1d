"""What every randomiser refuses."""

from __future__ import annotations

from thresher.budget import is_whole

__all__ = ["LARGEST_EPSILON", "check_dimension", "check_epsilon"]

LARGEST_EPSILON = 50.0
"""Beyond it e^-epsilon is below the resolution of a coin: a report would be the value itself."""


def check_dimension(dimension: int) -> None:
    if not (is_whole(dimension) and dimension >= 1):
        raise ValueError(f"dimension={dimension!r} must be a whole number of at least 1")


def check_epsilon(epsilon: float) -> None:
    if not 0 < epsilon <= LARGEST_EPSILON:
        raise ValueError(
            f"epsilon={epsilon!r} of a randomiser must lie above 0 and not above {LARGEST_EPSILON:g}; "
            'epsilon=float("inf") switches privacy off'
        )
