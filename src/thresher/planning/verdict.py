"""Whether a private method can work on a shape, what would help where none can, and all that the command plan asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal, Unpack

from thresher.planning.forecast import NOT_PRIVATE, PRIVATE, Forecast, SimulationSettings, forecast
from thresher.planning.reach import Measure, Over, Reach, least
from thresher.planning.simulate import Estimator

__all__ = ["USEFUL", "WORTHWHILE", "PlanningStudy", "Verdict", "remedies", "run_study", "verdict"]

USEFUL = 0.9
"""A model whose error is not below this explains less than a fifth (1 - 0.9^2) of what the truth explains."""

WORTHWHILE = 0.5
"""The error of a model that explains three quarters (1 - 0.5^2) of what the truth explains."""

SURE = 2.0  # standard errors


@dataclass(frozen=True)
class Verdict:
    """From errors of numbers, and from errors in direction of classes.

    ``yes``: the range of one run of some algorithm lies below ``USEFUL``. ``no``: the mean errors of all are no
    better than the zero model's, or above ``USEFUL`` by two standard errors. ``perhaps``: in between.

    Attributes
    ----------
    answer : {"yes", "perhaps", "no"}
        Whether a private method can work.
    useful : tuple of str
        The algorithms whose range of one run lies below, the least mean error first.
    without_privacy : bool
        Whether the non-private method is useful on so many rows: if not, rows are missing, not epsilon.
    words : str
        The answer and its reason in a sentence.
    """

    answer: Literal["yes", "perhaps", "no"]
    useful: tuple[str, ...]
    without_privacy: bool
    words: str

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


def verdict(forecast: Forecast, n: int, epsilon: float) -> Verdict:
    """What the predictions for one shape and budget say.

    Parameters
    ----------
    forecast : Forecast
        With the predictions for this shape and budget among others.
    n : int
        Rows.
    epsilon : float
        The budget.

    Returns
    -------
    Verdict

    Examples
    --------
    >>> from thresher import SparseRegressor
    >>> from thresher.planning import forecast, verdict
    >>> model = SparseRegressor(2, epsilon=4.0, algorithm="pursuit", feature_bound=1.0, target_bound=3.0)
    >>> verdict(forecast(model, 2000, 20, draws=5, n_jobs=1), 2000, 4.0).answer
    'yes'
    """
    classifies = forecast.task == "classification"
    private = sorted(forecast.at(n, epsilon), key=lambda each: each.decisive_error(classifies).mean)
    errors = {each.algorithm: each.decisive_error(classifies) for each in private}
    exact = forecast.one(NOT_PRIVATE, n, epsilon).decisive_error(classifies).mean
    best, least = next((name, error.mean) for name, error in errors.items())
    kind = "mean error in direction" if classifies else "mean error"
    told = f"the least {kind} is {least:.2g} ({best}), the zero model has 1, and without privacy it is {exact:.2g}"
    useful = tuple(name for name, error in errors.items() if error.high < USEFUL)
    works = exact < USEFUL
    if useful:
        return Verdict("yes", useful, works, f"Yes, this can work, with {', '.join(useful)}: {told}.")
    if any(error.mean < 1 and error.mean - SURE * error.standard_error <= USEFUL for error in errors.values()):
        words = f"Perhaps: a run may be of use or not; {told}. More rows or a larger epsilon make it sure."
        return Verdict("perhaps", useful, works, words)
    which = "no private method can" if set(PRIVATE) <= set(errors) else f"{' and '.join(errors)} cannot"
    cause = "do not spend the budget" if works else "so rows are missing, whatever epsilon; do not spend the budget"
    return Verdict("no", useful, works, f"No: {which} work here. {told[0].upper()}{told[1:]}; {cause}.")


def remedies(
    estimator: Estimator, n_samples: int, n_features: int, found: Verdict, **settings: Unpack[SimulationSettings]
) -> tuple[Reach, ...]:
    """Rows that algorithm="auto" needs at this epsilon, and the epsilon at so many rows if those can be enough."""
    overs: tuple[Over, ...] = ("rows", "epsilon") if found.without_privacy else ("rows",)
    measure: Measure = "direction" if hasattr(estimator, "classes") else "error"
    answers = [
        least(estimator, n_samples, n_features, WORTHWHILE, over=over, algorithms=["auto"], measure=measure, **settings)
        for over in overs
    ]
    return tuple(answer for (answer,) in answers)


@dataclass(frozen=True)
class PlanningStudy:
    """What was found."""

    forecast: Forecast
    verdict: Verdict
    remedies: tuple[Reach, ...]
    """What would help where nothing works."""
    by_epsilon: tuple[Reach, ...]
    by_rows: tuple[Reach, ...]
    """What each algorithm needs for an error, if that was asked."""

    def of(self, algorithm: str) -> dict[str, object]:
        """What concerns one algorithm, for JSON; verdict and yardstick with each."""
        kept = [each.to_dict() for each in self.forecast.predictions if each.algorithm in (algorithm, NOT_PRIVATE)]
        needs = [each.to_dict() for each in (*self.by_epsilon, *self.by_rows) if each.algorithm == algorithm]
        return {
            "forecast": {**self.forecast.to_dict(), "predictions": kept},
            "reach": needs,
            "verdict": self.verdict.to_dict(),
            "remedies": [each.to_dict() for each in self.remedies],
        }


def run_study(
    estimator: Estimator,
    n: int,
    d: int,
    *,
    epsilons: Sequence[float],
    rows: Sequence[int],
    reach: float | None,
    algorithms: Sequence[str],
    **settings: Unpack[SimulationSettings],
) -> PlanningStudy:
    """Simulate all of it; ``settings`` are those of ``thresher.planning.forecast``."""
    found = forecast(estimator, n, d, epsilons=epsilons, rows=rows, algorithms=algorithms, **settings)
    opinion = verdict(found, n, estimator.epsilon)
    needs = remedies(estimator, n, d, opinion, **settings) if opinion.answer == "no" else ()
    if reach is None:
        return PlanningStudy(found, opinion, needs, (), ())
    by_epsilon = least(estimator, n, d, reach, over="epsilon", algorithms=algorithms, **settings)
    by_rows = least(estimator, n, d, reach, over="rows", algorithms=algorithms, **settings)
    return PlanningStudy(found, opinion, needs, by_epsilon, by_rows)
