"""Labels with noise: the exact law of every report, its samples, and mean and variance as stated."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest
from scipy import integrate, stats

from thresher.privacy.conversions import gaussian_delta
from thresher.privacy.laws.checks import LARGEST_EPSILON
from thresher.vaults.randomisers import Classes, Gaussian, Laplace, Piecewise, grid_of
from thresher.vaults.randomness import NoiseSource

FALSE_ALARM = 1e-4  # of each statistical test under a fresh seed; with the seeds here the verdicts never change
MISSED = 0.01  # how often a bias of BIAS times the value may go unnoticed
BIAS = 0.05
EPSILONS = [0.5, 1.0, 2.0, 4.0, 8.0]
VALUES = [-1.0, -0.4, 0.0, 0.5, 1.0]
HOSTILE = [math.nan, math.inf, -math.inf, 1e300, -1e300, 3.0, -1.5]
LAST_COIN = 1 - 2.0**-53


def counted_as(value):
    """What a hostile value counts as."""
    return 0.0 if math.isnan(value) else min(max(value, -1.0), 1.0)


def piece(epsilon, value):
    """The bounds -C and C of a report, the likely piece between them, and its chance (Wang et al. 2019)."""
    t = math.exp(epsilon / 2)
    bound = (t + 1) / (t - 1)
    low = (bound + 1) / 2 * value - (bound - 1) / 2
    return bound, low, low + bound - 1, t / (t + 1)


def piecewise_cdf(epsilon, value):
    bound, low, high, near = piece(epsilon, value)
    level = (1 - near) / (bound + 1)
    at = [-bound, low, high, bound]
    return lambda x: np.interp(x, at, [0.0, level * (low + bound), level * (low + bound) + near, 1.0])


# -- privacy: the law of every report ------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-6, *EPSILONS, LARGEST_EPSILON])
def test_laplace_reports_of_two_labels_differ_by_at_most_epsilon_and_do_for_the_two_ends(epsilon):
    randomiser = Laplace(epsilon)
    reports = np.concatenate([np.linspace(-1.5, 1.5, 601), [-1e3, 1e3, -1e9, 1e9]])
    logs = np.array([randomiser.log_density(reports, value) for value in (*np.linspace(-1, 1, 41), *HOSTILE)])
    assert np.ptp(logs, axis=0).max() == pytest.approx(epsilon, rel=1e-6)  # 1e9 has few bits left after the point
    assert np.ptp(logs[:, :601], axis=0).max() <= epsilon * (1 + 1e-9) + 1e-14
    np.testing.assert_allclose(logs[0] - logs[40], np.clip(-reports, -1, 1) * epsilon, rtol=1e-6, atol=1e-9 * epsilon)


@pytest.mark.parametrize("randomiser", [Laplace(0.5), Laplace(4.0), Gaussian(0.3), Gaussian(5.0)], ids=str)
@pytest.mark.parametrize("value", VALUES)
def test_a_density_integrates_to_one_and_has_the_stated_mean_and_variance(randomiser, value):
    def moment(power):
        reach = 60 * randomiser.size
        return integrate.quad(
            lambda x: (x - value) ** power * math.exp(randomiser.log_density(np.array(x), value)),
            value - reach, value + reach, points=[value], limit=200, epsabs=1e-12,
        )[0]  # fmt: skip

    assert moment(0) == pytest.approx(1.0, rel=1e-8)
    assert moment(1) == pytest.approx(0.0, abs=1e-8 * randomiser.size)
    assert moment(2) == pytest.approx(randomiser.variance(value), rel=1e-8)


@pytest.mark.parametrize("sd", [0.5, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 3.0])
def test_gaussian_reports_are_on_the_gaussian_curve_and_no_pair_is_further_apart_than_the_two_ends(sd, epsilon):
    """The hockey-stick integral of the densities themselves."""
    randomiser = Gaussian(sd)

    def delta(one, two):
        def excess(x):
            p, q = (math.exp(randomiser.log_density(np.array(x), v)) for v in (one, two))
            return max(p - math.exp(epsilon) * q, 0.0)

        crossing = (one + two) / 2 + sd**2 * epsilon / (one - two)
        edges = [min(max(crossing, -40 * sd), 40 * sd), one, two]
        return integrate.quad(excess, -1 - 40 * sd, 1 + 40 * sd, points=edges, limit=400, epsabs=1e-16)[0]

    stated = gaussian_delta(2 / sd, epsilon)
    assert delta(1.0, -1.0) == pytest.approx(stated, rel=1e-6, abs=1e-15)
    assert delta(-1.0, 1.0) == pytest.approx(stated, rel=1e-6, abs=1e-15)
    assert delta(0.4, -1.0) <= stated * (1 + 1e-9)


@pytest.mark.parametrize("randomiser", [Laplace(1.0), Gaussian(2.0), Piecewise(1.0)], ids=str)
@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_label_has_the_law_of_the_label_it_counts_as_and_is_reported_by_it(randomiser, value):
    reports = randomiser.randomise(np.full(1000, value), NoiseSource(0))
    tame = randomiser.randomise(np.full(1000, counted_as(value)), NoiseSource(0))
    np.testing.assert_array_equal(reports, tame)
    assert np.all(np.isfinite(reports))
    logs = randomiser.log_density(reports, value)
    np.testing.assert_array_equal(logs, randomiser.log_density(reports, counted_as(value)))


@pytest.mark.parametrize("epsilon", [1e-3, *EPSILONS, 20.0, LARGEST_EPSILON])
def test_every_label_has_the_same_possible_piecewise_reports_and_only_two_densities_a_factor_of_e_to_epsilon_apart(
    epsilon,
):
    randomiser = Piecewise(epsilon)
    size = piece(epsilon, 0.0)[0]
    assert randomiser.size == pytest.approx(size, rel=1e-9)
    size = randomiser.size
    inner = np.linspace(-size, size, 2001)
    outer = np.array([np.nextafter(size, np.inf), -np.nextafter(size, np.inf), 10 * size, 1e300])
    values = (*np.linspace(-1, 1, 41), *HOSTILE)
    logs = np.array([randomiser.log_density(inner, value) for value in values])
    assert np.all(np.isfinite(logs))
    assert np.ptp(logs, axis=0).max() <= epsilon * (1 + 1e-9)
    assert np.ptp(logs, axis=0).max() == pytest.approx(epsilon, rel=1e-9)
    assert all(np.all(randomiser.log_density(outer, value) == -np.inf) for value in values)


@pytest.mark.parametrize("epsilon", [1e-3, *EPSILONS, 12.0])
@pytest.mark.parametrize("value", [*VALUES, *HOSTILE])
def test_piecewise_densities_integrate_to_one_with_the_stated_mean_and_variance(epsilon, value):
    """Exactly, level by level: the two levels are read off between the published ends of the piece."""
    randomiser, label = Piecewise(epsilon), counted_as(value)
    bound, low, high, _ = piece(epsilon, label)
    masses, firsts, seconds = [], [], []
    for left, right in ((-bound, low), (low, high), (high, bound)):
        if right - left > 1e-9:
            inside = left + (right - left) * np.array([1e-6, 0.3, 0.9, 1 - 1e-6])
            levels = np.exp(randomiser.log_density(inside, value))
            assert np.ptp(levels) == 0
            masses.append(levels[0] * (right - left))
            firsts.append(levels[0] * (right**2 - left**2) / 2)
            seconds.append(levels[0] * (right**3 - left**3) / 3)
    assert math.fsum(masses) == pytest.approx(1.0, rel=1e-9)
    assert math.fsum(firsts) == pytest.approx(label, abs=1e-9 * bound)
    assert math.fsum(seconds) - label**2 == pytest.approx(randomiser.variance(label), rel=1e-6)


class Scripted(NoiseSource):
    """Coins that show the given numbers, one call after the other."""

    def __init__(self, *numbers):
        super().__init__(0)
        self.numbers = itertools.cycle(numbers)

    def uniform(self, shape):
        return np.full(shape, next(self.numbers))


def test_no_coin_takes_a_piecewise_report_beyond_its_bounds():
    """At the ends of the range rounding may: then the report would tell that the label is one of the two ends."""
    coins = list(itertools.product([0.0, 0.5, LAST_COIN], repeat=2))
    for epsilon in np.linspace(0.05, LARGEST_EPSILON, 150).tolist():
        randomiser = Piecewise(epsilon)
        reports = [randomiser.randomise(np.array([-1.0, 0.0, 1.0, 9.0]), Scripted(*pair)) for pair in coins]
        assert np.abs(reports).max() <= randomiser.size, epsilon


@pytest.mark.parametrize("epsilon", [0.5, 8.0, 20.0, 36.0, LARGEST_EPSILON])
def test_the_piecewise_coin_as_drawn_leaves_the_piece_no_less_often_than_epsilon_demands(epsilon):
    """A coin has 53 bits: the number of its faces that leave the piece is found by bisection."""
    randomiser = Piecewise(epsilon)

    def leaves(face):
        report = randomiser.randomise(np.array([1.0]), Scripted(face * 2.0**-53, 0.5))
        return bool(report[0] < 0.5)

    ends = [0, 2**53 - 1]
    first = leaves(0)
    assert first != leaves(ends[1])
    while ends[1] - ends[0] > 1:
        middle = sum(ends) // 2
        ends[leaves(middle) != first] = middle
    leaving = ends[1] if first else 2**53 - ends[1]
    assert math.log((2**53 - leaving) / leaving) <= epsilon / 2 + 1e-15


@pytest.mark.parametrize("epsilon", [1e-6, *EPSILONS, LARGEST_EPSILON])
@pytest.mark.parametrize("classes", [2, 3, 10, 1000])
def test_class_reports_of_any_two_labels_differ_by_at_most_epsilon_and_two_do(classes, epsilon):
    randomiser, every = Classes(classes, epsilon), np.arange(classes)
    labels = [*range(min(classes, 20)), classes - 1, -1, classes, 10**9]
    logs = np.array([randomiser.log_density(every, label) for label in labels])
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1.0, rtol=1e-12)
    assert np.ptp(logs, axis=0).max() <= epsilon * (1 + 1e-9)
    assert np.ptp(logs, axis=0).max() == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("label", [-1, 3, 7, 10**12, -(2**63)])
def test_a_label_that_is_no_class_is_reported_as_a_class_like_any_other(label):
    """A report outside the classes, or one class never reported, would tell it from the rest."""
    reports = Classes(3, 1.0).randomise(np.full(2000, label), NoiseSource(1))
    assert set(reports.tolist()) == {0, 1, 2}


@pytest.mark.parametrize("label", [math.nan, math.inf, 0.5, 1e300])
def test_a_label_that_is_no_whole_number_is_reported_as_a_class_like_any_other(label):
    reports = Classes(3, 1.0).randomise(np.full(2000, label), NoiseSource(1))
    assert set(reports.tolist()) == {0, 1, 2}


# -- the sampler ---------------------------------------------------------------------------------------------------


def p_value(sample, cdf):
    """Kolmogorov-Smirnov."""
    return stats.kstest(sample, cdf, method="asymp").pvalue  # the exact law of the distance takes long to compute


@pytest.mark.parametrize("value", [-1.0, 0.3])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_laplace_and_gaussian_reports_have_their_laws_and_not_one_a_quarter_wider_or_narrower(epsilon, value):
    for randomiser, law in ((Laplace(epsilon), stats.laplace), (Gaussian(epsilon), stats.norm)):
        reports = randomiser.randomise(np.full(20_000, value), NoiseSource(2))
        scale = {"Laplace": 2 / epsilon, "Gaussian": epsilon}[type(randomiser).__name__]
        for wrong in (1.0, 1.25, 1 / 1.25):
            assert (p_value(reports, law(loc=value, scale=scale * wrong).cdf) > FALSE_ALARM) == (wrong == 1.0)
        assert p_value(reports, law(loc=value + 0.1 * scale, scale=scale).cdf) < FALSE_ALARM


def fits(counts, chances):
    """Pearson's chi-square test."""
    expected = counts.sum() * chances
    assert expected.min() > 5, "too rare for the chi-square law"
    return ((counts - expected) ** 2 / expected).sum() < stats.chi2.isf(FALSE_ALARM, len(expected) - 1)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
