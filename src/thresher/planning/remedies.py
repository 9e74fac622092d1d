"""Where no private method works: the rows, or the epsilon, from which the default would."""

from __future__ import annotations

from typing import Any

from thresher.planning.reach import Over, Reach, least
from thresher.planning.verdict import Verdict

__all__ = ["WORTHWHILE", "remedies"]

WORTHWHILE = 0.5
"""The error of a model that explains three quarters (1 - 0.5^2) of what the truth explains."""


def remedies(estimator: Any, n_samples: int, n_features: int, found: Verdict, **settings: Any) -> tuple[Reach, ...]:
    """Rows that algorithm="auto" needs at this epsilon, and the epsilon at so many rows if those can be enough."""
    overs: tuple[Over, ...] = ("rows", "epsilon") if found.without_privacy else ("rows",)
    measure = "direction" if hasattr(estimator, "classes") else "error"
    settings |= {"algorithms": ["auto"], "measure": measure}
    answers = [least(estimator, n_samples, n_features, WORTHWHILE, over=over, **settings) for over in overs]
    return tuple(answer for (answer,) in answers)
