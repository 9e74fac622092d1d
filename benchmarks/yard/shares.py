"""Shares of what is possible, by table, method and epsilon, from the scores of all fits."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from yard.measuring import Measured
from yard.methods import DEFAULT
from yard.scores import share

__all__ = ["AHEAD", "FAILED", "Reached", "Shares", "ahead_by", "best_of", "error_of_median", "reached_in", "summary"]

FAILED = 0.05  # of what is possible: below it, a model is not worth publishing
AHEAD = 0.05  # by so much another method must be better, to be told
DRAWS = 2000  # of what fits with other noise might have been, for the error of a median


@dataclass(frozen=True)
class Shares:
    """What part of the possible one method reached on one table at one epsilon."""

    mean: float
    error: float  # standard error of the mean; NaN of one fit

    def __str__(self) -> str:
        return f"{self.mean:.2f}" if np.isnan(self.error) else f"{self.mean:.2f} ± {self.error:.2f}"


Reached = Mapping[tuple[str, str, float], Shares]
"""By table, method and epsilon."""


def reached_in(found: Measured) -> dict[tuple[str, str, float], Shares]:
    """Of all that was measured."""
    made = {}
    for (table, method, epsilon), scores in found.scores.items():
        if scores:
            each = share(scores, *found.least_and_best(table))
            error = float(np.std(each, ddof=1) / np.sqrt(len(each))) if len(each) > 1 else float("nan")
            made[table, method, epsilon] = Shares(float(np.mean(each)), error)
    return made


def summary(shares: Sequence[Shares]) -> tuple[float, float, int]:
    """The median, the worst, and how many failed."""
    means = [each.mean for each in shares]
    return statistics.median(means), min(means), sum(mean < FAILED for mean in means)


def error_of_median(shares: Sequence[Shares]) -> float:
    """The standard error of the median over tables that comes of the noise in fits; NaN if that is not known."""
    means, errors = np.array([each.mean for each in shares]), np.array([each.error for each in shares])
    drawn = np.random.default_rng(0).normal(means, np.nan_to_num(errors), (DRAWS, len(means)))
    return float("nan") if np.isnan(errors).any() else float(np.std(np.median(drawn, axis=1)))


def ahead_by(reached: Reached, table: str, method: str, epsilon: float) -> float | None:
    """By how much a method is ahead of the default; None where one of them was not measured."""
    both = [reached.get((table, each, epsilon)) for each in (method, DEFAULT)]
    return None if both[0] is None or both[1] is None else both[0].mean - both[1].mean


def best_of(reached: Reached, table: str, methods: Iterable[str], epsilon: float) -> tuple[str, float]:
    """The best of these but for the default, and its share; "" if there is none."""
    known = {m: reached[table, m, epsilon].mean for m in methods if m != DEFAULT and (table, m, epsilon) in reached}
    best = max(known, key=lambda name: known[name], default="")
    return best, known.get(best, float("-inf"))
