"""What an answer gives away: its privacy profile, the most that H_{e^y}(P||Q) = sup_S P(S) - e^y Q(S) can be.

Round-off goes upwards: every step adds a bound on its own, so that what is computed stays an upper bound. Sums,
products, quotients and roots are taken to be within 2^-53, exp, expm1 and tanh within 2^-50, erfcx and ndtr within half
of ``SPECIAL`` (tests compare all of them with mpmath); the rest is proved in docs/guarantees.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from scipy.special import erfcx, ndtr

from thresher.privacy.arrays import Floats

__all__ = ["Answer", "GaussianAnswer", "PureAnswer", "TiltedAnswer"]

LEAST = 1e-9  # what reveals less is taken for this
SPECIAL = 1e-13
SMALLEST = 1e-300  # more than all that underflows
UNIT = 2.0**-52
MOST_LOSS = 300.0  # beyond, likelihood ratios leave the range of numbers

MOVES = 64
"""Parts of the way of a gradient, for what its Jacobian costs; any number is proved."""


class Answer(Protocol):
    """What has a profile: all that is known of it is k(y), at least H_{e^y} between any two neighbours."""

    def excess(self, y: Floats) -> Floats:
        """k(y) - (1 - e^y)+, not less than 0, and falling on both sides of 0."""
        ...

    @property
    def rho(self) -> float:
        """How far it reaches, as zCDP measures it."""
        ...


@dataclass(frozen=True)
class GaussianAnswer:
    """Gaussian noise of standard deviation 1 on what moves by at most ``mu``."""

    mu: float

    @property
    def rho(self) -> float:
        return self.mu**2 / 2

    def excess(self, y: Floats) -> Floats:
        """For y < 0 it is e^y times that at -y, as N(0,1) and N(mu,1) are each other's mirror image."""
        return np.exp(np.minimum(y, 0.0)) * _gaussian_tail(np.abs(y), self.mu)


@dataclass(frozen=True)
class PureAnswer:
    """Anything that is epsilon-DP: no profile is above that of randomised response."""

    epsilon: float

    @property
    def rho(self) -> float:
        return self.epsilon**2 / 2

    def excess(self, y: Floats) -> Floats:
        most = self.epsilon * (1 + 4 * UNIT)
        beyond = np.exp(np.minimum(y, 0.0)) * -np.expm1(np.minimum(np.abs(y) - most, 0.0))
        return beyond / (1 + math.exp(-most)) * (1 + SPECIAL)