def test_piecewise_reports_have_the_stated_law_and_not_that_of_another_epsilon(epsilon, value):
    reports = Piecewise(epsilon).randomise(np.full(50_000, value), NoiseSource(3))
    assert np.abs(reports).max() <= Piecewise(epsilon).size
    for wrong in (1.0, 1.25, 1 / 1.25):
        assert (p_value(reports, piecewise_cdf(epsilon * wrong, value)) > FALSE_ALARM) == (wrong == 1.0)


@pytest.mark.parametrize("label", [0, 2])
@pytest.mark.parametrize(("classes", "epsilon"), [(3, 0.5), (3, 2.0), (10, 1.0)])
def test_class_reports_have_the_stated_law_and_not_that_of_another_epsilon(classes, epsilon, label):
    reports = Classes(classes, epsilon).randomise(np.full(60_000, label), NoiseSource(4))
    counts, every = np.bincount(reports, minlength=classes), np.arange(classes)
    assert fits(counts, np.exp(Classes(classes, epsilon).log_density(every, label)))
    for wrong in (epsilon * 1.25, epsilon / 1.25):
        assert not fits(counts, np.exp(Classes(classes, wrong).log_density(every, label)))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", [Laplace, Gaussian, Piecewise])
def test_reports_are_unbiased_and_have_the_stated_variance_and_five_percent_of_bias_would_be_noticed(kind, epsilon):
    """For the Gaussian epsilon stands for 1/sd. The z-test misses a bias of 5% of the value less than once in 100."""
    randomiser = kind(1 / epsilon if kind is Gaussian else epsilon)
    reject, detect = stats.norm.isf(FALSE_ALARM / 2), stats.norm.isf(MISSED)
    for value in (-1.0, 0.5, 0.0):
        variance = randomiser.variance(value)
        bias = BIAS * abs(value) or BIAS
        people = max(math.ceil(1.01 * variance * ((reject + detect) / bias) ** 2), 200_000)
        error = math.sqrt(variance / people)
        assert stats.norm.cdf(bias / error - reject) > 1 - MISSED
        reports = randomiser.randomise(np.full(people, value), NoiseSource(5))
        assert abs(reports.mean() - value) < reject * error
        squares = (reports - value) ** 2
        error = squares.std() / math.sqrt(people)
        assert abs(squares.mean() - variance) < reject * error
        assert abs(squares.mean() - variance * 1.25) > reject * error


