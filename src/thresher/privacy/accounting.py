"""The accountant: exact Gaussian curve, zCDP and RDP conversions, composition, calibration.

Everything is stated for a mechanism whose noise is measured in units of its own sensitivity, so nothing here
depends on the adjacency; the adjacency enters where a clip states its sensitivity (``thresher.vaults.clipping``).
Inverse functions return the side of the bisection bracket that is safe: a multiplier or rho that fits the
budget, an epsilon that covers the cost.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import erfcx, ndtr

from thresher.privacy.arrays import Floats
from thresher.privacy.subsampling import (
    EXACT_ORDERS,
    LEAST_DELTA,
    Poisson,
    poisson_deltas,
    poisson_epsilon,
    poisson_rdp,
)

__all__ = [
    "Cost",
    "Filter",
    "choice_epsilon",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "rdp_deltas",
    "rdp_epsilon",
    "zcdp_epsilon",
    "zcdp_rho",
]

ORDERS: Floats = np.union1d(1 + np.geomspace(1e-3, 1e5, 400), EXACT_ORDERS)
"""The Renyi orders on which mixed plans are composed; any finite set of orders gives a valid bound."""

MOST_CONVOLVED = 200.0
"""The largest epsilon for which privacy losses are convolved: beyond, their range fills the memory."""

_SQRT2 = math.sqrt(2)


# -- the Gaussian mechanism, exactly ----------------------------------------------------------------------------


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Smallest delta for which N(0,1) against N(mu,1) is (epsilon, delta)-indistinguishable.

    delta = Phi(-a) - e^epsilon Phi(-b) with a = epsilon/mu - mu/2, b = a + mu (Balle and Wang 2018, Theorem 8).
    Since b^2 - a^2 = 2 epsilon, the second term is exp(-a^2/2) erfcx(b/sqrt 2)/2: no overflow for any epsilon.

    Parameters
    ----------
    mu : float
        Sensitivity over standard deviation.
    epsilon : float
        At least 0.

    Returns
    -------
    float

    Examples
    --------
    >>> from thresher.accounting import gaussian_delta
    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    if mu <= 0:
        return 0.0
    if math.isinf(mu):
        return 1.0
    a = epsilon / mu - mu / 2
    b = epsilon / mu + mu / 2
    weight = math.exp(-a * a / 2) / 2
    if a > 0:
        return float(weight * (erfcx(a / _SQRT2) - erfcx(b / _SQRT2)))
    return float(ndtr(-a) - weight * erfcx(b / _SQRT2))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Smallest epsilon with which a Gaussian release of sensitivity/sd = ``mu`` is (epsilon, delta)-DP.

    Parameters
    ----------
    mu : float
        Sensitivity over standard deviation.
    delta : float
        Strictly between 0 and 1.

    Returns
    -------
    float

    Examples
    --------
    >>> from thresher.accounting import gaussian_epsilon
    >>> round(gaussian_epsilon(1.0, 1e-6), 3)
    4.887
    """
    _check_delta(delta)
    if not mu < math.inf:
        return math.inf
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    high = 1.0
    while gaussian_delta(mu, high) > delta:
        high *= 2
    return _bisect(lambda epsilon: gaussian_delta(mu, epsilon) > delta, 0.0, high)[1]


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest sensitivity/sd at which a Gaussian release is still (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : float
        Above 0; infinity allows everything.
    delta : float
        Strictly between 0 and 1.

    Returns
    -------
    float

    Examples
    --------
    >>> from thresher.accounting import gaussian_mu
    >>> round(gaussian_mu(1.0, 1e-6), 4)
    0.2367
    """
    _check_delta(delta)
    _check_epsilon(epsilon)
    if math.isinf(epsilon):
        return math.inf
    high = 1.0
    while gaussian_delta(high, epsilon) <= delta:
        high *= 2
    return _bisect(lambda mu: gaussian_delta(mu, epsilon) <= delta, 0.0, high)[0] * _inward(epsilon)


# -- zCDP and RDP -----------------------------------------------------------------------------------------------


def _proofs(beyond: Floats, rdp: Floats, delta: float) -> Floats:
    """rdp + log(1-1/a) - (log delta + log a)/(a-1) at orders a = 1 + beyond: each order proves an epsilon.

    Canonne, Kamath and Steinke 2020, Proposition 12, written so that orders next to 1 lose no digits.
    """
    proofs = rdp + np.log(beyond) - np.log1p(beyond) - (math.log(delta) + np.log1p(beyond)) / beyond
    return np.where(np.isnan(proofs), np.inf, proofs)


def rdp_epsilon(orders: Floats, rdp: Floats, delta: float) -> float:
    """Smallest epsilon that a Renyi curve given at ``orders`` proves at ``delta``.

    Parameters
    ----------
    orders : array
        Renyi orders, each above 1.
    rdp : array
        The divergence at each.
    delta : float
        Strictly between 0 and 1.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.accounting import rdp_epsilon
    >>> orders = np.linspace(1.5, 64.0, 200)
    >>> round(rdp_epsilon(orders, orders / 2, 1e-6), 3)
    5.222
    """
    _check_delta(delta)
    return max(0.0, float(np.min(_proofs(orders - 1, rdp, delta))))


def rdp_deltas(orders: Floats, rdp: Floats, epsilons: Floats) -> Floats:
    """For each of ``epsilons``, the smallest delta that a Renyi curve given at ``orders`` proves.

    By the same proposition; and no delta exceeds the total variation, for which the Kullback-Leibler divergence, no
    more than the curve at any order, has two bounds: sqrt(KL/2) (Pinsker) and sqrt(1 - e^-KL) (Bretagnolle, Huber).

    Parameters
    ----------
    orders : array
        Renyi orders, each above 1.
    rdp : array
        The divergence at each.
    epsilons : array
        Each at least 0.

    Returns
    -------
    array

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.accounting import rdp_deltas
    >>> orders = np.linspace(1.5, 64.0, 200)
    >>> bool((np.diff(rdp_deltas(orders, orders / 2, np.array([1.0, 2.0, 4.0]))) < 0).all())
    True
    """
    beyond = orders - 1
    powers = beyond * (rdp + np.log(beyond) - np.log(orders)) - np.log(orders)
    proved = np.exp(np.minimum(0.0, np.min(powers - np.outer(epsilons, beyond), axis=1)))
    least = float(np.min(rdp))
    return np.minimum(proved, min(math.sqrt(least / 2), math.sqrt(-math.expm1(-least))))  # type: ignore[no-any-return]


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Smallest epsilon that rho-zCDP proves at ``delta``: the minimum over all orders, not only a grid.

    Parameters
    ----------
    rho : float
        What was spent in zCDP.
    delta : float
        Strictly between 0 and 1.

    Returns
    -------
    float

    Examples
    --------
    >>> from thresher.accounting import zcdp_epsilon
    >>> round(zcdp_epsilon(0.5, 1e-6), 3)
    5.222
    """
    _check_delta(delta)
    if rho <= 0:
        return 0.0
    if not rho < math.inf:
        return math.inf
    return max(0.0, _least_over_orders(lambda beyond: _proofs(beyond, rho * (1 + beyond), delta), rho, delta))


def _least_over_orders(values: Callable[[Floats], Floats], rho: float, delta: float) -> float:
    """The least of ``values`` at orders a = 1 + beyond.

    Near the optimum (a-1)^2 ~ log(1/delta)/rho; nested grids around it reach machine precision, and as every order is a
    valid proof a coarse search could only overstate the cost.
    """
    centre, width = 0.5 * math.log(max(-math.log(delta), 1e-3) / rho), 12.0
    best = math.inf
    for _ in range(8):
        logs = np.linspace(centre - width, centre + width, 65)
        found = values(np.exp(logs))
        at = int(np.argmin(found))
        best = min(best, float(found[at]))
        centre, width = float(logs[at]), width / 16
    return best


def zcdp_rho(epsilon: float, delta: float) -> float:
    """Largest rho that is proved (epsilon, delta)-DP by ``zcdp_epsilon``.

    Parameters
    ----------
    epsilon : float
        Above 0; infinity allows everything.
    delta : float
        Strictly between 0 and 1.

    Returns
    -------
    float

    Examples
    --------
    >>> from thresher.accounting import zcdp_epsilon, zcdp_rho
    >>> round(zcdp_epsilon(zcdp_rho(1.0, 1e-6), 1e-6), 9)
    1.0
    """
    _check_delta(delta)
    _check_epsilon(epsilon)
    if math.isinf(epsilon):
        return math.inf
    # An order a proves rho a + c(a), c(a) its proof at rho = 0: that is epsilon at rho = (epsilon - c(a)) / a. The rho
    # of the Gaussian mechanism, mu^2 / 2, is above the answer and close enough to tell where the best order is.
    near = gaussian_mu(epsilon, delta) ** 2 / 2
    largest = -_least_over_orders(
        lambda beyond: (_proofs(beyond, np.zeros_like(beyond), delta) - epsilon) / (1 + beyond), near, delta
    )
    return max(0.0, largest) * _inward(epsilon)


def choice_epsilon(scale: float) -> float:
    """The pure epsilon of taking the largest of scores with Gumbel or Laplace noise of this scale over sensitivity.

    One score may go up while another goes down, so twice what one score would reveal (erratum E-15).

    Parameters
    ----------
    scale : float
        Of the noise, over how far one row moves a score.

    Returns
    -------
    float

    Examples
    --------
    >>> from thresher.accounting import choice_epsilon
    >>> choice_epsilon(4.0)
    0.5
    """
    return 2 / scale


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
        return int(np.argmax((self.epsilon - _proofs(ORDERS - 1, np.zeros_like(ORDERS), self.delta)) / ORDERS))

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
        cap = self.epsilon - float(_proofs(ORDERS[at] - 1, np.zeros(()), self.delta - self.aside))
        return float((cap - total.curve[at]) / ORDERS[at])


# -- helpers ----------------------------------------------------------------------------------------------------


def _best(proofs: dict[str, float]) -> tuple[float, str]:
    method = min(proofs, key=lambda name: proofs[name])
    return proofs[method], method


def _bisect(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Shrink [low, high] around the point where ``holds`` turns false, to adjacent floating-point numbers."""
    while True:
        # Geometric steps once the bracket is away from zero: tiny answers (1e-9) keep full relative precision.
        middle = math.sqrt(low * high) if low > 0 else high / 16
        if not low < middle < high:
            return low, high
        if middle == 0.0:
            return low, high
        if holds(middle):
            low = middle
        else:
            high = middle


def _inward(epsilon: float) -> float:
    """Calibrated values step inside the budget by more than the round-off of the way back.

    Both conversions are differences of terms that need not be small, so a tiny epsilon comes back with fewer digits.
    """
    return 1 - 4e-12 - 1e-15 / epsilon


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise ValueError(
            f"delta={delta!r} must lie strictly between 0 and 1: Gaussian noise and zCDP have no pure guarantee; use a "
            "value far below 1/n, or None for 1/n^2"
        )


def _check_epsilon(epsilon: float) -> None:
    if not epsilon > 0:
        raise ValueError(f"epsilon={epsilon!r} must be above 0")
