"""Noise: the right laws at the right scales, exact where it says exact, and bits that no one else can have.

Every statistical test runs on a fixed seed, so it gives the same verdict every time. It rejects below p = 1e-6: under a
fresh seed a right sampler would fail one in a million such tests, fewer than one in 10^4 runs of this whole file. Power
is checked in the same breath: each sample must also *reject* the law at 1/1.25 and 1.25 times its scale.
"""

from __future__ import annotations

import ast
import copy
import decimal
import math
import os
import pickle
import secrets
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import mpmath
import numpy as np
import pytest
from randomgen import AESCounter
from scipy import stats
from scipy.special import ndtri

import thresher
from inside import generator_of, set_generator
from repository import TESTS
from thresher.vaults import randomness
from thresher.vaults.kernels.normal import upper_tail
from thresher.vaults.randomness import POISSON_TO, NoiseSource, skellam_log_ratio

FALSE_ALARM = 1e-6
DRAWS = 20_000
POWER = [1 / 1.25, 1.0, 1.25]


# -- one test of fit ----------------------------------------------------------------------------------------------


def fits(sample, law):
    """Kolmogorov-Smirnov: whether ``sample`` could have come from the continuous ``law``."""
    return stats.kstest(sample, law.cdf).pvalue > FALSE_ALARM


def fits_rounded_normal(sample, sd):
    """Chi-square: whether whole numbers could be rounded N(0, sd^2); two tails, cells of 10 expected draws or so."""
    edge = int(sd * stats.norm.isf(20 / len(sample)))
    cells = np.arange(-edge, edge + 1)
    inner = np.diff(stats.norm.cdf(np.append(cells - 0.5, edge + 0.5), scale=sd))
    tail = stats.norm.sf(edge + 0.5, scale=sd)
    expected = len(sample) * np.concatenate([[tail], inner, [tail]])
    observed = np.bincount(np.clip(sample, -edge - 1, edge + 1) + edge + 1, minlength=len(expected))
    return stats.chisquare(observed, expected).pvalue > FALSE_ALARM


def gaussian_noise(source, scale):
    return source.gaussian(np.zeros(DRAWS), scale / 4, 4.0)[0]


