"""Pursuit: spends its budget to the last drop, is accurate where it can be and near zero where it cannot."""

import itertools
import math

import numpy as np
import pytest

from thresher import SparseClassifier, SparseRegressor
from thresher.algorithms import Peeling, Pursuit
from thresher.algorithms.pursuit import (
    LEVELS,
    GramCurvature,
    MomentCurvature,
    default_stages,
    quantile_rho,
    worth_a_gram,
)
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.conversions import zcdp_rho
from thresher.privacy.releases import (
    GaussianGram,
    GaussianMoments,
    GaussianRestrictedGradient,
    GumbelQuantile,
    GumbelSelection,
)
from thresher.vaults import CentralVault
from thresher.vaults.losses import loss_named
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

pytestmark = pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")  # the papers' delta of 0.01 is too large

LOSSES = ["squared", "logistic"]


def problem_of(loss="squared", n=1000, d=50, s=5, intercept=True, **bounds):
    target = (-3.0, 3.0) if loss == "squared" else None
    return LinearProblem(
        n,
        d,
        Bounds(target=target, **(bounds or {"feature": 1.0})),
        sparsity=s,
        loss=loss_named(loss),
        intercept=intercept,
    )


def of_kind(plan, kind):
    return [release for release in plan.releases if isinstance(release, kind)]


# -- the plan -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 50.0])
def test_the_shares_add_up_to_the_budget_and_never_above(loss, intercept, epsilon):
    seen = set()
    for n, s, delta in itertools.product([50, 800, 10**6], [1, 10, 50], [1e-9, 0.01]):
        plan = Pursuit().plan(problem_of(loss, n, 50, s, intercept), Budget(epsilon, delta))
        rho = zcdp_rho(epsilon, delta)
        assert plan.cost.rho <= rho
        assert plan.cost.rho >= rho * (1 - 1e-9)
        assert plan.epsilon <= epsilon
        seen.add(bool(of_kind(plan, GaussianGram)))
    if loss == "logistic":
        assert seen == {True}
    elif epsilon == 1.0:
        assert seen == {True, False}  # the grid covers Gram matrices and moments alike


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("stages", [1, 2, 3, 7])
@pytest.mark.parametrize("refinements", [0, 1, 4])
@pytest.mark.parametrize("n", [300, 10**6], ids=["moments", "gram"])
def test_stages_and_refinements_are_those_asked_for(loss, stages, refinements, n):
    plan = Pursuit(stages, refinements).plan(problem_of(loss, n=n, s=7), Budget(1.0, 1e-6))
    assert (plan.settings["stages"], plan.settings["refinements"]) == (stages, refinements)
    picks = of_kind(plan, GumbelSelection)
    assert len(picks) == stages
    assert sum(pick.picks for pick in picks) == 7
    start = 1 if loss == "logistic" else 0
    assert len(of_kind(plan, GaussianRestrictedGradient)) == stages + refinements + start
    assert len(of_kind(plan, GaussianGram)) in (0, stages + refinements)
    assert len(of_kind(plan, GaussianMoments)) in (0, stages)


@pytest.mark.parametrize("stages", [1, 2, 3, 7, 30, 49, 60])
def test_every_stage_picks_and_all_together_pick_s(stages):
    for s in (1, 2, 5, 10, 49, 50):
        picks = [r.picks for r in of_kind(Pursuit(stages).plan(problem_of(s=s), Budget(1.0, 1e-6)), GumbelSelection)]
        assert len(picks) == min(stages, s)
        assert sum(picks) == s


def test_there_are_never_more_stages_than_features_to_pick():
    plan = Pursuit(stages=9).plan(problem_of(s=4), Budget(1.0, 1e-6))
    assert plan.settings["stages"] == 4


@pytest.mark.parametrize(
    "bad",
    [{"stages": 0}, {"stages": -1}, {"stages": 2.5}, {"stages": "3"}, {"refinements": -1}, {"refinements": 1.5},
     {"refinements": "2"}],
    ids=str,
)  # fmt: skip
def test_hyper_parameters_that_make_no_sense_are_refused_by_name(bad):
    name, value = next(iter(bad.items()))
    with pytest.raises(ValueError, match="whole number of at least") as refusal:
        Pursuit(**bad)
    assert f"{name}={value!r}" in str(refusal.value)


