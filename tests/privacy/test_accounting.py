"""The accountant against independent oracles: mpmath, OpenDP, dp-accounting, and the numbers of the errata."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from thresher.privacy.accounting import ORDERS, Cost
from thresher.privacy.budget import Budget
from thresher.privacy.conversions import (
    choice_epsilon,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    rdp_epsilon,
    zcdp_epsilon,
    zcdp_rho,
)
from thresher.privacy.releases import GaussianGradient
from thresher.privacy.sensitivity import gradient_sensitivity

EPSILONS = [1e-3, 1e-2, 0.1, 0.5, 1, 2, 8, 20, 50]
DELTAS = [1e-12, 1e-9, 1e-6, 1e-5, 1e-3, 1e-2, 0.1]
BUDGETS = list(itertools.product(EPSILONS, DELTAS))
RHOS = [1e-6, 1e-4, 1e-2, 0.1, 1, 10, 100]


def log_uniform(low, high):
    return st.floats(math.log(low), math.log(high)).map(math.exp)


def for_all(*values):
    return lambda test: settings(deadline=None)(given(*values)(test))


epsilons = log_uniform(1e-3, 50)
deltas = log_uniform(1e-12, 0.1)
rhos = log_uniform(1e-12, 1e4)
mus = log_uniform(1e-4, 20)
growths = st.floats(1.001, 10)

# -- oracles ------------------------------------------------------------------------------------------------------


def exact_delta(mu, epsilon):
    """Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu) to 60 digits (mpmath is a dependency of dp-accounting)."""
    with mpmath.workdps(60):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        shift = epsilon / mu
        return mpmath.ncdf(mu / 2 - shift) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - shift)


def brute_force_zcdp_epsilon(rho, delta):
    """min over a dense grid of orders of rho a + log(1-1/a) - (log delta + log a)/(a-1) (errata, part 3b)."""
    alpha = 1 + np.geomspace(1e-7, 1e9, 400_000)
    curve = rho * alpha + np.log1p(-1 / alpha) - (math.log(delta) + np.log(alpha)) / (alpha - 1)
    return max(0.0, float(curve.min()))


@pytest.fixture(scope="module")
def opendp_zcdp_epsilon():
    """OpenDP's conversion of a Gaussian measurement that is rho-zCDP.

    It inverts delta(eps) = inf_a exp((a-1)(a rho - eps) + a log(1-1/a))/(a-1) (Canonne, Kamath, Steinke 2020) with
    searches of its own: the same theorem as ours, reached from the other side.
    """
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib", "idealized-numerics")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)

    def epsilon(rho, delta):
        measurement = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=1 / math.sqrt(2 * rho)))
        return measurement.map(1.0).epsilon(delta)

    return epsilon


@pytest.fixture(scope="module")
def google():
    return pytest.importorskip("dp_accounting")


def relation(google, adjacency):
    relations = google.NeighboringRelation
    return {"replace-one": relations.REPLACE_ONE, "add-remove": relations.ADD_OR_REMOVE_ONE}[adjacency]


# -- (a) the Gaussian curve ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_gaussian_mu_is_private_by_the_exact_curve_and_wastes_nothing(epsilon, delta):
    true = float(exact_delta(gaussian_mu(epsilon, delta), epsilon) / mpmath.mpf(delta))
    assert 1 - 1e-9 < true <= 1


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_gaussian_delta_agrees_with_mpmath_to_ten_digits(epsilon, delta):
    for mu in gaussian_mu(epsilon, delta) * np.array([0.9, 1.0, 1.1, 3.0]):
        assert gaussian_delta(mu, epsilon) == pytest.approx(float(exact_delta(mu, epsilon)), rel=1e-10)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_gaussian_epsilon_inverts_the_exact_curve(epsilon, delta):
    """At the exact delta of a pair (mu, epsilon), epsilon comes back, and never less by more than round-off."""
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_epsilon(mu, float(exact_delta(mu, epsilon))) == pytest.approx(epsilon, rel=1e-9)


@for_all(epsilons, deltas)
def test_the_round_trip_from_epsilon_to_mu_and_back_is_conservative_and_tight(epsilon, delta):
    """Calibrated mu steps inside by 5e-12 of itself, which is 5e-12 mu in epsilon, however small that is."""
    mu = gaussian_mu(epsilon, delta)
    assert epsilon * (1 - 1e-9) - 5e-12 * mu <= gaussian_epsilon(mu, delta) <= epsilon


@for_all(epsilons, deltas, growths)
def test_gaussian_mu_increases_with_epsilon_and_with_delta(epsilon, delta, growth):
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_mu(epsilon * growth, delta) > mu
    assert gaussian_mu(epsilon, min(0.9, delta * growth)) > mu


@for_all(mus, deltas, growths)
def test_gaussian_epsilon_increases_with_mu_and_decreases_with_delta(mu, delta, growth):
    epsilon = gaussian_epsilon(mu, delta)
    assert gaussian_epsilon(mu * growth, delta) >= epsilon
    assert gaussian_epsilon(mu, min(0.9, delta * growth)) <= epsilon


@for_all(mus, st.floats(0, 50))
def test_gaussian_delta_is_a_probability(mu, epsilon):
    assert 0 <= gaussian_delta(mu, epsilon) <= 1


@for_all(mus)
def test_gaussian_delta_at_epsilon_zero_is_the_total_variation_distance(mu):
    assert gaussian_delta(mu, 0.0) == pytest.approx(math.erf(mu / math.sqrt(8)), rel=1e-10)


def test_the_curve_at_its_ends():
    assert gaussian_delta(0.0, 1.0) == 0.0
    assert gaussian_delta(math.inf, 1.0) == 1.0
    assert gaussian_epsilon(0.0, 1e-6) == 0.0
    assert gaussian_epsilon(math.inf, 1e-6) == math.inf
    assert gaussian_mu(math.inf, 1e-6) == math.inf


def test_a_release_harder_to_see_than_delta_costs_epsilon_zero():
    mu = 0.02
    total_variation = math.erf(mu / math.sqrt(8))
    assert gaussian_epsilon(mu, total_variation * 1.001) == 0.0
    assert gaussian_epsilon(mu, total_variation * 0.999) > 0.0


@pytest.mark.parametrize("mu", [1e-300, 1e-12, 1e4, 1e150, 1e200])
def test_the_curve_does_not_overflow_or_warn_far_outside_its_range(mu):
    epsilon = gaussian_epsilon(mu, 1e-6)
    assert epsilon == math.inf or gaussian_delta(mu, epsilon) <= 1e-6


# -- (b) zCDP -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("rho", [*RHOS, 1e-12, 1e4])
def test_zcdp_epsilon_agrees_with_opendp(opendp_zcdp_epsilon, rho, delta):
    assert zcdp_epsilon(rho, delta) == pytest.approx(opendp_zcdp_epsilon(rho, delta), rel=1e-12)


@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
@pytest.mark.parametrize("rho", RHOS)
def test_zcdp_epsilon_is_the_minimum_over_orders(rho, delta):
    brute = brute_force_zcdp_epsilon(rho, delta)
    assert brute * (1 - 1e-7) <= zcdp_epsilon(rho, delta) <= brute * (1 + 1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_zcdp_rho_is_private_by_opendp_and_wastes_nothing(opendp_zcdp_epsilon, epsilon, delta):
    assert opendp_zcdp_epsilon(zcdp_rho(epsilon, delta), delta) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_the_round_trip_from_epsilon_to_rho_and_back_is_conservative_and_tight(epsilon, delta):
    back = zcdp_epsilon(zcdp_rho(epsilon, delta), delta)
    assert epsilon * (1 - 1e-9) <= back <= epsilon


@for_all(rhos, deltas)
def test_zcdp_epsilon_lies_between_the_exact_gaussian_and_the_bun_steinke_bound(rho, delta):
    epsilon = zcdp_epsilon(rho, delta)
    assert gaussian_epsilon(math.sqrt(2 * rho), delta) <= epsilon
    assert epsilon <= rho + 2 * math.sqrt(rho * math.log(1 / delta))


@for_all(rhos, deltas, growths)
def test_zcdp_epsilon_increases_with_rho_and_decreases_with_delta(rho, delta, growth):
    epsilon = zcdp_epsilon(rho, delta)
    assert zcdp_epsilon(rho * growth, delta) >= epsilon
    assert zcdp_epsilon(rho, min(0.9, delta * growth)) <= epsilon * (1 + 1e-12)


def test_zcdp_at_its_ends():
    assert zcdp_epsilon(0.0, 1e-6) == 0.0
    assert zcdp_epsilon(math.inf, 1e-6) == math.inf
    assert zcdp_rho(math.inf, 1e-6) == math.inf


@pytest.mark.parametrize("function", [gaussian_epsilon, gaussian_mu, zcdp_epsilon, zcdp_rho])
@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, math.nan])
def test_a_delta_outside_0_to_1_is_refused(function, delta):
    with pytest.raises(ValueError, match="delta="):
        function(1.0, delta)


@pytest.mark.parametrize("function", [gaussian_mu, zcdp_rho])
@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan])
def test_calibrating_to_no_epsilon_is_refused(function, epsilon):
    with pytest.raises(ValueError, match="epsilon="):
        function(epsilon, 1e-6)


# -- RDP ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [1e-12, 1e-5, 1e-2])
@pytest.mark.parametrize("rho", [1e-3, 0.1, 5.0])
def test_rdp_epsilon_agrees_with_dp_accounting(google, rho, delta):
    epsilon, _ = google.rdp.compute_epsilon(ORDERS, rho * ORDERS, delta)
    assert rdp_epsilon(ORDERS, rho * ORDERS, delta) == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("rho", [1e-6, 1e-3, 0.1, 5.0, 100])
def test_a_finite_set_of_orders_costs_at_least_the_minimum_and_little_more(rho, delta):
    continuous = zcdp_epsilon(rho, delta)
    assert continuous <= rdp_epsilon(ORDERS, rho * ORDERS, delta) <= continuous * 1.002 + 1e-4


# -- (c) Gaussian plans against dp-accounting, adjacency by adjacency ---------------------------------------------


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("epsilon", "delta", "times"), [(1, 1e-5, 1), (2, 1e-6, 10), (8, 1e-5, 40)])
def test_planned_gradient_noise_is_what_pld_asks_for(google, epsilon, delta, times, adjacency):
    """PLDAccountant knows the adjacency and doubles the sensitivity of replace-one itself, so it takes sd over the
    norm of one row's contribution to the mean, clip/n; our factor comes from gradient_sensitivity alone."""
    clip, n = 3.0, 500
    budget = Budget(epsilon, delta, adjacency)
    release = GaussianGradient.calibrated(budget, times)
    sd = release.multiplier * gradient_sensitivity(clip, n, budget.adjacency)
    accountant = google.pld.PLDAccountant(relation(google, adjacency))
    accountant.compose(google.GaussianDpEvent(sd / (clip / n)), times)
    assert accountant.get_epsilon(delta) == pytest.approx(epsilon, rel=1e-4)


