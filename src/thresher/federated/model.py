"""What linear models of parties share: the rows stay in blocks, and the plan's noise is drawn by the parties."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal, get_args

from thresher.algorithms.protocol import Algorithm
from thresher.data.tables import numeric_target, reject_text
from thresher.federated.aggregation import Aggregation, ReferenceAggregation
from thresher.federated.plans import sizes_note, with_joint_noise, with_noise_for_the_smallest, with_steps_for_own_noise
from thresher.federated.protocols import DENSE, SPARSE, VAULTS, Protocol, protocol_of
from thresher.federated.vault import DataSets, FederatedVault, GatheredVault, parties_of
from thresher.models.classifier import ClassifierModel, class_membership
from thresher.models.estimator import checked_rows
from thresher.models.fit import Design
from thresher.models.linear import LinearModel
from thresher.models.regressor import RegressorModel
from thresher.privacy.arrays import Floats, Matrix, Values
from thresher.privacy.plan import Plan
from thresher.vaults.penalties import Penalty
from thresher.vaults.randomness import NoiseSource

__all__ = [
    "Backend",
    "DataPairs",
    "DenseFederatedModel",
    "FederatedModel",
    "checked_party",
    "joint_plan",
    "set_rounds",
]

Backend = Literal["reference", "mpyc", "spu", "skellam"]

DataPairs = Sequence[tuple[Matrix, Values]]
"""The rows of each party, and their targets or labels."""

TIMEOUT = 600.0  # seconds for one sum between processes of this machine


class FederatedModel(LinearModel):
    """What the four front doors share: the rows stay in blocks, and the plan's noise is drawn by the parties."""

    def _algorithm(self, outputs: int) -> Algorithm:
        found = protocol_behind(self).algorithm(self._penalty().strength or None, None)
        if outputs > 1 and not getattr(found, "many_outputs", False):
            raise ValueError(
                f"algorithm={self.algorithm!r} fits two classes, and there are {outputs}; give another, such as "
                "'dp-ight' (sparse) or 'mpc-grad-p' (dense), or fit one class against the rest"
            )
        return found

    def _plan_design(self, design: Design) -> Plan:
        if self.aggregation not in get_args(Backend):
            raise ValueError(
                f"aggregation={self.aggregation!r} must be one of {', '.join(map(repr, get_args(Backend)))}"
            )
        plan = design.plan()
        if protocol_behind(self).joint:
            return with_joint_noise(plan, self.aggregation, adds_up=self.ledger is not None)
        return replace(plan, trust="parties" if protocol_behind(self).noise == "separate" else "reference")

    def _with_notes(self, plan: Plan, X: DataSets) -> Plan:
        algorithm = self._algorithm(plan.problem.outputs)
        plan = with_noise_for_the_smallest(plan, algorithm, X.sizes)
        if plan.trust == "parties":
            plan = with_steps_for_own_noise(plan, algorithm, len(X.sizes))
        notes = [sizes_note(X.sizes)]
        if plan.trust == "skellam":
            left = max(1, minority(len(X.sizes)))
            notes.append(f"the noise that is paid for is there even if {left} of the parties tell the server theirs")
        return replace(plan, notes=(*plan.notes, *notes))

    def _vault(self) -> Callable[..., FederatedVault]:
        def opened(X: DataSets, y: Floats, plan: Plan, noise: NoiseSource, watch: Callable[[], None]) -> FederatedVault:
            parties = parties_of(X, y, plan, noise, X.sizes)
            kind = VAULTS[protocol_behind(self).noise]
            if issubclass(kind, GatheredVault):
                return kind(parties, X.sizes, self._aggregation(len(parties), noise), plan, noise, watch)
            return kind(parties, plan, noise, watch)

        return opened

    def _aggregation(self, parties: int, noise: NoiseSource) -> Aggregation:
        if self.aggregation == "reference":
            return ReferenceAggregation(noise)
        if self.random_state is not None:
            raise ValueError(
                f"random_state={self.random_state!r} with aggregation={self.aggregation!r}: the parties draw the noise "
                "together and nobody can repeat it; leave it None, or use 'reference'"
            )
        if self.aggregation == "skellam":
            from thresher.federated.skellam_aggregation import SkellamAggregation

            return SkellamAggregation(parties, colluding=minority(parties))
        if self.aggregation == "mpyc":
            from thresher.federated.mpyc import MPyCAggregation

            return MPyCAggregation(parties, TIMEOUT)
        from thresher.federated.spu import SPUAggregation

        return SPUAggregation(parties, timeout=TIMEOUT)

    def _party_blocks(self, data_sets: DataPairs) -> tuple[DataSets, list[Values]]:
        """Each party's rows and targets, checked like those of any fit, and that all have the same columns."""
        if not isinstance(data_sets, Sequence) or len(data_sets) < 2:
            raise ValueError(
                "data_sets must be a list of at least two pairs (X, y), one for each party; for one data set use "
                f"{type(self).__name__.removeprefix('Federated')}"
            )
        blocks, targets = [], []
        for at, pair in enumerate(data_sets):
            with _errors_about(f"data_sets[{at}]"):
                X, y = pair
                X, y = checked_block(self, X, y, reset=at == 0)
            blocks.append(X)
            targets.append(y)
        return DataSets(blocks), targets


class DenseFederatedModel(FederatedModel):
    """One with a coefficient for every column."""

    def _sparsity(self, n_features: int) -> int:
        return n_features

    def _penalty(self) -> Penalty:
        return Penalty("ridge", self.penalty)


def protocol_behind(model: FederatedModel) -> Protocol:
    """The protocol that a front door's algorithm names."""
    return protocol_of(model.algorithm, DENSE if isinstance(model, DenseFederatedModel) else SPARSE)


def set_rounds(model: FederatedModel, rounds: int, penalty: float | None) -> FederatedModel:
    """The model with so many rounds of its algorithm."""
    model.set_params(algorithm=protocol_behind(model).algorithm(penalty, rounds))
    return model


def joint_plan(model: FederatedModel, rows: int, features: int) -> Plan:
    """Its plan; a baseline, whose noise is not the parties' together, is refused."""
    if protocol_behind(model).noise != "joint":
        raise ValueError(f"algorithm={model.algorithm!r} is a baseline; simulate it instead")
    return model.plan(rows, features)


def checked_party(model: FederatedModel, X: Matrix, y: Values, reset: bool = True) -> tuple[Matrix, Values]:
    """One party's rows and targets as any fit would take them; of a classifier, which row belongs to which class."""
    X, y = checked_block(model, X, y, reset)
    return X, class_membership(model, y) if isinstance(model, ClassifierModel) else y


def checked_block(model: FederatedModel, X: Matrix, y: Values, reset: bool) -> tuple[Matrix, Values]:
    """One party's rows and targets, or labels, checked like those of any fit."""
    reject_text(X)
    targets = numeric_target(y) if isinstance(model, RegressorModel) else y
    return checked_rows(model, X, targets, accept_sparse=("csc", "csr", "coo"), ensure_min_samples=1, reset=reset)  # type: ignore[no-any-return]


def minority(parties: int) -> int:
    """The most that are fewer than half."""
    return (parties - 1) // 2


@contextmanager
def _errors_about(party: str) -> Iterator[None]:
    """Errors that say whose data they are about."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{party}: {error}") from None
