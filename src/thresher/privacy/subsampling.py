"""The accountant's part for random batches: what a Gaussian release costs if only some rows, drawn anew, take part.

dp-accounting does the arithmetic (imported late, it takes seconds). Its traps: the Renyi accountant takes a noise
multiplier relative to the sensitivity of its neighbours, the privacy loss distribution one relative to a single row's
contribution; a fixed step of the loss grid is far too coarse for many tiny steps.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import logsumexp

from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Adjacency

__all__ = [
    "EXACT_ORDERS",
    "LEAST_DELTA",
    "Poisson",
    "Sampling",
    "fixed_size_rdp",
    "poisson_deltas",
    "poisson_epsilon",
    "poisson_rdp",
    "poisson_sd",
]

Sampling = Literal["poisson", "fixed"]
"""Every row with the same chance and independently; or so many rows, all subsets alike."""

LEAST_DELTA = 1e-9  # from here on convolutions are trusted: below, their round-off is not small against delta
ROUND_OFF, ROUND_OFF_PER_ROUND = 1e-11, 2e-16  # of delta in the convolutions: an FFT to the power of the rounds;
# against exact Gaussian curves, 2e-12 is the most seen for few rounds, and 6e-17 per round for many
POINTS_PER_SD = 8  # of the loss grid, per sd of one step's loss
COARSEST = 1e-3  # step of the loss grid
MOST_POINTS = 2**19  # of one step's loss
MOST_TOGETHER = 2**24  # of the widest loss, on the grid that the narrowest one needs; honest plans take MOST_POINTS
MOST_CELLS = 2**22  # of a quadrature
EXACT_ORDERS = (*range(2, 33), *np.geomspace(33, 4096, 36).astype(int).tolist())


class Poisson(NamedTuple):
    """``times`` Gaussian releases of sums over batches that hold each row with chance ``rate``."""

    times: int
    rate: float
    sd: float  # of the noise, over the sensitivity between neighbours that both hold their differing rows
    adjacency: Adjacency


@lru_cache(maxsize=4096)
def poisson_epsilon(parts: tuple[Poisson, ...], mu_squared: float, delta: float) -> float:
    """Smallest epsilon proved at ``delta`` for ``parts`` together with Gaussian releases of ``mu_squared``, if any.

    By privacy loss distributions, rounded so that epsilon is overstated (Doroshenko et al. 2022). Of neighbours, one
    has N(0, s^2) or, if the row is drawn, N(1, s^2); the other N(0, s^2) (add-remove) or, if its row is drawn,
    N(-1, s^2) (replace-one).
    """
    if not delta >= LEAST_DELTA:
        raise ValueError(f"delta={delta!r} is below {LEAST_DELTA:g}, where convolutions lose their digits; use RDP")
    round_off = _round_off(parts)
    if not _has_distribution(parts, mu_squared) or delta < 20 * round_off:
        return math.inf
    return float(_losses(parts, mu_squared).get_epsilon_for_delta(delta - round_off))


def poisson_deltas(parts: tuple[Poisson, ...], mu_squared: float, epsilons: Floats) -> Floats:
    """For each of ``epsilons``, a delta proved for the same releases, by the same distributions."""
    if not _has_distribution(parts, mu_squared):
        return np.ones_like(epsilons)
    order = np.argsort(epsilons)  # they must be ascending
    found = np.empty_like(epsilons)
    found[order] = _losses(parts, mu_squared).get_delta_for_epsilon(epsilons[order])
    return np.minimum(found + _round_off(parts), 1.0)


def _has_distribution(parts: tuple[Poisson, ...], mu_squared: float) -> bool:
    """Whether the losses fit on one grid: those of a stranger's certificate may be of sizes that take all memory."""
    if any(part.sd == 0 for part in parts) or math.isinf(mu_squared):
        return False
    mu = math.sqrt(mu_squared)
    widest = max(12 * mu + mu_squared / 2, *(_widest(part) for part in parts))
    return widest <= MOST_TOGETHER * min(_interval(part) for part in parts)


def _round_off(parts: tuple[Poisson, ...]) -> float:
    return ROUND_OFF + ROUND_OFF_PER_ROUND * sum(part.times for part in parts)


@lru_cache(maxsize=4)
def _losses(parts: tuple[Poisson, ...], mu_squared: float) -> Any:
    """The distribution of the privacy loss of all of them together."""
    interval = min(_interval(part) for part in parts)
    total: Any = None
    for part in parts:
        one = _loss(part.sd, part.rate, part.adjacency, interval)
        composed = one.self_compose(part.times) if part.times > 1 else one
        total = composed if total is None else total.compose(composed)
    if mu_squared > 0:
        total = total.compose(_loss(1 / math.sqrt(mu_squared), 1.0, parts[0].adjacency, interval))
    return total


def poisson_rdp(part: Poisson, orders: Floats) -> Floats:
    """The Renyi curve of ``part``: what its pair of mixtures has, by quadrature (both directions, the larger)."""
    return part.times * np.asarray(_mixture_rdp(part.rate, part.sd, part.adjacency, tuple(orders)))