def l2_laplace_norms(source, scale, dimension=5):
    return [np.linalg.norm(source.l2_laplace(scale, dimension)) for _ in range(DRAWS // 4)]


def large_rounded_gaussian(source, scale):
    return source.rounded_gaussian(2**28, DRAWS) * (scale / 2**28)


SAMPLERS = {
    "plain gaussian": (False, gaussian_noise, stats.norm),
    "hardened gaussian": (True, gaussian_noise, stats.norm),
    "laplace": (False, lambda source, scale: source.laplace(scale, DRAWS), stats.laplace),
    "gumbel": (False, lambda source, scale: source.gumbel(scale, DRAWS), stats.gumbel_r),
    "l2-laplace norm": (False, l2_laplace_norms, lambda scale: stats.gamma(5, scale=scale)),
    "large rounded gaussian": (False, large_rounded_gaussian, stats.norm),
}


@pytest.mark.parametrize("wrong", POWER)
@pytest.mark.parametrize("scale", [1e-6, 3.0])
@pytest.mark.parametrize("name", SAMPLERS)
def test_a_sampler_has_its_scale_and_a_scale_off_by_a_quarter_is_noticed(name, scale, wrong):
    hardened, draw, law = SAMPLERS[name]
    sample = draw(NoiseSource(1, hardened=hardened), scale)
    assert fits(sample, law(scale=scale * wrong)) == (wrong == 1.0)


@pytest.mark.parametrize("wrong", POWER)
@pytest.mark.parametrize("sd", [1, 2, 3, 10])
def test_small_rounded_gaussians_have_exactly_the_cell_probabilities_of_the_normal_law(sd, wrong):
    sample = NoiseSource(2).rounded_gaussian(sd, 4 * DRAWS)
    assert fits_rounded_normal(sample, sd * wrong) == (wrong == 1.0)


def fits_skellam(sample, variance):
    """Chi-square: whether whole numbers could be Skellam noise; two tails, cells of 10 expected draws or more."""
    law = stats.skellam(variance / 2, variance / 2)
    edge = int(law.isf(20 / len(sample))) - 1
    tail = law.sf(edge)
    expected = len(sample) * np.concatenate([[tail], law.pmf(np.arange(-edge, edge + 1)), [tail]])
    observed = np.bincount(np.clip(sample, -edge - 1, edge + 1) + edge + 1, minlength=len(expected))
    return stats.chisquare(observed, expected).pvalue > FALSE_ALARM


@pytest.mark.parametrize("wrong", POWER)
@pytest.mark.parametrize("sd", [0.7, 2, 5, 30])
def test_small_skellam_noise_has_exactly_the_chances_of_its_law(sd, wrong):
    """Poisson numbers of mean 10 and more come from another algorithm than smaller ones: both are here."""
    sample = NoiseSource(21).skellam(sd**2, 4 * DRAWS)
    assert sample.dtype == np.int64
    assert fits_skellam(sample, (sd * wrong) ** 2) == (wrong == 1.0)


@pytest.mark.parametrize("wrong", POWER)
@pytest.mark.parametrize("sd", [300.0, 2.0**10, 2.0**16, 2.0**37])
def test_large_skellam_noise_is_nearly_normal(sd, wrong):
    assert fits(NoiseSource(22).skellam(sd**2, DRAWS) / sd, stats.norm(scale=wrong)) == (wrong == 1.0)


@pytest.mark.parametrize("variance", [-1.0, 2.0**77, math.nan, math.inf])
def test_skellam_noise_outside_the_range_of_its_sampler_is_refused(variance):
    with pytest.raises(ValueError, match="use a coarser grid"):
        NoiseSource(0).skellam(variance, 1)


def test_chances_of_accepting_skellam_noise_are_right():
    """Against Bessel functions by their recurrence in 50 digits, at the smallest variance that is drawn so."""
    mpmath.mp.dps = 50
    variance = int(POISSON_TO) + 1
    sd = math.ceil(math.sqrt(variance)) + 1
    wanted = [0, 1, sd // 2, sd, 3 * sd, 6 * sd]
    above, here, bessel = mpmath.mpf(0), mpmath.mpf(1), {}
    for x in range(30 * sd, 0, -1):
        above, here = here, above + 2 * mpmath.mpf(x) / variance * here
        bessel[x - 1] = here
    half = mpmath.mpf(1) / 2
    exact = [
        mpmath.log(bessel[x] / bessel[0]) - mpmath.log(mpmath.ncdf((half - x) / sd) - mpmath.ncdf((-half - x) / sd))
        for x in wanted
    ]
    found = skellam_log_ratio(np.array(wanted), float(variance), sd)
    np.testing.assert_allclose(found - found[0], [float(log - exact[0]) for log in exact], atol=3e-10)
    assert np.all(found < 0)


@pytest.mark.parametrize("wrong", POWER)
def test_skellam_noise_above_the_poisson_range_has_the_chances_of_its_law(wrong):
    sd = 2.0**8 + 1
    assert fits_skellam(NoiseSource(24).skellam(sd**2, 16 * DRAWS), (sd * wrong) ** 2) == (wrong == 1.0)


def test_the_sum_of_skellam_noises_is_skellam_noise():
    source = NoiseSource(23)
    assert fits_skellam(sum(source.skellam(3.0, 4 * DRAWS) for _ in range(5)), 15.0)


@pytest.mark.parametrize("sd", [2**10 + 1, 2**40 - 87, 2**40])
def test_rounded_gaussians_are_normal_up_to_the_largest_sd(sd):
    assert fits(NoiseSource(3).rounded_gaussian(sd, DRAWS) / sd, stats.norm)


@pytest.mark.parametrize("sd", [2, 2**28])
def test_rounded_gaussians_have_normal_tails(sd):
    """The part beyond 2.5 sd (the third block of the sampler and later) by itself; 1.25 times wrong is noticed."""
    sample = np.abs(NoiseSource(4).rounded_gaussian(sd, 40 * DRAWS))
    for beyond in (2.5 * sd, 3.5 * sd):
        threshold = math.ceil(beyond)

        def chance(scale, threshold=threshold):
            return 2 * stats.norm.sf((threshold - 0.5) / scale)

        count = int(np.count_nonzero(sample >= threshold))
        assert stats.binomtest(count, len(sample), chance(sd)).pvalue > FALSE_ALARM
        assert stats.binomtest(count, len(sample), chance(sd * 1.25)).pvalue < FALSE_ALARM
        assert stats.binomtest(count, len(sample), chance(sd / 1.25)).pvalue < FALSE_ALARM


def test_the_sizes_of_consecutive_rounded_gaussians_are_independent():
    """Signs and sizes come from the bits of one word; neither may tell about the other, nor about the next draw."""
    sample = NoiseSource(5).rounded_gaussian(1000, DRAWS)
    sizes, signs = np.abs(sample), np.sign(sample)
    assert stats.spearmanr(sizes[:-1], sizes[1:]).pvalue > FALSE_ALARM
    assert stats.spearmanr(sizes, signs).pvalue > FALSE_ALARM
    assert stats.spearmanr(signs[:-1], signs[1:]).pvalue > FALSE_ALARM


@pytest.mark.parametrize("sd", [0, -1, 2**40 + 1, math.nan])
def test_a_rounded_gaussian_outside_its_range_is_refused(sd):
    with pytest.raises(ValueError, match="whole number from 1 to 2"):
        NoiseSource(0).rounded_gaussian(sd, 1)


@pytest.mark.parametrize("size", [0, 1, 7, 100_000])
def test_rounded_gaussians_come_in_the_number_asked_for(size):
    assert NoiseSource(0).rounded_gaussian(5, size).shape == (size,)


# -- l2 Laplace ---------------------------------------------------------------------------------------------------


def test_another_stream_of_a_random_state_is_other_noise():
    first, same, other, later = (NoiseSource(5, stream=stream).standard_normal(50) for stream in (0, 0, 1, 12))
    np.testing.assert_array_equal(first, same)
    np.testing.assert_array_equal(first, NoiseSource(5).standard_normal(50))
    assert len(set(np.concatenate([first, other, later]))) == 150


def test_l2_laplace_directions_are_uniform():
    """On the sphere in three dimensions every coordinate of a uniform direction is uniform on [-1, 1] (Archimedes)."""
    source = NoiseSource(6)
    vectors = np.array([source.l2_laplace(1.0, 3) for _ in range(DRAWS // 4)])
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    oblique = directions @ np.array([1.0, 2.0, -2.0]) / 3
    for coordinate in (*directions.T, oblique):
        assert fits(coordinate, stats.uniform(-1, 2))


def test_l2_laplace_norms_do_not_depend_on_the_direction():
    source = NoiseSource(7)
    vectors = np.array([source.l2_laplace(1.0, 3) for _ in range(DRAWS // 4)])
    norms = np.linalg.norm(vectors, axis=1)
    for coordinate in (vectors / norms[:, None]).T:
        assert stats.spearmanr(norms, coordinate).pvalue > FALSE_ALARM
        assert stats.spearmanr(norms, np.abs(coordinate)).pvalue > FALSE_ALARM


def test_l2_laplace_is_not_independent_laplace_coordinates():
    """Erratum E-22. The same helper that accepts the Gamma norm rejects the norm of the printed noise."""
    printed = np.linalg.norm(NoiseSource(8).laplace(1.0, DRAWS).reshape(-1, 5), axis=1)
    assert not fits(printed, stats.gamma(5))


def test_l2_laplace_in_one_dimension_is_laplace():
    source = NoiseSource(9)
    assert fits([source.l2_laplace(2.0, 1)[0] for _ in range(DRAWS // 4)], stats.laplace(scale=2.0))


# -- ties are settled exactly -------------------------------------------------------------------------------------


class Words:
    """A generator that hands out the given 64-bit words."""

    def __init__(self, *words):
        self.words = list(words)

    def integers(self, *_, **__):
        return self.words.pop(0)


def settled(sd, tail, bits=127):
    """What ``_settle`` finds for U = tail / 2^(bits + 1): 63 bits are known at once, then 64 at a time."""
    source = NoiseSource(0)
    set_generator(source, Words(*(tail >> shift & (2**64 - 1) for shift in range(bits - 63 - 64, -1, -64))))
    return source._settle(sd, tail >> (bits - 63))


def edge_of(sd, size, bits=127):
    """P(Z > (size + 1/2)/sd), in whole units of 2^-(bits + 1), rounded down."""
    with mpmath.workprec(2000):
        return int(mpmath.floor(mpmath.ncdf(-(mpmath.mpf(size) + 0.5) / sd) * 2 ** (bits + 1)))


def sizes(seed, count):
    """Random sd up to 2^40 and a size of up to six of them."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        sd = int(rng.integers(1, 2 ** rng.integers(1, 41)))
        yield sd, int(rng.integers(0, 6 * sd))


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("depth", [45, 64, 90, 110, 120])
def test_settling_agrees_with_high_precision_beside_an_edge(depth, side):
    """U is put 2^-depth of itself beside the tail at the middle of two whole numbers; more of it is the smaller one."""
    for sd, size in sizes(depth, 30):
        edge = edge_of(sd, size)
        moved = edge + side * max(edge >> depth, 2**4)
        mostly = sd * 2.0**-depth < 0.1  # so little does not lead across another edge
        assert settled(sd, moved) == (size if side > 0 else size + 1) or not mostly


@pytest.mark.parametrize("side", [-1, 1])
def test_settling_draws_further_bits_until_they_decide(side):
    """U and the edge agree in the first 127 bits; only another word can tell them apart."""
    for sd, size in sizes(7, 30):
        assert settled(sd, edge_of(sd, size, bits=191) + side * 2**20, bits=191) == (size if side > 0 else size + 1)


def test_settling_finds_the_far_tail():
    """63 bits that are all 0 say only that U is tiny: further bits say how far out that is."""
    for bits, word in ((127, 2**63), (191, 2**100), (255, 2**100)):
        with mpmath.workprec(2000):
            tail = mpmath.mpf(word) / 2 ** (bits + 1)
            x = mpmath.findroot(lambda x, tail=tail: mpmath.log(mpmath.ncdf(-x)) - mpmath.log(tail), 9)
        assert settled(1000, word, bits) == int(mpmath.nint(1000 * x))


def test_settling_does_not_depend_on_the_callers_decimal_context():
    with decimal.localcontext(decimal.Context(prec=6)):
        for sd, size in sizes(11, 20):
            assert settled(sd, edge_of(sd, size) + 2**40) == size


@pytest.mark.parametrize("digits", [40, 63, 127])
def test_the_upper_tail_has_as_many_digits_as_it_says(digits):
    with mpmath.workdps(2 * digits + 50):
        for x in ("0", "1e-9", "0.3", "1", "2.75", "6", "9.5", "30"):
            found = mpmath.mpf(str(upper_tail(decimal.Decimal(x), digits)))
            assert abs(found - mpmath.ncdf(-mpmath.mpf(x))) < mpmath.mpf(10) ** -digits


def test_floating_point_inverts_the_normal_law_as_well_as_is_relied_on():
    """With a factor of eight to spare, in the middle, in the tails, and where the formula changes."""
    rng = np.random.default_rng(0)
    tails = np.concatenate(
        [rng.random(1000) / 2, 2.0 ** -rng.uniform(1, 66, 2000), 0.13533528323661 + rng.normal(size=50) / 1e9]
    )
    with mpmath.workdps(40):
        for tail, x in zip(tails, -ndtri(tails), strict=True):
            x = mpmath.mpf(float(x))
            off = (mpmath.ncdf(-x) - mpmath.mpf(float(tail))) / mpmath.npdf(x)
            assert abs(off) < randomness.INVERSION / 8 * (1 + x)


@pytest.fixture
def settle_everything(monkeypatch):
    found = []
    settle = NoiseSource._settle

    def counted(self, *known):
        found.append(known)
        return settle(self, *known)

    monkeypatch.setattr(randomness, "INVERSION", 1.0)  # nothing is trusted
    monkeypatch.setattr(NoiseSource, "_settle", counted)
    return found


@pytest.mark.parametrize("sd", [1, 3, 2**28])
def test_settling_every_draw_gives_the_same(sd, request):
    quick = NoiseSource(10).rounded_gaussian(sd, 1000)
    found = request.getfixturevalue("settle_everything")
    np.testing.assert_array_equal(NoiseSource(10).rounded_gaussian(sd, 1000), quick)
    assert len(found) == 1000


@pytest.mark.parametrize("wrong", POWER)
def test_settling_every_draw_leaves_the_law_unchanged(settle_everything, wrong):
    sample = NoiseSource(11).rounded_gaussian(2, 2500)
    assert len(settle_everything) == 2500
    assert fits_rounded_normal(sample, 2 * wrong) == (wrong == 1.0)


class OneWord:
    """A generator of one draw whose tail is given."""

    def __init__(self, tail):
        self.word = int(tail * 2.0**64)

    def integers(self, *_, **__):
        return np.array([self.word])


SD = 2**28


@pytest.mark.parametrize("distance", [0.0, 2.0**-50, -(2.0**-50), 2.0**-47])
def test_a_near_tie_is_decided_by_settling_alone(monkeypatch, distance):
    monkeypatch.setattr(NoiseSource, "_settle", lambda *_: 77)
    source = NoiseSource(0)
    set_generator(source, OneWord(stats.norm.sf((SD + 0.5) / SD + distance)))
    assert source.rounded_gaussian(SD, 1) == [77]


@pytest.mark.parametrize(("distance", "size"), [(-(2.0**-42), SD), (2.0**-42, SD + 1)])
def test_a_clear_case_is_not_settled(monkeypatch, distance, size):
    monkeypatch.setattr(NoiseSource, "_settle", lambda *_: pytest.fail("settled a clear case"))
    source = NoiseSource(0)
    set_generator(source, OneWord(stats.norm.sf((SD + 0.5) / SD + distance)))
    assert source.rounded_gaussian(SD, 1) == [size]


# -- gaussian answers ---------------------------------------------------------------------------------------------


def grid_of(sensitivity, multiplier):
    return 2.0 ** (math.floor(math.log2(multiplier * sensitivity)) - 28)


@pytest.mark.parametrize("hardened", [False, True])
def test_noise_is_centred_on_the_value(hardened):
    value = np.linspace(-50, 50, DRAWS)
    answer, sd = NoiseSource(12, hardened=hardened).gaussian(value, 0.5, 4.0)
    assert fits(answer - value, stats.norm(scale=sd))


@pytest.mark.parametrize("hardened", [False, True])
def test_a_multiplier_of_zero_adds_nothing(hardened):
    value = np.array([1.5, -2.0])
    answer, sd = NoiseSource(0, hardened=hardened).gaussian(value, 1.0, 0.0)
    assert sd == 0.0
    np.testing.assert_array_equal(answer, value)


def test_plain_noise_has_exactly_the_planned_sd():
    assert NoiseSource(0).gaussian(np.zeros(3), 0.02, 5.0)[1] == 0.02 * 5.0


@pytest.mark.parametrize(("sensitivity", "multiplier"), [(1.0, 1.0), (3e-5, 7.7), (1e10, 0.3), (1e-200, 2.0)])
def test_hardened_answers_lie_on_a_power_of_two_grid(sensitivity, multiplier):
    value = np.linspace(-2, 2, 1001) * sensitivity
    grid = grid_of(sensitivity, multiplier)
    hardened, _ = NoiseSource(13, hardened=True).gaussian(value, sensitivity, multiplier)
    plain, _ = NoiseSource(13).gaussian(value, sensitivity, multiplier)
    np.testing.assert_array_equal(np.mod(hardened, grid), 0.0)
    assert np.mean(np.mod(plain, grid) == 0.0) < 0.01


@pytest.mark.parametrize("multiplier", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("sensitivity", [1e-9, 0.02, 1.0, 1e6])
@pytest.mark.parametrize("dimension", [1, 1000, 100_000])
def test_hardened_noise_is_never_less_than_planned_and_hardly_more(sensitivity, multiplier, dimension):
    _, sd = NoiseSource(0, hardened=True).gaussian(np.zeros(dimension), sensitivity, multiplier)
    assert 1 <= sd / (multiplier * sensitivity) <= 1 + 1e-5


def test_hardened_noise_covers_the_round_off_of_the_value():
    _, sd = NoiseSource(0, hardened=True).gaussian(np.zeros(10), 1.0, 4.0, error=0.01)
    assert 4.0 * 1.02 <= sd <= 4.0 * 1.02 * (1 + 1e-5)


def test_hardened_noise_covers_what_rounding_adds_to_the_distance_of_two_neighbours():
    """Worst case: every coordinate of one neighbour is rounded up and of the other down."""
    sensitivity, multiplier, dimension = 1e-3, 2.0, 10_000
    grid = grid_of(sensitivity, multiplier)
    value = np.full(dimension, 0.501 * grid)
    other = value - 0.002 * grid - sensitivity / math.sqrt(dimension)
    other -= np.mod(other, grid) - 0.499 * grid  # now just below a rounding boundary, at most one step further
    distance = np.linalg.norm(value - other)
    (one, sd), (two, _) = (NoiseSource(14, hardened=True).gaussian(v, distance, multiplier) for v in (value, other))
    rounded = np.linalg.norm(one - two)
    assert rounded > distance
    assert sd >= multiplier * rounded


def test_hardened_values_closer_than_their_rounding_give_the_same_answer():
    grid = grid_of(1.0, 1.0)
    centre = np.arange(100) * 3.0 * grid
    answers = [
        NoiseSource(15, hardened=True).gaussian(centre + shift * grid, 1.0, 1.0)[0] for shift in (-0.49, 0.0, 0.3, 0.49)
    ]
    assert len({answer.tobytes() for answer in answers}) == 1


@pytest.mark.parametrize("steps", [1, -1, 12345])
def test_hardened_values_a_whole_number_of_steps_apart_give_answers_as_far_apart(steps):
    grid = grid_of(1.0, 1.0)
    one, two = (NoiseSource(16, hardened=True).gaussian(np.full(100, v), 1.0, 1.0)[0] for v in (0.0, steps * grid))
    np.testing.assert_array_equal(two - one, steps * grid)


def test_a_huge_value_does_not_overflow_the_grid():
    answer, _ = NoiseSource(0, hardened=True).gaussian(np.array([1e200, -1e200]), 1.0, 1.0)
    assert np.all(np.isfinite(answer))
    assert answer[0] > 1e9 > -1e9 > answer[1]


@pytest.mark.parametrize("hardened", [False, True])
@pytest.mark.parametrize("shape", [(7,), (3, 4)])
def test_an_answer_has_the_shape_of_the_value(shape, hardened):
    assert NoiseSource(0, hardened=hardened).gaussian(np.zeros(shape), 1.0, 1.0)[0].shape == shape


@pytest.mark.parametrize("hardened", [False, True])
def test_the_value_itself_is_left_alone(hardened):
    value = np.arange(5.0)
    NoiseSource(0, hardened=hardened).gaussian(value, 1.0, 1.0)
    np.testing.assert_array_equal(value, np.arange(5.0))


# -- batches drawn ahead of their question --------------------------------------------------------------------------

SIZES = [DRAWS, DRAWS, 3, DRAWS, 2 * DRAWS, 2 * DRAWS, 1]


def batches(source, sizes=SIZES):
    return [source.gaussian(np.zeros(size), 1.0, 1.0)[0] for size in sizes]


def test_no_noise_is_used_twice_whatever_the_sizes_asked_for():
    noise = np.concatenate(batches(NoiseSource(17)))
    assert len(np.unique(noise)) == len(noise) == sum(SIZES)


@pytest.mark.parametrize("hardened", [False, True])
def test_every_batch_is_standard_normal(hardened):
    for batch in batches(NoiseSource(18, hardened=hardened)):
        assert fits(batch, stats.norm)


def test_the_order_of_draws_is_fixed_whatever_is_drawn_in_between():
    def session():
        source = NoiseSource(19)
        return [*batches(source, [DRAWS, DRAWS]), source.laplace(1.0, 5), *batches(source), source.l2_laplace(1.0, 5)]

    for one, two in zip(session(), session(), strict=True):
        np.testing.assert_array_equal(one, two)


def test_many_threads_never_get_the_same_noise():
    source, workers = NoiseSource(20), 8
    start = threading.Barrier(workers)

    def ask(_):
        start.wait()
        return [batch[:3].tobytes() for batch in batches(source, [DRAWS] * 10)]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(workers) as pool:
            answers = [answer for answers in pool.map(ask, range(workers)) for answer in answers]
    finally:
        sys.setswitchinterval(interval)
    assert len(set(answers)) == len(answers) == 10 * workers


# -- the bits -----------------------------------------------------------------------------------------------------

ANSWERS = [
    # FIPS 197, appendix C.1
    ("000102030405060708090a0b0c0d0e0f", "00112233445566778899aabbccddeeff", "69c4e0d86a7b0430d8cdb78070b4c55a"),
    # NIST SP 800-38A, F.5.1 CTR-AES128: input and output blocks 1 to 4
    ("2b7e151628aed2a6abf7158809cf4f3c", "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff", "ec8cdf7398607cb0f2d21675ea9ea1e4"),
    ("2b7e151628aed2a6abf7158809cf4f3c", "f0f1f2f3f4f5f6f7f8f9fafbfcfdff00", "362b7c3c6773516318a077d7fc5073ae"),
    ("2b7e151628aed2a6abf7158809cf4f3c", "f0f1f2f3f4f5f6f7f8f9fafbfcfdff01", "6a2cc3787889374fbeb4c81b17ba6c44"),
    ("2b7e151628aed2a6abf7158809cf4f3c", "f0f1f2f3f4f5f6f7f8f9fafbfcfdff02", "e89c399ff0f198c6d40a31db156cabfe"),
]


def little(hexadecimal):
    """randomgen reads key and counter, and writes its words, lowest byte first."""
    return int.from_bytes(bytes.fromhex(hexadecimal), "little")


@pytest.mark.parametrize("hardware", [True, False])
@pytest.mark.parametrize(("key", "block", "cipher"), ANSWERS)
def test_the_keystream_is_aes_128(key, block, cipher, hardware):
    stream = AESCounter(key=little(key), counter=little(block))
    if hardware and not stream.use_aesni:
        pytest.skip("no AES instructions on this processor")
    stream.use_aesni = hardware
    assert stream.random_raw(2).astype("<u8").tobytes().hex() == cipher


def test_a_source_runs_aes_in_counter_mode_with_the_128_bits_it_asked_the_system_for(monkeypatch):
    """The first block is the encryption of the counter 0, with the key exactly as it came from the system."""
    asked = []
    monkeypatch.setattr(secrets, "randbits", lambda bits: asked.append(bits) or little(ANSWERS[0][0]))
    stream = generator_of(NoiseSource()).bit_generator
    first = AESCounter(key=little(ANSWERS[0][0]), counter=0).random_raw(2)
    assert asked == [128]
    np.testing.assert_array_equal(stream.random_raw(2), first)


def test_the_zero_key_gives_the_well_known_first_block(monkeypatch):
    """AES-128 of the zero block under the zero key (the GCM specification's test case 1: H)."""
    monkeypatch.setattr(secrets, "randbits", lambda _: 0)
    stream = generator_of(NoiseSource()).bit_generator
    assert stream.random_raw(2).astype("<u8").tobytes().hex() == "66e94bd4ef8a2c3b884cfa59ca342b2e"


@pytest.mark.parametrize("fresh", [False, True], ids=["repeatable", "fresh"])
def test_noise_of_tests_is_the_same_in_every_run_unless_asked_otherwise(tmp_path, fresh):
    """A fixture and a test write what they draw without a random_state; two runs each."""
    (tmp_path / "conftest.py").write_bytes((TESTS / "conftest.py").read_bytes())
    (tmp_path / "test_draw.py").write_text(DRAWING_TEST)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(["--fresh-noise"] if fresh else [])]
    for _ in range(2):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    first, again = np.loadtxt(tmp_path / "drawn").reshape(2, 4)
    assert (first == again).all() == (not fresh)
    assert len(set(first)) == 4


DRAWING_TEST = """
import numpy as np, pytest
from thresher.vaults.randomness import NoiseSource

def draw():
    return NoiseSource().gaussian(np.zeros(1), 1.0, 1.0)[0][0]

@pytest.fixture(scope="module")
def early():
    return [draw(), draw()]

def test_draw(early):
    with open("drawn", "a") as file:
        print(*early, draw(), draw(), file=file)
"""


# -- nobody else's bits -------------------------------------------------------------------------------------------

DRAW = {
    "gaussian": lambda source: source.gaussian(np.zeros(4), 1.0, 1.0)[0],
    "laplace": lambda source: source.laplace(1.0, 4),
    "gumbel": lambda source: source.gumbel(1.0, 4),
    "l2_laplace": lambda source: source.l2_laplace(1.0, 4),
    "rounded_gaussian": lambda source: source.rounded_gaussian(2**40, 4),
    "skellam": lambda source: source.skellam(2.0**32, 4),
}
each_draw = pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)


@pytest.mark.parametrize("leave", [pickle.dumps, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"])
@pytest.mark.parametrize("random_state", [None, 0])
def test_a_source_cannot_leave_its_process(leave, random_state):
    with pytest.raises(TypeError, match="never leaves its process"):
        leave(NoiseSource(random_state))


@pytest.mark.parametrize("leave", [pickle.dumps, copy.deepcopy], ids=["pickle", "deepcopy"])
def test_nothing_that_holds_a_source_can_leave_with_it(leave):
    with pytest.raises(TypeError, match="never leaves its process"):
        leave([NoiseSource()])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@each_draw
@pytest.mark.parametrize("used", [0, DRAWS])
def test_a_source_is_refused_after_a_fork(draw, used):
    source = NoiseSource(0)
    source.gaussian(np.zeros(used), 1.0, 1.0)
    child = os.fork()
    if child == 0:  # exit codes: 0 refused, 1 drew noise, 2 something else
        code = 2
        try:
            draw(source)
            code = 1
        except RuntimeError as error:
            code = 0 if "after a fork" in str(error) else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert len(draw(source)) == 4  # the parent goes on


@each_draw
def test_two_sources_never_share_output(draw):
    first, second = NoiseSource(), NoiseSource()
    assert not set(np.ravel(draw(first))) & set(np.ravel(draw(second)))


@each_draw
def test_one_source_never_repeats_itself(draw):
    source = NoiseSource()
    assert not set(np.ravel(draw(source))) & set(np.ravel(draw(source)))


@each_draw
def test_the_same_random_state_gives_the_same_noise(draw):
    np.testing.assert_array_equal(draw(NoiseSource(42)), draw(NoiseSource(42)))


@each_draw
def test_another_random_state_gives_other_noise(draw):
    assert not set(np.ravel(draw(NoiseSource(42)))) & set(np.ravel(draw(NoiseSource(43))))


@pytest.mark.parametrize("random_state", [0, 7, np.random.RandomState(0)])
def test_a_random_state_is_not_secure_and_the_description_says_so(random_state):
    source = NoiseSource(random_state)
    assert not source.secure
    assert "seeded by random_state (not private)" in source.description


def test_without_a_random_state_a_source_is_secure_and_the_description_says_so():
    source = NoiseSource()
    assert source.secure
    assert "keyed by the operating system" in source.description
    assert "random_state" not in source.description


@pytest.mark.parametrize(("hardened", "words"), [(True, "grid-rounded exact"), (False, "floating-point")])
def test_the_description_says_how_noise_is_added(hardened, words):
    assert words in NoiseSource(hardened=hardened).description


def test_no_state_shows_when_a_source_is_printed():
    source = NoiseSource(5)
    state = generator_of(source).bit_generator.state["s"]
    shown = f"{source!r} {source} {source.description}"
    for number in {*state["seed"].tolist()} - {0}:
        assert str(number) not in shown
        assert f"{number:x}" not in shown


# -- the only place -----------------------------------------------------------------------------------------------

PACKAGE = Path(thresher.__file__).parent
# data/laws.py and audit/adversarial_rows.py make synthetic data, algorithms/public_rows.py public rows,
# audit/one_run.py canaries; audit/attacks.py chooses which rows of an attacker's pool are members;
# those of federated/ make keys
MAY_DRAW = {
    "vaults/randomness.py", "data/laws.py", "data/atomic_files.py", "algorithms/public_rows.py",
    "audit/adversarial_rows.py", "audit/attacks.py", "audit/one_run.py",
    "planning/law.py", "planning/simulate.py", "ledger/chain.py", "ledger/repeats.py",
    "federated/crypto.py", "federated/secret_shares.py", "federated/spu.py", "federated/seals.py",
    "federated/mpyc_worker/runtime.py", "federated/spu_worker.py",
}  # fmt: skip
RANDOM_MODULES = {"random", "secrets", "randomgen", "numpy.random"}


def names_used(source):
    """Every module imported and every dotted name read in a piece of code, relative imports left out."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
        elif isinstance(node, ast.Attribute):
            yield ast.unparse(node)


def randomness_in(source):
    found = set()
    for name in names_used(source):
        full = f"numpy.{name[3:]}" if name.startswith("np.") else name
        if any(full == module or full.startswith(f"{module}.") for module in RANDOM_MODULES) or "urandom" in full:
            found.add(name)
    return found


@pytest.mark.parametrize(
    "code",
    [
        "import random",
        "import secrets as s",
        "from random import gauss",
        "from numpy import random",
        "np.random.normal()",
        "import numpy.random",
        "from numpy.random import default_rng",
        "os.urandom(8)",
        "from randomgen import PCG64",
    ],
)
def test_the_search_for_randomness_finds_it(code):
    assert randomness_in(code)


@pytest.mark.parametrize(
    "code", ["from thresher.vaults.randomness import NoiseSource", "self.random_state", "noise.random"]
)
def test_the_search_for_randomness_leaves_other_names_alone(code):
    assert not randomness_in(code)


def test_no_other_module_makes_random_bits():
    modules = [path for path in PACKAGE.rglob("*.py") if str(path.relative_to(PACKAGE)) not in MAY_DRAW]
    assert len(modules) > 10
    assert {str(path): found for path in modules if (found := randomness_in(path.read_text(encoding="utf-8")))} == {}


def test_synthetic_data_is_not_imported_where_private_rows_are():
    for path in (path for room in ("vaults", "algorithms", "models") for path in (PACKAGE / room).rglob("*.py")):
        used = names_used(path.read_text(encoding="utf-8"))
        assert not [name for name in used if name.startswith("thresher.data.laws")], path
