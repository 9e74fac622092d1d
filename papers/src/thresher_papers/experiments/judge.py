"""What a model of chapter 6 is compared with: the exact minimiser of the objective that the methods are after."""

from __future__ import annotations

import numpy as np

from thresher.privacy.arrays import Floats
from thresher.vaults.central.minimisers import minimise_strongly_convex
from thresher.vaults.losses import LOGISTIC, SQUARED
from thresher_papers.experiments.chapter6_sets import Rows

__all__ = ["Judge"]


class Judge:
    """J = mean loss + (ridge/2)||theta||^2 of clipped rows, with the sign that the released code has wrong (E-27)."""

    def __init__(self, rows: Rows, ridge: float, clip: float) -> None:
        self.rows = rows
        self._ridge = ridge
        self._loss = SQUARED if rows.regression else LOGISTIC
        self._limits = np.full(len(rows.y), clip)  # of rows of norm 1
        smoothness = self._loss.curvature + ridge
        origin = np.zeros(rows.X.shape[1])
        self.best = minimise_strongly_convex(self.objective, origin, ridge, smoothness, 1e-8)  # ridge .001: J to 5e-14
        self.least, self.error = self.objective(self.best)[0], self._error(self.best)
        self.facts = {
            "rows": len(rows.y), "test rows": len(rows.y_test), "columns": rows.X.shape[1],
            "J of zeros": self.objective(origin)[0], "least J": self.least, "its error": self.error,
        }  # fmt: skip
        """What is told of the set."""

    def objective(self, theta: Floats) -> tuple[float, Floats]:
        margins = self.rows.X @ theta
        values = self._loss.clipped_value(margins, self.rows.y, self._limits)
        slopes = np.clip(self._loss.residual(margins, self.rows.y), -self._limits, self._limits)
        gradient = slopes @ self.rows.X / len(slopes) + self._ridge * theta
        return float(values.mean()) + self._ridge / 2 * float(theta @ theta), gradient

    def _error(self, theta: Floats) -> float:
        margins = self.rows.X_test @ theta
        if self.rows.regression:
            return float(np.mean(np.square(margins - self.rows.y_test)))
        return float(np.mean((margins > 0) != (self.rows.y_test > 0)))

    def judged(self, theta: Floats) -> tuple[float, float]:
        """The optimality gap, and how much larger the test error is than that of the exact minimiser."""
        return self.objective(theta)[0] - self.least, self._error(theta) - self.error
