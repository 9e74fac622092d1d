"""What releases cost in the order in which they are asked, and how little noise that order allows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from thresher.privacy.accounting import Cost
from thresher.privacy.budget import Budget, is_whole
from thresher.privacy.composition import CELLS, Choice, Step, composed_delta
from thresher.privacy.profiles import SPECIAL
from thresher.privacy.releases import Release

__all__ = ["EXACT", "Order", "epsilon_in_order", "epsilon_of_sum", "is_order_of", "least_noise", "positions"]

Order = tuple[int, ...]
"""Positions among a plan's distinct releases, in the order of its questions; what is passed over is forfeited."""

EXACT = "exact composition"
MOST_STEPS = 300  # beyond, what adds up takes about six per cent more noise and no time
FARTHEST = 0.5  # that one step goes
MOST_EPSILON = 100.0  # beyond, ratios of chances leave the range of numbers, and nobody's privacy is left
MOST_BUDGET = MOST_EPSILON / 2  # with less noise a plan costs more in what adds up, which must not go beyond that
COARSE = (8.5, 16.5)  # cells with which a factor is looked for before it is priced in full
USUAL = -0.07  # logarithm of the factor that a search begins with
NEAR = 0.02  # of delta, from where the secant rule's next step is as good as there
STEEP, FLAT = -25.0, -1.0  # how fast log delta falls with the logarithms of noise and of epsilon: usually, and at least
WITHIN = 2e-5  # of delta: a factor is as small as that shows


def positions(releases: Sequence[Release], asked: Sequence[Release]) -> Order:
    """The order in which ``asked`` asks for ``releases``, for the "order" of a plan's settings.

    An algorithm that always asks in one public order says so, and its fits need less noise: the price of that order is
    exact, and the meter answers in no other. Questions may be left out. One that may ask in any order says nothing.

    Parameters
    ----------
    releases : sequence of Release
        Those of the plan.
    asked : sequence of Release
        The same once for every use, in the order of the questions.

    Returns
    -------
    tuple of int

    Examples
    --------
    >>> from thresher.privacy.pricing import positions
    >>> from thresher.privacy.releases import GaussianRestrictedGradient, GumbelSelection
    >>> picks, values = GumbelSelection.for_rho(0.1, times=3), GaussianRestrictedGradient.for_rho(0.1, times=3)
    >>> positions((picks, values), [picks, values] * 3)
    (0, 1, 0, 1, 0, 1)
    """
    at = {release: position for position, release in enumerate(dict.fromkeys(releases))}
    return tuple(at[release] for release in asked)


def is_order_of(releases: Sequence[Release], order: object) -> bool:
    """Whether ``order`` names every use of ``releases`` once."""
    if not isinstance(order, tuple) or not all(is_whole(at) for at in order):
        return False
    return Counter(order) == Counter(dict(enumerate(_uses(releases).values())))


def epsilon_in_order(
    releases: Sequence[Release], order: Order | None, budget: Budget, cells: float = CELLS
) -> tuple[float, str]:
    """What is proved at the budget's delta, and by which proof: by the currencies that add up where these keep the
    budget, else by the exact composition.

    Where the exact price is no more than the budget's epsilon, it is told as that. Any number of ``cells`` is proved.
    """
    cost = sum((release.cost() for release in releases), Cost())
    loose, method = cost.epsilon(budget.delta)
    if loose <= budget.epsilon or not _may_gain(cost, budget.delta, loose):
        return loose, method
    steps = _steps(tuple(releases), order)
    if steps is None:
        return loose, method
    inside = _left_of(budget.delta, cost)
    told = f"{EXACT}, {cells:g} cells"
    if _priced(steps, budget.epsilon, cells) <= inside:
        return budget.epsilon, told
    exact = _smallest_epsilon(steps, inside, loose, cells)
    return (exact, told) if exact < loose else (loose, method)


def epsilon_of_sum(total: Cost, parts: Sequence[float], delta: float) -> tuple[float, str]:
    """The same of several fits, each with its own price at its own delta: in the currencies that add up, or as the sum
    of their epsilons at the sum of their deltas."""
    epsilon, method = total.epsilon(delta)
    apart = math.fsum(parts)
    return (apart, "basic composition" if len(parts) > 1 else EXACT) if apart < epsilon else (epsilon, method)


def least_noise(releases: tuple[Release, ...], order: Order | None, budget: Budget) -> tuple[Release, ...]:
    """The same releases with all their noise as much smaller, by one factor, as the exact price leaves room for."""
    if not budget.epsilon <= MOST_BUDGET or budget.delta == 0:
        return releases
    factor = _least_factor(releases, order, budget)
    return releases if factor == 1 else tuple(release.with_noise(factor) for release in releases)


