"""The dithered binomial: its law against every string of coins, its Renyi curve against brute force."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from thresher.federated.aggregation import dithered_binomial
from thresher.privacy.budget import Budget
from thresher.privacy.laws.dithered_binomial import WINDOW, DitheredBinomial, curve_of, levels_of, log_moments
from thresher.privacy.releases import BinomialGradient
from thresher.vaults.randomness import NoiseSource

EVERYWHERE = 10**9


def spread_of(law):
    """Chances of outcomes and the outcomes, by tossing the coins in every possible way."""
    tossed = Counter(int(np.dot(coins, law.weights)) - law.offset for coins in product((0, 1), repeat=law.bits))
    outcomes = np.array(sorted(tossed))
    return np.array([tossed[z] / 2**law.bits for z in outcomes]), outcomes


# -- the law ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("coins", "dither"), [(2, 0), (4, 2), (6, 1), (2, 4), (12, 0), (8, 3)])
def test_the_law_is_that_of_all_strings_of_coins(coins, dither):
    law = DitheredBinomial(coins, dither)
    chances, outcomes = spread_of(law)
    np.testing.assert_allclose(law.pmf(EVERYWHERE), chances, rtol=1e-14)
    assert law.mean == pytest.approx(chances @ outcomes)
    assert law.variance == pytest.approx(chances @ (outcomes - law.mean) ** 2)
    assert outcomes[0] == -law.offset


@pytest.mark.parametrize(("coins", "dither"), [(256, 11), (256, 5), (1024, 7), (4096, 2)])
def test_large_laws_add_up_to_one_and_have_their_variance(coins, dither):
    law = DitheredBinomial(coins, dither)
    chances = law.pmf(EVERYWHERE)
    outcomes = np.arange(len(chances)) - (len(chances) - 1) / 2
    assert math.fsum(chances) == pytest.approx(1, abs=1e-13)
    assert np.dot(chances, outcomes**2) == pytest.approx(law.variance, rel=1e-12)
    np.testing.assert_allclose(chances, chances[::-1], rtol=1e-13)


def test_a_window_keeps_the_middle():
    law = DitheredBinomial(256, 4)
    whole, part = law.pmf(EVERYWHERE), law.pmf(100)
    cut = (len(whole) - len(part)) // 2
    np.testing.assert_array_equal(part, whole[cut:-cut])
    assert len(part) in (200, 201)


@pytest.mark.parametrize(("coins", "dither"), [(256, 11), (64, 3), (1024, 6)])
def test_the_reference_draws_the_law(coins, dither):
    """Chi-square over 40 bins of a million draws; a right sampler fails once in 10^6 runs."""
    law = DitheredBinomial(coins, dither)
    draws = dithered_binomial(NoiseSource(1), law, 10**6)
    chances = law.pmf(EVERYWHERE)
    outcomes = np.arange(len(chances)) - law.offset
    edges = np.searchsorted(np.cumsum(chances), np.linspace(0, 1, 41)[1:-1])
    bins = np.concatenate([[0], edges, [len(chances)]])
    expected = np.array([chances[a:b].sum() for a, b in pairwise(bins)])
    counted, _ = np.histogram(draws - outcomes[0], bins=bins - 0.5)
    assert counted.sum() == len(draws)
    assert stats.chisquare(counted, expected / expected.sum() * len(draws)).pvalue > 1e-6


@pytest.mark.parametrize("factor", [1 / 1.25, 1.25])
def test_that_test_would_notice_another_scale(factor):
    """A million draws put the sample variance within 0.7 % (5 sd); another scale is off by 36 % or more."""
    law = DitheredBinomial(256, 11)
    spread = np.var(dithered_binomial(NoiseSource(2), law, 10**6).astype(float))
    assert spread == pytest.approx(law.variance, rel=0.01)
    assert spread != pytest.approx(law.variance * factor**2, rel=0.01)


@pytest.mark.parametrize("wrong", [{"coins": 3}, {"coins": 0}, {"coins": 2**20}, {"dither": -1}, {"dither": 21}])
def test_laws_that_are_none_are_refused(wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"{name}={wrong[name]}"):
        DitheredBinomial(**wrong)


# -- Renyi curves -------------------------------------------------------------------------------------------------


def log_moment(law, shift, order):
    """log sum P^a Q^(1-a) over the outcomes that both laws have in the window."""
    chances = law.pmf(math.ceil(WINDOW * law.sd) + shift)
    P, Q = chances[shift:], chances[: len(chances) - shift]
    return math.log(math.fsum(P * (P / Q) ** (order - 1)) / math.fsum(P))


@pytest.mark.parametrize("finest", [0, 1, 2, 3])
@pytest.mark.parametrize(("coins", "dither"), [(256, 3), (256, 5), (1024, 4)])
def test_the_curve_covers_every_shift(coins, dither, finest):
    """Every whole shift up to the reach, at every order: the lattice and its chords against brute force."""
    law = DitheredBinomial(coins, dither)
    reach = math.ceil(0.4 * law.sd / 2**finest)
    curve = curve_of(law, finest, reach, 0, 14)
    for shift in range(1, reach * 2**finest + 1):
        for order, bound in zip(curve.orders[::7], curve.per_square[::7], strict=True):
            divergence = log_moment(law, shift, order) / (order - 1)
            assert divergence <= bound * (shift**2 + curve.additive)
    exact = max(log_moment(law, shift, 2.0) / shift**2 for shift in range(1, reach * 2**finest + 1))
    assert curve.per_square[0] <= 1.02 * exact


def test_the_curve_would_notice_a_law_without_dither():
    """Of a binomial on every 8th number, a shift of 1 is seen at once: there the bound for shifts of 8 cannot hold."""
    chances = np.zeros(8 * 257)
    chances[::8] = DitheredBinomial(256, 0).pmf(EVERYWHERE)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = chances[1:] / chances[:-1]
    assert not np.all(np.isfinite(ratios[chances[1:] > 0]))


def test_lattices_reach_as_far_as_asked():
    for finest in range(4):
        for reach in range(1, 400):
            levels = levels_of(finest, reach, 12)
            assert levels[0][:2] == (finest, 1)
            assert levels[-1][2] * 2 ** levels[-1][0] >= reach * 2**finest
            for (step, _, high), (next_step, low, _) in pairwise(levels):
                assert next_step == step + 1
                assert low * 2**next_step <= high * 2**step


def test_moments_are_rounded_outwards():
    """Against exact rational arithmetic."""
    from fractions import Fraction

    law = DitheredBinomial(8, 2)
    chances, _ = spread_of(law)
    exact = [Fraction(chance) for chance in chances]  # powers of two below, so exact
    for shift in (1, 3):
        P, Q = exact[shift:], exact[:-shift]
        moment = sum(p**2 / q for p, q in zip(P, Q, strict=True)) / sum(P)
        (found,) = log_moments(law.pmf(EVERYWHERE), shift, np.array([0]))
        assert math.log(moment) <= found <= math.log(moment) + 1e-13


@pytest.mark.parametrize("relative", [0.02, 0.05, 0.1])
def test_the_default_law_is_nearly_gaussian(relative):
    """At the orders that matter the divergence is within 2 % of alpha shift^2 / (2 variance), and never below it."""
    law = DitheredBinomial()
    shift = relative * law.sd
    orders, rdp, lost = law.rdp(shift, 1, 100)
    gaussian = orders * shift**2 / (2 * law.variance)
    usual = orders < 2 / relative
    assert usual.sum() > 5
    assert np.all(rdp >= gaussian * (1 - 1e-9))
    assert np.all(rdp[usual] <= 1.02 * gaussian[usual])
    assert 0 < lost < 1e-16


def test_what_is_lost_covers_the_chance_of_leaving_the_shared_window():
    for coins, dither, shift in [(256, 3, 10), (64, 3, 40), (16, 2, 5), (1024, 2, 200)]:
        law = DitheredBinomial(coins, dither)
        chances = law.pmf(EVERYWHERE)
        middle, half = (len(chances) - 1) / 2, min(WINDOW * law.sd + shift, len(chances))
        outcomes = np.arange(len(chances))
        shared = (abs(outcomes - middle) <= half) & (abs(outcomes - shift - middle) <= min(half, middle))
        assert law.lost(shift) >= math.fsum(chances[~shared])


@settings(max_examples=25, deadline=None)
@given(
    epsilon=st.floats(0.3, 3.0),
    delta=st.sampled_from([1e-2, 1e-4, 1e-6]),
    angle=st.floats(0, math.pi / 2),
)
def test_two_coordinates_by_brute_force(epsilon, delta, angle):
    """The exact hockey-stick divergence of a whole shift in the plane, at the epsilon that is claimed for delta."""
    release = BinomialGradient.calibrated(Budget(epsilon, delta), times=1, touched=2, adds_up=True)
    small = DitheredBinomial(release.coins, min(release.dither, 3))  # so that the plane of outcomes fits into memory
    scaled = BinomialGradient(1, max(release.sd_per_sensitivity, 2.0), 2, small.coins, small.dither)
    claimed = scaled.cost().epsilon(delta)[0]
    a, b = (math.floor(scaled.shift * part) for part in (math.cos(angle), math.sin(angle)))
    chances = small.pmf(math.ceil(7 * small.sd))
    first, second = (np.stack([chances[s:], chances[: len(chances) - s]]) for s in (a, b))
    P, Q = np.outer(first[0], second[0]), np.outer(first[1], second[1])
    assert np.maximum(P - math.exp(claimed) * Q, 0).sum() <= delta


# -- calibration --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    ("epsilon", "delta", "times", "touched"),
    [(0.5, 1e-3, 100, 123), (0.5, 1e-6, 100, 123), (1, 1e-6, 16, 10_001), (4, 1e-6, 1, 105), (8, 1e-5, 5, 20)],
)
def test_calibration_by_renyi_curves_needs_little_more_noise_than_a_gaussian(epsilon, delta, times, touched, adjacency):
    from thresher.privacy.conversions import zcdp_rho

    release = BinomialGradient.calibrated(Budget(epsilon, delta, adjacency), times, touched, adds_up=True)
    spent, method = release.cost().epsilon(delta)
    assert 0.999 * epsilon < spent <= epsilon
    assert method == "RDP"
    gaussian = math.sqrt(times / (2 * zcdp_rho(epsilon, delta)))
    assert 1 <= release.multiplier / gaussian <= 1.02


def test_no_noise_is_no_option():
    with pytest.raises(ValueError, match="never add up without noise"):
        BinomialGradient.calibrated(Budget(math.inf, 1e-6), 1, 1)
    with pytest.raises(ValueError, match="never add up without noise"):
        BinomialGradient(1, 0.0, 10, 256, 11)


def test_what_is_lost_is_paid_for_in_delta():
    release = BinomialGradient(times=5, sd_per_sensitivity=30.0, coins=64, dither=4, touched=1000)
    cost = release.cost()
    assert cost.lost == pytest.approx(5 * 1000 * release.law.lost(release.shift))
    assert cost.lost > 1e-9
    assert cost.epsilon(cost.lost / 2) == (math.inf, "no currency")
    assert cost.epsilon(cost.lost * 2)[0] < math.inf
    assert (cost + cost).lost == 2 * cost.lost


@pytest.mark.parametrize(("multiplier", "coins", "dither"), [(0.001, 2, 0), (1e-9, 2**14, 20), (0.01, 256, 4)])
def test_shifts_beyond_the_support_have_no_price(multiplier, coins, dither):
    assert BinomialGradient(1, multiplier, 1, coins, dither).cost().epsilon(0.1)[0] == math.inf


def test_fewer_than_no_coordinates_are_refused():
    with pytest.raises(ValueError, match="touched=0"):
        BinomialGradient(1, 1.0, 0, 256, 11)
