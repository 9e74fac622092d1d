"""Hyper-parameter search that pays: one budget for all trials, one certificate for what they cost together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Self

from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from thresher.data.concealment import concealed_comparison, without_causes
from thresher.data.dask import fit_inputs
from thresher.data.sparse_structure import check_structure
from thresher.data.tables import numeric_target
from thresher.data.typing import Column, Table
from thresher.models.candidates import Params, candidates_of
from thresher.models.classifier import ClassifierModel, classes_in
from thresher.models.dense import DenseClassifier, DenseRegressor
from thresher.models.estimator import Parts, PrivateEstimator
from thresher.models.fit import Published
from thresher.models.linear import LinearModel, Predictions, outputs_of, parts_of, problem_of, target_range_of
from thresher.models.options import AdjacencyName, FitOptions
from thresher.models.sparse import SparseClassifier, SparseRegressor
from thresher.models.trials import Search, default_trials, named
from thresher.privacy.plan import Plan
from thresher.vaults import Trials
from thresher.vaults.problem import LinearProblem
from thresher.vaults.scoring import CLASSES, NUMBERS, Scoring

__all__ = ["PrivateSearchCV"]

ParamSpace = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""Which values each parameter may take; a list of such mappings is searched one after the other."""

KINDS = (SparseRegressor, SparseClassifier, DenseRegressor, DenseClassifier)


