"""Every named vector randomiser: unbiased, of the stated size, and the rule that chooses between them."""

from __future__ import annotations

import inspect
import math
import re

import numpy as np
import pytest
from scipy import stats

from thresher.privacy.laws.checks import LARGEST_EPSILON
from thresher.vaults.randomisers import VECTOR_RANDOMISERS, Hypercube, Signs, Sphere, best_vector_randomiser
from thresher.vaults.randomness import NoiseSource

FALSE_ALARM = 1e-4  # of each statistical test under a fresh seed; with the seeds here the verdicts never change
MISSED = 0.01  # how often a bias of BIAS times the value may go unnoticed
BIAS = 0.05
EPSILONS = [0.5, 1.0, 2.0, 4.0, 8.0]
DIMENSIONS = [1, 2, 3, 10, 100]
NAMED = pytest.mark.parametrize("name", VECTOR_RANDOMISERS)


def is_sphere(name):
    return isinstance(VECTOR_RANDOMISERS[name](2, 1.0), Sphere)


def boundary(name, dimension):
    """A random unit vector, or a random vertex of the cube."""
    vector = np.random.default_rng(dimension).standard_normal(dimension)
    return vector / np.linalg.norm(vector) if is_sphere(name) else np.sign(vector)


def dense(randomiser, reports):
    """The reports as vectors."""
    if not isinstance(reports, Signs):
        return reports
    vectors = np.zeros((len(reports.at), randomiser.dimension))
    np.put_along_axis(vectors, reports.at, randomiser.size * reports.signs, axis=1)
    return vectors


def along(randomiser, value, direction, people, seed):
    """The inner products with ``direction`` of the reports of that many people who hold ``value``."""
    noise, parts = NoiseSource(seed), []
    block = 2**20 // randomiser.dimension
    for start in range(0, people, block):
        rows = np.broadcast_to(value, (min(block, people - start), randomiser.dimension))
        reports = randomiser.randomise(rows, noise)
        if isinstance(reports, Signs):
            parts.append(randomiser.size * (reports.signs * direction[reports.at]).sum(axis=1))
        else:
            parts.append(reports @ direction)
    return np.concatenate(parts)


def square_along(randomiser, scale):
    """The exact mean of <report, e>^2 for a value of ``scale`` times a boundary point, e its direction."""
    odds, d = math.exp(-randomiser.epsilon), randomiser.dimension
    if isinstance(randomiser, Sphere):
        if d == 1:
            return randomiser.size**2
        # the square of a latitude is Beta(1/2, (d-1)/2); weighted by itself Beta(3/2, (d-1)/2) with mean 1/d
        share, moment = (stats.beta(a, (d - 1) / 2).sf(randomiser.height**2) / 2 for a in (0.5, 1.5))
        return randomiser.size**2 * ((1 - odds) * moment + odds) / ((1 - odds) * share + odds) / d
    k = randomiser.sampled
    right = np.arange(k + 1)
    chances = np.array([math.comb(k, j) / 2**k for j in right.tolist()]) * np.where(
        right >= randomiser.agreeing, 1.0, odds
    )
    square = chances @ (2 * right - k) ** 2 / chances.sum()
    return randomiser.size**2 / d * (k + scale**2 * (square - k))


# -- unbiased, of the stated size ----------------------------------------------------------------------------------


def values_for(dimension, epsilon):
    """On the boundary, within, zero. Within, many dimensions and a small epsilon would take too many people."""
    return (1.0, 0.9, 0.0) if epsilon >= (2 if dimension == 100 else 1 if dimension == 10 else 0) else (1.0, 0.0)


