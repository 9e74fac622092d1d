"""Front doors for parties that cannot share rows: a list of data sets in, one model and its certificate out.

All parties live in this process: a simulation, or, with a real back-end, a rehearsal. ``thresher federate`` runs each
party on a machine of its own (``thresher.federated.session``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np

from thresher.algorithms.protocol import Algorithm
from thresher.data.concealment import without_causes
from thresher.data.tables import numeric_target, reject_text
from thresher.federated.aggregation import Aggregation, ReferenceAggregation
from thresher.federated.parties import DataSets
from thresher.federated.plans import for_own_noise, for_the_smallest, joint, sizes_note
from thresher.federated.protocols import DENSE, SPARSE, VAULTS, Protocol, protocol_of
from thresher.federated.vault import FederatedVault, GatheredVault, parties_of
from thresher.models.fit import Design
from thresher.models.linear import ClassifierModel, LinearModel, RegressorModel, Target
from thresher.models.options import AdjacencyName
from thresher.privacy.arrays import Floats
from thresher.privacy.plan import Plan
from thresher.vaults.penalties import Penalty
from thresher.vaults.randomness import NoiseSource

__all__ = [
    "FederatedDenseClassifier",
    "FederatedDenseRegressor",
    "FederatedSparseClassifier",
    "FederatedSparseRegressor",
    "algorithm_of",
    "checked_party",
    "joint_plan",
    "with_rounds",
]

Backend = Literal["reference", "mpyc", "spu", "skellam"]
TIMEOUT = 600.0  # seconds for one sum between processes of this machine


class _FederatedModel(LinearModel):
    """What the four front doors share: the rows stay in blocks, and the plan's noise is drawn by the parties."""

    _protocols: ClassVar[Mapping[str, Protocol]]

    def _protocol(self) -> Protocol:
        return protocol_of(self.algorithm, self._protocols)

    def _algorithm(self, outputs: int) -> Algorithm:
        found = self._protocol().algorithm(self._penalty().strength or None, None)
        if outputs > 1 and not getattr(found, "many_outputs", False):
            raise ValueError(
                f"algorithm={self.algorithm!r} fits two classes, and there are {outputs}; give another, such as "
                "'dp-ight' (sparse) or 'mpc-grad-p' (dense), or fit one class against the rest"
            )
        return found

    def _planned(self, design: Design) -> Plan:
        if self.aggregation not in get_args(Backend):
            raise ValueError(
                f"aggregation={self.aggregation!r} must be one of {', '.join(map(repr, get_args(Backend)))}"
            )
        plan = super()._planned(design)
        if self._protocol().joint:
            return joint(plan, self.aggregation)
        return replace(plan, trust="parties" if self._protocol().noise == "separate" else "reference")

    def _noted(self, plan: Plan, X: DataSets) -> Plan:
        algorithm = self._algorithm(plan.problem.outputs)
        plan = for_the_smallest(plan, algorithm, X.sizes)
        if plan.trust == "parties":
            plan = for_own_noise(plan, algorithm, len(X.sizes))
        notes = [sizes_note(X.sizes)]
        if plan.trust == "skellam":
            left = max(1, minority(len(X.sizes)))
            notes.append(f"the noise that is paid for is there even if {left} of the parties tell the server theirs")
        return replace(plan, notes=(*plan.notes, *notes))

    def _vault(self) -> Callable[..., FederatedVault]:
        def opened(X: DataSets, y: Floats, plan: Plan, noise: NoiseSource, watch: Callable[[], None]) -> FederatedVault:
            parties = parties_of(X, y, plan, noise, X.sizes)
            kind = VAULTS[self._protocol().noise]
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

    def _blocks(self, data_sets: Any) -> tuple[DataSets, list[Any]]:
        """Each party's rows and targets, checked like those of any fit, and that all have the same columns."""
        if not isinstance(data_sets, Sequence) or len(data_sets) < 2:
            raise ValueError(
                "data_sets must be a list of at least two pairs (X, y), one for each party; for one data set use "
                f"{type(self).__name__.removeprefix('Federated')}"
            )
        blocks, targets = [], []
        for at, pair in enumerate(data_sets):
            with _named(f"data_sets[{at}]"):
                X, y = pair
                X, y = self._checked_block(X, y, reset=at == 0)
            blocks.append(X)
            targets.append(y)
        return DataSets(blocks), targets

    def _checked_block(self, X: Any, y: Any, reset: bool) -> tuple[Any, Any]:
        reject_text(X)
        y = numeric_target(y) if isinstance(self, RegressorModel) else y
        return self._checked(X, y, accept_sparse=("csc", "csr", "coo"), ensure_min_samples=1, reset=reset)  # type: ignore[no-any-return]