@pytest.mark.parametrize(("epsilon", "delta", "times"), [(1, 1e-5, 1), (2, 1e-6, 10), (8, 1e-5, 40)])
def test_planned_gradient_noise_is_within_rdp_once_the_sensitivity_is_doubled_by_hand(google, epsilon, delta, times):
    """RDP overstates a Gaussian by up to about 10 %, so the exact plan costs between 1 and 1.15 epsilon there."""
    clip, n = 3.0, 500
    budget = Budget(epsilon, delta, "replace-one")
    release = GaussianGradient.calibrated(budget, times)
    sd = release.multiplier * gradient_sensitivity(clip, n, budget.adjacency)
    accountant = google.rdp.RdpAccountant(neighboring_relation=google.NeighboringRelation.REPLACE_ONE)
    accountant.compose(google.GaussianDpEvent(sd / (2 * clip / n)), times)
    assert epsilon < accountant.get_epsilon(delta) < 1.15 * epsilon


def test_the_trap_rdp_of_dp_accounting_ignores_replace_one(google):
    """dp-accounting 0.6.0 (google/differential-privacy issue 378): if this fails, the trap is gone; update errata."""

    def epsilon(accountant):
        return accountant.compose(google.GaussianDpEvent(4.0)).get_epsilon(1e-5)

    replace, add = relation(google, "replace-one"), relation(google, "add-remove")
    rdp = google.rdp.RdpAccountant
    assert epsilon(rdp(neighboring_relation=replace)) == epsilon(rdp(neighboring_relation=add))
    assert epsilon(google.pld.PLDAccountant(replace)) == pytest.approx(gaussian_epsilon(2 / 4, 1e-5), rel=1e-6)
    assert epsilon(google.pld.PLDAccountant(add)) == pytest.approx(gaussian_epsilon(1 / 4, 1e-5), rel=1e-6)


