"""What parties and a server that asks them agree on: what is fitted, by whom, the plan that follows, and its hash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.metadata import version
from typing import cast

import numpy as np
from sklearn.base import clone

from thresher.federated.group import Group
from thresher.federated.model import FederatedModel, joint_plan
from thresher.federated.plans import bounds_note, fingerprint
from thresher.models.classifier import ClassifierModel
from thresher.privacy.plan import Plan
from thresher.privacy.releases import SkellamRelease
from thresher.vaults.problem import linear_problem

__all__ = ["FederatedStudy"]


@dataclass(frozen=True)
class FederatedStudy:
    """The same at the server and at every party; each makes the plan of it for itself.

    ``estimator`` is an unfitted federated front door with ``aggregation="skellam"``, ``everybody`` the parties' public
    identities, ``sizes`` the most rows that each of them holds, which is public, and ``features`` the columns of all.
    """

    estimator: FederatedModel
    group: Group
    everybody: Sequence[bytes]
    sizes: Sequence[int]
    features: int

    def __post_init__(self) -> None:
        model = self.estimator
        if model.aggregation != "skellam":
            raise ValueError(f"aggregation={model.aggregation!r}: a server adds up under masks; use 'skellam'")
        if model.random_state is not None:
            raise ValueError(f"random_state={model.random_state!r}: each party draws its own noise; leave it None")
        if isinstance(model, ClassifierModel) and model.classes is None:
            raise ValueError("classes=None: the labels are public, and no party may read them off its data; give them")
        for name in ("everybody", "sizes"):
            if len(getattr(self, name)) != self.group.parties:
                raise ValueError(
                    f"{name} has {len(getattr(self, name))} entries for parties={self.group.parties}: give one each"
                )

    def model(self) -> FederatedModel:
        """The unfitted front door, the caller's own."""
        model: FederatedModel = clone(self.estimator)
        return model

    @cached_property
    def plan(self) -> Plan:
        plan = joint_plan(self.estimator, sum(self.sizes), self.features)
        left = (
            f"up to {self.group.dropouts} of them may leave a round, whose mean then lacks their rows but is still "
            f"divided by {plan.problem.n}; the noise that is paid for is there even if these leave and "
            f"{self.group.colluding} of the others tell the server theirs"
        )
        return replace(plan, notes=(*plan.notes, bounds_note(self.sizes), left))

    @property
    def release(self) -> SkellamRelease:
        """What every round is paid with."""
        (release,) = self.plan.releases
        return cast(SkellamRelease, release)  # by the plan's trust

    def share_of(self, number: int) -> Plan:
        """The plan of one party, which answers for its own rows."""
        return replace(self.plan, problem=replace(self.plan.problem, n=self.sizes[number]))

    @cached_property
    def hash(self) -> str:
        """What tells this study from any other: 64 hexadecimal digits."""
        classes = getattr(self.estimator, "classes", None)
        labels = None if classes is None else np.unique(classes).tolist()
        plan, loss = self.plan, linear_problem(self.plan).loss
        facts = {
            "model": type(self.estimator).__name__,
            "classes": labels,
            "algorithm": plan.algorithm,
            "problem": {**vars(plan.problem), "loss": loss.name, "measurement": loss.measurement},
            "budget": asdict(plan.budget),
            "releases": [release.to_dict() for release in plan.releases],
            "settings": dict(plan.settings),
            "group": asdict(self.group),
            "everybody": [public.hex() for public in self.everybody],
            "sizes": list(self.sizes),
            "thresher": version("thresher"),
        }
        return fingerprint(facts)