# -- for those who run a fit with several machines ----------------------------------------------------------------


def algorithm_of(model: _FederatedModel, plan: Plan) -> Algorithm:
    """What asks, in a fit of ``plan``."""
    return model._algorithm(plan.problem.outputs)


def with_rounds(model: _FederatedModel, rounds: int, penalty: float | None) -> _FederatedModel:
    """The model with so many rounds of its algorithm."""
    model.set_params(algorithm=model._protocol().algorithm(penalty, rounds))
    return model


def joint_plan(model: _FederatedModel, rows: int, features: int) -> Plan:
    """Its plan; a baseline, whose noise is not the parties' together, is refused."""
    if model._protocol().noise != "joint":
        raise ValueError(f"algorithm={model.algorithm!r} is a baseline; simulate it instead")
    return model.plan(rows, features)


def checked_party(model: _FederatedModel, X: Any, y: Any, reset: bool = True) -> tuple[Any, Any]:
    """One party's rows and targets as any fit would take them; of a classifier, which row belongs to which class."""
    X, y = model._checked_block(X, y, reset)
    return X, model._classes_in(y)[1] if isinstance(model, ClassifierModel) else y


# -----------------------------------------------------------------------------------------------------------------


def minority(parties: int) -> int:
    """The most that are fewer than half."""
    return (parties - 1) // 2


