"""The accountant: what releases cost together, and what is left of a budget.

Everything is stated for a mechanism whose noise is measured in units of its own sensitivity, so nothing here
depends on the adjacency; the adjacency enters where a clip states its sensitivity (``thresher.privacy.sensitivity``).
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field, replace

import numpy as np

from thresher.privacy.arrays import Floats
from thresher.privacy.conversions import (
    gaussian_delta,
    gaussian_epsilon,
    order_proofs,
    rdp_deltas,
    rdp_epsilon,
    zcdp_epsilon,
)
from thresher.privacy.subsampling import (
    EXACT_ORDERS,
    LEAST_DELTA,
    Poisson,
    poisson_deltas,
    poisson_epsilon,
    poisson_rdp,
)

__all__ = ["Cost", "Filter"]

ORDERS: Floats = np.union1d(1 + np.geomspace(1e-3, 1e5, 400), EXACT_ORDERS)
"""The Renyi orders on which mixed plans are composed; any finite set of orders gives a valid bound."""

MOST_CONVOLVED = 200.0
"""The largest epsilon for which privacy losses are convolved: beyond, their range fills the memory."""


# -- composition ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """What one or more releases reveal, in every currency that simply adds up under adaptive composition.

    A currency in which a release has no finite price holds infinity. Releases over Poisson batches have no currency;
    they are kept apart, as they are, and the currencies price the rest. ``+`` composes; ``epsilon`` converts to
    (epsilon, delta) by whichever currency proves the least.

    Parameters
    ----------
    mu_squared : float
        In Gaussian DP: the whole is as hard to tell apart as N(0,1) and N(mu,1).
    rho : float
        In zero-concentrated DP.
    pure : float
        Epsilon at delta = 0.
    rdp : tuple of float
        In Renyi DP, at ORDERS.
    sampled : tuple of Poisson
        Releases over Poisson batches, as they are.
    lost : float
        The chance of events outside which all of this holds; it is paid for in delta.

    Examples
    --------
    >>> from thresher.accounting import Cost
    >>> total = Cost.gaussian(0.5) + Cost.pure_dp(0.1)
    >>> epsilon, proof = total.epsilon(1e-6)
    >>> proof
    'zCDP'
    """

    mu_squared: float = 0.0  # Gaussian DP: the whole is as hard to tell apart as N(0,1) and N(mu,1)
    rho: float = 0.0  # zero-concentrated DP
    pure: float = 0.0  # epsilon at delta = 0
    rdp: tuple[float, ...] = field(default=(0.0,) * len(ORDERS), repr=False)  # Renyi DP at ORDERS
    sampled: tuple[Poisson, ...] = ()  # releases over Poisson batches
    lost: float = 0.0  # the chance of events outside which all of this holds; it is paid for in delta

    @classmethod
    def gaussian(cls, mu_squared: float) -> Cost:
        """Gaussian releases with sum of (sensitivity/sd)^2 equal to ``mu_squared``."""
        rho = mu_squared / 2
        return cls(mu_squared, rho, math.inf if mu_squared > 0 else 0.0, tuple(rho * ORDERS))

    @classmethod
    def pure_dp(cls, epsilon: float, times: int = 1) -> Cost:
        """``times`` releases, each epsilon-DP: epsilon^2/2-zCDP each (Bun and Steinke 2016, Prop. 1.4)."""
        return cls._pure(epsilon, epsilon * epsilon / 2, times)

    @classmethod
    def bounded_range(cls, epsilon: float, times: int = 1) -> Cost:
        """``times`` exponential mechanisms, each epsilon-DP and epsilon^2/8-zCDP (Cesar and Rogers 2021)."""
        return cls._pure(epsilon, epsilon * epsilon / 8, times)

    @classmethod
    def _pure(cls, epsilon: float, rho: float, times: int) -> Cost:
        return cls(math.inf, times * rho, times * epsilon, tuple(times * np.minimum(rho * ORDERS, epsilon)))

    @classmethod
    def zcdp(cls, rho: float) -> Cost:
        """Releases known to be rho-zCDP together."""
        return cls(math.inf, rho, math.inf, tuple(rho * ORDERS))

    @classmethod
    def renyi(cls, rdp: Floats, lost: float = 0.0) -> Cost:
        """A release known by its Renyi curve at ORDERS only, outside events of chance ``lost``.

        Each law is (1 - lost) times one with this curve plus lost times another (Bun and Steinke 2016, Definition 8.1).
        """
        return cls(math.inf, math.inf, math.inf, tuple(rdp), lost=lost)

    @classmethod
    def poisson(cls, part: Poisson) -> Cost:
        """Gaussian releases of sums over Poisson batches."""
        return cls(sampled=(part,))

    @classmethod
    def unbounded(cls) -> Cost:
        """No noise, no bound."""
        return cls(math.inf, math.inf, math.inf, (math.inf,) * len(ORDERS))

    def __add__(self, other: Cost) -> Cost:
        rdp = tuple(map(operator.add, self.rdp, other.rdp))
        return Cost(
            self.mu_squared + other.mu_squared, self.rho + other.rho, self.pure + other.pure, rdp,
            tuple(sorted(self.sampled + other.sampled)), self.lost + other.lost,
        )  # fmt: skip

    @property
    def gaussian_mu(self) -> float:
        """The mu with which all of it is exactly as telling as N(0,1) against N(mu,1); infinite if there is none."""
        return math.inf if self.sampled or self.lost > 0 else math.sqrt(self.mu_squared)

    @property
    def curve(self) -> Floats:
        """The Renyi curve of all of it at ORDERS, releases over Poisson batches included."""
        return np.sum([np.asarray(self.rdp), *(poisson_rdp(part, ORDERS) for part in self.sampled)], axis=0)  # type: ignore[no-any-return]

    def deltas(self, epsilons: Floats) -> Floats:
        """A delta for each of ``epsilons`` at which all of it is (epsilon, delta)-DP."""
        if math.isfinite(self.gaussian_mu):
            return np.array([gaussian_delta(self.gaussian_mu, epsilon) for epsilon in epsilons])
        curve = self.curve
        proved = rdp_deltas(ORDERS, curve, epsilons)
        convolved = self.sampled and math.isfinite(self.mu_squared) and curve[0] < MOST_CONVOLVED
        return np.minimum(proved, poisson_deltas(self.sampled, self.mu_squared, epsilons)) if convolved else proved

    def epsilon(self, delta: float) -> tuple[float, str]:
        """The smallest epsilon any currency proves at ``delta``, and the name of that currency."""
        if self.lost > 0:
            inside = replace(self, lost=0.0)
            return inside.epsilon(delta - self.lost) if delta > self.lost else (math.inf, "no currency")
        if delta == 0:
            return (math.inf if self.sampled else self.pure), "pure composition"
        if not self.sampled:
            return _best(self._proofs(delta))
        proofs = {"RDP": rdp_epsilon(ORDERS, self.curve, delta)}
        if proofs["RDP"] > MOST_CONVOLVED:
            return _best(proofs)
        if math.isfinite(self.mu_squared) and delta >= LEAST_DELTA:
            proofs["privacy loss distributions"] = poisson_epsilon(self.sampled, self.mu_squared, delta)
        elif delta >= 2 * LEAST_DELTA:  # basic composition: epsilons and deltas add up
            rest, method = _best(self._proofs(delta / 2))
            proofs[f"privacy loss distributions, and {method}"] = poisson_epsilon(self.sampled, 0.0, delta / 2) + rest
        return _best(proofs)

    def _proofs(self, delta: float) -> dict[str, float]:
        """What each currency proves for all but the releases over Poisson batches."""
        proofs = {"exact Gaussian curve": gaussian_epsilon(math.sqrt(self.mu_squared), delta)}
        if math.isinf(self.mu_squared):
            proofs["zCDP"] = zcdp_epsilon(self.rho, delta)
            proofs["RDP"] = rdp_epsilon(ORDERS, np.asarray(self.rdp), delta)
            proofs["pure composition"] = self.pure
        return proofs


# -- spending that is decided as it goes ------------------------------------------------------------------------


ASIDE = 1e-3
"""The part of delta that a filter sets aside for events of small chance (``Cost.lost``) of later fits."""


@dataclass(frozen=True)
class Filter:
    """What may be spent where each fit is chosen when the answers of earlier ones are known.

    Then the smallest of several proofs is no proof: which one is smallest could depend on the answers. One Renyi order
    is fixed by epsilon and delta instead, the one at which most zCDP fits into the budget, and what is spent at this
    order alone may not exceed the cap that proves (epsilon, delta - aside) (Feldman and Zrnic 2021, Theorem 4.5).
    Events of small chance may not exceed ``aside`` together: a delta that moved between them and the cap as one goes
    would be spent on both, each where it matters. At delta = 0 pure epsilons add up, however they were chosen.

    Parameters
    ----------
    epsilon, delta : float
        What may be spent in all.
    first_lost : float
        The chance of events, in the first fit, outside which its price holds.

    Examples
    --------
    >>> from thresher.accounting import Cost, Filter
    >>> book = Filter(1.0, 1e-6)
    >>> spent = Cost.zcdp(0.01)
    >>> book.allows(spent, Cost.zcdp(0.001)), book.allows(spent, Cost.zcdp(1.0))
    (True, False)
    """

    epsilon: float
    delta: float
    first_lost: float = 0.0
    """The chance of such events in the first fit, which is chosen before there is an answer."""

    @property
    def aside(self) -> float:
        """The part of delta for events of small chance: nothing that follows an answer changes it."""
        return self.first_lost + ASIDE * max(0.0, self.delta - self.first_lost)

    @property
    def order(self) -> int:
        """The position among ORDERS of the one order that counts."""
        return int(np.argmax((self.epsilon - order_proofs(ORDERS - 1, np.zeros_like(ORDERS), self.delta)) / ORDERS))

    def allows(self, spent: Cost, cost: Cost) -> bool:
        """Whether ``cost`` may come on top of what was ``spent``.

        The first fit cannot depend on answers: any proof will do. If it takes the whole budget by a proof that is not
        the filter's, the filter allows nothing more and there is nothing to choose.
        """
        if spent == Cost() and cost.epsilon(self.delta)[0] <= self.epsilon:
            return True
        total = spent + cost
        if self.delta == 0:
            return total.epsilon(0.0)[0] <= self.epsilon
        return self._left(total) >= 0

    def largest(self, spent: Cost) -> float:
        """The largest epsilon, at this delta, of one more fit of Gaussian noise or of choices that is allowed."""
        if spent == Cost():
            return self.epsilon
        if self.delta == 0:
            return max(0.0, self.epsilon - spent.epsilon(0.0)[0])
        left = self._left(spent)
        return gaussian_epsilon(math.sqrt(2 * left), self.delta) * (1 - 1e-9) if left > 0 else 0.0

    def _left(self, total: Cost) -> float:
        """The zCDP that is left at the order; below 0 if there is none."""
        if not total.lost <= self.aside < self.delta:
            return -math.inf
        at = self.order
        cap = self.epsilon - float(order_proofs(ORDERS[at] - 1, np.zeros(()), self.delta - self.aside))
        return float((cap - total.curve[at]) / ORDERS[at])


# -- helpers ----------------------------------------------------------------------------------------------------


def _best(proofs: dict[str, float]) -> tuple[float, str]:
    method = min(proofs, key=lambda name: proofs[name])
    return proofs[method], method
