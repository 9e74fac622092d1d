"""Hyper-parameter search that pays: one budget for all trials, one certificate for what they cost together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from thresher.accounting import zcdp_rho
from thresher.budget import Budget, BudgetExceeded
from thresher.erm_estimators import ERMClassifier, ERMRegressor
from thresher.estimators import SparseClassifier, SparseRegressor
from thresher.fitting import PrivateFit
from thresher.models import ClassifierModel, LinearModel
from thresher.partitions import at_work
from thresher.plan import Plan, Problem
from thresher.pool import candidates_of, told
from thresher.releases import GaussianScore, RandomTrials
from thresher.scoring import CLASSES, NUMBERS, Scoring
from thresher.tables import numeric_target, reject_text
from thresher.vaults import Candidate, Trials
from thresher.vaults.rows import EXACTLY_SAMPLED

__all__ = ["PrivateSearchCV"]

KINDS = (SparseRegressor, SparseClassifier, ERMRegressor, ERMClassifier)
MOST_TRIALS = 8.0  # by default: more cost a trial over half of its epsilon (chosen on the sets of docs/tuning.md)
CLOSE = 2e-3  # a calibrated search costs at most this much less than the budget
SMALLEST = 1e-6  # epsilon of a trial


@dataclass(frozen=True, eq=False)
class Search:
    """Draw a candidate, fit it on some rows, score it on the others; a secret number of times; keep the best.

    All candidates are planned with one epsilon, the largest with which the whole search keeps its budget.
    """

    models: tuple[LinearModel, ...]
    params: tuple[dict[str, Any], ...]
    trials: float
    validation: float
    scoring: Scoring
    name: ClassVar[str] = "private-search"

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        if budget.private and budget.delta == 0:
            raise ValueError("delta=0: a search has no pure guarantee; give a small delta, or None for 1/n^2")

        def search(epsilon: float) -> RandomTrials:
            return self._releases(problem, replace(budget, epsilon=epsilon))

        def price(epsilon: float) -> float:
            return search(epsilon).cost().epsilon(budget.delta)[0]

        epsilon = _largest(price, budget.epsilon) if budget.private else math.inf
        if epsilon is None:
            raise ValueError(
                f"trials={self.trials:g} leave nothing of epsilon={budget.epsilon:g} for a trial; use fewer trials or "
                "a larger epsilon"
            )
        release = search(epsilon)
        settings = {
            "trials": release.trials,
            "fit_rows": release.fit_rows,
            "score_rows": release.score_rows,
            "trial_epsilon": epsilon,
            "scoring": self.scoring.name,
            "candidates": [told(params) for params in self.params],
        }
        return Plan(self.name, problem, budget, (release,), settings)

    def run(self, vault: Trials) -> None:
        (release,) = vault.plan.releases
        assert isinstance(release, RandomTrials)  # noqa: S101
        budget = replace(vault.plan.budget, epsilon=vault.plan.settings["trial_epsilon"])
        plans, outputs = self._plans(vault.problem, budget), vault.problem.outputs
        pool = [Candidate(m._algorithm(outputs), plan) for m, plan in zip(self.models, plans, strict=True)]
        best = vault.best(release, pool, self.scoring)
        at = next(at for at, candidate in enumerate(pool) if candidate is best.candidate)
        model: Any = clone(self.models[at]).set_params(epsilon=budget.epsilon, delta=budget.delta)
        model._keep(best.theta, plans[at])
        model._publish(best.published)
        model.plan_, model.algorithm_ = plans[at], plans[at].algorithm
        score = self.scoring.natural(best.score)
        vault.published = {"best_estimator": model, "best_params": self.params[at], "best_score": score}

    def _releases(self, problem: Problem, budget: Budget) -> RandomTrials:
        """The search in which a trial has ``budget``. Who is scored is not fitted, so scoring takes as much again."""
        plans = self._plans(problem, budget)
        score = GaussianScore.for_rho(zcdp_rho(budget.epsilon, budget.delta))
        fits = tuple(dict.fromkeys(plan.releases for plan in plans))
        fitted = plans[0].problem.n
        return RandomTrials(1, self.trials, fits, score, fitted, problem.n - fitted)

    def _plans(self, problem: Problem, budget: Budget) -> list[Plan]:
        """Every candidate's, for the rows that are fitted."""
        scored = round(self.validation * problem.n)
        if not 1 <= scored <= problem.n - 2:
            raise ValueError(
                f"validation={self.validation!r} of {problem.n} rows leaves {problem.n - scored} to fit and {scored} "
                "to score; change it, or bring more rows"
            )
        return [
            self._planned(model, params, problem, problem.n - scored, budget)
            for model, params in zip(self.models, self.params, strict=True)
        ]

    def _planned(self, model: Any, params: dict[str, Any], problem: Problem, rows: int, budget: Budget) -> Plan:
        model = clone(model).set_params(epsilon=budget.epsilon, delta=budget.delta)
        with _named(params):
            plan: Plan = model._plan(rows, problem.d, problem.outputs)
        if plan.calibration != "proved":
            raise ValueError(f"candidate {params!r}: noise as printed in a paper has no price; use 'proved'")
        for release in plan.releases:
            if model.hardened and release.noise not in EXACTLY_SAMPLED and release.question != "any":
                raise ValueError(f"candidate {params!r}: hardened=True has no exact sampler for {release.noise} noise")
        return plan


