"""Front doors for parties that cannot share rows: a list of data sets in, one model and its certificate out.

All parties live in this process: a simulation, or, with a real back-end, a rehearsal. ``thresher federate`` runs each
party on a machine of its own (``thresher.federated.session``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Self, get_args

import numpy as np

from thresher.algorithms.protocol import Algorithm
from thresher.data.concealment import discreet
from thresher.data.tables import numeric_target, reject_text
from thresher.federated.aggregation import Aggregation, ReferenceAggregation
from thresher.federated.plans import sizes_note, with_joint_noise, with_noise_for_the_smallest, with_steps_for_own_noise
from thresher.federated.protocols import DENSE, SPARSE, VAULTS, Protocol, protocol_of
from thresher.federated.vault import DataSets, FederatedVault, GatheredVault, parties_of
from thresher.models.estimator import checked_rows
from thresher.models.fit import Design
from thresher.models.linear import ClassifierModel, LinearModel, RegressorModel, Target, class_membership
from thresher.models.options import AdjacencyName
from thresher.privacy.arrays import Floats, Matrix, Values
from thresher.privacy.plan import Plan
from thresher.vaults.penalties import Penalty
from thresher.vaults.randomness import NoiseSource

if TYPE_CHECKING:
    from thresher.models.options import Bound, Labels, Seed

__all__ = [
    "FederatedDenseClassifier",
    "FederatedDenseRegressor",
    "FederatedModel",
    "FederatedSparseClassifier",
    "FederatedSparseRegressor",
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

    def _planned(self, design: Design) -> Plan:
        if self.aggregation not in get_args(Backend):
            raise ValueError(
                f"aggregation={self.aggregation!r} must be one of {', '.join(map(repr, get_args(Backend)))}"
            )
        plan = super()._planned(design)
        if protocol_behind(self).joint:
            return with_joint_noise(plan, self.aggregation)
        return replace(plan, trust="parties" if protocol_behind(self).noise == "separate" else "reference")

    def _noted(self, plan: Plan, X: DataSets) -> Plan:
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

    def _blocks(self, data_sets: DataPairs) -> tuple[DataSets, list[Values]]:
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


# -- for those who run a fit with several machines ----------------------------------------------------------------


def protocol_behind(model: FederatedModel) -> Protocol:
    """The protocol that a front door's algorithm names."""
    return protocol_of(model.algorithm, DENSE if isinstance(model, _Dense) else SPARSE)


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
    y = numeric_target(y) if isinstance(model, RegressorModel) else y
    return checked_rows(model, X, y, accept_sparse=("csc", "csr", "coo"), ensure_min_samples=1, reset=reset)  # type: ignore[no-any-return]


# -----------------------------------------------------------------------------------------------------------------


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


class _FederatedRegressor(FederatedModel, RegressorModel):
    @discreet
    def fit(self, data_sets: DataPairs) -> Self:  # type: ignore[override]
        """Fit on a list of pairs (X, y), one for each party: NumPy, SciPy sparse, pandas or polars."""
        rows, targets = self._blocks(data_sets)
        return self._fit(rows, np.concatenate(targets), ())


class _FederatedClassifier(FederatedModel, ClassifierModel):
    @discreet
    def fit(self, data_sets: DataPairs) -> Self:  # type: ignore[override]
        """Fit on a list of pairs (X, y), one for each party; ``y`` holds labels."""
        rows, targets = self._blocks(data_sets)
        classes, belongs, assumptions = self._classes_in(np.concatenate(targets))
        with self._labelled(classes):
            return self._fit(rows, belongs, assumptions)


