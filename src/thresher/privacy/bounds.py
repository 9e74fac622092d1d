"""Public bounds on rows and targets: what everybody may know about a table, and what clips make true of every row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np

from thresher.privacy.arrays import Floats

__all__ = ["LARGEST", "LARGEST_BOUND", "SMALLEST", "SMALLEST_BOUND", "Bounds"]


SMALLEST, LARGEST = 1e-100, 1e100  # of clips: outside, squares under- or overflow and norms lie
SMALLEST_BOUND, LARGEST_BOUND = 1e-40, 1e40  # so that clips, ridges and radii that follow from bounds stay inside that


@dataclass(frozen=True)
class Bounds:
    """Public bounds: |x_ij| <= feature (a number or one per column), ||x_i||_2 <= row, low <= y_i <= high.

    Parameters
    ----------
    feature : float or one per column, optional
        What every |x_ij| is clipped to.
    row : float, optional
        What every ||x_i||_2 is clipped to. At least one of the two is needed.
    target : (low, high), optional
        The range that targets are clipped to; None where they are classes.

    Examples
    --------
    >>> from thresher.privacy.bounds import Bounds
    >>> Bounds(feature=1.0, row=3.0).row_norm(4), Bounds(feature=1.0, row=3.0).row_norm(100)
    (2.0, 3.0)
    """

    feature: float | tuple[float, ...] | None = None
    row: float | None = None
    target: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.feature is None and self.row is None:
            raise ValueError(
                "feature_bound=None and row_bound=None: give at least one of them, from public knowledge "
                "(feature_bound clips every |x_ij|, row_bound clips every ||x_i||_2)"
            )
        feature = self.feature
        if isinstance(feature, tuple):
            feature = tuple(_check_size("feature_bound", bound) for bound in feature)
        elif feature is not None:
            feature = _check_size("feature_bound", feature)
        object.__setattr__(self, "feature", feature)
        if self.row is not None:
            object.__setattr__(self, "row", _check_size("row_bound", self.row))
        if self.target is not None:
            low, high = map(float, self.target)
            object.__setattr__(self, "target", (low, high))
            if not (max(abs(low), abs(high)) <= LARGEST_BOUND and high - low >= SMALLEST_BOUND):
                raise ValueError(
                    f"target_bound={self.target!r} must be a positive number or a pair (low, high) with low < high, "
                    "from public knowledge about the target"
                )

    def row_norm(self, d: int) -> float:
        """The l2 norm no clipped row of ``d`` columns exceeds."""
        norms = [] if self.row is None else [self.row]
        if isinstance(self.feature, tuple):
            if len(self.feature) != d:
                raise ValueError(
                    f"feature_bound has {len(self.feature)} values for {d} columns; give one number or one per column"
                )
            norms.append(math.hypot(*self.feature))
        elif self.feature is not None:
            norms.append(self.feature * math.sqrt(d))
        return min(norms)

    @property
    def target_span(self) -> tuple[float, float]:
        """The middle and the half-width of the public target range."""
        if self.target is None:
            raise ValueError("target_bound=None: there is no public range of the target; give one")
        low, high = self.target
        return (low + high) / 2, (high - low) / 2

    def entries(self, d: int) -> Floats:
        """What no clipped entry of each of ``d`` columns exceeds in magnitude."""
        feature = np.inf if self.feature is None else np.asarray(self.feature)
        entries: Floats = np.minimum(np.broadcast_to(feature, d), np.inf if self.row is None else self.row)
        return entries

    def largest_entry(self, d: int) -> float:
        """What no clipped entry of any of ``d`` columns exceeds in magnitude."""
        return float(self.entries(d).max())


def _check_size(name: str, value: float) -> float:
    """``value`` as a plain float, in a range whose squares and ratios a double can hold."""
    if not (isinstance(value, Real) and SMALLEST_BOUND <= value <= LARGEST_BOUND):
        raise ValueError(
            f"{name}={value!r} must be a positive finite number, taken from public knowledge "
            f"(and from {SMALLEST_BOUND:g} to {LARGEST_BOUND:g})"
        )
    return float(value)
