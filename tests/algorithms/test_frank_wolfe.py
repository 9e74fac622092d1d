"""Private Frank-Wolfe: the paper's steps, its optimum, its printed noise and what that costs."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Lasso

from thresher import PrivacyWarning, SparseRegressor
from thresher.algorithms import FrankWolfe
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.conversions import zcdp_rho
from thresher.privacy.releases import GumbelVertex, LaplaceVertex
from thresher.vaults import CentralVault
from thresher.vaults.losses import loss_named
from thresher.vaults.polytopes import L1Ball, Polytope, Simplex
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource
from thresher_papers.datasets import dpsl_kt_law

LOSSES = ["squared", "logistic"]
N, D = 200, 6
OPEN = Budget(math.inf, 1e-6)


def problem_of(loss="squared", intercept=False, n=N, d=D, sparsity=D, bounds=None):
    bounds = bounds or Bounds(feature=1.0, target=(-4.0, 4.0) if loss == "squared" else None)
    return LinearProblem(n, d, bounds, sparsity=sparsity, loss=loss_named(loss), intercept=intercept)


def some_rows(loss="squared"):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, D))
    y = X @ [1.0, -0.5, 0.0, 0.0, 0.3, 0.0] + 0.2 + 0.1 * rng.normal(size=N)
    return X, y if loss == "squared" else (y > 0).astype(float)


def run(algorithm, problem, budget=OPEN, X=None, y=None, seed=0):
    plan = algorithm.plan(problem, budget)
    own = some_rows(problem.loss.name)
    vault = CentralVault(own[0] if X is None else X, own[1] if y is None else y, plan, NoiseSource(seed))
    return algorithm.run(vault)


# -- the steps --------------------------------------------------------------------------------------------------


def by_hand(X, y, vertices, clip, rounds, loss):
    """Algorithm 2 without noise, word for word: theta_1 = 0, mu_t = 2/(t+2), t = 1, 2, ..."""
    theta = np.zeros(X.shape[1])
    for t in range(1, rounds + 1):
        margins = X @ theta
        residuals = margins - y if loss == "squared" else 1 / (1 + np.exp(-margins)) - y
        gradient = X.T @ np.clip(residuals, -clip, clip) / len(X)
        best = vertices[np.argmin(vertices @ gradient)]
        theta = (1 - 2 / (t + 2)) * theta + 2 / (t + 2) * best
    return theta


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("clip", [0.1, 10.0])
def test_without_noise_it_takes_the_papers_steps(loss, clip):
    (X, y), axes = some_rows(loss), np.eye(D)
    found = run(FrankWolfe(iterations=25, radius=2.0, clip=clip), problem_of(loss))
    np.testing.assert_allclose(found, by_hand(X, y, 2 * np.vstack([axes, -axes]), clip, 25, loss), rtol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_intercept_is_one_more_pair_of_vertices(loss):
    X, problem = some_rows()[0], problem_of(loss, intercept=True)
    y = X[:, 0] + 0.5 if loss == "squared" else (X[:, 0] > -0.6).astype(float)
    found = run(FrankWolfe(iterations=25, radius=2.0, clip=10.0), problem, y=y)
    shift = 2.0 if loss == "squared" else 1.0  # the reach, 2, or the target's radius, 4 or 1, if that is less
    axes = np.diag([2.0] * D + [shift])
    expected = by_hand(np.hstack([X, np.ones((N, 1))]), y, np.vstack([axes, -axes]), 10.0, 25, loss)
    expected[D] /= problem.intercept_column
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert found[D] != 0


def test_the_iterate_stays_in_the_ball_however_large_the_noise():
    for seed in range(20):
        theta = run(FrankWolfe(iterations=7, radius=2.0), problem_of(), Budget(0.01, 1e-6), seed=seed)
        assert np.linalg.norm(theta, 1) <= 2.0 * (1 - 2 / (8 * 9)) * (1 + 1e-12)  # the origin keeps 2/((T+1)(T+2))


def squared_loss(X, y, theta):
    return np.mean((X @ theta - y) ** 2) / 2


@pytest.mark.parametrize("rounds", [10, 100, 1000])
def test_without_noise_it_converges_to_the_lasso_at_the_rate_of_the_theory(rounds):
    """The Lasso's solution is the best point of the l1 ball through it; the gap is at most 2 G / (T + 2) (Jaggi 2013),
    G the largest mean square of X (u - v) over two points of the ball, which two of its vertices attain.
    """
    X, y = some_rows()
    best = Lasso(alpha=0.05, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(X, y).coef_
    radius = float(np.linalg.norm(best, 1))
    assert 0.5 < radius < 1.7, "the constraint must bind"
    vertices = radius * np.vstack([np.eye(D), -np.eye(D)])
    moved = (vertices[:, None, :] - vertices[None, :, :]).reshape(-1, D) @ X.T
    curvature = np.max(np.mean(moved**2, axis=1))
    found = run(FrankWolfe(iterations=rounds, radius=radius, clip=100.0), problem_of())
    gap = squared_loss(X, y, found) - squared_loss(X, y, best)
    assert -1e-9 <= gap <= 2 * curvature / (rounds + 3)  # the first step has t = 1, as if one had been made before


def test_it_converges_inside_a_simplex_too():
    X = some_rows()[0]
    y = X @ np.array([0.3, 0.0, 0.2, 0.0, 0.0, 0.0])
    found = run(FrankWolfe(iterations=2000, clip=100.0, polytope=Simplex(1.0)), problem_of(), y=y)
    np.testing.assert_allclose(found, [0.3, 0, 0.2, 0, 0, 0], atol=0.03)
    assert np.all(found >= 0)


AXES = np.vstack([np.eye(D), -np.eye(D)])


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (FrankWolfe(radius=2.0), FrankWolfe(polytope=L1Ball(2.0))),
        (FrankWolfe(radius=2.0), FrankWolfe(polytope=Polytope(2 * AXES))),
        (FrankWolfe(radius=2.0), FrankWolfe(polytope=Polytope(sparse.csc_array(2 * AXES)))),
        (FrankWolfe(polytope=Simplex(2.0)), FrankWolfe(polytope=Polytope(np.vstack([2 * np.eye(D), np.zeros(D)])))),
    ],
    ids=["ball", "vertices", "sparse vertices", "simplex"],
)
def test_two_ways_to_say_one_set_give_one_model(epsilon, intercept, one, other):
    problem, budget = problem_of(intercept=intercept, sparsity=3), Budget(epsilon, 1e-6)
    assert one.plan(problem, budget).releases == other.plan(problem, budget).releases
    np.testing.assert_allclose(run(one, problem, budget, seed=5), run(other, problem, budget, seed=5), rtol=1e-12)


# -- public defaults --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_larger_budget_or_more_rows_buy_more_rounds_within_limits(loss, adjacency):
    def rounds(n, epsilon):
        return FrankWolfe().plan(problem_of(loss, n=n, d=100), Budget(epsilon, 1e-6, adjacency)).settings["rounds"]

    by_epsilon = [rounds(1000, epsilon) for epsilon in (0.01, 1, 8, math.inf)]
    by_rows = [rounds(n, 1.0) for n in (10, 1000, 4000, 10**9)]
    for grid in (by_epsilon, by_rows):
        assert all(a <= b for a, b in pairwise(grid))
        assert grid[0] == 5 < grid[2] < grid[3] == 80


def test_rounds_follow_the_theory_in_the_privacy_parameter():
    """T^(3/2) is proportional to n sqrt(rho)."""
    problem = problem_of(n=800, d=1000, sparsity=10)
    plans = [FrankWolfe().plan(problem, Budget(e, 0.01)) for e in (1.0, 4.0)]
    ratio = (zcdp_rho(4.0, 0.01) / zcdp_rho(1.0, 0.01)) ** (1 / 3)
    few, many = (plan.settings["rounds"] for plan in plans)
    assert many == pytest.approx(few * ratio, abs=0.5 + 0.5 * ratio)


def test_defaults_have_the_stated_values():
    squared = FrankWolfe().plan(problem_of(sparsity=3), Budget(1.0, 1e-6)).settings
    assert squared["clip"] == pytest.approx(4.0 / 20)
    assert squared["radius"] == pytest.approx(4.0 / 3 * math.sqrt(3 * 3))  # three columns U(-1, 1) and a margin of 4/3
    logistic = FrankWolfe().plan(problem_of("logistic", sparsity=3), Budget(1.0, 1e-6)).settings
    assert logistic["clip"] == 0.5
    assert logistic["radius"] == pytest.approx(math.sqrt(3 * 3))


def test_the_plan_follows_from_public_facts_alone():
    model = SparseRegressor(3, feature_bound=1.0, target_bound=4.0, algorithm="frank-wolfe")
    (X, y), plan = some_rows(), model.plan(N, D)
    assert model.fit(X, y).plan_ == plan == model.fit(0 * X, 0 * y).plan_


@pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")
def test_it_recovers_most_of_a_sparse_law():
    """Ten of a thousand columns from 800 rows; 1 is the error of the zero model. Mean of five draws, seen: 0.19."""
    law, errors = dpsl_kt_law(), []
    for seed in range(5):
        X, y, theta = law.draw(seed)
        facts = {"feature_bound": 1.0, "target_bound": 3 * law.target_deviation, "random_state": seed}
        model = SparseRegressor(10, epsilon=5.0, delta=0.01, algorithm="frank-wolfe", **facts).fit(X, y)
        errors.append(np.linalg.norm(model.coef_ - theta) / np.linalg.norm(theta))
    assert np.mean(errors) < 0.3


# -- prices -----------------------------------------------------------------------------------------------------


def needed_scale(epsilon, delta, rounds):
    """Over the sensitivity: what Gumbel noise takes for the same budget."""
    return GumbelVertex.for_rho(zcdp_rho(epsilon, delta), rounds).multiplier


def printed(epsilon, delta, rounds=100, adjacency="replace-one", **facts):
    algorithm = FrankWolfe(iterations=rounds, calibration="printed", **facts)
    return algorithm.plan(problem_of(n=1000), Budget(epsilon, delta, adjacency))


def test_the_printed_scale_digit_by_digit():
    """L1 ||C||_1 sqrt(8 T log(1/delta)) / (n epsilon) with L1 = 0.2 * 2, ||C||_1 = 3, T = 100, delta = 1e-5, n = 1000,
    epsilon = 0.5: 1.2 * sqrt(9210.340371976184) / 500.
    """
    problem = problem_of(n=1000, bounds=Bounds(feature=2.0, target=(-4.0, 4.0)))
    algorithm = FrankWolfe(iterations=100, radius=3.0, clip=0.2, calibration="printed")
    plan = algorithm.plan(problem, Budget(0.5, 1e-5))
    rng = np.random.default_rng(0)
    vault = CentralVault(rng.uniform(-2, 2, (1000, D)), rng.normal(size=1000), plan, NoiseSource(0))
    algorithm.run(vault)
    assert {answer.release.noise for answer in vault.answers} == {"laplace"}
    for answer in vault.answers:
        assert answer.scale == pytest.approx(0.230329243785, rel=1e-11)


def test_for_a_polytope_the_printed_norm_is_the_l1_norm_of_its_vertices():
    ball, listed = (
        printed(1.0, 1e-5, radius=2.0, clip=1.0),
        printed(1.0, 1e-5, polytope=Polytope([[2.0] + [0.0] * 5]), clip=1.0),
    )
    assert ball.releases == listed.releases


@pytest.mark.parametrize(("adjacency", "cost"), [("replace-one", 1.77), ("add-remove", 0.83)])
def test_the_printed_noise_costs_what_the_erratum_says(adjacency, cost):
    """Erratum E-15: claimed 1 at 1e-5 and 100 rounds."""
    (release,) = printed(1.0, 1e-5, adjacency=adjacency).releases
    assert isinstance(release, LaplaceVertex)
    assert release.cost().epsilon(1e-5)[0] == pytest.approx(cost, abs=0.01)


@pytest.mark.parametrize(
    ("epsilon", "delta", "ratio"),
    [(0.8, 0.01, 1.45), (1, 1e-5, 1.19), (2, 1e-5, 1.12), (4.5, 1e-5, 1.02), (8, 1e-5, 0.94)],
)
def test_gumbel_noise_of_the_printed_scale_would_be_private_up_to_an_epsilon_of_four_and_a_half(epsilon, delta, ratio):
    """Erratum E-16: printed over needed, for replace-one."""
    (laplace,) = printed(epsilon, delta).releases
    gumbel = GumbelVertex(100, laplace.multiplier)
    assert laplace.multiplier / needed_scale(epsilon, delta, 100) == pytest.approx(ratio, abs=0.01)
    assert (gumbel.cost().epsilon(delta)[0] <= epsilon) == (ratio >= 1)
    assert laplace.cost().epsilon(delta)[0] > epsilon


def test_laplace_noise_would_need_twice_the_scale():
    """Erratum E-16, at (1, 1e-5) and 100 rounds."""
    scale = needed_scale(1.0, 1e-5, 100)
    assert LaplaceVertex(100, 2 * scale).cost().epsilon(1e-5)[0] == pytest.approx(1.0, rel=1e-6)


def fitted(**facts):
    algorithm = FrankWolfe(iterations=100, calibration="printed")
    X, y = some_rows()
    return SparseRegressor(3, delta=1e-5, feature_bound=1.0, target_bound=4.0, algorithm=algorithm, **facts).fit(X, y)


def test_a_printed_run_is_marked_and_promises_nothing():
    with pytest.warns(PrivacyWarning):
        certificate = fitted(epsilon=1.0).certificate_
    assert (certificate.grade, certificate.epsilon, certificate.claimed_epsilon) == ("printed", None, 1.0)
    assert any("E-15" in note for note in certificate.notes)
    assert certificate.verify().epsilon == pytest.approx(1.606, abs=0.002)  # where zCDP proves 1.77


@pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")
def test_a_printed_run_without_privacy_adds_no_noise():
    budget, problem = Budget(math.inf, 1e-5), problem_of()
    np.testing.assert_array_equal(
        run(FrankWolfe(calibration="printed"), problem, budget), run(FrankWolfe(), problem, budget)
    )


# -- refusals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        {"iterations": 0},
        {"iterations": 2.5},
        {"radius": 0.0},
        {"radius": math.inf},
        {"clip": -1.0},
        {"clip": math.inf},
        {"polytope": np.eye(3)},
        {"calibration": "approximate"},
        {"radius": 1.0, "polytope": L1Ball(1.0)},
    ],
    ids=str,
)
def test_hyper_parameters_that_make_no_sense_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        FrankWolfe(**bad)


def test_a_polytope_of_another_dimension_is_refused_before_anything_is_spent():
    with pytest.raises(ValueError, match="coordinates for 6 columns"):
        FrankWolfe(polytope=Polytope(np.eye(3))).plan(problem_of(), Budget(1.0, 1e-6))