@contextmanager
def _named(party: str) -> Any:
    """Errors that say whose data they are about."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{party}: {error}") from None


class _FederatedRegressor(_FederatedModel, RegressorModel):
    @without_causes
    def fit(self, data_sets: Any) -> Self:  # type: ignore[override]
        """Fit on a list of pairs (X, y), one for each party: NumPy, SciPy sparse, pandas or polars."""
        rows, targets = self._blocks(data_sets)
        return self._fit(rows, np.concatenate(targets), ())


class _FederatedClassifier(_FederatedModel, ClassifierModel):
    @without_causes
    def fit(self, data_sets: Any) -> Self:  # type: ignore[override]
        """Fit on a list of pairs (X, y), one for each party; ``y`` holds labels."""
        rows, targets = self._blocks(data_sets)
        classes, belongs, assumptions = self._classes_in(np.concatenate(targets))
        with self._labelled(classes):
            return self._fit(rows, belongs, assumptions)


class FederatedSparseRegressor(_FederatedRegressor):
    """Sparse linear regression over the rows of several parties, as if one curator had them all.

    Parameters are those of ``thresher.SparseRegressor``, but for

    algorithm : str or instance
        "dp-ight", "noisy-frank-wolfe", "mpc-out-p" (each party's own minimiser, averaged), or an instance from
        ``thresher.algorithms`` that asks for noisy gradients or one minimiser.
    aggregation : "reference", "mpyc", "spu" or "skellam"
        How the parties add up. "reference" does it in this process; the others run the real protocol between processes
        on this machine.

    ``fit`` takes a list of pairs (X, y). How many rows each party holds is public.
    """

    _protocols = SPARSE

    def __init__(
        self,
        sparsity: int = 10,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        feature_bound: Any = None,
        row_bound: float | None = None,
        target_bound: Target = None,
        algorithm: str | Algorithm = "dp-ight",
        aggregation: Backend = "reference",
        adjacency: AdjacencyName = "replace-one",
        fit_intercept: bool = True,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.sparsity = sparsity
        self.epsilon = epsilon
        self.delta = delta
        self.feature_bound = feature_bound
        self.row_bound = row_bound
        self.target_bound = target_bound
        self.algorithm = algorithm
        self.aggregation = aggregation
        self.adjacency = adjacency
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.verbose = verbose


class FederatedSparseClassifier(_FederatedClassifier):
    """Sparse logistic regression over the rows of several parties; see ``FederatedSparseRegressor``.

    ``classes`` are the labels, public; if they are not given they are read from the data, and the certificate says so.
    """

    _protocols = SPARSE

    def __init__(
        self,
        sparsity: int = 10,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        feature_bound: Any = None,
        row_bound: float | None = None,
        classes: Any = None,
        algorithm: str | Algorithm = "dp-ight",
        aggregation: Backend = "reference",
        adjacency: AdjacencyName = "replace-one",
        fit_intercept: bool = True,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.sparsity = sparsity
        self.epsilon = epsilon
        self.delta = delta
        self.feature_bound = feature_bound
        self.row_bound = row_bound
        self.classes = classes
        self.algorithm = algorithm
        self.aggregation = aggregation
        self.adjacency = adjacency
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.verbose = verbose


class _Dense(_FederatedModel):
    _protocols = DENSE

    def _sparsity(self, n_features: int) -> int:
        return n_features

    def _penalty(self) -> Penalty:
        return Penalty("ridge", self.penalty)


class FederatedDenseClassifier(_Dense, _FederatedClassifier):
    """Logistic regression on all features over the rows of several parties: chapter 6 of the thesis, made sound.

    Parameters are those of ``thresher.DenseClassifier`` with a ridge for a penalty, but for

    algorithm : str or instance
        "mpc-grad-p" (gradient descent with joint noise), "mpc-out-p" (the parties' own minimisers, averaged, with joint
        noise). Baselines where each party adds noise of its own: "local-grad-p", "local-out-p" and "local-obj-p"
        (noise in each party's objective; its ridge is at least what epsilon asks of the smallest party, whose size
        ``fit`` learns and ``plan`` does not know). "pathak" is "mpc-out-p" with the joint noise of the smallest party
        alone, m times more than needed. "rajkumar-agarwal" spends epsilon in every round: its certificate has the grade
        "printed" and no epsilon.
    aggregation : "reference", "mpyc", "spu" or "skellam"
        As of ``FederatedSparseRegressor``.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        algorithm: str | Algorithm = "mpc-grad-p",
        aggregation: Backend = "reference",
        feature_bound: Any = None,
        row_bound: float | None = None,
        penalty: float = 0.0,
        classes: Any = None,
        adjacency: AdjacencyName = "replace-one",
        fit_intercept: bool = True,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.algorithm = algorithm
        self.aggregation = aggregation
        self.feature_bound = feature_bound
        self.row_bound = row_bound
        self.penalty = penalty
        self.classes = classes
        self.adjacency = adjacency
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.verbose = verbose


class FederatedDenseRegressor(_Dense, _FederatedRegressor):
    """Linear regression on all features over the rows of several parties; see ``FederatedDenseClassifier``.

    ``target_bound``: the target is clipped to [-B, B], or to a pair (low, high). Required, and public.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        algorithm: str | Algorithm = "mpc-grad-p",
        aggregation: Backend = "reference",
        feature_bound: Any = None,
        row_bound: float | None = None,
        target_bound: Target = None,
        penalty: float = 0.0,
        adjacency: AdjacencyName = "replace-one",
        fit_intercept: bool = True,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.algorithm = algorithm
        self.aggregation = aggregation
        self.feature_bound = feature_bound
        self.row_bound = row_bound
        self.target_bound = target_bound
        self.penalty = penalty
        self.adjacency = adjacency
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.verbose = verbose