def test_more_budget_allows_more_stages():
    stages = [default_stages(problem_of(s=10, n=n), zcdp_rho(1.0, 1e-6)) for n in (100, 4000, 10**6)]
    assert stages == [3, 5, 8]


def test_a_gram_matrix_is_asked_for_where_it_is_cheap_and_for_every_classifier():
    rho = zcdp_rho(1.0, 1e-6)
    assert not worth_a_gram(problem_of(n=500), rho)
    assert worth_a_gram(problem_of(n=10**6), rho)
    assert worth_a_gram(problem_of("logistic", n=50), rho)


def test_quantiles_are_cheap_but_never_take_more_than_a_tenth():
    rho = zcdp_rho(1.0, 1e-6)
    assert 10 * quantile_rho(problem_of(n=50), rho, 10) == pytest.approx(0.1 * rho)
    price = quantile_rho(problem_of(n=10**5), rho, 10)
    assert price < 1e-3 * rho
    # off by log(levels) noise scales of rank, so by a twentieth of the rows
    assert math.log(len(LEVELS)) * GumbelQuantile.for_rho(price).multiplier == pytest.approx(0.05 * 10**5)


def test_the_plan_is_the_same_whatever_the_data():
    X, y, _ = draw(300, 20, 3, 0)
    model = SparseRegressor(3, epsilon=1.0, delta=1e-6, feature_bound=1.0, target_bound=3.0, algorithm="pursuit")
    plans = [model.fit(rows, y).plan_ for rows in (X, 0 * X, 1e6 * X, X[::-1])]
    assert all(plan == model.plan(300, 20) for plan in plans)


# -- what it finds ------------------------------------------------------------------------------------------------


def draw(n, d, s, seed, variance=0.1):
    """The papers' law: columns and s coefficients U(-1, 1)."""
    rng = np.random.default_rng(seed)
    theta = np.zeros(d)
    theta[rng.choice(d, s, replace=False)] = rng.uniform(-1, 1, s)
    X = rng.uniform(-1, 1, (n, d))
    return X, X @ theta + rng.normal(0, math.sqrt(variance), n), theta


def relative_error(algorithm, data, seed, s=10, target_bound=8.0, **facts):
    X, y, theta = data
    facts = {"feature_bound": 1.0, "target_bound": target_bound, "algorithm": algorithm, "random_state": seed, **facts}
    coef = SparseRegressor(s, **facts).fit(X, y).coef_
    return np.linalg.norm(coef - theta) / np.linalg.norm(theta)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("stages", [None, 1, 5])
def test_without_privacy_an_easy_model_is_found(intercept, stages):
    facts = {"s": 5, "epsilon": math.inf, "fit_intercept": intercept}
    errors = [relative_error(Pursuit(stages, 3), draw(2000, 50, 5, seed, 1e-6), seed, **facts) for seed in range(3)]
    assert max(errors) < 0.02


@pytest.mark.parametrize(("n", "epsilon", "delta", "promised"), [(800, 2.0, 0.01, 0.18), (800, 5.0, 0.01, 0.08)])
def test_mean_relative_error_on_the_papers_law_is_as_promised_and_well_below_peelings(n, epsilon, delta, promised):
    """Both are in the table of docs/accuracy.md. Peeling may take the best of its numbers of rounds.

    At epsilon 5 the ratio of the two is about 0.56 there: well below, but not half.
    """
    budget, data = {"epsilon": epsilon, "delta": delta}, [draw(n, 1000, 10, seed) for seed in range(10)]
    errors = [relative_error("pursuit", data[seed], seed, **budget) for seed in range(10)]
    assert np.mean(errors) <= promised
    rivals = [
        np.mean([relative_error(Peeling(T, loop="paper"), data[seed], seed, **budget) for seed in range(10)])
        for T in (2, 3, 5)
    ]
    assert np.mean(errors) <= 0.7 * min(rivals)


def test_mean_relative_error_at_a_small_delta_is_as_promised():
    """0.04 was reached."""
    errors = [relative_error("pursuit", draw(4000, 1000, 10, k), k, epsilon=1.0, delta=1e-6) for k in range(10)]
    assert np.mean(errors) <= 0.10


LAWS = ["uniform", "zero-one", "constant", "heavy tails"]


