"""What is public about the training of a module."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thresher.privacy.arrays import Floats
from thresher.privacy.budget import is_whole
from thresher.privacy.facts import PublicCounts

__all__ = ["ModuleProblem"]


@dataclass(frozen=True, init=False)
class ModuleProblem(PublicCounts):
    """Public facts only: the number of examples and the parameters the training starts from, in one flat vector.

    To an algorithm the parameters are one vector, whatever the module predicts.

    Parameters
    ----------
    n : int
        The number of examples.
    start : array
        The parameters at the start, which must not depend on the examples. (Parameters trained on other, public
        examples are a fine start.)

    Examples
    --------
    >>> problem = ModuleProblem(100, np.zeros(7))
    >>> problem.d, problem.counted
    (7, 'examples')
    """

    start: Floats = field(repr=False, compare=False)

    def __init__(self, n: int, start: Floats) -> None:
        if not is_whole(n) or n < 1:
            raise ValueError(f"n={n!r} must be the number of examples, a whole number of at least 1")
        object.__setattr__(self, "start", start)
        super().__init__(n, len(start))

    @property
    def counted(self) -> str:
        """What n counts, in words."""
        return "examples"

    @property
    def enforced(self) -> dict[str, Any]:
        """The bounds, as certificates list them."""
        return {"gradient": "clipped per example, all parameters together"}

    def origin(self) -> Floats:
        """The parameters at the start."""
        return self.start.copy()

    def gradient_change(self, moved: float) -> float:
        """No bound is known on how much an example's gradient changes over a move of this length."""
        return math.inf

    def penalty_gradient(self, theta: Floats) -> Floats:
        """There is no penalty."""
        return np.zeros_like(theta)
