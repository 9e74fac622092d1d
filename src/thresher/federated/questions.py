"""What a server asks the parties of a study in a round, and which questions a party answers."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from thresher.federated.study import Study
from thresher.federated.vault import JointVault
from thresher.vaults.randomness import NoiseSource

__all__ = ["Question", "check", "longest_question"]

SAME = 1e-9  # relative: two machines' libraries may differ in the last bits of a grid step


@dataclass(frozen=True)
class Question:
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
    def from_bytes(cls, data: bytes) -> Question:
        """The question, with the types it must have; what the numbers may be is for ``check``."""
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


def longest_question(study: Study) -> int:
    """The most bytes of one: a number in JSON has at most 24, and what is not a coordinate fits into a kilobyte."""
    return 1024 + 32 * study.plan.problem.dimension


def check(question: Question, study: Study) -> float:
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


def _check_point(question: Question, size: int | None) -> None:
    found = None if question.theta is None else len(question.theta)
    if found != size:
        raise ValueError(f"theta has {found} coordinates, the question needs {size}")
    if question.theta is not None and not np.all(np.isfinite(question.theta)):
        raise ValueError("theta is not finite: the iteration has diverged, take a smaller step")
