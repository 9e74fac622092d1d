"""The noise of a plan and what a certificate says of it: by the exact composition, in the order of its questions."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from thresher import BudgetExceeded, Certificate, Ledger, PrivateScaler, SparseClassifier, SparseRegressor, combine
from thresher.algorithms import FrankWolfe, Peeling, Pursuit, TwoStage
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.composition import CELLS, composed_delta
from thresher.privacy.pricing import EXACT, epsilon_in_order, least_noise, positions
from thresher.privacy.releases import (
    GaussianCategories,
    GaussianGradient,
    GaussianRestrictedGradient,
    GumbelQuantile,
    GumbelSelection,
    L2LaplaceMinimiser,
    PerturbedMinimiser,
    ZCDPFilter,
)
from thresher.privacy.verification.verify import FINER
from thresher.vaults.losses import SQUARED
from thresher.vaults.problem import LinearProblem

BUDGETS = [Budget(0.1, 1e-6), Budget(1.0, 1e-9), Budget(8.0, 1e-5, "add-remove")]
PROBLEM = LinearProblem(5000, 40, Bounds(1.0, target=(-1.0, 1.0)), sparsity=5, loss=SQUARED, intercept=True)
ALGORITHMS = [Pursuit(), Peeling(), FrankWolfe(), TwoStage()]
PAPER = Peeling(loop="paper")  # two questions, in turns


def mixed(rho):
    picks, values = GumbelSelection.for_rho(rho / 2, times=4, picks=3), GaussianRestrictedGradient.for_rho(rho / 2, 4)
    return (picks, values), positions((picks, values), [picks, values] * 4)


# -- noise ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda each: each.name)
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_all_noise_is_smaller_by_one_factor_and_the_budget_is_used_up(algorithm, budget):
    plan = algorithm.plan(PROBLEM, budget)
    least = plan.with_least_noise()
    ratios = [new.multiplier / old.multiplier for new, old in zip(least.releases, plan.releases, strict=True)]
    assert min(ratios) > 0.75
    assert max(ratios) < 0.965
    assert max(ratios) == pytest.approx(min(ratios), rel=1e-12)
    assert least.price == (budget.epsilon, f"{EXACT}, {CELLS:g} cells")
    assert least.cost.epsilon(budget.delta)[0] > budget.epsilon
    again = least.with_least_noise().releases
    assert [each.multiplier for each in again] == pytest.approx([each.multiplier for each in least.releases], rel=1e-6)
    with pytest.raises(BudgetExceeded):
        replace(least, releases=tuple(release.with_noise(1 - 1e-3) for release in least.releases))


def test_the_order_counts():
    """Without it, choices of two kinds have no exact price; with one kind, answers may be given anywhere."""
    budget = Budget(1.0, 1e-6)
    releases, order = mixed(0.02)
    other = GumbelQuantile.for_rho(1e-3, times=3)
    assert least_noise(releases, None, budget) != releases  # picks are all alike
    assert least_noise((*releases, other), None, budget) == (*releases, other)
    asked = [*releases * 4, other, other, other]
    in_order = least_noise((*releases, other), positions((*releases, other), asked), budget)
    assert in_order[0].multiplier < releases[0].multiplier
    anywhere = least_noise(releases, None, budget)[0].multiplier
    assert least_noise(releases, order, budget)[0].multiplier <= anywhere < releases[0].multiplier


@pytest.mark.parametrize(
    "release",
    [
        GumbelSelection(3, 7.0, picks=2),
        GaussianGradient(2, 5.0),
        L2LaplaceMinimiser(1, 0.3),
        GaussianCategories(2, 4.0, 6.0),
        PerturbedMinimiser(1, 6.0, 0.2, 60.0),
    ],
    ids=lambda each: type(each).__name__,
)
def test_more_noise_costs_less_and_steps_cost_no_more_than_the_currencies(release):
    steps = release.steps * release.times
    epsilon, _ = replace(release.cost(), lost=0.0).epsilon(1e-6)
    assert composed_delta(steps, epsilon) <= 1e-6 * (1 + 1e-9)
    noisier = release.with_noise(2.0)
    assert composed_delta(noisier.steps * noisier.times, epsilon) < composed_delta(steps, epsilon)
    assert noisier.multiplier == pytest.approx(2 * release.multiplier)


def test_what_has_no_steps_is_priced_by_what_adds_up():
    budget = Budget(1.0, 1e-6)
    releases = (ZCDPFilter(1, 0.01), GumbelQuantile.for_rho(0.01, times=5))
    assert least_noise(releases, None, budget) == releases
    assert epsilon_in_order(releases, None, budget)[1] in ("zCDP", "RDP")
    assert least_noise(releases[1:], None, Budget(math.inf, 1e-6)) == releases[1:]
    assert least_noise(releases[1:], None, Budget(1.0, 0.0)) == releases[1:]


def test_a_chance_that_is_lost_comes_off_delta():
    releases = (GaussianCategories(3, 9.0, 5.5), GumbelQuantile(3, 20.0))
    lost = releases[0].cost().lost
    budget = Budget(1.0, 1e-6)
    assert 0.01 * budget.delta < lost < budget.delta
    epsilon, _ = epsilon_in_order(releases, None, Budget(0.05, 1e-6))
    steps = [*releases[0].steps * 3, *releases[1].steps * 3]
    assert composed_delta(steps, epsilon) + lost <= budget.delta < composed_delta(steps, 0.99 * epsilon) + lost


# -- certificates -----------------------------------------------------------------------------------------------------


def fitted(**facts):
    X = np.random.default_rng(0).uniform(-1, 1, (400, 8))
    facts = {"epsilon": 2.0, "delta": 1e-6, "feature_bound": 1.0, "target_bound": 1.0, "algorithm": PAPER, **facts}
    return SparseRegressor(2, **facts).fit(X, np.clip(X[:, 0] - X[:, 1], -1, 1))


def edited(certificate, edit):
    told = json.loads(certificate.to_json())
    edit(told)
    return Certificate.from_dict(told).verify()


def test_a_certificate_lists_what_its_price_takes_and_is_verified_on_another_grid():
    certificate = fitted().certificate_
    assert certificate.settings["order"] == (0, 1) * certificate.settings["rounds"]
    assert certificate.composition.endswith(f"by {EXACT}, {CELLS:g} cells")
    found = Certificate.from_json(certificate.to_json()).verify()
    assert found.ok
    assert found.epsilon == 2.0
    assert found.method == f"{EXACT}, {FINER:g} cells"
    assert FINER > CELLS
    assert 2.0 < certificate.second_opinion() < 2.4  # of what adds up: an upper bound


def less_noise(told):
    for entry in told["releases"]:
        for name in ("scale_per_sensitivity", "sd_per_sensitivity"):
            if name in entry["release"]:
                entry["release"][name] *= 0.995
        for answer in entry["answers"]:
            answer["scale"] *= 0.995


EDITS = {
    "less noise": less_noise,
    "no order": lambda told: told["settings"].pop("order"),
    "another order": lambda told: told["settings"].update(order=told["settings"]["order"][::-1]),
    "an order of too few": lambda told: told["settings"]["order"].pop(),
    "an order of too many": lambda told: told["settings"]["order"].append(0),
    "an order of text": lambda told: told["settings"].update(order="01" * told["settings"]["rounds"]),
    "an order of nothing": lambda told: told["settings"].update(order=[]),
    "an order of numbers": lambda told: told["settings"].update(order=3),
    "a smaller claim": lambda told: told.update(epsilon=1.99, claimed_epsilon=1.99),
    "a smaller delta": lambda told: told.update(
        delta=0.99e-6, composition=told["composition"].replace("1e-06", "9.9e-07")
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_certificate_that_was_edited_does_not_verify(edit):
    certificate = fitted().certificate_
    assert edited(certificate, lambda told: None).ok
    assert not edited(certificate, EDITS[edit]).ok


def ledger_in(folder):
    ledger = Ledger(f"sqlite:///{folder}/budget.db", key=folder / "ledger.key")
    ledger.grant("rows", 2.0, 1e-6)
    return ledger


def test_a_certificate_in_currencies_that_add_up_verifies_without_an_order(tmp_path):
    """As earlier versions wrote them."""
    certificate = fitted(ledger=ledger_in(tmp_path), dataset="rows").certificate_
    assert certificate.composition.endswith(("zCDP", "RDP"))
    assert edited(certificate, lambda told: told["settings"].pop("order")).ok


def test_a_sum_of_fits_is_the_least_of_what_adds_up_and_of_the_sum_of_their_prices():
    one, other = fitted().certificate_, fitted(epsilon=0.5).certificate_
    total = combine(one, other)
    assert total.verify().ok
    assert 2.0 < total.epsilon <= 2.5
    assert total.epsilon < 2.5 or total.composition.split(" by ")[1].startswith("basic composition")
    alone = combine(one)
    assert alone.epsilon == 2.0
    assert alone.verify().ok


def test_three_classes_are_priced_together():
    X = np.random.default_rng(0).uniform(-1, 1, (600, 6))
    y = np.digitize(X[:, 0], [-0.3, 0.3])
    model = SparseClassifier(2, epsilon=4.0, delta=1e-6, feature_bound=1.0, algorithm=PAPER, classes=[0, 1, 2])
    certificate = model.fit(X, y).certificate_
    assert EXACT in certificate.composition
    assert certificate.settings["order"] == (0, 1) * certificate.settings["rounds"] * 3
    assert certificate.verify().ok


def test_a_scaler_asks_in_order():
    X = np.random.default_rng(0).uniform(-1, 1, (600, 3))
    certificate = PrivateScaler(epsilon=1.0, delta=1e-6, feature_bound=5.0).fit(X).certificate_
    assert certificate.settings["order"] == (0, 1, 1) * 3
    assert EXACT in certificate.composition
    assert certificate.verify().ok


# -- ledgers ----------------------------------------------------------------------------------------------------------


def test_with_a_ledger_a_plan_costs_what_adds_up(tmp_path):
    facts = {"epsilon": 2.0, "delta": 1e-6, "feature_bound": 1.0, "target_bound": 1.0, "algorithm": "peeling"}
    alone = SparseRegressor(2, **facts).plan(400, 8)
    ledger = ledger_in(tmp_path)
    counted = SparseRegressor(2, **facts, ledger=ledger, dataset="rows").plan(400, 8)
    assert alone.epsilon == 2.0
    assert 2.05 < alone.ledger_epsilon < 2.3
    assert counted.ledger_epsilon == counted.epsilon <= 2.0
    fitted(ledger=ledger, dataset="rows")
    assert ledger.spent("rows").epsilon == pytest.approx(counted.ledger_epsilon)
