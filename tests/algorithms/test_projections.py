"""H_s keeps the s largest coefficients and the intercept, nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from thresher.algorithms.projections import hard_threshold, noise_floor
from thresher.privacy.bounds import Bounds
from thresher.vaults.losses import loss_named
from thresher.vaults.problem import LinearProblem


def problem(d, s, intercept=True, outputs=1):
    loss = "logistic" if outputs == 1 else "multinomial"
    return LinearProblem(
        100, d, Bounds(row=1.0), sparsity=s, loss=loss_named(loss), intercept=intercept, outputs=outputs
    )


@given(theta=arrays(np.float64, 8, elements=st.floats(-10, 10)), s=st.integers(1, 7))
def test_the_s_largest_magnitudes_are_kept(theta, s):
    kept = hard_threshold(theta, problem(7, s))
    np.testing.assert_array_equal(np.sort(np.abs(kept[:7]))[7 - s :], np.sort(np.abs(theta[:7]))[7 - s :])
    assert np.count_nonzero(kept[:7]) <= s


@given(theta=arrays(np.float64, 8, elements=st.floats(-10, 10)), s=st.integers(1, 7))
def test_what_is_kept_is_unchanged(theta, s):
    kept = hard_threshold(theta, problem(7, s))
    assert np.all((kept == theta) | (kept == 0))


def test_the_intercept_stays_however_small():
    assert hard_threshold(np.array([3.0, -5.0, 4.0, 1e-9]), problem(3, 1)).tolist() == [0, -5, 0, 1e-9]


def test_without_an_intercept_the_last_coefficient_is_one_of_them():
    assert hard_threshold(np.array([3.0, -5.0, 4.0]), problem(3, 1, intercept=False)).tolist() == [0, -5, 0]


def test_as_many_as_there_are_columns_are_all_kept():
    theta = np.array([3.0, -5.0, 4.0, 1.0])
    assert hard_threshold(theta, problem(3, 3)).tolist() == theta.tolist()


def test_the_input_is_not_modified():
    theta = np.array([3.0, -5.0, 4.0, 1.0])
    hard_threshold(theta, problem(3, 1))
    assert theta.tolist() == [3, -5, 4, 1]


def test_coefficients_below_the_floor_are_dropped_and_the_intercept_is_not():
    assert hard_threshold(np.array([3.0, -5.0, 4.0, 0.1]), problem(3, 2), floor=4.5).tolist() == [0, -5, 0, 0.1]


@pytest.mark.parametrize(("d", "s"), [(1000, 1), (1000, 10), (10_000, 100)])
def test_the_noise_floor_is_just_above_the_sth_largest_of_d_noises(d, s):
    noise = np.sort(np.abs(np.random.default_rng(0).normal(0, 2.0, (50, d))), axis=1)
    typical = noise[:, d - s].mean()
    assert typical < noise_floor(2.0, problem(d, s)) < 1.3 * typical


# -- several outputs ------------------------------------------------------------------------------------------------


@given(theta=arrays(np.float64, 24, elements=st.floats(-10, 10)), s=st.integers(1, 7))
def test_several_outputs_keep_s_times_as_many_wherever_they_are_largest(theta, s):
    kept = hard_threshold(theta, problem(7, s, outputs=3))
    np.testing.assert_array_equal(np.sort(np.abs(kept[:21]))[21 - 3 * s :], np.sort(np.abs(theta[:21]))[21 - 3 * s :])
    assert np.count_nonzero(kept[:21]) <= 3 * s
    assert np.all((kept == theta) | (kept == 0))
    np.testing.assert_array_equal(kept[21:], theta[21:])


def test_one_output_may_have_all_the_coefficients_and_every_intercept_stays():
    theta = np.array([5.0, -4.0, 3.0, 0.1, 0.2, -0.3, 1e-9, 0.0])
    assert hard_threshold(theta, problem(3, 1, outputs=2)).tolist() == [5, -4, 0, 0, 0, 0, 1e-9, 0]


def test_the_floor_holds_for_every_output_and_no_intercept():
    theta = np.array([5.0, 1.0, 1.0, -6.0, 0.1, 0.2])
    assert hard_threshold(theta, problem(2, 2, outputs=2), floor=4.5).tolist() == [5, 0, 0, -6, 0.1, 0.2]


def test_the_noise_floor_of_several_outputs_is_that_of_one():
    """K s of K d: the same share is above it."""
    assert noise_floor(2.0, problem(1000, 10, outputs=5)) == noise_floor(2.0, problem(1000, 10))
