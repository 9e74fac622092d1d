"""What parties agree on before any of them touches its data: a TOML file, the plan that follows from it, their hash."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from thresher.federated.endpoints import FEWEST, MOST, check_names
from thresher.federated.estimators import (
    FederatedDenseClassifier,
    FederatedDenseRegressor,
    FederatedSparseClassifier,
    FederatedSparseRegressor,
)
from thresher.federated.model import FederatedModel, joint_plan, set_rounds
from thresher.federated.plans import bounds_note, fingerprint
from thresher.privacy.budget import is_whole
from thresher.privacy.plan import Plan
from thresher.privacy.strict_json import reject_device

__all__ = ["JointTask", "TaskParty"]

DOORS: Mapping[tuple[str, bool], type[FederatedModel]] = {
    ("classification", True): FederatedSparseClassifier,
    ("regression", True): FederatedSparseRegressor,
    ("classification", False): FederatedDenseClassifier,
    ("regression", False): FederatedDenseRegressor,
}
SETTINGS = (
    "sparsity", "epsilon", "delta", "feature_bound", "row_bound", "target_bound", "classes", "algorithm", "penalty",
    "adjacency", "fit_intercept",
)  # fmt: skip


@dataclass(frozen=True)
class TaskParty:
    """A party as the others know it. It holds at most ``rows`` rows; that bound is public, the number itself is not."""

    name: str
    address: tuple[str, int]
    rows: int


@dataclass(frozen=True)
class JointTask:
    """The file that every party has, word for word.

    ``task`` is "classification" or "regression"; with ``sparsity`` the model is sparse, without it has a coefficient
    for every feature. ``features`` are the columns' names, or their number where they have none. ``rounds``: how often
    parties meet (None: the algorithm's own rule). The other settings are those of the front doors, of which ``classes``
    or ``target_bound``, and a bound on rows, must be there.
    """

    task: str
    features: tuple[str, ...] | int
    target: str
    rounds: int | None
    settings: Mapping[str, Any]
    members: tuple[TaskParty, ...]

    @classmethod
    def read(cls, path: str | Path) -> JointTask:
        """The task in a TOML file; its faults are named."""
        reject_device(path)
        try:
            content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
            raise ValueError(f"TASK={str(path)!r} cannot be read: {error}") from None
        try:
            return cls._from(dict(content))
        except ValueError as error:
            raise ValueError(f"TASK={str(path)!r}: {error}") from None

    @classmethod
    def _from(cls, content: dict[str, Any]) -> JointTask:
        known = {"task", "features", "target", "rounds", "party", *SETTINGS}
        for name in set(content) - known:
            raise ValueError(f"{name} is not a setting of a task; known are {', '.join(sorted(known))}")
        for name in ("task", "features", "epsilon", "party"):
            if name not in content:
                raise ValueError(f"{name} is missing")
        task, features = content["task"], content["features"]
        if not isinstance(task, str) or (task, True) not in DOORS:
            raise ValueError(f"task={task!r} must be 'classification' or 'regression'")
        named = isinstance(features, list) and all(isinstance(name, str) for name in features)
        if not (named and len(set(features)) == len(features) > 0) and not (is_whole(features) and features > 0):
            raise ValueError("features must be the columns' names, each once, or their number")
        if task == "classification":
            _check_classes(content.get("classes"))
        target, rounds = content.get("target", "y"), content.get("rounds")
        if not isinstance(target, str) or (named and target in features):
            raise ValueError(f"target={target!r} must be the name of a column that is no feature")
        if rounds is not None and not (is_whole(rounds) and rounds > 0):
            raise ValueError(f"rounds={rounds!r} must be a whole number of at least 1")
        if not isinstance(content.get("fit_intercept", True), bool):
            raise ValueError(f"fit_intercept={content['fit_intercept']!r} must be true or false")
        settings = {name: content[name] for name in SETTINGS if name in content}
        return cls(
            task,
            tuple(features) if named else features,
            target,
            rounds,
            settings,
            _members(content["party"]),
        )

    @property
    def rows(self) -> int:
        return sum(member.rows for member in self.members)

    @property
    def width(self) -> int:
        return self.features if isinstance(self.features, int) else len(self.features)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(member.rows for member in self.members)

    def model(self) -> FederatedModel:
        """The unfitted front door."""
        door = DOORS[self.task, "sparsity" in self.settings]
        settings = {name: tuple(v) if isinstance(v, list) else v for name, v in self.settings.items()}
        for name in set(settings) - set(door().get_params()):
            raise ValueError(f"{name}={settings[name]!r} is not a setting of {door.__name__}; leave it out")
        model = door(**settings, aggregation="mpyc")
        if self.rounds is None:
            return model
        return set_rounds(model, self.rounds, self.settings.get("penalty") or None)

    @cached_property
    def plan(self) -> Plan:
        plan = joint_plan(self.model(), self.rows, self.width)
        return replace(plan, notes=(*plan.notes, bounds_note(self.sizes)))

    @cached_property
    def hash(self) -> str:
        """What tells this task and its plan from any other: 64 hexadecimal digits."""
        facts = {
            "task": asdict(self),
            "problem": {"n": self.plan.problem.n, "d": self.plan.problem.d, "bounds": self.plan.problem.enforced},
            "budget": asdict(self.plan.budget),
            "releases": [release.to_dict() for release in self.plan.releases],
            "settings": dict(self.plan.settings),
            "thresher": version("thresher"),
        }
        return fingerprint(facts)

    def position_of(self, name: str) -> int:
        """The position of the party with this name."""
        names = [member.name for member in self.members]
        if name not in names:
            raise ValueError(f"--me={name!r} is none of the task's parties: {', '.join(names)}")
        return names.index(name)


def _check_classes(classes: object) -> None:
    if classes is None:
        raise ValueError("classes is missing: the labels are public, and no party may read them off its data")
    plain = isinstance(classes, list) and all(isinstance(label, (bool, int, float, str)) for label in classes)
    if not isinstance(classes, list) or not plain or len(set(classes)) < 2:
        raise ValueError(f"classes={classes!r} must be a list of at least two different labels")


def _members(entries: Any) -> tuple[TaskParty, ...]:
    if not isinstance(entries, list) or not FEWEST <= len(entries) <= MOST:
        raise ValueError(f"party: {FEWEST} to {MOST} are needed, of which a majority must be honest")
    members = []
    for at, entry in enumerate(entries):
        if not isinstance(entry, dict) or set(entry) != {"name", "address", "rows"}:
            raise ValueError(f"party {at + 1} must have exactly a name, an address and rows")
        host, _, port = str(entry["address"]).rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
            raise ValueError(f"address={entry['address']!r} of party {at + 1} must be HOST:PORT")
        if not is_whole(entry["rows"]) or entry["rows"] < 1:
            raise ValueError(f"rows={entry['rows']!r} of party {at + 1} must be a whole number of at least 1")
        members.append(TaskParty(str(entry["name"]), (host, int(port)), entry["rows"]))
    check_names([member.name for member in members])
    if len({member.address for member in members}) < len(members):
        raise ValueError("two parties have the same address")
    return tuple(members)
