"""Rates of right and false alarms: thresholds, predictive values, intervals, and what a guarantee leaves of them."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from thresher.privacy.arrays import Flags, Floats

__all__ = [
    "Guarantee",
    "Threshold",
    "accuracy",
    "advantage",
    "alarm_ratio",
    "choose",
    "draw_predictive_values",
    "predictive_value",
    "roc",
    "shares",
    "t_interval",
    "thinned_roc",
]

Worth = Callable[[Floats, Floats, int, int], Floats]
"""What an attacker makes of (FPR, TPR) at every threshold, given how many negatives and positives were scored."""

LEAST_SHARE = 0.01  # of the positives: a threshold that finds fewer rests on a handful of records
ROC_POINTS = 1001


# -- what differential privacy leaves ---------------------------------------------------------------------------------


Axes = Any
"""Of matplotlib, which need not be installed."""


@dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta)-DP and, where all releases were Gaussian, mu-Gaussian DP beside it."""

    epsilon: float
    delta: float
    mu: float | None = None

    def largest_rate(self, rate: float) -> float:
        """The largest chance an event may have on a data set if it has chance ``rate`` on a neighbour.

        For an event E, P(E) <= e^epsilon Q(E) + delta, and for its complement 1 - Q(E) <= e^epsilon (1 - P(E)) + delta.
        Under mu-Gaussian DP P(E) <= Phi(Phi^-1(Q(E)) + mu) (Dong, Roth and Su 2022, Definition 2.6). All three are
        concave in Q(E), so by Jensen's inequality they hold for averages over rows and thresholds as well.
        """
        grow = math.exp(min(self.epsilon, 700.0))  # beyond, e^epsilon would overflow; the bound is 1 long before
        bounds = [1.0, grow * rate + self.delta, 1 - (1 - self.delta - rate) / grow]
        if self.mu is not None:
            bounds.append(float(ndtr(ndtri(rate) + self.mu)))
        return min(bounds)

    def smallest_rate(self, rate: float) -> float:
        """The smallest such chance: the complement's largest. In particular >= (rate - delta) / e^epsilon."""
        return 1 - self.largest_rate(1 - rate)

    @property
    def advantage(self) -> float:
        """The largest TPR - FPR.

        The two lines of ``largest_rate`` cross at FPR = 1 - TPR = (1 - delta) / (e^epsilon + 1), where the
        difference is (e^epsilon - 1 + 2 delta) / (e^epsilon + 1); tanh(epsilon / 2) is the part without delta. The
        Gaussian curve is steepest there too: 2 Phi(mu/2) - 1.
        """
        grow = math.exp(min(self.epsilon, 700.0))
        largest = min(1.0, math.tanh(self.epsilon / 2) + 2 * self.delta / (grow + 1))
        return largest if self.mu is None else min(largest, float(2 * ndtr(self.mu / 2) - 1))

    def predictive_value(self, fpr: float, prior: float) -> float:
        """The largest positive predictive value of a membership test that has this false-positive rate."""
        return _most_predictive(self.largest_rate(fpr), fpr, prior)

    def imputed_predictive_value(self, tpr: float, fpr: float, prior: float) -> float:
        """The largest positive predictive value on members of a test with these rates on non-members."""
        return _most_predictive(self.largest_rate(tpr), self.smallest_rate(fpr), prior)


def predictive_value(tpr: float, fpr: float, prior: float) -> float | None:
    """TPR / (TPR + prior FPR): how often an alarm is right, with ``prior`` negatives for each positive.

    None if there was no alarm.
    """
    alarms = tpr + prior * fpr
    return tpr / alarms if alarms > 0 else None


def _most_predictive(tpr: float, fpr: float, prior: float) -> float:
    """The same for rates that are bounds: where no false alarm is certain, every alarm may be right."""
    value = predictive_value(tpr, fpr, prior)
    return 1.0 if value is None else value


# -- thresholds -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Threshold:
    """Alarm where the score called ``score`` is at least ``at``."""

    score: str
    at: float

    def alarms(self, scores: Mapping[str, Floats]) -> Flags:
        return np.asarray(scores[self.score] >= self.at)