# -- (d) the numbers quoted in the errata -------------------------------------------------------------------------


def printed_rho(epsilon, delta):
    """Bun and Steinke's conversion, which the papers calibrate with."""
    return (math.sqrt(math.log(1 / delta) + epsilon) - math.sqrt(math.log(1 / delta))) ** 2


@pytest.mark.parametrize(
    ("claimed", "delta", "really"),
    [(2, 0.01, 1.86), (4, 0.01, 4.30), (10, 0.01, 12.66), (0.8, 1e-5, 0.85), (2, 1e-5, 2.29), (8, 1e-5, 10.30)],
)
def test_erratum_1_the_printed_noise_of_dp_ight(claimed, delta, really):
    """sigma^2 = T G^2/(n^2 rho) with replace-one sensitivity 2G/n: mu^2 = T (2G/n)^2/sigma^2 = 4 rho."""
    assert gaussian_epsilon(math.sqrt(4 * printed_rho(claimed, delta)), delta) == pytest.approx(really, abs=0.005)


@pytest.mark.parametrize(
    ("claimed", "delta", "really"),
    [
        *[(2, 0.01, 5.4), (4, 0.01, 14.9), (6, 0.01, 27.8), (8, 0.01, 44.3), (10, 0.01, 64.2)],
        *[(2, 1e-5, 5.3), (4, 1e-5, 12.3), (6, 1e-5, 20.7), (8, 1e-5, 30.5), (10, 1e-5, 41.8)],
    ],
)
def test_erratum_2_the_printed_logistic_noise(claimed, delta, really):
    """sigma^2 = T K^2 log(1/delta)/(n^2 eps^2): mu^2 = 4 eps^2/log(1/delta)."""
    mu = 2 * claimed / math.sqrt(math.log(1 / delta))
    assert gaussian_epsilon(mu, delta) == pytest.approx(really, abs=0.05)


