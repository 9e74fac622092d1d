"""Laplacian smoothing: the inverse of its matrix, its closed forms, and no change of any privacy number."""

import math

import numpy as np
import pytest

from thresher.algorithms import DPLSSGD, DPSGD, DPAdam, DPLSAdam
from thresher.algorithms.dp_lssgd import smooth, spectral_means
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.vaults.losses import LOGISTIC
from thresher.vaults.problem import LinearProblem

SIGMAS = [0.5, 1.0, 3.0, 100.0]


def matrix(d, sigma):
    """I - sigma * Laplacian of a ring, entry by entry."""
    A = np.eye(d)
    for i in range(d):
        A[i, i] += 2 * sigma
        A[i, (i + 1) % d] -= sigma
        A[i, (i - 1) % d] -= sigma
    return A


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("d", [1, 2, 3, 4, 7, 100, 101])
def test_smoothing_inverts_the_matrix_in_any_dimension(d, sigma):
    vector = np.random.default_rng(d).normal(size=d)
    np.testing.assert_allclose(smooth(vector, sigma), np.linalg.solve(matrix(d, sigma), vector), rtol=1e-9, atol=1e-12)


def test_no_smoothing_leaves_the_vector_alone():
    vector = np.arange(5.0)
    assert smooth(vector, 0.0) is vector


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("d", [1, 2, 3, 10, 785, 7850])
def test_the_closed_forms_of_gamma_and_beta_are_their_sums(d, sigma):
    symbol = 1 + 2 * sigma - 2 * sigma * np.cos(2 * np.pi * np.arange(d) / d)
    gamma, beta = spectral_means(d, sigma)
    assert gamma == pytest.approx(np.mean(1 / symbol), rel=1e-10)
    assert beta == pytest.approx(np.mean(1 / symbol**2), rel=1e-10)
    assert spectral_means(d, 0.0) == (1.0, 1.0)


def test_beta_is_what_is_left_of_the_power_of_white_noise():
    """1,000 vectors of 200 coordinates: within 2 %, more than 5 sigmas."""
    noise = np.random.default_rng(0).normal(size=(1000, 200))
    left = np.mean([np.mean(np.square(smooth(vector, 2.0))) for vector in noise])
    assert left == pytest.approx(spectral_means(200, 2.0)[1], rel=0.02)


def test_the_thesis_demonstration_of_smoothing_removes_noise_from_a_sine():
    """X20: sin(2 pi i / 100) + 0.1 N(0, 1) on 1000 points of a ring, sigma 10: the error falls below half."""
    i = np.arange(1000)
    wave = np.sin(2 * np.pi * i / 100)
    noisy = wave + 0.1 * np.random.default_rng(0).normal(size=1000)
    before, after = (np.sqrt(np.mean(np.square(v - wave))) for v in (noisy, smooth(noisy, 10.0)))
    assert after < before / 2


@pytest.mark.parametrize(("plain", "smooth"), [(DPSGD, DPLSSGD), (DPAdam, DPLSAdam)])
@pytest.mark.parametrize("sigma", [0.0, 1.0, 50.0])
def test_smoothing_changes_no_privacy_number(plain, smooth, sigma):
    """Erratum E-21: neither more nor less private; same releases, same price, to the last bit."""
    problem = LinearProblem(5000, 30, Bounds(row=1.0), sparsity=30, loss=LOGISTIC)
    budget = Budget(0.3, 1e-5)
    one, other = plain().plan(problem, budget), smooth(smoothing=sigma).plan(problem, budget)
    assert one.releases == other.releases
    assert one.epsilon == other.epsilon
    assert other.settings["noise_left"] == pytest.approx(math.sqrt(spectral_means(31, sigma)[1]))


@pytest.mark.parametrize("wrong", [-1.0, math.inf, math.nan])
def test_impossible_smoothing_is_refused(wrong):
    for kind in (DPLSSGD, DPLSAdam):
        with pytest.raises(ValueError, match=r"smoothing=.* must be a finite number of at least 0"):
            kind(smoothing=wrong)
