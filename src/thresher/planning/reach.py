"""How much epsilon, or how many rows, an error needs: searched by simulation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from thresher.algorithms import Algorithm
from thresher.planning.forecast import DRAWS, NOT_PRIVATE, SIGNAL, Spread, predict_cases, prepare_simulation
from thresher.planning.simulate import LARGEST, Estimator, SimulatedCase

__all__ = ["Over", "Reach", "least"]

Over = Literal["epsilon", "rows"]
Measure = Literal["error", "direction"]
Errors = Mapping[float, Spread]

EPSILONS = (1 / 64, 64.0)
FEWEST_ROWS = 20
STEP = 2.0
FINE = 1.5  # no two values tried within the bracket are further apart in the end
SURE = 2.0  # standard errors


@dataclass(frozen=True)
class Reach:
    """Where an algorithm's mean error falls to ``error``.

    At ``low`` it is above by two standard errors, at ``high`` below by two: each end is wrong with a chance of about
    2 %. No ``low``: even the least value tried is enough. No ``high``: even the largest, ``tried[1]``, may not be.
    ``about`` is where a line through the means next to it, both axes logarithmic, crosses the error.

    Attributes
    ----------
    algorithm : str
        Its name.
    over : {"epsilon", "rows"}
        What was varied.
    error : float
        What was asked for.
    low, high, about : float or None
        The answer.
    tried : pair of float
        The least and the largest value tried.
    """

    algorithm: str
    over: Over
    error: float
    low: float | None
    high: float | None
    about: float | None
    tried: tuple[float, float]

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


def least(
    estimator: Estimator,
    n_samples: int,
    n_features: int,
    error: float,
    *,
    over: Over = "epsilon",
    measure: Measure = "error",
    signal: float = SIGNAL,
    algorithms: Sequence[str | Algorithm] = (),
    draws: int = DRAWS,
    random_state: int = 0,
    n_jobs: int = -1,
    verbose: int = 0,
) -> tuple[Reach, ...]:
    """The least epsilon (at ``n_samples`` rows) or number of rows (at the estimator's epsilon) for a mean error.

    Each algorithm is tried at the value given, then at half or double of it until the error lies clearly on either
    side, and in between; larger tables than 25 million cells are not tried. All values share their draws.

    Parameters
    ----------
    estimator : SparseRegressor or SparseClassifier
        The public facts: sparsity, bounds, budget, adjacency.
    n_samples, n_features : int
        The shape.
    error : float
        The mean error that is asked for, between 0 and 1.
    over : {"epsilon", "rows"}, optional
        What is varied.
    measure : {"error", "direction"}, optional
        Which error of a ``thresher.planning.Prediction`` is meant.
    signal : float, optional
        The share of variance that the true features explain.
    algorithms : sequence of str or algorithms, optional
        By default the estimator's own, or every private one if that is "auto".
    draws : int, optional
        How many tables.
    random_state : int, optional
        The same number gives the same answer.
    n_jobs : int, optional
        Processes; -1 for all cores.
    verbose : int, optional
        Whether bars show the progress.

    Returns
    -------
    tuple of Reach
        One for each algorithm.

    Examples
    --------
    >>> from thresher import SparseRegressor
    >>> from thresher.planning import least
    >>> model = SparseRegressor(2, algorithm="pursuit", feature_bound=1.0, target_bound=3.0)
    >>> (rows,) = least(model, 1000, 20, 0.3, over="rows", draws=5, n_jobs=1)
    >>> rows.low < rows.about < rows.high
    True
    """
    if not 0 < error < 1:
        raise ValueError(f"error={error!r} must lie strictly between 0 and 1, which is the error of the zero model")
    if over not in ("epsilon", "rows"):
        raise ValueError(f"over={over!r} must be 'epsilon' or 'rows'")
    if measure not in ("error", "direction"):
        raise ValueError(f"measure={measure!r} must be 'error' or 'direction'")
    simulation = prepare_simulation(
        estimator, n_samples, n_features, signal=signal, algorithms=algorithms, draws=draws, random_state=random_state,
        n_jobs=n_jobs, verbose=verbose,
    )  # fmt: skip
    limits = EPSILONS if over == "epsilon" else (float(FEWEST_ROWS), LARGEST / n_features)
    start = min(max(float(estimator.epsilon), limits[0]), limits[1]) if over == "epsilon" else float(n_samples)
    tried: dict[str, dict[float, Spread]] = {name: {} for name in simulation.algorithms if name != NOT_PRIVATE}
    values = dict.fromkeys(tried, start)
    while values:
        cases = [
            SimulatedCase(name, n_samples, value)
            if over == "epsilon"
            else SimulatedCase(name, int(value), float(estimator.epsilon))
            for name, value in values.items()
        ]
        for found in predict_cases(simulation, cases):
            tried[found.algorithm][values[found.algorithm]] = getattr(found, measure)
        following = {name: next_value(tried[name], error, limits) for name in values}
        values = {
            name: value if over == "epsilon" else float(round(value))
            for name, value in following.items()
            if value is not None
        }
    return tuple(_answer(name, over, error, seen) for name, seen in tried.items())


def next_value(tried: Errors, error: float, limits: tuple[float, float]) -> float | None:
    """What to try next, or nothing if the error is bracketed as closely as it will be."""
    low, high = _bracket(tried, error)
    if high is None:
        up = max(tried) * STEP
        return up if up <= limits[1] else None
    if low is None:
        down = min(tried) / STEP
        return down if down >= limits[0] else None
    inside = sorted(value for value in tried if low <= value <= high)
    return next((math.sqrt(a * b) for a, b in itertools.pairwise(inside) if b / a > FINE), None)


def _bracket(tried: Errors, error: float) -> tuple[float | None, float | None]:
    """The least value that clearly is enough, and the largest below it that clearly is not."""
    enough = [value for value, at in tried.items() if at.mean + SURE * at.standard_error <= error]
    high = min(enough, default=None)
    short = [value for value, at in tried.items() if at.mean - SURE * at.standard_error > error]
    return max((value for value in short if high is None or value < high), default=None), high


def _answer(name: str, over: Over, error: float, tried: Errors) -> Reach:
    low, high = _bracket(tried, error)
    return Reach(name, over, error, low, high, _first_crossing(tried, error), (min(tried), max(tried)))


def _first_crossing(tried: Errors, error: float) -> float | None:
    """Where the means fall to the error for the first time, if they do."""
    for a, b in itertools.pairwise(sorted(tried)):
        above, below = tried[a].mean, tried[b].mean
        if above > error >= below:
            return float(a * (b / a) ** (math.log(above / error) / math.log(above / below)))
    return None
