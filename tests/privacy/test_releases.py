"""Releases: what each costs, that calibration fills its share of the budget and no more, and how they are written."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from thresher.privacy.accounting import ORDERS, Cost
from thresher.privacy.budget import Adjacency, Budget
from thresher.privacy.composition import Choice
from thresher.privacy.conversions import gaussian_epsilon, zcdp_epsilon
from thresher.privacy.releases import (
    _KINDS,
    BinomialGradient,
    BinomialMinimiser,
    ClassReport,
    ExactRelease,
    GaussianCategories,
    GaussianGradient,
    GaussianGram,
    GaussianLabels,
    GaussianMean,
    GaussianMinimiser,
    GaussianMoments,
    GaussianReport,
    GaussianRestrictedGradient,
    GaussianScore,
    GumbelNearMaximum,
    GumbelQuantile,
    GumbelSelection,
    GumbelStep,
    GumbelVertex,
    GumbelVotes,
    HypercubeReport,
    L2LaplaceMinimiser,
    LaplaceReport,
    LaplaceVertex,
    PerturbedMinimiser,
    PiecewiseReport,
    PrintedGradient,
    PrintedLabels,
    RandomTrials,
    Release,
    SampledGradient,
    SampledMomentum,
    SkellamGradient,
    SkellamMinimiser,
    SphereReport,
    ZCDPFilter,
    is_priced_here,
    release_from_dict,
)
from thresher.vaults.randomisers import Classes, Hypercube, Laplace, Piecewise, Sphere

GAUSSIANS = [
    GaussianGradient,
    GaussianRestrictedGradient,
    GaussianMinimiser,
    GaussianMoments,
    GaussianGram,
    GaussianLabels,
    GaussianReport,
    GaussianScore,
    GaussianMean,
]
REPORTS = [
    SphereReport(times=3, epsilon=0.7, dimension=10, height=0.1),
    HypercubeReport(times=3, epsilon=0.7, dimension=10, sampled=3, agreeing=2),
    LaplaceReport(times=1, epsilon=0.7),
    PiecewiseReport(times=1, epsilon=0.7),
    ClassReport(times=1, epsilon=0.7, classes=3),
]
BINOMIAL = [BinomialGradient, BinomialMinimiser]
SKELLAM = [SkellamGradient, SkellamMinimiser]
TOPS = [GumbelSelection, GumbelVotes]
GUMBELS = [GumbelQuantile, GumbelVertex, GumbelStep]
ONE_SIDED = [GumbelNearMaximum]
SAMPLED = [
    SampledGradient(3, 2.5, 10, 100, "poisson", Adjacency.ADD_REMOVE),
    SampledMomentum(3, 2.5, 10, 100, "fixed", Adjacency.REPLACE_ONE),
]
ONE_OF_EACH = [
    *(kind(times=3, sd_per_sensitivity=2.5) for kind in GAUSSIANS),
    *(kind(times=3, scale_per_sensitivity=2.5, picks=4) for kind in TOPS),
    *(kind(times=3, scale_per_sensitivity=2.5) for kind in (*GUMBELS, *ONE_SIDED, LaplaceVertex)),
    GaussianCategories(times=3, sd_per_sensitivity=2.5, clearance=6.0),
    PerturbedMinimiser(times=1, sd_per_sensitivity=2.5, curvature_ratio=0.1, sd_per_tolerance=30.0),
    L2LaplaceMinimiser(times=2, epsilon=0.7),
    PrintedLabels(times=1, sd=0.3),
    PrintedGradient(times=3, tilt=15.0, laplace=4.0),
    ExactRelease(times=1, question="gradient"),
    *SAMPLED,
    ZCDPFilter(times=1, rho=0.3),
    RandomTrials(1, 5.0, ((GaussianGradient(3, 2.5),), (SAMPLED[0],)), GaussianScore(1, 9.0), 100, 20),
    *(kind(times=3, sd_per_sensitivity=2.5, touched=20, coins=256, dither=8) for kind in BINOMIAL),
    *(kind(times=3, sd_per_sensitivity=2.5, touched=20, variance=10**8) for kind in SKELLAM),
    *REPORTS,
]

budgets = st.builds(
    Budget,
    epsilon=st.floats(math.log(1e-3), math.log(50)).map(math.exp),
    delta=st.floats(math.log(1e-12), math.log(0.1)).map(math.exp),
    adjacency=st.sampled_from(Adjacency),
)
each_kind = pytest.mark.parametrize("release", ONE_OF_EACH, ids=lambda release: type(release).__name__)
each_gaussian = pytest.mark.parametrize("kind", GAUSSIANS)


@dataclasses.dataclass(frozen=True)
class FreeGradient(GaussianGradient):
    """A look-alike that claims to cost nothing."""

    def cost(self):
        return Cost()


# -- prices -------------------------------------------------------------------------------------------------------


@each_gaussian
def test_gaussian_uses_add_up_in_squares(kind):
    release = kind(times=9, sd_per_sensitivity=6.0)
    assert release.cost().mu_squared == pytest.approx((3 / 6) ** 2)
    assert release.cost().rho == pytest.approx((3 / 6) ** 2 / 2)
    assert release.cost().epsilon(1e-6)[0] == pytest.approx(gaussian_epsilon(0.5, 1e-6), rel=1e-9)


@each_gaussian
def test_a_gaussian_release_is_never_pure(kind):
    assert kind(times=1, sd_per_sensitivity=100.0).cost().pure == math.inf


@each_gaussian
def test_a_gaussian_release_without_noise_has_no_finite_price(kind):
    assert kind(times=1, sd_per_sensitivity=0.0).cost().epsilon(0.1)[0] == math.inf


def test_l2_laplace_uses_add_up_as_pure_dp_and_as_zcdp():
    cost = L2LaplaceMinimiser(times=4, epsilon=0.5).cost()
    assert cost.pure == 2.0
    assert cost.rho == 4 * 0.5**2 / 2


def test_many_l2_laplace_uses_cost_less_than_the_sum_of_their_epsilons():
    epsilon = L2LaplaceMinimiser(times=1000, epsilon=0.05).cost().epsilon(1e-6)[0]
    assert epsilon == pytest.approx(zcdp_epsilon(1000 * 0.05**2 / 2, 1e-6))
    assert epsilon < 1000 * 0.05


def test_an_exact_release_has_no_finite_price():
    assert ExactRelease(times=1, question="gradient").cost().epsilon(0.5)[0] == math.inf


@pytest.mark.parametrize(
    "release",
    [r for r in ONE_OF_EACH if not isinstance(r, (RandomTrials, ZCDPFilter))],
    ids=lambda release: type(release).__name__,
)
def test_a_second_use_never_costs_less(release):
    twice = dataclasses.replace(release, times=2 * release.times)
    assert twice.cost().epsilon(1e-6)[0] >= release.cost().epsilon(1e-6)[0] > 0


def test_a_filter_is_one_cap_priced_in_zcdp():
    filled = ZCDPFilter.calibrated(Budget(1.0, 1e-6))
    assert 0.999 < filled.cost().epsilon(1e-6)[0] <= 1.0
    assert filled.cost().epsilon(1e-6)[0] == pytest.approx(zcdp_epsilon(filled.rho, 1e-6), rel=1e-9)
    for wrong in ({"times": 2, "rho": 0.1}, {"times": 1, "rho": 0.0}, {"times": 1, "rho": math.nan}):
        with pytest.raises(ValueError, match="a filter is one cap above 0"):
            ZCDPFilter(**wrong)


# -- noise over sensitivity ---------------------------------------------------------------------------------------


def test_multipliers_are_noise_scale_over_sensitivity():
    central = ONE_OF_EACH[: -len(REPORTS)]
    assert [release.multiplier for release in central] == [
        *[2.5] * 18,
        1 / 0.7,
        0.0,
        0.0,
        0.0,
        2.5,
        2.5,
        0.0,
        0.0,
        *[2.5] * 4,
    ]


@pytest.mark.parametrize("release", REPORTS, ids=lambda release: type(release).__name__)
def test_a_report_costs_its_epsilon_once_however_many_groups_are_asked(release):
    """Groups are disjoint: nobody reports twice."""
    assert dataclasses.replace(release, times=50).cost().epsilon(0.0) == (0.7, "pure composition")


def test_report_multipliers_are_size_over_the_distance_of_two_values():
    """Of values within [-1, 1], 2 apart: the size of each label randomiser, and a bound no unbiased report can beat."""
    sizes = [2 * release.multiplier for release in REPORTS]
    least = 1 / math.tanh(0.35)
    assert sizes == pytest.approx([least, least, Laplace(0.7).size, Piecewise(0.7).size, least])
    assert min(Sphere(10, 0.7, 0.1).size, Hypercube(10, 0.7, 3, 2).size, Classes(3, 0.7).size) > least


@pytest.mark.parametrize("kind", [LaplaceReport, PiecewiseReport])
@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_a_report_without_a_finite_epsilon_is_refused(kind, epsilon):
    with pytest.raises(ValueError, match=f"epsilon={epsilon!r} of a report"):
        kind(times=1, epsilon=epsilon)


@pytest.mark.parametrize("dimension", [1, 2, 10, 1000])
def test_gaussian_coordinates_have_the_multiplier_as_sd(dimension):
    assert GaussianGradient(times=1, sd_per_sensitivity=2.5).coordinate_sd(dimension) == 2.5


@pytest.mark.parametrize("dimension", [1, 2, 10, 1000])
def test_l2_laplace_coordinates_share_the_second_moment_of_a_gamma_norm(dimension):
    second_moment = stats.gamma(dimension, scale=1 / 0.7).moment(2)
    sd = L2LaplaceMinimiser(times=1, epsilon=0.7).coordinate_sd(dimension)
    assert sd == pytest.approx(math.sqrt(second_moment / dimension))


def test_l2_laplace_in_one_dimension_is_laplace():
    assert L2LaplaceMinimiser(times=1, epsilon=0.7).coordinate_sd(1) == pytest.approx(
        stats.laplace(scale=1 / 0.7).std()
    )


# -- calibration --------------------------------------------------------------------------------------------------


@given(budgets, st.integers(1, 10_000), st.sampled_from(GAUSSIANS))
@settings(deadline=None)
def test_a_calibrated_release_fills_the_budget_and_no_more(budget, times, kind):
    spent = kind.calibrated(budget, times).cost().epsilon(budget.delta)[0]
    assert budget.epsilon * (1 - 1e-9) <= spent <= budget.epsilon


@given(budgets, st.integers(1, 1000), st.integers(1, 1000), st.floats(0.01, 0.99))
@settings(deadline=None)
def test_two_shares_of_a_budget_fill_it_and_no_more(budget, times, others, share):
    first = GaussianGradient.calibrated(budget, times, share)
    second = GaussianRestrictedGradient.calibrated(budget, others, 1 - share)
    spent = (first.cost() + second.cost()).epsilon(budget.delta)[0]
    assert budget.epsilon * (1 - 1e-9) <= spent <= budget.epsilon


@given(budgets, st.integers(1, 1000), st.floats(0.01, 1))
@settings(deadline=None)
def test_a_share_is_a_share_of_mu_squared(budget, times, share):
    whole, part = GaussianGradient.calibrated(budget, times), GaussianGradient.calibrated(budget, times, share)
    assert part.cost().mu_squared == pytest.approx(share * whole.cost().mu_squared)


def test_calibration_does_not_depend_on_the_adjacency():
    """The adjacency enters once, in the sensitivity."""
    budgets = [Budget(1.0, 1e-6, adjacency) for adjacency in Adjacency]
    assert len({GaussianGradient.calibrated(budget, 5) for budget in budgets}) == 1


@each_gaussian
def test_an_infinite_budget_buys_no_noise(kind):
    assert kind.calibrated(Budget(math.inf, 1e-6), 10).multiplier == 0.0


# -- validation ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [0, -1, 1.0, 2.5, "3", None, math.nan])
@each_kind
def test_times_must_be_a_positive_whole_number(release, times):
    with pytest.raises(ValueError, match="whole number of at least 1") as refusal:
        dataclasses.replace(release, times=times)
    assert f"times={times!r}" in str(refusal.value)


@pytest.mark.parametrize("sd", [-1.0, -1e-300, math.nan, math.inf, "1", None])
@each_gaussian
def test_the_noise_multiplier_must_be_finite_and_not_negative(kind, sd):
    with pytest.raises(ValueError, match="finite number of at least 0") as refusal:
        kind(times=1, sd_per_sensitivity=sd)
    assert f"sd_per_sensitivity={sd!r}" in str(refusal.value)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_the_epsilon_of_a_pure_release_must_be_positive_and_finite(epsilon):
    with pytest.raises(ValueError, match="positive and finite") as refusal:
        L2LaplaceMinimiser(times=1, epsilon=epsilon)
    assert f"epsilon={epsilon!r}" in str(refusal.value)


@each_kind
def test_a_release_cannot_be_changed(release):
    with pytest.raises(dataclasses.FrozenInstanceError):
        release.times = 1


def test_the_base_class_has_no_price():
    with pytest.raises(NotImplementedError):
        Release(times=1).cost()


# -- questions ----------------------------------------------------------------------------------------------------


def test_each_release_names_its_question_and_its_noise():
    assert [(release.question.name, release.noise) for release in ONE_OF_EACH] == [
        ("gradient", "gaussian"),
        ("restricted gradient", "gaussian"),
        ("minimiser", "gaussian"),
        ("moments", "gaussian"),
        ("gram", "gaussian"),
        ("labels", "gaussian"),
        ("local labels", "gaussian"),
        ("score", "gaussian"),
        ("mean", "gaussian"),
        ("selection", "gumbel"),
        ("votes", "gumbel"),
        ("quantile", "gumbel"),
        ("vertex", "gumbel"),
        ("step length", "gumbel"),
        ("near maximum", "gumbel"),
        ("vertex", "laplace"),
        ("categories", "thresholded gaussian"),
        ("perturbed minimiser", "gaussian in the objective"),
        ("minimiser", "l2-laplace"),
        ("printed labels", "gaussian"),
        ("printed gradient", "laplace, and gaussian in the objective"),
        ("gradient", "none"),
        ("sampled gradient", "gaussian"),
        ("sampled momentum", "gaussian"),
        ("any", "as listed"),
        ("trials", "as listed"),
        ("gradient", "dithered binomial"),
        ("minimiser", "dithered binomial"),
        ("gradient", "skellam"),
        ("minimiser", "skellam"),
        ("local gradient", "sphere"),
        ("local gradient", "hypercube"),
        ("local labels", "laplace"),
        ("local labels", "piecewise"),
        ("local labels", "randomised response"),
    ]


def test_releases_of_different_kinds_are_different_even_with_equal_numbers():
    assert len({kind(times=3, sd_per_sensitivity=2.5) for kind in GAUSSIANS}) == len(GAUSSIANS)


# -- written form -------------------------------------------------------------------------------------------------


def test_every_kind_is_tested_here():
    assert {type(release) for release in ONE_OF_EACH} == set(_KINDS.values())


@each_kind
def test_a_release_survives_json(release):
    back = release_from_dict(json.loads(json.dumps(release.to_dict())))
    assert back == release
    assert back.cost() == release.cost()


@each_kind
def test_a_release_survives_pickle(release):
    assert pickle.loads(pickle.dumps(release)) == release


@given(st.integers(1, 10**9), st.floats(0, 1e100))
def test_the_written_form_keeps_every_digit(times, sd):
    release = GaussianGradient(times=times, sd_per_sensitivity=sd)
    assert release_from_dict(json.loads(json.dumps(release.to_dict()))) == release


@pytest.mark.parametrize("kind", ["FreeGradient", "Release", "_Gaussian", "Cost", "", None, 3])
def test_an_unknown_kind_is_refused_and_the_known_ones_are_listed(kind):
    with pytest.raises(ValueError, match="unknown release kind") as refusal:
        release_from_dict({"kind": kind, "times": 1, "sd_per_sensitivity": 1.0})
    assert repr(kind) in str(refusal.value)
    assert "GaussianGradient" in str(refusal.value)


def test_a_dict_without_a_kind_is_refused():
    with pytest.raises(ValueError, match="unknown release kind None"):
        release_from_dict({"times": 1})


def test_a_dict_with_a_field_of_its_own_is_refused():
    with pytest.raises(TypeError, match="price"):
        release_from_dict({**ONE_OF_EACH[0].to_dict(), "price": 0.0})


def test_reading_a_dict_leaves_it_as_it_was():
    fields = ONE_OF_EACH[0].to_dict()
    release_from_dict(fields)
    assert fields == ONE_OF_EACH[0].to_dict()


# -- look-alikes --------------------------------------------------------------------------------------------------


@each_kind
def test_own_kinds_are_priced_here(release):
    assert is_priced_here(release)


@pytest.mark.parametrize(
    "stranger", [FreeGradient(times=3, sd_per_sensitivity=2.5), Release(times=1), "gradient", None]
)
def test_look_alikes_are_not_priced_here(stranger):
    assert not is_priced_here(stranger)


# -- known gaps ---------------------------------------------------------------------------------------------------


def test_times_may_be_a_numpy_integer():
    assert GaussianGradient(times=np.int64(3), sd_per_sensitivity=1.0).times == 3


@pytest.mark.parametrize(("sd", "epsilon"), [(1e-200, math.inf), (1e200, 0.0)])
def test_extreme_multipliers_have_a_price(sd, epsilon):
    assert GaussianGradient(times=1, sd_per_sensitivity=sd).cost().epsilon(1e-6)[0] == epsilon


# -- choices ------------------------------------------------------------------------------------------------------

multipliers = st.floats(math.log(1e-2), math.log(1e3)).map(math.exp)
rhos = st.floats(math.log(1e-6), math.log(100)).map(math.exp)
FIELD = dict.fromkeys(GAUSSIANS, "sd_per_sensitivity")
FIELD |= dict.fromkeys((*TOPS, *GUMBELS, *ONE_SIDED, LaplaceVertex), "scale_per_sensitivity")


@given(multipliers, st.integers(1, 50), st.integers(1, 20), st.sampled_from(TOPS))
def test_every_pick_costs_an_eighth_of_its_epsilon_squared(multiplier, times, picks, kind):
    cost, epsilon = kind(times, multiplier, picks).cost(), 2 / multiplier
    assert cost.rho == pytest.approx(times * picks * epsilon**2 / 8)
    assert cost.pure == pytest.approx(times * picks * epsilon)
    assert cost.mu_squared == math.inf
    assert cost.rdp == pytest.approx(times * picks * np.minimum(epsilon**2 / 8 * ORDERS, epsilon))


@pytest.mark.parametrize("kind", GUMBELS)
def test_a_single_choice_costs_as_much_as_a_top_of_one(kind):
    assert kind(7, 1.7).cost() == GumbelSelection(7, 1.7, picks=1).cost()


@given(multipliers, st.integers(1, 50), st.sampled_from(ONE_SIDED))
def test_scores_that_move_one_way_cost_as_much_as_others_with_twice_the_noise(multiplier, times, kind):
    """Their loss has half the range: a quarter of the rho, half of the epsilon, and the same exact composition."""
    one_sided, other = kind(times, multiplier), GumbelQuantile(times, 2 * multiplier)
    assert one_sided.range_of_loss == pytest.approx(1 / multiplier)
    assert one_sided.cost() == other.cost()
    assert one_sided.cost().rho == pytest.approx(times / multiplier**2 / 8)
    assert one_sided.steps == other.steps == (Choice(other.range_of_loss),)


def test_a_choice_by_laplace_noise_costs_four_times_the_rho_of_one_by_gumbel_noise():
    laplace, gumbel = LaplaceVertex(7, 1.7).cost(), GumbelVertex(7, 1.7).cost()
    assert laplace.pure == gumbel.pure == pytest.approx(7 * 2 / 1.7)
    assert laplace.rho == pytest.approx(4 * gumbel.rho)


@given(rhos, st.integers(1, 100), st.integers(1, 30), st.sampled_from([*GAUSSIANS, *TOPS, *GUMBELS, *ONE_SIDED]))
def test_a_release_for_rho_costs_that_rho(rho, times, picks, kind):
    picks = {"picks": picks} if kind in TOPS else {}
    release = kind.for_rho(rho, times, **picks)
    assert release.cost().rho == pytest.approx(rho, rel=1e-13)
    assert release.times == times
    assert getattr(release, "picks", None) == picks.get("picks")


@pytest.mark.parametrize("kind", [*GAUSSIANS, *TOPS, *GUMBELS, *ONE_SIDED])
def test_an_infinite_rho_buys_no_noise_and_a_plain_use_is_one(kind):
    assert kind.for_rho(math.inf).multiplier == 0.0
    assert kind.for_rho(0.3).times == 1


@pytest.mark.parametrize("kind", FIELD)
def test_no_noise_has_no_finite_price(kind):
    release = kind(**{"times": 1, FIELD[kind]: 0.0}, **({"picks": 1} if kind in TOPS else {}))
    assert release.cost() == Cost.unbounded()


@pytest.mark.parametrize("kind", FIELD)
@pytest.mark.parametrize("value", [-1.0, -1e-300, math.nan, math.inf, "1", None])
def test_a_bad_multiplier_is_refused_by_name(kind, value):
    with pytest.raises(ValueError, match="finite number of at least 0") as refusal:
        kind(**{"times": 1, FIELD[kind]: value}, **({"picks": 1} if kind in TOPS else {}))
    assert f"{FIELD[kind]}={value!r}" in str(refusal.value)


@pytest.mark.parametrize("kind", TOPS)
@pytest.mark.parametrize("picks", [0, -1, 1.0, 2.5, "3", None, True, math.nan])
def test_picks_must_be_a_positive_whole_number(kind, picks):
    with pytest.raises(ValueError, match="whole number of at least 1") as refusal:
        kind(1, 1.0, picks)
    assert f"picks={picks!r}" in str(refusal.value)


@pytest.mark.parametrize("kind", TOPS)
def test_picks_may_be_a_numpy_integer(kind):
    release = kind(1, 1.0, np.int8(100))
    assert (type(release.picks), release.uses) == (int, 100)
    assert dataclasses.replace(release, times=100).uses == 10_000  # would wrap around in eight bits


@pytest.mark.parametrize("missing", ["times", "scale_per_sensitivity", "picks"])
def test_a_dict_with_a_field_missing_is_refused(missing):
    fields = GumbelSelection(3, 2.5, 4).to_dict()
    del fields[missing]
    with pytest.raises(TypeError, match=missing):
        release_from_dict(fields)


@pytest.mark.parametrize(("field", "value"), [("picks", 0), ("scale_per_sensitivity", -1.0), ("times", 2.5)])
def test_a_dict_with_a_bad_field_is_refused(field, value):
    with pytest.raises(ValueError, match=f"{field}="):
        release_from_dict({**GumbelSelection(3, 2.5, 4).to_dict(), field: value})


# -- objective perturbation ---------------------------------------------------------------------------------------

PERTURBED = PerturbedMinimiser(times=1, sd_per_sensitivity=2.5, curvature_ratio=0.1, sd_per_tolerance=30.0)


@pytest.mark.parametrize("order", [0, 100, 150, 200])
@pytest.mark.parametrize("sd", [0.5, 2.5, 20.0])
def test_a_perturbed_minimiser_costs_the_renyi_moment_of_its_privacy_loss(order, sd):
    """log(1 + k) + mu^2/2 + mu |Z|, integrated numerically, and the Gaussian that hides the tolerance."""
    alpha, mu = ORDERS[order], 1 / sd
    beyond = alpha - 1
    loss = lambda z: math.exp(beyond * mu * z - z * z / 2) / math.sqrt(2 * math.pi)  # noqa: E731
    moment = 2 * integrate.quad(loss, 0, beyond * mu + 12, points=[beyond * mu], epsabs=0, epsrel=1e-10)[0]
    expected = math.log(1.1) + mu * mu / 2 + math.log(moment) / beyond + alpha / (2 * 30.0**2)
    rdp = dataclasses.replace(PERTURBED, sd_per_sensitivity=sd).cost().rdp[order]
    assert rdp == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("field", "dearer"), [("sd_per_sensitivity", 0.9), ("curvature_ratio", 1.1), ("sd_per_tolerance", 0.9)]
)
def test_a_perturbed_minimiser_costs_more_with_less_noise_or_more_curvature(field, dearer):
    changed = dataclasses.replace(PERTURBED, **{field: getattr(PERTURBED, field) * dearer})
    assert np.all(np.array(changed.cost().rdp) > np.array(PERTURBED.cost().rdp))
    assert PERTURBED.cost().epsilon(1e-6)[0] < changed.cost().epsilon(1e-6)[0] < math.inf


def test_a_perturbed_minimiser_costs_more_than_its_gaussian_alone_and_is_known_by_its_renyi_curve_only():
    cost = PERTURBED.cost()
    assert np.all(np.array(cost.rdp) > np.array(GaussianMinimiser(1, 2.5).cost().rdp))
    assert cost.mu_squared == cost.rho == cost.pure == math.inf
    assert cost.epsilon(1e-6)[1] == "RDP"


@pytest.mark.parametrize("field", ["sd_per_sensitivity", "sd_per_tolerance"])
def test_a_perturbed_minimiser_without_one_of_its_noises_has_no_finite_price(field):
    assert dataclasses.replace(PERTURBED, **{field: 0.0}).cost() == Cost.unbounded()


@pytest.mark.parametrize("field", ["sd_per_sensitivity", "curvature_ratio", "sd_per_tolerance"])
@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_a_perturbed_minimiser_with_a_bad_field_is_refused_by_name(field, value):
    with pytest.raises(ValueError, match=f"{field}="):
        dataclasses.replace(PERTURBED, **{field: value})


def test_gradients_as_printed_have_no_price_whatever_their_noise():
    printed = PrintedGradient.printed(Budget(0.5, 1e-3), times=7)
    assert (printed.tilt, printed.laplace) == pytest.approx((2 * math.sqrt(2 * math.log(1250)) / 0.5, 4.0))
    assert printed.cost() == Cost.unbounded()
    assert PrintedGradient.printed(Budget(math.inf, 1e-3), 1) == PrintedGradient(1, 0.0, 0.0)
    for field in ("tilt", "laplace"):
        with pytest.raises(ValueError, match=f"{field}=-1.0"):
            dataclasses.replace(printed, **{field: -1.0})


def test_labels_as_printed_have_no_price_whatever_their_noise():
    assert PrintedLabels(1, 1e9).cost() == Cost.unbounded()
    with pytest.raises(ValueError, match="sd="):
        PrintedLabels(1, -1.0)