def hopeless(law, n, seed, d=200, s=5):
    """Rows, targets and coefficients that no method could find with such a budget."""
    rng = np.random.default_rng(seed)
    theta = np.zeros(d)
    theta[rng.choice(d, s, replace=False)] = rng.uniform(-1, 1, s)
    X = rng.uniform(-1, 1, (n, d))
    if law == "zero-one":
        X = (rng.random((n, d)) < 0.1).astype(float)
    elif law == "constant":
        X[:] = np.where(np.arange(d) % 2, 1.0, -0.5)
    noise = rng.standard_t(1, n) if law == "heavy tails" else rng.normal(0, 0.3, n)
    return X, X @ theta + noise, theta


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("target_bound", [8.0, 1000.0])
@pytest.mark.parametrize("n", [50, 100, 400])
def test_where_nothing_can_be_found_the_model_is_near_zero(law, target_bound, n):
    """The zero model has relative error 1. Constant columns are told apart by no data, so what is found is put on the
    wrong ones now and then, and one such fit decides a mean: there the median counts."""
    for epsilon in (0.1, 0.5):
        errors = []
        for seed in range(9 if law == "constant" else 3):
            facts = {"s": 5, "epsilon": epsilon, "delta": 1e-6, "target_bound": target_bound}
            errors.append(relative_error("pursuit", hopeless(law, n, seed), seed, **facts))
        assert (np.median if law == "constant" else np.max)(errors) <= 1.1


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("epsilon", [0.5, 3.0, math.inf])
def test_no_column_is_picked_twice_and_sparsity_is_kept(loss, epsilon):
    class Recording(CentralVault):
        def selection(self, *args, **kwargs):
            chosen = super().selection(*args, **kwargs)
            picked.extend(chosen)
            return chosen

    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (400, 12))
    y = X[:, :2] @ [2.0, -2.0] + 0.1 * rng.normal(size=400)
    for seed in range(5):
        picked: list[int] = []
        problem = problem_of(loss, 400, 12, 9)
        plan = Pursuit(stages=4).plan(problem, Budget(epsilon, 1e-6))
        theta = Pursuit(stages=4).run(
            Recording(X, y if loss == "squared" else (y > 0).astype(float), plan, NoiseSource(seed))
        )
        assert len(picked) == len(set(picked)) == 9
        assert set(np.flatnonzero(theta[:12])) <= set(picked)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("epsilon", [4.0, math.inf])