@pytest.mark.parametrize(
    ("epsilon", "delta", "sd"),
    [(1, 1e-5, 7.46), (2, 1e-5, 3.99), (8, 1e-5, 1.200), (2, 0.01, 2.23), (8, 0.01, 0.82)],
)
def test_erratum_1_exact_noise_in_units_of_clip_sqrt_rounds_over_n(epsilon, delta, sd):
    clip, rounds, n = 2.0, 9, 100
    budget = Budget(epsilon, delta, "replace-one")
    needed = GaussianGradient.calibrated(budget, rounds).multiplier * gradient_sensitivity(clip, n, budget.adjacency)
    assert needed / (clip * math.sqrt(rounds) / n) == pytest.approx(sd, abs=0.005)


def test_erratum_22_analytic_gaussian_for_output_perturbation():
    assert 1 / gaussian_mu(0.5, 1e-3) == pytest.approx(4.61, abs=0.005)


def test_erratum_23_the_printed_gradient_perturbation_noise():
    assert gaussian_epsilon(math.sqrt(2 * 0.5**2), 1e-3) == pytest.approx(2.05, abs=0.005)


# -- (e) composition ----------------------------------------------------------------------------------------------

gaussian_costs = log_uniform(1e-6, 100).map(Cost.gaussian)
pure_costs = st.builds(Cost.pure_dp, log_uniform(1e-3, 10), st.integers(1, 50))


