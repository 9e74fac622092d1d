"""Signs of a few coordinates: the exact law of every report for every value, its samples, the published constants."""

from __future__ import annotations

import itertools
import math
import re

import mpmath
import numpy as np
import pytest
from scipy import stats

from thresher.privacy.laws.checks import LARGEST_EPSILON
from thresher.privacy.laws.hypercube import MOST_SAMPLED
from thresher.vaults.randomisers import Hypercube, Signs
from thresher.vaults.randomness import NoiseSource

FALSE_ALARM = 1e-4  # of each statistical test under a fresh seed; with the seeds here the verdicts never change
HOSTILE = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300, -7.0])


def caps(most):
    """Every legal (sampled, agreeing)."""
    return [(k, a) for k in range(1, most + 1) for a in range(k // 2 + 1, k + 1)]


def members(dimension, epsilon):
    named = [build(dimension, epsilon) for build in (Hypercube.duchi, Hypercube.one_coordinate, Hypercube.best)]
    return {*named, *(Hypercube(dimension, epsilon, *cap) for cap in caps(dimension))}


def every_report(randomiser):
    """All coordinate sets with all signs, the signs of a set in a row of 2^sampled."""
    signs = list(itertools.product([-1, 1], repeat=randomiser.sampled))
    sets = itertools.combinations(range(randomiser.dimension), randomiser.sampled)
    at, chosen = zip(*itertools.product(sets, signs), strict=True)
    return Signs(np.array(at), np.array(chosen, dtype=np.int8))


def values_of(dimension):
    """All vertices, zero, points within, on edges and outside."""
    rng = np.random.default_rng(dimension)
    inside, edges = rng.uniform(-1, 1, (4, dimension)), rng.choice([-1.0, 0.0, 0.3, 1.0], (4, dimension))
    vertices = np.array(list(itertools.product([-1.0, 1.0], repeat=dimension)))
    return np.vstack([vertices, np.zeros(dimension), inside, edges, 3 * inside])


def brute_force(randomiser, value):
    """The chance of every report given its coordinates, as the average over the signs that the value is rounded to."""
    signs = np.array(list(itertools.product([-1, 1], repeat=randomiser.sampled)))
    agreements = (signs[:, None, :] == signs[None, :, :]).sum(axis=2)
    chances = np.where(agreements >= randomiser.agreeing, math.exp(randomiser.epsilon), 1.0)
    chances /= chances.sum(axis=1, keepdims=True)
    laws = []
    for at in itertools.combinations(range(randomiser.dimension), randomiser.sampled):
        rounded = np.prod((1 + signs * np.clip(value, -1, 1)[list(at)]) / 2, axis=1)
        laws.append(rounded @ chances)
    return np.concatenate(laws)


# -- privacy: the law of every report ------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
@pytest.mark.parametrize("dimension", range(1, 7))
def test_every_report_of_every_value_is_as_likely_as_stated_and_no_two_values_differ_by_more_than_epsilon(
    dimension, epsilon
):
    values = values_of(dimension)
    for randomiser in members(dimension, epsilon):
        reports = every_report(randomiser)
        logs = np.array([randomiser.log_density(reports, value) for value in values])
        laws = np.array([brute_force(randomiser, value) for value in values])
        np.testing.assert_allclose(np.exp(logs), laws, rtol=1e-12)
        by_set = np.exp(logs).reshape(len(values), -1, 2**randomiser.sampled)
        np.testing.assert_allclose(by_set.sum(axis=2), 1.0, rtol=1e-12)
        assert np.ptp(logs, axis=0).max() <= epsilon * (1 + 1e-9)  # over all pairs of values
        opposite = logs[0] - logs[2**dimension - 1]  # the first and the last vertex
        assert opposite.max() == pytest.approx(epsilon, rel=1e-12)  # epsilon is not overstated
        assert opposite.min() == pytest.approx(-epsilon, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
@pytest.mark.parametrize("dimension", range(1, 7))
def test_the_mean_over_all_reports_is_the_value_and_their_size_is_as_stated(dimension, epsilon):
    """Exactly: no samples. A value outside the cube counts as its nearest point of it."""
    for randomiser in members(dimension, epsilon):
        reports = every_report(randomiser)
        sets = math.comb(dimension, randomiser.sampled)
        dense = np.zeros((len(reports.at), dimension))
        np.put_along_axis(dense, reports.at, randomiser.size * reports.signs, axis=1)
        np.testing.assert_allclose((dense**2).sum(axis=1), randomiser.second_moment, rtol=1e-12)
        for value in values_of(dimension):
            mean = brute_force(randomiser, value) @ dense / sets
            np.testing.assert_allclose(mean, np.clip(value, -1, 1), atol=1e-12 * randomiser.size)


@pytest.mark.parametrize("epsilon", [1e-6, 36.0, LARGEST_EPSILON])
@pytest.mark.parametrize("dimension", [1, 5, 6])
def test_the_law_holds_for_tiny_and_huge_epsilon(dimension, epsilon):
    for randomiser in members(dimension, epsilon):
        reports = every_report(randomiser)
        logs = np.array([randomiser.log_density(reports, value) for value in values_of(dimension)])
        by_set = np.exp(logs).reshape(len(logs), -1, 2**randomiser.sampled)
        np.testing.assert_allclose(by_set.sum(axis=2), 1.0, rtol=1e-12)
        assert np.ptp(logs, axis=0).max() == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_value_that_is_no_number_or_outside_has_a_law_as_private_as_any_other(hostile):
    randomiser = Hypercube(4, 1.5, 3, 2)
    reports = every_report(randomiser)
    value = np.array([hostile, 0.2, hostile, 1.0])
    logs = np.array([randomiser.log_density(reports, v) for v in (*values_of(4), value)])
    assert np.ptp(logs, axis=0).max() <= 1.5 * (1 + 1e-9)
    np.testing.assert_allclose(np.exp(logs[-1]).reshape(-1, 8).sum(axis=1), 1.0, rtol=1e-12)


class Coin(NoiseSource):
    """Every coin shows the same number."""

    def __init__(self, coin):
        super().__init__(0)
        self.coin = coin

    def uniform(self, shape):
        return np.full(shape, self.coin * 2.0**-53)


def coins_that_lie(randomise, truth):
    """Of the 2^53 numbers a coin can show, how many give another report than the truth."""

    def lies(coin):
        return bool(randomise(Coin(coin)) != truth)

    ends = [0, 2**53 - 1]
    if lies(ends[0]) == lies(ends[1]):
        return 2**53 * lies(ends[0])
    first = lies(ends[0])
    while ends[1] - ends[0] > 1:
        middle = sum(ends) // 2
        ends[lies(middle) != first] = middle
    return ends[1] if first else 2**53 - ends[1]


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 1.0, 8.0, 20.0, 30.0, 36.0, LARGEST_EPSILON])
def test_the_coin_as_drawn_lies_no_less_often_than_epsilon_demands(epsilon):
    """A coin has 53 bits: rounded the wrong way it would lie too seldom, or never, at a large epsilon."""
    randomiser = Hypercube(1, epsilon, 1, 1)
    lies = coins_that_lie(lambda noise: randomiser.randomise(np.ones((1, 1)), noise).signs[0, 0], 1)
    assert lies >= 1
    assert math.log((2**53 - lies) / lies) <= epsilon + 1e-15


# -- the sampler ---------------------------------------------------------------------------------------------------


def seen(randomiser, value, people, seed):
    """How often each report came, in the order of ``every_report``."""
    reports = randomiser.randomise(np.broadcast_to(value, (people, len(value))), NoiseSource(seed))
    sets = {at: i for i, at in enumerate(itertools.combinations(range(randomiser.dimension), randomiser.sampled))}
    at = np.array([sets[tuple(row)] for row in np.sort(reports.at, axis=1).tolist()])
    order = np.argsort(reports.at, axis=1)
    bits = np.take_along_axis(reports.signs, order, axis=1) > 0
    number = bits @ (1 << np.arange(randomiser.sampled)[::-1])
    return np.bincount(at * 2**randomiser.sampled + number, minlength=len(sets) * 2**randomiser.sampled)


def fits(counts, chances):
    """Pearson's chi-square test."""
    expected = counts.sum() * chances
    assert expected.min() > 5, "too rare for the chi-square law"
    return ((counts - expected) ** 2 / expected).sum() < stats.chi2.isf(FALSE_ALARM, len(counts) - 1)


def law(randomiser, value):
    sets = math.comb(randomiser.dimension, randomiser.sampled)
    return np.exp(randomiser.log_density(every_report(randomiser), value)) / sets


SAMPLERS = [
    (1, 1, 1),
    (6, 1, 1),  # one coordinate
    (3, 3, 2),  # Duchi
    (4, 4, 3),  # Duchi, even
    (3, 3, 3),
    (4, 3, 2),  # coordinates by sorting
    (5, 2, 2),  # coordinates drawn again if they collide
]


@pytest.mark.parametrize("value", [[1.0, -1.0, 1.0, 1.0, -1.0, 1.0], [0.9, -1.0, 0.8, 1.0, -0.7, 0.9]])
@pytest.mark.parametrize(("dimension", "sampled", "agreeing"), SAMPLERS)
def test_reports_are_drawn_by_the_stated_law_and_not_by_that_of_another_epsilon(dimension, sampled, agreeing, value):
    epsilon, value = 1.5, np.array(value[:dimension])
    counts = seen(Hypercube(dimension, epsilon, sampled, agreeing), value, 40_000, seed=1)
    assert fits(counts, law(Hypercube(dimension, epsilon, sampled, agreeing), value))
    for wrong in (epsilon * 1.25, epsilon / 1.25):
        assert not fits(counts, law(Hypercube(dimension, wrong, sampled, agreeing), value))


@pytest.mark.parametrize(("sampled", "agreeing", "wrong"), [(5, 3, 4), (5, 4, 3), (5, 5, 4), (4, 3, 4)])
def test_reports_of_another_cap_would_be_noticed(sampled, agreeing, wrong):
    value = np.ones(sampled)
    counts = seen(Hypercube(sampled, 1.5, sampled, agreeing), value, 20_000, seed=2)
    assert fits(counts, law(Hypercube(sampled, 1.5, sampled, agreeing), value))
    assert not fits(counts, law(Hypercube(sampled, 1.5, sampled, wrong), value))


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_values_are_reported_by_the_law_that_is_stated_for_them(hostile):
    randomiser, value = Hypercube(3, 1.5, 2, 2), np.array([0.5, hostile, -1.0])
    counts = seen(randomiser, value, 40_000, seed=3)
    assert fits(counts, law(randomiser, value))
    assert not fits(counts, law(randomiser, np.array([0.5, -np.clip(hostile, -1, 1) if hostile == hostile else 1, -1])))


@pytest.mark.parametrize(("dimension", "sampled"), [(100, 8), (100, 30), (5000, 64)])
def test_coordinates_are_all_different_and_equally_likely(dimension, sampled):
    people = 40_000 if dimension == 100 else 4_000
    randomiser = Hypercube(dimension, 1.0, sampled, sampled)
    at = randomiser.randomise(np.broadcast_to(0.0, (people, dimension)), NoiseSource(4)).at
    assert np.all(np.diff(np.sort(at, axis=1), axis=1) > 0)
    counts, share = np.bincount(at.ravel(), minlength=dimension), sampled / dimension
    spread = people * share * (1 - share)  # the counts sum to a constant: chi-square with dimension - 1
    distance = ((counts - people * share) ** 2).sum() * (dimension - 1) / dimension / spread
    assert stats.chi2.isf(1 - FALSE_ALARM, dimension - 1) < distance < stats.chi2.isf(FALSE_ALARM, dimension - 1)
    biased = counts + np.where(np.arange(dimension) % 2, 1, -1) * people * share * 0.1
    distance = ((biased - people * share) ** 2).sum() * (dimension - 1) / dimension / spread
    assert distance > stats.chi2.isf(FALSE_ALARM, dimension - 1)


@pytest.mark.parametrize(("dimension", "sampled"), [(7, 7), (7, 3), (50, 3)])
def test_the_total_is_the_sum_of_the_reports_as_vectors(dimension, sampled):
    randomiser = Hypercube(dimension, 1.0, sampled, sampled)
    reports = randomiser.randomise(np.random.default_rng(0).uniform(-1, 1, (200, dimension)), NoiseSource(5))
    assert reports.signs.dtype == np.int8
    assert reports.at.shape == reports.signs.shape == (200, sampled)
    dense = np.zeros((200, dimension))
    np.put_along_axis(dense, reports.at, randomiser.size * reports.signs, axis=1)
    np.testing.assert_allclose(randomiser.total(reports), dense.sum(axis=0), rtol=1e-12, atol=1e-9)


# -- the constants -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 1.0, 4.0, 20.0])
def test_for_odd_dimensions_the_size_is_the_constant_that_duchi_et_al_published(epsilon):
    for dimension in (1, 3, 5, 21, 199, 1001):
        published = mpmath.coth(mpmath.mpf(epsilon) / 2) * mpmath.mpf(2) ** (dimension - 1)
        published /= mpmath.binomial(dimension - 1, (dimension - 1) // 2)
        assert Hypercube.duchi(dimension, epsilon).size == pytest.approx(float(published), rel=1e-11)


def test_the_constant_holds_in_a_million_dimensions():
    dimension, epsilon = 10**6 + 1, 1.0
    published = (
        mpmath.coth(0.5) / mpmath.binomial(dimension - 1, (dimension - 1) // 2) * mpmath.mpf(2) ** (dimension - 1)
    )
    assert Hypercube.duchi(dimension, epsilon).size == pytest.approx(float(published), rel=1e-8)
    assert Hypercube.best(dimension, epsilon).size == pytest.approx(dimension / math.tanh(0.5), rel=1e-12)


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 1.0, 4.0, 20.0, LARGEST_EPSILON])
def test_one_coordinate_has_the_size_of_randomised_response(epsilon):
    for dimension in (1, 2, 1000):
        size = Hypercube.one_coordinate(dimension, epsilon).size
        assert size == pytest.approx(dimension / math.tanh(epsilon / 2), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 2.0, 4.0, 8.0, 20.0])
