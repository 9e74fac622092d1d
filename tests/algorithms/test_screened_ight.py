"""screened-ight: which columns it looks at, that centring changes nothing but steps, and what it reaches on words."""

import math

import numpy as np
import pytest
from scipy import sparse

from thresher import SparseClassifier, SparseRegressor
from thresher.algorithms import ScreenedIGHT
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.vaults import CentralVault
from thresher.vaults.losses import loss_named
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource


def texts(seed=0, n=4000, d=3000, classes=4, clear=0.25, words=10):
    """Unit rows of 30 words each, some of which belong to a class; common words are more common than others."""
    rng = np.random.default_rng(seed)
    common = 1 / (np.arange(d) + 10.0)
    y = rng.integers(0, classes, n)
    columns = np.searchsorted(np.cumsum(common / common.sum()), rng.random((n, 30))).clip(0, d - 1)
    topic = rng.random((n, 30)) < clear
    columns[topic] = (words * y[:, None] + rng.integers(0, words, (n, 30)))[topic] + 40
    X = sparse.csr_array((np.ones(n * 30), (np.repeat(np.arange(n), 30), columns.ravel())), shape=(n, d))
    X.sum_duplicates()
    X.data /= np.repeat(np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1])), np.diff(X.indptr))
    return X, y


def run(X, y, budget, outputs=1, sparsity=20, intercept=True, seed=0):
    loss = loss_named("multinomial" if outputs > 1 else "logistic")
    problem = LinearProblem(
        X.shape[0], X.shape[1], Bounds(row=1.0), sparsity=sparsity, loss=loss, outputs=outputs, intercept=intercept
    )
    plan = ScreenedIGHT().plan(problem, budget)
    vault = CentralVault(X, np.eye(4)[y] if outputs > 1 else y.astype(float), plan, NoiseSource(seed))
    return ScreenedIGHT().run(vault), vault


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("outputs", [1, 4])
def test_after_the_means_only_the_columns_with_the_largest_are_asked_about(outputs, intercept, monkeypatch):
    asked, answered = [], CentralVault.restricted_gradient

    def watched(self, theta, support, release, clip, basis=None):
        asked.append(support)
        return answered(self, theta, support, release, clip, basis)

    monkeypatch.setattr(CentralVault, "restricted_gradient", watched)
    X, y = texts()
    theta, vault = run(X, y if outputs > 1 else y > 1, Budget(4.0, 1e-6), outputs, intercept=intercept)
    names = [answer.release.question.name for answer in vault.answers]
    one = ["near maximum", *["restricted gradient"] * (1 + intercept)]
    assert names == [*["restricted gradient"] * intercept, "mean", "near maximum", *one * 15]
    supports = [support for support in asked if len(support) > 1]
    assert {len(support) for support in supports} == {1000}
    assert all(np.array_equal(support, supports[0]) for support in supports)
    means = np.asarray(X.mean(axis=0)).ravel()
    assert len(np.intersect1d(supports[0], np.argsort(-means)[:100])) > 90
    table = theta[: outputs * 3000].reshape(outputs, 3000)
    assert set(np.flatnonzero(table.any(axis=0))) <= set(supports[0])
    assert np.count_nonzero(table) <= 20 * outputs


@pytest.mark.parametrize("outputs", [1, 4])
def test_the_default_plan_fills_the_budget(outputs):
    problem = LinearProblem(
        4000, 3000, Bounds(row=1.0), sparsity=20, outputs=outputs,
        loss=loss_named("multinomial" if outputs > 1 else "logistic"),
    )  # fmt: skip
    plan = ScreenedIGHT().plan(problem, Budget(1.0, 1e-6)).with_least_noise()
    assert 0.999 <= plan.epsilon <= 1.0


def test_rows_of_words_are_told_apart_better_than_on_all_columns():
    """Five tables; dp-ight pays for 12000 columns of which most are hardly used. Chance is .25."""
    scores = {"screened-ight": [], "dp-ight": []}
    for seed in range(5):
        X, y = texts(seed, d=12_000, clear=0.25, words=200)
        for name, found in scores.items():
            facts = {"epsilon": 1.0, "delta": 1e-6, "row_bound": 1.0, "classes": [0, 1, 2, 3], "random_state": seed}
            model = SparseClassifier(200, algorithm=name, **facts).fit(X[:3000], y[:3000])
            found.append(model.score(X[3000:], y[3000:]))
    assert np.mean(scores["screened-ight"]) > np.mean(scores["dp-ight"]) + 0.02


def test_numbers_are_predicted_and_their_centre_is_found_without_privacy():
    X, y = texts()
    target = 3.0 + 2.0 * (y == 0) - 1.0 * (y == 1)
    facts = {"epsilon": math.inf, "row_bound": 1.0, "target_bound": (0, 6), "algorithm": "screened-ight"}
    model = SparseRegressor(40, **facts).fit(X, target)
    assert model.score(X, target) > 0.6
    assert abs(np.mean(model.predict(X)) - target.mean()) < 0.1
