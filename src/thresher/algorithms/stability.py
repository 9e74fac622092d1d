"""How likely another pursuit on other rows would keep a feature: computed from answers alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from thresher.privacy.arrays import Floats

__all__ = ["Competition", "keeping_chance"]


NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(21)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
BARS = 200  # steps of the integral over the best score of a column that means nothing
SMOOTH = 0.2  # of the sampling error: less Gumbel noise than that would show the nodes


@dataclass(frozen=True)
class Competition:
    """A round of picks among ``columns``, of which all but ``picks`` mean nothing.

    A score is |slope * moment * value + sampling error| + Gumbel noise of scale ``gumbel``; the sampling error has
    standard deviation ``spread`` times the root of the column's second moment.
    """

    columns: int
    picks: int
    gumbel: float
    slope: float
    spread: float

    def chance(self, values: Floats, moments: Floats) -> Floats:
        """That columns with these true values and second moments beat the best of those that mean nothing."""
        rivals = self.columns - self.picks
        if rivals <= 0 or not len(values):
            return np.ones(len(values))
        typical = np.array([float(np.mean(moments))])
        top = 10 * self.spread * math.sqrt(typical[0]) + self.gumbel * (math.log(rivals) + 40)
        bars = np.linspace(-10 * self.gumbel, max(top, 1e-300), BARS)
        best = np.exp(-rivals * self._above(bars, np.zeros(1), typical)[0])  # the law of the best rival, nearly
        middle = (bars[1:] + bars[:-1]) / 2
        chances: Floats = self._above(middle, values, moments) @ np.diff(best) + best[0]
        return np.clip(chances, 0.0, 1.0)

    def _above(self, bars: Floats, values: Floats, moments: Floats) -> Floats:
        """The chance that the score of each column is above each bar."""
        roots = self.spread * np.sqrt(moments)
        centres = self.slope * moments * values
        scale = max(self.gumbel, SMOOTH * float(roots.mean()), 1e-300)
        chances = np.zeros((len(values), len(bars)))
        for node, weight in zip(NODES, WEIGHTS, strict=True):
            over = (np.abs(centres + roots * node)[:, None] - bars) / scale
            chances -= weight * np.expm1(-np.exp(np.clip(over, -50, 50)))
        return chances


def keeping_chance(values: Floats, errors: Floats, floors: Floats) -> Floats:
    """That a value with this centre and standard error is at least its floor in size."""
    with np.errstate(divide="ignore", invalid="ignore"):
        below, above = (-floors - values) / errors, (values - floors) / errors
    chances: Floats = np.where(errors > 0, ndtr(below) + ndtr(above), np.abs(values) >= floors)
    return chances
