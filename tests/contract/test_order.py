"""A price that relies on an order of questions: every algorithm asks in it, and in no other order is it answered."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from thresher import BudgetExceeded
from thresher.algorithms import DENSE, REGISTRY
from thresher.models.scaler import ColumnRanges
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.facts import PublicFacts
from thresher.privacy.plan import Meter
from thresher.privacy.pricing import least_noise
from thresher.privacy.releases.choices import GumbelQuantile
from thresher.privacy.verification.recipes import IN_ORDER, problems_of_order
from thresher.vaults import CentralVault
from thresher.vaults.losses import loss_named
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

pytestmark = pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")

BUDGET = Budget(2.0, 1e-6)
N, D, S = 300, 12, 3
LOSSES = ["squared", "logistic"]


def problem_of(loss, intercept):
    bounds = Bounds(feature=1.0, target=(-6.0, 6.0) if loss == "squared" else None)
    return LinearProblem(N, D, bounds, sparsity=S, loss=loss_named(loss), intercept=intercept)


def cases():
    """Every algorithm whose plan relies on an order."""
    named = [(name, make()) for name, make in {**REGISTRY, **DENSE}.items()]
    problems = [problem_of(loss, intercept) for loss in LOSSES for intercept in (True, False)]
    for name, algorithm in named:
        for problem in problems:
            try:
                plan = algorithm.plan(problem, BUDGET)
            except ValueError:  # without privacy, or not for this loss
                continue
            if plan.order is not None:
                yield f"{name}-{problem.loss.name}-{problem.intercept}", algorithm, plan
    scaler = ColumnRanges(None, True)
    yield "private-scaler", scaler, scaler.plan(PublicFacts(N, D, Bounds(1.0, target=(-6.0, 6.0))), BUDGET)


CASES = {name: (algorithm, plan.with_least_noise()) for name, algorithm, plan in cases()}


def vault_of(plan):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, D))
    y = X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=N)
    classes = isinstance(plan.problem, LinearProblem) and plan.problem.loss.name == "logistic"
    return CentralVault(X, (y > 0).astype(float) if classes else y, plan, NoiseSource(0))


def asked(vault, plan):
    at = {release: position for position, release in enumerate(dict.fromkeys(plan.releases))}
    return tuple(at[answer.release] for answer in vault.answers)


def test_all_that_mix_kinds_of_questions_are_here():
    mixed = {"newton", "pursuit", "screened-ight", "peeling", "two-stage", "dpsl-kt", "private-scaler"}
    assert mixed <= {name.split("-squared")[0] for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_a_run_asks_in_the_order_of_its_plan(name):
    algorithm, plan = CASES[name]
    vault = vault_of(plan)
    algorithm.run(vault)
    assert asked(vault, plan) == plan.order


@pytest.mark.parametrize("name", CASES)
def test_a_certificate_may_state_that_order_and_not_its_reverse(name):
    _, plan = CASES[name]
    assert plan.algorithm in IN_ORDER
    assert problems_of_order(plan.algorithm, plan.settings, plan.releases) == []
    reverse = {**plan.settings, "order": plan.order[::-1]}
    assert problems_of_order(plan.algorithm, reverse, plan.releases)
    distinct = list(dict.fromkeys(plan.releases))
    one, other = next(
        (pair for pair in combinations(range(len(distinct)), 2) if len({distinct[at].question for at in pair}) == 1),
        (0, 1),
    )
    swapped = tuple({one: other, other: one}.get(at, at) for at in plan.order)
    if sorted(swapped) == sorted(plan.order):  # each asked as often as the other
        assert problems_of_order(plan.algorithm, {**plan.settings, "order": swapped}, plan.releases)


@pytest.mark.parametrize("name", CASES)
def test_a_question_after_its_last_place_gets_no_answer(name):
    """At every point of the order, whatever has no place left is refused, and what has one may go on."""
    _, plan = CASES[name]
    distinct = list(dict.fromkeys(plan.releases))
    meter = Meter(plan)
    for k, position in enumerate(plan.order):
        for passed in set(range(len(distinct))) - set(plan.order[k:]):
            before = meter.charged
            with pytest.raises(BudgetExceeded):
                meter.charge(distinct[passed], distinct[passed].question.name)
            assert meter.charged == before
        meter.charge(distinct[position], distinct[position].question.name)


@pytest.mark.parametrize("name", CASES)
def test_what_is_passed_over_is_forfeited(name):
    _, plan = CASES[name]
    distinct = list(dict.fromkeys(plan.releases))
    last = plan.order[-1]
    meter = Meter(plan)
    for _ in range(plan.order.count(last)):
        meter.charge(distinct[last], distinct[last].question.name)
    for release in distinct:
        with pytest.raises(BudgetExceeded, match=r"later|used up"):
            meter.charge(release, release.question.name)


@pytest.mark.parametrize("name", CASES)
def test_an_algorithm_that_asks_in_another_order_is_stopped(name):
    """The plan is for the reverse order, in which the first question is among the last."""
    algorithm, plan = CASES[name]
    if plan.order == plan.order[::-1]:
        pytest.skip("it is its own reverse")
    other = replace(
        plan,
        releases=tuple(release.with_noise(1.2) for release in plan.releases),
        settings={**plan.settings, "order": plan.order[::-1]},
    )
    vault = vault_of(other)
    with pytest.raises(BudgetExceeded, match="holds for the plan's order only"):
        algorithm.run(vault)
    assert len(vault.answers) < len(plan.order)


@pytest.mark.parametrize("name", CASES)
def test_an_algorithm_gets_no_answer_where_nothing_is_left_of_the_order(name):
    algorithm, plan = CASES[name]
    vault = vault_of(plan)
    vault._meter._place = len(plan.order)
    with pytest.raises(BudgetExceeded):
        algorithm.run(vault)
    assert vault.answers == ()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("wrong", [(), (0,), ("a",), "order", [0, 1], (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)])
def test_an_order_that_is_not_of_the_releases_is_refused(name, wrong):
    _, plan = CASES[name]
    with pytest.raises(ValueError, match="must name the position of each release"):
        replace(plan, settings={**plan.settings, "order": wrong})


def test_choices_of_several_kinds_without_an_order_are_priced_by_what_adds_up():
    one, other = GumbelQuantile.for_rho(0.01, times=5), GumbelQuantile.for_rho(0.02, times=5)
    assert least_noise((one, other), None, Budget(1.0, 1e-6)) == (one, other)


# -- orders that somebody else may have written ------------------------------------------------------------------------


def refused(plan, order):
    return bool(problems_of_order(plan.algorithm, {**plan.settings, "order": tuple(order)}, plan.releases))


def moved(order, whence, where):
    rest = [*order[:whence], *order[whence + 1 :]]
    return (*rest[:where], order[whence], *rest[where:])


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("screened-ight")])
def test_rounds_of_screened_ight_may_not_be_told_in_another_order(name):
    """Any two questions swapped, any one moved: refused, unless that leaves the order as it was."""
    _, plan = CASES[name]
    assert not refused(plan, plan.order)
    for one, other in combinations(range(len(plan.order)), 2):
        swapped = list(plan.order)
        swapped[one], swapped[other] = swapped[other], swapped[one]
        assert refused(plan, swapped) == (tuple(swapped) != plan.order)
        assert refused(plan, moved(plan.order, one, other)) == (moved(plan.order, one, other) != plan.order)


@pytest.mark.parametrize("name", ["screened-ight-squared-True", "screened-ight-logistic-True"])
def test_no_round_of_screened_ight_gives_its_gradient_to_another(name):
    """All gradients in the order they are listed in, one of them in the round before or after, or in the beginning."""
    _, plan = CASES[name]
    questions = [release.question.name for release in dict.fromkeys(plan.releases)]
    gradients = [at for at in plan.order if questions[at] == "restricted gradient"]
    shape = [questions[at] for at in plan.order]
    places = [at for at, question in enumerate(shape) if question == "restricted gradient"]
    for place in places:
        for where in range(len(shape)):
            changed, left = moved(shape, place, where), iter(gradients)
            if list(changed) != shape:
                at = {question: position for position, question in enumerate(questions)}
                order = [next(left) if each == "restricted gradient" else at[each] for each in changed]
                assert refused(plan, order)