@NAMED
@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_reports_are_unbiased_with_the_exact_variance_and_five_percent_of_bias_would_be_noticed(
    name, dimension, epsilon
):
    """A z-test along the value, with so many people that it misses a bias of 5% of the value once in 100 at most."""
    randomiser, edge = VECTOR_RANDOMISERS[name](dimension, epsilon), boundary(name, dimension)
    length = float(np.linalg.norm(edge))
    reject, detect = stats.norm.isf(FALSE_ALARM / 2), stats.norm.isf(MISSED)
    for scale in values_for(dimension, epsilon):
        square = square_along(randomiser, scale)
        variance = square - (scale * length) ** 2
        bias = BIAS * length * (scale or 3)  # at zero: 15% of the length of a boundary point
        people = max(math.ceil(1.01 * variance * ((reject + detect) / bias) ** 2), 20_000 if dimension < 10 else 5_000)
        error = math.sqrt(variance / people)
        assert stats.norm.cdf(bias / error - reject) > 1 - MISSED
        # the zero vector has its caps around the first axis
        direction = edge / length if scale or not is_sphere(name) else np.eye(dimension)[0]
        sample = along(randomiser, scale * edge, direction, people, seed=1)
        assert abs(sample.mean() - scale * length) < reject * error
        if dimension > 1:  # in one dimension the square is a constant
            assert abs((sample**2).mean() - square) <= reject * (sample**2).std() / math.sqrt(people) + 1e-9 * square


@NAMED
@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("epsilon", [1e-6, *EPSILONS, 20.0])
def test_every_report_has_the_stated_second_moment_whatever_the_value(name, dimension, epsilon):
    """Hostile values included: no number, infinite, huge, far outside."""
    randomiser = VECTOR_RANDOMISERS[name](dimension, epsilon)
    rng = np.random.default_rng(0)
    values = np.vstack(
        [
            rng.uniform(-1, 1, (50, dimension)) / math.sqrt(dimension),
            np.zeros((5, dimension)),
            boundary(name, dimension)[None],
            -1e9 * boundary(name, dimension)[None],
            *(np.full((20, dimension), hostile) for hostile in (np.nan, np.inf, -np.inf, 1e300, -1e300, 3e-162)),
            np.where(rng.random((20, dimension)) < 0.5, np.nan, 1e300),
        ]
    )
    before = values.copy()
    reports = dense(randomiser, randomiser.randomise(values, NoiseSource(2)))
    assert np.all(np.isfinite(reports))
    np.testing.assert_allclose((reports**2).sum(axis=1), randomiser.second_moment, rtol=1e-10)
    np.testing.assert_array_equal(values, before)


@NAMED
def test_values_of_any_layout_are_reported_alike_and_left_alone(name):
    randomiser = VECTOR_RANDOMISERS[name](4, 1.5)
    values = np.random.default_rng(1).integers(-4, 5, (30, 4)) / 8
    expected = dense(randomiser, randomiser.randomise(values.copy(), NoiseSource(3)))
    frozen = values.copy()
    frozen.flags.writeable = False
    for given in (frozen, np.asfortranarray(values), np.repeat(values, 2, axis=0)[::2], values.astype(np.float32)):
        before = given.copy()
        reports = dense(randomiser, randomiser.randomise(given, NoiseSource(3)))
        np.testing.assert_allclose(reports, expected, rtol=1e-12, atol=1e-14)  # sums in another order
        np.testing.assert_array_equal(given, before)


@NAMED
@pytest.mark.parametrize("dimension", [1, 4, 100])
def test_nobody_gives_no_report_and_a_total_of_zero(name, dimension):
    randomiser = VECTOR_RANDOMISERS[name](dimension, 8.0)
    reports = randomiser.randomise(np.zeros((0, dimension)), NoiseSource(4))
    assert dense(randomiser, reports).shape == (0, dimension)
    np.testing.assert_array_equal(randomiser.total(reports), np.zeros(dimension))


@NAMED
def test_the_total_estimates_the_sum_of_different_values(name):
    """Each coordinate within 5 standard errors of the sum, which zero is not."""
    randomiser, people = VECTOR_RANDOMISERS[name](4, 4.0), 20_000
    values = np.random.default_rng(5).uniform(0.1, 0.5, (people, 4)) * [1, -1, 1, -1]
    total = randomiser.total(randomiser.randomise(values, NoiseSource(5)))
    error = math.sqrt(randomiser.second_moment * people)
    assert np.abs(total - values.sum(axis=0)).max() < 5 * error
    assert np.abs(values.sum(axis=0)).min() > 10 * error


