"""What the worst known pair of neighbours gives away of a plan: computed, no chance is involved.

The price of choices and Gaussian answers in a known order is attained by mechanisms that exist: an exponential
mechanism with two outcomes, whose likelihood ratio is e^-t or e^(eta - t), and Gaussian noise on what moves as far as
it may. With every t chosen beforehand, the ratio of a whole plan is a product of powers, and delta a finite sum: a
lower bound on the delta of everything that has the plan's price.

Of joint noise the law is known outcome by outcome: two neighbours that are as far apart as they may be, in one
coordinate, need a delta that is a finite sum, too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr
from scipy.stats import binom

from thresher.audit.joint_witness import log_chances
from thresher.privacy.arrays import Floats
from thresher.privacy.composition import Choice, Step
from thresher.privacy.plan import Plan
from thresher.privacy.profiles import GaussianAnswer
from thresher.privacy.releases import JointRelease

__all__ = ["known_delta", "known_joint_delta", "steps_of"]

PLACES = 41  # where t may lie in the range of a choice
REACH = 40.0  # standard deviations of joint noise, beyond which no outcome counts
FEWEST = 1e-30  # what is less likely is left out: the bound only falls


def steps_of(plan: Plan) -> list[Step]:
    """What a plan asks, one by one; nothing that is not a choice or a Gaussian answer."""
    steps = [step for release in plan.releases for step in (release.steps or ()) * release.times]
    return [step for step in steps if isinstance(step, (Choice, GaussianAnswer))]


def known_delta(steps: Sequence[Step], epsilon: float) -> float:
    """The delta that the worst of these pairs needs at ``epsilon``: none that is private has a smaller one."""
    mu = math.sqrt(math.fsum(step.mu**2 for step in steps if isinstance(step, GaussianAnswer)))
    choices = Counter(step.eta for step in steps if isinstance(step, Choice))
    return max(_delta(choices, mu, epsilon, part) for part in np.linspace(0.02, 0.98, PLACES))


def known_joint_delta(release: JointRelease, epsilon: float) -> float:
    """The delta that one use of joint noise needs at ``epsilon``, where neighbours are whole grid steps apart."""
    reach = math.ceil(REACH * release.law.sd)
    at = np.arange(-reach, reach + 1)
    here, there = (np.exp(log_chances(at - apart, release.law)) for apart in (0, math.floor(release.shift)))
    return float(np.maximum(there - math.exp(epsilon) * here, 0.0).sum())


def _delta(choices: Counter[float], mu: float, epsilon: float, part: float) -> float:
    """With t = part * eta for every choice."""
    losses, chances = np.zeros(1), np.ones(1)
    for eta, times in choices.items():
        t = part * eta
        upper = math.expm1(t) / math.expm1(eta)  # the chance of the ratio e^(eta - t), as the mean ratio is 1
        high = np.arange(times + 1)
        losses = np.add.outer(losses, times * t - high * eta).ravel()
        chances = np.multiply.outer(chances, binom.pmf(high, times, upper)).ravel()
        losses, chances = losses[chances > FEWEST], chances[chances > FEWEST]
    return float(chances @ _gaussian(mu, epsilon - losses))


def _gaussian(mu: float, x: Floats) -> Floats:
    """H_{e^x} of N(mu, 1) against N(0, 1)."""
    if mu == 0:
        return -np.expm1(np.minimum(x, 0.0))
    with np.errstate(over="ignore", invalid="ignore"):
        tails: Floats = ndtr(mu / 2 - x / mu) - np.exp(np.minimum(x, 700.0)) * ndtr(-mu / 2 - x / mu)
    return np.clip(np.nan_to_num(tails), 0.0, 1.0)
