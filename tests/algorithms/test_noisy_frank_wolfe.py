"""Frank-Wolfe with Gaussian noise on the gradient: its steps, its sets, its optimum."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import Lasso

from thresher import SparseRegressor
from thresher.algorithms import NoisyFrankWolfe
from thresher.algorithms.noisy_frank_wolfe import unit_width
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.conversions import gaussian_mu
from thresher.vaults import CentralVault
from thresher.vaults.losses import loss_named
from thresher.vaults.polytopes import least_on_ball
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

LOSSES = ["squared", "logistic"]
N, D = 200, 6
OPEN = Budget(math.inf, 1e-6)


def problem_of(loss="squared", intercept=False, n=N, d=D, sparsity=None):
    bounds = Bounds(feature=1.0, target=(-4.0, 4.0) if loss == "squared" else None)
    return LinearProblem(n, d, bounds, sparsity=sparsity or d, loss=loss_named(loss), intercept=intercept)


def some_rows(loss="squared"):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, D))
    y = X @ [1.0, -0.5, 0.0, 0.0, 0.3, 0.0] + 0.5 + 0.1 * rng.normal(size=N)
    return X, y if loss == "squared" else (y > 0).astype(float)


def vault_for(algorithm, problem, budget, seed=0):
    return CentralVault(*some_rows(problem.loss.name), algorithm.plan(problem, budget), NoiseSource(seed))


def run(algorithm, problem, budget=OPEN, seed=0):
    return algorithm.run(vault_for(algorithm, problem, budget, seed))


# -- the steps --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("q", [1.0, 1.5, 2.0, math.inf])
@pytest.mark.parametrize("budget", [OPEN, Budget(1.0, 1e-6)], ids=["exact", "noisy"])
@pytest.mark.parametrize("intercept", [True, False])
def test_it_takes_the_papers_steps_along_noisy_gradients(loss, q, budget, intercept):
    """The same noise source gives the same gradients to a loop written by hand."""
    algorithm, problem = NoisyFrankWolfe(iterations=12, radius=1.5, q=q), problem_of(loss, intercept)
    vault = vault_for(algorithm, problem, budget, seed=3)
    (release,), theta = vault.plan.releases, np.zeros(problem.dimension)
    for t in range(1, 13):
        gradient = vault.gradient(theta, release, vault.plan.settings["clip"])
        best = least_on_ball(gradient[:D], q, 1.5)
        if intercept:
            limit = (4 / 3 if loss == "squared" else 1.0) / problem.intercept_column
            best = np.append(best, -limit if gradient[D] > 0 else limit)
        theta = (1 - 2 / (t + 2)) * theta + 2 / (t + 2) * best
    np.testing.assert_allclose(run(algorithm, problem, budget, seed=3), theta, rtol=1e-12)


def test_only_the_largest_coefficients_are_kept():
    dense, sparse = (run(NoisyFrankWolfe(q=2.0), problem_of(sparsity=s)) for s in (D, 2))
    kept = np.argsort(np.abs(dense))[-2:]
    assert np.count_nonzero(dense) == D
    np.testing.assert_array_equal(np.sort(kept), np.flatnonzero(sparse))


def squared_loss(theta):
    X, y = some_rows()
    return np.mean((X @ theta - y) ** 2) / 2


def best_in_l2_ball(radius):
    ball = {"type": "ineq", "fun": lambda theta: radius**2 - theta @ theta}
    return minimize(squared_loss, np.zeros(D), constraints=ball, method="SLSQP", options={"ftol": 1e-14}).x


def best_in_l1_ball(radius):
    """By bisection on the Lasso's penalty."""
    low, high, best = 1e-6, 1.0, np.zeros(D)
    for _ in range(60):
        alpha = math.sqrt(low * high)
        best = Lasso(alpha=alpha, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(*some_rows()).coef_
        low, high = (alpha, high) if np.linalg.norm(best, 1) > radius else (low, alpha)
    return best


@pytest.mark.parametrize(("q", "best"), [(1.0, best_in_l1_ball), (2.0, best_in_l2_ball)], ids=["l1", "l2"])
@pytest.mark.parametrize("rounds", [10, 100, 1000])
def test_without_noise_it_converges_to_the_best_point_of_the_ball_at_the_rate_of_the_theory(q, best, rounds):
    """The gap is at most 2 G / (T + 3), G the squared diameter of the ball as the rows see it."""
    radius, X = 0.7, some_rows()[0]
    widest = np.max(np.mean(X**2, axis=0)) if q == 1 else np.linalg.norm(X.T @ X / N, 2)
    target = best(radius)
    assert np.linalg.norm(target, q) == pytest.approx(radius, rel=1e-5), "the constraint must bind"
    found = run(NoisyFrankWolfe(iterations=rounds, radius=radius, q=q, clip=100.0), problem_of())
    assert np.linalg.norm(found, q) <= radius * (1 + 1e-12)
    gap = squared_loss(found) - squared_loss(target)
    assert -1e-6 <= gap <= 2 * (2 * radius) ** 2 * widest / (rounds + 3)


@pytest.mark.parametrize("budget", [OPEN, Budget(1.0, 1e-6)], ids=["exact", "noisy"])
def test_an_oracle_stands_for_its_set(budget):
    ball = NoisyFrankWolfe(iterations=9, radius=1.5, q=2.0)
    oracle = NoisyFrankWolfe(iterations=9, radius=1.5, oracle=lambda g: -1.5 * g / np.linalg.norm(g))
    for intercept in (True, False):
        found = [run(algorithm, problem_of(intercept=intercept), budget) for algorithm in (ball, oracle)]
        np.testing.assert_allclose(*found, rtol=1e-12)


def test_an_oracle_never_sees_more_than_noisy_gradients():
    seen = []

    def oracle(gradient):
        seen.append(gradient.copy())
        return np.zeros(D)

    algorithm = NoisyFrankWolfe(iterations=400, radius=1.0, oracle=oracle)
    vault = vault_for(algorithm, problem_of(), Budget(1.0, 1e-6))
    algorithm.run(vault)
    scale = vault.answers[0].scale
    # at the origin throughout: the same gradient 400 times. 2400 squares put 1.25 eight sigmas away; no false alarm
    assert np.std(seen, axis=0, ddof=1) == pytest.approx(scale, rel=0.2)
    assert np.sqrt(np.mean(np.var(seen, axis=0, ddof=1))) == pytest.approx(scale, rel=0.08)


# -- public defaults --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("q", [1.0, 2.0])
def test_a_larger_budget_buys_more_rounds_within_limits(loss, q):
    plans = [
        NoisyFrankWolfe(q=q).plan(problem_of(loss, n=20_000), Budget(e, 1e-6)) for e in (1e-3, 0.03, 0.1, 1, math.inf)
    ]
    rounds = [plan.settings["rounds"] for plan in plans]
    assert all(a <= b for a, b in pairwise(rounds))
    assert rounds[0] == 10
    assert rounds[-1] == 80
    assert any(10 < r < 80 for r in rounds)


def test_the_whole_budget_is_spent_on_the_exact_curve():
    (release,) = NoisyFrankWolfe(iterations=16).plan(problem_of(), Budget(2.0, 1e-6)).releases
    assert release.multiplier == pytest.approx(4 / gaussian_mu(2.0, 1e-6), rel=1e-12)


def test_the_default_radius_is_that_of_equal_coefficients_with_a_typical_margin():
    """Columns U(-1, 1) have variance 1/3, so s coefficients of 4/3 sqrt(3/s) make margins of deviation 4/3."""
    for q, norm in ((1.0, 3 * 4 / 3), (2.0, math.sqrt(3) * 4 / 3), (math.inf, 4 / 3)):
        plan = NoisyFrankWolfe(q=q).plan(problem_of(sparsity=3), Budget(1.0, 1e-6))
        assert plan.settings["radius"] == pytest.approx(norm, rel=1e-12)


@pytest.mark.parametrize("q", [1.0, 1.2, 2.0, 4.0, math.inf])
@pytest.mark.parametrize("d", [1, 10, 1000])
def test_the_width_bounds_the_gaussian_width_of_the_ball(q, d):
    """E ||Z||_p from 4000 draws, the bound at most 1.7 times it. Sampling error is below 2 %."""
    dual = math.inf if q == 1 else 1.0 if math.isinf(q) else q / (q - 1)
    width = np.mean(np.linalg.norm(np.random.default_rng(0).normal(size=(4000, d)), dual, axis=1))
    assert 0.97 * width <= unit_width(d, q) <= 1.7 * width


def test_the_plan_follows_from_public_facts_alone():
    model = SparseRegressor(3, feature_bound=1.0, target_bound=4.0, algorithm="noisy-frank-wolfe")
    (X, y), plan = some_rows(), model.plan(N, D)
    assert model.fit(X, y).plan_ == plan == model.fit(0 * X, 0 * y).plan_


# -- refusals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [{"iterations": 0}, {"radius": -1.0}, {"clip": math.inf}, {"q": 0.5}, {"q": math.nan}, {"oracle": 3}],
    ids=str,
)
def test_hyper_parameters_that_make_no_sense_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        NoisyFrankWolfe(**bad)


def test_an_oracle_needs_a_public_radius():
    with pytest.raises(ValueError, match="radius=None"):
        NoisyFrankWolfe(oracle=np.sign)


@pytest.mark.parametrize("answer", [np.zeros(3), np.full(D, math.nan), 1.0], ids=["shape", "nan", "number"])
def test_an_oracle_that_returns_no_point_is_refused(answer):
    with pytest.raises(ValueError, match="oracle must return 6 finite coordinates"):
        run(NoisyFrankWolfe(radius=1.0, oracle=lambda _: answer), problem_of())
