"""Private shares of flags: unbiased, as noisy as stated, and no row moves them further than the price says."""

import math

import numpy as np
import pytest
from scipy import sparse, stats

from thresher.estimates.columns import ColumnShares, MeanFlags, flags_of
from thresher.privacy.budget import Budget
from thresher.privacy.sensitivity import gradient_sensitivity
from thresher.vaults import CentralVault
from thresher.vaults.randomness import NoiseSource

N, FLAGS = 50, 2000


def exact_shares(flags, most):
    """What would be released without noise."""
    fit = ColumnShares(most, epsilon=math.inf, delta=1e-6)
    plan = fit.plan(N, flags.shape[1])
    with CentralVault(flags, np.ones(len(flags)), plan, NoiseSource(0)) as vault:
        return MeanFlags().run(vault)


def test_shares_are_means_with_the_noise_that_is_stated():
    """2000 flags of a share of .3. False alarm rate 2e-9; noise 1.25 times as large or small is ten sigmas away."""
    flags = np.zeros((N, FLAGS))
    flags[:15] = 1.0
    fit = ColumnShares(FLAGS, epsilon=1.0, delta=1e-6).fit(sparse.csr_array(flags))
    noise, error = fit.shares_ - 0.3, fit.standard_error_
    assert error == pytest.approx(fit.plan_.releases[0].multiplier * 2 * math.sqrt(FLAGS) / N)
    assert error == pytest.approx(fit.certificate_.releases[0]["answers"][0]["scale"], rel=1e-6)  # its grid

    def plausible(scale):
        return 1e-9 < stats.chi2.cdf(np.sum((noise / scale) ** 2), FLAGS) < 1 - 1e-9

    assert plausible(error)
    assert not plausible(1.25 * error)
    assert not plausible(error / 1.25)


def test_a_row_that_sets_too_many_flags_counts_no_more_than_the_others_may():
    flags = np.zeros((N, 9))
    other = flags.copy()
    other[0] = 1e6
    moved = np.linalg.norm(exact_shares(flags, 4) - exact_shares(other, 4))
    assert moved <= gradient_sensitivity(2.0, N, Budget(1.0, 1e-6).adjacency)
    assert moved == pytest.approx(2.0 / N)
    other[0] = [1, 1, 1, 1, 0, 0, 0, 0, 0]
    np.testing.assert_allclose(exact_shares(other, 4), other[0] / N, atol=1e-15)


def test_flags_of_codes():
    flags = flags_of([np.array([0, -1, 1]), np.array([1, 1, -1])], 2).toarray()
    assert flags.tolist() == [[1, 0, 0, 1], [0, 0, 0, 1], [0, 1, 0, 0]]


def test_the_fit_costs_what_it_claims_and_people_count_once():
    """Ten people, of whom one has 91 rows that all set the flag: a tenth, up to 8 standard errors of noise."""
    people = [0] * 91 + list(range(1, 10))
    flags = np.array([[1.0]] * 91 + [[0.0]] * 9)
    fit = ColumnShares(1, epsilon=1000.0, delta=1e-6).fit(flags, groups=people)
    assert abs(fit.shares_[0] - 0.1) < 8 * fit.standard_error_ < 0.2
    assert fit.certificate_.unit == "person"
    assert fit.certificate_.n_samples == 10
    assert fit.certificate_.verify()
    assert fit.certificate_.grade == "proved"
