"""Problem (public facts and how bad ones are refused), Plan (within budget or not at all), Meter (no answer unpaid)."""

from __future__ import annotations

import dataclasses
import itertools
import math
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from thresher.privacy.accounting import Cost
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget, BudgetExceeded
from thresher.privacy.conversions import gaussian_epsilon
from thresher.privacy.plan import Answer, Meter, Plan
from thresher.privacy.releases import (
    ExactRelease,
    GaussianGradient,
    GaussianMinimiser,
    GumbelSelection,
    L2LaplaceMinimiser,
    SampledGradient,
    ZCDPFilter,
)
from thresher.vaults.clipping import clip_rows
from thresher.vaults.losses import LOGISTIC, MULTINOMIAL, SQUARED, Squared, loss_named
from thresher.vaults.problem import LinearProblem

BUDGET = Budget(1.0, 1e-6)
BOUNDS = Bounds(feature=1.0, target=(-1.0, 1.0))
PROBLEM = LinearProblem(n=100, d=5, sparsity=2, loss=SQUARED, bounds=BOUNDS)


def plan(*releases, budget=BUDGET, **fields):
    return Plan("test", PROBLEM, budget, releases or (GaussianGradient.calibrated(budget, 3),), **fields)


@dataclasses.dataclass(frozen=True)
class FreeGradient(GaussianGradient):
    """A look-alike that claims to cost nothing."""

    def cost(self):
        return Cost()


# -- LinearProblem: refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, -1, 2.0, 1.5, "2", None, True, math.nan])
@pytest.mark.parametrize("name", ["n", "d", "sparsity", "outputs"])
def test_counts_must_be_positive_whole_numbers(name, value):
    with pytest.raises(ValueError, match="whole number of at least 1") as refusal:
        dataclasses.replace(PROBLEM, **{name: value})
    assert f"{name}={value!r}" in str(refusal.value)


def test_sparsity_above_the_number_of_columns_is_refused_and_the_largest_is_named():
    with pytest.raises(ValueError, match=r"sparsity=6 .* ask for at most 5"):
        dataclasses.replace(PROBLEM, sparsity=6)


def test_a_sparsity_of_all_columns_is_allowed():
    assert dataclasses.replace(PROBLEM, sparsity=np.int64(5)).sparsity == 5


@pytest.mark.parametrize("loss", ["hinge", "Squared", "", None])
def test_an_unknown_name_of_a_loss_is_refused_and_the_known_ones_are_listed(loss):
    with pytest.raises(ValueError, match="must be one of 'squared', 'logistic'") as refusal:
        loss_named(loss)
    assert f"loss={loss!r}" in str(refusal.value)


@pytest.mark.parametrize("loss", ["squared", None, Squared])
def test_a_problem_takes_the_loss_itself_and_no_name(loss):
    with pytest.raises(ValueError, match="must be a loss") as refusal:
        dataclasses.replace(PROBLEM, loss=loss)
    assert f"loss={loss!r}" in str(refusal.value)


def test_the_squared_loss_needs_a_target_bound():
    with pytest.raises(ValueError, match=r"target_bound=None: give the public range of the target"):
        dataclasses.replace(PROBLEM, bounds=Bounds(feature=1.0))


def test_the_logistic_loss_needs_no_target_bound():
    assert dataclasses.replace(PROBLEM, loss=LOGISTIC, bounds=Bounds(feature=1.0)).target_radius == 1.0


def test_one_feature_bound_per_column_or_one_for_all():
    with pytest.raises(
        ValueError, match=r"feature_bound has 3 values for 5 columns; give one number or one per column"
    ):
        dataclasses.replace(PROBLEM, bounds=Bounds(feature=(1.0, 1.0, 1.0), target=(-1.0, 1.0)))


def test_some_bound_on_the_rows_is_needed():
    with pytest.raises(ValueError, match=r"feature_bound=None and row_bound=None: give at least one"):
        Bounds(target=(-1.0, 1.0))