@dataclass(frozen=True)
class TiltedAnswer:
    """What is found with a Gaussian tilt in the objective, whose noise hides a shift of ``mu`` and whose Jacobians
    differ by a factor of at most e^jacobian between neighbours.

    Two bounds (docs/guarantees.md). The loss is at most jacobian + mu^2/2 + mu S in law (``_summed``). And no row can
    spend both at one place: its Jacobian is more than 1 only while its gradient moves, at most by 2 clip (``_moving``).
    """

    jacobian: float
    mu: float

    @property
    def rho(self) -> float:
        return self.mu**2 / 2  # beside the jacobian

    def excess(self, y: Floats) -> Floats:
        """The smaller bound. For y < 0 it is e^y times that at -y, as neighbours are so either way round."""
        far = np.abs(y)
        apart = self._summed(far, 0.0) + self._moving(far)
        return np.exp(np.minimum(y, 0.0)) * np.minimum(self._summed(far, self.jacobian), apart) * (1 + 20 * SPECIAL)

    def _summed(self, y: Floats, jacobian: float) -> Floats:
        """E (1 - e^(y - loss))+ for y >= 0, the integral of e^(y - l) P(loss > l) over l from y, with the loss jacobian
        + mu^2/2 + mu S.

        S = (|Z1| + |Z2|)/2, Z1 and Z2 standard normal, of a correlation that nobody knows. ``_tail_of_means`` is not
        below P(S > s) for any correlation, so it is the tail of an S that S does not exceed in law.
        """
        least = (jacobian + self.mu**2 / 2) * (1 + 8 * UNIT)
        values = self._beyond(np.maximum(y - least - 8 * UNIT * np.abs(y), 0.0) / self.mu * (1 - 4 * UNIT))
        summed: Floats = -np.expm1(np.minimum(y - least, 0.0)) + np.exp(np.minimum(y - least, 0.0)) * values
        return summed * (1 + 20 * SPECIAL)

    def _moving(self, y: Floats) -> Floats:
        """What the Jacobian adds to the bound without it: 2/(1 - e^-jacobian) density(0) times the integral, for d from
        mu/2 to mu, of C e^(-l (y - jacobian)) (e^(l (l+1) d^2/2) + e^(l (l+1) (mu-d)^2/2)), C = l^l / (1+l)^(l+1).

        Any l > 0 will do, one for each d; in d both terms are convex, so a chord is not below them.
        """
        jacobian = max(self.jacobian, LEAST) * (1 + 8 * UNIT)
        nodes = np.linspace(self.mu / 2, self.mu, MOVES + 1) * (1 + 8 * UNIT)
        left = (y - jacobian - 8 * UNIT * (np.abs(y) + jacobian))[:, None]
        lower, upper = nodes[:-1], nodes[1:]
        rest = np.maximum(left, SMALLEST)
        middle = (lower + upper) / 2
        best = (rest + np.sqrt(rest**2 + 4 * middle**2)) / (2 * middle**2) - 0.5  # or nearly so
        order = np.maximum(best, LEAST)
        first = -order * (np.log1p(1 / order) + rest) - np.log1p(order)
        ends = np.zeros(())
        for d in (lower, upper, nodes[-1] - lower, nodes[-1] - upper):
            ends = ends + np.exp(np.minimum(first + order * (order + 1) * d**2 / 2, MOST_LOSS))
        moving = (ends / 2 * np.diff(nodes)).sum(axis=1) * math.sqrt(2 / math.pi) / -math.expm1(-jacobian)
        return np.where(left[:, 0] > 0, moving * (1 + 100 * SPECIAL) + SMALLEST, math.inf)

    def _beyond(self, s: Floats) -> Floats:
        """The integral of mu e^(-mu (t - s)) P(S > t) over t from s."""
        places, tails = _tail_of_means()
        whole = _normal_beyond(np.maximum(s, places[-1]), self.mu)
        widths = self.mu * np.diff(places)[::-1]
        at_places = [float(_normal_beyond(places[-1:], self.mu)[0])]
        for lost, keep, tail in zip(-np.expm1(-widths), np.exp(-widths), tails[::-1], strict=True):
            at_places.append(lost * tail + keep * at_places[-1])
        at_place = np.array(at_places[::-1])
        i = np.minimum(np.searchsorted(places, s, side="right") - 1, len(tails) - 1)
        rest = np.maximum(places[i + 1] - s, 0.0)
        inside = -np.expm1(-self.mu * rest) * tails[i] + np.exp(-self.mu * rest) * at_place[i + 1]
        return np.where(s < places[-1], inside, whole) * (1 + 20 * SPECIAL)


def _gaussian_tail(y: Floats, mu: float) -> Floats:
    """H_{e^y} of N(mu,1) against N(0,1) for y >= 0, not less than it."""
    return _tails_apart(y / mu - mu / 2, y / mu + mu / 2)


def _normal_beyond(s: Floats, mu: float) -> Floats:
    """The integral of mu e^(-mu (t - s)) P(|Z| > t) over t from s, not less than it."""
    return 2 * _tails_apart(s, s + mu)


def _tails_apart(a: Floats, b: Floats) -> Floats:
    """P(Z > a) - e^((b^2 - a^2)/2) P(Z > b) for a < b, by tail-to-density ratios, which lose nothing."""
    density = np.exp(-np.square(a) / 2) / 2
    far = erfcx(b / math.sqrt(2)) * (1 - SPECIAL)
    near = np.where(a > 0, density * erfcx(np.maximum(a, 0.0) / math.sqrt(2)), ndtr(-a)) * (1 + SPECIAL)
    tail: Floats = np.maximum(near - density * far, 0.0) * (1 + 20 * SPECIAL) + SMALLEST
    return tail


@lru_cache(maxsize=1)
def _tail_of_means() -> tuple[Floats, Floats]:
    """Places s_0 = 0 .. s_m = sqrt(3), and for each cell between them a number that P((|Z1| + |Z2|)/2 > s) does not
    exceed, whatever the correlation; beyond, P(|Z| > s) is one (docs/guarantees.md).

    (|Z1| + |Z2|)/2 = max(sqrt(w) |X|, sqrt(1-w) |Y|), X and Y independent and w from 0 to 1; by symmetry from 1/2.
    P(sqrt(w) |X| > s) grows with w, so a cell of w is bounded by its ends; and both fall with s.
    """
    places = np.linspace(0.0, math.sqrt(3) * (1 + 4 * UNIT), 513)
    w = np.linspace(0.5, 1.0, 513)
    with np.errstate(divide="ignore", invalid="ignore"):
        s = places[:-1, None]
        more = np.minimum(2 * ndtr(-s / np.sqrt(w[1:])) * (1 + SPECIAL), 1.0)
        less = np.minimum(2 * ndtr(-s / np.sqrt(1 - w[:-1])) * (1 + SPECIAL), 1.0)
    return places, np.max(more + less * (1 - more), axis=1) * (1 + SPECIAL)
