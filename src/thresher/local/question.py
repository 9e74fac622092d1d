"""What each round of a survey asks: JSON that a person's device believes as little as the task (``task.py``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from thresher.local.json_fields import Reader, any_number, canonical, list_of, parse_json, short, whole
from thresher.local.task import MOST_FEATURES, MOST_ROUNDS, SurveyTask
from thresher.privacy.arrays import Floats

__all__ = ["SurveyQuestion"]

QUESTION_FORMAT = "thresher-question-1"


@dataclass(frozen=True)
class SurveyQuestion:
    """What a round asks: your gradient at this theta, given by its nonzero ``values`` and where they are.

    Parameters
    ----------
    task : str
        The fingerprint of the task that it belongs to.
    round : int
        The number of the round, from 1.
    at : tuple of int
        The coordinates of theta that are not zero, in increasing order. A question about labels has none.
    values : tuple of float
        What theta is there.

    Examples
    --------
    >>> from thresher import LocalSparseRegressor
    >>> from thresher.local import Server, SurveyQuestion
    >>> server = Server(LocalSparseRegressor(1, 4.0, feature_bound=1.0, target_bound=2.0), people=100, features=2)
    >>> SurveyQuestion.from_json(server.question().to_json()).round
    1
    """

    task: str
    round: int
    at: tuple[int, ...] = ()
    values: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name, read in _QUESTION_FIELDS.items():
            object.__setattr__(self, name, read(name, getattr(self, name)))
        if len(self.at) != len(self.values):
            raise ValueError(f"at has {len(self.at)} coordinates, values {len(self.values)}; give one value for each")
        if any(one >= other for one, other in zip(self.at, self.at[1:], strict=False)):
            raise ValueError("at must list every coordinate once, in increasing order")
        if not all(self.values):
            raise ValueError("values has a 0; leave such coordinates out")

    @classmethod
    def about(cls, task: SurveyTask, number: int, theta: Floats) -> Self:
        """Round ``number`` of ``task``, at ``theta``."""
        at = np.flatnonzero(theta)
        return cls(task.fingerprint, number, tuple(at.tolist()), tuple(theta[at].tolist()))

    def theta(self, dimension: int) -> Floats:
        """The point asked about."""
        if self.at and self.at[-1] >= dimension:
            raise ValueError(f"at={self.at[-1]} is no coordinate of the task, which has {dimension}")
        theta = np.zeros(dimension)
        theta[list(self.at)] = self.values
        return theta

    def to_json(self) -> str:
        return canonical({"format": QUESTION_FORMAT, **{name: getattr(self, name) for name in _QUESTION_FIELDS}})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The question that ``text`` asks, or a ValueError that names the field which is wrong."""
        return cls(**parse_json(text, QUESTION_FORMAT, _QUESTION_FIELDS))


def _fingerprint(name: str, value: object) -> str:
    if not isinstance(value, str) or len(value) != 64 or not set(value) <= set("0123456789abcdef"):
        raise ValueError(f"{name}={short(value)} must be the fingerprint of a task, 64 hexadecimal digits")
    return value


_QUESTION_FIELDS: Mapping[str, Reader[object]] = {
    "task": _fingerprint,
    "round": whole(1, MOST_ROUNDS),
    "at": list_of(whole(0, MOST_FEATURES), 0, MOST_FEATURES + 1),
    "values": list_of(any_number, 0, MOST_FEATURES + 1),
}