@lru_cache(maxsize=1024)
def _mixture_rdp(rate: float, sd: float, adjacency: Adjacency, orders: tuple[float, ...]) -> tuple[float, ...]:
    """log E_Q[(P/Q)^a] / (a - 1): the trapezoid rule, whose error for such smooth integrands is next to nothing.

    Where an order's integrand lies beyond the grid, the release without sampling bounds it.
    """
    alphas, s = np.asarray(orders), sd * adjacency.contributions
    found = alphas / (2 * sd * sd)
    reach = max(8.0, min(512.0, 100 * s))
    step = min(s / 8, s * s / 2)
    if 2 * reach + 24 * s > step * MOST_CELLS:
        return tuple(found)  # next to no noise: without sampling it costs hardly more
    x = np.arange(-reach - 12 * s, reach + 1 + 12 * s, step)
    drawn, other = (np.logaddexp(math.log1p(-rate), math.log(rate) + (u * x - 0.5) / (s * s)) for u in (1, -1))
    other = other if adjacency is Adjacency.REPLACE_ONE else np.zeros_like(x)
    rest = math.log(step / (s * math.sqrt(2 * math.pi))) - x * x / (2 * s * s)
    for at in np.flatnonzero(alphas <= reach):
        a = alphas[at]
        moments = [logsumexp(a * p + (1 - a) * q + rest) for p, q in ((drawn, other), (other, drawn))]
        found[at] = min(found[at], max(0.0, *moments) / (a - 1))
    return tuple(found)


def poisson_sd(times: int, rate: float, adjacency: Adjacency, mu: float) -> float:
    """About the sd (over the sensitivity) with which releases over Poisson batches tell as much as N(0,1) and N(mu,1).

    By the central limit theorem of privacy losses (Dong, Roth and Su 2022): mu^2 is the number of steps times the
    chi-square distance of one, rate^2 (e^(1/s^2) - 1) or, for replace-one, 4 rate^2 sinh(1/s^2).
    """
    one = (mu / rate) ** 2 / times
    inverse = math.log1p(one) if adjacency is Adjacency.ADD_REMOVE else math.asinh(one / 4)
    return 1 / math.sqrt(inverse) / adjacency.contributions


def _loss(sd: float, rate: float, adjacency: Adjacency, interval: float) -> Any:
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

    relation = {
        Adjacency.ADD_REMOVE: NeighboringRelation.ADD_OR_REMOVE_ONE,
        Adjacency.REPLACE_ONE: NeighboringRelation.REPLACE_ONE,
    }
    return from_gaussian_mechanism(
        sd * adjacency.contributions,  # relative to one row's contribution
        value_discretization_interval=interval,
        sampling_prob=rate,
        neighboring_relation=relation[adjacency],
    )


def _interval(part: Poisson) -> float:
    """The step of the loss grid: a fraction of the sd of one step's loss, which is about rate * chi, or of its range.

    chi^2 = exp(1/s^2) - 1 is the chi-square distance of N(1, s^2) from N(0, s^2), s relative to one contribution.
    """
    s = part.sd * part.adjacency.contributions
    chi = math.sqrt(math.expm1(min(1 / (s * s), 50.0)))
    return min(max(part.rate * chi / POINTS_PER_SD, _widest(part) / MOST_POINTS), COARSEST)


def _widest(part: Poisson) -> float:
    """The range of the loss of the Gaussian release itself."""
    s = part.sd * part.adjacency.contributions
    return 12 / s + 1 / (2 * s * s)


@lru_cache(maxsize=4096)
def _fixed_size_cgf(batch: int, population: int, sd: float) -> tuple[float, ...]:
    """(order - 1) * RDP at the exact orders of one release."""
    from dp_accounting import GaussianDpEvent, NeighboringRelation, SampledWithoutReplacementDpEvent
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant(EXACT_ORDERS, NeighboringRelation.REPLACE_ONE)
    accountant.compose(SampledWithoutReplacementDpEvent(population, batch, GaussianDpEvent(sd)))
    return tuple((np.asarray(EXACT_ORDERS) - 1) * accountant.rdp)


def fixed_size_rdp(batch: int, population: int, sd: float, orders: Floats) -> Floats:
    """The Renyi curve of one Gaussian release of a sum over ``batch`` of ``population`` rows, for replace-one.

    ``sd`` is relative to the replace-one sensitivity (Wang, Balle and Kasiviswanathan 2019, Theorem 27). (order - 1) *
    RDP is convex in the order, so chords between exact orders overstate it; and sampling never costs more than none.
    """
    whole = orders / (2 * sd * sd)
    exact = np.array([1, *EXACT_ORDERS])
    chords = np.interp(orders, exact, [0.0, *_fixed_size_cgf(batch, population, sd)], right=np.inf)
    return np.minimum(whole, chords / (orders - 1))
