"""The log losses of classes: logistic for two, multinomial for more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np
from scipy.special import expit, softmax

from thresher.privacy.arrays import Floats
from thresher.vaults.kernels.rows import sum_of_outputs
from thresher.vaults.losses.loss import Loss, Pieces

__all__ = ["LOGISTIC", "MULTINOMIAL", "Logistic", "Multinomial"]

WIDTH, REACH = 0.4, 6.4  # of the chords that stand in for the logistic function, and how far they go


class _LogLoss(Loss):
    """What the two share: residuals are differences of probabilities, margins are log-odds or scores like them."""

    classifies: ClassVar[bool] = True
    residuals_stay: ClassVar[bool] = True
    linear_in_target: ClassVar[bool] = True

    def for_outputs(self, outputs: int) -> Loss:
        return MULTINOMIAL if outputs > 1 else LOGISTIC

    def largest_residual(self, radius: float) -> float:
        return 1.0

    def typical_margin(self, radius: float) -> float:
        return 1.0


@final
@dataclass(frozen=True)
class Logistic(_LogLoss):
    """log(1 + e^m) - y m for y in {0, 1}; the residual sigmoid(m) - y lies in [-1, 1]."""

    name: ClassVar[str] = "logistic"
    curvature: ClassVar[float] = 0.25
    likelihood: ClassVar[Literal["gaussian", "bernoulli"] | None] = "bernoulli"

    def residual(self, margin: Floats, target: Floats) -> Floats:
        residual: Floats = np.tanh(margin / 2)  # sigmoid(m) = (1 + tanh(m/2)) / 2: vectorised, and never overflows
        residual += 1
        residual /= 2
        residual -= target
        return residual

    def value(self, margin: Floats, target: Floats) -> Floats:
        value: Floats = np.logaddexp(0.0, margin) - target * margin
        return value

    def clipped_value(self, margin: Floats, target: Floats, limit: Floats) -> Floats:
        # In the signed margin z = (1 - 2y) m the loss is softplus(z) with derivative sigmoid(z) in (0, 1). Where that
        # exceeds limit < 1 the clipped loss continues along its tangent.
        z = (1 - 2 * target) * margin
        slope = np.clip(limit, np.finfo(np.float64).tiny, 1.0)
        with np.errstate(divide="ignore"):
            knee = np.log(slope) - np.log1p(-slope)  # sigmoid(knee) = limit; infinite if there is no clip
        beyond = np.maximum(z - knee, 0.0)
        value: Floats = np.logaddexp(0.0, np.minimum(z, knee)) + slope * beyond
        return value

    def pieces(self, targets: Floats, clip: float) -> Pieces:
        """sigmoid(m) - y = s sigmoid(s m) with s = 1 - 2y, at most ``clip``: chords between knots, constant beyond.

        A chord is off by at most width^2/8 times the largest second derivative, 1/(6 sqrt 3) (taken as 0.0963). The
        left end is off by at most what psi is there, the right one by at most sigmoid(-reach), which is no more.
        """
        last = min(REACH, math.log(clip / (1 - clip))) if clip < 1 else REACH
        knots = np.append(np.arange(-REACH, last - 1e-9, WIDTH), last)
        values = 1 / (1 + np.exp(-knots))
        slopes = np.concatenate([[0.0], np.diff(values) / np.diff(knots), [0.0]])
        ends = values[0], min(clip, 1.0) if last < REACH else values[-1]
        constants = np.concatenate([[ends[0]], values[:-1] - slopes[1:-1] * knots[:-1], [ends[1]]])
        chord = 0.0963 * float(np.max(np.diff(knots), initial=0.0)) ** 2 / 8
        off = max(chord, float(values[0]))
        return Pieces(1 - 2 * targets, np.zeros_like(targets), knots, slopes, constants, off, logistic=True)

    def inverse_link(self, margin: Floats) -> Floats:
        """The chance of the second class."""
        chance: Floats = expit(margin)
        return chance

    def adds_to(self, classes: Sequence[object] | None) -> str:
        return "log-odds" if classes is None else f"log-odds of {classes[1]}"


@final
@dataclass(frozen=True)
class Multinomial(_LogLoss):
    """log sum_k e^m_k - m_y for several margins a row; the residuals softmax(m) - onehot(y) have l2 norm <= sqrt 2.

    It has no ``clipped_value``: residuals that are clipped together are the gradient of no function.
    """

    name: ClassVar[str] = "multinomial"
    curvature: ClassVar[float] = 0.5
    several_outputs: ClassVar[bool] = True

    def residual(self, margin: Floats, target: Floats) -> Floats:
        margin = np.nan_to_num(margin)  # infinite margins have no difference; the largest finite ones do
        residual: Floats = np.exp(margin - margin.max(axis=1, keepdims=True))
        residual /= sum_of_outputs(residual)[:, None]
        residual -= target
        return residual

    def value(self, margin: Floats, target: Floats) -> Floats:
        margin = np.nan_to_num(margin)
        largest = margin.max(axis=1)
        value: Floats = np.log(sum_of_outputs(np.exp(margin - largest[:, None]))) + largest
        return value - sum_of_outputs(margin * target)

    def inverse_link(self, margin: Floats) -> Floats:
        """The chance of each class."""
        chances: Floats = softmax(margin, axis=1)
        return chances

    def adds_to(self, classes: Sequence[object] | None) -> str:
        return "score of the class"


LOGISTIC, MULTINOMIAL = Logistic(), Multinomial()
