"""What is public about the training of a module."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from thresher.privacy.arrays import Floats
from thresher.privacy.budget import is_whole
from thresher.privacy.trust import Unit

__all__ = ["ModuleProblem"]


@dataclass(frozen=True)
class ModuleProblem:
    """Public facts only: the number of examples and the parameters the training starts from, in one flat vector.

    The start must not depend on the examples. (Parameters trained on other, public examples are a fine start.)
    """

    n: int
    start: Floats = field(repr=False, compare=False)

    outputs: ClassVar[int] = 1
    """To an algorithm the parameters are one vector, whatever the module predicts."""

    unit: ClassVar[Unit] = "row"
    counted: ClassVar[str] = "examples"

    def __post_init__(self) -> None:
        if not is_whole(self.n) or self.n < 1:
            raise ValueError(f"n={self.n!r} must be the number of examples, a whole number of at least 1")
        object.__setattr__(self, "n", int(self.n))

    @property
    def d(self) -> int:
        """The number of trainable parameters."""
        return len(self.start)

    @property
    def dimension(self) -> int:
        return self.d

    @property
    def enforced(self) -> dict[str, Any]:
        """The bounds, as certificates list them."""
        return {"gradient": "clipped per example, all parameters together"}

    @property
    def public_choices(self) -> dict[str, Any]:
        """What else certificates list: nothing."""
        return {}

    @property
    def assumed(self) -> tuple[str, ...]:
        """What certificates assume beside the code: nothing."""
        return ()

    def origin(self) -> Floats:
        return self.start.copy()

    def gradient_change(self, moved: float) -> float:
        """No bound is known on how much an example's gradient changes over a move of this length."""
        return math.inf

    def penalty_gradient(self, theta: Floats) -> Floats:
        """There is no penalty."""
        return np.zeros_like(theta)
