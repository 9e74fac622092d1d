"""The descent sees released gradients and public facts only, asks for exactly its rounds, and adapts its step."""

import math

import numpy as np
import pytest

from thresher.algorithms.descent import SecantSteps, descend
from thresher.privacy.bounds import Bounds
from thresher.vaults.losses import loss_named
from thresher.vaults.problem import LinearProblem


def problem(d=20, s=3, loss="squared", intercept=False, radius=3.0):
    target = (-radius, radius) if loss == "squared" else None
    return LinearProblem(
        500, d, Bounds(feature=1.0, target=target), sparsity=s, loss=loss_named(loss), intercept=intercept
    )


def recorded(gradient, facts, rounds, clip, sd):
    """The result of a descent and the gradients it was given."""
    seen = []

    def record(theta):
        seen.append(gradient(theta))
        return seen[-1]

    return descend(record, facts, rounds, clip, sd), seen


def quadratic(d, curvature=1 / 3):
    centre = np.zeros(d)
    centre[:3] = 1.0, -0.7, 0.5
    return (lambda theta: curvature * (theta - centre)), centre


@pytest.mark.parametrize("sd", [0.0, 0.01], ids=["exact", "noisy"])
def test_the_answer_is_a_function_of_the_gradients_alone(sd):
    rng = np.random.default_rng(0)
    exact, _ = quadratic(20)
    theta, gradients = recorded(lambda theta: exact(theta) + sd * rng.normal(size=20), problem(), 12, 1.0, sd)
    replay = iter(gradients)
    np.testing.assert_array_equal(descend(lambda _: next(replay), problem(), 12, 1.0, sd), theta)


@pytest.mark.parametrize("rounds", [1, 2, 7, 40])
@pytest.mark.parametrize(
    "gradient",
    [lambda theta: np.zeros(20), lambda theta: np.full(20, 1e6), quadratic(20)[0]],
    ids=["0", "huge", "fair"],
)
def test_exactly_the_planned_number_of_gradients_is_asked_for(rounds, gradient):
    theta, seen = recorded(gradient, problem(), rounds, 1.0, 0.01)
    assert len(seen) == rounds
    assert np.all(np.isfinite(theta))


@pytest.mark.parametrize("curvature", [0.1, 1 / 3, 3.0, 20.0])
def test_exact_gradients_lead_to_the_minimiser_whatever_the_curvature(curvature):
    gradient, centre = quadratic(20, curvature)
    np.testing.assert_allclose(descend(gradient, problem(), 100, math.inf, 0.0), centre, atol=1e-2)


@pytest.mark.parametrize("sd", [0.0, 0.02])
def test_at_most_s_coefficients_survive(sd):
    rng = np.random.default_rng(1)
    theta = descend(lambda theta: rng.normal(size=20), problem(), 9, 1.0, sd)
    assert np.count_nonzero(theta) <= 3


def test_pure_noise_leaves_fewer_coefficients_than_asked_for():
    """s-th largest of d noises: with the floor about 2.4 of 1000 pass; without it, all 10 places would be filled."""
    rng, facts = np.random.default_rng(2), problem(1000, 10)
    kept = [np.count_nonzero(descend(lambda theta: 0.1 * rng.normal(size=1000), facts, 1, 1.0, 0.1)) for _ in range(20)]
    assert np.mean(kept) < 5


@pytest.mark.parametrize("rounds", [1, 6, 7])
def test_noisy_iterates_are_averaged_over_the_later_half(rounds):
    """Gradients that shrink by 0.4 leave the step alone, so the iterates are the points asked about and the last."""
    script, visited = [np.array([-(0.4**t)]) for t in range(rounds)], []

    def gradient(theta):
        visited.append(theta)
        return script[len(visited) - 1]

    answer = descend(gradient, problem(1, 1), rounds, math.inf, 1e-9)
    step = SecantSteps(problem(1, 1), math.inf).adapt(np.zeros(1), script[0])[2]
    iterates = [*visited, visited[-1] - step * script[-1]]
    np.testing.assert_allclose(answer, np.mean(iterates[-math.ceil(rounds / 2) :]), rtol=1e-12)


# -- steps ------------------------------------------------------------------------------------------------------


def first_move(curvature):
    """One coordinate, minimum at 1: the first step from 0 (as long as allowed: 3) and where it leads."""
    steps = SecantSteps(problem(1, 1, radius=30.0), math.inf)
    _, slope, step = steps.adapt(np.zeros(1), np.array([-curvature]))
    return steps, step, -step * slope


def test_an_overshot_move_is_cut_back_to_the_minimum_along_it():
    steps, step, theta = first_move(curvature=0.6)
    np.testing.assert_allclose(theta, 1.8)
    back, slope, shorter = steps.adapt(theta, 0.6 * (theta - 1))
    np.testing.assert_allclose(back, 1.0, rtol=1e-12)
    np.testing.assert_allclose(slope, 0.0, atol=1e-12)
    assert shorter[0] == pytest.approx(step[0] / theta[0], rel=1e-12)


def test_a_timid_move_lengthens_the_step():
    steps = SecantSteps(problem(1, 1), math.inf)
    _, slope, step = steps.adapt(np.zeros(1), np.array([-1.0]))
    theta = -step * slope
    moved, _, longer = steps.adapt(theta, np.array([-0.6]))  # 0.6 of the slope is left
    np.testing.assert_array_equal(moved, theta)
    assert longer[0] == pytest.approx(2 * step[0], rel=1e-12)


def test_a_move_that_is_about_right_leaves_the_step_alone():
    steps, step, theta = first_move(curvature=0.35)
    moved, _, same = steps.adapt(theta, 0.35 * (theta - 1))
    np.testing.assert_array_equal(moved, theta)
    np.testing.assert_array_equal(same, step)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_no_step_is_longer_than_the_public_bound(loss):
    facts = problem(loss=loss)
    steps, theta = SecantSteps(facts, 1.0), np.zeros(20)
    longest = 3 * 20 / (facts.curvature * facts.row_norm**2)
    for _ in range(30):  # the slope never changes: the steps grow as far as they may
        theta, slope, step = steps.adapt(theta, np.full(20, -0.1))
        theta = theta - step * slope
    assert step[0] == pytest.approx(longest, rel=1e-12)


def test_the_intercept_has_a_step_of_its_own():
    facts = problem(intercept=True)
    _, _, step = SecantSteps(facts, 1.0).adapt(np.zeros(21), np.ones(21))
    assert step[20] == pytest.approx(2 / facts.intercept_column**2, rel=1e-12)


def test_a_gradient_of_zeros_is_harmless_for_a_wide_target():
    facts = problem(radius=100.0)
    np.testing.assert_array_equal(descend(lambda theta: np.zeros(20), facts, 5, math.inf, 0.0), np.zeros(20))
