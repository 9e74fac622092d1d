"""Points of a sphere: the density of every report for every value, its samples, and the published constants."""

from __future__ import annotations

import math
import re

import mpmath
import numpy as np
import pytest
from scipy import special, stats

from thresher.privacy.laws.checks import LARGEST_EPSILON
from thresher.vaults.randomisers import Sphere
from thresher.vaults.randomness import NoiseSource

FALSE_ALARM = 1e-4  # of each statistical test under a fresh seed; with the seeds here the verdicts never change
EPSILONS = [0.5, 1.0, 2.0, 4.0, 8.0]
LEGENDRE = special.roots_legendre(400)
NORMS = [0.0, 1e-9, 0.3, 0.8, 1.0, 5.0]
BUILD = pytest.mark.parametrize("build", [Sphere.duchi, Sphere.best], ids=["duchi", "best"])
HOSTILE = [
    [np.nan, 0.5, 0.1],
    [np.inf, -np.inf, np.nan],
    [-np.inf, 0.2, 0.0],
    [1e300, 1e300, -1e300],
    [-1e300, 0.0, 1e-300],
    [3e-162, 2e-162, 0.0],
    [5e-324, 0.0, 5e-324],
    [0.0, 0.0, 0.0],
    [-1e9, 2.0, 3.0],
]


def axes(dimension):
    """A random unit vector and another orthogonal to it."""
    pole, across = np.random.default_rng(0).standard_normal((2, dimension))
    pole /= np.linalg.norm(pole)
    across -= across @ pole * pole
    return pole, across / np.linalg.norm(across) if dimension > 1 else across


def at_latitudes(randomiser, latitudes, pole, across):
    """Reports whose direction has the given inner products with the pole."""
    return randomiser.size * (np.outer(latitudes, pole) + np.outer(np.sqrt(1 - np.square(latitudes)), across))


def quadrature(randomiser):
    """Latitudes and weights for integrals over the sphere, in pieces between the edges of the two caps."""
    if randomiser.dimension == 1:
        return np.array([1.0, -1.0]), np.array([0.5, 0.5])
    edge = math.acos(randomiser.height)
    nodes, weights = LEGENDRE
    angles, measure = [], []
    for low, high in ((0.0, edge), (edge, math.pi - edge), (math.pi - edge, math.pi)):
        angles.append((low + high) / 2 + (high - low) / 2 * nodes)
        measure.append((high - low) / 2 * weights)
    d, angles = randomiser.dimension, np.concatenate(angles)
    density = np.exp((d - 2) * np.log(np.sin(angles)) + math.lgamma(d / 2) - math.lgamma((d - 1) / 2))
    return np.cos(angles), density / math.sqrt(math.pi) * np.concatenate(measure)


# -- privacy: the density of every report --------------------------------------------------------------------------


@BUILD
@pytest.mark.parametrize("epsilon", [1e-6, *EPSILONS, 20.0])
@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 10, 100, 1000])
def test_densities_integrate_to_one_and_the_mean_report_is_the_value(build, dimension, epsilon):
    """Exactly, by quadrature over the latitudes of the whole sphere: no samples."""
    randomiser = build(dimension, epsilon)
    latitudes, weights = quadrature(randomiser)
    assert weights.sum() == pytest.approx(1.0, rel=1e-10)
    for norm in NORMS:
        first = np.eye(dimension)  # the zero vector has its caps around the first axis
        pole, across = axes(dimension) if norm > 0 else (first[0], first[-1])
        reports = at_latitudes(randomiser, latitudes, pole, across)
        density = np.exp(randomiser.log_density(reports, norm * pole))
        assert weights @ density == pytest.approx(1.0, rel=1e-10)
        mean = randomiser.size * (weights * latitudes) @ density
        assert mean == pytest.approx(min(norm, 1.0), abs=1e-10 * randomiser.size)


