"""screened-ight: which columns it looks at, that centring changes nothing but steps, and what it reaches on words."""

import math
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from thresher import SparseClassifier, SparseRegressor
from thresher.algorithms import ScreenedIGHT
from thresher.algorithms.lazy_descent import LazyWalk
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


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("outputs", [1, 4])
def test_the_means_are_asked_for_once_and_taken_off_every_gradient(outputs, intercept, monkeypatch):
    """Without noise no row is clipped, and what the walk is told is the gradient of the centred columns."""
    told, stepped = [], LazyWalk.step

    def watched(self, gradient, sd=None):
        told.append((self.problem.by_column(gradient).reshape(-1, outputs), self.problem.by_column(self.model)))
        stepped(self, gradient, sd)

    monkeypatch.setattr(LazyWalk, "step", watched)
    X, y = texts(n=300, d=80)
    y = y if outputs > 1 else (y > 1).astype(int)
    _, vault = run(X, y, Budget(math.inf, 1e-6), outputs, intercept=intercept)
    assert [answer.release.question.name for answer in vault.answers].count("mean") == 1
    rows = X.toarray()
    centred = rows - rows.mean(axis=0) * intercept
    if intercept:
        centred = np.hstack([centred, np.full((300, 1), vault.problem.intercept_column)])
    for gradient, model in told[:3]:
        margins = centred @ model.reshape(-1, outputs)
        odds = np.exp(margins)
        chances = odds / odds.sum(axis=1, keepdims=True) if outputs > 1 else expit(margins)
        residuals = chances - (np.eye(4)[y] if outputs > 1 else y[:, None])
        np.testing.assert_allclose(gradient, centred.T @ residuals / 300, atol=1e-9)


@pytest.mark.parametrize("shares", [(0.8, 0.2), (0.7, 0.1, 0.1, 0.1)], ids=["two classes", "four classes"])
def test_on_pure_noise_classes_are_guessed_about_as_well_as_by_the_base_rate(shares):
    """Ten tables whose classes have nothing to do with the rows, at an epsilon that pays for little."""
    worse = []
    for seed in range(10):
        X, _ = texts(seed, n=4000, d=1500)
        y = np.random.default_rng(100 + seed).choice(len(shares), 4000, p=shares)
        facts = {"epsilon": 0.5, "delta": 1e-6, "row_bound": 1.0, "random_state": seed}
        model = SparseClassifier(20, classes=list(range(len(shares))), algorithm="screened-ight", **facts).fit(X, y)
        worse.append(max(np.bincount(y)) / 4000 - model.score(X, y))
    assert np.mean(worse) < 0.02
    assert max(worse) < 0.08


def test_sparse_rows_of_a_million_columns_stay_sparse():
    """A dense copy would take 8 GB."""
    X, y = texts(n=1000, d=2000)
    wide = sparse.csr_array((X.data, X.indices * 500, X.indptr), shape=(1000, 1_000_000))
    tracemalloc.start()
    theta, _ = run(wide, (y > 1).astype(int), Budget(2.0, 1e-6))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1e9
    assert np.count_nonzero(theta[:1_000_000]) <= 20


def test_with_exact_noise_the_claim_is_proved():
    X, y = texts(n=500, d=1200)
    facts = {"epsilon": 2.0, "delta": 1e-6, "row_bound": 1.0, "classes": [0, 1], "algorithm": "screened-ight"}
    certificate = SparseClassifier(20, hardened=True, **facts).fit(X, y > 1).certificate_
    assert certificate.grade == "proved"
    assert certificate.verify().ok
