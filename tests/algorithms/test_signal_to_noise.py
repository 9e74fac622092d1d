"""Noise against signal before anything is spent: public, monotone, and right about where learning starts."""

import math

import numpy as np
import pytest

from thresher import SparseRegressor
from thresher.algorithms.signal_to_noise import noise_over_largest_signal, noise_over_signal, relative_noise
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.vaults.losses import SQUARED
from thresher.vaults.problem import LinearProblem
from thresher_papers.datasets import dpsl_kt_law

RATIOS = [noise_over_signal, noise_over_largest_signal]


def problem(n=800, d=1000, s=10, **bounds):
    return LinearProblem(n, d, Bounds(**(bounds or {"feature": 1.0}), target=(-8.0, 8.0)), sparsity=s, loss=SQUARED)


def budget(epsilon=1.0, delta=1e-6, adjacency="replace-one"):
    return Budget(epsilon, delta, adjacency)


@pytest.mark.parametrize("ratio", RATIOS)
def test_more_rows_or_budget_fewer_columns_or_features_help(ratio):
    usual = ratio(problem(), budget())
    assert ratio(problem(n=1600), budget()) == pytest.approx(usual / 2)
    assert ratio(problem(), budget(epsilon=2)) < usual
    assert ratio(problem(d=100), budget()) < usual
    assert ratio(problem(s=5), budget()) < usual
    assert ratio(problem(), budget(adjacency="add-remove")) == pytest.approx(usual / 2)


@pytest.mark.parametrize("ratio", RATIOS)
def test_without_privacy_there_is_no_noise(ratio):
    assert ratio(problem(), budget(epsilon=math.inf)) == 0


def test_the_largest_signal_is_no_smaller_than_s_equal_ones():
    for n in (62, 800, 20_000):
        assert noise_over_largest_signal(problem(n), budget()) < noise_over_signal(problem(n), budget())


def test_rows_bounded_as_a_whole_make_whole_gradients_the_better_question():
    """With the norm of a row at its largest entry, 500 picks cost more than one gradient."""
    text = problem(25_000, 35_000, 500, row=1.0)
    assert noise_over_largest_signal(text, budget()) < noise_over_largest_signal(
        problem(25_000, 35_000, 500, feature=1.0), budget()
    )


@pytest.mark.parametrize(("n", "epsilon", "learns"), [(4000, 1.0, True), (20_000, 1.0, True), (300, 0.5, False)])
def test_a_ratio_well_below_one_is_learned_and_one_well_above_is_not(n, epsilon, learns):
    ratio = noise_over_signal(problem(n, d=200), budget(epsilon))
    assert ratio < 0.5 if learns else ratio > 2
    X, y, theta = dpsl_kt_law(n, 200, 10).draw(0)
    model = SparseRegressor(
        10, epsilon=epsilon, delta=1e-6, feature_bound=1.0, target_bound=8.0, algorithm="pursuit", random_state=0
    ).fit(X, y)
    error = np.linalg.norm(model.coef_ - theta) / np.linalg.norm(theta)
    assert error < 0.2 if learns else error > 0.8


@pytest.mark.parametrize(("algorithm", "off"), [("dp-ight", 1e-9), ("pursuit", 0.03)])
@pytest.mark.parametrize("epsilon", [0.25, 4.0])
def test_the_noise_of_another_epsilon_is_that_of_its_plan(algorithm, off, epsilon):
    """Exact for Gaussian noise and the same number of answers; pursuit composes by zCDP, which is nearly the same."""

    def noise(epsilon):
        model = SparseRegressor(5, epsilon=epsilon, delta=1e-6, feature_bound=1, target_bound=4, algorithm=algorithm)
        releases = model.plan(10_000, 100).releases
        return sum(release.times / release.multiplier**2 for release in releases) ** -0.5

    assert relative_noise(budget(epsilon=1.0), epsilon) == pytest.approx(noise(epsilon) / noise(1.0), rel=off)


def test_pure_noise_goes_with_one_over_epsilon():
    assert relative_noise(budget(epsilon=2.0, delta=0), 0.5) == 4