@BUILD
@pytest.mark.parametrize("epsilon", [1e-6, *EPSILONS, 20.0, 36.0, LARGEST_EPSILON])
@pytest.mark.parametrize("dimension", [1, 2, 3, 10, 100, 3000])
def test_no_two_values_differ_by_more_than_epsilon_at_any_report_and_opposite_ones_differ_by_epsilon(
    build, dimension, epsilon
):
    """All densities, whatever the value and the report, lie in one interval of length epsilon."""
    randomiser = build(dimension, epsilon)
    latitudes = np.array([1.0, -1.0])
    if dimension > 1:
        edges = randomiser.height * np.array([1 - 1e-9, 1 + 1e-9])
        grid = np.linspace(-1, 1, 2001 if dimension < 1000 else 101)
        latitudes = np.clip(np.concatenate([grid, edges, -edges]), -1, 1)
    pole, across = axes(dimension)
    reports = at_latitudes(randomiser, latitudes, pole, across)
    values = [norm * direction for norm in NORMS for direction in (pole, -pole, across)]
    logs = np.array([randomiser.log_density(reports, value) for value in values])
    assert logs.max() - logs.min() <= epsilon * (1 + 1e-9)
    # twice the pole: a vector of norm 1 - 1e-16 would already have less than epsilon to tell
    gap = randomiser.log_density(reports, 2 * pole) - randomiser.log_density(reports, -2 * pole)
    assert gap.max() == pytest.approx(epsilon, rel=1e-9)  # epsilon is not overstated
    assert gap.min() == pytest.approx(-epsilon, rel=1e-9)


@BUILD
@pytest.mark.parametrize("value", HOSTILE, ids=str)
def test_a_hostile_value_has_a_density_within_the_same_interval(build, value):
    randomiser = build(3, 1.5)
    reports = randomiser.randomise(np.zeros((2000, 3)), NoiseSource(0))
    logs = np.array([randomiser.log_density(reports, np.array(v)) for v in (value, [1.0, 0, 0], [-1.0, 0, 0])])
    assert logs.max() - logs.min() == pytest.approx(1.5, rel=1e-9)


@BUILD
@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("value", HOSTILE, ids=str)
def test_a_hostile_value_is_reported_on_the_same_sphere_as_any_other(build, value, kind):
    """A report off the sphere, or without a part along its value, would tell what the value was."""
    randomiser = build(3, 1.5)
    with np.errstate(over="ignore", under="ignore"):
        values = np.full((2000, 3), value).astype(kind)
    reports = randomiser.randomise(values, NoiseSource(1))
    np.testing.assert_allclose(np.linalg.norm(reports, axis=1), randomiser.size, rtol=1e-10)


def test_in_one_dimension_every_value_has_the_same_two_reports():
    """To the last bit: v times 1/|v| is not always 1."""
    randomiser = Sphere.best(1, 1.0)
    values = np.concatenate([np.random.default_rng(0).uniform(-1, 1, 20_000), [49 / 64, 1e-300, 5e-324, 1e300, 0.0]])
    reports = randomiser.randomise(values[:, None], NoiseSource(2))
    assert set(reports.ravel().tolist()) == {randomiser.size, -randomiser.size}


class Coin(NoiseSource):
    """Every coin shows the same number."""

    def __init__(self, coin):
        super().__init__(0)
        self.coin = coin

    def uniform(self, shape):
        return np.full(shape, self.coin * 2.0**-53)


def coins_that_lie(lies):
    """Of the 2^53 numbers a coin can show, how many lie."""
    ends = [0, 2**53 - 1]
    first, last = (lies(Coin(end)) for end in ends)
    if first == last:
        return 2**53 * first
    while ends[1] - ends[0] > 1:
        middle = sum(ends) // 2
        ends[lies(Coin(middle)) != first] = middle
    return ends[1] if first else 2**53 - ends[1]


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 1.0, 8.0, 20.0, 30.0, 36.0, LARGEST_EPSILON])
def test_the_coin_as_drawn_lies_no_less_often_than_epsilon_demands(epsilon):
    """A coin has 53 bits: rounded the wrong way it would lie too seldom, or never, at a large epsilon."""
    randomiser = Sphere.best(1, epsilon)
    lies = coins_that_lie(lambda noise: bool(randomiser.randomise(np.ones((1, 1)), noise)[0, 0] < 0))
    assert lies >= 1
    assert math.log((2**53 - lies) / lies) <= epsilon + 1e-15


# -- the sampler ---------------------------------------------------------------------------------------------------


def uniform_latitude(dimension):
    """The law of one coordinate of a uniform point of the sphere, for dimension 2 and more."""
    return stats.beta((dimension - 1) / 2, (dimension - 1) / 2, loc=-1, scale=2)


def p_value(sample, cdf):
    return stats.kstest(sample, cdf, method="asymp").pvalue  # the exact law of the distance takes long to compute


def fits(shares, dimension, epsilon, height, norm):
    """Kolmogorov-Smirnov: whether <u, v/||v||> has its exact law, two levels, upside down with chance (1 - norm)/2.

    Of each latitude we are given the share of the sphere below it. In these units the two levels are straight lines.
    """
    below, odds = uniform_latitude(dimension).cdf(height), math.exp(-epsilon)
    total = odds * below + 1 - below

    def upright(share):
        return np.interp(share, [0.0, below, 1.0], [0.0, odds * below / total, 1.0])

    return p_value(shares, lambda s: (1 + norm) / 2 * upright(s) + (1 - norm) / 2 * (1 - upright(1 - s))) > FALSE_ALARM


