"""The synthetic law that plans are tried on: drawn from public facts alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from thresher.privacy.arrays import Floats
from thresher.vaults.clipping import clip_targets
from thresher.vaults.problem import LinearProblem

__all__ = ["DEVIATIONS", "PlanningLaw", "SyntheticTable"]

DEVIATIONS = 3.0
"""The public range of the target reaches this many standard deviations of it to either side."""

WEAKEST, STRONGEST = 0.5, 1.5  # of the true features' effects, before they are scaled to the signal
LOGISTIC_VARIANCE = math.pi**2 / 3
UNIFORM_DEVIATION = 1 / math.sqrt(3)  # in units of the bound


class SyntheticTable(NamedTuple):
    """Rows, their targets, and the coefficients they follow."""

    X: NDArray[np.float32]
    y: Floats | NDArray[np.int8]
    theta: Floats


@dataclass(frozen=True)
class PlanningLaw:
    """Rows within the public bounds, of which s columns matter, about equally.

    Columns are independent and uniform within their bounds. Where rows are bounded in l2 norm the columns are made
    narrower, all by one factor, until a row has the bound as its root mean square norm, and longer rows are shortened.

    Of the s = ``problem.sparsity`` true features, the effect of one standard deviation is U(0.5, 1.5) of a common unit,
    with either sign. ``signal`` is the share of variance that they explain together. Of a number y = c + <x, theta> +
    Gaussian noise, clipped to its range, it is R^2; c is the middle of the range and y's deviation a third of its half.
    Of two classes it is the R^2 of the score behind them: y = 1 where <x, theta> + logistic noise is above 0.

    Parameters
    ----------
    problem : LinearProblem
        The public facts: shape, bounds, sparsity, loss.
    signal : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> from thresher import SparseRegressor
    >>> from thresher.planning import PlanningLaw
    >>> from thresher.vaults.problem import linear_problem
    >>> model = SparseRegressor(2, feature_bound=1.0, target_bound=3.0)
    >>> law = PlanningLaw(linear_problem(model.plan(1000, 20)), signal=0.5)
    >>> law.problem.d
    20
    """

    problem: LinearProblem
    signal: float

    def __post_init__(self) -> None:
        if self.problem.outputs > 1:
            raise ValueError(f"{self.problem.outputs} classes: predictions are made for numbers and for two classes")
        if not 0 < self.signal < 1:
            raise ValueError(
                f"signal={self.signal!r} must lie strictly between 0 and 1: the share of the target's variance that "
                "the true features explain"
            )

    @cached_property
    def widths(self) -> Floats:
        """Entries of each column are uniform within this distance of 0."""
        bounds, d = self.problem.bounds, self.problem.d
        widths: Floats = np.broadcast_to(1.0 if bounds.feature is None else np.asarray(bounds.feature), d).astype(float)
        if bounds.row is None:
            return widths
        narrower = bounds.row / (UNIFORM_DEVIATION * float(np.linalg.norm(widths)))
        return widths * (narrower if bounds.feature is None else min(1.0, narrower))

    @property
    def target_deviation(self) -> float:
        """The standard deviation of a number before it is clipped."""
        return self.problem.target_radius / DEVIATIONS

    @property
    def explained(self) -> float:
        """The variance of <x, theta>."""
        if self.problem.loss.classifies:
            return LOGISTIC_VARIANCE * self.signal / (1 - self.signal)
        return self.signal * self.target_deviation**2

    def best_accuracy(self) -> float:
        """How often the best rule names the right one of two classes, margins taken to be Gaussian."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(64)
        return float(weights @ expit(np.abs(nodes) * math.sqrt(self.explained)) / weights.sum())

    def coefficients(self, rng: np.random.Generator) -> Floats:
        """Those of one table, drawn."""
        d, s = self.problem.d, self.problem.sparsity
        effects = rng.uniform(WEAKEST, STRONGEST, s) * rng.choice([-1.0, 1.0], s)
        support = rng.choice(d, s, replace=False)
        theta = np.zeros(d)
        scale = math.sqrt(self.explained) / np.linalg.norm(effects)
        theta[support] = scale * effects / (UNIFORM_DEVIATION * self.widths[support])
        return theta

    def rows(self, rng: np.random.Generator, n: int, theta: Floats) -> SyntheticTable:
        """``n`` fresh rows that follow ``theta``, in single precision."""
        X = rng.random((n, self.problem.d), dtype=np.float32)
        X -= np.float32(0.5)
        X *= (2 * self.widths).astype(np.float32)
        if self.problem.bounds.row is not None:
            X *= np.minimum(1, self.problem.bounds.row / np.linalg.norm(X, axis=1).clip(1e-30))[:, None]
        support = np.flatnonzero(theta)
        margins = X[:, support] @ theta[support]
        if self.problem.loss.classifies:
            return SyntheticTable(X, (margins + rng.logistic(size=n) > 0).astype(np.int8), theta)
        noise = rng.normal(0, math.sqrt(1 - self.signal) * self.target_deviation, n)
        return SyntheticTable(X, clip_targets(self.problem.target_centre + margins + noise, self.problem.bounds), theta)
