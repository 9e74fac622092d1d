"""Whole fits that are audited from outside: of people with several rows, and of searches; sound, and broken."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.base import clone

from thresher.algorithms import OutputPerturbation
from thresher.audit import pairs
from thresher.audit.cases import AuditCase, Claim
from thresher.audit.pairs import Pair
from thresher.models.options import AdjacencyName
from thresher.models.sparse import SparseClassifier, SparseRegressor
from thresher.models.trials import Search
from thresher.privacy.arrays import Floats
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.plan import Plan
from thresher.vaults import Trials
from thresher.vaults.losses import LOGISTIC
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource
from thresher.vaults.scoring import Scoring
from thresher.vaults.trials import Trial

__all__ = ["FitOfPeople", "SearchFit", "broken_fits", "sound_fits"]

CLAIM = Claim(2.0, 0.01)
ROWS_EACH = 6
GRID = 10
SCORED = 0.98  # of the rows of a search: what is learnt from a row that is fitted is not seen


def sound_fits() -> list[AuditCase]:
    row, added = pairs.mirrored_row(), pairs.mirrored_row(adjacency="add-remove")
    return [
        AuditCase("people", "algorithm", FitOfPeople(), row, CLAIM, 5_000),
        AuditCase("people", "algorithm", FitOfPeople(adjacency="add-remove"), added, CLAIM, 5_000),
        AuditCase("private-search", "algorithm", SearchFit(), one_label(), CLAIM, 5_000),
    ]


def broken_fits() -> list[AuditCase]:
    """A claim about rows that is taken for one about people; a grid search that claims what one of its fits costs."""
    return [
        AuditCase("people-as-rows", "broken", FitOfPeople(grouped=False), pairs.mirrored_row(), CLAIM, 500, "as-rows"),
        AuditCase("private-search-grid", "broken", SearchFit(grid=GRID), one_label(), CLAIM, 1_000, "grid"),
    ]


@dataclass(frozen=True)
class FitOfPeople:
    """A fit in which everybody has the row of the pair six times over; what is seen is the model."""

    grouped: bool = True
    adjacency: AdjacencyName = "replace-one"

    def __call__(self, X: Floats, y: Floats, seed: int | None) -> Floats:
        model = SparseRegressor(
            X.shape[1], epsilon=CLAIM.epsilon, delta=CLAIM.delta, feature_bound=1.0, target_bound=1.0,
            algorithm=OutputPerturbation(ridge=10.0), adjacency=self.adjacency, fit_intercept=False,
            n_public=100 if self.adjacency == "add-remove" else None, random_state=seed,
        )  # fmt: skip
        whose = np.repeat(np.arange(len(y)), ROWS_EACH)
        model.fit(X[whose], y[whose], groups=whose if self.grouped else None)
        return np.append(model.coef_, model.coef_.sum())  # of the sum all coordinates tell


@dataclass(frozen=True)
class SearchFit:
    """A search whose best score is seen; most rows are scored, so that this tells most.

    ``grid`` is that of a grid search: so many trials, each with the whole budget, of which all scores are seen.
    """

    grid: int | None = None

    def __call__(self, X: Floats, y: Floats, seed: int | None) -> Floats:
        search, plan = _search(self.grid, len(y), X.shape[1])
        noise = NoiseSource(seed)
        if self.grid is None:
            with Trials(X, y, plan, noise) as vault:
                search.run(vault)
                return np.array([vault.published["best_score"]])
        with AllScoresTold(X, y, plan, noise) as vault:
            search.run(vault)
            return np.array([np.mean(vault.scores)])


class AllScoresTold(Trials):
    """As many trials as are expected, and what each of them scored."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._noise.trials = round  # type: ignore[method-assign,assignment]
        self.scores: list[float] = []

    def _run_trial(self, *arguments: Any) -> Trial:
        trial = super()._run_trial(*arguments)
        self.scores.append(trial.score)
        return trial


@lru_cache(maxsize=4)
def _search(grid: int | None, n: int, d: int) -> tuple[Search, Plan]:
    """Two candidates and a plan; of a grid search, one that nobody has paid for."""
    model = SparseClassifier(
        1, feature_bound=1.0, classes=[0, 1], algorithm=OutputPerturbation(ridge=1.0), fit_intercept=False
    )
    params = ({"sparsity": 1}, {"sparsity": 2})
    models = tuple(clone(model).set_params(**each) for each in params)
    search = Search(models, params, float(grid or 4), SCORED, Scoring.of_classes("accuracy", 2))
    problem, budget = (
        LinearProblem(n, d, Bounds(feature=1.0), sparsity=1, loss=LOGISTIC, intercept=False),
        Budget(CLAIM.epsilon, CLAIM.delta),
    )
    if grid is None:
        return search, search.plan(problem, budget)
    unpaid, settings = Budget(math.inf, CLAIM.delta), {"trial_epsilon": CLAIM.epsilon}
    return search, Plan(search.name, problem, unpaid, (search.release_within(problem, budget),), settings)


def one_label() -> Pair:
    """Rows of zeros, which a model without an intercept takes for the first class; one of them is of the second."""
    X, right = np.zeros((200, 3)), np.zeros(200)
    wrong = right.copy()
    wrong[0] = 1.0
    return Pair("one label", (X, right), (X, wrong), score=_lower)


def _lower(seen: Any) -> float:
    return -float(seen[0])
