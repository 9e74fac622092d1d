"""Objective perturbation on all columns: what it costs, what its ridge is, and what it finds."""

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from thresher.algorithms import ObjectivePerturbation
from thresher.algorithms.objective_perturbation import default_ridge
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.vaults import CentralVault
from thresher.vaults.central.minimisers import curvature_ratio
from thresher.vaults.losses import LOGISTIC, SQUARED
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

PROBLEMS = {
    "logistic": LinearProblem(400, 4, Bounds(row=1.0), sparsity=4, loss=LOGISTIC, intercept=False),
    "squared": LinearProblem(
        400, 4, Bounds(feature=(0.1, 1.0, 2.0, 9.0), target=(-3.0, 3.0)), sparsity=4, loss=SQUARED
    ),
}


def some_rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, (n, 4))
    return X, (X[:, 0] - X[:, 1] + 0.2 * rng.normal(size=n) > 0).astype(float)


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.05, 1e-12), (1.0, 1e-6), (20.0, 1e-2)])
@pytest.mark.parametrize("ridge", [None, 1e-9, 0.1, 10.0])
def test_a_plan_takes_the_budget_whatever_ridge_is_asked_for(problem, adjacency, epsilon, delta, ridge):
    budget = Budget(epsilon, delta, adjacency)
    plan = ObjectivePerturbation(ridge).plan(problem, budget)
    assert epsilon * (1 - 1e-6) <= plan.epsilon <= epsilon
    taken = plan.settings["ridge"]
    assert taken >= default_ridge(problem, budget)
    assert plan.releases[0].curvature_ratio == curvature_ratio(problem, np.arange(problem.dimension), taken)


def test_the_curvature_never_takes_more_than_its_share_of_epsilon():
    """Erratum E-27: n lambda = .5 and epsilon=.5 as in the thesis, where the term 1 + 1/(4 n lambda) was left out."""
    problem = LinearProblem(500, 4, Bounds(row=1.0), sparsity=4, loss=LOGISTIC, intercept=False)
    plan = ObjectivePerturbation(ridge=1e-3).plan(problem, Budget(0.5, 1e-3))
    assert math.log1p(1 / (4 * 500 * 1e-3)) == pytest.approx(0.405, abs=0.001)
    assert math.log1p(plan.releases[0].curvature_ratio) == pytest.approx(0.4 * 0.5)


def test_without_privacy_it_is_the_ridge_minimiser():
    X, y = some_rows()
    plan = ObjectivePerturbation(ridge=0.01, clip=1.0).plan(PROBLEMS["logistic"], Budget(math.inf, 1e-6))
    theta = ObjectivePerturbation().run(CentralVault(X, y, plan, NoiseSource(0)))
    exact = LogisticRegression(C=1 / (len(y) * 0.01), fit_intercept=False, tol=1e-10).fit(X, y)
    assert theta == pytest.approx(exact.coef_[0], abs=1e-3)


def test_more_budget_brings_it_closer_to_the_minimiser():
    """Medians of 9 runs, 100 times the budget apart."""
    X, y = some_rows()
    distances = []
    for epsilon in (0.2, 20.0):
        plan = ObjectivePerturbation(ridge=0.05, clip=1.0).plan(PROBLEMS["logistic"], Budget(epsilon, 1e-6))
        found = [ObjectivePerturbation().run(CentralVault(X, y, plan, NoiseSource(seed))) for seed in range(9)]
        exact = LogisticRegression(C=1 / (len(y) * 0.05), fit_intercept=False, tol=1e-10).fit(X, y).coef_[0]
        distances.append(np.median([np.linalg.norm(theta - exact) for theta in found]))
    assert distances[1] < distances[0] / 5


@pytest.mark.parametrize("wrong", [{"ridge": 0.0}, {"ridge": -1.0}, {"clip": math.inf}, {"clip": math.nan}])
def test_hyper_parameters_that_make_no_sense_are_refused_by_name(wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"{name}=.* must be a positive finite number"):
        ObjectivePerturbation(**wrong)
