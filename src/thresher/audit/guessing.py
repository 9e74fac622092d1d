"""The rule for guessing which of two data sets an outcome is of: learnt on runs that are not counted."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from thresher.audit.bounds import epsilon_lower
from thresher.audit.cases import Claim
from thresher.privacy.arrays import Floats, Integers

__all__ = ["Event", "best_event", "learnt_scores"]

THRESHOLDS = 40  # tried at each end


@dataclass(frozen=True)
class Event:
    """The rule for guessing: the second data set if score >= high, the first if score < low, else neither.

    Parameters
    ----------
    low, high : float
        Where guesses begin; infinite if that side is never guessed.

    Examples
    --------
    >>> from thresher.audit import Event
    >>> print(Event(float("-inf"), 2.0))
    second if the score is at least 2
    """

    low: float
    high: float

    def counts(self, coins: Integers, scores: Floats) -> tuple[int, int]:
        """Right and wrong guesses."""
        second, first = scores >= self.high, scores < self.low
        right = np.sum(second & (coins == 1)) + np.sum(first & (coins == 0))
        return int(right), int(np.sum(second) + np.sum(first) - right)

    @property
    def directions(self) -> float:
        """Of the two in which the claim is used, how many: a delta is lost in each."""
        return float((self.high < math.inf) + (self.low > -math.inf))

    def __str__(self) -> str:
        sides = []
        if self.high < math.inf:
            sides.append(f"second if the score is at least {self.high:.4g}")
        if self.low > -math.inf:
            sides.append(f"first if it is below {self.low:.4g}")
        return ", ".join(sides) or "no guess"


def learnt_scores(outcomes: Floats, coins: Integers) -> Floats:
    """The linear score that best separates the outcomes of the runs that are not counted.

    Beside every value it may use whether that value is zero, which is how a support gives itself away.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    outcomes = np.clip(np.nan_to_num(outcomes), -1e100, 1e100)
    features = np.hstack([outcomes, outcomes != 0])
    if len(np.unique(coins)) < 2:
        raise ValueError(f"runs={4 * len(coins)} is too few to learn from; play at least a few hundred times")
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(features[: len(coins)], coins)
    scores: Floats = model.decision_function(features)
    return scores


def best_event(coins: Integers, scores: Floats, claim: Claim, confidence: float, gaussian: bool | None) -> Event:
    """The rule that would have given the highest bound on these runs, which are not counted.

    Tried are guesses at both ends of the scores, as many on each side, at one end only, and always. Of many rules the
    best one was also lucky: so all are judged at a confidence that would hold for all of them at once, and with one
    more wrong guess than they made.
    """
    split = _best_split(coins, scores)
    if gaussian:
        return Event(split, split)
    tails = np.geomspace(1 / len(scores), 0.5, THRESHOLDS)
    high = np.quantile(scores, 1 - tails, method="nearest")
    low = np.minimum(np.nextafter(np.quantile(scores, tails, method="nearest"), np.inf), high)
    never = np.full(THRESHOLDS, np.inf)
    # the split stands first and wins ties: it lies in the middle of a gap, the others at its edges
    lows, highs = np.concatenate([[split], low, -never, low]), np.concatenate([[split], high, high, never])
    first, second = np.sort(scores[coins == 0]), np.sort(scores[coins == 1])
    right = len(second) - np.searchsorted(second, highs) + np.searchsorted(first, lows)
    wrong = len(first) - np.searchsorted(first, highs) + np.searchsorted(second, lows)
    strict = 1 - (1 - confidence) / len(lows)
    deltas = claim.delta * ((lows > -np.inf) * 0.5 + (highs < np.inf) * 0.5)
    best = int(np.argmax(epsilon_lower(right, wrong + 1, len(scores) + 1, deltas, strict)))
    return Event(float(lows[best]), float(highs[best]))


def _best_split(coins: Integers, scores: Floats) -> float:
    """The threshold, halfway between two scores, at which most guesses are right if none is withheld."""
    order = np.argsort(scores, kind="stable")
    ranked, second = scores[order], coins[order] == 1
    right = np.cumsum(~second)[:-1] + np.sum(second) - np.cumsum(second)[:-1]
    at = int(np.argmax(np.where(ranked[1:] > ranked[:-1], right, -1)))
    return float((ranked[at] + ranked[at + 1]) / 2)
