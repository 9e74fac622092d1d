"""The squared loss of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np

from thresher.privacy.arrays import Floats
from thresher.vaults.losses.loss import Loss, Pieces

__all__ = ["SQUARED", "Squared"]


@final
@dataclass(frozen=True)
class Squared(Loss):
    """(m - y)^2 / 2; with a clipped residual, the Huber loss."""

    name: ClassVar[str] = "squared"
    curvature: ClassVar[float] = 1.0
    shift_invariant: ClassVar[bool] = True
    linear_in_target: ClassVar[bool] = True
    likelihood: ClassVar[Literal["gaussian", "bernoulli"] | None] = "gaussian"

    def residual(self, margin: Floats, target: Floats) -> Floats:
        return margin - target

    def value(self, margin: Floats, target: Floats) -> Floats:
        return np.square(margin - target) / 2

    def clipped_value(self, margin: Floats, target: Floats, limit: Floats) -> Floats:
        size = np.abs(margin - target)
        inner = np.minimum(size, limit)
        return inner * (size - inner / 2)

    def pieces(self, targets: Floats, clip: float) -> Pieces:
        """m - y within [-clip, clip]: three pieces, exactly."""
        slopes, constants = np.array([0.0, 1.0, 0.0]), np.array([-clip, 0.0, clip])
        return Pieces(np.ones_like(targets), targets, np.array([-clip, clip]), slopes, constants, off=0.0)


SQUARED = Squared()