@pytest.mark.parametrize("bound", [0.0, -1.0, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(("field", "name"), [("feature", "feature_bound"), ("row", "row_bound")])
def test_bounds_must_be_positive_and_finite(field, name, bound):
    with pytest.raises(ValueError, match="positive finite number, taken from public knowledge") as refusal:
        Bounds(**{field: bound})
    assert f"{name}={bound!r}" in str(refusal.value)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_one_bad_column_bound_is_enough_to_refuse(bad):
    with pytest.raises(ValueError, match=f"feature_bound={bad!r}"):
        Bounds(feature=(1.0, bad, 1.0))


@pytest.mark.parametrize("target", [(1.0, 1.0), (2.0, 1.0), (math.nan, 1.0), (0.0, math.nan), (-math.inf, 1.0)])
def test_target_bounds_must_be_an_ordered_finite_pair(target):
    with pytest.raises(ValueError, match=r"pair \(low, high\) with low < high") as refusal:
        Bounds(feature=1.0, target=target)
    assert f"target_bound={target!r}" in str(refusal.value)


@pytest.mark.parametrize(("loss", "outputs"), [("squared", 2), ("logistic", 3), ("multinomial", 1)])
def test_several_outputs_go_with_the_multinomial_loss_and_no_other(loss, outputs):
    with pytest.raises(ValueError, match=f"outputs={outputs} with loss={loss!r}"):
        dataclasses.replace(PROBLEM, loss=loss_named(loss), outputs=outputs)


# -- LinearProblem: derived facts ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bounds", "norm"),
    [
        (Bounds(feature=2.0, target=(-1, 1)), 2 * math.sqrt(5)),
        (Bounds(row=3.0, target=(-1, 1)), 3.0),
        (Bounds(feature=2.0, row=3.0, target=(-1, 1)), 3.0),
        (Bounds(feature=1.0, row=3.0, target=(-1, 1)), math.sqrt(5)),
        (Bounds(feature=(1.0, 2.0, 2.0, 4.0, 12.0), target=(-1, 1)), 13.0),
    ],
)
def test_the_row_norm_is_the_smallest_the_bounds_prove(bounds, norm):
    assert dataclasses.replace(PROBLEM, bounds=bounds, intercept=False).row_norm == pytest.approx(norm)


@pytest.mark.parametrize("bound", [0.1, 1.0, 7.0])
def test_the_intercept_column_is_an_eighth_of_the_row_bound_and_part_of_the_row_norm(bound):
    problem = dataclasses.replace(PROBLEM, bounds=Bounds(row=bound, target=(-1, 1)))
    assert problem.intercept_column == bound / 8
    assert problem.row_norm == pytest.approx(bound * math.sqrt(1 + 1 / 64))


# -- LinearProblem: several outputs -------------------------------------------------------------------------------


def many(outputs=3, intercept=True):
    return LinearProblem(
        100, 5, Bounds(feature=1.0), sparsity=2, loss=MULTINOMIAL, intercept=intercept, outputs=outputs
    )


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("outputs", [2, 3, 7])
def test_every_output_has_its_coefficients_and_its_intercept(outputs, intercept):
    problem = many(outputs, intercept)
    assert problem.width == 5 * outputs
    assert problem.dimension == len(problem.origin()) == (5 + intercept) * outputs
    one = dataclasses.replace(problem, loss=LOGISTIC, outputs=1)
    assert (one.width, one.dimension) == (5, 5 + intercept)
    for fact in ("row_norm", "intercept_column", "target_radius"):  # facts of a row, whatever is fitted to it
        assert getattr(problem, fact) == getattr(one, fact)
    np.testing.assert_array_equal(problem.units, one.units)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("outputs", [2, 3, 7])
def test_by_column_has_an_output_in_every_column_and_stacked_is_its_inverse(outputs, intercept):
    problem = many(outputs, intercept)
    theta = np.arange(float(problem.dimension))
    matrix = problem.by_column(theta)
    assert matrix.shape == (5 + intercept, outputs)
    for k in range(outputs):
        expected = [*range(5 * k, 5 * k + 5), *[5 * outputs + k] * intercept]
        np.testing.assert_array_equal(matrix[:, k], expected)
    np.testing.assert_array_equal(problem.stacked(matrix), theta)


@pytest.mark.parametrize("intercept", [True, False])
def test_one_output_is_its_own_column(intercept):
    problem = dataclasses.replace(PROBLEM, intercept=intercept)
    theta = np.arange(float(problem.dimension))
    np.testing.assert_array_equal(problem.by_column(theta), theta)
    np.testing.assert_array_equal(problem.stacked(theta), theta)


def test_the_squared_loss_fits_numbers_and_the_others_classes():
    assert not PROBLEM.loss.classifies
    assert dataclasses.replace(PROBLEM, loss=LOGISTIC).loss.classifies
    assert many().loss.classifies


def test_numpys_integers_become_plain_ones_in_outputs():
    assert type(many(np.int8(100)).outputs) is int
    assert many(np.int8(100)).width == 500  # would wrap around in eight bits


# -- LinearProblem: units -----------------------------------------------------------------------------------------

MANY_BOUNDS = [
    (Bounds(feature=2.0, target=(-1, 1)), [2.0] * 5),
    (Bounds(row=3.0, target=(-1, 1)), [3.0] * 5),
    (Bounds(feature=2.0, row=3.0, target=(-1, 1)), [2.0] * 5),
    (Bounds(feature=(1.0, 2.0, 2.0, 4.0, 12.0), target=(-1, 1)), [1.0, 2.0, 2.0, 4.0, 12.0]),
    (Bounds(feature=(1.0, 2.0, 2.0, 4.0, 12.0), row=3.0, target=(-1, 1)), [1.0, 2.0, 2.0, 3.0, 3.0]),
]


@pytest.mark.parametrize(("bounds", "entries"), MANY_BOUNDS)
@pytest.mark.parametrize("intercept", [True, False])
def test_entry_bounds_are_what_the_bounds_prove_of_each_column_and_the_intercepts_constant(bounds, entries, intercept):
    problem = dataclasses.replace(PROBLEM, bounds=bounds, intercept=intercept)
    np.testing.assert_allclose(problem.entry_bounds, [*entries, *[problem.intercept_column] * intercept])


@pytest.mark.parametrize(("bounds", "entries"), MANY_BOUNDS)
@pytest.mark.parametrize("intercept", [True, False])
def test_in_its_units_a_column_is_bounded_by_one_and_the_intercept_is_one_half(bounds, entries, intercept):
    problem = dataclasses.replace(PROBLEM, bounds=bounds, intercept=intercept)
    np.testing.assert_allclose(problem.entry_bounds / problem.units, [*[1.0] * 5, *[0.5] * intercept])
    problem.units[:] = 0  # a copy: a problem cannot be changed
    assert np.all(problem.units > 0)


@pytest.mark.parametrize(("bounds", "entries"), MANY_BOUNDS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("columns", [1, 2, 5])
def test_no_clipped_row_is_longer_in_units_than_stated(bounds, entries, intercept, columns):
    """Rows at random, and rows along the least bounded columns, where the norm in units is largest."""
    problem = dataclasses.replace(PROBLEM, bounds=bounds, intercept=intercept)
    rows = np.vstack([np.random.default_rng(0).normal(size=(200, 5)) * 10, np.eye(5) * 1e9, np.full((1, 5), 1e9)])
    rows = clip_rows(rows, bounds)
    if intercept:
        rows = np.hstack([rows, np.full((len(rows), 1), problem.intercept_column)])
    for chosen in itertools.combinations(range(5), columns):
        kept = [*chosen, *[5] * intercept]
        norms = np.linalg.norm((rows / problem.units)[:, kept], axis=1)
        assert norms.max() <= problem.norm_in_units(columns) * (1 + 1e-12)
    if bounds.row is None:
        assert norms.max() == pytest.approx(problem.norm_in_units(columns))


@pytest.mark.parametrize(("intercept", "dimension"), [(True, 6), (False, 5)])
def test_the_intercept_adds_one_coordinate(intercept, dimension):
    problem = dataclasses.replace(PROBLEM, intercept=intercept)
    assert problem.dimension == dimension
    np.testing.assert_array_equal(problem.origin(), np.zeros(dimension))


@pytest.mark.parametrize(("intercept", "centre", "radius"), [(True, 5.0, 5.0), (False, 0.0, 10.0)])
def test_targets_are_centred_only_if_an_intercept_can_give_the_centre_back(intercept, centre, radius):
    problem = dataclasses.replace(PROBLEM, bounds=Bounds(feature=1.0, target=(0, 10)), intercept=intercept)
    assert (problem.target_centre, problem.target_radius) == (centre, radius)


def test_the_radius_of_an_uncentred_range_is_its_farther_end():
    problem = dataclasses.replace(PROBLEM, bounds=Bounds(feature=1.0, target=(-20, 10)), intercept=False)
    assert problem.target_radius == 20


@pytest.mark.parametrize(("loss", "curvature"), [("squared", 1.0), ("logistic", 0.25)])
def test_the_loss_gives_the_curvature(loss, curvature):
    assert dataclasses.replace(PROBLEM, loss=loss_named(loss)).curvature == curvature


@pytest.mark.parametrize("field", ["n", "d", "sparsity", "loss", "bounds", "intercept"])
def test_a_problem_cannot_be_changed(field):
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(PROBLEM, field, None)


# -- Plan ---------------------------------------------------------------------------------------------------------


def test_a_plan_costs_what_its_releases_cost_together():
    releases = GaussianGradient(times=4, sd_per_sensitivity=20.0), GaussianMinimiser(times=1, sd_per_sensitivity=10.0)
    made = plan(*releases)
    assert made.cost.mu_squared == pytest.approx(4 / 400 + 1 / 100)
    assert made.epsilon == pytest.approx(gaussian_epsilon(math.sqrt(0.02), 1e-6), rel=1e-9)


def test_a_plan_may_use_the_whole_budget():
    assert plan().epsilon == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("excess", [1.001, 2.0])
def test_a_plan_over_budget_is_refused_with_both_numbers(excess):
    release = GaussianGradient.calibrated(Budget(excess, BUDGET.delta), 3)
    with pytest.raises(BudgetExceeded, match=rf"cost epsilon={excess:g} at delta=1e-06, more than the budget's 1$"):
        plan(release)


def test_two_releases_that_each_fit_but_not_together_are_refused():
    release = GaussianGradient.calibrated(BUDGET, 3)
    with pytest.raises(BudgetExceeded):
        plan(release, GaussianMinimiser.calibrated(BUDGET, 1))


def test_the_same_release_listed_twice_is_paid_twice():
    release = GaussianGradient.calibrated(BUDGET, 3)
    with pytest.raises(BudgetExceeded):
        plan(release, release)


def test_a_printed_calibration_may_be_over_budget_and_says_its_real_cost():
    made = plan(GaussianGradient.calibrated(Budget(5.0, BUDGET.delta), 3), calibration="printed")
    assert made.epsilon == pytest.approx(5.0)


def test_an_exact_release_fits_no_finite_budget():
    with pytest.raises(BudgetExceeded, match="epsilon=inf"):
        plan(ExactRelease(times=1, question="gradient"), budget=Budget(1e9, 0.5))


def test_an_exact_release_fits_an_infinite_budget():
    made = plan(ExactRelease(times=1, question="gradient"), budget=Budget(math.inf, 1e-6))
    assert made.epsilon == math.inf


@pytest.mark.parametrize("calibration", ["proved", "printed"])
def test_a_look_alike_release_with_a_price_of_its_own_is_refused(calibration):
    release = FreeGradient(times=3, sd_per_sensitivity=0.1)
    with pytest.raises(TypeError, match="not a release priced by thresher"):
        plan(release, calibration=calibration)


def test_anything_else_among_the_releases_is_refused():
    with pytest.raises(TypeError, match="not a release priced by thresher"):
        plan("gradient")


def test_settings_cannot_be_written():
    with pytest.raises(TypeError):
        plan(settings={"step": 0.1}).settings["step"] = 0.2


def test_settings_do_not_follow_the_dict_they_came_from():
    given = {"step": 0.1}
    made = plan(settings=given)
    given["step"] = 0.2
    assert made.settings["step"] == 0.1


@pytest.mark.parametrize("field", ["algorithm", "problem", "budget", "releases", "settings", "calibration", "notes"])
def test_a_plan_cannot_be_changed(field):
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(plan(), field, None)


@pytest.mark.parametrize("calibration", ["proved", "printed"])
def test_a_plan_survives_pickle(calibration):
    made = plan(settings={"step": 0.1, "rounds": 3}, notes=("a note",), calibration=calibration)
    back = pickle.loads(pickle.dumps(made))
    assert back == made
    with pytest.raises(TypeError):
        back.settings["step"] = 0.2


def test_unpickling_prices_the_plan_again():
    made = plan(GaussianGradient.calibrated(Budget(5.0, BUDGET.delta), 3), calibration="printed")
    rebuild, fields = made.__reduce__()
    with pytest.raises(BudgetExceeded):
        rebuild(*("proved" if field == "printed" else field for field in fields))


# -- Meter --------------------------------------------------------------------------------------------------------


@pytest.fixture
def release():
    return GaussianGradient.calibrated(BUDGET, 3)


@pytest.fixture
def meter(release):
    return Meter(plan(release))


def spend(meter, release, uses):
    for _ in range(uses):
        meter.charge(release, release.question.name)


def assert_exhausted(meter, release):
    for _ in range(2):
        with pytest.raises(BudgetExceeded, match="used up; nothing was answered"):
            meter.charge(release, "gradient")


def test_every_planned_answer_may_be_asked_and_not_one_more(meter, release):
    spend(meter, release, 3)
    assert_exhausted(meter, release)


def test_an_unplanned_release_is_refused(meter):
    stranger = L2LaplaceMinimiser(times=1, epsilon=1e-3)
    with pytest.raises(BudgetExceeded, match="not in the plan; nothing was answered"):
        meter.charge(stranger, "minimiser")


@pytest.mark.parametrize("factor", [0.5, 1 - 1e-15, 2.0])
def test_a_release_with_another_multiplier_is_refused(meter, release, factor):
    other = dataclasses.replace(release, sd_per_sensitivity=release.sd_per_sensitivity * factor)
    with pytest.raises(BudgetExceeded, match="not in the plan"):
        meter.charge(other, "gradient")


def test_a_release_with_other_times_is_refused(meter, release):
    with pytest.raises(BudgetExceeded, match="not in the plan"):
        meter.charge(dataclasses.replace(release, times=4), "gradient")


def test_a_release_of_another_kind_with_equal_numbers_is_refused(meter, release):
    with pytest.raises(BudgetExceeded, match="not in the plan"):
        meter.charge(GaussianMinimiser(release.times, release.sd_per_sensitivity), "minimiser")


def test_a_release_pays_only_for_its_own_question(meter, release):
    with pytest.raises(BudgetExceeded, match="pays for a gradient, not for a minimiser"):
        meter.charge(release, "minimiser")


def test_a_refused_question_costs_nothing(meter, release):
    with pytest.raises(BudgetExceeded):
        meter.charge(release, "minimiser")
    spend(meter, release, 3)
    assert_exhausted(meter, release)


def test_an_equal_release_pays_like_the_planned_one(meter, release):
    meter.charge(dataclasses.replace(release), "gradient")
    spend(meter, release, 2)
    assert_exhausted(meter, release)


def test_a_release_planned_twice_may_be_used_twice_as_often():
    release = GaussianGradient.calibrated(BUDGET, 2, share=0.5)
    meter = Meter(plan(release, release))
    spend(meter, release, 4)
    with pytest.raises(BudgetExceeded):
        meter.charge(release, "gradient")


def test_two_meters_of_one_plan_count_apart(release):
    made = plan(release)
    spend(Meter(made), release, 3)
    spend(Meter(made), made.releases[0], made.releases[0].times)


def test_answers_are_recorded_in_order(meter, release):
    answers = [Answer(release, clip=1.0, sensitivity=0.02, scale=scale) for scale in (0.1, 0.2)]
    for answer in answers:
        meter.record(answer)
    assert meter.answers == tuple(answers)


@pytest.fixture
def eager_switching():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("eager_switching")
def test_many_threads_get_exactly_the_planned_number_of_answers():
    times, workers = 2000, 16
    release = GaussianGradient.calibrated(BUDGET, times)
    meter = Meter(plan(release))
    start = threading.Barrier(workers)

    def ask(_):
        start.wait()
        paid = 0
        for _ in range(2 * times // workers):
            try:
                meter.charge(release, "gradient")
            except BudgetExceeded:
                continue
            paid += 1
        return paid

    with ThreadPoolExecutor(workers) as pool:
        assert sum(pool.map(ask, range(workers))) == times
    assert_exhausted(meter, release)


# -- known gaps ---------------------------------------------------------------------------------------------------


def test_an_unknown_calibration_is_refused():
    with pytest.raises((ValueError, BudgetExceeded)):
        plan(GaussianGradient.calibrated(Budget(5.0, BUDGET.delta), 3), calibration="Proved")


def test_releases_cannot_be_added_after_the_plan_was_priced():
    cheap = [GaussianGradient.calibrated(BUDGET, 3)]
    made = Plan("test", PROBLEM, BUDGET, cheap)
    cheap.append(GaussianGradient(times=1, sd_per_sensitivity=0.01))
    assert made.epsilon <= BUDGET.epsilon


def test_a_look_alike_that_claims_to_equal_a_planned_release_is_refused(meter, release):
    class Quiet(GaussianGradient):
        __hash__ = GaussianGradient.__hash__

        def __eq__(self, other):
            return True

        @property
        def multiplier(self):
            return 0.0

    with pytest.raises((BudgetExceeded, TypeError)):
        meter.charge(Quiet(release.times, release.sd_per_sensitivity), "gradient")


def test_a_meter_counts_what_was_paid_for_given_or_not():
    (release,) = plan().releases
    meter = Meter(plan(release))
    meter.charge(release, "gradient")
    meter.record(Answer(release, 1.0, 0.02, 0.1))
    meter.charge(release, "gradient")
    with pytest.raises(BudgetExceeded):
        meter.charge(release, "moments")
    assert (meter.charged, len(meter.answers)) == (2, 1)


# -- filters --------------------------------------------------------------------------------------------------------


@pytest.fixture
def capped():
    return Meter(plan(ZCDPFilter(1, 0.02)))


def test_a_filter_lets_any_priced_release_pass_until_its_cap(capped):
    first, second = GaussianGradient.for_rho(0.012), GumbelSelection.for_rho(0.007)
    capped.charge(first, "gradient")
    capped.charge(second, "selection")
    for _ in range(2):
        with pytest.raises(BudgetExceeded, match="used up but for less than"):
            capped.charge(GaussianGradient.for_rho(0.002), "gradient")
    capped.charge(GaussianGradient.for_rho(0.0009), "gradient")


def test_many_small_releases_never_add_up_to_more_than_the_cap(capped):
    small = GaussianGradient.for_rho(0.02 / 997)
    spend(capped, small, 996)
    capped.charge(GaussianGradient.for_rho(0.02 / 998), "gradient")
    with pytest.raises(BudgetExceeded):
        capped.charge(GaussianGradient.for_rho(0.02 / 997 - 0.02 / 998 + 1e-12), "gradient")


@pytest.mark.parametrize(
    "release",
    [
        GaussianGradient(1, 0.0),
        ExactRelease(1, "gradient"),
        GaussianGradient(2, 100.0),
        SampledGradient(1, 100.0, 1, 10, "poisson", "replace-one"),
        SampledGradient(1, 100.0, 1, 10, "fixed", "replace-one"),
    ],
    ids=["no noise", "exact", "more than one use", "poisson batch", "fixed batch"],
)
def test_a_filter_refuses_what_has_no_price_in_zcdp(capped, release):
    with pytest.raises(BudgetExceeded, match="not in the plan"):
        capped.charge(release, release.question.name)


def test_a_filter_does_not_pay_for_look_alikes(capped):
    with pytest.raises(BudgetExceeded, match="not in the plan"):
        capped.charge(FreeGradient(1, 1.0), "gradient")


def test_a_release_within_a_filter_pays_for_its_own_question_and_a_refusal_costs_nothing(capped):
    release = GaussianGradient.for_rho(0.02 * (1 - 1e-9))
    with pytest.raises(BudgetExceeded, match="pays for a gradient, not for a selection"):
        capped.charge(release, "selection")
    capped.charge(release, "gradient")


def test_a_filter_itself_answers_nothing(capped):
    with pytest.raises(BudgetExceeded, match="not in the plan"):
        capped.charge(ZCDPFilter(1, 0.02), "any")


def test_equal_answers_share_their_room():
    meter = Meter(plan(GaussianGradient.calibrated(BUDGET, 3)))
    answers = [Answer(GaussianGradient(3, 1.0), 0.5, 0.1, 0.1) for _ in range(3)]
    for answer in answers:
        meter.record(answer)
    assert meter.answers == tuple(answers)
    assert len(set(map(id, meter.answers))) == 1
