"""Lazy descent: a function of released gradients alone that forgets nothing and believes no noise."""

import math

import numpy as np
import pytest
from scipy.special import expit

from thresher.algorithms.defaults import gradient_clip
from thresher.algorithms.lazy_descent import NOISE_MARGIN, LazyWalk, descend_lazily
from thresher.algorithms.projections import noise_floor
from thresher.privacy.bounds import Bounds
from thresher.vaults.losses import loss_named
from thresher.vaults.problem import LinearProblem


def problem(d=20, s=3, intercept=False, outputs=1, n=500, loss="logistic"):
    target = (-3.0, 3.0) if loss == "squared" else None
    loss = loss if outputs == 1 else "multinomial"
    return LinearProblem(
        n,
        d,
        Bounds(feature=1.0, target=target),
        sparsity=s,
        loss=loss_named(loss),
        intercept=intercept,
        outputs=outputs,
    )


def lazily(gradient, facts, rounds, sd):
    return descend_lazily(gradient, facts, rounds, gradient_clip(facts), sd)


def walk_of(facts, rounds, sd):
    return LazyWalk(facts, rounds, gradient_clip(facts), sd)


def quadratic(d, curvature):
    centre = np.zeros(d)
    centre[:3] = 1.0, -0.7, 0.5
    return (lambda theta: curvature * (theta - centre)), centre


# -- what it finds --------------------------------------------------------------------------------------------------


def logistic_rows(n=4000, d=20):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, d))
    return X, (expit(X[:, :3] @ [6.0, -6.0, 4.0] + 0.5) > rng.random(n)).astype(float)


@pytest.mark.parametrize("sd", [1e-12, 1e-4, 3e-3])
@pytest.mark.parametrize("intercept", [True, False])
def test_with_little_noise_it_finds_a_good_classifier(sd, intercept):
    X, y = logistic_rows()
    facts, rng = problem(intercept=intercept, n=len(X)), np.random.default_rng(1)
    if intercept:
        X = np.hstack([X, np.full((len(X), 1), facts.intercept_column)])
    gradient = lambda theta: X.T @ (expit(X @ theta) - y) / len(X) + sd * rng.normal(size=X.shape[1])  # noqa: E731
    theta = lazily(gradient, facts, 30, sd)
    assert set(np.flatnonzero(theta[:20])) == {0, 1, 2}
    best = np.mean((X[:, :3] @ [6.0, -6.0, 4.0] + 0.5 > 0) == (y > 0))
    assert np.mean((X @ theta > 0) == (y > 0)) > best - 0.02


def test_a_feature_need_not_stand_out_of_the_noise_of_any_single_round():
    """A slope of half the noise floor of a round: one round drops it, forty do not; seeds are fixed."""
    facts, sd = problem(d=1000, s=1), 0.01
    slope = np.zeros(1000)
    slope[7] = -0.6 * noise_floor(sd, facts)
    found = []
    rng = np.random.default_rng(3)
    for rounds in (1, 40):
        thetas = [lazily(lambda _: slope + sd * rng.normal(size=1000), facts, rounds, sd) for _ in range(20)]
        found.append(np.mean([theta[7] != 0 for theta in thetas]))
    assert found[0] < 0.3
    assert found[1] == 1.0


def test_it_is_a_function_of_the_gradients_alone():
    rng, (exact, _), seen = np.random.default_rng(0), quadratic(20, 0.1), []

    def gradient(theta):
        seen.append(exact(theta) + 0.01 * rng.normal(size=20))
        return seen[-1]

    theta = lazily(gradient, problem(), 12, 0.01)
    assert len(seen) == 12
    replay = iter(seen)
    np.testing.assert_array_equal(lazily(lambda _: next(replay), problem(), 12, 0.01), theta)


@pytest.mark.parametrize("outputs", [1, 4])
def test_at_most_s_coefficients_for_each_output_survive(outputs):
    rng, facts = np.random.default_rng(1), problem(outputs=outputs, intercept=True)
    theta = lazily(lambda _: rng.normal(size=facts.dimension), facts, 9, 1e-6)
    assert np.count_nonzero(theta[: facts.width]) == 3 * outputs
    assert np.all(theta[facts.width :] != 0)