# -- classes: indicators -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-6, *EPSILONS])
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_indicators_are_unbiased_with_the_stated_variance_exactly(classes, epsilon):
    """Over all reports. A label of class 0 with chance (1 + x)/2, else of class 1; the indicator spans [-1, 1]."""
    randomiser, every = Classes(classes, epsilon), np.arange(classes)
    laws = np.array([np.exp(randomiser.log_density(every, label)) for label in every])
    indicators = randomiser.indicators(every)
    np.testing.assert_allclose(laws @ indicators, np.eye(classes), atol=1e-10 * randomiser.size)
    for x in (-1.0, -0.5, 0.0, 0.8, 1.0):
        law = (1 + x) / 2 * laws[0] + (1 - x) / 2 * laws[1]
        spread = 2 * indicators[:, 0] - 1
        variance = law @ spread**2 - (law @ spread) ** 2
        assert law @ spread == pytest.approx(x, abs=1e-9 * randomiser.size)
        assert randomiser.variance(x) == pytest.approx(variance, rel=1e-6)


# -- the constants -------------------------------------------------------------------------------------------------


def test_piecewise_reports_have_less_variance_than_laplace_reports_for_every_epsilon_and_label():
    for epsilon in np.geomspace(0.01, 20, 100).tolist():
        for value in np.linspace(-1, 1, 21).tolist():
            assert Piecewise(epsilon).variance(value) < Laplace(epsilon).variance(value)