@BUILD
@pytest.mark.parametrize("norm", [0.8, 1.0])
@pytest.mark.parametrize(("dimension", "people"), [(2, 60_000), (3, 60_000), (10, 60_000), (100, 30_000)])
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_latitudes_have_the_two_level_law_and_not_that_of_another_epsilon_or_cap(
    build, dimension, epsilon, norm, people
):
    randomiser, (pole, _) = build(dimension, epsilon), axes(dimension)
    reports = randomiser.randomise(np.broadcast_to(norm * pole, (people, dimension)), NoiseSource(3))
    shares = uniform_latitude(dimension).cdf(reports @ pole / randomiser.size)
    height = randomiser.height
    assert fits(shares, dimension, epsilon, height, norm)
    assert not fits(shares, dimension, epsilon * 1.25, height, norm)
    assert not fits(shares, dimension, epsilon / 1.25, height, norm)
    moved = height + 0.5 * uniform_latitude(dimension).std() if height < 0.5 else height - 0.1
    assert not fits(shares, dimension, epsilon, moved, norm)


@BUILD
@pytest.mark.parametrize("dimension", [2, 10])
def test_the_zero_vector_is_reported_alike_in_both_directions(build, dimension):
    randomiser, first = build(dimension, 3.0), np.eye(dimension)[0]
    sample = randomiser.randomise(np.zeros((40_000, dimension)), NoiseSource(4)) @ first / randomiser.size
    shares = uniform_latitude(dimension).cdf(sample)
    assert fits(shares, dimension, 3.0, randomiser.height, norm=0.0)
    assert not fits(shares, dimension, 3.0, randomiser.height, norm=0.05)
    assert not fits(shares, dimension, 3.0, randomiser.height, norm=-0.05)


@BUILD
@pytest.mark.parametrize("dimension", [3, 4, 10])
def test_across_the_value_reports_are_uniform_at_every_latitude(build, dimension):
    """Seen from a direction orthogonal to the value: the law of a sphere of one dimension less, and of no other."""
    randomiser, (pole, across) = build(dimension, 2.0), axes(dimension)
    reports = randomiser.randomise(np.broadcast_to(pole, (60_000, dimension)), NoiseSource(5))
    latitudes = reports @ pole / randomiser.size
    sideways = reports @ across / randomiser.size / np.sqrt(1 - latitudes**2)
    circle, wrong = uniform_latitude(dimension - 1), uniform_latitude(dimension)
    for part in (sideways, sideways[latitudes >= randomiser.height], sideways[latitudes < randomiser.height]):
        assert p_value(part, circle.cdf) > FALSE_ALARM
    assert p_value(sideways, wrong.cdf) < FALSE_ALARM
    assert p_value(sideways, lambda t: circle.cdf(t - 0.03)) < FALSE_ALARM
    assert stats.spearmanr(np.abs(sideways), latitudes).pvalue > FALSE_ALARM


def test_in_the_plane_both_sides_of_the_value_are_equally_likely():
    randomiser, (pole, across) = Sphere.best(2, 2.0), axes(2)
    reports = randomiser.randomise(np.broadcast_to(pole, (40_000, 2)), NoiseSource(6))
    right = int(np.count_nonzero(reports @ across > 0))
    assert stats.binomtest(right, 40_000).pvalue > FALSE_ALARM
    assert stats.binomtest(int(right * 1.05), 40_000).pvalue < FALSE_ALARM


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_in_one_dimension_the_report_is_randomised_response(epsilon):
    people = 100_000
    for norm in (1.0, 0.8):
        reports = Sphere.best(1, epsilon).randomise(np.full((people, 1), -norm), NoiseSource(7))
        down = int(np.count_nonzero(reports < 0))

        def chance(epsilon, norm=norm):
            return (1 + norm * math.tanh(epsilon / 2)) / 2

        assert stats.binomtest(down, people, chance(epsilon)).pvalue > FALSE_ALARM
        assert stats.binomtest(down, people, chance(epsilon * 1.25)).pvalue < FALSE_ALARM
        assert stats.binomtest(down, people, chance(epsilon / 1.25)).pvalue < FALSE_ALARM


