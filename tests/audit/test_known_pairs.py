"""Mixed plans are attacked at the pairs that attain their price: no chance is involved."""

import math
from dataclasses import replace

import numpy as np
import pytest

from thresher.algorithms import FrankWolfe, Peeling, Pursuit, ScreenedIGHT
from thresher.algorithms.one_vs_rest import OneVsRest
from thresher.audit.known_pairs import known_delta, known_joint_delta, steps_of
from thresher.models.scaler import ColumnRanges
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.composition import Choice, composed_delta
from thresher.privacy.conversions import gaussian_delta
from thresher.privacy.facts import PublicFacts
from thresher.privacy.profiles import GaussianAnswer
from thresher.privacy.releases import BinomialGradient, SkellamGradient
from thresher.vaults.losses import SQUARED, loss_named
from thresher.vaults.problem import LinearProblem

NUMBERS = LinearProblem(10_000, 100, Bounds(1.0, target=(-1.0, 1.0)), sparsity=10, loss=SQUARED, intercept=False)
THREE = LinearProblem(10_000, 50, Bounds(1.0), sparsity=5, loss=loss_named("multinomial"), outputs=3)
COLUMNS = PublicFacts(10_000, 10, Bounds(1.0, target=(-1.0, 1.0)))
PLANNERS = {
    "frank-wolfe": (FrankWolfe(), NUMBERS),
    "peeling": (Peeling(), NUMBERS),
    "pursuit": (Pursuit(), NUMBERS),
    "screened-ight": (ScreenedIGHT(), NUMBERS),
    "screened-ight of classes": (ScreenedIGHT(), THREE),
    "private-scaler": (ColumnRanges(None, True), COLUMNS),
    "three classes": (OneVsRest(Pursuit()), THREE),
}


@pytest.mark.parametrize("name", PLANNERS)
@pytest.mark.parametrize("budget", [Budget(1.0, 1e-6), Budget(8.0, 1e-5)], ids=str)
def test_a_plan_keeps_its_budget_by_less_than_three_per_cent_of_its_noise(name, budget):
    algorithm, problem = PLANNERS[name]
    plan = algorithm.plan(problem, budget).with_least_noise()
    assert plan.price[1].startswith("exact composition")
    assert 0.5 * budget.delta < known_delta(steps_of(plan), budget.epsilon) <= budget.delta
    too_low = [step for release in plan.releases for step in release.with_noise(0.97).steps * release.times]
    assert known_delta(too_low, budget.epsilon) > budget.delta


@pytest.mark.parametrize("name", PLANNERS)
def test_the_known_pair_reaches_nine_tenths_of_the_claim(name):
    algorithm, problem = PLANNERS[name]
    plan = algorithm.plan(problem, Budget(1.0, 1e-6)).with_least_noise()
    assert known_delta(steps_of(plan), 0.9) > 1e-6


@pytest.mark.parametrize("name", ["peeling", "screened-ight", "screened-ight of classes"])
@pytest.mark.parametrize("budget", [Budget(1.0, 1e-6), Budget(8.0, 1e-5)], ids=str)
def test_near_maxima_that_are_priced_at_half_are_found_out(name, budget):
    """Levels move by one together, which is what makes them cheap: half of that is paid for, twice as much told."""
    algorithm, problem = PLANNERS[name]
    plan = algorithm.plan(problem, budget).with_least_noise()
    halved = [each.with_noise(0.5) if each.question.name == "near maximum" else each for each in plan.releases]
    assert halved != list(plan.releases)
    assert known_delta([step for each in halved for step in each.steps * each.times], budget.epsilon) > budget.delta


@pytest.mark.parametrize("kind", [BinomialGradient, SkellamGradient])
@pytest.mark.parametrize("touched", [1, 4])
@pytest.mark.parametrize("budget", [Budget(1.0, 1e-6), Budget(2.0, 0.01), Budget(8.0, 1e-5)], ids=str)
def test_joint_noise_keeps_its_budget_and_a_tenth_less_would_not(kind, touched, budget):
    """Neighbours in one coordinate, one step of the grid and the round-off of all coordinates from being the worst."""
    release = kind.calibrated(budget, 1, touched)
    assert 0.4 * budget.delta < known_joint_delta(release, budget.epsilon) <= budget.delta
    quiet = replace(release, sd_per_sensitivity=release.sd_per_sensitivity / 1.1)
    assert known_joint_delta(quiet, budget.epsilon) > 1.5 * budget.delta


def test_the_pair_of_one_choice_is_the_worst_there_is():
    epsilon = 0.3
    worst = (math.exp(0.35) - math.exp(epsilon / 2)) ** 2 / math.expm1(0.7)
    assert 0.99 * worst < known_delta([Choice(0.7)], epsilon) <= worst * (1 + 1e-9)
    assert known_delta([GaussianAnswer(0.3), GaussianAnswer(0.4)], 0.5) == pytest.approx(gaussian_delta(0.5, 0.5))


def test_no_pair_exceeds_the_price_of_its_steps():
    rng = np.random.default_rng(0)
    for _ in range(20):
        steps = [Choice(float(eta)) for eta in rng.uniform(0.05, 0.4, 3)]
        steps += [GaussianAnswer(float(mu)) for mu in rng.uniform(0.02, 0.3, 2)]
        steps = [steps[at] for at in rng.permutation(5)]
        for epsilon in (0.1, 0.5, 1.0):
            assert known_delta(steps, epsilon) <= composed_delta(steps, epsilon)