def test_a_column_in_another_unit_has_its_coefficient_in_that_unit(loss, epsilon):
    """Columns and bounds are multiplied by c: coefficients are divided by it, the intercept stays."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (2000, 8))
    z = X[:, 0] - 2 * X[:, 3] + 0.4 + 0.2 * rng.normal(size=2000)
    c = np.array([1e-3, 7.0, 1.0, 40.0, 0.5, 1.0, 3.0, 2.0])
    models = []
    for factor in (np.ones(8), c):
        facts = {"epsilon": epsilon, "feature_bound": factor, "algorithm": "pursuit", "random_state": 5}
        model = SparseRegressor(4, target_bound=4.0, **facts) if loss == "squared" else SparseClassifier(4, **facts)
        models.append(model.fit(X * factor, z if loss == "squared" else z > 0))
    assert {0, 3} <= set(models[0].support_)
    np.testing.assert_allclose(models[1].coef_ * c, models[0].coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(models[1].intercept_, models[0].intercept_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("curvature", "n", "epsilon"), [(GramCurvature, 20_000, 5.0), (MomentCurvature, 3000, 0.92)])
def test_a_step_that_is_too_long_is_taken_back(curvature, n, epsilon, monkeypatch):
    """The curvature is told as 8 times too small, so the first step goes seven times too far, and so would all."""
    facts = {"s": 5, "epsilon": epsilon, "delta": 1e-6}
    plan = Pursuit().plan(problem_of(n=n), Budget(epsilon, 1e-6))
    assert bool(of_kind(plan, GaussianGram)) == (curvature is GramCurvature)
    honest = curvature.matrix
    monkeypatch.setattr(curvature, "matrix", lambda self: honest(self) / 8)
    errors = lambda: [relative_error("pursuit", draw(n, 50, 5, k), k, **facts) for k in range(4)]  # noqa: E731
    assert max(errors()) <= 1.0
    assert np.mean(errors()) <= 0.7
    monkeypatch.setattr("thresher.algorithms.pursuit.OVERSHOT", math.inf)  # nothing counts as too far
    assert np.mean(errors()) > 1.5


def test_columns_that_share_a_mean_do_not_drive_each_other_away():
    """0/1 columns with 10 % ones: full diagonal steps on all of them at once overshoot (6 to 13 times the model)."""
    for seed in range(3):
        data = hopeless("zero-one", 4000, seed, d=1000, s=10)
        assert relative_error("pursuit", data, seed, epsilon=1.0, delta=1e-6) <= 1.0


def test_a_generous_target_bound_costs_little():
    data = [draw(2000, 100, 5, seed) for seed in range(4)]
    facts = {"s": 5, "epsilon": 2.0, "delta": 1e-6}
    tight, wide = (
        np.mean([relative_error("pursuit", d, k, target_bound=bound, **facts) for k, d in enumerate(data)])
        for bound in (8.0, 8e3)
    )
    assert wide <= 2 * tight + 0.02


def test_a_far_intercept_is_found():
    X, y, theta = draw(3000, 50, 5, 0)
    model = SparseRegressor(
        5, epsilon=2.0, feature_bound=1.0, target_bound=(-20.0, 120.0), algorithm="pursuit", random_state=0
    ).fit(X, y + 80)
    assert model.intercept_ == pytest.approx(80, abs=0.5)
    assert np.linalg.norm(model.coef_ - theta) / np.linalg.norm(theta) < 0.3


# -- classes ------------------------------------------------------------------------------------------------------


def one_hot_people(n, seed):
    """15 questions with 8 answers each, one-hot; 24 % say yes, mostly by three of the 120 columns."""
    rng = np.random.default_rng(seed)
    X = np.zeros((n, 120))
    for question in range(15):
        X[np.arange(n), 8 * question + rng.integers(0, 8, n)] = 1
    effect = np.zeros(120)
    effect[[0, 20, 50]] = 4.0
    y = X @ effect + rng.logistic(0, 0.7, n) > 3.2
    return X, y.astype(int)


def test_a_classifier_of_rare_ones_beats_the_majority_clearly():
    X, y = one_hot_people(25_000, 0)
    assert 0.2 < y.mean() < 0.28
    model = SparseClassifier(10, epsilon=1.0, feature_bound=1.0, algorithm="pursuit", random_state=0)
    model.fit(X[:20_000], y[:20_000])
    majority = 1 - y[20_000:].mean()
    assert model.score(X[20_000:], y[20_000:]) >= majority + 0.05
    assert {0, 20, 50} <= set(model.support_)


@pytest.mark.parametrize("ones", [0.02, 0.24, 0.9])
def test_the_intercept_of_a_classifier_starts_from_the_share_of_ones(ones):
    """No column says anything: what is left is log-odds, read off the noisy share."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (20_000, 10)), rng.random(20_000) < ones
    model = SparseClassifier(
        1, epsilon=1.0, feature_bound=1.0, algorithm="pursuit", random_state=0, hardened=False
    ).fit(X, y)
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(ones, abs=0.03)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_rare_columns_leave_a_curvature_to_divide_by(epsilon, intercept):
    """Three of a hundred entries are 1, and one column is 0: quantiles of the norms of single columns are 0. The model
    must not be much worse than the one that says nothing, whose loss is log 2; without a least clip and without an
    intercept it is.
    """
    rng = np.random.default_rng(0)
    X = (rng.random((20_000, 30)) < 0.03).astype(float)
    X[:, 0] = 0.0
    y = rng.random(20_000) < 1 / (1 + np.exp(-2 * X[:, 1] + 2 * X[:, 2]))
    facts = {"epsilon": epsilon, "delta": 1e-3, "feature_bound": 1.0, "classes": [False, True]}
    for seed in range(6):
        model = SparseClassifier(
            4, algorithm=Pursuit(stages=4), fit_intercept=intercept, random_state=seed, **facts
        ).fit(X, y)  # fmt: skip
        margins = np.where(y, 1, -1) * model.decision_function(X)
        assert np.mean(np.logaddexp(0, -margins)) < math.log(2) + 0.05
