"""The price of the best of a secret number of trials: the theorem on laws small enough to write down, both ways."""

import math

import numpy as np
import pytest
from scipy import stats

from thresher.privacy.accounting import ORDERS, Cost
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Adjacency, Budget
from thresher.privacy.composition import composed_delta
from thresher.privacy.conversions import gaussian_delta, gaussian_mu, rdp_deltas, rdp_epsilon, zcdp_rho
from thresher.privacy.plan import Plan
from thresher.privacy.releases import (
    GaussianGradient,
    GaussianScore,
    GumbelSelection,
    RandomTrials,
    SampledGradient,
    ZCDPFilter,
    release_from_dict,
)
from thresher.privacy.releases.composed import LEAST_PRICED, MOST_PRICED, _exact_deltas, best_of_trials
from thresher.privacy.subsampling import Poisson, poisson_deltas, poisson_epsilon
from thresher.vaults.losses import SQUARED
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

BEYOND = ORDERS - 1
USUAL = ORDERS < 500  # beyond, round-off to the power of the order is no longer small


# -- the theorem on small laws --------------------------------------------------------------------------------------


def renyi(p, q):
    """The divergence of order a of p from q, at all ORDERS."""
    logs = ORDERS[:, None] * np.log(p) - BEYOND[:, None] * np.log(q)
    largest = logs.max(axis=1)
    return np.maximum(0.0, largest + np.log(np.exp(logs - largest[:, None]).sum(axis=1))) / BEYOND


def excess(p, q):
    """The least delta of p against q at epsilon = log(a / (a-1))."""
    return np.maximum(0.0, p - (ORDERS / BEYOND)[:, None] * q).sum(axis=1)


def best_law(p, m):
    """The law of the best (last) outcome of Poisson(m) > 0 draws from p."""
    below = np.cumsum(p) - p
    law = np.exp(m * (below - 1)) * np.expm1(m * p)
    return law / law.sum()