def roc(positives: Floats, negatives: Floats) -> tuple[Floats, Floats, Floats]:
    """Every threshold that makes a difference, falling, with the FPR and TPR of "score >= threshold".

    Each lies halfway to the next lower score: where members are fitted to the last bit, another model's members are so
    to another last bit.
    """
    levels = np.unique(np.concatenate([positives, negatives]))[::-1]
    thresholds = np.append((levels[:-1] + levels[1:]) / 2, levels[-1:])
    found, wrong = (
        1 - np.searchsorted(np.sort(side), thresholds, side="left") / len(side) for side in (positives, negatives)
    )
    return thresholds, wrong, found


def thinned_roc(positives: Floats, negatives: Floats) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """FPR and TPR from (0, 0) to (1, 1), at most ROC_POINTS of them."""
    _, fpr, tpr = roc(positives, negatives)
    at = np.unique(np.linspace(0, len(fpr) - 1, min(len(fpr), ROC_POINTS - 1)).astype(int))
    return (0.0, *fpr[at].tolist()), (0.0, *tpr[at].tolist())


def advantage(fpr: Floats, tpr: Floats, negatives: int, positives: int) -> Floats:
    """TPR - FPR (Yeom et al. 2018)."""
    return tpr - fpr


def accuracy(fpr: Floats, tpr: Floats, negatives: int, positives: int) -> Floats:
    """The share of right answers where every alarm says "positive" and every silence says "negative"."""
    return (positives * tpr + negatives * (1 - fpr)) / (positives + negatives)


def alarm_ratio(fpr: Floats, tpr: Floats, negatives: int, positives: int) -> Floats:
    """TPR / FPR, of thresholds that find at least LEAST_SHARE of the positives.

    The positive predictive value is 1 / (1 + prior FPR / TPR): it rises with this ratio whatever the prior, so that one
    threshold is best for all priors. One false alarm is added to those counted: none in a few hundred does not make
    a threshold infallible, and among several without any the one that finds most is preferred.
    """
    return np.where(tpr >= LEAST_SHARE, tpr / (fpr + 1 / negatives), -np.inf)


def choose(scores: Mapping[str, Floats], positive: Flags, negative: Flags, worth: Worth) -> Threshold:
    """The score and threshold of the largest worth; ``scores`` are those of the attacker's own models only."""
    options = []
    for name, values in scores.items():
        thresholds, fpr, tpr = roc(values[positive], values[negative])
        worths = worth(fpr, tpr, int(negative.sum()), int(positive.sum()))
        at = int(np.argmax(worths))
        options.append((float(worths[at]), Threshold(name, float(thresholds[at]))))
    return max(options, key=lambda option: option[0])[1]


# -- over models ------------------------------------------------------------------------------------------------------


def shares(alarms: Flags, among: Flags) -> Floats:
    """For every model (row), the share of alarms among the records of ``among``."""
    found: Floats = np.sum(alarms & among, axis=1) / among.sum(axis=1)
    return found


def t_interval(values: Floats, confidence: float) -> tuple[float, float]:
    """Student's interval for the mean of independent values: those of whole models, as rows of one model are not."""
    half = stdtrit(len(values) - 1, (1 + confidence) / 2) * values.std(ddof=1) / math.sqrt(len(values))
    return float(values.mean() - half), float(values.mean() + half)


def draw_predictive_values(
    ax: Axes | None, priors: Sequence[float], lines: Mapping[str, Sequence[float | None] | None], title: str
) -> Axes:
    """Predictive values against the prior on matplotlib axes (new ones if ``ax`` is None); bounds are dashed."""
    if ax is None:
        try:
            pyplot = importlib.import_module("matplotlib.pyplot")
        except ImportError:
            raise ImportError("plot needs matplotlib; run: pip install 'thresher[report]'") from None
        _, ax = pyplot.subplots()
    for label, values in lines.items():
        if values is not None:
            drawn = [math.nan if value is None else value for value in values]
            ax.plot(priors, drawn, "--" if "bound" in label else "-", marker="o", label=label)
    ax.set(xscale="log", ylim=(0, 1.05), xlabel="negatives for each positive", title=title)
    ax.set_ylabel("positive predictive value")
    ax.legend()
    return ax