@NAMED
@pytest.mark.parametrize("epsilon", [1e-6, *EPSILONS, 20.0, LARGEST_EPSILON])
@pytest.mark.parametrize("dimension", [*DIMENSIONS, 1000])
def test_no_report_is_smaller_than_an_unbiased_private_one_can_be(name, dimension, epsilon):
    """<report, e> must reach coth(epsilon/2) times the length of a value on the boundary; in one dimension it does."""
    randomiser = VECTOR_RANDOMISERS[name](dimension, epsilon)
    least = 1 / math.tanh(epsilon / 2)
    if is_sphere(name):
        assert randomiser.size >= least * (1 - 1e-12)
    else:  # <report, vertex> is at most size * sampled, and dimension on average
        assert randomiser.size * randomiser.sampled >= dimension * least * (1 - 1e-12)
    if dimension == 1:
        assert randomiser.size == pytest.approx(least, rel=1e-12)


@NAMED
def test_the_same_noise_gives_the_same_reports_and_other_noise_others(name):
    randomiser, values = VECTOR_RANDOMISERS[name](5, 1.0), np.full((50, 5), 0.3)
    one, two, other = (dense(randomiser, randomiser.randomise(values, NoiseSource(seed))) for seed in (7, 7, 8))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)


# -- the choice ----------------------------------------------------------------------------------------------------


def test_the_choice_is_made_from_four_public_numbers():
    assert list(inspect.signature(best_vector_randomiser).parameters) == [
        "dimension",
        "epsilon",
        "row_norm",
        "entry_norm",
    ]


@pytest.mark.parametrize("epsilon", [0.1, *EPSILONS, 20.0])
@pytest.mark.parametrize("dimension", [1, 2, 10, 100, 1000])
def test_the_choice_has_the_smaller_error_of_the_two(dimension, epsilon):
    """Its two errors cross at one row norm; on either side of it the better one is chosen."""
    entry_norm = 3.0
    ball, cube = Sphere.best(dimension, epsilon).second_moment, Hypercube.best(dimension, epsilon).second_moment
    crossing = math.sqrt(cube * entry_norm**2 / dimension / ball)
    assert best_vector_randomiser(dimension, epsilon, crossing * 0.99, entry_norm) == "priv-unit"
    assert best_vector_randomiser(dimension, epsilon, crossing * 1.01, entry_norm) == "sampled-signs"


@pytest.mark.parametrize("dimension", [2, 10, 100, 1000])
def test_vectors_of_signs_are_reported_by_their_signs_and_short_ones_by_a_point_of_the_sphere(dimension):
    whole = math.sqrt(dimension)
    assert best_vector_randomiser(dimension, 1.0, whole, whole) == "sampled-signs"
    assert best_vector_randomiser(dimension, 1.0, whole / 10, whole) == "priv-unit"


@pytest.mark.parametrize(
    ("name", "value"),
    [("dimension", 0), ("epsilon", 0.0), ("epsilon", math.nan)]
    + [(name, value) for name in ("row_norm", "entry_norm") for value in (-1.0, math.nan)],
)
def test_the_choice_refuses_bad_arguments_by_name_and_value(name, value):
    given = {"dimension": 3, "epsilon": 1.0, "row_norm": 1.0, "entry_norm": 1.0}
    with pytest.raises(ValueError, match=re.escape(f"{name}={value!r}")):
        best_vector_randomiser(**(given | {name: value}))


@pytest.mark.parametrize("name", ["duchi-l2", "priv-unit", "duchi-linf", "one-coordinate", "sampled-signs"])
def test_every_named_randomiser_is_built_with_its_dimension_and_epsilon(name):
    randomiser = VECTOR_RANDOMISERS[name](7, 1.5)
    assert (randomiser.dimension, randomiser.epsilon) == (7, 1.5)
    with pytest.raises(TypeError):
        VECTOR_RANDOMISERS[name] = None
