"""A filter lets pass what its cap pays for, to the last digit, and charges all of it."""

import math

import numpy as np
import pytest

from thresher.algorithms import DPAGD
from thresher.privacy.accounting import Cost
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget, BudgetExceeded
from thresher.privacy.certificate import certify
from thresher.privacy.plan import Meter, Plan
from thresher.privacy.releases import (
    ExactRelease,
    GaussianCategories,
    GaussianGradient,
    GumbelStep,
    PerturbedMinimiser,
    SampledGradient,
    ZCDPFilter,
)
from thresher.vaults import CentralVault
from thresher.vaults.losses import SQUARED
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

PROBLEM = LinearProblem(20, 2, Bounds(feature=1.0, target=(-1.0, 1.0)), sparsity=1, loss=SQUARED, intercept=False)
BUDGET = Budget(1.0, 1e-5)
ROWS = np.ones((20, 2)), np.ones(20)


def plan_of(*others):
    cap = ZCDPFilter.calibrated(BUDGET)
    return Plan("probe", PROBLEM, Budget(math.inf, 1e-5), (cap, *others)), cap.rho


def spent(meter, release, most=10_000):
    """How often a release is let pass."""
    for count in range(most):
        try:
            meter.charge(release, release.question.name)
        except BudgetExceeded:
            return count
    return most


@pytest.mark.parametrize("parts", [1, 3, 10, 1000])
def test_no_more_passes_than_the_cap_pays_for(parts):
    """A thousandth and a little: a thousand times exactly its part may be one too many, by round-off, never too few."""
    plan, rho = plan_of()
    assert spent(Meter(plan), GaussianGradient.for_rho(rho / parts * (1 - 1e-9))) == parts
    assert spent(Meter(plan), GaussianGradient.for_rho(rho / parts * (1 + 1e-9))) == parts - 1


def test_different_questions_draw_on_one_cap():
    plan, rho = plan_of()
    meter = Meter(plan)
    assert spent(meter, GaussianGradient.for_rho(0.6 * rho)) == 1
    assert spent(meter, GumbelStep.for_rho(0.6 * rho)) == 0
    assert spent(meter, GumbelStep.for_rho(0.3 * rho)) == 1
    assert spent(meter, GaussianGradient.for_rho(0.11 * rho)) == 0


def test_what_the_plan_lists_is_not_paid_for_by_the_filter_and_not_refilled_by_it():
    planned = GaussianGradient(2, 5.0)
    plan, rho = plan_of(planned)
    meter = Meter(plan)
    assert spent(meter, planned) == 2
    assert spent(meter, GaussianGradient.for_rho(rho * (1 - 1e-9))) == 1


STRANGERS = [
    SampledGradient(1, 50.0, 2, 20, "poisson", "replace-one"),  # no zCDP is known of it
    SampledGradient(1, 50.0, 2, 20, "fixed", "replace-one"),
    GaussianGradient(2, 50.0),  # one use at a time
    GaussianGradient(1, 0.0),
    PerturbedMinimiser(1, 50.0, 0.1, 1000.0),
    GaussianCategories(1, 50.0, 6.0),  # its rare events are no zCDP
    ExactRelease(1, "gradient"),
    ZCDPFilter(1, 1e-6),
]


@pytest.mark.parametrize("stranger", STRANGERS, ids=lambda release: type(release).__name__)
def test_what_has_no_zcdp_price_does_not_pass(stranger):
    meter = Meter(plan_of()[0])
    with pytest.raises(BudgetExceeded):
        meter.charge(stranger, "gradient" if stranger.question.name == "any" else stranger.question.name)


def test_a_look_alike_with_a_price_of_its_own_does_not_pass():
    class Cheap(GaussianGradient):
        def cost(self):
            return Cost()

    with pytest.raises(BudgetExceeded, match="not in the plan"):
        Meter(plan_of()[0]).charge(Cheap(1, 0.1), "gradient")


def test_without_a_filter_nothing_else_passes():
    meter = Meter(Plan("probe", PROBLEM, Budget(math.inf, 1e-5), (GaussianGradient(1, 5.0),)))
    with pytest.raises(BudgetExceeded, match="not in the plan"):
        meter.charge(GaussianGradient(1, 50.0), "gradient")


def test_another_question_is_refused_and_not_charged():
    plan, rho = plan_of()
    meter, release = Meter(plan), GaussianGradient.for_rho(rho * (1 - 1e-9))
    with pytest.raises(BudgetExceeded, match="pays for a gradient"):
        meter.charge(release, "step length")
    assert spent(meter, release) == 1


class Forgetful(Meter):
    """A filter that does not charge: every tenth of the cap passes twice."""

    def charge(self, release, question):
        left = self._rho_left
        super().charge(release, question)
        self._rho_left = left - self._price(release) / 2 if left > self._price(release) else 0.0


@pytest.mark.parametrize("meter", [Meter, Forgetful])
def test_a_filter_that_forgets_to_charge_leaves_a_certificate_that_does_not_verify(meter):
    """So a fit would drop the model: what was answered is listed, whatever the meter thought it cost."""
    algorithm = DPAGD(splits=5)
    plan = algorithm.plan(PROBLEM, BUDGET)
    with CentralVault(*ROWS, plan, NoiseSource(0)) as vault:
        vault._meter = meter(plan)
        algorithm.run(vault)
    verdict = certify(plan, vault.answers, vault.randomness, ()).verify()
    assert bool(verdict) == (meter is Meter)
    if meter is Forgetful:
        assert any("within a filter" in problem for problem in verdict.problems)