class PrivateSearchCV(PrivateFit):
    """Search for hyper-parameters and fit with the best, all within one privacy budget.

    A secret, random number of times (``trials`` on average) a candidate is drawn, fitted privately on most of the rows
    and scored privately on the others; the best trial's model is kept as it is, not fitted again. ``certificate_``
    states what the whole search costs. ``plan(n_samples, n_features)`` shows the price before it is paid:
    ``settings["trial_epsilon"]`` is what is left for one trial.

    How many trials were made stays secret, and the running time tells of it: keep that to yourself.

    Parameters
    ----------
    estimator : SparseRegressor, SparseClassifier, ERMRegressor or ERMClassifier
        What is fitted. Its adjacency, classes, n_public and hardened hold for all trials; its epsilon, delta,
        random_state and verbose are not used.
    param_distributions : dict, or list of dicts
        Names of parameters with lists of values, or with SciPy distributions. Public: never write down values that
        were found by looking at these rows.
    epsilon, delta : float
        The privacy budget of the whole search. ``delta=None`` means 1/n^2.
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
    """

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        trials: float | None = None,
        n_iter: int = 10,
        validation: float = 0.2,
        scoring: str | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.epsilon = epsilon
        self.delta = delta
        self.trials = trials
        self.n_iter = n_iter
        self.validation = validation
        self.scoring = scoring
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Search on the rows of ``X`` (NumPy, SciPy sparse, pandas, polars) and the targets or labels ``y``."""
        model = self._model()
        assumptions: tuple[str, ...] = ()
        with at_work(X, y) as (X, y):
            reject_text(X)
            y = y if self._classifies else numeric_target(y)
            X, y = self._checked(X, y, accept_sparse=("csc", "csr", "coo"), ensure_min_samples=2)
        if self._classifies:
            classes, y, assumptions = model._classes_in(y)
        self._fit(X, y, assumptions)
        best = self.best_estimator_
        best.n_features_in_, best.certificate_ = self.n_features_in_, self.certificate_
        if hasattr(self, "feature_names_in_"):
            best.feature_names_in_ = self.feature_names_in_
        if self._classifies:
            best.classes_ = classes
        return self

    # -- after the search -------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[Any]:
        return self._best().predict(X)  # type: ignore[no-any-return]

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[Any]:
        return self._best().predict_proba(X)  # type: ignore[no-any-return]

    @available_if(lambda self: hasattr(self.estimator, "decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[Any]:
        return self._best().decision_function(X)  # type: ignore[no-any-return]

    def score(self, X: Any, y: Any) -> float:
        """By ``scoring`` if it is given, else accuracy or R^2. Not private: for rows that need no protection."""
        from sklearn.metrics import get_scorer  # takes long to import

        best = self._best()
        return float(best.score(X, y) if self.scoring is None else get_scorer(self.scoring)(best, X, y))

    @property
    def classes_(self) -> NDArray[Any]:
        return self._best().classes_  # type: ignore[no-any-return]

    def _best(self) -> Any:
        check_is_fitted(self, "certificate_")
        return self.best_estimator_

    # -- what PrivateFit asks for -----------------------------------------------------------------------------------

    @property
    def adjacency(self) -> Any:
        return self.estimator.adjacency

    @property
    def n_public(self) -> int | None:  # type: ignore[override]
        return self.estimator.n_public  # type: ignore[no-any-return]

    @property
    def hardened(self) -> bool:  # type: ignore[override]
        return self.estimator.hardened  # type: ignore[no-any-return]

    def _vault(self) -> Any:
        return Trials

    def _problem(self, n_samples: int, n_features: int, outputs: int) -> Problem:
        """Of the first candidate; the certificate states those of the best."""
        search = self._search(outputs)
        with _named(search.params[0]):
            first: Problem = search.models[0]._problem(n_samples, n_features, outputs)
        return first

    def _algorithm(self, outputs: int) -> Search:
        return self._search(outputs)

    def _outputs_declared(self) -> int:
        return self._model()._outputs_declared()  # type: ignore[no-any-return]

    def _keep(self, theta: Any, plan: Plan) -> None:
        """Everything is published by the run."""

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
        ranges = [model._target_range() for model in models]
        if None in ranges:
            raise ValueError("target_bound=None: give the public range of the target to the estimator or a candidate")
        return Scoring.of_numbers(name, ranges)

    def _model(self) -> Any:
        """The estimator to search with."""
        if type(self.estimator) not in KINDS:
            names = ", ".join(kind.__name__ for kind in KINDS)
            raise ValueError(f"estimator={self.estimator!r} must be one of {names}: others cannot be priced together")
        return self.estimator

    @property
    def _classifies(self) -> bool:
        return isinstance(self.estimator, ClassifierModel)

    def __sklearn_tags__(self) -> Any:
        tags, of = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = of.estimator_type
        tags.classifier_tags, tags.regressor_tags = deepcopy(of.classifier_tags), deepcopy(of.regressor_tags)
        tags.target_tags = deepcopy(of.target_tags)
        return tags


def default_trials(candidates: int) -> float:
    """Twice as many as there are candidates leave out a given one with a chance of e^-2; one needs no choice."""
    return min(2.0 * candidates, MOST_TRIALS) if candidates > 1 else 1.0


@contextmanager
def _named(params: dict[str, Any]) -> Iterator[None]:
    """Says which candidate cannot be planned. Nothing has been spent, and no row read."""
    try:
        yield
    except (ValueError, TypeError, BudgetExceeded) as error:
        raise ValueError(f"candidate {params!r} cannot be planned: {error}") from error


def _largest(price: Callable[[float], float], budget: float) -> float | None:
    """The largest epsilon of a trial, within CLOSE, whose search costs at most ``budget``; None if there is none.

    The price is about proportional to it, so the secant rule in logarithms gets there in a few steps; where plans
    change with their budget the price may jump, and halving the bracket goes on.
    """
    low, high, found = SMALLEST, budget, None
    trial, slope, last = 0.6 * budget, 1.0, (0.0, 0.0)
    for step in range(60):
        cost = price(trial)
        if cost <= budget:
            low = found = trial
        else:
            high = trial
        if budget * (1 - CLOSE) <= cost <= budget or high < low * (1 + CLOSE / 4):
            break
        now = math.log(trial), math.log(max(cost, 1e-300))
        if step > 0 and now[0] != last[0]:
            slope = min(max((now[1] - last[1]) / (now[0] - last[0]), 0.3), 3.0)
        last = now
        trial *= math.exp((math.log(budget * (1 - CLOSE / 2)) - now[1]) / slope)
        if not low < trial < high:
            trial = math.sqrt(low * high)
    return found
