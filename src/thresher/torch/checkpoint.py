"""A file from which a training that was killed goes on, without asking again what it may have asked already.

Rounds are reserved before they are asked: the file says how many were paid for (``charged``), which after a kill may be
more than its state has heard. These lost rounds stay paid for. Arrays and JSON in an .npz file, no pickle.

Where a ledger pays, it counts the rounds, too, and its count is what holds. The file is then sealed with the ledger's
key, and what was changed or made by others is refused.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from thresher.algorithms.stochastic import State
from thresher.data.atomic_files import sync_folder
from thresher.privacy.arrays import Values
from thresher.privacy.plan import Answer, Plan

__all__ = ["Checkpoint", "TrainingState", "facts_of"]


Facts = Mapping[str, object]
"""What tells a training from another, as JSON."""


@dataclass(frozen=True)
class TrainingState:
    """Where a training stands: the algorithm's state, the answers it has heard, the number of answers paid for."""

    state: State
    answers: tuple[Answer, ...] = ()
    charged: int = 0
    account: dict[str, str] | None = None  # the ledger's entry that pays for all of them

    @property
    def lost(self) -> int:
        """Answers paid for that the state has not heard."""
        return self.charged - len(self.answers)


@dataclass(frozen=True)
class Checkpoint:
    """The file of one training, told by its ``facts``; it is held by one process at a time."""

    path: Path
    facts: Facts = field(repr=False)
    seal: Callable[[bytes], str] | None = None  # the ledger's, if there is one

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes away: two that go on from one file would spend twice what it counts."""
        import fcntl  # not on Windows

        with open(f"{self.path}.lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise RuntimeError(
                    f"checkpoint={str(self.path)!r} is in use by another training; wait for it"
                ) from None
            yield

    def read(self, plan: Plan) -> TrainingState | None:
        """What the file says, None if there is none; refused if it is of another training."""
        if not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as file:
                text = str(file["header"])
                arrays = {name: file[name] for name in file.files if name not in ("header", "seal")}
                seal = str(file["seal"]) if "seal" in file.files else ""
            header = json.loads(text)
            known, answers, charged = header["facts"], header["answers"], header["charged"]
            account = header.get("account")  # absent from files of earlier versions
            state = {**header["numbers"], **{name: arrays[f"state {name}"] for name in header["arrays"]}}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"checkpoint={str(self.path)!r} cannot be read ({error}); name another file") from error
        for name, value in self.facts.items():
            if known.get(name) != value:
                raise ValueError(
                    f"checkpoint={str(self.path)!r} is of another training: its {name} is {known.get(name)!r}, this "
                    f"one's {value!r}; go on with the same settings and data, or name another file"
                )
        if self.seal is not None and not hmac.compare_digest(self.seal_of(text, arrays), seal):
            raise ValueError(
                f"checkpoint={str(self.path)!r} was changed, or not written with this ledger's key; name another file "
                "and begin the training anew"
            )
        heard = [Answer(plan.releases[at], *numbers) for at, count, *numbers in answers for _ in range(count)]
        return TrainingState(state, tuple(heard), charged, account)

    def write(self, standing: TrainingState, plan: Plan) -> None:
        """Durably, and as a whole: at any moment the old file or the new one is there."""
        arrays = {name: value for name, value in standing.state.items() if isinstance(value, np.ndarray)}
        header = {
            "facts": self.facts,
            "charged": standing.charged,
            "account": standing.account,
            "answers": [
                (plan.releases.index(answer.release), len(list(same)), answer.clip, answer.sensitivity, answer.scale)
                for answer, same in groupby(standing.answers)
            ],
            "numbers": {name: value for name, value in standing.state.items() if name not in arrays},
            "arrays": list(arrays),
        }
        new = self.path.with_name(f"{self.path.name}.new")
        with open(new, "wb") as file:
            named: dict[str, Any] = {f"state {name}": value for name, value in arrays.items()}
            text = json.dumps(header)
            np.savez(file, header=np.array(text), seal=np.array(self.seal_of(text, named)), **named)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self.path)
        sync_folder(self.path.parent)

    def seal_of(self, header: str, arrays: dict[str, Values]) -> str:
        """The ledger's mark of all that the file says; empty without a ledger."""
        if self.seal is None:
            return ""
        parts = [[name, array.dtype.str, array.shape, sha256(array.tobytes()).hexdigest()]
                 for name, array in sorted(arrays.items())]  # fmt: skip
        return self.seal(json.dumps([header, parts]).encode())


def facts_of(plan: Plan, shapes: Facts) -> Facts:
    """What tells a training from another, as JSON gives it back."""
    facts = {
        "algorithm": plan.algorithm,
        "examples": plan.problem.n,
        "parameters": plan.problem.d,
        "budget": [plan.budget.epsilon, plan.budget.delta, str(plan.budget.adjacency)],
        "settings": dict(plan.settings),
        "releases": [release.to_dict() for release in plan.releases],
        **shapes,
    }
    plain: Facts = json.loads(json.dumps(facts, default=lambda value: value.item()))
    return plain