@pytest.mark.parametrize("epsilon", [1e-6, *EPSILONS, LARGEST_EPSILON])
def test_sizes_are_the_published_ones_and_no_unbiased_report_is_smaller_than_it_can_be(epsilon):
    """A report of -1 and one of 1 with ratio at most e^epsilon: it must reach coth(epsilon/2)."""
    assert Laplace(epsilon).size == pytest.approx(2 / epsilon, rel=1e-12)
    assert Piecewise(epsilon).size == pytest.approx(1 / math.tanh(epsilon / 4), rel=1e-12)
    assert Piecewise(epsilon).size >= 1 / math.tanh(epsilon / 2)
    two = Classes(2, epsilon)
    assert 2 * two.indicators(np.array([0]))[0, 0] - 1 == pytest.approx(1 / math.tanh(epsilon / 2), rel=1e-9)


# -- inputs and arguments ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("randomiser", [Laplace(1.0), Gaussian(1.0), Piecewise(1.0)], ids=str)
def test_labels_of_any_layout_are_reported_alike_and_left_alone(randomiser):
    values = np.array([-1.0, 0.25, math.nan, 5.0, 0.5, 0.0])
    expected = randomiser.randomise(values.copy(), NoiseSource(6))
    frozen = values.copy()
    frozen.flags.writeable = False
    for given in (frozen, values.astype(np.float32), np.repeat(values, 2)[::2], values[::-1].copy()[::-1]):
        before = given.copy()
        reports = randomiser.randomise(given, NoiseSource(6))
        np.testing.assert_array_equal(reports, expected)
        assert reports.dtype == np.float64
        np.testing.assert_array_equal(given, before)
    assert randomiser.randomise(np.zeros(0), NoiseSource(6)).shape == (0,)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.int64])
