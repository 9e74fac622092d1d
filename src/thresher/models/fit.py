"""Fitting with privacy, whatever is fitted: plan, open a vault, run, certify."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_X_y
from sklearn.utils.validation import validate_data

from thresher.algorithms import REGISTRY
from thresher.algorithms.outlook import noise_over_largest_signal
from thresher.data.dask.collections import Collection, Partitions, stand_in
from thresher.data.memory import check_memory
from thresher.data.people import numbered
from thresher.data.sparse_structure import check_structure
from thresher.data.tables import reject_text, without_counts, without_values
from thresher.ledger import Reservation, reserved, stays_counted, without_password
from thresher.ledger.repeats import note_of_repeats
from thresher.privacy import logs
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Adjacency, Budget
from thresher.privacy.certificate import Certificate, certify
from thresher.privacy.model_hash import model_hash
from thresher.privacy.plan import Answer, Plan
from thresher.privacy.progress import progress_bar
from thresher.privacy.trust import Unit
from thresher.privacy.warnings import LargeDelta, NoiseDrowns, PrintedNoise, PrivacyOff, ThresherWarning
from thresher.vaults import CentralVault
from thresher.vaults.central.minimisers import assumed_of_searches
from thresher.vaults.problem import LinearProblem, linear_problem
from thresher.vaults.randomness import NoiseSource
from thresher.vaults.vault import Vault

__all__ = ["Found", "Heard", "Keeper", "PrivateFit", "completed", "warn_about"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class Keeper(Protocol):
    """Who keeps what a fit found."""

    def keep(self) -> str | None:
        """Make it the model's; the hash of the model."""

    def forget(self) -> None:
        """Leave no model: nobody gets one that nothing counts."""


@dataclass(frozen=True)
class Heard:
    """What was said while a vault was open."""

    answers: tuple[Answer, ...]
    randomness: str
    chosen: Plan | None = None
    """Of a search, the plan of the trial that is told of."""

    @classmethod
    def of(cls, vault: Vault) -> Self:
        return cls(vault.answers, vault.randomness, vault.chosen)


def completed(
    keeper: Keeper, plan: Plan, heard: Heard, assumptions: tuple[str, ...] = (), paid: Reservation | None = None,
    versions: Mapping[str, str] = MappingProxyType({}),
) -> Certificate:  # fmt: skip
    """The end of every fit, whoever held the rows: certify, verify, keep what was found, settle with the ledger."""
    certificate = certify(plan, heard.answers, heard.randomness, assumptions, heard.chosen)
    if not certificate.verify():
        raise RuntimeError(f"the certificate would not verify, so the model is dropped: {certificate.verify()}")
    try:
        known = {**certificate.versions, **versions}
        certificate = replace(certificate, versions=known, model=keeper.keep())  # before the ledger notes what it was
        return certificate if paid is None else paid.settle(certificate)
    except BaseException:
        keeper.forget()
        raise


@dataclass(frozen=True)
class Found:
    """What an algorithm found for a front door."""

    door: Any
    theta: Any
    plan: Plan
    published: Mapping[str, Any] = field(default_factory=dict)

    def keep(self) -> str | None:
        self.door._keep(self.theta, self.plan)
        self.door._publish(dict(self.published))
        self.door.plan_, self.door.algorithm_ = self.plan, self.plan.algorithm
        released = self.door._released()
        return None if released is None else model_hash(released)

    def forget(self) -> None:
        self.door._forget()


