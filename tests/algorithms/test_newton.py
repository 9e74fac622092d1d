"""Newton's method on private second moments: its plans, and models of skewed numbers, rare classes, several classes."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score

from thresher import DenseClassifier, DenseRegressor, SparseClassifier, SparseRegressor
from thresher.algorithms import Newton
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.conversions import zcdp_rho
from thresher.privacy.releases import (
    GaussianGram,
    GaussianMean,
    GaussianRestrictedGradient,
    GumbelNearMaximum,
    GumbelQuantile,
    GumbelSelection,
)
from thresher.vaults.losses import loss_named
from thresher.vaults.penalties import Penalty
from thresher.vaults.problem import LinearProblem

pytestmark = pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")


def problem_of(n=5000, d=20, s=5, loss="squared", intercept=True, outputs=1, **facts):
    target = (-3.0, 3.0) if loss == "squared" else None
    return LinearProblem(
        n, d, Bounds(feature=1.0, target=target), sparsity=s, loss=loss_named(loss), intercept=intercept,
        outputs=outputs, **facts,
    )  # fmt: skip


def of_kind(plan, kind):
    return [release for release in plan.releases if isinstance(release, kind)]


def correlated(n, d, seed=0):
    """Columns that share a factor, and whose means are far from 0."""
    rng = np.random.default_rng(seed)
    return np.clip(0.3 + 0.25 * rng.normal(size=(n, 1)) + 0.2 * rng.normal(size=(n, d)), -1, 1)


def explained(y, predicted):
    return 1 - np.mean((y - predicted) ** 2) / np.var(y)


# -- plans --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared", "logistic", "multinomial"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("n", "d", "s"), [(200, 4, 4), (300, 20, 3), (5000, 20, 5), (5000, 400, 5), (10**6, 200, 10)])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
def test_the_shares_of_a_plan_add_up_to_the_budget_and_all_are_asked_in_order(loss, intercept, n, d, s, epsilon):
    problem = problem_of(n, d, s, loss, intercept, outputs=3 if loss == "multinomial" else 1)
    budget = Budget(epsilon, 1e-8)
    plan = Newton().plan(problem, budget)
    rho = zcdp_rho(epsilon, 1e-8)
    assert rho * (1 - 1e-9) <= plan.cost.rho <= rho
    assert len(plan.order) == sum(release.times for release in plan.releases)
    assert len(of_kind(plan, GaussianGram)) == len(plan.settings["stages"]) + (
        plan.settings["why_no_intervals"] is None
    )
    assert len(of_kind(plan, GaussianMean)) == intercept
    assert len(of_kind(plan, GumbelQuantile)) == (intercept and loss == "squared")


def test_all_columns_are_looked_at_where_that_is_affordable_and_a_few_are_picked_where_it_is_not():
    for problem, picks in ((problem_of(), 0), (problem_of(d=15, n=100), 0), (problem_of(n=2000, d=400), 8)):
        plan = Newton().plan(problem, Budget(1.0, 1e-6))
        assert plan.settings["stages"][0][0] == picks
        assert [release.picks for release in of_kind(plan, GumbelSelection)] == [picks] * (picks > 0)


def test_models_of_all_columns_and_of_several_classes_have_one_stage():
    for problem, asked in (
        (problem_of(s=20), 6), (problem_of(loss="multinomial", outputs=4), 4), (problem_of(n=150, d=6, s=2), 6),
    ):  # fmt: skip
        ((_, steps, keep),) = Newton().plan(problem, Budget(1.0, 1e-6)).settings["stages"]
        assert (steps, keep) == (asked, problem.sparsity)


def test_all_clips_have_one_price_which_is_a_larger_part_of_a_smaller_budget():
    parts = []
    for n in (300, 3000, 300_000):
        plan = Newton().plan(problem_of(n), Budget(1.0, 1e-6))
        (near,) = of_kind(plan, GumbelNearMaximum)
        parts.append(near.cost().rho / near.times / zcdp_rho(1.0, 1e-6))
    assert parts[0] == pytest.approx(0.03)
    assert 0.003 < parts[1] < 0.03
    assert parts[2] == pytest.approx(0.003)


def test_a_penalty_and_a_class_loss_of_ones_own_are_refused():
    with pytest.raises(ValueError, match=r"penalty=0\.1: .* use penalty=0, or algorithm='dp-srm'"):
        Newton().plan(problem_of(penalty=Penalty("ridge", 0.1)), Budget(1.0, 1e-6))


# -- numbers ------------------------------------------------------------------------------------------------------

TASKS = {
    "correlated": lambda X, rng: X[:, :5] @ [2, -1, 1, -2, 1.0] + 0.2 * rng.normal(size=len(X)),
    "skewed": lambda X, rng: np.minimum(np.exp(2 * X[:, 0] + 2 * X[:, 1] + 0.8 * rng.normal(size=len(X))), 100),
    "mostly zero": lambda X, rng: np.maximum(2 * X[:, 0] + 2 * X[:, 1] - 1.5 + 0.3 * rng.normal(size=len(X)), 0),
    "constant": lambda X, rng: np.full(len(X), 30.0),
    "noise": lambda X, rng: rng.normal(size=len(X)),
}


@pytest.mark.parametrize("form", [np.array, sparse.csr_array, lambda X: X.astype(np.float32)], ids=["64", "csr", "32"])
@pytest.mark.parametrize("task", TASKS)
def test_numbers_of_every_kind_are_nearly_as_well_explained_as_without_privacy(task, form):
    rng = np.random.default_rng(1)
    X = correlated(20_000, 12)
    y = TASKS[task](X, rng)
    low, high = float(np.floor(y.min())), float(np.ceil(y.max())) + 1
    model = SparseRegressor(
        5, epsilon=2.0, feature_bound=1.0, row_bound=2.5, target_bound=(low, high), algorithm="newton", random_state=0
    ).fit(form(X), y)
    assert model.support_.size <= 5
    assert model.certificate_.verify()
    if task == "constant":
        assert np.max(np.abs(model.predict(X) - y)) < 1.5
        return
    best = explained(y, LinearRegression().fit(X, y).predict(X))
    assert explained(y, model.predict(X)) > 0.9 * best - 0.01


def test_more_budget_is_never_much_worse():
    X = correlated(6000, 15)
    y = TASKS["skewed"](X, np.random.default_rng(2))
    shares = []
    for epsilon in (1.0, 3.0, 10.0, 100.0):
        fits = [
            SparseRegressor(5, epsilon=epsilon, feature_bound=1.0, target_bound=(0, 100), algorithm="newton",
                            random_state=seed).fit(X, y) for seed in range(3)
        ]  # fmt: skip
        shares.append(np.mean([explained(y, fit.predict(X)) for fit in fits]))
    assert all(later > earlier - 0.05 for earlier, later in pairwise(shares))
    assert shares[-1] > 0.95 * explained(y, LinearRegression().fit(X, y).predict(X))


def test_too_few_rows_give_a_model_that_is_about_as_good_as_the_mean():
    """Of 20 fits to 300 rows at epsilon 1, which buys next to nothing, most are no worse than the mean."""
    X = correlated(300, 10)
    y = X[:, 0] * 4 + np.random.default_rng(3).normal(size=300)
    fits = [
        SparseRegressor(3, epsilon=1.0, feature_bound=1.0, target_bound=(-6, 8), algorithm="newton", random_state=seed)
        .fit(X, y) for seed in range(20)
    ]  # fmt: skip
    found = [explained(y, np.clip(fit.predict(X), -6, 8)) for fit in fits]
    assert np.median(found) > 0
    assert np.quantile(found, 0.1) > -0.5


# -- classes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.5])
def test_rare_classes_are_ranked_and_their_share_is_right(rate):
    rng = np.random.default_rng(4)
    X = correlated(40_000, 10)
    margins = 4 * (X[:, 0] - X[:, 1]) + 3 * (X[:, 2] - X[:, 3])
    centre = np.quantile(margins + np.random.default_rng(5).logistic(size=len(X)), 1 - rate)
    y = (rng.random(len(X)) < 1 / (1 + np.exp(centre - margins))).astype(int)
    model = SparseClassifier(
        5, epsilon=2.0, feature_bound=1.0, row_bound=2.5, classes=[0, 1], algorithm="newton", random_state=0
    ).fit(X, y)
    best = roc_auc_score(y, LogisticRegression(C=1e4, max_iter=500).fit(X, y).decision_function(X))
    chances = model.predict_proba(X)[:, 1]
    assert roc_auc_score(y, chances) - 0.5 > 0.85 * (best - 0.5)
    assert chances.mean() == pytest.approx(y.mean(), rel=0.2)


def test_several_classes_are_told_apart_by_one_gradient_for_all():
    rng = np.random.default_rng(6)
    X = correlated(20_000, 12)
    margins = 8 * X[:, :4]
    y = np.array([rng.choice(4, p=row) for row in np.exp(margins) / np.exp(margins).sum(axis=1, keepdims=True)])
    model = SparseClassifier(
        4, epsilon=2.0, feature_bound=1.0, row_bound=2.5, classes=range(4), algorithm="newton", random_state=0
    ).fit(X, y)
    best = LogisticRegression(C=1e4, max_iter=500).fit(X, y).score(X, y)
    trivial = np.bincount(y).max() / len(y)
    assert model.score(X, y) - trivial > 0.85 * (best - trivial)
    assert max(np.count_nonzero(row) for row in model.coef_) <= 4
    assert model.certificate_.verify()


# -- dense models -------------------------------------------------------------------------------------------------


def test_dense_models_keep_every_column_and_explain_nearly_what_least_squares_do():
    rng = np.random.default_rng(7)
    X = correlated(8000, 15)
    y = 3 * (X[:, 0] - X[:, 1]) + 3 * (X[:, 2] - X[:, 3]) + 0.3 * rng.normal(size=8000)
    facts = {"epsilon": 1.0, "feature_bound": 1.0, "row_bound": 2.5, "random_state": 0}
    model = DenseRegressor(target_bound=(-5, 5), **facts).fit(X, y)
    assert model.algorithm_ == "newton"
    assert np.count_nonzero(model.coef_) == 15
    assert explained(y, model.predict(X)) > 0.95 * explained(y, LinearRegression().fit(X, y).predict(X))
    z = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    assert DenseClassifier(classes=[0, 1, 2], **facts).fit(X, z).algorithm_ == "newton"


def test_dense_auto_takes_batches_with_a_penalty_and_where_there_are_many_columns():
    for facts, d in (({"penalty": 0.1}, 5), ({}, 2000)):
        plan = DenseRegressor(epsilon=1.0, feature_bound=1.0, target_bound=1.0, **facts).plan(5000, d)
        assert plan.algorithm == "dp-srm"
        assert plan.notes[-1].startswith("auto chose dp-srm: ")


# -- without privacy ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["numbers", "classes"])
def test_without_noise_it_is_least_squares_or_the_largest_likelihood_nearly(task):
    X = correlated(3000, 5)
    rng = np.random.default_rng(8)
    y = X @ [2.0, -1.0, 1.0, 0.5, -2.0] + 0.3 * rng.normal(size=3000)
    facts = {"epsilon": math.inf, "feature_bound": 1.0, "algorithm": "newton"}
    if task == "numbers":
        model = SparseRegressor(5, target_bound=(-10, 10), **facts).fit(X, y)
        np.testing.assert_allclose(model.coef_, LinearRegression().fit(X, y).coef_, rtol=1e-4, atol=1e-4)
        return
    z = (rng.random(3000) < 1 / (1 + np.exp(-2 * y))).astype(int)
    model = SparseClassifier(5, classes=[0, 1], **facts).fit(X, z)
    best = LogisticRegression(C=1e8, max_iter=2000, tol=1e-10).fit(X, z)
    np.testing.assert_allclose(model.predict_proba(X), best.predict_proba(X), atol=0.03)


def test_gradients_are_asked_in_coordinates_whose_noise_is_the_same_in_all_directions():
    """Of a plan's gradients each has one clip and one scale, whatever the Hessian."""
    X = correlated(4000, 8)
    model = SparseRegressor(3, epsilon=1.0, feature_bound=1.0, target_bound=2.0, algorithm="newton", random_state=0)
    model.fit(X, X[:, 0])
    for entry in model.certificate_.releases:
        if entry["release"]["kind"] == GaussianRestrictedGradient.__name__:
            (answer,) = entry["answers"]
            assert answer["scale"] >= entry["release"]["sd_per_sensitivity"] * answer["sensitivity"]
