"""From counts to lower bounds: how much privacy an attacker has disproved, at a stated confidence.

The game: a fair coin chooses one of two neighbouring data sets, the mechanism runs on it, and the attacker, who sees
the outcome, guesses the coin or abstains. Let c and w be the chances of a right and of a wrong guess, E the event on
which the second data set is guessed and F the one on which the first is. Then 2c = P2(E) + P1(F) and 2w = P1(E) +
P2(F), and (epsilon, delta)-DP, used in both directions, says c <= e^epsilon w + delta; if E or F is empty, in one
direction, c <= e^epsilon w + delta/2. Everything here follows from that line; the events must have been fixed before
the runs that are counted.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc, betaincinv, expit, ndtri

from thresher.privacy.arrays import Floats
from thresher.privacy.conversions import gaussian_epsilon

__all__ = [
    "epsilon_lower",
    "gaussian_epsilon_lower",
    "mu_lower",
    "one_run_epsilon_lower",
    "one_run_p_value",
    "proportion_lower",
]

Counts = NDArray[Any] | int

GUESSING_SHARE = 0.1  # of the error probability: spent on how often a guess is made, which matters little


def proportion_lower(successes: Counts, trials: Counts, error: float) -> Floats:
    """Clopper and Pearson's lower bound on a probability; too large with chance at most ``error``."""
    k, n = np.asarray(successes, dtype=float), np.asarray(trials, dtype=float)
    with np.errstate(invalid="ignore"):
        bound = betaincinv(np.maximum(k, 1), n - np.maximum(k, 1) + 1, error)
    return np.where(k > 0, bound, 0.0)


def epsilon_lower(
    right: Counts, wrong: Counts, runs: int, delta: float | Floats, confidence: float
) -> Floats:  # fmt: skip
    """The largest epsilon that the counts disprove at ``delta``, 0 if none.

    Given that a guess is made (chance g = c + w) it is right with chance c/g <= (e^epsilon + delta/g) / (1 +
    e^epsilon). Guesses are independent runs, so c/g has a Clopper-Pearson bound p and, if delta is positive, g has one,
    each with its share of the error: epsilon >= log((p - delta/g) / (1 - p)).
    """
    right, guesses = np.asarray(right), np.asarray(right) + np.asarray(wrong)
    error = 1 - confidence
    share = GUESSING_SHARE if np.any(delta) else 0.0
    p = proportion_lower(right, guesses, (1 - share) * error)
    lost: Floats | float = 0.0
    if np.any(delta):
        often = proportion_lower(guesses, runs, share * error)
        lost = np.divide(delta, often, out=np.full_like(often, np.inf), where=often > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        epsilon = np.log(np.maximum(p - lost, 0.0)) - np.log1p(-p)
    bounds: Floats = np.maximum(np.nan_to_num(epsilon, nan=0.0, posinf=math.inf, neginf=0.0), 0.0)
    return bounds


def mu_lower(right: int, runs: int, confidence: float) -> float:
    """The largest mu for which the counts disprove mu-Gaussian DP, the attacker never abstaining.

    Telling N(0, 1) from N(mu, 1), nobody is right more often than Phi(mu/2): the trade-off function of mu-GDP is
    symmetric and concave, so c <= Phi(Phi^-1(w) + mu), and c + w = 1.
    """
    return max(0.0, 2 * float(ndtri(proportion_lower(right, runs, 1 - confidence))))


def gaussian_epsilon_lower(right: int, runs: int, delta: float, confidence: float) -> tuple[float, float]:
    """A lower bound on epsilon at ``delta`` if the release is Gaussian, and the mu it comes from.

    The assumption: some mu describes the whole trade-off between the two data sets, as it does for every composition of
    Gaussian releases. That one mu is disproved needs no assumption; that epsilon at a small delta follows from it does.
    """
    mu = mu_lower(right, runs, confidence)
    return (gaussian_epsilon(mu, delta) if mu > 0 else 0.0), mu


def one_run_epsilon_lower(right: int, guesses: int, canaries: int, delta: float, confidence: float) -> float:
    """The largest epsilon for which ``one_run_p_value`` still disproves (epsilon, delta)-DP, 0 if none."""
    if one_run_p_value(right, guesses, canaries, 0.0, delta) > 1 - confidence:
        return 0.0
    low, high = 0.0, 1.0
    while one_run_p_value(right, guesses, canaries, high, delta) <= 1 - confidence:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        disproved = one_run_p_value(right, guesses, canaries, middle, delta) <= 1 - confidence
        low, high = (middle, high) if disproved else (low, middle)
    return low


def one_run_p_value(right: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """The chance with which an (epsilon, delta)-DP run lets at least ``right`` of ``guesses`` about canaries be right.

    Steinke, Nasr and Jagielski 2023, Corollary 5.4: the coins of all canaries are independent and fair. Without delta
    the right guesses are stochastically at most B ~ Binomial(guesses, e^epsilon/(1 + e^epsilon)); delta adds at most
    2 delta canaries max_i P[right - i <= B < right] / i.
    """
    p = float(expit(epsilon))
    tail = 1.0 if right == 0 else float(bdtrc(right - 1, guesses, p))
    if delta == 0 or right == 0:
        return tail
    i = np.arange(1, right + 1)
    lower = np.where(i < right, bdtr(np.maximum(right - i - 1, 0), guesses, p), 0.0)
    near = (float(bdtr(right - 1, guesses, p)) - lower) / i
    return min(1.0, tail + 2 * delta * canaries * float(np.max(near)))