@BUILD
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, LARGEST_EPSILON])
@pytest.mark.parametrize("dimension", [1, 2, 3, 1000, 10**6])
def test_reports_have_the_stated_norm_whatever_the_dimension_and_epsilon(build, dimension, epsilon):
    randomiser = build(dimension, epsilon)
    people = max(3, 2000 // dimension)
    values = np.random.default_rng(1).standard_normal((people, dimension)) * np.linspace(0, 2, people)[:, None]
    reports = randomiser.randomise(values, NoiseSource(8))
    np.testing.assert_allclose((reports**2).sum(axis=1), randomiser.second_moment, rtol=1e-10)
    np.testing.assert_allclose(randomiser.total(reports), reports.sum(axis=0), rtol=1e-12)


# -- the constants -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 1.0, 4.0, 20.0, LARGEST_EPSILON])
def test_the_size_of_duchis_report_is_the_corrected_constant(epsilon):
    """Erratum E-14: (e^epsilon + 1)/(e^epsilon - 1) sqrt(pi) Gamma((p+1)/2) / Gamma(p/2)."""
    for p in range(1, 201):
        ratio = mpmath.gammaprod([mpmath.mpf(p + 1) / 2], [mpmath.mpf(p) / 2])
        constant = mpmath.coth(mpmath.mpf(epsilon) / 2) * mpmath.sqrt(mpmath.pi) * ratio
        assert Sphere.duchi(p, epsilon).size == pytest.approx(float(constant), rel=1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("dimension", [1, 2, 3, 10, 100, 1000])
def test_the_best_cap_is_better_than_the_half_sphere_and_than_any_other_of_a_fine_grid(dimension, epsilon):
    best, duchi = Sphere.best(dimension, epsilon), Sphere.duchi(dimension, epsilon)
    if dimension == 1:
        assert best == duchi
        return
    assert best.second_moment < duchi.second_moment * 0.999
    highest = 0.8 if dimension > 100 else 0.999  # above, a cap of so many dimensions has no share that a float holds
    grid = np.concatenate([np.linspace(0, highest, 1000), best.height + np.linspace(-1e-3, 1e-3, 101)])
    pulls = [Sphere(dimension, epsilon, float(height)).pull for height in grid[(grid >= 0) & (grid < 1)]]
    assert best.pull >= max(pulls) * (1 - 1e-12)


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 20.0, LARGEST_EPSILON])
@pytest.mark.parametrize("dimension", [2, 30, 10**4, 10**6])
def test_the_best_cap_is_found_for_tiny_and_huge_epsilon_and_dimension(dimension, epsilon):
    """To a part in 10^7: at the largest epsilon the caps of a circle are smaller than that matters."""
    best = Sphere.best(dimension, epsilon)
    heights = np.unique(np.clip(best.height * np.linspace(0, 2, 201), 0, 1 - 1e-9))
    assert best.pull >= max(Sphere(dimension, epsilon, float(height)).pull for height in heights) * (1 - 1e-7)
    assert best.pull >= Sphere.duchi(dimension, epsilon).pull * (1 - 1e-12)


# -- what is refused -----------------------------------------------------------------------------------------------

REFUSED = [
    ("dimension", (0, 1.0, 0.0)),
    ("dimension", (-3, 1.0, 0.0)),
    ("dimension", (2.0, 1.0, 0.0)),
    ("dimension", (True, 1.0, 0.0)),
    ("epsilon", (3, 0.0, 0.0)),
    ("epsilon", (3, -1.0, 0.0)),
    ("epsilon", (3, math.nan, 0.0)),
    ("epsilon", (3, math.inf, 0.0)),
    ("epsilon", (3, LARGEST_EPSILON * 1.01, 0.0)),
    ("height", (3, 1.0, -0.1)),
    ("height", (3, 1.0, 1.0)),
    ("height", (3, 1.0, math.nan)),
]


@pytest.mark.parametrize(("name", "arguments"), REFUSED)
def test_bad_arguments_are_refused_by_name_and_value(name, arguments):
    value = arguments[("dimension", "epsilon", "height").index(name)]
    with pytest.raises(ValueError, match=re.escape(f"{name}={value!r}")):
        Sphere(*arguments)


@BUILD
@pytest.mark.parametrize(
    ("name", "value"), [("dimension", 0), ("dimension", 2.5), ("epsilon", -1.0), ("epsilon", math.nan)]
)
def test_named_members_refuse_bad_arguments_too(build, name, value):
    with pytest.raises(ValueError, match=re.escape(f"{name}={value!r}")):
        build(**{"dimension": 3, "epsilon": 1.0, name: value})
