"""Bounds from counts, by exact enumeration of all counts: how often each is too high, and that it is not idle."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from thresher.audit.bounds import (
    epsilon_lower,
    gaussian_epsilon_lower,
    mu_lower,
    one_run_epsilon_lower,
    one_run_p_value,
    proportion_lower,
)
from thresher.privacy.conversions import gaussian_delta

EPSILONS = [0.05, 0.5, 1.0, 2.5]
CONFIDENCES = [0.5, 0.9, 0.99]
RUNS = 50


# -- what everything follows from -----------------------------------------------------------------------------------


def exact_delta(p, q, epsilon):
    """The least delta at which p and q are (epsilon, delta)-indistinguishable, in both directions."""
    return max(float(np.sum(np.maximum(a - math.exp(epsilon) * b, 0))) for a, b in ((p, q), (q, p)))


def all_rules(size):
    """Every rule for guessing from one of ``size`` outcomes: 1 for the second data set, -1 for the first, 0 neither."""
    return np.array(list(product([-1, 0, 1], repeat=size)))


def chances(p, q, rules):
    """Of a right and of a wrong guess when a fair coin chooses between p (first) and q (second)."""
    return ((rules == 1) @ q + (rules == -1) @ p) / 2, ((rules == 1) @ p + (rules == -1) @ q) / 2


@pytest.mark.parametrize("seed", range(40))
def test_no_rule_for_guessing_beats_the_inequality(seed):
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(6, rng.choice([0.2, 1.0, 5.0])), size=2)
    right, wrong = chances(p, q, all_rules(6))
    for epsilon in (0.0, 0.1, 0.7, 2.0):
        assert np.all(right <= math.exp(epsilon) * wrong + exact_delta(p, q, epsilon) + 1e-15)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", [0.0, 0.01, 0.3])
def test_a_rule_for_guessing_attains_the_inequality(epsilon, delta):
    """Leaky randomised response, of which every (epsilon, delta)-DP mechanism is a post-processing."""
    told = (1 - delta) / (1 + math.exp(epsilon))
    q = np.array([delta, told * math.exp(epsilon), told, 0.0])
    assert exact_delta(q[::-1], q, epsilon) == pytest.approx(delta, abs=1e-15)
    right, wrong = chances(q[::-1], q, all_rules(4))
    guessed = right + wrong > 0
    assert np.max((right - math.exp(epsilon) * wrong)[guessed]) == pytest.approx(delta, abs=1e-15)


# -- a proportion ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [1e-6, 0.01, 0.5])
def test_a_proportion_is_bounded_by_the_quantile_of_a_beta_law(error):
    for trials in (1, 7, 1000):
        successes = np.arange(1, trials + 1)
        expected = stats.beta.ppf(error, successes, trials - successes + 1)
        np.testing.assert_allclose(proportion_lower(successes, trials, error), expected, rtol=1e-9)


@pytest.mark.parametrize("error", [1e-6, 0.01, 0.5])
@pytest.mark.parametrize(("successes", "trials"), [(1, 1), (3, 20), (20, 20), (700, 1000)])
def test_a_proportion_at_its_bound_gives_as_many_successes_with_just_that_error(successes, trials, error):
    bound = float(proportion_lower(successes, trials, error))
    assert stats.binom.sf(successes - 1, trials, bound) == pytest.approx(error, rel=1e-8)


@pytest.mark.parametrize("trials", [1, 12, 60])
def test_a_proportion_is_above_its_bound_as_often_as_stated(trials):
    successes = np.arange(trials + 1)
    too_high = [
        float(np.sum(stats.binom.pmf(successes, trials, p)[proportion_lower(successes, trials, 0.1) > p]))
        for p in np.linspace(0.001, 0.999, 997)
    ]
    assert max(too_high) <= 0.1
    assert max(too_high) > 0.09


def test_without_trials_or_successes_a_proportion_may_be_zero():
    np.testing.assert_array_equal(proportion_lower(np.array([0, 0]), np.array([0, 30]), 0.01), [0, 0])


# -- epsilon --------------------------------------------------------------------------------------------------------


def all_counts(runs):
    right, wrong = np.meshgrid(np.arange(runs + 1), np.arange(runs + 1))
    possible = right + wrong <= runs
    return right[possible], wrong[possible]


def chance_of_too_high(epsilon, delta, guessed, confidence, runs=RUNS):
    """That the bound exceeds ``epsilon``, of a mechanism with c = e^epsilon w + delta and c + w = ``guessed``."""
    wrong_chance = (guessed - delta) / (1 + math.exp(epsilon))
    right, wrong = all_counts(runs)
    counts = np.column_stack([right, wrong, runs - right - wrong])
    law = stats.multinomial.pmf(counts, runs, [guessed - wrong_chance, wrong_chance, 1 - guessed])
    assert law.sum() == pytest.approx(1, abs=1e-9)
    return float(law[epsilon_lower(right, wrong, runs, delta, confidence) > epsilon].sum())


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.01, 0.1])
def test_the_bound_on_epsilon_is_too_high_no_more_often_than_stated(delta, confidence):
    """Exactly: a sum over all counts, for mechanisms at the very edge of their claim."""
    error = 1 - confidence
    found = [
        chance_of_too_high(epsilon, delta, guessed, confidence)
        for epsilon in EPSILONS
        for guessed in (0.15, 0.5, 0.9, 1.0)
    ]
    assert max(found) <= error
    assert max(found) > error / 10


def test_the_bound_on_epsilon_is_almost_exact_without_delta():
    """A finer grid of epsilons comes within a tenth of the stated error, so nothing is given away."""
    found = [chance_of_too_high(epsilon, 0.0, 1.0, 0.9, runs=30) for epsilon in np.linspace(0.01, 2.5, 250)]
    assert 0.09 < max(found) <= 0.1


def bounds_of_all_counts(delta, confidence):
    right, wrong = all_counts(RUNS)
    table = np.full((RUNS + 1, RUNS + 1), np.nan)
    table[right, wrong] = epsilon_lower(right, wrong, RUNS, delta, confidence)
    return table


@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.05])
def test_more_right_guesses_raise_the_bound_and_more_wrong_ones_lower_it(delta):
    table = bounds_of_all_counts(delta, 0.95)
    more_right, more_wrong = np.diff(table, axis=0), np.diff(table, axis=1)
    assert np.all(more_right[~np.isnan(more_right)] >= 0)
    assert np.all(more_wrong[~np.isnan(more_wrong)] <= 0)
    assert np.nanmax(table) == table[RUNS, 0] > 2


def test_a_larger_delta_or_confidence_lowers_the_bound():
    by_delta = [bounds_of_all_counts(delta, 0.95) for delta in (0.0, 1e-9, 1e-3, 0.05, 0.5)]
    by_confidence = [bounds_of_all_counts(0.01, confidence) for confidence in (0.5, 0.9, 0.99, 0.9999)]
    for tables in (by_delta, by_confidence):
        for higher, lower in pairwise(tables):
            assert np.all((higher >= lower) | np.isnan(higher))
            assert np.any(higher > lower)


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_no_guesses_and_wrong_guesses_disprove_nothing(delta):
    assert float(epsilon_lower(0, 0, 100, delta, 0.9)) == 0
    assert float(epsilon_lower(0, 100, 100, delta, 0.9)) == 0
    assert float(epsilon_lower(50, 50, 100, delta, 0.9)) == 0


def test_right_guesses_only_by_hand():
    p = 0.01 ** (1 / 200)
    assert float(epsilon_lower(200, 0, 1000, 0.0, 0.99)) == pytest.approx(math.log(p / (1 - p)), rel=1e-9)
    p, often = 0.009 ** (1 / 200), 0.001 ** (1 / 200)
    expected = math.log((p - 0.1 / often) / (1 - p))
    assert float(epsilon_lower(200, 0, 200, 0.1, 0.99)) == pytest.approx(expected, rel=1e-9)


def test_a_delta_that_could_explain_all_guesses_leaves_no_epsilon():
    assert float(epsilon_lower(10, 0, 1000, 0.02, 0.9)) == 0
    p, often = 0.09 ** (1 / 10), stats.beta.ppf(0.01, 10, 991)
    expected = math.log((p - 0.001 / often) / (1 - p))
    assert float(epsilon_lower(10, 0, 1000, 0.001, 0.9)) == pytest.approx(expected, rel=1e-9)
    assert expected > 0


def test_bounds_of_many_counts_are_those_of_each():
    right, wrong = all_counts(8)
    together = epsilon_lower(right, wrong, 8, 0.01, 0.8)
    each = [float(epsilon_lower(int(r), int(w), 8, 0.01, 0.8)) for r, w in zip(right, wrong, strict=True)]
    np.testing.assert_array_equal(together, each)


# -- mu -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_the_bound_on_mu_is_too_high_no_more_often_than_stated(confidence):
    """Exactly, for the best attacker on N(0, 1) against N(mu, 1), who is right with chance Phi(mu/2)."""
    runs = 100
    bounds = np.array([mu_lower(right, runs, confidence) for right in range(runs + 1)])
    found = [
        float(stats.binom.pmf(np.arange(runs + 1), runs, stats.norm.cdf(mu / 2))[bounds > mu].sum())
        for mu in np.linspace(0.01, 4, 400)
    ]
    assert max(found) <= 1 - confidence
    assert max(found) > 0.9 * (1 - confidence)
    assert np.all(np.diff(bounds) >= 0)


def test_the_bound_on_mu_by_hand():
    assert mu_lower(0, 100, 0.99) == mu_lower(50, 100, 0.99) == 0
    assert mu_lower(100, 100, 0.99) == pytest.approx(2 * stats.norm.ppf(0.01**0.01), rel=1e-9)
    assert mu_lower(80, 100, 0.9) > mu_lower(80, 100, 0.99) > mu_lower(79, 100, 0.99) > 0


@pytest.mark.parametrize("delta", [1e-8, 1e-3])
def test_epsilon_of_a_gaussian_release_lies_on_the_exact_curve_of_its_mu(delta):
    epsilon, mu = gaussian_epsilon_lower(850, 1000, delta, 0.99)
    assert mu == mu_lower(850, 1000, 0.99) > 1
    assert gaussian_delta(mu, epsilon) == pytest.approx(delta, rel=1e-6)
    assert gaussian_epsilon_lower(500, 1000, delta, 0.99) == (0.0, 0.0)


# -- one run --------------------------------------------------------------------------------------------------------


def summed_p_value(right, guesses, canaries, epsilon, delta):
    """Corollary 5.4 of Steinke, Nasr and Jagielski, term by term."""
    law = stats.binom.pmf(np.arange(guesses + 1), guesses, expit(epsilon))
    near = [law[max(right - i, 0) : right].sum() / i for i in range(1, canaries + 1)]
    return min(1.0, law[right:].sum() + 2 * delta * canaries * max(near))


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.01])
@pytest.mark.parametrize(("guesses", "canaries"), [(1, 1), (10, 40), (60, 60)])
def test_the_p_value_of_one_run_is_its_sum(epsilon, delta, guesses, canaries):
    for right in range(guesses + 1):
        expected = summed_p_value(right, guesses, canaries, epsilon, delta)
        assert one_run_p_value(right, guesses, canaries, epsilon, delta) == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_the_published_p_value_of_one_run():
    assert one_run_p_value(75, 100, 100, math.log(3), 0.0) == pytest.approx(0.553, abs=5e-4)


@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-3, 0.02])
def test_the_p_value_of_one_run_rises_with_epsilon(delta):
    """Or the search for the epsilon at which it crosses the error would find the wrong place."""
    for right in (30, 60, 75, 100):
        values = [one_run_p_value(right, 100, 200, epsilon, delta) for epsilon in np.linspace(0, 12, 300)]
        assert np.all(np.diff(values) >= -1e-12)


@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-4])
@pytest.mark.parametrize("right", [68, 80, 99, 100])
def test_the_bound_of_one_run_is_where_its_p_value_crosses_the_error(right, delta):
    bound = one_run_epsilon_lower(right, 100, 200, delta, 0.95)
    assert bound > 0
    assert one_run_p_value(right, 100, 200, bound * (1 - 1e-6), delta) <= 0.05
    assert one_run_p_value(right, 100, 200, bound * (1 + 1e-6), delta) > 0.05


def test_one_run_without_evidence_has_no_bound():
    assert one_run_epsilon_lower(0, 100, 100, 0.0, 0.95) == 0
    assert one_run_epsilon_lower(55, 100, 100, 0.0, 0.95) == 0
    assert one_run_epsilon_lower(100, 100, 1000, 0.1, 0.95) == 0  # delta alone may give away every canary


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("delta", [0.0, 1e-4])
def test_the_bound_of_one_run_is_too_high_no_more_often_than_stated(delta, confidence):
    """Exactly, for canaries that each go through (leaky) randomised response of their own."""
    guesses, found = 80, []
    bounds = np.array([one_run_epsilon_lower(k, guesses, guesses, delta, confidence) for k in range(guesses + 1)])
    for epsilon in np.linspace(0.05, 2.5, 50):
        right = (math.exp(epsilon) + delta) / (1 + math.exp(epsilon))
        found.append(float(stats.binom.pmf(np.arange(guesses + 1), guesses, right)[bounds > epsilon].sum()))
    assert max(found) <= 1 - confidence
    assert max(found) > (1 - confidence) / 2