class PrivateFit(BaseEstimator):
    """An estimator whose fit asks a vault what its plan lists, and carries a certificate of what that cost."""

    certificate_: Certificate
    plan_: Plan
    algorithm_: str

    # what an estimator that does not offer these has
    delta: float | None = None
    adjacency: Any = Adjacency.REPLACE_ONE
    n_public: int | None = None
    hardened: bool = True
    ledger: Any = None
    dataset: str | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        """An address with a password is kept as a Ledger, so that neither text nor pickle of an estimator has it."""
        super().__setattr__(name, without_password(value) if name == "ledger" else value)

    def _problem(self, n_samples: int, n_features: int, outputs: int) -> LinearProblem:
        """The public facts of a fit."""
        raise NotImplementedError

    def _algorithm(self, outputs: int) -> Any:
        """What asks."""
        raise NotImplementedError

    def _vault(self) -> Any:
        """The kind of vault that is asked."""
        return CentralVault

    def _keep(self, theta: Floats, plan: Plan) -> None:
        """What the algorithm found, as fitted attributes."""
        raise NotImplementedError

    def _released(self) -> dict[str, Any] | None:
        """What the model is made of, for the hash in its certificate; None if there is no model."""
        return None

    def _publish(self, published: dict[str, Any]) -> None:
        """By-products of the run, as fitted attributes."""
        self._published = [f"{name}_" for name in published]
        for name, value in zip(self._published, published.values(), strict=True):
            setattr(self, name, value)

    def plan(self, n_samples: int, n_features: int) -> Plan:
        """What would be released for data of this shape, and with what noise. Touches no data, spends nothing.

        For a fit with ``groups``, ``n_samples`` is the number of people.
        """
        plan = self._plan(n_samples, n_features, self._outputs_declared())
        logs.planned(plan)
        return plan

    def _plan(self, n_samples: int, n_features: int, outputs: int, unit: Unit = "row") -> Plan:
        problem = replace(self._problem(n_samples, n_features, outputs), unit=unit)
        delta = n_samples**-2.0 if self.delta is None else self.delta
        budget = Budget(self.epsilon, delta, self.adjacency)
        plan: Plan = self._algorithm(outputs).plan(problem, budget)
        if plan.problem != problem or plan.budget != budget:
            raise ValueError(f"algorithm={plan.algorithm!r} planned for another problem or budget than it was given")
        return plan

    def _owners(self, groups: Any, rows: int) -> Indices | None:
        """Whose each row is, where ``groups`` makes the person the unit of privacy."""
        if groups is None:
            return None
        if not getattr(self._vault(), "of_people", False):
            raise TypeError(
                f"groups is not supported by {type(self).__name__}.fit: every row is a person's only report there; "
                "give one row per person and drop the argument"
            )
        return numbered(groups, rows, self._fewest)

    def _fit(self, X: Any, y: Floats, assumptions: tuple[str, ...], owners: Indices | None = None) -> Self:
        n, d = X.shape if owners is None else (int(owners.max(initial=-1)) + 1, X.shape[1])
        outputs = 1 if y.ndim == 1 else y.shape[1]
        algorithm = self._algorithm(outputs)
        unit: Unit = "row" if owners is None else "person"
        plan = self._told(self._plan(n if self.n_public is None else self.n_public, d, outputs, unit), X)
        counted = plan.problem.counted
        adjacency = plan.budget.adjacency
        if adjacency is Adjacency.REPLACE_ONE and self.n_public is not None:
            raise ValueError(
                f"n_public={self.n_public!r} has a meaning only with adjacency='add-remove'; leave it None"
            )
        if adjacency is Adjacency.ADD_REMOVE and self.n_public is None:
            assumptions += (
                f"the number of {counted}, {n}, is public: it was read from the data; declare n_public instead",
            )
        assumptions += assumed_of_searches(plan)
        logs.planned(plan)
        warn_about(plan)
        noise = NoiseSource(self.random_state, hardened=self.hardened)
        if self._vault() is CentralVault:  # others copy less
            check_memory(X, 2 if plan.problem.intercept_column > 0 else 1)
        paid = reserved(self.ledger, self.dataset, plan, X)
        with stays_counted(paid, plan):
            repeated = note_of_repeats(X, plan, counted=paid is not None)
        # from here on the old model and its by-products are gone: an interrupted fit leaves none
        for name in ("certificate_", *self.__dict__.pop("_published", ())):
            self.__dict__.pop(name, None)
        questions = sum(release.times for release in plan.releases)
        with (
            stays_counted(paid, plan),
            progress_bar(plan.algorithm, questions, enabled=self.verbose > 0) as watch,
            self._vault()(X, y, plan, noise, watch, *(() if owners is None else (owners,))) as vault,
        ):
            theta = algorithm.run(vault)
            heard, published = Heard.of(vault), vault.published
        told = replace(plan, notes=(*plan.notes, *repeated))
        self.certificate_ = completed(Found(self, theta, plan, published), told, heard, assumptions, paid)
        return self

    def _forget(self) -> None:
        """Be as before a fit."""
        for name in [name for name in self.__dict__ if name.endswith("_") or name == "_published"]:
            del self.__dict__[name]

    def _told(self, plan: Plan, X: Any) -> Plan:
        """The plan with public facts about the rows that certificates should tell."""
        return plan

    def _outputs_declared(self) -> int:
        return 1

    @property
    def _dtypes(self) -> Any:
        """The kinds of numbers that are taken as they are."""
        return [np.float64, np.float32]

    def _bounds(self) -> Bounds:
        feature = self.feature_bound
        if feature is not None and np.ndim(feature) > 0:
            try:
                feature = tuple(float(bound) for bound in feature)
            except (TypeError, ValueError):
                raise ValueError(f"feature_bound={feature!r} must be a positive number, or one per column") from None
        return Bounds(feature, self.row_bound, self._target_range())

    def _target_range(self) -> tuple[float, float] | None:
        return None

    def _checked(self, X: Any, *y: Any, counts: bool = True, **requirements: Any) -> Any:
        """scikit-learn's validation, its messages without the values they would print, and without ``counts`` of rows
        where these are not public."""
        check_structure(X)
        for targets in y:
            check_structure(targets, "y")
        try:
            if isinstance(X, Collection):
                return self._checked_on_workers(X, *y)
            return validate_data(self, X, *y, dtype=self._dtypes, **requirements)
        except ValueError as error:
            message = without_values(str(error))
            raise ValueError(message if counts else without_counts(message)) from None

    def _checked_to_fit(self, X: Any, *y: Any, groups: Any) -> Any:
        """Rows, and targets if there are any. With ``groups``, or ``n_public``, how many rows there are is private."""
        reject_text(X)
        counts = groups is None and self.n_public is None
        accepted = {"accept_sparse": ("csc", "csr", "coo"), "ensure_min_samples": self._fewest}
        return self._checked(X, *y, counts=counts, **accepted)

    @property
    def _fewest(self) -> int:
        """Rows, or people, that a fit takes. Where a number is declared, that of the data is told by nothing, not even
        by a refusal."""
        return 2 if self.n_public is None else 0

    def _checked_on_workers(self, X: Collection, y: Any) -> tuple[Partitions, Any]:
        """The same for rows that stay on Dask workers: their columns and targets here, their cells there."""
        if self._vault() is not CentralVault:
            raise TypeError(f"X is a Dask collection: {type(self).__name__} takes rows in memory; give X.compute()")
        validate_data(self, stand_in(X.X))
        parts = X.partitions(self._dtypes)
        rows = sparse.csr_array((parts.shape[0], 1))  # as many as there are, so that their number is checked, too
        _, y = check_X_y(rows, y, accept_sparse=True, ensure_min_samples=self._fewest, estimator=self)
        return parts, y

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        with np.printoptions(threshold=6):  # a bound for each column is not for reading
            return super().__repr__(N_CHAR_MAX)  # type: ignore[no-any-return]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def warn_about(plan: Plan) -> None:
    """Say loudly where a plan protects less than its numbers suggest, and where it cannot find anything."""
    budget, n, counted = plan.budget, plan.problem.n, plan.problem.counted
    if not budget.private:
        _warn(
            PrivacyOff,
            f"epsilon={budget.epsilon:g}: privacy is OFF, the model may reveal single {counted}; never publish it, and "
            "give a finite epsilon for one that you will",
        )
        return
    if plan.calibration == "printed":
        _warn(
            PrintedNoise,
            f"calibration='printed': the noise printed in the paper costs epsilon={plan.epsilon:.4g} where "
            f"{budget.epsilon:g} is claimed; it is for reproduction only, use calibration='proved'",
        )
    if budget.delta >= 1 / n:
        _warn(
            LargeDelta,
            f"delta={budget.delta:g} is not below 1/n={1 / n:g}: it allows publishing some {counted} in the clear "
            "(erratum E-4); use delta=None for 1/n^2",
        )
    if plan.trust == "central" and plan.algorithm in REGISTRY and budget.delta > 0:  # pure DP has no such rule
        problem = linear_problem(plan)
        least = noise_over_largest_signal(problem, budget)
        if least > 1:
            _warn(
                NoiseDrowns,
                f"epsilon={budget.epsilon:g}, sparsity={problem.sparsity} with {n} {counted}: even a feature that "
                f"decides the target alone drowns, the noise is {least:.2g} times its signal; bring more {counted}, a "
                "larger epsilon, a smaller sparsity or tighter bounds (thresher plan tells what is enough)",
            )


def _warn(kind: type[ThresherWarning], message: str) -> None:
    warnings.warn(message, kind, stacklevel=6)  # where fit was called
