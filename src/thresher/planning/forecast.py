"""What every algorithm would reach on a table of a public shape, by simulation. Needs no data and spends nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Self, TypedDict, Unpack

import numpy as np
from sklearn.base import clone

from thresher.algorithms import IGHT, REGISTRY, Algorithm
from thresher.models.estimator import design_of
from thresher.models.sparse import SparseClassifier, SparseRegressor
from thresher.planning.simulate import Estimator, Run, SimulatedCase, Simulation

__all__ = [
    "DRAWS", "LEVEL", "NOT_PRIVATE", "PRIVATE", "SIGNAL", "Forecast", "Prediction", "SimulationSettings", "Spread",
    "chance_of_one_run", "forecast", "predict_cases", "prepare_simulation",
]  # fmt: skip

DRAWS = 19
"""Draws unless asked for others: the fewest whose range holds one future run with a chance of 90 %."""

SIGNAL = 0.8
NOT_PRIVATE = "ight"
"""The yardstick: what can be learned without privacy."""

YARDSTICK = IGHT(iterations=60)  # its error is within 3 % of that of the default 200 on tables of this law

PRIVATE = tuple(name for name in REGISTRY if name != NOT_PRIVATE)


LEVEL = 0.9
"""The chance that the range of one run aims at; 19 draws are the fewest that have it."""


class SimulationSettings(TypedDict, total=False):
    """What every prediction may be told: see ``forecast``."""

    signal: float
    draws: int
    random_state: int
    n_jobs: int
    verbose: int


@dataclass(frozen=True)
class Spread:
    """What several draws say about a number.

    The range reaches from the k-th smallest to the k-th largest of m draws. A further draw is equally likely to fall
    between any two of them, so it falls inside with a chance of at least 1 - 2k/(m + 1), whatever its law
    (``chance_of_one_run``).

    Attributes
    ----------
    mean, standard_error : float
        Over the draws, and how far off the mean may be.
    low, high : float
        The range for ONE future run, not for the mean.
    """

    mean: float
    standard_error: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """Of the values of all draws."""
        ordered = np.sort(np.asarray(values, dtype=float))
        k = _left_out(len(ordered))
        error = ordered.std(ddof=1) / np.sqrt(len(ordered))
        return cls(float(ordered.mean()), float(error), float(ordered[k - 1]), float(ordered[-k]))

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


def chance_of_one_run(draws: int) -> float:
    """The least chance that one future run falls into the range of so many draws."""
    return 1 - 2 * _left_out(draws) / (draws + 1)


def _left_out(draws: int) -> int:
    """k: the largest that keeps the level, or 1."""
    return max(1, int((draws + 1) * (1 - LEVEL) / 2 + 1e-9))


@dataclass(frozen=True)
class Prediction:
    """What one algorithm will do.

    Attributes
    ----------
    algorithm : str
        Its name.
    n : int
        On so many rows.
    epsilon : float
        With such a budget; infinite for the yardstick.
    error : Spread
        ||theta_hat - theta*|| / ||theta*||: 1 is the zero model, 0 the truth.
    direction : Spread
        The same for the best positive multiple of the model. Multiples name the same classes, so for them it counts.
    found : Spread
        The share of the true features that the model uses.
    score : Spread
        R^2, or the accuracy for two classes, on fresh rows.
    """

    algorithm: str
    n: int
    epsilon: float
    error: Spread
    direction: Spread
    found: Spread
    score: Spread

    def decisive_error(self, classifies: bool) -> Spread:
        """The error by which it is judged whether a model is of use."""
        return self.direction if classifies else self.error

    def to_dict(self) -> dict[str, object]:
        """For JSON, which knows no infinity."""
        return {**asdict(self), "epsilon": self.epsilon if math.isfinite(self.epsilon) else None}


@dataclass(frozen=True)
class Forecast:
    """Predictions for all algorithms, rows and budgets that were asked for, and what they rest on.

    Attributes
    ----------
    task : str
        "regression" or "classification".
    d, sparsity : int
        Columns of the tables, and how many of them matter.
    signal : float
        The share of variance that these explain.
    draws : int
        Tables that each prediction rests on.
    predictions : tuple of Prediction
        One for each algorithm, number of rows and budget.
    """

    task: str
    d: int
    sparsity: int
    signal: float
    draws: int
    predictions: tuple[Prediction, ...]

    @property
    def private(self) -> tuple[str, ...]:
        """The algorithms but for the yardstick."""
        return tuple(dict.fromkeys(each.algorithm for each in self.predictions if each.algorithm != NOT_PRIVATE))

    @property
    def chance_of_one_run(self) -> float:
        """The least chance that one future run falls between ``low`` and ``high``."""
        return chance_of_one_run(self.draws)

    def one(self, algorithm: str, n: int, epsilon: float) -> Prediction:
        """That of an algorithm on so many rows; the yardstick's does not depend on epsilon."""
        budget = math.inf if algorithm == NOT_PRIVATE else epsilon
        found = [each for each in self.of(algorithm) if (each.n, each.epsilon) == (n, budget)]
        if not found:
            raise ValueError(f"{algorithm} was not simulated for n={n} and epsilon={epsilon:g}; ask for it in forecast")
        return found[0]

    def at(self, n: int, epsilon: float) -> list[Prediction]:
        """Those of private algorithms for one shape and budget."""
        return [self.one(name, n, epsilon) for name in self.private]

    def of(self, algorithm: str) -> list[Prediction]:
        """Those of one algorithm."""
        return [each for each in self.predictions if each.algorithm == algorithm]

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        facts = {name: getattr(self, name) for name in ("task", "d", "sparsity", "signal", "draws")}
        predictions = [each.to_dict() for each in self.predictions]
        return {**facts, "chance_of_one_run": self.chance_of_one_run, "predictions": predictions}