@for_all(st.lists(gaussian_costs | pure_costs, min_size=2, max_size=5), st.randoms(use_true_random=False), deltas)
def test_composition_does_not_depend_on_the_order(costs, random, delta):
    shuffled = random.sample(costs, len(costs))
    forward, method = sum(costs, Cost()).epsilon(delta)
    assert sum(shuffled, Cost()).epsilon(delta)[0] == pytest.approx(forward, rel=1e-9, abs=1e-12), method


@for_all(gaussian_costs | pure_costs)
def test_adding_nothing_changes_nothing(cost):
    assert cost + Cost() == cost == Cost() + cost


def test_no_release_costs_nothing():
    assert Cost().epsilon(1e-6)[0] == 0.0


@for_all(st.lists(log_uniform(1e-4, 10), min_size=1, max_size=4), deltas)
def test_gaussian_releases_compose_on_the_exact_curve(squares, delta):
    epsilon, method = sum(map(Cost.gaussian, squares), Cost()).epsilon(delta)
    assert method == "exact Gaussian curve"
    assert epsilon == pytest.approx(gaussian_epsilon(math.sqrt(math.fsum(squares)), delta), rel=1e-9, abs=1e-12)


@for_all(gaussian_costs, pure_costs, deltas)
def test_a_mixed_plan_costs_at_least_each_part(gaussian, pure, delta):
    total = (gaussian + pure).epsilon(delta)[0]
    assert total >= gaussian.epsilon(delta)[0]
    assert total >= pure.epsilon(delta)[0]


@for_all(gaussian_costs, pure_costs, deltas)
def test_a_mixed_plan_costs_at_most_the_zcdp_or_rdp_of_the_gaussian_plus_the_pure_epsilons(gaussian, pure, delta):
    """The Renyi curve of a pure release is never above its epsilon. (The sum with the *exact* Gaussian epsilon is not
    a bound on what these currencies prove; see the next test.)"""
    total, method = (gaussian + pure).epsilon(delta)
    assert method != "exact Gaussian curve"
    assert total <= (rdp_epsilon(ORDERS, np.asarray(gaussian.rdp), delta) + pure.pure) * (1 + 1e-12)


@for_all(log_uniform(1e-3, 20), log_uniform(0.05, 5), st.integers(1, 20), deltas)
def test_a_mixed_plan_is_close_to_the_sum_of_its_parts_with_delta_split(mu_squared, epsilon, times, delta):
    gaussian, pure = Cost.gaussian(mu_squared), Cost.pure_dp(epsilon, times)
    split = gaussian.epsilon(delta / 2)[0] + pure.epsilon(delta / 2)[0]
    assert (gaussian + pure).epsilon(delta)[0] <= 1.25 * split


@pytest.mark.parametrize(("multiplier", "epsilon", "times"), [(4, 0.5, 1), (2, 1.0, 2), (1.5, 0.1, 20)])
def test_a_mixed_plan_is_not_cheaper_than_pld_finds_it_and_at_most_15_percent_dearer(
    google, multiplier, epsilon, times
):
    accountant = google.pld.PLDAccountant(relation(google, "add-remove"))
    accountant.compose(google.GaussianDpEvent(multiplier)).compose(google.LaplaceDpEvent(1 / epsilon), times)
    true = accountant.get_epsilon(1e-5)
    ours = (Cost.gaussian(1 / multiplier**2) + Cost.pure_dp(epsilon, times)).epsilon(1e-5)[0]
    assert true <= ours <= 1.15 * true


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 5.0])
def test_one_pure_release_costs_its_epsilon(epsilon):
    assert Cost.pure_dp(epsilon).epsilon(1e-12) == (epsilon, "pure composition")


@for_all(log_uniform(1e-3, 10), deltas)
def test_one_pure_release_never_costs_less_than_randomised_response(epsilon, delta):
    """The worst epsilon-DP mechanism has delta(e) = (e^epsilon - e^e)/(1 + e^epsilon)."""
    left = math.exp(epsilon) - delta * (1 + math.exp(epsilon))
    true = math.log(left) if left > 1 else 0.0
    assert true <= Cost.pure_dp(epsilon).epsilon(delta)[0] <= epsilon


