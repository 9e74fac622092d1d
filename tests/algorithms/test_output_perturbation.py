"""Output perturbation: a certified minimiser plus noise, thresholded, with a public rule for its ridge."""

import math
from itertools import pairwise

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from thresher import PrivacyWarning, SparseRegressor
from thresher.algorithms import OutputPerturbation
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.sensitivity import gradient_sensitivity
from thresher.vaults import CentralVault
from thresher.vaults.losses import LOGISTIC, SQUARED
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

NOISES = ["gaussian", "l2-laplace"]
PROBLEMS = {
    "squared": LinearProblem(500, 40, Bounds(feature=1.0, target=(-3.0, 3.0)), sparsity=3, loss=SQUARED),
    "logistic": LinearProblem(500, 40, Bounds(row=1.0), sparsity=3, loss=LOGISTIC),
}


def some_rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (500, 40))
    return X, np.clip(X[:, :3] @ [1.0, -1.0, 1.0] + 0.1 * rng.normal(size=500), -3, 3)


def noise_sd(plan):
    """Of one coefficient of the released minimiser, by hand."""
    (release,) = plan.releases
    gradient = gradient_sensitivity(plan.settings["clip"], plan.problem.n, plan.budget.adjacency)
    return release.coordinate_sd(plan.problem.dimension) * gradient / plan.settings["ridge"]


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_larger_budget_buys_less_ridge_and_never_more_noise(noise, problem, adjacency):
    epsilons = [0.1, 0.5, 1.0, 2.0, 8.0, 100.0]
    plans = [OutputPerturbation(noise=noise).plan(problem, Budget(e, 1e-6, adjacency)) for e in epsilons]
    ridges, sds = [p.settings["ridge"] for p in plans], [noise_sd(p) for p in plans]
    assert all(b < a for a, b in pairwise(ridges))
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(sds))


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("loss", "typical", "row_norm"), [("squared", 1.0, math.sqrt(40)), ("logistic", 1.0, 1.0)])
def test_by_default_the_noise_is_a_tenth_of_a_useful_coefficient(noise, adjacency, loss, typical, row_norm):
    """Useful: what three equal columns of forty need for a margin of a third of the target's bound, or log-odds 1."""
    plan = OutputPerturbation(noise=noise).plan(PROBLEMS[loss], Budget(1.0, 1e-6, adjacency))
    coefficient = typical / (row_norm * math.hypot(1, 1 / 8)) * math.sqrt(40 / 3)
    assert noise_sd(plan) == pytest.approx(coefficient / 10, rel=1e-12)


@pytest.mark.parametrize("noise", NOISES)
def test_with_a_given_ridge_a_larger_budget_buys_less_noise(noise):
    plans = [
        OutputPerturbation(ridge=0.1, noise=noise).plan(PROBLEMS["squared"], Budget(e, 1e-6)) for e in (0.5, 1.0, 4.0)
    ]
    assert noise_sd(plans[0]) > noise_sd(plans[1]) > noise_sd(plans[2])


@pytest.mark.parametrize("noise", NOISES)
def test_the_default_ridge_follows_from_public_facts_alone(noise):
    model = SparseRegressor(3, feature_bound=1.0, target_bound=3.0, algorithm=OutputPerturbation(noise=noise))
    (X, y), plan = some_rows(), model.plan(500, 40)
    assert model.fit(X, y).plan_ == plan == model.fit(0 * X, 0 * y).plan_


@pytest.mark.parametrize("noise", NOISES)
def test_it_is_the_thresholded_minimiser_plus_noise_of_the_stated_law(noise):
    """The same noise source gives the noise away; clip and ridge are such that the minimiser is the plain ridge one."""
    (X, y), problem = (
        some_rows(),
        LinearProblem(500, 40, Bounds(feature=1.0, target=(-3.0, 3.0)), sparsity=3, loss=SQUARED, intercept=False),
    )
    algorithm = OutputPerturbation(ridge=0.5, clip=40.0, noise=noise)
    plan = algorithm.plan(problem, Budget(50.0, 1e-6))
    vault = CentralVault(X, y, plan, NoiseSource(7))
    theta = algorithm.run(vault)
    (release,), (answer,) = plan.releases, vault.answers
    source = NoiseSource(7)
    if noise == "gaussian":
        added, _ = source.gaussian(np.zeros(40), answer.sensitivity, release.multiplier)
    else:
        added = source.l2_laplace(answer.sensitivity / 50.0, 40)
    expected = Ridge(alpha=500 * 0.5, fit_intercept=False).fit(X, y).coef_ + added
    expected[np.argsort(np.abs(expected))[:-3]] = 0
    tolerance = (answer.sensitivity - 2 * 40.0 / (500 * 0.5)) / 2
    assert np.linalg.norm(theta - expected) <= tolerance < 0.1 * np.linalg.norm(expected)


@pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")
def test_without_privacy_it_finds_the_right_columns():
    X, y = some_rows()
    model = SparseRegressor(3, epsilon=math.inf, feature_bound=1.0, target_bound=3.0, algorithm="output-perturbation")
    fitted = model.fit(X, y)
    assert fitted.support_.tolist() == [0, 1, 2]
    np.testing.assert_allclose(fitted.coef_[:3], [1, -1, 1], atol=0.1)


def test_l2_laplace_noise_is_pure_dp_and_so_does_not_depend_on_delta():
    plans = [OutputPerturbation(noise="l2-laplace").plan(PROBLEMS["squared"], Budget(1.0, d)) for d in (1e-12, 1e-3)]
    assert plans[0].releases == plans[1].releases
    assert plans[0].cost.pure == 1.0


def test_one_answer_of_the_stated_sensitivity_is_given():
    X, y = some_rows()
    model = SparseRegressor(3, feature_bound=1.0, target_bound=3.0, algorithm=OutputPerturbation(ridge=0.5, clip=2.0))
    (release,) = model.fit(X, y).certificate_.releases
    (answer,) = release["answers"]
    assert answer["count"] == 1
    assert answer["sensitivity"] == pytest.approx(2 * 2.0 / (500 * 0.5), rel=0.0101)


def test_switching_privacy_off_is_loud_whatever_the_noise():
    X, y = some_rows()
    algorithm = OutputPerturbation(noise="l2-laplace")
    model = SparseRegressor(3, epsilon=math.inf, feature_bound=1.0, target_bound=3.0, algorithm=algorithm)
    with pytest.warns(PrivacyWarning, match="privacy is OFF"):
        model.fit(X, y)


@pytest.mark.parametrize(
    "bad",
    [{"ridge": 0.0}, {"ridge": -1.0}, {"ridge": math.inf}, {"clip": 0.0}, {"clip": math.inf}, {"noise": "laplace"}],
    ids=str,
)
def test_hyper_parameters_that_make_no_sense_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        OutputPerturbation(**bad)
