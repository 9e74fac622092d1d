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
from scipy import stats

from thresher.accounting import Cost, gaussian_epsilon, zcdp_epsilon
from thresher.budget import Adjacency, Budget
from thresher.releases import (
    ExactRelease,
    GaussianGradient,
    GaussianMinimiser,
    GaussianRestrictedGradient,
    L2LaplaceMinimiser,
    Release,
    is_priced_here,
    release_from_dict,
)

GAUSSIANS = [GaussianGradient, GaussianRestrictedGradient, GaussianMinimiser]
ONE_OF_EACH = [
    *(kind(times=3, sd_per_sensitivity=2.5) for kind in GAUSSIANS),
    L2LaplaceMinimiser(times=2, epsilon=0.7),
    ExactRelease(times=1, question="gradient"),
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


@each_kind
def test_a_second_use_never_costs_less(release):
    twice = dataclasses.replace(release, times=2 * release.times)
    assert twice.cost().epsilon(1e-6)[0] >= release.cost().epsilon(1e-6)[0] > 0


# -- noise over sensitivity ---------------------------------------------------------------------------------------


def test_multipliers_are_noise_scale_over_sensitivity():
    assert [release.multiplier for release in ONE_OF_EACH] == [2.5, 2.5, 2.5, 1 / 0.7, 0.0]


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
    assert [(release.question, release.noise) for release in ONE_OF_EACH] == [
        ("gradient", "gaussian"),
        ("restricted gradient", "gaussian"),
        ("minimiser", "gaussian"),
        ("minimiser", "l2-laplace"),
        ("gradient", "none"),
    ]


def test_releases_of_different_kinds_are_different_even_with_equal_numbers():
    assert len({kind(times=3, sd_per_sensitivity=2.5) for kind in GAUSSIANS}) == len(GAUSSIANS)


# -- written form -------------------------------------------------------------------------------------------------


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