def test_many_small_pure_releases_compose_by_zcdp():
    epsilon, method = Cost.pure_dp(0.01, 10_000).epsilon(1e-6)
    assert method == "zCDP"
    assert epsilon == pytest.approx(zcdp_epsilon(10_000 * 0.01**2 / 2, 1e-6))


@for_all(log_uniform(1e-3, 5), st.integers(1, 30))
def test_pure_releases_priced_together_or_one_by_one_cost_the_same(epsilon, times):
    together, single = Cost.pure_dp(epsilon, times), sum([Cost.pure_dp(epsilon)] * times, Cost())
    assert together.rho == pytest.approx(single.rho)
    assert together.pure == pytest.approx(single.pure)
    assert together.rdp == pytest.approx(single.rdp)


@pytest.mark.parametrize("rest", [Cost(), Cost.gaussian(1.0), Cost.pure_dp(1.0), Cost.unbounded()])
def test_a_release_without_noise_costs_infinity_whatever_else_is_planned(rest):
    assert (rest + Cost.unbounded()).epsilon(1e-6)[0] == math.inf


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.1])
@pytest.mark.parametrize("rho", [1e-12, 1e-6, 1e4])
def test_huge_and_tiny_costs_convert_without_overflow(rho, delta):
    pure = Cost.pure_dp(math.sqrt(2 * rho))
    for cost in (Cost.gaussian(2 * rho), pure, Cost.gaussian(2 * rho) + pure):
        assert 0 <= cost.epsilon(delta)[0] <= 2.1 * (rho + 2 * math.sqrt(rho * math.log(1 / delta)))


def test_a_cost_that_is_not_a_number_is_never_cheap():
    assert not Cost.gaussian(math.nan).epsilon(1e-6)[0] < math.inf
    assert not rdp_epsilon(ORDERS, np.full(len(ORDERS), math.nan), 1e-6) < math.inf


# -- (f) choices --------------------------------------------------------------------------------------------------

SOME_ORDERS = [0, 80, 150, 200, 250, 300]  # 1.001 to 1e3


def softmax(scores, scale):
    weights = np.exp((scores - np.max(scores)) / scale)
    return weights / weights.sum()


def renyi(p, q, alpha):
    """D_alpha(p || q) = log sum p^alpha q^(1 - alpha) / (alpha - 1)."""
    ratio = np.log(p) - np.log(q)
    shift = np.max(ratio)
    return shift + math.log(np.sum(p * np.exp((alpha - 1) * (ratio - shift)))) / (alpha - 1)


def worst(law, scores, scale, alpha):
    """The largest divergence between neighbours: every score moves by 1 up or down."""
    base = law(np.array(scores), scale)
    moved = [law(np.array(scores) + move, scale) for move in itertools.product([-1.0, 1.0], repeat=len(scores))]
    return max(max(renyi(base, other, alpha), renyi(other, base, alpha)) for other in moved)


@pytest.mark.parametrize("order", SOME_ORDERS)
@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(-8, 8), min_size=2, max_size=5), log_uniform(0.2, 50))
def test_no_exponential_mechanism_is_dearer_than_its_bounded_range_price(order, scores, scale):
    price = Cost.bounded_range(choice_epsilon(scale)).rdp[order]
    assert worst(softmax, scores, scale, ORDERS[order]) <= price * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("order", SOME_ORDERS)
@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(-8, 8), min_size=3, max_size=4), log_uniform(0.2, 50))
def test_no_pair_of_picks_at_once_is_dearer_than_two_bounded_range_prices(order, scores, scale):
    """The law of two positions drawn without replacement, the order hidden."""

    def pairs(scores, scale):
        p = softmax(scores, scale)
        rest = np.array([np.delete(p, i).sum() for i in range(len(p))])
        return np.array(
            [p[i] * p[j] * (1 / rest[i] + 1 / rest[j]) for i, j in itertools.combinations(range(len(p)), 2)]
        )

    price = Cost.bounded_range(choice_epsilon(scale), 2).rdp[order]
    assert worst(pairs, scores, scale, ORDERS[order]) <= price * (1 + 1e-9) + 1e-12


