"""Scores of single rows, from 0 (worst) to 1 (best), by which private trials are compared. Names are scikit-learn's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from thresher.privacy.arrays import Floats
from thresher.vaults.kernels.rows import sum_of_outputs

__all__ = ["CLASSES", "NUMBERS", "Scoring"]

WORST_LOG_LOSS = 5.0
"""Where log losses are clipped, in units of that of a uniform guess: at a chance of 1/32 for two classes."""


def _wrong(margins: Floats, y: Floats) -> Floats:
    if margins.ndim == 1:
        return np.where((margins > 0) != (y > 0.5), 1.0, 0.0)
    return np.where(margins.argmax(axis=1) != y.argmax(axis=1), 1.0, 0.0)


def _log_loss(margins: Floats, y: Floats) -> Floats:
    if margins.ndim == 1:
        return np.logaddexp(0.0, np.where(y > 0.5, -margins, margins))
    largest = margins.max(axis=1)
    losses: Floats = np.log(sum_of_outputs(np.exp(margins - largest[:, None]))) + largest
    return losses - sum_of_outputs(np.where(y > 0.5, margins, 0.0))


def _square(margins: Floats, y: Floats) -> Floats:
    return (margins - y) ** 2


def _distance(margins: Floats, y: Floats) -> Floats:
    return np.abs(margins - y)


CLASSES: dict[str, Callable[[Floats, Floats], Floats]] = {"accuracy": _wrong, "neg_log_loss": _log_loss}
NUMBERS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "neg_mean_squared_error": _square,
    "neg_mean_absolute_error": _distance,
}


@dataclass(frozen=True)
class Scoring:
    """1 - loss / worst, the loss clipped at ``worst``; ``target`` is the public range that numbers are clipped to.

    The noise of a mean score is worst / n times a constant: where it is not known how far numbers reach, ``worst``
    should not be that of the farthest.
    """

    name: str
    worst: float
    target: tuple[float, float] | None = None

    @classmethod
    def of_classes(cls, name: str, classes: int) -> Scoring:
        return cls(name, WORST_LOG_LOSS * math.log(classes) if name == "neg_log_loss" else 1.0)

    @classmethod
    def of_numbers(cls, name: str, ranges: Iterable[tuple[float, float]]) -> Scoring:
        """Numbers are clipped to the widest of public ranges, errors at the width of the narrowest."""
        lows, highs = zip(*ranges, strict=True)
        narrowest = min(high - low for low, high in zip(lows, highs, strict=True))
        return cls(name, narrowest ** (2 if name == "neg_mean_squared_error" else 1), (min(lows), max(highs)))

    def of_rows(self, margins: Floats, y: Floats) -> Floats:
        """Each row's score, whatever the row holds; a margin that is not a number scores 0."""
        lost = np.isnan(margins) if margins.ndim == 1 else np.isnan(margins).any(axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.target is None:
                losses = CLASSES[self.name](margins, y)
            else:
                losses = NUMBERS[self.name](np.clip(margins, *self.target), np.clip(y, *self.target))
            scores = 1 - losses / self.worst
        scores[lost | np.isnan(scores)] = 0.0
        return np.clip(scores, 0.0, 1.0)

    def natural(self, score: float) -> float:
        """A mean score in the units of its name: the accuracy, or minus the error."""
        return (1.0 if self.name == "accuracy" else 0.0) - (1 - score) * self.worst