@dataclass(eq=False, repr=False)
class PrivateSearchCV(FitOptions, PrivateEstimator):
    """Search for hyper-parameters and fit with the best, all within one privacy budget.

    A secret, random number of times (``trials`` on average) a candidate is drawn, fitted privately on most of the rows
    and scored privately on the others; the best trial's model is kept as it is, not fitted again. ``certificate_``
    states what the whole search costs. ``plan(n_samples, n_features)`` shows the price before it is paid:
    ``settings["trial_epsilon"]`` is what is left for one trial.

    How many trials were made stays secret, and the running time tells of it: keep that to yourself.

    Parameters
    ----------
    estimator : SparseRegressor, SparseClassifier, DenseRegressor or DenseClassifier
        What is fitted. Its adjacency, classes, n_public and hardened hold for all trials; its epsilon, delta,
        random_state and verbose are not used.
    param_distributions : dict, or list of dicts
        Names of parameters with lists of values, or with SciPy distributions. Public: never write down values that
        were found by looking at these rows.
    epsilon : float
        The privacy budget of the whole search.
    delta : float
        Of the same budget. None means 1/n^2.
    trials : float
        The expected number of trials. None is twice the number of candidates, at most 8.
    n_iter : int
        How many candidates are drawn if a distribution is among ``param_distributions``; else all combinations count.
    validation : float
        The part of the rows that trials are scored on.
    scoring : str
        "accuracy" (the default) or "neg_log_loss" for classes; "neg_mean_squared_error" (the default) or
        "neg_mean_absolute_error" for numbers, which are clipped to the widest ``target_bound`` of all candidates. No
        row's error counts more than the narrowest one's width: that sets the noise of a score.
    ledger : Ledger or its URL
        The account book that pays for the whole search, once, before a row is read (``thresher.Ledger``).
    dataset : str
        The name of the ledger's account.
    random_state : int
        Repeatable noise, for tests and research only; it marks the certificate.
    verbose : int
        1 shows a progress bar on a terminal. It tells nothing of single trials.

    Attributes
    ----------
    best_estimator_, best_params_
        The best trial's model, which carries the certificate of the search, and what makes it special.
    best_score_
        Its noisy score on rows it was not fitted to: the accuracy, or minus the error. As the best of several it is
        on the optimistic side.
    certificate_, plan_, algorithm_
        What the search cost, what was planned, and "private-search".
    classes_, n_features_in_, feature_names_in_
        As of ``best_estimator_``.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import PrivateSearchCV, SparseRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (10_000, 20))
    >>> y = X[:, 0] - X[:, 1] + rng.normal(0, 0.1, 10_000)
    >>> model = SparseRegressor(feature_bound=1.0, target_bound=3.0)
    >>> search = PrivateSearchCV(model, {"sparsity": [2, 10]}, epsilon=2.0, delta=1e-6, random_state=0).fit(X, y)
    >>> sorted(search.best_params_), search.certificate_.epsilon <= 2.0
    (['sparsity'], True)
    """

    estimator: LinearModel
    param_distributions: ParamSpace
    trials: float | None = field(default=None, kw_only=True)
    n_iter: int = field(default=10, kw_only=True)
    validation: float = field(default=0.2, kw_only=True)
    scoring: str | None = field(default=None, kw_only=True)
    best_estimator_: LinearModel = field(init=False)
    best_params_: Params = field(init=False)
    best_score_: float = field(init=False)

    @without_causes
    def fit(self, X: Table, y: Column, *, groups: Column = None) -> Self:
        """Search on the rows of ``X`` (NumPy, SciPy sparse, pandas, polars) and the targets or labels ``y``.

        ``groups`` holds the id of each row's person, if some have several rows; then people are the unit of privacy.
        """
        model, self._labels = self._model(), None
        assumptions: tuple[str, ...] = ()
        with fit_inputs(X, y) as (X, y):
            y = y if self._classifies else numeric_target(y)
            X, y = self._checked_to_fit(X, y, groups=groups)
        if self._classifies:
            self._labels, y, assumptions = classes_in(model, y)
        self._fit(X, y, assumptions, self._people_of(groups, len(y)))
        self.best_estimator_.certificate_ = self.certificate_
        return self

    # -- after the search -------------------------------------------------------------------------------------------

    def predict(self, X: Table) -> Predictions:
        """What the best model predicts for each row."""
        return self._best().predict(X)

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Table) -> Predictions:
        return self._best().predict_proba(X)

    @available_if(lambda self: hasattr(self.estimator, "decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Table) -> Predictions:
        return self._best().decision_function(X)

    @without_causes
    def score(self, X: Table, y: Column) -> float:
        """By ``scoring`` if it is given, else accuracy or R^2. Not private: for rows that need no protection."""
        from sklearn.metrics import get_scorer  # takes long to import

        best = self._best()
        if self.scoring is None:
            return float(best.score(X, y))
        check_structure(y, "y")
        best.predict(X)  # what is wrong with X is said in full
        with concealed_comparison("a class" if self._classifies else "a number"):
            return float(get_scorer(self.scoring)(best, X, y))

    @property
    def classes_(self) -> NDArray[Any]:
        return self._best().classes_  # type: ignore[no-any-return]

    def _best(self) -> LinearModel:
        check_is_fitted(self, "certificate_")
        return self.best_estimator_

    # -- what PrivateEstimator asks for ------------------------------------------------------------------------------

    @property
    def adjacency(self) -> AdjacencyName:  # type: ignore[override]
        return self.estimator.adjacency

    @property
    def n_public(self) -> int | None:  # type: ignore[override]
        return self.estimator.n_public

    @property
    def hardened(self) -> bool:  # type: ignore[override]
        return self.estimator.hardened

    def _vault(self) -> Any:
        return Trials

    def _problem(self, n_samples: int, n_features: int, outputs: int) -> LinearProblem:
        """Of the first candidate; the certificate states those of the best."""
        search = self._search(outputs)
        with named(search.params[0]):
            return problem_of(search.models[0], n_samples, n_features, outputs)

    def _algorithm(self, outputs: int) -> Search:
        return self._search(outputs)

    def _outputs_declared(self) -> int:
        return outputs_of(self._model())

    def _keep(self, theta: Any, plan: Plan) -> None:
        """Everything is published by the run."""

    def _publish(self, published: Published) -> None:
        """The best model knows its columns and classes before the certificate is made."""
        best = published["best_estimator"]
        best.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            best.feature_names_in_ = self.feature_names_in_
        if self._labels is not None:
            best.classes_ = self._labels
        super()._publish(published)

    def _model_parts(self) -> Parts:
        return parts_of(self.best_estimator_)

    def _search(self, outputs: int) -> Search:
        model = self._model()
        params = candidates_of(model, self.param_distributions, self.n_iter)
        trials = default_trials(len(params)) if self.trials is None else self.trials
        if not (isinstance(trials, Real) and 1 <= trials <= 1000):
            raise ValueError(f"trials={trials!r} must be a number from 1 to 1000: how many trials are expected")
        if not (isinstance(self.validation, Real) and 0 < self.validation < 1):
            raise ValueError(f"validation={self.validation!r} must lie strictly between 0 and 1, for example 0.2")
        models = tuple(clone(model).set_params(**each) for each in params)
        return Search(models, tuple(params), float(trials), float(self.validation), self._scoring(models, outputs))

    def _scoring(self, models: tuple[Any, ...], outputs: int) -> Scoring:
        known = CLASSES if self._classifies else NUMBERS
        name = next(iter(known)) if self.scoring is None else self.scoring
        if name not in known:
            raise ValueError(f"scoring={name!r} must be one of {', '.join(map(repr, known))}")
        if self._classifies:
            return Scoring.of_classes(name, max(outputs, 2))
        ranges = [each for model in models if (each := target_range_of(model)) is not None]
        if len(ranges) < len(models):
            raise ValueError("target_bound=None: give the public range of the target to the estimator or a candidate")
        return Scoring.of_numbers(name, ranges)

    def _model(self) -> Any:
        """The estimator to search with."""
        if not isinstance(self.estimator, KINDS):
            names = ", ".join(kind.__name__ for kind in KINDS)
            raise ValueError(f"estimator={self.estimator!r} must be one of {names}: others cannot be priced together")
        if self.estimator.ledger is not None or self.estimator.dataset is not None:
            raise ValueError("estimator: a search is paid as a whole; give ledger= and dataset= to PrivateSearchCV")
        if self.estimator.schema is not None:
            raise ValueError(
                "estimator: a search takes numbers, and this one reads tables by a schema; give it the rows that "
                "schema.rows(table) returns, with the bounds of schema.encoding()"
            )
        return self.estimator

    @property
    def _classifies(self) -> bool:
        return isinstance(self.estimator, ClassifierModel)

    def __sklearn_tags__(self) -> Tags:
        tags, of = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = of.estimator_type
        tags.classifier_tags, tags.regressor_tags = deepcopy(of.classifier_tags), deepcopy(of.regressor_tags)
        tags.target_tags = deepcopy(of.target_tags)
        return tags
