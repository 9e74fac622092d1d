"""The likelihood of a noisy sum over a random batch is that of all batches together, each with its chance."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from thresher.audit.witness import mixture_of
from thresher.privacy.releases import SampledGradient


def release(sampling, batch=3, population=6):
    return SampledGradient(1, 1.0, batch, population, sampling, "replace-one")


def every_batch(rows, sampling, batch, population):
    """All batches of rows 0..population-1, of which those below ``rows`` matter, and their chances."""
    for size in range(population + 1):
        for chosen in combinations(range(population), size):
            if sampling == "fixed":
                chance = 1 / math.comb(population, batch) if size == batch else 0.0
            else:
                chance = (batch / population) ** size * (1 - batch / population) ** (population - size)
            yield [row for row in chosen if row < rows], chance


@pytest.mark.parametrize("sampling", ["poisson", "fixed"])
@pytest.mark.parametrize("rows", [0, 1, 4, 6])
def test_the_density_is_the_sum_over_all_batches(sampling, rows):
    """Some rows are equal, some add nothing; all subsets of six rows are drawn by hand."""
    parts = np.array([[1.0, 2.0], [-0.5, 0.0], [1.0, 2.0], [0.0, 0.0], [0.3, -1.0], [1.0, 2.0]])[:rows]
    answer, sd = np.array([0.4, 0.9]), 0.7
    mixture = mixture_of(parts, release(sampling))
    total = expected = 0.0
    for chosen, chance in every_batch(rows, sampling, 3, 6):
        mean = parts[chosen].sum(axis=0) / 3
        total += chance * math.exp(-np.sum((answer - mean) ** 2) / (2 * sd**2))
        expected = expected + chance * mean
    assert mixture.log_density(answer, sd) == pytest.approx(math.log(total), rel=1e-12)
    np.testing.assert_allclose(mixture.expected, expected, atol=1e-12)
    assert np.exp(mixture.log_chances).sum() == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("sampling", ["poisson", "fixed"])
def test_rows_that_are_equal_but_for_round_off_are_counted_together(sampling):
    parts = np.tile([[0.1 + 0.2]], (40, 1))
    parts[::2] = 0.3
    mixture = mixture_of(parts, release(sampling, 10, 40))
    assert len(mixture.means) == 41
    if sampling == "poisson":
        np.testing.assert_allclose(np.exp(mixture.log_chances), stats.binom.pmf(np.arange(41), 40, 0.25), rtol=1e-9)


def test_of_too_many_different_rows_the_mean_stands_for_all():
    parts = np.random.default_rng(0).normal(size=(60, 2))
    mixture = mixture_of(parts, release("poisson", 15, 60))
    assert mixture.means.shape == (1, 2)
    np.testing.assert_allclose(mixture.expected, parts.mean(axis=0), rtol=1e-12)
