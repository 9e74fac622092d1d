"""Whole-number noise as Gaussian noise: the theorems of docs/federated.md against exact hockey-stick divergences."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import pytest
from scipy.signal import fftconvolve
from scipy.special import ive, ndtr, ndtri

from thresher.privacy.budget import Budget
from thresher.privacy.conversions import gaussian_delta, gaussian_mu
from thresher.privacy.laws.dithered_binomial import DitheredBinomial
from thresher.privacy.laws.skellam import Skellam, integer_l1
from thresher.privacy.laws.unit_steps import binomial_steps
from thresher.privacy.releases import BinomialGradient, SkellamGradient

EVERYWHERE = 10**9
LAWS = [(128, 3), (256, 3), (256, 5), (1024, 2), (4096, 1), (256, 8), (1024, 7), (4096, 6)]
EXCESSES = [1e-4, 1e-6, 1e-9, 1e-12]


def divergence(chances, shift, y):
    """sup over all events of their chance one way less e^y times that the other way."""
    moved, kept = np.concatenate([np.zeros(shift), chances]), np.concatenate([chances, np.zeros(shift)])
    return float(np.maximum(moved - math.exp(y) * kept, 0.0).sum())


def gaussian(mu, y):
    """The same of N(mu,1) against N(0,1)."""
    return gaussian_delta(mu, y) if y >= 0 else -math.expm1(y) + math.exp(y) * gaussian_delta(mu, -y)


def best_test(chances):
    """Chances of the best tests of a step of one, and what each gains, the likeliest outcomes first."""
    kept, moved = np.append(chances, 0.0), np.append(0.0, chances)
    kept, moved = (each[(kept > 1e-290) | (moved > 1e-290)] for each in (kept, moved))
    with np.errstate(divide="ignore"):
        order = np.argsort(-(moved / kept), kind="stable")
    return np.cumsum(kept[order]), np.cumsum((moved - kept)[order])


# -- Theorem 2: dithered binomial noise ---------------------------------------------------------------------------


@pytest.mark.parametrize("excess", EXCESSES)
@pytest.mark.parametrize(("coins", "dither"), LAWS)
def test_no_test_of_a_step_of_one_has_more_power_than_said(coins, dither, excess):
    """At every end of a chord of its power, which is concave as the bound is: hence at every level."""
    law = DitheredBinomial(coins, dither)
    distance = binomial_steps(law).distance(excess / law.sd)
    chances, gains = best_test(law.pmf(EVERYWHERE))
    usual = chances < 0.99  # the other end by reflection, without the round-off of chances near 1
    allowed = ndtr(ndtri(chances[usual]) + distance) - chances[usual]
    assert np.all(gains[usual] <= allowed + excess / law.sd + 1e-14)


@pytest.mark.parametrize("excess", EXCESSES[:3])
@pytest.mark.parametrize(("coins", "dither"), LAWS[-3:])
def test_a_little_less_distance_would_not_do(coins, dither, excess):
    law = DitheredBinomial(coins, dither)
    distance = binomial_steps(law).distance(excess / law.sd)
    chances, gains = best_test(law.pmf(EVERYWHERE))
    lower = chances < 0.5
    allowed = ndtr(ndtri(chances[lower]) + distance * (1 - 2e-3)) - chances[lower]
    assert np.any(gains[lower] > allowed + excess / law.sd)


@pytest.mark.parametrize(("coins", "dither", "finer"), [(256, 8, 12), (1024, 8, 11), (4096, 7, 10)])
def test_blocks_of_outcomes_bound_single_ones_closely(coins, dither, finer):
    """In units of the sd a law hardly depends on the dither: single outcomes there, blocks of 2 to 8 here."""
    single, blocks = (DitheredBinomial(coins, k) for k in (dither, finer))
    for excess in EXCESSES:
        one, many = (binomial_steps(law).distance(excess / law.sd) * law.sd for law in (single, blocks))
        assert many == pytest.approx(one, rel=2e-3)
    chances, gains = best_test(blocks.pmf(EVERYWHERE))
    lower = (chances > 1e-12) & (chances < 0.5)
    bound = np.interp(chances[lower], binomial_steps(blocks).chances, binomial_steps(blocks).gains)
    assert np.all(gains[lower] <= bound * (1 + 1e-9))
    assert np.all(bound <= gains[lower] * (1 + 3e-3))


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize(("coins", "dither"), [(256, 4), (256, 6), (1024, 5)])
def test_shifts_are_hidden_as_by_gaussian_noise_but_for_a_small_chance(coins, dither, sign):
    """Every shift up to the sd: the profile of the law against that of Gaussians with a part of delta."""
    law = DitheredBinomial(coins, dither)
    steps, lost = binomial_steps(law), 1e-5
    most = math.floor(law.sd)
    distance = steps.distance(steps.excess(lost, most, most))
    assert 1 < distance * law.sd < 1.1
    chances = law.pmf(EVERYWHERE)
    for shift in {1, 2, 3, most // 2, most - 1, most}:
        told = lost * shift / most
        for y in sign * np.linspace(0, 4, 9) * shift / law.sd * 1.5:
            bound = told + (1 - told) * gaussian(distance * shift, y)
            assert divergence(chances, shift, y) <= bound


def test_a_law_without_dither_that_is_shifted_by_less_than_a_coin_is_told_at_once():
    """The theorem is about steps of the grid: a binomial on every 8th number has no distance of a step."""
    chances = np.zeros(8 * 257)
    chances[::8] = DitheredBinomial(256, 0).pmf(EVERYWHERE)
    assert divergence(chances, 1, 3.0) == pytest.approx(1)


def test_the_excess_of_all_steps_takes_no_more_than_is_set_aside():
    law = DitheredBinomial(256, 6)
    steps = binomial_steps(law)
    for shift, total, lost in [(0.1 * law.sd, 1e4, 1e-8), (law.sd, 1e6, 1e-10), (2 * law.sd, 1e3, 1e-6)]:
        excess = steps.excess(lost, shift, total)
        mu = steps.distance(excess) * shift
        if mu < math.inf:
            paid = total * ndtr(ndtri(excess) + mu) / (2 * ndtr(-mu / 2))
            assert 0.05 * lost < paid <= lost


def test_where_a_step_is_hidden_badly_there_is_no_distance():
    assert binomial_steps(DitheredBinomial(2, 0)).distance(1e-9) == math.inf
    assert binomial_steps(DitheredBinomial(256, 4)).distance(1e-300) == math.inf


# -- Theorem 3: Skellam noise -------------------------------------------------------------------------------------


@lru_cache
def skellam(variance):
    """The chances of -reach .. reach: scaled Bessel functions."""
    reach = int(12 * math.sqrt(variance)) + 60
    return ive(np.abs(np.arange(-reach, reach + 1)), variance)


@pytest.mark.parametrize("variance", [3.0, 4.0, 10.0, 100.0, 1e4])
def test_neighbouring_chances_of_skellam_noise_are_as_flat_as_said(variance):
    chances = skellam(variance)
    assert chances.sum() == pytest.approx(1, abs=1e-12)
    usual = chances[1:-1] > 1e-250
    flatness = (chances[:-2] * chances[2:] / chances[1:-1] ** 2)[usual]
    assert np.all(flatness >= 1 - 1 / math.sqrt(variance**2 - 1) - 1e-13)
    assert np.min(flatness) <= 1 - 0.8 / variance


@pytest.mark.parametrize("variance", [3.0, 4.0, 10.0, 100.0, 1e4])
def test_normal_scores_of_skellam_noise_are_no_farther_apart_than_said(variance):
    chances, distance = skellam(variance), Skellam(variance).distance
    scores = ndtri(np.cumsum(chances[: len(chances) // 2 + 1]))
    steps = np.diff(scores[scores > -11])
    assert np.all(steps <= distance * (1 + 1e-12))
    assert steps.max() >= distance * (1 - 0.5 / variance)
    assert 1 < distance * math.sqrt(variance) < 1 + 0.7 / variance
    flatness = 1 - 1 / math.sqrt(variance**2 - 1)
    assert distance**2 - distance**4 / 4 == pytest.approx(-math.log(flatness), rel=1e-9)


@pytest.mark.parametrize("variance", [3.0, 10.0, 100.0, 1e4])
@pytest.mark.parametrize("part", [0.01, 0.3, 1.0, 3.0])
def test_shifts_are_hidden_as_by_gaussian_noise(variance, part):
    shift = max(1, round(part * math.sqrt(variance)))
    mu = Skellam(variance).distance * shift
    for y in np.linspace(-3, 5, 17) * mu:
        assert divergence(skellam(variance), shift, y) <= gaussian(mu, y) * (1 + 1e-12) + 1e-14


def test_too_little_skellam_noise_has_no_price():
    assert Skellam(2.9).distance == math.inf
    assert SkellamGradient(1, 0.5, 1, variance=2).cost().epsilon(1e-6)[0] == math.inf


# -- what releases cost --------------------------------------------------------------------------------------------

JOINT = [
    BinomialGradient(4, 4.0, 2, 256, 5, aside=1e-5),
    BinomialGradient(2, 3.0, 3, 1024, 4, aside=1e-6),
    SkellamGradient(3, 5.0, 2, variance=40_000),
]


@pytest.mark.parametrize("release", JOINT, ids=repr)
@pytest.mark.parametrize("spread", ["in one", "even", "uneven"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5])
def test_all_uses_against_the_exact_divergence_of_vectors(release, spread, epsilon):
    """Losses of all coordinates of all uses, convolved on a fine grid and rounded to nearest."""
    law = release.law
    chances = law.pmf(EVERYWHERE) if isinstance(law, DitheredBinomial) else skellam(float(law.variance))
    shares = {"in one": [1.0], "even": [1.0, 1.0], "uneven": [1.0, 0.3]}[spread]
    shifts = [math.floor(release.shift * share / math.hypot(*shares)) for share in shares]
    step = 5e-3
    total, low, sure = np.array([1.0]), 0, 0.0
    for shift in shifts * release.times:
        moved, kept = chances[:-shift], chances[shift:]
        both = (moved > 0) & (kept > 0)
        losses = np.round(np.log(moved[both] / kept[both]) / step).astype(int)
        sure += chances[-shift:].sum()
        each = np.bincount(losses - losses.min(), weights=moved[both])
        total, low = fftconvolve(total, each), low + losses.min()
    losses = step * (low + np.arange(len(total)))
    exact = np.sum(total * -np.expm1(np.minimum(epsilon - losses, 0.0)))
    assert exact <= release.cost().deltas(np.array([epsilon]))[0] + release.cost().lost + sure + 1e-3 * exact
    assert exact >= 0.25 * release.cost().deltas(np.array([epsilon]))[0] or spread != "in one" or epsilon > 1


def test_the_price_is_that_of_gaussian_noise_and_of_what_is_set_aside():
    binomial = BinomialGradient(5, 20.0, 7, 256, 9, aside=1e-8)
    steps = binomial_steps(binomial.law)
    total = 5 * integer_l1(binomial.shift, 7)
    mu = steps.distance(steps.excess(1e-8, binomial.shift, total)) * binomial.shift
    cost = binomial.cost()
    assert (cost.mu_squared, cost.lost) == (pytest.approx(5 * mu**2), 1e-8)
    assert cost.epsilon(1e-6)[1] == "exact Gaussian curve"
    assert cost.epsilon(1e-8)[0] == math.inf
    shared = SkellamGradient(5, 20.0, 7, variance=10**6)
    assert shared.cost().mu_squared == pytest.approx(5 * shared.shift**2 / 10**6, rel=1e-5)
    assert shared.cost().lost == 0


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-6), (3.0, 1e-6), (1.0, 1e-9), (8.0, 1e-5), (20.0, 1e-6)]
)
@pytest.mark.parametrize(("times", "touched"), [(1, 1), (40, 124), (1500, 100)])
def test_calibration_fills_the_budget_at_little_more_than_a_gaussians_noise(epsilon, delta, times, touched):
    for kind, most in ((BinomialGradient, 1.07), (SkellamGradient, 1.0075)):
        release = kind.calibrated(Budget(epsilon, delta), times, touched)
        assert 0.999 * epsilon < release.cost().epsilon(delta)[0] <= epsilon
        assert 1 < release.multiplier * gaussian_mu(epsilon, delta) / math.sqrt(times) <= most


def test_with_a_ledger_no_part_of_delta_is_set_aside():
    release = BinomialGradient.calibrated(Budget(1.0, 1e-6), 10, 5, adds_up=True)
    assert release.aside == 0
    assert release.cost().epsilon(1e-6)[1] == "RDP"


@pytest.mark.parametrize("aside", [-0.1, 1.0, math.nan])
def test_a_part_of_delta_that_is_none_is_refused(aside):
    with pytest.raises(ValueError, match="aside="):
        BinomialGradient(1, 2.0, 3, 256, 4, aside=aside)
