"""Random batches: prices against numerical integration, exact curves and accountants that are not ours."""

import itertools
import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent, SampledWithoutReplacementDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy import optimize, stats

from thresher.privacy.accounting import ORDERS, Cost
from thresher.privacy.budget import Adjacency, Budget
from thresher.privacy.conversions import gaussian_epsilon, rdp_epsilon
from thresher.privacy.releases import GaussianGradient, GumbelSelection, SampledGradient, SampledMomentum
from thresher.privacy.subsampling import LEAST_DELTA, ROUND_OFF, Poisson, fixed_size_rdp, poisson_epsilon, poisson_rdp

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
BOTH = pytest.mark.parametrize("adjacency", Adjacency)

# rows, batch, rounds, epsilon, delta: of the thesis' tables, the smallest epsilon, few and many rounds
GRID = [
    (32561, 50, 2600, 0.2, 1e-5),
    (32561, 1628, 100, 0.5, 1e-5),
    (39992, 1999, 100, 0.01, 1e-5),
    (60000, 256, 2350, 1.2, 1e-5),
    (60000, 512, 1000, 3.0, 1e-5),
    (50000, 128, 20000, 0.1, 1e-5),
    (1000, 100, 10, 8.0, 1e-6),
    (1_000_000, 1000, 2000, 1.0, 1e-8),
]


def pair(rate, s, adjacency, steps=20_000):
    """One step's densities on a fine grid, and its cells: the row drawn or not, against none or its mirror image."""
    x = np.arange(-14 * s, 14 * s + 1, s / steps)
    drawn = [(1 - rate) * stats.norm.pdf(x, 0, s) + rate * stats.norm.pdf(x, mean, s) for mean in (1.0, -1.0)]
    return drawn[0], drawn[1] if adjacency is REPLACE_ONE else stats.norm.pdf(x, 0, s), s / steps


def exact_epsilon(rate, s, adjacency, delta):
    """Where the larger of both directions' integrals of max(P - e^epsilon Q, 0) is delta."""
    p, q, cell = pair(rate, s, adjacency)

    def excess(epsilon):
        gaps = (np.maximum(one - math.exp(epsilon) * two, 0).sum() * cell for one, two in ((p, q), (q, p)))
        return max(gaps) - delta

    return 0.0 if excess(0.0) <= 0 else optimize.brentq(excess, 0.0, 30.0)


# -- Poisson batches ----------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(("rate", "sd"), [(0.1, 1.0), (0.5, 0.7), (0.01, 0.5), (0.9, 3.0)])
@pytest.mark.parametrize("delta", [1e-2, 1e-5])
def test_one_release_costs_what_integration_gives(rate, sd, adjacency, delta):
    found = poisson_epsilon((Poisson(1, rate, sd, adjacency),), 0.0, delta)
    exact = exact_epsilon(rate, sd * adjacency.contributions, adjacency, delta)
    assert exact <= found + 1e-6
    assert found == pytest.approx(exact, rel=0.001, abs=2e-3)


@BOTH
@pytest.mark.parametrize(("times", "sd"), [(1, 1.0), (100, 20.0), (10_000, 300.0)])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, LEAST_DELTA])
def test_if_every_row_is_drawn_the_exact_gaussian_curve_holds(times, sd, adjacency, delta):
    """And the round-off that is allowed for covers what the convolutions lose."""
    found = poisson_epsilon((Poisson(times, 1.0, sd, adjacency),), 0.0, delta)
    exact = gaussian_epsilon(math.sqrt(times) / sd, delta)
    assert exact <= found <= exact * 1.005 + 1e-3


@BOTH
def test_gaussian_releases_and_batches_are_composed_together(adjacency):
    part = Poisson(1, 1.0, 2.0, adjacency)
    found = poisson_epsilon((part, part), 0.5, 1e-6)
    assert found == pytest.approx(gaussian_epsilon(1.0, 1e-6), rel=0.005)


@BOTH
@pytest.mark.parametrize(("n", "batch", "rounds", "epsilon", "delta"), GRID)
def test_calibrated_poisson_noise_is_that_of_another_accountant(n, batch, rounds, epsilon, delta, adjacency):
    release = SampledGradient.calibrated(Budget(epsilon, delta, adjacency), rounds, batch, n, "poisson")
    relation = NeighboringRelation.REPLACE_ONE if adjacency is REPLACE_ONE else NeighboringRelation.ADD_OR_REMOVE_ONE

    def price(multiplier):  # a much finer grid than its default, which overstates many tiny steps severalfold
        interval = min(1e-4, batch / n / multiplier / 16)
        accountant = PLDAccountant(relation, value_discretization_interval=interval)
        accountant.compose(PoissonSampledDpEvent(batch / n, GaussianDpEvent(multiplier)), rounds)
        return accountant.get_epsilon(delta)

    ours = release.multiplier * adjacency.contributions  # theirs is relative to one row's contribution
    assert price(ours) <= epsilon
    assert price(ours / 1.01) > epsilon


