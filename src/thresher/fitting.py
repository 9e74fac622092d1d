"""Fitting with privacy, whatever is fitted: plan, open a vault, run, certify."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_X_y
from sklearn.utils.validation import validate_data

from thresher import logs
from thresher.algorithms import REGISTRY
from thresher.budget import Adjacency, Budget
from thresher.certificate import certify
from thresher.clipping import Bounds
from thresher.ledger import reserved
from thresher.outlook import noise_over_largest_signal
from thresher.owners import numbered
from thresher.partitions import Collection, Partitions, stand_in
from thresher.plan import Plan, Problem, Unit
from thresher.progress import progress_bar
from thresher.randomness import NoiseSource
from thresher.tables import reject_text, without_counts, without_values
from thresher.vaults import CentralVault
from thresher.vaults.rows import check_samplers
from thresher.warnings import LargeDelta, NoiseDrowns, PrintedNoise, PrivacyOff, ThresherWarning

__all__ = ["PrivateFit", "warn_about"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class PrivateFit(BaseEstimator):
    """An estimator whose fit asks a vault what its plan lists, and carries a certificate of what that cost."""

    # what an estimator that does not offer these has
    delta: float | None = None
    adjacency: Any = Adjacency.REPLACE_ONE
    n_public: int | None = None
    hardened: bool = False
    ledger: Any = None
    dataset: str | None = None

    def _problem(self, n_samples: int, n_features: int, outputs: int) -> Problem:
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
        return numbered(groups, rows)

    def _fit(self, X: Any, y: Floats, assumptions: tuple[str, ...], owners: Indices | None = None) -> Self:
        n, d = X.shape if owners is None else (int(owners.max()) + 1, X.shape[1])
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
        if self.n_public is not None and not n / 2 <= self.n_public <= 2 * n:
            raise ValueError(
                f"n_public={self.n_public!r} is not within a factor of two of the number of {counted}; correct it"
            )
        if self.random_state is not None:
            assumptions += ("random_state was set: whoever knows it can remove the noise",)
        logs.planned(plan)
        warn_about(plan)
        noise = NoiseSource(self.random_state, hardened=self.hardened)
        check_samplers(plan, self.hardened)
        paid = reserved(self.ledger, self.dataset, plan, X)
        # from here on the old model and its by-products are gone: an interrupted fit leaves none
        for name in ("certificate_", *self.__dict__.pop("_published", ())):
            self.__dict__.pop(name, None)
        questions = sum(release.times for release in plan.releases)
        with (
            progress_bar(plan.algorithm, questions, enabled=self.verbose > 0) as watch,
            self._vault()(X, y, plan, noise, watch, *(() if owners is None else (owners,))) as vault,
        ):
            theta = algorithm.run(vault)
            answers = vault.answers
            randomness, published, chosen = vault.randomness, vault.published, vault.chosen
        certificate = certify(plan, answers, randomness, assumptions, chosen)
        if not certificate.verify():
            raise RuntimeError(f"the certificate would not verify, so the model is dropped: {certificate.verify()}")
        self._keep(theta, plan)
        self._publish(published)
        self.plan_ = plan
        self.algorithm_ = plan.algorithm
        self.certificate_ = certificate if paid is None else paid.settle(certificate)
        return self

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
        return self._checked(X, *y, counts=counts, accept_sparse=("csc", "csr", "coo"), ensure_min_samples=2)

    def _checked_on_workers(self, X: Collection, y: Any) -> tuple[Partitions, Any]:
        """The same for rows that stay on Dask workers: their columns and targets here, their cells there."""
        if self._vault() is not CentralVault:
            raise TypeError(f"X is a Dask collection: {type(self).__name__} takes rows in memory; give X.compute()")
        validate_data(self, stand_in(X.X))
        parts = X.partitions(self._dtypes)
        rows = sparse.csr_array((parts.shape[0], 1))  # as many as there are, so that their number is checked, too
        _, y = check_X_y(rows, y, accept_sparse=True, ensure_min_samples=2, estimator=self)
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
        least = noise_over_largest_signal(plan.problem, budget)
        if least > 1:
            _warn(
                NoiseDrowns,
                f"epsilon={budget.epsilon:g}, sparsity={plan.problem.sparsity} with {n} {counted}: even a feature that "
                f"decides the target alone drowns, the noise is {least:.2g} times its signal; bring more {counted}, a "
                "larger epsilon, a smaller sparsity or tighter bounds (thresher plan tells what is enough)",
            )


def _warn(kind: type[ThresherWarning], message: str) -> None:
    warnings.warn(message, kind, stacklevel=5)  # where fit was called