def forecast(
    estimator: Estimator,
    n_samples: int,
    n_features: int,
    *,
    signal: float = SIGNAL,
    epsilons: Sequence[float] = (),
    rows: Sequence[int] = (),
    algorithms: Sequence[str | Algorithm] = (),
    draws: int = DRAWS,
    random_state: int = 0,
    n_jobs: int = -1,
    verbose: int = 0,
) -> Forecast:
    """Predict error, features found and R^2 or accuracy, by runs on synthetic tables of this shape.

    Needs no data and spends nothing. The law of the tables is that of ``thresher.planning.PlanningLaw``. The
    non-private "ight" is always simulated as well.

    Parameters
    ----------
    estimator : SparseRegressor or SparseClassifier
        The public facts: sparsity, bounds, budget, adjacency.
    n_samples, n_features : int
        The shape.
    signal : float, optional
        The share of variance that the true features explain.
    epsilons, rows : sequence of numbers, optional
        What is tried beside the estimator's epsilon and ``n_samples``, one at a time.
    algorithms : sequence of str or algorithms, optional
        By default the estimator's own, or every private one if that is "auto".
    draws : int, optional
        How many tables.
    random_state : int, optional
        The same number gives the same predictions.
    n_jobs : int, optional
        Processes; -1 for all cores.
    verbose : int, optional
        Whether a bar shows the progress.

    Returns
    -------
    Forecast

    Examples
    --------
    >>> from thresher import SparseRegressor
    >>> from thresher.planning import forecast
    >>> model = SparseRegressor(2, epsilon=4.0, algorithm="pursuit", feature_bound=1.0, target_bound=3.0)
    >>> found = forecast(model, 2000, 20, draws=5, n_jobs=1)
    >>> bool(found.one("pursuit", 2000, 4.0).error.mean < 0.5)
    True
    """
    simulation = prepare_simulation(
        estimator, n_samples, n_features, signal=signal, algorithms=algorithms, draws=draws, random_state=random_state,
        n_jobs=n_jobs, verbose=verbose,
    )  # fmt: skip
    budget = float(estimator.epsilon)
    shapes = [(n_samples, budget), *((n_samples, float(e)) for e in epsilons), *((int(n), budget) for n in rows)]
    private = [name for name in simulation.algorithms if name != NOT_PRIVATE]
    cases = [SimulatedCase(name, n, epsilon) for n, epsilon in dict.fromkeys(shapes) for name in private]
    cases += [SimulatedCase(NOT_PRIVATE, n, math.inf) for n in dict.fromkeys(n for n, _ in shapes)]
    return Forecast(
        task="classification" if isinstance(estimator, SparseClassifier) else "regression",
        d=n_features, sparsity=simulation.law(cases[0]).problem.sparsity, signal=signal, draws=draws,
        predictions=predict_cases(simulation, cases),
    )  # fmt: skip


def prepare_simulation(
    estimator: Estimator,
    n_samples: int,
    n_features: int,
    *,
    algorithms: Sequence[str | Algorithm],
    **settings: Unpack[SimulationSettings],
) -> Simulation:
    """What is simulated, with algorithms by their names, and the yardstick among them."""
    if not isinstance(estimator, (SparseRegressor, SparseClassifier)):
        raise TypeError(f"estimator={estimator!r} must be a SparseRegressor or a SparseClassifier")
    if estimator.sparsity is None:
        raise ValueError("sparsity=None: predictions are for a number of true features; set_params(sparsity=10), say")
    model = clone(estimator)
    if isinstance(model, SparseClassifier) and design_of(model, n_samples, n_features).problem.outputs == 1:
        model.set_params(classes=[0, 1])
    wanted = list(algorithms) or (list(PRIVATE) if estimator.algorithm == "auto" else [estimator.algorithm])
    by_name = {_name(model, n_samples, n_features, each): each for each in wanted}
    if len(by_name) < len(wanted) or NOT_PRIVATE in by_name:
        raise ValueError(
            f"algorithms={algorithms!r} must have different names and be private ({NOT_PRIVATE!r} is added anyway)"
        )
    return Simulation(model, n_features, algorithms={**by_name, NOT_PRIVATE: YARDSTICK}, **settings)


def _name(model: Estimator, n: int, d: int, algorithm: str | Algorithm) -> str:
    """As plans call it: what "auto" chooses, and an instance by its name."""
    return str(clone(model).set_params(algorithm=algorithm).plan(n, d).algorithm)


def predict_cases(simulation: Simulation, cases: Sequence[SimulatedCase]) -> tuple[Prediction, ...]:
    """One prediction per case."""
    return tuple(_prediction(case, runs) for case, runs in simulation.run(cases).items())


def _prediction(case: SimulatedCase, runs: Sequence[Run]) -> Prediction:
    spreads = {each.name: Spread.of([getattr(run, each.name) for run in runs]) for each in fields(Run)}
    return Prediction(case.algorithm, case.n, case.epsilon, **spreads)