def test_classes_of_any_kind_of_whole_number_are_reported_alike_and_left_alone(kind):
    values = np.arange(5).astype(kind)
    expected = Classes(5, 1.0).randomise(np.arange(5), NoiseSource(7))
    reports = Classes(5, 1.0).randomise(values, NoiseSource(7))
    np.testing.assert_array_equal(reports, expected)
    assert reports.dtype == np.int64
    np.testing.assert_array_equal(values, np.arange(5))
    assert Classes(5, 1.0).randomise(np.zeros(0, dtype=kind), NoiseSource(7)).shape == (0,)


REFUSED = [
    *((kind, "epsilon", value) for kind in (Laplace, Piecewise) for value in (0.0, -1.0, math.nan, math.inf, 1e3)),
    *((Gaussian, "sd", value) for value in (0.0, -1.0, math.nan, math.inf)),
    *((Classes, "epsilon", value) for value in (0.0, math.nan, LARGEST_EPSILON * 1.01)),
    *((Classes, "classes", value) for value in (1, 0, -3, 2.5, True)),
]


@pytest.mark.parametrize(("kind", "name", "value"), REFUSED)
def test_bad_arguments_are_refused_by_name_and_value(kind, name, value):
    given = {"classes": 3, "epsilon": 1.0} if kind is Classes else {}
    with pytest.raises(ValueError, match=re.escape(f"{name}={value!r}")):
        kind(**(given | {name: value}))


# -- the low bits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda: Laplace(2.0), lambda: Piecewise(2.0), lambda: Gaussian(1.0)])
def test_no_low_bit_of_a_report_tells_the_label(make):
    """Floating-point sums of +-1 and noise do: an odd last bit in (1, 2) came from +1 only, in a tenth of all reports.
    On the grid all reports are multiples of one public step, and each of its low bits is as often odd for either label.
    (z-tests at 4.5 deviations: a false alarm in one of 100 000.)"""
    randomiser, people = make(), 200_000
    steps = {}
    for label in (-1.0, 1.0):
        reports = randomiser.randomise(np.full(people, label), NoiseSource(7)) / grid_of(randomiser.size)
        assert np.array_equal(reports, np.rint(reports))
        steps[label] = reports.astype(np.int64)
    for bit in range(8):
        odd = [np.mean((steps[label] >> bit) & 1) for label in steps]
        assert abs(odd[0] - odd[1]) < 4.5 * math.sqrt(0.5 / people)


# -- analytic Gaussian labels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_calibrated_gaussian_noise_costs_what_was_asked_for_and_a_little_less_would_not_do(epsilon, delta):
    noise = Gaussian.calibrated(epsilon, delta)
    assert epsilon * (1 - 1e-6) < noise.epsilon(delta) <= epsilon
    assert Gaussian(0.999 * noise.sd).epsilon(delta) > epsilon