def pairs(count, seed):
    """Outcomes in order of their score; chances from next to nothing to next to all, ratios from near 1 to extreme."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        size = rng.integers(2, 7)
        q = np.maximum(rng.dirichlet(np.full(size, rng.choice([0.1, 0.5, 1.0, 5.0]))), 1e-9)
        p = q * np.exp(rng.normal(size=size) * rng.choice([0.02, 0.1, 0.5, 2.0]))
        yield p / p.sum(), q / q.sum()


def found_and_proved(p, q, m, bound=best_of_trials):
    curve, deltas = np.maximum(renyi(p, q), renyi(q, p)), np.maximum(excess(p, q), excess(q, p))
    best = best_law(p, m), best_law(q, m)
    return np.maximum(renyi(*best), renyi(*best[::-1]))[USUAL], bound(m, curve, deltas)[USUAL]


@pytest.mark.parametrize("m", [0.01, 0.5, 1.0, 2.0, 5.0, 20.0])
def test_no_small_law_beats_the_theorem_and_some_attain_it(m):
    closest = 0.0
    for p, q in pairs(300, seed=0):
        found, proved = found_and_proved(p, q, m)
        assert np.all(found <= proved * (1 + 1e-9) + 1e-10)
        closest = max(closest, np.max(found[proved > 1e-3] / proved[proved > 1e-3], initial=0.0))
    assert closest > 0.999


def without_delta(m, curve, deltas):
    return best_of_trials(m, curve, 0 * deltas)


def cheaper_by_a_tenth(m, curve, deltas):
    return np.log1p(0.9 * np.expm1(BEYOND * best_of_trials(m, curve, deltas))) / BEYOND


def as_printed(m, curve, deltas):
    """Papernot and Steinke 2022, Theorem 6, with the outcome of no trial: of one expected trial or more."""
    return curve + m * deltas + math.log(m) / BEYOND


@pytest.mark.parametrize(("bound", "m"), [(without_delta, 5.0), (cheaper_by_a_tenth, 5.0), (as_printed, 0.5)])
def test_a_bound_that_is_too_low_is_noticed(bound, m):
    outcomes = (found_and_proved(p, q, m, bound) for p, q in pairs(300, seed=0))
    with np.errstate(over="ignore"):
        assert any(np.any(found > proved * (1 + 1e-6) + 1e-8) for found, proved in outcomes)


def test_given_a_trial_moments_are_as_with_the_empty_outcome_less_its_chance():
    """e^((a-1) D) without it is (e^((a-1) D) with it - e^-m) / (1 - e^-m), exactly."""
    for p, q in pairs(20, seed=1):
        m = 1.7
        nothing = math.exp(-m)
        with_it = [np.append((1 - nothing) * best_law(law, m), nothing) for law in (p, q)]
        few = ORDERS < 10
        moment = (np.exp((BEYOND * renyi(*with_it))[few]) - nothing) / (1 - nothing)
        without = np.exp((BEYOND * renyi(best_law(p, m), best_law(q, m)))[few])
        np.testing.assert_allclose(moment, without, rtol=1e-9)


def test_the_best_law_is_that_of_drawing_and_taking_the_best():
    """Chi-square at 1e-6, on 20,000 searches; laws with one expected trial more or less are rejected at 1e-9."""
    p, m = np.array([0.5, 0.3, 0.2]), 2.5
    noise, rng = NoiseSource(0), np.random.default_rng(0)
    best = [rng.choice(3, size=noise.trials(m), p=p).max() for _ in range(20_000)]
    seen = np.bincount(best, minlength=3)
    assert stats.chisquare(seen, 20_000 * best_law(p, m)).pvalue > 1e-6
    for wrong in (1.5, 3.5):
        assert stats.chisquare(seen, 20_000 * best_law(p, wrong)).pvalue < 1e-9


@pytest.mark.parametrize("m", [1.0, 3.0, 12.0])
def test_the_number_of_trials_is_poisson_given_that_it_is_not_zero(m):
    """Chi-square at 1e-6 on 40,000 draws: a mean off by a tenth, or 1 + Poisson(m - 1), is rejected at 1e-9."""
    noise = NoiseSource(1)
    seen = np.bincount([noise.trials(m) for _ in range(40_000)], minlength=40)
    assert seen[0] == 0

    def pvalue(chances):
        kept = 40_000 * chances >= 10
        observed, expected = np.append(seen[kept], seen[~kept].sum()), np.append(chances[kept], 1 - chances[kept].sum())
        return stats.chisquare(observed, observed.sum() * expected).pvalue

    def positive(mean):
        chances = stats.poisson.pmf(np.arange(len(seen)), mean) / -math.expm1(-mean)
        chances[0] = 0.0
        return chances

    assert pvalue(positive(m)) > 1e-6
    assert pvalue(positive(1.1 * m)) < 1e-9
    assert pvalue(positive(m / 1.1)) < 1e-9
    shifted = np.append(0.0, stats.poisson.pmf(np.arange(len(seen) - 1), max(m - 1, 1e-9)))
    assert pvalue(shifted) < 1e-9


# -- second opinions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1.0, 5.0, 30.0])
@pytest.mark.parametrize("sd", [1.0, 5.0, 30.0])
def test_dp_accounting_agrees_up_to_the_empty_outcome(m, sd):
    """Its formula is for Poisson trials of which there may be none, and keeps a 1 that ours takes off the moment X of a
    trial: with Y ours and Z theirs, Y - 1 = Z / (1 - e^-m) * (1 - 1/X)."""
    from dp_accounting import GaussianDpEvent
    from dp_accounting.dp_event import RepeatAndSelectDpEvent
    from dp_accounting.rdp import RdpAccountant
    from dp_accounting.rdp.rdp_privacy_accountant import compute_delta

    accountant = RdpAccountant(ORDERS)
    accountant.compose(RepeatAndSelectDpEvent(GaussianDpEvent(sd), m, math.inf))
    curve = ORDERS / (2 * sd * sd)
    deltas = np.array([compute_delta(ORDERS, curve, epsilon)[0] for epsilon in np.log1p(1 / BEYOND)])
    ours = best_of_trials(m, curve, deltas)
    moments = np.exp(-BEYOND * accountant.rdp) * -math.expm1(-m) * np.expm1(np.minimum(BEYOND * ours, 700))
    kept = (ORDERS > 1.5) & (BEYOND * ours < 700)
    assert kept.sum() > 50
    np.testing.assert_allclose(moments[kept], -np.expm1(-BEYOND * curve)[kept], rtol=1e-6)


@pytest.mark.parametrize("mu", [0.05, 0.3, 2.0])
def test_deltas_of_a_renyi_curve_cover_the_exact_ones_and_are_no_worse_than_dp_accountings(mu):
    from dp_accounting.rdp.rdp_privacy_accountant import compute_delta

    epsilons = np.array([0.0, 0.01, 0.1, 1.0, 3.0])
    curve = ORDERS * mu * mu / 2
    found = rdp_deltas(ORDERS, curve, epsilons)
    exact = np.array([gaussian_delta(mu, epsilon) for epsilon in epsilons])
    theirs = [compute_delta(ORDERS, curve, epsilon)[0] for epsilon in epsilons]
    assert np.all(exact <= found)
    assert np.all(found <= np.array(theirs) * (1 + 1e-9))
    assert found[0] <= 1.31 * exact[0]  # at 0 the total variation: Pinsker's mu/2 against .4 mu


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_deltas_of_batches_are_the_inverse_of_their_epsilon(adjacency):
    parts = (Poisson(200, 0.02, 1.5, adjacency),)
    for mu_squared in (0.0, 0.04):
        epsilon = poisson_epsilon(parts, mu_squared, 1e-4)
        found = poisson_deltas(parts, mu_squared, np.array([epsilon, 0.0, 2 * epsilon]))
        assert found[0] == pytest.approx(1e-4, rel=1e-3)
        assert found[2] < found[0] < found[1]
    cost = Cost.poisson(parts[0])
    exact = cost.deltas(np.array([0.05]))
    assert exact < 0.9 * rdp_deltas(ORDERS, cost.curve, np.array([0.05]))


# -- the release ----------------------------------------------------------------------------------------------------


def search_of(*fits, trials=5.0, score=None, rows=(800, 200)):
    score = score or GaussianScore(1, 20.0)
    return RandomTrials(1, trials, fits, score, *rows)


GRADIENTS = (GaussianGradient(10, 20.0),)
CHOICES = (GumbelSelection(3, 12.0, 5), GaussianGradient(2, 30.0))
BATCHES = (SampledGradient(50, 2.0, 40, 800, "poisson", "replace-one"),)
CAP = (ZCDPFilter(1, 0.01),)


@pytest.mark.parametrize("trials", [1.0, 2.5, 10.0])
def test_a_trials_epsilon_is_that_of_the_table(trials):
    """Independently: the formula by hand, at the exact Gaussian curve."""
    mu = 0.15
    sd = 1 / mu
    cost = search_of((GaussianGradient(1, sd),), trials=trials, score=GaussianScore(1, sd)).cost().epsilon(1e-6)
    proofs = []
    few = ORDERS[ORDERS < 200]
    for a in few:
        delta = gaussian_delta(mu, math.log(a / (a - 1)))
        moment = math.expm1(a * (a - 1) * mu * mu / 2) * math.exp(trials * (a - 1) * delta)
        proofs.append(math.log1p(trials / (1 - math.exp(-trials)) * moment) / (a - 1))
    assert cost == (pytest.approx(rdp_epsilon(few, np.array(proofs), 1e-6), rel=1e-9), "RDP")


@pytest.mark.parametrize(("trials", "epsilon"), [(3, 0.735), (5, 0.65), (10, 0.51), (20, 0.365)])
def test_what_a_trial_may_cost_within_epsilon_1(trials, epsilon):
    for factor, within in ((0.99, True), (1.01, False)):
        budget = Budget(factor * epsilon, 1e-6)
        score = GaussianScore.for_rho(zcdp_rho(budget.epsilon, 1e-6))
        cost = search_of((GaussianGradient.calibrated(budget, 10),), trials=trials, score=score).cost()
        assert (cost.epsilon(1e-6)[0] <= 1) is within


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("trials", "epsilon"), [(3, 0.735), (10, 0.51), (20, 0.365)])
def test_the_best_of_gaussian_trials_that_are_ordered_by_what_they_reveal_keeps_the_promise(trials, epsilon, sign):
    """By quadrature: a trial releases N(0, 1) or N(mu, 1), the largest or smallest counts. (1, 1e-6) is promised; at
    least .4 of that epsilon is needed, and more than a trial's own."""
    mu, y = gaussian_mu(epsilon, 1e-6), np.linspace(-12, 12, 100_001)
    one, other = (
        np.exp(stats.norm.logpdf(y - at) - trials * stats.norm.sf(sign * (y - at))) * trials / -math.expm1(-trials)
        for at in (0.0, mu)
    )

    def delta(epsilon):
        found = [np.maximum(0.0, p - math.exp(epsilon) * q).sum() for p, q in ((one, other), (other, one))]
        return max(found) * (y[1] - y[0])

    assert one.sum() * (y[1] - y[0]) == pytest.approx(1.0, abs=1e-9)
    assert delta(1.0) < 1e-6 < delta(max(0.4, epsilon))


