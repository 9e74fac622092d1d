"""Whether a private method can work on a shape, from its forecast."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from thresher.planning.forecast import NOT_PRIVATE, PRIVATE, Forecast

__all__ = ["USEFUL", "Verdict", "verdict"]

USEFUL = 0.9
"""A model whose error is not below this explains less than a fifth (1 - 0.9^2) of what the truth explains."""

SURE = 2.0  # standard errors


@dataclass(frozen=True)
class Verdict:
    """From errors of numbers, and from errors in direction of classes.

    ``yes``: the range of one run of some algorithm lies below ``USEFUL``. ``no``: the mean errors of all are no
    better than the zero model's, or above ``USEFUL`` by two standard errors. ``perhaps``: in between.
    """

    answer: Literal["yes", "perhaps", "no"]
    useful: tuple[str, ...]
    """The algorithms whose range of one run lies below, the least mean error first."""
    without_privacy: bool
    """Whether the non-private method is useful on so many rows: if not, rows are missing, not epsilon."""
    words: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def verdict(forecast: Forecast, n: int, epsilon: float) -> Verdict:
    """What the predictions for one shape and budget say."""
    classifies = forecast.task == "classification"
    private = sorted(forecast.at(n, epsilon), key=lambda each: each.counted(classifies).mean)
    errors = {each.algorithm: each.counted(classifies) for each in private}
    exact = forecast.one(NOT_PRIVATE, n, epsilon).counted(classifies).mean
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
