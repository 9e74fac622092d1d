"""A clipped residual as lines on pieces: what it takes to follow a Frank-Wolfe walk instead of reading all rows."""

from __future__ import annotations

from dataclasses import dataclass

from thresher.privacy.arrays import Floats

__all__ = ["Pieces"]


@dataclass(frozen=True)
class Pieces:
    """A residual s psi(s m - o) whose psi is within ``off`` of constants[k] + slopes[k] u between two knots.

    psi itself is the identity, or the logistic function if ``logistic``, clipped.
    """

    signs: Floats
    offsets: Floats
    knots: Floats
    slopes: Floats
    constants: Floats
    off: float
    logistic: bool = False