def test_the_dearest_candidate_or_the_score_sets_the_price():
    alone, cheap = search_of(GRADIENTS).cost(), (GaussianGradient(1, 20.0),)
    assert search_of(GRADIENTS, cheap).cost() == alone
    assert search_of(cheap, score=GaussianScore(1, 20 / math.sqrt(10))).cost().epsilon(1e-6)[0] == pytest.approx(
        alone.epsilon(1e-6)[0]
    )
    assert search_of(cheap).cost().epsilon(1e-6)[0] < alone.epsilon(1e-6)[0]
    assert search_of(GRADIENTS, trials=5.1).cost().epsilon(1e-6)[0] > alone.epsilon(1e-6)[0]


@pytest.mark.parametrize("fit", [GRADIENTS, CHOICES, BATCHES, CAP], ids=["gaussian", "mixed", "batches", "filter"])
def test_a_search_costs_more_than_a_trial_and_less_than_its_trials_one_after_the_other(fit):
    parts = (sum((release.cost() for release in fit), Cost()), search_of(fit).cost())
    one, search = (part.epsilon(1e-6)[0] for part in parts)
    assert one < search < sum((parts[0] for _ in range(12)), Cost()).epsilon(1e-6)[0]


def test_what_has_no_price_makes_the_search_priceless():
    assert math.isinf(search_of((GaussianGradient(1, 0.0),)).cost().epsilon(1e-6)[0])
    assert math.isinf(search_of(GRADIENTS, score=GaussianScore(1, 0.0)).cost().epsilon(1e-6)[0])
    assert math.isinf(search_of(GRADIENTS).cost().epsilon(0)[0])