# -- noise ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("outputs", "rounds"), [(1, 1), (1, 16), (1, 40), (4, 16)])
def test_pure_noise_leaves_no_more_than_the_floor_lets_through(outputs, rounds):
    """d 2 Phi(-sqrt(2 log(d/s))) coordinates of noise are above the floor: 2.4 of 1000 and s = 10, where without the
    floor all 10 places would be filled. 20 draws; a mean above 4 is beyond 4 sigmas, once in 3e4."""
    rng, facts = np.random.default_rng(2), problem(1000, 10, outputs=outputs)
    kept = [
        np.count_nonzero(lazily(lambda _: 0.1 * rng.normal(size=facts.width), facts, rounds, 0.1)) for _ in range(20)
    ]
    assert np.mean(kept) / outputs < 4
    silent = [
        np.count_nonzero(lazily(lambda _: 0.1 * rng.normal(size=facts.width), facts, rounds, 1e-9)) for _ in range(3)
    ]
    assert silent == [10 * outputs] * 3  # told that there is no noise, it believes all of it


@pytest.mark.parametrize("rounds", [1, 16, 40])
def test_the_noise_of_all_rounds_moves_a_margin_by_no_more_than_a_useful_model_does(rounds):
    """In rms, for a row at the row bound, if nothing were thresholded."""
    facts, sd = problem(1000, 10), 0.3
    walk = walk_of(facts, rounds, sd)
    assert facts.row_norm * sd * math.sqrt(rounds) * walk.longest <= NOISE_MARGIN * math.log(2) * (1 + 1e-12)


# -- steps ----------------------------------------------------------------------------------------------------------


def test_an_overshot_move_is_cut_back_to_the_minimum_along_it():
    """One coordinate, minimum at 1: wherever the first step leads beyond it, the walk goes on from 1."""
    facts, sd = problem(1, 1), 1e-9
    walk = walk_of(facts, 5, sd)
    curvature = 3 / walk.longest  # the longest step goes three times as far as it should
    walk.hope = math.inf
    walk.step(np.array([-curvature]))
    np.testing.assert_allclose(walk.model, 3.0, rtol=1e-6)
    before = walk.steps[0]
    walk.step(curvature * (walk.model - 1))
    np.testing.assert_allclose(walk.model, 1.0, rtol=1e-6)
    assert walk.steps[0] == pytest.approx(before / 3, rel=1e-6)
    assert walk.variance == pytest.approx(
        2 * (before * sd / 3) ** 2, rel=1e-6
    )  # the part that was kept, and the new step


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("curvature", [0.05, 0.25, 2.0, 10.0])
def test_whatever_the_curvature_of_a_quadratic_its_minimiser_is_reached(loss, curvature):
    gradient, centre = quadratic(20, curvature)
    theta = lazily(gradient, problem(loss=loss), 200, 1e-9)
    np.testing.assert_allclose(theta, centre, atol=2e-2)


def test_a_timid_move_lengthens_the_steps_up_to_the_longest():
    facts = problem(1, 1)
    walk = walk_of(facts, 50, 1e-9)
    walk.step(np.array([-1e3]))
    first = walk.steps[0]
    assert first < walk.longest
    walk.step(np.array([-0.9e3]))
    assert walk.steps[0] == pytest.approx(2 * first)
    for _ in range(40):
        walk.step(np.array([-0.9e3]))
    assert walk.steps[0] == pytest.approx(walk.longest)


def test_slopes_within_their_noise_change_nothing():
    facts = problem(1, 1)
    walk = walk_of(facts, 50, 0.01)
    walk.step(np.array([-1.0]))
    first = walk.steps[0]
    walk.step(np.array([0.015]))  # the slope along the move is within two deviations
    assert walk.steps[0] == first


def test_the_intercept_has_a_step_of_its_own():
    facts = problem(intercept=True, outputs=3)
    walk = walk_of(facts, 5, 1e-3)
    walk.step(np.ones(facts.dimension))
    np.testing.assert_allclose(walk.steps[facts.width :], 0.5 / (facts.curvature * facts.intercept_column**2))


EXTREMES = {
    "zeros": lambda t: 0.0,
    "huge": lambda t: 1e6,
    "tiny": lambda t: 1e-300,
    "subnormal": lambda t: 5e-324,
    "flips": lambda t: 1e6 * (-1) ** t,
    "fades": lambda t: 10.0 ** (-20 * t),
    "grows": lambda t: 10.0 ** (3 * t),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", EXTREMES.values(), ids=EXTREMES)
@pytest.mark.parametrize("sd", [1e-12, 0.01, 1e3])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("loss", "outputs"), [("squared", 1), ("logistic", 1), ("multinomial", 3)])
def test_no_gradient_makes_it_divide_by_zero(size, sd, intercept, loss, outputs):
    facts, t = problem(intercept=intercept, outputs=outputs, loss=loss), iter(range(20))
    signs = np.random.default_rng(0).choice([-1.0, 1.0], facts.dimension)
    theta = lazily(lambda _: size(next(t)) * signs, facts, 20, sd)
    assert np.all(np.isfinite(theta))
