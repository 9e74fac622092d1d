"""Auto: a choice by public bounds alone, said in the certificate, and then nothing but the chosen algorithm."""

import math

import numpy as np
import pytest

from thresher import SparseClassifier, SparseRegressor
from thresher.algorithms import DPIGHT, Newton, Pursuit, ScreenedIGHT, resolve
from thresher.algorithms.auto import Auto, choose
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.vaults.losses import loss_named
from thresher.vaults.problem import LinearProblem


def problem_of(d=50, s=5, loss="squared", outputs=1, n=1000, **bounds):
    target = (-3.0, 3.0) if loss == "squared" else None
    return LinearProblem(n, d, Bounds(target=target, **bounds), sparsity=s, loss=loss_named(loss), outputs=outputs)


def some_rows(loss, seed=0, n=300, d=60):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    y = X[:, :2] @ [1.0, -1.0] + 0.3 * rng.normal(size=n)
    if loss == "squared":
        return X, y
    return X, (y > 0).astype(int) if loss == "logistic" else np.digitize(y, [-0.4, 0.4])


def model_of(loss, algorithm, seed=7, **bounds):
    facts = {"sparsity": 5, "epsilon": 2.0, "algorithm": algorithm, "random_state": seed, **bounds}
    return SparseRegressor(target_bound=3.0, **facts) if loss == "squared" else SparseClassifier(**facts)


WIDE = Budget(1.0, 1e-6)
"""With 1000 rows a Gram matrix of 50 columns is more than it can pay for."""


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize(
    ("facts", "chosen"),
    [
        ({"feature": 1.0}, Pursuit),
        ({"feature": 1e-3}, Pursuit),
        ({"feature": tuple(np.linspace(1, 2, 50))}, Pursuit),
        ({"row": 1.0}, ScreenedIGHT),
        ({"feature": 1.0, "row": 1.0}, ScreenedIGHT),
        ({"feature": 0.01, "row": 1.0}, Pursuit),
        ({"feature": (100.0, *[1.0] * 49)}, ScreenedIGHT),  # the longest column is the row
        ({"feature": 1.0, "s": 17}, Newton),
        ({"feature": 1.0, "d": 15}, Newton),
        ({"row": 1.0, "d": 15}, Newton),
        ({"feature": 1.0, "n": 10_000}, Newton),
        ({"row": 1.0, "n": 10_000}, Newton),
        ({"feature": 1.0, "n": 5_000, "d": 200}, Pursuit),
        ({"feature": 1.0, "n": 10**6, "d": 300}, Newton),
        ({"feature": 1.0, "n": 10**6, "d": 301}, Pursuit),
    ],
    ids=str,
)
def test_the_choice_follows_public_facts(loss, facts, chosen):
    assert type(choose(problem_of(loss=loss, **facts), WIDE)[0]) is chosen


@pytest.mark.parametrize("bounds", [{"feature": 1.0}, {"row": 1.0}, {"feature": 0.01, "row": 1.0}], ids=str)
@pytest.mark.parametrize("outputs", [3, 10])
def test_more_than_two_classes_share_one_gradient(bounds, outputs):
    algorithm, why = choose(problem_of(loss="multinomial", outputs=outputs, **bounds), WIDE)
    assert type(algorithm) is (ScreenedIGHT if bounds == {"row": 1.0} else DPIGHT)
    assert f"all {outputs} classes" in why
    assert type(choose(problem_of(loss="multinomial", outputs=outputs, d=15, **bounds), WIDE)[0]) is Newton
    assert type(resolve("auto", outputs)) is Auto


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_the_choice_does_not_depend_on_the_unit_of_measurement(unit):
    rows = (0.3, 0.33, 0.34, 5.0)
    kinds = [type(choose(problem_of(feature=0.3 * unit, row=row * unit), WIDE)[0]) for row in rows]
    assert kinds == [ScreenedIGHT, ScreenedIGHT, Pursuit, Pursuit]  # 0.3 sqrt(5) = 2 * 0.335


def test_a_larger_budget_pays_for_a_gram_matrix_of_more_columns():
    kinds = [type(choose(problem_of(feature=1.0), Budget(epsilon, 1e-6))[0]) for epsilon in (0.5, 1.0, 4.0, 16.0)]
    assert kinds == [Pursuit, Pursuit, Newton, Newton]


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("bounds", [{"feature_bound": 1.0}, {"row_bound": 1.0}], ids=str)
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_the_choice_and_the_plan_are_the_same_whatever_the_data(loss, bounds, epsilon):
    X, y = some_rows(loss)
    model = model_of(loss, "auto", **bounds).set_params(epsilon=epsilon, sparsity=2)
    plans = [model.fit(rows, y).plan_ for rows in (X, 0 * X, 1e6 * X, X[::-1])]
    assert all(plan == model.plan(300, 60) for plan in plans)


@pytest.mark.parametrize("loss", ["squared", "logistic", "multinomial"])
@pytest.mark.parametrize("sparsity", [2, 20])
def test_the_model_is_that_of_the_chosen_algorithm_and_the_certificate_says_which_and_why(loss, sparsity):
    X, y = some_rows(loss)
    name = "newton" if sparsity == 20 else "dp-ight" if loss == "multinomial" else "pursuit"
    auto, chosen = (
        model_of(loss, algorithm, feature_bound=1.0).set_params(sparsity=sparsity).fit(X, y)
        for algorithm in ("auto", name)
    )
    np.testing.assert_array_equal(auto.coef_, chosen.coef_)
    np.testing.assert_array_equal(auto.intercept_, chosen.intercept_)
    assert auto.algorithm_ == auto.certificate_.algorithm == name
    assert auto.certificate_.verify()
    assert auto.certificate_.releases == chosen.certificate_.releases
    (why,) = set(auto.certificate_.notes) - set(chosen.certificate_.notes)
    assert why.startswith(f"auto chose {name}: ")
    assert auto.certificate_.grade == chosen.certificate_.grade  # a choice by public facts is no assumption


@pytest.mark.parametrize("epsilon", [0.1, 1.0, math.inf])
def test_the_plan_is_the_chosen_ones_with_the_reason_noted(epsilon):
    for bounds, chosen in (({"feature": 1.0}, Pursuit()), ({"row": 1.0}, ScreenedIGHT())):
        problem, budget = problem_of(**bounds), Budget(epsilon, 1e-6)
        chosen = Newton() if epsilon == math.inf else chosen
        plan, own = Auto().plan(problem, budget), chosen.plan(problem, budget)
        assert plan.notes[:-1] == own.notes
        assert (plan.algorithm, plan.releases, plan.settings) == (own.algorithm, own.releases, own.settings)


def test_the_reason_names_both_sizes_of_noise():
    for bounds, row in (({"feature": 1.0}, "7.07"), ({"feature": 1.0, "row": 1.0}, "1 (norm of a row)")):
        why = choose(problem_of(**bounds), WIDE)[1]
        assert "2.24" in why
        assert row in why


def test_auto_is_the_default():
    assert SparseRegressor().algorithm == SparseClassifier().algorithm == "auto"
    assert type(resolve("auto")) is Auto