def test_a_search_can_be_written_down_and_read_back():
    search = search_of(GRADIENTS, CHOICES, BATCHES, CAP)
    again = release_from_dict(search.to_dict())
    assert again == search
    assert hash(again) == hash(search)
    assert [release["kind"] for release in search.to_dict()["fits"][1]] == ["GumbelSelection", "GaussianGradient"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"times": 2}, "a search is one"),
        ({"trials": 0.0}, "a search is one"),
        ({"trials": math.nan}, "a search is one"),
        ({"fits": ()}, "at least one release"),
        ({"fits": ((),)}, "at least one release"),
        ({"score": GaussianGradient(1, 1.0)}, "at least one release"),
        ({"score": GaussianScore(2, 1.0)}, "at least one release"),
        ({"fit_rows": 0}, "at least 1 each"),
        ({"fit_rows": 801, "fits": (BATCHES,)}, "another number of rows"),
    ],
)
def test_a_search_that_cannot_be_is_refused(change, message):
    fields = {"times": 1, "trials": 5.0, "fits": (GRADIENTS,), "score": GaussianScore(1, 9.0)}
    with pytest.raises(ValueError, match=message):
        RandomTrials(**{**fields, "fit_rows": 800, "score_rows": 200, **change})


def test_a_release_with_a_price_of_its_own_cannot_hide_in_a_trial():
    class Free(GaussianGradient):
        def cost(self):
            return Cost()

    problem = LinearProblem(1000, 2, Bounds(feature=1.0, target=(-1.0, 1.0)), sparsity=1, loss=SQUARED)
    with pytest.raises(TypeError, match="not a release priced"):
        Plan("search", problem, Budget(1, 1e-6), (search_of((Free(1, 0.1),)),))


# -- trials of choices and answers, in one order ----------------------------------------------------------------------

PICKS, VALUES = GumbelSelection(3, 12.0, 1), GaussianGradient(3, 9.0)
IN_TURN = (0, 1) * 3


def test_the_exact_delta_of_each_order_is_not_below_that_on_a_fine_grid():
    steps = tuple(step for at in IN_TURN for step in (PICKS, VALUES)[at].steps)
    found = _exact_deltas(steps)
    for at in np.flatnonzero(ORDERS < 500)[::9]:
        fine = composed_delta(steps, float(np.log1p(1 / BEYOND[at])), 64.5)
        assert fine <= found[at] * (1 + 1e-6)
    usual = (ORDERS > 2 * LEAST_PRICED) & (ORDERS < MOST_PRICED / 2)
    loose = rdp_deltas(ORDERS, (PICKS.cost() + VALUES.cost()).curve, np.log1p(1 / BEYOND))
    assert np.all(found[usual] < 0.95 * loose[usual])


def test_an_order_lowers_the_price_of_a_search_and_is_read_back():
    fits = ((PICKS, VALUES),)
    free, ordered = (RandomTrials(1, 5.0, fits, GaussianScore(1, 9.0), 100, 20, orders) for orders in ((), (IN_TURN,)))
    assert "orders" not in free.to_dict()
    for release in (free, ordered):
        assert release_from_dict(release.to_dict()) == release
    assert ordered.cost().epsilon(1e-6)[0] < 0.95 * free.cost().epsilon(1e-6)[0]
    assert np.all(np.asarray(ordered.cost().rdp) <= np.asarray(free.cost().rdp))


@pytest.mark.parametrize("orders", [((0, 1),), ((0, 0, 0, 0, 1, 1),), (IN_TURN, IN_TURN)])
def test_orders_that_are_none_of_the_fits_are_refused(orders):
    with pytest.raises(ValueError, match="orders"):
        RandomTrials(1, 5.0, ((PICKS, VALUES),), GaussianScore(1, 9.0), 100, 20, orders)
