"""The gradient along a Frank-Wolfe walk over sparse rows, kept up to date at the cost of what a step touches.

docs/algorithms/frank-wolfe.md says how, and proves that the vertex drawn has exactly the law of the exponential
mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from thresher.privacy.arrays import Floats
from thresher.vaults.engines.sparse import SparseEngine
from thresher.vaults.kernels import compiled
from thresher.vaults.losses import Pieces

__all__ = ["LazyGradient", "is_walkable"]


UNIFORMS, TRIES = 8192, 1024  # numbers drawn at a time, and used before bounds are worth being taken afresh
WINDOW = 4  # bounds on gradients hold for the next step/WINDOW steps: the later, the less a step changes
TOUCH, READ, COLUMN, ROW = 3.0, 0.8, 8.0, 15.0  # nanoseconds: an entry touched, and what all take if read afresh
DRIFT, MOST_TOUCHED = 1e-8, 10_000_000  # round-off in a residual stays below this part of it for so many updates
LIGHT = 2  # light steps in a row after which following them pays again


def is_walkable(engine: object) -> bool:
    """Whether there are compiled loops for these rows."""
    return isinstance(engine, SparseEngine) and engine.is_walkable


class LazyGradient:
    """X' r along a walk, and columns drawn with weight 2 cosh(kappa |gradient|) and the sign that goes with it.

    A row's part in X' r is times its ``shares``, which ``residual`` has in it already.
    """

    def __init__(
        self, engine: SparseEngine, residual: Callable[[Floats], Floats], pieces: Pieces, shares: Floats,
        scales: Floats, kappa: float, kappa_of_constant: float, clip: float,
    ) -> None:  # fmt: skip
        self._engine, self._residual = engine, residual
        largest = pieces.off + DRIFT * (clip + float(np.max(np.abs(pieces.offsets), initial=0.0)))
        slacks = largest * engine.column_sums(shares)
        table = pieces.knots, pieces.slopes, pieces.constants, pieces.signs, pieces.offsets, shares
        self._walk = compiled().Walk(
            *engine.by_columns(), scales, *table, slacks, kappa, kappa_of_constant, clip, pieces.logistic
        )
        n, d = len(pieces.signs), engine.dimension
        self._afresh = READ * engine.stored + COLUMN * d + ROW * n  # what a step costs that follows nothing
        self._margins = np.empty(n)
        self._uniforms, self._used = np.empty(0), 0
        self._step, self._touched, self._light, self._needed = 0, 0, 0, LIGHT
        self._refresh()

    def move(self, column: int, weight: float) -> None:
        """The coefficient of ``column`` grows by ``weight`` times the next scale, all shrink with it."""
        work = self._walk.work(column)
        self._light = self._light + 1 if TOUCH * work < self._afresh else 0
        self._step += 1
        if self._followed and self._light and self._touched < MOST_TOUCHED:
            self._walk.move(column, weight)
            self._touched += work
            return
        self._walk.shift(column, weight)
        if self._light >= self._needed:
            self._refresh()
        else:
            self._read()

    def _refresh(self) -> None:
        """All that is followed, from scratch."""
        self._walk.refresh()
        self._followed, self._until, self._window, self._touched = True, self._step, math.inf, 0

    def _read(self) -> None:
        """The gradient, from scratch and exactly; the next moves are not followed."""
        self._walk.margins(self._margins)
        self._walk.give(self._engine.transposed_product(self._residual(self._margins)))
        self._followed, self._until, self._window = False, self._step, 0

    def draw(self, uniforms: Callable[[int], Floats]) -> tuple[int, bool]:
        """A column, and whether its coefficient goes down."""
        while True:
            if self._step >= self._until:
                self._window = min(2 * self._window + 1, self._step // WINDOW + 1) if self._followed else 0
                self._sort()
            column, down = self._propose(uniforms)
            if column >= 0:
                return column, down
            if self._window > 0:  # bounds that hold for some steps may be too loose, those for one less so
                self._window = 0
                self._sort()
            else:  # the stand-in itself is too loose
                self._needed, self._light = 2 * self._needed, 0
                self._read()

    def _sort(self) -> None:
        self._until = self._step + max(1, int(self._window))
        self._walk.sort(self._step + int(self._window))

    def _propose(self, uniforms: Callable[[int], Floats]) -> tuple[int, bool]:
        """The column that one of so many tries accepts, or -1."""
        if self._used + TRIES > len(self._uniforms):
            self._uniforms, self._used = uniforms(UNIFORMS), 0
        used, column, down = self._walk.draw(self._uniforms[self._used : self._used + TRIES])
        self._used += used
        return column, down
