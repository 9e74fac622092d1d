"""How sure a model is of its coefficients: standard errors, intervals and stability, from released answers alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr, ndtri

from thresher.privacy.arrays import Floats
from thresher.privacy.facts import INTERCEPT_ENTRY

__all__ = ["Uncertainty"]


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """One entry per selected feature, as in ``coef_[..., support_]``; NaN where a class does not use a feature.

    All of it is computed from answers that were released anyway and from public facts, so it costs no privacy.
    """

    noise: Floats
    """The standard error that the privacy noise, whose law is known, gives a coefficient."""
    sampling: Floats
    """The standard error that other rows of the same law would give it."""
    stability: Floats
    """The chance that a fresh run on fresh rows of the same law would keep this feature, if its true coefficient is
    the one found: the chance that its score stands out of those of columns that mean nothing when features are picked,
    times the chance that its value, spread by the standard error, is not set to zero as possible noise.
    """
    method: str
    """How it was computed and what it leaves out."""

    @property
    def standard_errors(self) -> Floats:
        """Noise and sampling together, which are independent."""
        return np.hypot(self.noise, self.sampling)

    def intervals(self, coefficients: Floats, level: float = 0.9) -> Floats:
        """(low, high) for each coefficient: ``coefficients`` -+ the normal quantile times the standard error."""
        if not 0 < level < 1:
            raise ValueError(f"level={level!r} must lie strictly between 0 and 1, for example 0.9")
        coefficients = np.asarray(coefficients, dtype=np.float64)
        if coefficients.shape != self.noise.shape:
            raise ValueError(f"coefficients have shape {coefficients.shape}, the standard errors {self.noise.shape}")
        reach = ndtri((1 + level) / 2) * self.standard_errors
        return np.stack([coefficients - reach, coefficients + reach], axis=-1)

    def of(self, coefficients: Floats, support: NDArray[np.intp]) -> Self:
        """What belongs to the ``support``, of entries for all ``coefficients``; those that are zero have none."""
        unused = np.where(coefficients[support] != 0, 0.0, np.nan)
        noise, sampling, stability = (part[support] + unused for part in (self.noise, self.sampling, self.stability))
        return replace(self, noise=noise, sampling=sampling, stability=stability)

    @classmethod
    def stacked(cls, rows: list[Self]) -> Self:
        """One row per class."""
        noise, sampling, stability = (np.stack([getattr(row, part) for row in rows]) for part in PARTS)
        return replace(rows[0], noise=noise, sampling=sampling, stability=stability)

    def to_dict(self) -> dict[str, Any]:
        """For JSON, which knows neither NaN nor infinity: null."""
        return {**{part: _plain(getattr(self, part)) for part in PARTS}, "method": self.method}

    @classmethod
    def from_dict(cls, entries: dict[str, Any]) -> Self:
        noise, sampling, stability = (np.array(entries[part], dtype=np.float64) for part in PARTS)
        return cls(noise, sampling, stability, entries["method"])


PARTS = ("noise", "sampling", "stability")


def _plain(array: Floats) -> Any:
    some: NDArray[Any] = array.astype(object)
    some[~np.isfinite(array)] = None
    return some.tolist()


# -- standard errors: how far the values of a pursuit may be off ------------------------------------------------------


CLIPPED = 0.66  # E min(r^2, R^2) / R^2 for Gaussian r with median |r| = R
CLEAR = 3.0  # a move whose square exceeds so many noise variances was made by slope and not by noise alone
SLOWEST = 0.8  # a coordinate is believed to lose at least a fifth of its error in a move
MODEL = 0.05  # what Gaussian margins predict may be off by the root of this part
FLATTEST = 0.1  # of the mean curvature: no direction is believed to be flatter

UNIFORM = 1.8  # E x^4 / (E x^2)^2 of a uniform column

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(41)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@dataclass(frozen=True)
class Move:
    """values = now - step @ gradient in units: ``variance`` is that of the gradient's noise, ``clip`` the row's."""

    now: Floats
    values: Floats
    gradient: Floats
    variance: Floats
    step: Floats
    H: Floats
    clip: float

    @property
    def made(self) -> Floats:
        return -self.step @ self.gradient

    @property
    def noise(self) -> Floats:
        """The noise variance of each value that this move alone gives it."""
        return self.step**2 @ self.variance


def errors_of_numbers(last: Move, before: Move | None, spread: float, q: float, n: int) -> tuple[Floats, Floats]:
    """The standard errors by privacy and by sampling of each value after the ``last`` move.

    Residuals are clipped at about their ``q`` quantile, so the loss has curvature q H, and ``spread`` = R is their
    private quantile, so a row's gradient has second moments CLIPPED R^2 H: sampling gives (q H)^-1 CLIPPED R^2 H (q
    H)^-1 / n, and moves of m with second moments of sampled columns give m'Hm / n H^-1 more. The noise of the last
    gradient is known. What is left of the error before the move is not; it is taken from the moves: the part of the
    slope that a move leaves, spread over all coordinates, and for coordinates that are still moving more than noise
    would move them, the rest of a geometric series.
    """
    H, made = last.H, last.made
    sampling = (CLIPPED * (spread / q) ** 2 + max(float(made @ H @ made), 0.0)) / n * np.diag(np.linalg.inv(H))
    shorter = np.linalg.inv(q * H) @ last.gradient + made
    left = shorter**2 + _slope_left(last, before) + _still_moving(last, before)
    return np.sqrt(last.noise + left), np.sqrt(sampling)


def _slope_left(last: Move, before: Move | None) -> Floats:
    """The square of what is left of the last move if it left the same part of the slope as the move before it.

    That part is known up to noise: the second gradient has its own, and that which the first has put into the values.
    """
    inverse, made = np.linalg.inv(last.H), last.made
    if before is None:
        return np.zeros(len(made))
    earlier = np.linalg.inv(before.H)
    blur = float(np.diag(inverse) @ (last.variance + float(before.variance.mean())))
    end = float(last.gradient @ inverse @ last.gradient) - blur
    start = float(before.gradient @ earlier @ before.gradient) - float(np.diag(earlier) @ before.variance)
    part = min(max(end, 0.0) / start, 1.0) if start > 0 else 1.0
    spread: Floats = part * max(float(made @ last.H @ made), 0.0) / len(made) * np.diag(inverse)
    return spread


def _still_moving(last: Move, before: Move | None) -> Floats:
    """The square of what a coordinate has still to go if every move is the same part of the one before."""
    noise, earlier = last.noise, np.full(len(last.now), math.inf)
    if before is not None:
        k = len(before.now)
        earlier[:k] = np.abs(before.made)
        noise[:k] += before.noise
    part = np.clip(np.divide(np.abs(last.made), earlier, out=np.ones_like(noise), where=earlier > 0), 0.5, SLOWEST)
    to_go: Floats = (part / (1 - part)) ** 2 * np.maximum(last.made**2 - CLEAR * noise, 0.0)
    return to_go


def errors_of_classes(last: Move, before: Move | None, n: int, intercept: bool) -> tuple[Floats, Floats]:
    """The standard errors by privacy and by sampling of each value after the ``last`` move.

    Rows are taken to be Gaussian with second moments H, and labels to follow the model found. That gives the curvature
    K, the second moments V of the clipped gradients and the slope b that clipping leaves at the true values: sampling
    is K^-1 V K^-1 / n; and the values are off by (K^-1 - step) gradient - K^-1 b, since the step knows the mean
    curvature only. The latter counts as error, as it is and by MODEL of either part; so does the slope that is left.
    """
    margins = _Margins(last, intercept)
    p, limit = margins.p, last.clip / margins.norm
    one, zero = np.minimum(1 - p, limit), np.minimum(p, limit)  # sizes of the clipped residuals of either class
    inverse = _inverse(margins.moments(p * (1 - p) * (p * (1 - p <= limit) + (1 - p) * (p <= limit))), last.H)
    V = margins.moments(p * one**2 + (1 - p) * zero**2)
    short, pulled = inverse @ last.gradient + last.made, inverse @ margins.mean((1 - p) * zero - p * one)
    left = (short - pulled) ** 2 + MODEL * (short**2 + pulled**2) + _slope_left(last, before)
    return np.sqrt(last.noise + left), np.sqrt(np.maximum(np.diag(inverse @ V @ inverse), 0.0) / n)


class _Margins:
    """Gaussian margins x'theta, and the means of functions of them times x or x x'."""

    def __init__(self, move: Move, intercept: bool) -> None:
        H, theta = move.H, move.values
        self._centre = H[:, 0] / INTERCEPT_ENTRY if intercept else np.zeros(len(H))  # the constant column comes first
        mean = float(self._centre @ theta)
        variance = max(float(theta @ H @ theta) - mean**2, 1e-9)
        along = (H @ theta - mean * self._centre) / math.sqrt(variance)
        self.p: Floats = expit(mean + math.sqrt(variance) * NODES)
        self._rows = self._centre + np.outer(NODES, along)  # E[x | margin]
        self._rest = H - np.outer(self._centre, self._centre) - np.outer(along, along)  # Cov[x | margin]

        squares = np.diag(H)[intercept:]
        # E x^4 / E x^2 of a column: at least what a uniform one has, and 1 where its mean is its second moment (0 or 1)
        peaks = np.maximum(UNIFORM * squares, (self._centre[intercept:] / squares) ** 2 if intercept else 1.0)
        self.norm = math.sqrt(float(np.trace(H)) + float(np.mean(np.minimum(peaks, 1.0) - squares)))

    def moments(self, weights: Floats) -> Floats:
        """E[weight x x']."""
        matrix: Floats = float(WEIGHTS @ weights) * self._rest + (self._rows.T * (WEIGHTS * weights)) @ self._rows
        return matrix

    def mean(self, weights: Floats) -> Floats:
        """E[weight x]."""
        return (WEIGHTS * weights) @ self._rows


def _inverse(K: Floats, H: Floats) -> Floats:
    """K^-1, where no direction is believed to be much flatter than K is on the average in units of H."""
    squares, axes = np.linalg.eigh(H)
    root = (axes / np.sqrt(squares)) @ axes.T  # H^-1/2
    values, vectors = np.linalg.eigh(root @ K @ root)
    raised = np.maximum(values, FLATTEST * max(float(np.mean(values)), 1e-12))
    inverse: Floats = root @ ((vectors / raised) @ vectors.T) @ root
    return inverse


# -- stability: how likely another pursuit on other rows would keep a feature -----------------------------------------


LEVELS, LEVEL_WEIGHTS = np.polynomial.hermite_e.hermegauss(21)
LEVEL_WEIGHTS = LEVEL_WEIGHTS / LEVEL_WEIGHTS.sum()
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
        for node, weight in zip(LEVELS, LEVEL_WEIGHTS, strict=True):
            over = (np.abs(centres + roots * node)[:, None] - bars) / scale
            chances -= weight * np.expm1(-np.exp(np.clip(over, -50, 50)))
        return chances


def keeping_chance(values: Floats, errors: Floats, floors: Floats) -> Floats:
    """That a value with this centre and standard error is at least its floor in size."""
    with np.errstate(divide="ignore", invalid="ignore"):
        below, above = (-floors - values) / errors, (values - floors) / errors
    chances: Floats = np.where(errors > 0, ndtr(below) + ndtr(above), np.abs(values) >= floors)
    return chances
