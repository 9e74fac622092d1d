"""Where a Frank-Wolfe run stands: all of it follows from the vertices it went towards, which are public."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thresher.privacy.arrays import Floats
from thresher.privacy.bounds import SMALLEST
from thresher.vaults.polytopes import L1Ball, Polytope, Simplex
from thresher.vaults.problem import LinearProblem

__all__ = ["Walk"]


class Walk:
    """theta <- (1 - step) theta + step v from the origin, for steps fixed in advance and vertices v of a public set.

    theta is kept as scale * w, so that a move changes the coordinates of its vertex and one number.
    """

    def __init__(self, polytope: L1Ball | Simplex | Polytope, problem: LinearProblem, steps: Sequence[float]) -> None:
        if not all(0 < step < 1 for step in steps):
            raise ValueError(f"steps={steps!r} must lie strictly between 0 and 1: each shrinks what came before")
        self.polytope, self.problem = polytope, problem
        self._count = polytope.count(problem)
        self.scales = np.cumprod(np.append(1.0, 1 - np.asarray(steps)))
        if self.scales[-1] < SMALLEST:
            raise ValueError(f"{len(steps)} steps shrink the start by more than {SMALLEST:g}: w would overflow")
        self.scales.flags.writeable = False  # whoever follows the walk relies on them
        self._weights: list[float] = (np.asarray(steps) / self.scales[1:]).tolist()
        self.moves: list[tuple[int, float]] = []
        """The vertices so far, and what each weighs in w."""
        self._w, self._summed = problem.origin(), 0

    @property
    def theta(self) -> Floats:
        for vertex, weight in self.moves[self._summed :]:
            positions, values = self.polytope.entries(vertex, self.problem)
            self._w[positions] += weight * values
        self._summed = len(self.moves)
        theta: Floats = self.scales[self._summed] * self._w
        return theta

    def towards(self, vertex: int) -> None:
        """Go on, towards the vertex at this position."""
        if not 0 <= vertex < self._count:
            raise ValueError(f"vertex={vertex!r} is none of the {self._count} of the set")
        self.moves.append((vertex, self._weights[len(self.moves)]))
