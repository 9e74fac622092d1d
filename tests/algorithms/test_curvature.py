"""Curvature from noisy moments or Gram matrices: right where the noise is small, safely too large where it is not."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher.algorithms.pursuit import GramCurvature, MomentCurvature


def test_moments_are_those_of_the_columns_and_the_intercept_comes_first():
    curvature = MomentCurvature(np.array([0.25]))
    curvature.add(np.array([0.3, 0.4]), 1e-3)
    curvature.add(np.array([0.2]), 1e-3)
    np.testing.assert_allclose(curvature.matrix(), np.diag([0.25, 0.3, 0.4, 0.2]))


def test_moments_are_no_smaller_than_three_deviations_or_a_third_of_the_rest():
    curvature = MomentCurvature(np.empty(0))
    curvature.add(np.array([0.9, -0.5, 0.001]), 0.01)
    mean = (0.9 + 0.03 + 0.03) / 3
    np.testing.assert_allclose(curvature.matrix(), np.diag([0.9, 0.3 * mean, 0.3 * mean]))
    curvature.add(np.array([-1.0]), 0.5)
    assert curvature.matrix()[3, 3] == 1.5


def a_gram(p, seed, condition=1.0):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(p, p)))[0]
    return (Q * np.geomspace(1, condition, p)) @ Q.T


def noisy(gram, sd, rng):
    noise = rng.normal(0, sd, gram.shape)
    noise = np.triu(noise, 1) / math.sqrt(2)
    return gram + noise + noise.T + np.diag(rng.normal(0, sd, len(gram)))


@pytest.mark.parametrize("p", [1, 3, 8])
def test_without_noise_a_fair_gram_matrix_is_itself(p):
    curvature, gram = GramCurvature(), a_gram(p, 0, 4.0)
    curvature.add(gram[: p - 1, : p - 1], 0.0)
    curvature.add(gram, 0.0)
    np.testing.assert_allclose(curvature.matrix(), gram, rtol=1e-12, atol=1e-14)


def test_gram_matrices_are_averaged_by_the_inverse_of_their_noise_variances():
    """Entries of old columns come from both, those of new columns from the second alone."""
    first, second = np.array([[2.0]]), np.array([[3.0, 0.5], [0.5, 2.0]])
    curvature = GramCurvature()
    curvature.add(first, 0.01)
    curvature.add(second, 0.02)
    np.testing.assert_allclose(curvature.matrix(), [[(4 * 2.0 + 3.0) / 5, 0.5], [0.5, 2.0]])


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 12), st.integers(0, 10**6), st.floats(-6, 2), st.sampled_from([0.0, 1e-12, 1e-3, 1.0]))
def test_the_matrix_is_positive_and_at_least_its_noise_whatever_comes(p, seed, log_sd, scale):
    """So its inverse exists: also of columns of zeros under noise of any size."""
    rng, sd = np.random.default_rng(seed), 10.0**log_sd
    curvature = GramCurvature()
    curvature.add(noisy(scale * a_gram(p, seed, 1e6), sd, rng), sd)
    H = curvature.matrix()
    np.testing.assert_allclose(H, H.T, atol=1e-9 * np.abs(H).max())
    assert np.linalg.eigvalsh(H)[0] >= sd * math.sqrt(2 * p) * (1 - 1e-9)


def test_columns_of_zeros_without_noise_have_a_curvature_too():
    curvature = GramCurvature()
    curvature.add(np.zeros((3, 3)), 0.0)
    assert np.all(np.isfinite(np.linalg.inv(curvature.matrix())))


@pytest.mark.parametrize("sd", [1e-300, 1e-160, 1e-100])
def test_noise_too_small_to_square_is_harmless(sd):
    curvature = GramCurvature()
    curvature.add(np.eye(2), sd)
    curvature.add(np.eye(3), sd)
    np.testing.assert_allclose(curvature.matrix(), np.eye(3))


def test_the_least_eigenvalue_is_about_the_largest_that_noise_alone_has():
    """Of 200 Gram matrices of pure noise none has an eigenvalue above 1.3 of it, and each has one above half of it."""
    rng, p = np.random.default_rng(0), 20
    largest = [np.linalg.eigvalsh(noisy(np.zeros((p, p)), 1.0, rng))[-1] for _ in range(200)]
    curvature = GramCurvature()
    curvature.add(np.zeros((p, p)), 1.0)
    least = curvature.matrix()[0, 0]
    assert max(largest) < 1.3 * least
    assert min(largest) > 0.5 * least


def test_directions_with_hardly_any_spread_count_a_tenth_of_the_median():
    curvature = GramCurvature()
    curvature.add(np.diag([1.0, 2.0, 1e-9]), 0.0)
    np.testing.assert_allclose(curvature.matrix(), np.diag([1.0, 2.0, 0.1]))
