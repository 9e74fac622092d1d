"""An estimator that is fitted privately, whatever it learns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_X_y
from sklearn.utils.validation import validate_data

from thresher.data.dask import Collection, Partitions, zero_row_like
from thresher.data.memory import check_memory
from thresher.data.people import person_of_each_row
from thresher.data.reading.frames import eager
from thresher.data.sparse_structure import check_structure
from thresher.data.tables import reject_text, without_counts, without_values
from thresher.data.typing import Column, Table
from thresher.ledger import without_password
from thresher.models.fit import Design, Finding, Fit, Outcome, Planner, Published
from thresher.privacy import logs
from thresher.privacy.arrays import Floats, Indices
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Adjacency, Budget
from thresher.privacy.certificate import Certificate
from thresher.privacy.facts import PublicFacts
from thresher.privacy.model_hash import model_hash
from thresher.privacy.plan import Plan, table_facts
from thresher.privacy.trust import Unit
from thresher.vaults import CentralVault
from thresher.vaults.central.minimisers import assumed_of_searches
from thresher.vaults.randomness import NoiseSource
from thresher.vaults.vault import Vault

if TYPE_CHECKING:
    from thresher.models.options import AdjacencyName, Bound, LedgerLike, Seed

__all__ = ["Found", "Parts", "PrivateEstimator", "adopt", "algorithm_of", "checked_rows", "design_of"]

Parts = dict[str, Any]
"""What a model is made of, by name: arrays of numbers and lists of labels."""


class PrivateEstimator(BaseEstimator):
    """An estimator whose fit asks a vault what its plan lists, and carries a certificate of what that cost."""

    certificate_: Certificate
    plan_: Plan
    algorithm_: str

    epsilon: float
    feature_bound: Bound
    row_bound: float | None = None
    random_state: Seed
    verbose: int

    # what an estimator that does not offer these has
    delta: float | None = None
    adjacency: AdjacencyName = "replace-one"
    n_public: int | None = None
    hardened: bool = True
    ledger: LedgerLike = None
    dataset: str | None = None

    def __setattr__(self, name: str, value: object) -> None:
        """An address with a password is kept as a Ledger, so that neither text nor pickle of an estimator has it."""
        super().__setattr__(name, without_password(value) if name == "ledger" else value)

    def _problem(self, n_samples: int, n_features: int, outputs: int) -> PublicFacts:
        """The public facts of a fit."""
        raise NotImplementedError

    def _algorithm(self, outputs: int) -> Planner:
        """What asks."""
        raise NotImplementedError

    def _vault(self) -> Callable[..., Vault]:
        """The kind of vault that is asked."""
        return CentralVault

    def _keep(self, theta: Floats, plan: Plan) -> None:
        """What the algorithm found, as fitted attributes."""
        raise NotImplementedError

    def _model_parts(self) -> Parts | None:
        """What the model is made of, for the hash in its certificate; None if there is no model."""
        return None

    def _publish(self, published: Published) -> None:
        """By-products of the run, as fitted attributes."""
        self._published = [f"{name}_" for name in published]
        for name, value in zip(self._published, published.values(), strict=True):
            setattr(self, name, value)

    def plan(self, n_samples: int, n_features: int) -> Plan:
        """What would be released for data of this shape, and with what noise. Touches no data, spends nothing.

        For a fit with ``groups``, ``n_samples`` is the number of people.
        """
        plan = self._plan_design(design_of(self, n_samples, n_features))
        logs.planned(plan)
        return plan

    def _design(self, n_samples: int, n_features: int, outputs: int, unit: Unit = "row") -> Design:
        problem = replace(self._problem(n_samples, n_features, outputs), unit=unit)
        delta = n_samples**-2.0 if self.delta is None else self.delta
        budget = Budget(self.epsilon, delta, cast(Adjacency, self.adjacency))  # which checks it
        return Design(problem, self._algorithm(outputs), budget)

    def _plan_design(self, design: Design) -> Plan:
        """The plan of a fit by itself. A ledger counts in currencies that add up over fits: there noise is calibrated
        in them, so that what a fit is said to cost is what it takes from the grant."""
        plan = design.plan()
        return plan if self.ledger is not None else plan.with_least_noise()

    def _people_of(self, groups: Column, rows: int) -> Indices | None:
        """Whose each row is, where ``groups`` makes the person the unit of privacy."""
        if groups is None:
            return None
        if not getattr(self._vault(), "of_people", False):
            raise TypeError(
                f"groups is not supported by {type(self).__name__}.fit: every row is a person's only report there; "
                "give one row per person and drop the argument"
            )
        return person_of_each_row(groups, rows, self._fewest)

    def _fit(self, X: Table, y: Floats, assumptions: tuple[str, ...], owners: Indices | None = None) -> Self:
        n, d = X.shape if owners is None else (int(owners.max(initial=-1)) + 1, X.shape[1])
        unit: Unit = "row" if owners is None else "person"
        design = self._design(n if self.n_public is None else self.n_public, d, 1 if y.ndim == 1 else y.shape[1], unit)
        plan = self._with_notes(self._plan_design(design), X)
        assumptions += (*self._assumed_of_rows(plan, n), *assumed_of_searches(plan))
        fit = Fit(plan, self.verbose)
        noise, vault = NoiseSource(self.random_state, hardened=self.hardened), self._vault()
        if vault is CentralVault:  # others copy less
            check_memory(X, 2 if table_facts(plan).intercept_column > 0 else 1)
        fit.pay(self.ledger, self.dataset, X)
        notes = fit.remember(X)
        # from here on the old model and its by-products are gone: an interrupted fit leaves none
        for name in ("certificate_", *self.__dict__.pop("_published", ())):
            self.__dict__.pop(name, None)
        people = () if owners is None else (owners,)
        outcome = fit.ask(lambda watch: vault(X, y, plan, noise, watch, *people), design.algorithm.run)
        self.certificate_ = fit.complete(Found(self, plan), outcome, assumptions, notes)
        return self

    def _assumed_of_rows(self, plan: Plan, n: int) -> tuple[str, ...]:
        """That their number is public, where only neighbours that differ in it could tell and nobody declared it."""
        if plan.budget.adjacency is Adjacency.REPLACE_ONE:
            if self.n_public is not None:
                raise ValueError(
                    f"n_public={self.n_public!r} has a meaning only with adjacency='add-remove'; leave it None"
                )
            return ()
        if self.n_public is not None:
            return ()
        counted = plan.problem.counted
        return (f"the number of {counted}, {n}, is public: it was read from the data; declare n_public instead",)

    def _forget(self) -> None:
        """Be as before a fit."""
        for name in [name for name in self.__dict__ if name.endswith("_") or name == "_published"]:
            del self.__dict__[name]

    def _with_notes(self, plan: Plan, X: Table) -> Plan:
        """The plan with public facts about the rows that certificates should tell."""
        return plan

    def _outputs_declared(self) -> int:
        return 1

    @property
    def _dtypes(self) -> list[type] | str:
        """The kinds of numbers that are taken as they are."""
        return [np.float64, np.float32]

    def _bounds(self) -> Bounds:
        bound = self.feature_bound
        if bound is None or np.ndim(bound) == 0:
            return Bounds(cast("float | None", bound), self.row_bound, self._target_range())
        try:
            columns = tuple(float(each) for each in cast(Iterable[float], bound))
        except (TypeError, ValueError):
            raise ValueError(f"feature_bound={bound!r} must be a positive number, or one per column") from None
        return Bounds(columns, self.row_bound, self._target_range())

    def _target_range(self) -> tuple[float, float] | None:
        return None

    def _check_rows(self, X: Table, *y: Column, counts: bool = True, **requirements: Any) -> Any:
        """scikit-learn's validation, its messages without the values they would print, and without ``counts`` of rows
        where these are not public."""
        check_structure(X)
        for targets in y:
            check_structure(targets, "y")
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # what is added up in there would warn of wild cells
                if isinstance(X, Collection):
                    return self._checked_on_workers(X, *y)
                # a frame's columns have kinds of their own, which one cell may decide: not about those of others
                kinds = np.float64 if hasattr(X, "columns") else self._dtypes
                return validate_data(self, X, *y, dtype=kinds, **requirements)
        except ValueError as error:
            message = without_values(str(error))
            raise ValueError(message if counts else without_counts(message)) from None

    def _checked_to_fit(self, X: Table, *y: Column, groups: Column) -> Any:
        """Rows, and targets if there are any. With ``groups``, or ``n_public``, how many rows there are is private."""
        X = eager(X)
        reject_text(X)
        counts = groups is None and self.n_public is None
        accepted = {"accept_sparse": ("csc", "csr", "coo"), "ensure_min_samples": self._fewest}
        return self._check_rows(X, *y, counts=counts, **accepted)

    @property
    def _fewest(self) -> int:
        """Rows, or people, that a fit takes. Where a number is declared, that of the data is told by nothing, not even
        by a refusal."""
        return 2 if self.n_public is None else 0

    def _checked_on_workers(self, X: Collection, y: Column) -> tuple[Partitions, Any]:
        """The same for rows that stay on Dask workers: their columns and targets here, their cells there."""
        if self._vault() is not CentralVault:
            raise TypeError(f"X is a Dask collection: {type(self).__name__} takes rows in memory; give X.compute()")
        validate_data(self, zero_row_like(X.X))
        parts = X.partitions(self._dtypes)
        rows = sparse.csr_array((parts.shape[0], 1))  # as many as there are, so that their number is checked, too
        _, y = check_X_y(rows, y, accept_sparse=True, ensure_min_samples=self._fewest, estimator=self)
        return parts, y

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        with np.printoptions(threshold=6):  # a bound for each column is not for reading
            return super().__repr__(N_CHAR_MAX)  # type: ignore[no-any-return]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@dataclass(frozen=True)
class Found:
    """An estimator as what keeps the outcome of a fit."""

    estimator: PrivateEstimator
    plan: Plan

    def keep(self, outcome: Outcome) -> str | None:
        adopt(self.estimator, self.plan, outcome.found, outcome.published)
        released = self.estimator._model_parts()
        return None if released is None else model_hash(released)

    def forget(self) -> None:
        self.estimator._forget()


def adopt(estimator: PrivateEstimator, plan: Plan, found: Finding, published: Published) -> None:
    """Make what an algorithm found under ``plan`` an estimator's fitted attributes."""
    estimator._keep(found, plan)
    estimator._publish(dict(published))
    estimator.plan_, estimator.algorithm_ = plan, plan.algorithm


def algorithm_of(estimator: PrivateEstimator, plan: Plan) -> Any:
    """What asks, in a fit of ``plan``."""
    return estimator._algorithm(plan.problem.outputs)


def checked_rows(estimator: PrivateEstimator, X: Any, *y: Any, **requirements: Any) -> Any:
    """Rows, and targets if there are any, as a fit takes them: scikit-learn's validation, whose errors quote no value.

    The estimator then knows how many columns there are, and their names.
    """
    return estimator._check_rows(X, *y, **requirements)


def design_of(
    estimator: PrivateEstimator, n_samples: int, n_features: int, outputs: int | None = None, unit: Unit = "row"
) -> Design:
    """What an estimator would ask of data of this shape; without ``outputs``, with as many as it declares."""
    return estimator._design(n_samples, n_features, estimator._outputs_declared() if outputs is None else outputs, unit)
