"""Everything that thresher plan simulates, for one estimator and shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from thresher.planning.forecast import NOT_PRIVATE, Forecast, forecast
from thresher.planning.reach import Reach, least
from thresher.planning.remedies import remedies
from thresher.planning.verdict import Verdict, verdict

__all__ = ["Study", "study"]


@dataclass(frozen=True)
class Study:
    """What was found."""

    forecast: Forecast
    verdict: Verdict
    remedies: tuple[Reach, ...]
    """What would help where nothing works."""
    by_epsilon: tuple[Reach, ...]
    by_rows: tuple[Reach, ...]
    """What each algorithm needs for an error, if that was asked."""

    def of(self, algorithm: str) -> dict[str, Any]:
        """What concerns one algorithm, for JSON; verdict and yardstick with each."""
        kept = [each.to_dict() for each in self.forecast.predictions if each.algorithm in (algorithm, NOT_PRIVATE)]
        needs = [each.to_dict() for each in (*self.by_epsilon, *self.by_rows) if each.algorithm == algorithm]
        return {
            "forecast": {**self.forecast.to_dict(), "predictions": kept},
            "reach": needs,
            "verdict": self.verdict.to_dict(),
            "remedies": [each.to_dict() for each in self.remedies],
        }


def study(
    estimator: Any,
    n: int,
    d: int,
    *,
    epsilons: Sequence[float],
    rows: Sequence[int],
    reach: float | None,
    algorithms: Sequence[str],
    **settings: Any,
) -> Study:
    """Simulate all of it; ``settings`` are those of ``thresher.planning.forecast``."""
    found = forecast(estimator, n, d, epsilons=epsilons, rows=rows, algorithms=algorithms, **settings)
    opinion = verdict(found, n, estimator.epsilon)
    needs = remedies(estimator, n, d, opinion, **settings) if opinion.answer == "no" else ()
    if reach is None:
        return Study(found, opinion, needs, (), ())
    settings |= {"algorithms": algorithms}
    by_epsilon = least(estimator, n, d, reach, over="epsilon", **settings)
    return Study(found, opinion, needs, by_epsilon, least(estimator, n, d, reach, over="rows", **settings))