def test_the_best_member_has_the_least_error_of_all_reports_of_so_many_signs(epsilon):
    most = MOST_SAMPLED
    everyone = {cap: Hypercube(most, epsilon, *cap).second_moment / most**2 for cap in caps(most)}
    for dimension in (1, 2, 3, 10, most, 100, 1000):
        best = Hypercube.best(dimension, epsilon)
        error = best.second_moment / dimension**2
        assert error <= min(value for cap, value in everyone.items() if cap[0] <= dimension) * (1 + 1e-12)
        assert error == pytest.approx(everyone[best.sampled, best.agreeing], rel=1e-12)
        for other in (Hypercube.duchi, Hypercube.one_coordinate):
            assert best.second_moment <= other(dimension, epsilon).second_moment * (1 + 1e-12)


def test_the_best_member_is_better_than_both_named_ones_from_moderate_epsilon_on():
    best, duchi, one = (build(100, 4.0) for build in (Hypercube.best, Hypercube.duchi, Hypercube.one_coordinate))
    assert best.second_moment < 0.5 * min(duchi.second_moment, one.second_moment)


# -- what is refused -----------------------------------------------------------------------------------------------

REFUSED = [
    ("dimension", (0, 1.0, 1, 1)),
    ("dimension", (2.0, 1.0, 1, 1)),
    ("dimension", (True, 1.0, 1, 1)),
    ("epsilon", (3, 0.0, 1, 1)),
    ("epsilon", (3, -1.0, 1, 1)),
    ("epsilon", (3, math.nan, 1, 1)),
    ("epsilon", (3, math.inf, 1, 1)),
    ("epsilon", (3, LARGEST_EPSILON * 1.01, 1, 1)),
    ("sampled", (3, 1.0, 0, 1)),
    ("sampled", (3, 1.0, 4, 3)),
    ("sampled", (3, 1.0, 1.5, 1)),
    ("agreeing", (3, 1.0, 3, 0)),
    ("agreeing", (3, 1.0, 3, 4)),
    ("agreeing", (3, 1.0, 3, 2.5)),
    ("agreeing", (3, 1.0, 3, 1)),
    ("agreeing", (4, 1.0, 4, 2)),
]


BUILDERS = [Hypercube.duchi, Hypercube.one_coordinate, Hypercube.best]


@pytest.mark.parametrize("build", BUILDERS, ids=["duchi", "one", "best"])
@pytest.mark.parametrize(
    ("name", "value"), [("dimension", 0), ("dimension", 2.5), ("epsilon", -1.0), ("epsilon", math.nan)]
)
def test_named_members_refuse_bad_arguments_too(build, name, value):
    with pytest.raises(ValueError, match=re.escape(f"{name}={value!r}")):
        build(**{"dimension": 3, "epsilon": 1.0, name: value})


@pytest.mark.parametrize(("name", "arguments"), REFUSED)
def test_bad_arguments_are_refused_by_name_and_value(name, arguments):
    value = arguments[("dimension", "epsilon", "sampled", "agreeing").index(name)]
    with pytest.raises(ValueError, match=re.escape(f"{name}={value!r}")):
        Hypercube(*arguments)