@pytest.mark.parametrize(("n", "batch", "rounds", "epsilon", "delta"), [GRID[1], GRID[3], (2000, 200, 50, 0.1, 1e-5)])
def test_calibrated_poisson_noise_is_that_of_opacus(n, batch, rounds, epsilon, delta):
    """By its PRV accountant, another way to convolve privacy losses; its grid is too large for the other rows."""
    prv = pytest.importorskip("opacus.accountants").PRVAccountant
    release = SampledGradient.calibrated(Budget(epsilon, delta, ADD_REMOVE), rounds, batch, n, "poisson")

    def price(multiplier):
        accountant = prv()
        accountant.history = [(multiplier, batch / n, rounds)]
        return accountant.get_epsilon(delta, eps_error=epsilon / 1000, delta_error=delta / 1000)

    assert price(release.multiplier * 1.01) <= epsilon < price(release.multiplier / 1.01)


def test_the_renyi_curve_of_poisson_batches_is_that_of_another_accountant():
    orders = np.array([2.0, 3.0, 8.0, 30.0, 50.0])
    for rate, sd in ((0.004, 1.1), (0.1, 2.0), (0.01, 0.6), (0.3, 20.0)):
        theirs = RdpAccountant(orders)
        theirs.compose(PoissonSampledDpEvent(rate, GaussianDpEvent(sd)), 10)
        np.testing.assert_allclose(poisson_rdp(Poisson(10, rate, sd, ADD_REMOVE), orders), theirs.rdp, rtol=1e-6)


def test_the_renyi_curve_of_replace_one_is_that_of_its_pair():
    p, q, cell = pair(0.2, 1.6, REPLACE_ONE, steps=100)
    for order in (1.5, 4.0, 12.0):
        moment = np.sum(np.exp(order * np.log(p) + (1 - order) * np.log(q))) * cell
        (found,) = poisson_rdp(Poisson(1, 0.2, 0.8, REPLACE_ONE), np.array([order]))
        assert found == pytest.approx(math.log(moment) / (order - 1), rel=1e-6)


@BOTH
def test_below_the_least_delta_the_renyi_curve_prices_and_it_is_not_cheaper(adjacency):
    part = Poisson(1000, 0.01, 1.5, adjacency)
    at, below = (Cost.poisson(part).epsilon(delta) for delta in (LEAST_DELTA, LEAST_DELTA * 0.999))
    assert (at[1], below[1]) == ("privacy loss distributions", "RDP")
    assert at[0] < below[0] < 1.3 * at[0]
    with pytest.raises(ValueError, match="lose their digits"):
        poisson_epsilon((part,), 0.0, LEAST_DELTA / 2)
    assert ROUND_OFF <= LEAST_DELTA / 50


def test_batches_and_choices_are_priced_together_by_halves_of_delta_or_by_renyi_curves():
    batches = SampledGradient(100, 2.0, 10, 1000, "poisson", REPLACE_ONE).cost()
    choices = GumbelSelection.for_rho(0.01, times=3).cost()
    both, method = (batches + choices).epsilon(1e-5)
    alone = batches.epsilon(1e-5)[0]
    assert alone < both <= batches.epsilon(5e-6)[0] + choices.epsilon(5e-6)[0] + 1e-12
    assert "privacy loss distributions" in method or method == "RDP"
    assert (batches + choices).epsilon(1e-12)[1] == "RDP"
    assert (batches + choices).epsilon(0.0)[0] == math.inf


def test_only_costs_without_batches_have_a_gaussian_mu():
    gaussian = GaussianGradient(4, 2.0).cost()
    batches = SampledGradient(1, 2.0, 1, 10, "poisson", REPLACE_ONE).cost()
    assert gaussian.gaussian_mu == pytest.approx(1.0)
    assert (gaussian + batches).gaussian_mu == math.inf


# -- batches of fixed size ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "batch", "rounds", "epsilon", "delta"), GRID)
def test_calibrated_fixed_size_noise_is_that_of_another_accountant(n, batch, rounds, epsilon, delta):
    """Theirs takes the multiplier relative to the replace-one sensitivity already: it does not double it. Where its
    bound is worse than that of no sampling at all, as at an epsilon of 0.01, the latter holds as well."""
    release = SampledMomentum.calibrated(Budget(epsilon, delta), rounds, batch, n, "fixed")

    def price(multiplier):
        orders = [*range(2, 65), *range(68, 257, 12), *range(300, 4000, 200)]
        events = SampledWithoutReplacementDpEvent(n, batch, GaussianDpEvent(multiplier)), GaussianDpEvent(multiplier)
        accountants = [RdpAccountant(orders, NeighboringRelation.REPLACE_ONE) for _ in events]
        return min(
            accountant.compose(event, rounds).get_epsilon(delta)
            for accountant, event in zip(accountants, events, strict=True)
        )

    assert price(release.multiplier / 1.01) > epsilon > price(release.multiplier * 1.01)


