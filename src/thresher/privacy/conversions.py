"""Conversions between what is measured: exact Gaussian curves, zCDP, Renyi divergences, and (epsilon, delta).

Inverse functions return the side of the bisection bracket that is safe: a multiplier or rho that fits the
budget, an epsilon that covers the cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import erfcx, ndtr

from thresher.privacy.arrays import Floats

__all__ = [
    "choice_epsilon",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "order_proofs",
    "rdp_deltas",
    "rdp_epsilon",
    "zcdp_epsilon",
    "zcdp_rho",
]

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


def order_proofs(beyond: Floats, rdp: Floats, delta: float) -> Floats:
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
    return max(0.0, float(np.min(order_proofs(orders - 1, rdp, delta))))


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
    return max(0.0, _least_over_orders(lambda beyond: order_proofs(beyond, rho * (1 + beyond), delta), rho, delta))


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
        lambda beyond: (order_proofs(beyond, np.zeros_like(beyond), delta) - epsilon) / (1 + beyond), near, delta
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


# -- helpers ----------------------------------------------------------------------------------------------------


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