class FederatedSparseRegressor(_FederatedRegressor):
    """Sparse linear regression over the rows of several parties, as if one curator had them all.

    ``fit`` takes a list of pairs (X, y), one for each party. How many rows each party holds is public.

    Parameters
    ----------
    sparsity : int
        How many coefficients the model may have.
    epsilon : float
        The privacy budget of the fit; ``float("inf")`` switches privacy off.
    delta : float
        Of the same budget. None means 1/n^2, for the n rows of all parties.
    feature_bound : float or sequence
        |x_ij| is clipped to this public bound: one for all columns, or one for each.
    row_bound : float
        ||x_i||_2 is clipped to this public bound. This or ``feature_bound`` is required.
    target_bound : float or (low, high)
        The target is clipped to [-B, B], or to [low, high]. Required, and public.
    algorithm : str or instance
        "dp-ight", "noisy-frank-wolfe", "mpc-out-p" (each party's own minimiser, averaged), or an instance from
        ``thresher.algorithms`` that asks for noisy gradients or one minimiser.
    aggregation : "reference", "mpyc", "spu" or "skellam"
        How the parties add up. "reference" does it in this process; the others run the real protocol between processes
        on this machine.
    adjacency : "replace-one" or "add-remove"
        Which data sets count as neighbours.
    fit_intercept : bool
        Fit a constant as well.
    random_state : int
        Repeatable noise, for tests and research only; it marks the certificate. With "reference" alone.
    verbose : int
        1 shows a progress bar on a terminal.

    Attributes
    ----------
    coef_, intercept_, support_
        The model; ``support_`` holds the positions of its nonzero coefficients.
    certificate_, plan_, algorithm_
        What it cost, what was planned, and what ran.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.federated import FederatedSparseRegressor
    >>> rng = np.random.default_rng(0)
    >>> def party(rows):
    ...     X = rng.uniform(-1, 1, (rows, 5))
    ...     return X, 2 * X[:, 0]
    >>> model = FederatedSparseRegressor(1, epsilon=2, delta=1e-6, feature_bound=1, target_bound=2, random_state=0)
    >>> model.fit([party(2000), party(3000)]).support_
    array([0])
    """

    def __init__(
        self,
        sparsity: int = 10,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        feature_bound: Bound = None,
        row_bound: float | None = None,
        target_bound: Target = None,
        algorithm: str | Algorithm = "dp-ight",
        aggregation: Backend = "reference",
        adjacency: AdjacencyName = "replace-one",
        fit_intercept: bool = True,
        random_state: Seed = None,
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
    """Sparse logistic regression over the rows of several parties, as if one curator had them all.

    ``fit`` takes a list of pairs (X, y), one for each party, whose ``y`` are labels. How many rows each party holds is
    public.

    Parameters
    ----------
    sparsity : int
        How many coefficients the model may have.
    epsilon : float
        The privacy budget of the fit; ``float("inf")`` switches privacy off.
    delta : float
        Of the same budget. None means 1/n^2, for the n rows of all parties.
    feature_bound : float or sequence
        |x_ij| is clipped to this public bound: one for all columns, or one for each.
    row_bound : float
        ||x_i||_2 is clipped to this public bound. This or ``feature_bound`` is required.
    classes : sequence
        The labels, public. If they are not given they are read from the data, and the certificate says so.
    algorithm : str or instance
        "dp-ight", "noisy-frank-wolfe", "mpc-out-p" (each party's own minimiser, averaged), or an instance from
        ``thresher.algorithms`` that asks for noisy gradients or one minimiser.
    aggregation : "reference", "mpyc", "spu" or "skellam"
        How the parties add up. "reference" does it in this process; the others run the real protocol between processes
        on this machine.
    adjacency : "replace-one" or "add-remove"
        Which data sets count as neighbours.
    fit_intercept : bool
        Fit a constant as well.
    random_state : int
        Repeatable noise, for tests and research only; it marks the certificate. With "reference" alone.
    verbose : int
        1 shows a progress bar on a terminal.

    Attributes
    ----------
    coef_, intercept_, support_, classes_
        The model; ``support_`` holds the positions of its nonzero coefficients.
    certificate_, plan_, algorithm_
        What it cost, what was planned, and what ran.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.federated import FederatedSparseClassifier
    >>> rng = np.random.default_rng(0)
    >>> def party(rows):
    ...     X = rng.uniform(-1, 1, (rows, 5))
    ...     return X, X[:, 0] > 0
    >>> model = FederatedSparseClassifier(1, epsilon=2, delta=1e-6, feature_bound=1, classes=[0, 1], random_state=0)
    >>> model.fit([party(2000), party(3000)]).support_
    array([0])
    """

    def __init__(
        self,
        sparsity: int = 10,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        feature_bound: Bound = None,
        row_bound: float | None = None,
        classes: Labels = None,
        algorithm: str | Algorithm = "dp-ight",
        aggregation: Backend = "reference",
        adjacency: AdjacencyName = "replace-one",
        fit_intercept: bool = True,
        random_state: Seed = None,
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


class _Dense(FederatedModel):
    def _sparsity(self, n_features: int) -> int:
        return n_features

    def _penalty(self) -> Penalty:
        return Penalty("ridge", self.penalty)


class FederatedDenseClassifier(_Dense, _FederatedClassifier):
    """Logistic regression on all features over the rows of several parties: chapter 6 of the thesis, made sound.

    ``fit`` takes a list of pairs (X, y), one for each party, whose ``y`` are labels. How many rows each party holds is
    public.

    Parameters
    ----------
    epsilon : float
        The privacy budget of the fit; ``float("inf")`` switches privacy off.
    delta : float
        Of the same budget. None means 1/n^2, for the n rows of all parties.
    algorithm : str or instance
        "mpc-grad-p" (gradient descent with joint noise), "mpc-out-p" (the parties' own minimisers, averaged, with joint
        noise). Baselines where each party adds noise of its own: "local-grad-p", "local-out-p" and "local-obj-p"
        (noise in each party's objective; its ridge is at least what epsilon asks of the smallest party, whose size
        ``fit`` learns and ``plan`` does not know). "pathak" is "mpc-out-p" with the joint noise of the smallest party
        alone, m times more than needed. "rajkumar-agarwal" spends epsilon in every round: its certificate has the grade
        "printed" and no epsilon.
    aggregation : "reference", "mpyc", "spu" or "skellam"
        How the parties add up. "reference" does it in this process; the others run the real protocol between processes
        on this machine.
    feature_bound : float or sequence
        |x_ij| is clipped to this public bound: one for all columns, or one for each.
    row_bound : float
        ||x_i||_2 is clipped to this public bound. This or ``feature_bound`` is required.
    penalty : float
        The strength of the ridge. Public, so it needs no noise.
    classes : sequence
        The labels, public. If they are not given they are read from the data, and the certificate says so.
    adjacency : "replace-one" or "add-remove"
        Which data sets count as neighbours.
    fit_intercept : bool
        Fit a constant as well.
    random_state : int
        Repeatable noise, for tests and research only; it marks the certificate. With "reference" alone.
    verbose : int
        1 shows a progress bar on a terminal.

    Attributes
    ----------
    coef_, intercept_, support_, classes_
        The model; ``support_`` holds the positions of its nonzero coefficients.
    certificate_, plan_, algorithm_
        What it cost, what was planned, and what ran.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.federated import FederatedDenseClassifier
    >>> rng = np.random.default_rng(0)
    >>> def party(rows):
    ...     X = rng.uniform(-1, 1, (rows, 5))
    ...     return X, X[:, 0] > 0
    >>> model = FederatedDenseClassifier(2.0, 1e-6, row_bound=2.0, penalty=0.01, classes=[0, 1], random_state=0)
    >>> bool(model.fit([party(2000), party(3000)]).coef_[0, 0] > 0)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        algorithm: str | Algorithm = "mpc-grad-p",
        aggregation: Backend = "reference",
        feature_bound: Bound = None,
        row_bound: float | None = None,
        penalty: float = 0.0,
        classes: Labels = None,
        adjacency: AdjacencyName = "replace-one",
        fit_intercept: bool = True,
        random_state: Seed = None,
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
    """Linear regression on all features over the rows of several parties: chapter 6 of the thesis, made sound.

    ``fit`` takes a list of pairs (X, y), one for each party. How many rows each party holds is public.

    Parameters
    ----------
    epsilon : float
        The privacy budget of the fit; ``float("inf")`` switches privacy off.
    delta : float
        Of the same budget. None means 1/n^2, for the n rows of all parties.
    algorithm : str or instance
        "mpc-grad-p" (gradient descent with joint noise), "mpc-out-p" (the parties' own minimisers, averaged, with joint
        noise). Baselines where each party adds noise of its own: "local-grad-p", "local-out-p" and "local-obj-p"
        (noise in each party's objective; its ridge is at least what epsilon asks of the smallest party, whose size
        ``fit`` learns and ``plan`` does not know). "pathak" is "mpc-out-p" with the joint noise of the smallest party
        alone, m times more than needed. "rajkumar-agarwal" spends epsilon in every round: its certificate has the grade
        "printed" and no epsilon.
    aggregation : "reference", "mpyc", "spu" or "skellam"
        How the parties add up. "reference" does it in this process; the others run the real protocol between processes
        on this machine.
    feature_bound : float or sequence
        |x_ij| is clipped to this public bound: one for all columns, or one for each.
    row_bound : float
        ||x_i||_2 is clipped to this public bound. This or ``feature_bound`` is required.
    target_bound : float or (low, high)
        The target is clipped to [-B, B], or to [low, high]. Required, and public.
    penalty : float
        The strength of the ridge. Public, so it needs no noise.
    adjacency : "replace-one" or "add-remove"
        Which data sets count as neighbours.
    fit_intercept : bool
        Fit a constant as well.
    random_state : int
        Repeatable noise, for tests and research only; it marks the certificate. With "reference" alone.
    verbose : int
        1 shows a progress bar on a terminal.

    Attributes
    ----------
    coef_, intercept_, support_
        The model; ``support_`` holds the positions of its nonzero coefficients.
    certificate_, plan_, algorithm_
        What it cost, what was planned, and what ran.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.federated import FederatedDenseRegressor
    >>> rng = np.random.default_rng(0)
    >>> def party(rows):
    ...     X = rng.uniform(-1, 1, (rows, 5))
    ...     return X, 2 * X[:, 0]
    >>> model = FederatedDenseRegressor(2.0, 1e-6, row_bound=2.0, target_bound=2.0, penalty=0.01, random_state=0)
    >>> bool(model.fit([party(2000), party(3000)]).coef_[0] > 0)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        algorithm: str | Algorithm = "mpc-grad-p",
        aggregation: Backend = "reference",
        feature_bound: Bound = None,
        row_bound: float | None = None,
        target_bound: Target = None,
        penalty: float = 0.0,
        adjacency: AdjacencyName = "replace-one",
        fit_intercept: bool = True,
        random_state: Seed = None,
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