def test_chords_between_exact_orders_overstate_the_curve_and_no_sampling_bounds_it():
    orders = np.array([2.0, 17.0, 100.5, 333.0, 1e4])
    accountant = RdpAccountant(orders[:4], NeighboringRelation.REPLACE_ONE)
    accountant.compose(SampledWithoutReplacementDpEvent(1000, 10, GaussianDpEvent(3.0)))
    ours = fixed_size_rdp(10, 1000, 3.0, orders)
    assert np.all(ours[:4] >= accountant.rdp * (1 - 1e-12))
    np.testing.assert_allclose(ours[:2], accountant.rdp[:2], rtol=1e-12)
    assert ours[-1] == pytest.approx(1e4 / (2 * 9.0))


# -- how prices move ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", ["poisson", "fixed"])
def test_more_noise_smaller_batches_and_fewer_rounds_cost_less(sampling):
    def price(rounds=50, sd=1.0, batch=50):
        return SampledGradient(rounds, sd, batch, 1000, sampling, REPLACE_ONE).cost().epsilon(1e-6)[0]

    assert price(sd=2.0) < price() > price(rounds=20)
    assert price(batch=20) < price() < GaussianGradient(50, 1.0).cost().epsilon(1e-6)[0]


def test_fixed_size_batches_need_more_noise_than_poisson_batches():
    budget = Budget(0.5, 1e-5)
    poisson, fixed = (SampledGradient.calibrated(budget, 500, 100, 10_000, kind) for kind in ("poisson", "fixed"))
    assert 1.5 < fixed.multiplier / poisson.multiplier < 3.5  # erratum E-17: headroom 2.5x against 6x


@BOTH
@pytest.mark.parametrize(("epsilon", "delta"), [*itertools.product([1e-3, 1.0, 50.0], [1e-12, 1e-9, 0.05])])
def test_calibration_fills_the_budget_and_no_more(epsilon, delta, adjacency):
    release = SampledGradient.calibrated(Budget(epsilon, delta, adjacency), 40, 30, 300, "poisson")
    assert 0.99 * epsilon <= release.cost().epsilon(delta)[0] <= epsilon


def test_without_privacy_there_is_no_noise():
    assert SampledGradient.calibrated(Budget(math.inf, 1e-5), 10, 5, 50, "poisson").multiplier == 0


def test_rdp_epsilon_of_the_curve_is_above_the_exact_price():
    part = Poisson(500, 0.02, 1.0, REPLACE_ONE)
    assert poisson_epsilon((part,), 0.0, 1e-5) < rdp_epsilon(ORDERS, poisson_rdp(part, ORDERS), 1e-5)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"batch": 0}, "batch=0 must be a whole number from 1"),
        ({"batch": 100}, "below the number of rows, 100"),
        ({"batch": 2.5}, r"batch=2.5 must be a whole"),
        ({"sampling": "shuffled"}, "'poisson' or 'fixed'"),
        ({"sampling": "fixed"}, "adjacency='replace-one' only"),
        ({"sd_per_sensitivity": -1.0}, "sd_per_sensitivity=-1.0"),
    ],
)
def test_impossible_batches_are_refused(wrong, message):
    facts = {"times": 1, "sd_per_sensitivity": 1.0, "batch": 10, "population": 100, "sampling": "poisson"}
    with pytest.raises(ValueError, match=message):
        SampledGradient(**{**facts, "adjacency": ADD_REMOVE, **wrong})


def test_many_rounds_are_convolved_only_where_their_round_off_is_small_against_delta():
    """An FFT to the power of 8 million lowers delta by 7e-11, measured; so the Renyi curve prices that at 1e-9."""
    many = Poisson(8_000_000, 1 - 1e-12, math.sqrt(8e6), REPLACE_ONE)
    assert poisson_epsilon((many,), 0.0, 1e-9) == math.inf
    epsilon, method = Cost.poisson(many).epsilon(1e-9)
    assert method == "RDP"
    assert epsilon >= gaussian_epsilon(1.0, 1e-9)


def test_next_to_no_noise_is_priced_without_filling_the_memory():
    assert Cost.poisson(Poisson(1, 0.5, 1e-7, REPLACE_ONE)).epsilon(1e-5)[0] > 1e10