@lru_cache(maxsize=1024)
def _steps(releases: tuple[Release, ...], order: Order | None) -> tuple[Step, ...] | None:
    """The steps of all questions, the first asked first; None where there is no exact price.

    Without an order answers may be asked anywhere between the choices, which then must be all alike: as if all answers
    came first (docs/guarantees.md).
    """
    uses = _uses(releases)
    each = [release.steps for release in uses]
    counts = [count * len(steps or ()) for count, steps in zip(uses.values(), each, strict=True)]
    if None in each or not 1 < sum(counts) <= MOST_STEPS:
        return None
    if order is None:
        spread = [step for release in uses for step in (release.steps or ()) * uses[release]]
        choices = [step for step in spread if isinstance(step, Choice)]
        alike = len(set(choices)) <= 1
        return (*(step for step in spread if not isinstance(step, Choice)), *choices) if alike else None
    if not is_order_of(releases, order):
        return None
    return tuple(step for at in order for step in each[at] or ())


def _uses(releases: Sequence[Release]) -> Counter[Release]:
    """How often each distinct release may be asked for."""
    uses = Counter[Release]()
    for release in releases:
        uses[release] += release.times
    return uses


@lru_cache(maxsize=4096)
def _priced(steps: tuple[Step, ...], epsilon: float, cells: float = CELLS) -> float:
    return composed_delta(steps, epsilon, cells)


def _may_gain(cost: Cost, delta: float, loose: float) -> bool:
    """Gaussians alone have an exact price already; so has nothing at all, and without a price there is none."""
    return delta > cost.lost and 0 < loose <= MOST_EPSILON and math.isinf(cost.mu_squared) and not cost.sampled


@lru_cache(maxsize=1024)
def _least_factor(releases: tuple[Release, ...], order: Order | None, budget: Budget) -> float:
    """One for which the price was computed, by the secant rule in the logarithms of factor and delta."""
    cost = sum((release.cost() for release in releases), Cost())
    if not _may_gain(cost, budget.delta, cost.epsilon(budget.delta)[0]) or _steps(releases, order) is None:
        return 1.0
    inside = _left_of(budget.delta, cost)

    def excess(log_factor: float, cells: float) -> float:
        steps = _steps(tuple(release.with_noise(math.exp(log_factor)) for release in releases), order)
        assert steps is not None  # noqa: S101
        return _log_ratio(_priced(steps, budget.epsilon, cells), inside)

    coarse, slope = _zero(lambda at: excess(at, COARSE[0]), USUAL, STEEP)
    finer, slope = _zero(lambda at: excess(at, COARSE[1]), coarse, slope)
    # what a grid proves too much of falls with the square of its cells
    ahead = (COARSE[1] ** -2 - CELLS**-2) / (COARSE[0] ** -2 - COARSE[1] ** -2)
    found = _root(lambda at: excess(at, CELLS), finer + ahead * (finer - coarse), slope)
    return math.exp(found) if found is not None and found < 0 else 1.0


@lru_cache(maxsize=1024)
def _smallest_epsilon(steps: tuple[Step, ...], delta: float, loose: float, cells: float) -> float:
    """The least that was priced within ``delta``; infinite if none was."""
    found = _root(lambda at: _log_ratio(_priced(steps, math.exp(at), cells), delta), math.log(loose), STEEP)
    return math.inf if found is None else math.exp(found)


def _left_of(delta: float, cost: Cost) -> float:
    """What events of a small chance leave of ``delta``; that chance is known to SPECIAL of itself."""
    return delta - cost.lost * (1 + 4 * SPECIAL) if cost.lost > 0 else delta


def _log_ratio(delta: float, allowed: float) -> float:
    return math.log(max(delta, 1e-300) / allowed)


def _root(excess: Callable[[float], float], first: float, slope: float) -> float | None:
    """The lowest place where the falling function ``excess`` was found to be at most 0, which is not below -WITHIN if a
    dozen steps lead so near; None if it was found at none."""
    found = math.inf
    for at, value, _ in _secant(excess, first, slope, WITHIN / 2):
        found = min(found, at) if value <= 0 else found
        if -WITHIN <= value <= 0:
            break
    return found if math.isfinite(found) else None


def _zero(excess: Callable[[float], float], first: float, slope: float) -> tuple[float, float]:
    """About where ``excess`` is 0, and how steep it is there."""
    about = first, slope
    for at, value, steep in _secant(excess, first, slope, 0.0):
        about = at - value / steep, steep
        if abs(value) < NEAR:
            break
    return about


def _secant(
    excess: Callable[[float], float], at: float, slope: float, inside: float
) -> Iterator[tuple[float, float, float]]:
    """A dozen places, each aimed at where ``excess`` is -``inside``; what it is there; and how steep it was last.

    ``slope`` is a guess for the first step; the others follow the secant rule."""
    value = excess(at)
    for _ in range(12):
        yield at, value, slope
        step = max(-FARTHEST, min(FARTHEST, -(value + inside) / slope))
        moved = excess(at + step)
        if moved != value:
            slope = min((moved - value) / step, FLAT)
        at, value = at + step, moved
