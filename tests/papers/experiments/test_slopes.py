"""The exponents that the tests and benchmarks of the local model measure: right on known laws, with honest errors."""

import numpy as np
import pytest

from thresher_papers.experiments.slopes import slope


def errors_of(exponent, x, seed, replicates=30):
    """Squared errors with means x^exponent, as of four coefficients with Gaussian noise."""
    rng = np.random.default_rng(seed)
    return x[:, None] ** exponent * rng.chisquare(4, (len(x), replicates)) / 4


@pytest.mark.parametrize("exponent", [-2.0, -1.0, 0.0, 1.0])
def test_the_exponent_is_found_and_lies_within_its_error_as_often_as_it_should(exponent):
    """300 draws: the standardised deviations have mean 0 and deviation 1, within 4 of their own errors each."""
    x = np.array([1.0, 3.0, 9.0, 27.0])
    found = [slope(x, errors_of(exponent, x, seed)) for seed in range(300)]
    deviations = np.array([(each.exponent - exponent) / each.error for each in found])
    assert abs(deviations.mean()) < 4 / np.sqrt(300)
    assert deviations.std() == pytest.approx(1, abs=4 / np.sqrt(600) + 0.05)  # errors are themselves estimated


def test_exact_powers_have_the_exact_exponent():
    x = np.array([1.0, 2.0, 5.0])
    found = slope(x, np.array([[0.9, 1.1]]) * x[:, None] ** -1.5)
    assert found.exponent == pytest.approx(-1.5)
    assert found.deviates(-1.5) < 1e-9