def test_the_bounded_range_price_is_nearly_attained():
    """By two equal scores that move apart; so an eighth cannot become a ninth."""
    scale = 20.0
    for order in (0, 80, 150):
        price = Cost.bounded_range(choice_epsilon(scale)).rdp[order]
        assert worst(softmax, [0.0, 0.0], scale, ORDERS[order]) > 0.98 * price


def test_one_exponential_mechanism_may_cost_its_whole_epsilon():
    epsilon = choice_epsilon(0.5)
    assert worst(softmax, [0.0, 20.0], 0.5, 1e3) == pytest.approx(epsilon, rel=0.05)


def laplace_winner(scores, scale):
    """The law of the largest of score + Laplace(scale), by quadrature."""
    noise = stats.laplace(scale=scale)

    def wins(j):
        density = lambda t: noise.pdf(t - scores[j]) * np.prod(noise.cdf(t - np.delete(scores, j)))  # noqa: E731
        ends = [-40 * scale, *sorted(set(scores)), 40 * scale]
        return sum(integrate.quad(density, a, b, epsabs=1e-12)[0] for a, b in itertools.pairwise(ends))

    return np.array([wins(j) for j in range(len(scores))])


def test_laplace_noise_is_dearer_than_the_bounded_range_price():
    """Five equal scores of which two go up and three go down: 27 % above epsilon^2/8 near order 1, 22 % at order 2, so
    Laplace choices need a price of their own (erratum E-16); that one holds."""
    scale, moves = 2.0, np.array([1.0, 1.0, -1.0, -1.0, -1.0])
    p, q = laplace_winner(np.zeros(5), scale), laplace_winner(moves, scale)
    assert p == pytest.approx(np.full(5, 0.2), abs=1e-9)
    assert q.sum() == pytest.approx(1, abs=1e-9)
    for order, excess in ((0, 1.25), (150, 1.15)):
        dearest = max(renyi(p, q, ORDERS[order]), renyi(q, p, ORDERS[order]))
        assert dearest > excess * Cost.bounded_range(choice_epsilon(scale)).rdp[order]
        assert dearest < Cost.pure_dp(choice_epsilon(scale)).rdp[order]


@for_all(log_uniform(1e-3, 1e3))
def test_a_choice_costs_two_over_its_scale(scale):
    assert choice_epsilon(scale) == 2 / scale


@for_all(log_uniform(1e-3, 10), st.integers(1, 50), deltas)
def test_choices_cost_less_than_other_pure_releases_of_their_epsilon(epsilon, times, delta):
    choice, pure = Cost.bounded_range(epsilon, times), Cost.pure_dp(epsilon, times)
    assert choice.rho == pytest.approx(pure.rho / 4)
    assert choice.pure == pure.pure
    assert choice.epsilon(delta)[0] <= pure.epsilon(delta)[0]


def test_choices_priced_together_or_one_by_one_cost_the_same():
    together, single = Cost.bounded_range(0.3, 9), sum([Cost.bounded_range(0.3)] * 9, Cost())
    for currency in ("rho", "pure", "rdp"):
        assert getattr(together, currency) == pytest.approx(getattr(single, currency))


@for_all(log_uniform(1e-4, 10), deltas)
def test_a_release_known_by_its_renyi_curve_is_converted_by_it_alone(rho, delta):
    epsilon, method = Cost.renyi(rho * ORDERS).epsilon(delta)
    assert method == "RDP"
    assert epsilon == rdp_epsilon(ORDERS, rho * ORDERS, delta)


def test_a_renyi_curve_adds_to_the_others():
    total = Cost.renyi(0.1 * ORDERS) + Cost.gaussian(0.2) + Cost.bounded_range(0.4)
    assert total.rdp == pytest.approx(0.1 * ORDERS + 0.1 * ORDERS + np.minimum(0.02 * ORDERS, 0.4))
    assert total.rho == total.pure == total.mu_squared == math.inf
