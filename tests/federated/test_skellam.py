"""The Skellam law: Renyi divergences against those of the Gaussian it is priced as, and shares that add up to it."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from thresher.federated.aggregation import skellam_share
from thresher.privacy.laws.skellam import Skellam, integer_l1
from thresher.vaults.randomness import NoiseSource

FALSE_ALARM = 1e-6  # of the statistical test, which runs on a fixed seed
VARIANCES = [3.0, 5.0, 100.0, 10_000.0]


@lru_cache
def log_chances(variance, most):
    """log P(k) for k = -most .. most, from the ratios P(k)/P(k-1) = 1/(2k/variance + P(k+1)/P(k)), largest k first."""
    ratios = np.zeros(most + 2)
    for k in range(most, 0, -1):
        ratios[k] = 1 / (2 * k / variance + ratios[k + 1])
    right = np.concatenate([[0.0], np.cumsum(np.log(ratios[1:-1]))])
    both = np.concatenate([right[:0:-1], right])
    return both - logsumexp(both)


def divergence(variance, shift, order):
    """D_order of the law shifted by ``shift`` from the law, over all values that matter."""
    log_p = log_chances(variance, int(50 * math.sqrt(variance)) + 40_000)
    terms = order * log_p[:-shift] - (order - 1) * log_p[shift:]
    assert max(terms[0], terms[-1]) < logsumexp(terms) - 100  # nothing was cut off
    return logsumexp(terms) / (order - 1)


def bound_of(variance, shift, orders):
    """Of Gaussian noise that hides as well."""
    return orders * (Skellam(variance).distance * shift) ** 2 / 2


@pytest.mark.parametrize("variance", VARIANCES)
def test_the_chances_are_those_of_the_skellam_law(variance):
    k = np.arange(-12, 13)
    middle = len(log_chances(variance, 5000)) // 2
    expected = stats.skellam(variance / 2, variance / 2).logpmf(k)
    np.testing.assert_allclose(log_chances(variance, 5000)[middle + k], expected, atol=1e-9)


@pytest.mark.parametrize("shift", [1, 2, 5, 20])
@pytest.mark.parametrize("variance", VARIANCES)
def test_the_bound_holds_at_whole_orders_and_between(variance, shift):
    orders = np.array([1.01, 1.5, 1.99, 2, 2.5, 3, 4, 4.25, 8, 16, 17.5, 32, 64])
    bound = bound_of(variance, shift, orders)
    assert all(divergence(variance, shift, order) <= most for order, most in zip(orders, bound, strict=True))


@pytest.mark.parametrize("shift", [1, 5, 20])
def test_the_bound_is_nearly_that_of_gaussian_noise_where_noise_is_large(shift):
    orders = np.array([2.0, 4.0, 8.0])
    bound, gaussian = bound_of(1e4, shift, orders), orders * shift**2 / 2e4
    assert np.all(bound >= gaussian)
    np.testing.assert_allclose(bound, gaussian, rtol=2e-3)
    np.testing.assert_allclose(bound, [divergence(1e4, shift, order) for order in orders], rtol=2e-3)


@pytest.mark.parametrize("variance", [3.0, 100.0])
def test_the_bound_covers_shifts_of_several_coordinates(variance):
    """Divergences of independent coordinates add up."""
    shifts, orders = [3, 1, 1, 2], np.array([2.0, 5.0, 16.0])
    together = [sum(divergence(variance, shift, order) for shift in shifts) for order in orders]
    bound = bound_of(variance, np.linalg.norm(shifts), orders)
    assert np.all(together <= bound)


@pytest.mark.parametrize(("l2", "touched", "l1"), [(3.0, 100, 9.0), (3.0, 4, 6.0), (0.0, 5, 0.0)])
def test_the_l1_norm_of_whole_numbers(l2, touched, l1):
    assert integer_l1(l2, touched) == pytest.approx(l1)


def test_no_whole_number_vector_has_a_larger_l1_norm():
    vectors = np.random.default_rng(0).integers(-4, 5, (2000, 6))
    for vector in vectors:
        l2, touched = float(np.linalg.norm(vector)), np.count_nonzero(vector)
        assert np.abs(vector).sum() <= integer_l1(l2, touched) * (1 + 1e-12)


@pytest.mark.parametrize("variance", [0, -1.0, math.nan, math.inf])
def test_a_variance_that_is_none_is_refused(variance):
    with pytest.raises(ValueError, match=f"variance={variance}"):
        Skellam(variance)


@pytest.mark.parametrize("wrong", [1 / 1.25, 1.0, 1.25])
def test_the_shares_of_the_honest_add_up_to_the_law(wrong):
    """Chi-square interval for the variance of 20,000 sums of three shares; a scale off by a quarter is noticed."""
    source = NoiseSource(31)
    noise = sum(skellam_share(source, Skellam(900.0), 3, 20_000) for _ in range(3))
    low, high = stats.chi2(len(noise)).interval(1 - FALSE_ALARM)
    assert (low < np.sum(noise**2) / (900 * wrong**2) < high) == (wrong == 1.0)
