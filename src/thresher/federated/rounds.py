"""A round of a study: what its server asks, which questions a party answers, and how it answers them.

A party answers each round once, as planned, and nothing else. The server is not believed: the plan, the grid and the
noise are this party's own, and what it has answered is on its own disk. Nothing is kept in memory, so the party may be
another process in every round.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from thresher.federated.journal import Journal, price
from thresher.federated.model import checked_party
from thresher.federated.study import FederatedStudy
from thresher.federated.vault import JointVault, Party
from thresher.privacy.arrays import Floats, Integers, Matrix, Values
from thresher.vaults.randomness import NoiseSource

__all__ = ["Load", "RoundQuestion", "answer", "check_question", "longest_question"]

Load = Callable[[], tuple[Matrix, Values]]
"""Gives a party's own rows and targets, as any fit would take them."""

SAME = 1e-9  # relative: two machines' libraries may differ in the last bits of a grid step


@dataclass(frozen=True)
class RoundQuestion:
    """Round ``round`` of the study with hash ``study``: the gradient at ``theta`` or, without one, the minimiser."""

    study: str
    round: int
    clip: float
    grid: float
    theta: Sequence[float] | None = None
    ridge: float | None = None

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> RoundQuestion:
        """The question, with the types it must have; what the numbers may be is for ``check_question``."""
        try:
            fields = json.loads(data)
            theta, ridge = fields["theta"], fields["ridge"]
            return cls(
                str(fields["study"]),
                int(fields["round"]),
                float(fields["clip"]),
                float(fields["grid"]),
                None if theta is None else [float(value) for value in theta],
                None if ridge is None else float(ridge),
            )
        except (ValueError, TypeError, KeyError, RecursionError):
            raise ValueError("the question is not one: its sender has another version, or is none of us") from None


def longest_question(study: FederatedStudy) -> int:
    """The most bytes of one: a number in JSON has at most 24, and what is not a coordinate fits into a kilobyte."""
    return 1024 + 32 * study.plan.problem.dimension


def check_question(question: RoundQuestion, study: FederatedStudy) -> float:
    """Refuse what the plan does not allow; the grid step, from the plan alone."""
    plan, release = study.plan, study.release
    if question.study != study.hash:
        raise ValueError(
            f"study={question.study[:12]!r} is another one than ours, {study.hash[:12]!r}: compare the estimators, "
            "parties, sizes and versions"
        )
    if not 1 <= question.round <= release.times:
        raise ValueError(f"round={question.round} is not in the plan, which has {release.times}")
    one_minimiser = release.question.name == "minimiser"
    planned = {"clip": plan.settings["clip"], "ridge": plan.settings["ridge"] if one_minimiser else None}
    for name, value in planned.items():
        if getattr(question, name) != value:
            raise ValueError(f"{name}={getattr(question, name)!r} is not the plan's: {value!r}")
    _check_point(question, None if one_minimiser else plan.problem.dimension)
    rules = JointVault([], study.sizes, plan, NoiseSource())  # asks nobody, draws nothing
    step = rules.grid_step(release, question.clip, question.ridge)
    if not math.isclose(question.grid, step, rel_tol=SAME):
        raise ValueError(f"grid={question.grid!r} is not the plan's: {step!r}")
    return step


def _check_point(question: RoundQuestion, size: int | None) -> None:
    found = None if question.theta is None else len(question.theta)
    if found != size:
        raise ValueError(f"theta has {found} coordinates, the question needs {size}")
    if question.theta is not None and not np.all(np.isfinite(question.theta)):
        raise ValueError("theta is not finite: the iteration has diverged, take a smaller step")


def answer(study: FederatedStudy, number: int, load: Load, folder: Path, asked: bytes) -> Integers:
    """Party ``number``'s part of the answer, without noise: for the masks only.

    The price of the whole plan and the round are in ``folder`` before a row is clipped, and a round is begun once: one
    that fails later is missed, not repeated.
    """
    if len(asked) > longest_question(study):
        raise ValueError(f"the question has {len(asked)} bytes, more than any of this study: its sender is none of us")
    question = RoundQuestion.from_bytes(asked)
    grid = check_question(question, study)
    X, y = _rows(study, number, load)
    with Journal.locked(folder) as journal:
        journal.enter_charge(price(study.plan, study.hash))
        journal.begin_round(question.round)
    weight = study.sizes[number] / sum(study.sizes)
    with Party(X, y, study.share_of(number), NoiseSource()) as party:
        if question.ridge is not None:
            return party.minimiser_part(study.release, question.clip, question.ridge, weight, grid)
        return party.gradient_part(np.array(question.theta), study.release, question.clip, weight, grid)


def _rows(study: FederatedStudy, number: int, load: Load) -> tuple[Matrix, Floats]:
    """This party's rows and targets, checked like those of any fit."""
    X, y = checked_party(study.model(), *load())
    if X.shape[1] != study.features:
        raise ValueError(f"X has {X.shape[1]} columns, the study {study.features}")
    if X.shape[0] > study.sizes[number]:
        raise ValueError(f"X has more rows than the {study.sizes[number]} this party declared; declare more")
    return X, y
