"""Two stages: a paid-for support and objective perturbation on it, with a ridge that follows from public facts."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from thresher import SparseClassifier, SparseRegressor
from thresher.algorithms import TwoStage
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.conversions import zcdp_rho
from thresher.privacy.releases import GumbelSelection, GumbelVotes, PerturbedMinimiser
from thresher.vaults import CentralVault
from thresher.vaults.central.minimisers import curvature_ratio
from thresher.vaults.losses import LOGISTIC, SQUARED
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource
from thresher_papers.datasets import dpsl_kt_law

PROBLEMS = {
    "squared": LinearProblem(500, 40, Bounds(feature=1.0, target=(-3.0, 3.0)), sparsity=3, loss=SQUARED),
    "logistic": LinearProblem(500, 40, Bounds(row=1.0), sparsity=3, loss=LOGISTIC),
    "columns": LinearProblem(
        500, 3, Bounds(feature=(0.01, 1.0, 30.0), target=(-3.0, 3.0)), sparsity=2, loss=SQUARED, intercept=False
    ),
}
STAGES = ["marginal", "votes"]


def some_rows(n=500, d=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.clip(X[:, :3] @ [1.0, -1.0, 1.0] + 0.1 * rng.normal(size=n), -3, 3)


# -- plans ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage_one", STAGES)
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.05, 1e-12), (1.0, 1e-6), (20.0, 1e-2)])
def test_both_stages_together_cost_the_budget(stage_one, problem, adjacency, share, epsilon, delta):
    plan = TwoStage(stage_one, share).plan(problem, Budget(epsilon, delta, adjacency))
    picks, values = plan.releases
    assert type(picks) is (GumbelVotes if stage_one == "votes" else GumbelSelection)
    assert picks.cost().rho == pytest.approx(share * zcdp_rho(epsilon, delta), rel=1e-9)
    assert epsilon * (1 - 1e-6) <= plan.epsilon <= epsilon
    assert values.cost().epsilon(delta)[0] < epsilon


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_the_price_is_for_the_curvature_ratio_of_any_support(problem):
    plan = TwoStage().plan(problem, Budget(1.0, 1e-6))
    rng = np.random.default_rng(0)
    for _ in range(20):
        support = rng.choice(problem.d, problem.sparsity, replace=False)
        support = np.append(support, np.arange(problem.d, problem.dimension))
        assert curvature_ratio(problem, support, plan.settings["ridge"]) <= plan.releases[1].curvature_ratio


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_a_larger_budget_buys_less_noise_and_less_ridge(problem):
    plans = [TwoStage().plan(problem, Budget(e, 1e-6)) for e in (0.1, 0.5, 1.0, 4.0, 20.0)]
    for a, b in pairwise(plans):
        assert b.releases[0].multiplier < a.releases[0].multiplier
        assert b.releases[1].multiplier < a.releases[1].multiplier
        assert b.settings["ridge"] < a.settings["ridge"]


def test_the_default_ridge_falls_with_the_number_of_rows_until_it_is_negligible():
    problem = PROBLEMS["squared"]
    ridges = [
        TwoStage()
        .plan(LinearProblem(n, 40, problem.bounds, sparsity=3, loss=SQUARED), Budget(1.0, 1e-6))
        .settings["ridge"]
        for n in (500, 1000, 10**7, 10**8)
    ]
    assert ridges[1] == pytest.approx(ridges[0] / 2, rel=1e-9)
    assert ridges[2] == ridges[3] == pytest.approx(1e-4 * (3 + 0.25))  # a row's squared norm in units, times 1e-4


def test_a_given_ridge_is_priced_and_not_merely_taken():
    """Erratum E-25: any ridge has a price; a small one takes more of epsilon and leaves less for the tilt."""
    plans = [TwoStage(ridge=r).plan(PROBLEMS["squared"], Budget(1.0, 1e-6)) for r in (0.1, 1.0, 10.0)]
    sds = [plan.releases[1].multiplier for plan in plans]
    assert sds[0] > sds[1] > sds[2]
    assert all(plan.epsilon <= 1.0 for plan in plans)


def test_a_ridge_that_leaves_nothing_for_the_noise_is_refused():
    problem, budget = PROBLEMS["squared"], Budget(1.0, 1e-6)
    with pytest.raises(ValueError, match=r"ridge=1e-05 .* above \d") as refusal:
        TwoStage(ridge=1e-5).plan(problem, budget)
    least = float(str(refusal.value).split("above ")[1].split(",")[0])
    with pytest.raises(ValueError, match="ridge="):
        TwoStage(ridge=0.999 * least).plan(problem, budget)
    assert TwoStage(ridge=1.01 * least).plan(problem, budget).epsilon <= 1.0


@pytest.mark.parametrize("stage_one", STAGES)
def test_the_plan_follows_from_public_facts_alone(stage_one):
    model = SparseRegressor(3, feature_bound=1.0, target_bound=3.0, algorithm=TwoStage(stage_one))
    (X, y), plan = some_rows(), model.plan(500, 40)
    assert model.fit(X, y).plan_ == plan == model.fit(0 * X, 0 * y).plan_


def test_votes_come_from_about_root_n_blocks():
    plan = TwoStage("votes").plan(PROBLEMS["squared"], Budget(1.0, 1e-6))
    assert plan.settings["blocks"] == 22
    assert TwoStage("votes", blocks=7).plan(PROBLEMS["squared"], Budget(1.0, 1e-6)).settings["blocks"] == 7


# -- fits -------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")
@pytest.mark.parametrize("stage_one", STAGES)
def test_without_privacy_it_finds_the_right_columns(stage_one):
    X, y = some_rows()
    model = SparseRegressor(3, epsilon=math.inf, feature_bound=1.0, target_bound=3.0, algorithm=TwoStage(stage_one))
    fitted = model.fit(X, y)
    assert fitted.support_.tolist() == [0, 1, 2]
    np.testing.assert_allclose(fitted.coef_[:3], [1, -1, 1], atol=0.03)


def error(epsilon, n, seed, algorithm):
    law = dpsl_kt_law(n, 200, 5)
    X, y, theta = law.draw(seed)
    problem = LinearProblem(n, 200, Bounds(feature=1.0, target=(-8.0, 8.0)), sparsity=5, loss=SQUARED)
    plan = algorithm.plan(problem, Budget(epsilon, 1e-6))
    found = algorithm.run(CentralVault(X, y, plan, NoiseSource(seed)))
    return np.linalg.norm(found[:200] - theta) / np.linalg.norm(theta)


@pytest.mark.parametrize("stage_one", STAGES)
def test_a_larger_budget_fits_better(stage_one):
    """Mean relative errors of five draws; 1 is the zero model."""
    errors = [np.mean([error(e, 3000, seed, TwoStage(stage_one)) for seed in range(5)]) for e in (0.5, 4.0, 40.0)]
    assert errors[0] > 1.5 * errors[1] > 1.5 * errors[2]
    assert errors[1] < (0.1 if stage_one == "marginal" else 0.5)
    assert errors[2] < 0.15


def test_where_noise_drowns_the_signal_the_ridge_keeps_it_near_the_zero_model():
    """The ridge grows like 1/epsilon, as the tilt does, so their quotient stays bounded: 1 is the zero model."""
    for epsilon in (0.1, 1e-3):
        assert np.mean([error(epsilon, 300, seed, TwoStage()) for seed in range(5)]) < 1.5


def test_a_class_label_is_predicted():
    X, y = some_rows(3000)
    labels = np.where(y > 0, "yes", "no")
    facts = {"epsilon": 2.0, "delta": 1e-6, "feature_bound": 1.0, "classes": ["no", "yes"]}
    model = SparseClassifier(3, algorithm="two-stage", random_state=0, **facts)
    assert model.fit(X, labels).score(X, labels) > 0.9


def test_columns_of_any_scale_are_fitted_alike():
    """Only the scales differ, and they are public, so the margins agree."""
    X, y = some_rows(2000, 10)
    scales = np.geomspace(1e-2, 1e2, 10)
    margins = []
    for scale in (np.ones(10), scales):
        problem = LinearProblem(
            2000, 10, Bounds(feature=tuple(scale), target=(-3.0, 3.0)), sparsity=3, loss=SQUARED, intercept=False
        )
        plan = TwoStage().plan(problem, Budget(4.0, 1e-6))
        margins.append(X * scale @ TwoStage().run(CentralVault(X * scale, y, plan, NoiseSource(1))))
    np.testing.assert_allclose(*margins, atol=1e-6)
    assert np.mean((margins[0] - y) ** 2) < 0.1


def test_an_intercept_is_found():
    X, y = some_rows(3000)
    facts = {"epsilon": 4.0, "delta": 1e-6, "feature_bound": 1.0, "target_bound": (0.0, 10.0)}
    model = SparseRegressor(3, algorithm="two-stage", random_state=0, **facts)
    assert model.fit(X, y + 6).intercept_ == pytest.approx(6, abs=0.3)


def test_many_sparse_columns_stay_sparse():
    """As dense arrays the blocks alone would take 5 GB."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((1000, 600_000), density=3e-5, random_state=rng, format="lil")
    X[:, 7] = rng.uniform(-1, 1, (1000, 1))
    problem = LinearProblem(1000, 600_000, Bounds(feature=1.0, target=(-1.0, 1.0)), sparsity=1, loss=SQUARED)
    y = np.asarray(X[:, [7]].todense()).ravel()
    algorithm = TwoStage("votes", blocks=5)
    plan = algorithm.plan(problem, Budget(math.inf, 1e-6))
    theta = algorithm.run(CentralVault(sparse.csr_array(X), y, plan, NoiseSource(0)))
    assert np.flatnonzero(theta[:-1]).tolist() == [7]


def test_what_is_answered_is_what_is_planned():
    X, y = some_rows()
    plan = TwoStage().plan(PROBLEMS["squared"], Budget(1.0, 1e-6))
    vault = CentralVault(X, y, plan, NoiseSource(0))
    TwoStage().run(vault)
    picked, minimised = vault.answers
    assert isinstance(minimised.release, PerturbedMinimiser)
    assert picked.clip == plan.settings["clip"] == 0.3
    assert minimised.clip == pytest.approx(0.3 * math.sqrt(3 + 0.25), rel=1e-12)
    for answer in vault.answers:
        assert answer.sensitivity == 2 * answer.clip / 500
        assert answer.scale == answer.release.multiplier * answer.sensitivity


@pytest.mark.parametrize(
    "bad",
    [
        {"stage_one": "lasso"}, {"share": 0.0}, {"share": 1.0}, {"share": math.nan}, {"clip": 0.0}, {"clip": math.inf},
        {"ridge": 0.0}, {"ridge": -1.0}, {"blocks": 0}, {"blocks": 2.5},
    ],
    ids=str,
)  # fmt: skip
def test_hyper_parameters_that_make_no_sense_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        TwoStage(**bad)
