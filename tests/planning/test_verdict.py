"""The verdict: yes, perhaps, no, and whose fault it is."""

import math

import pytest

from thresher import SparseClassifier, SparseRegressor
from thresher.algorithms.signal_to_noise import noise_over_signal
from thresher.planning import Forecast, Prediction, Spread, forecast, verdict
from thresher.planning.forecast import PRIVATE


def spread(mean, low=None, high=None, error=0.01):
    return Spread(mean, error, mean if low is None else low, mean if high is None else high)


def told(errors, exact=0.05, task="regression", directions=None):
    """A forecast with these errors by algorithm; all others are at the zero model."""
    errors = {name: spread(1.0) for name in PRIVATE} | errors
    directions = errors if directions is None else {name: spread(1.0) for name in PRIVATE} | directions
    score = spread(0.5)
    predictions = [Prediction(name, 100, 1.0, errors[name], directions[name], score, score) for name in errors] + [
        Prediction("ight", 100, math.inf, spread(exact), spread(exact), score, score)
    ]
    return verdict(Forecast(task, 20, 3, 0.8, 19, tuple(predictions)), 100, 1.0)


def test_yes_if_some_algorithm_is_useful_in_every_run():
    found = told({"pursuit": spread(0.5, 0.3, 0.89), "peeling": spread(0.4, 0.3, 0.8)})
    assert found.answer == "yes"
    assert found.useful == ("peeling", "pursuit")
    assert "with peeling, pursuit: the least mean error is 0.4 (peeling)" in found.words


def test_perhaps_if_only_some_runs_are():
    assert told({"pursuit": spread(0.5, 0.3, 0.95)}).answer == "perhaps"
    assert told({"pursuit": spread(0.915, 0.85, 1.0)}).answer == "perhaps"  # within two standard errors of .9


def test_no_if_all_means_are_clearly_at_the_zero_model():
    found = told({"pursuit": spread(0.93, 0.8, 1.0), "peeling": spread(1.1, 0.7, 2.0, error=0.2)})
    assert found.answer == "no"
    assert "no private method can work here" in found.words
    assert "without privacy it is 0.05; do not spend the budget" in found.words
    assert found.without_privacy


def test_where_nothing_works_without_privacy_either_rows_are_missing():
    found = told({}, exact=1.3)
    assert not found.without_privacy
    assert "so rows are missing, whatever epsilon" in found.words
    assert found.to_dict()["answer"] == "no"


def test_classes_count_by_direction():
    """Short coefficients in the right direction name the right classes."""
    short = {"dp-ight": spread(0.95)}
    assert told(short, task="classification", directions={"dp-ight": spread(0.3)}).answer == "yes"
    assert told(short, task="regression", directions={"dp-ight": spread(0.3)}).answer == "no"


def test_of_a_restricted_forecast_only_those_are_said_not_to_work():
    found = forecast(SparseRegressor(3, feature_bound=1, target_bound=3), 30, 50, algorithms=["peeling"], draws=5)
    assert "peeling cannot work here" in verdict(found, 30, 1.0).words


@pytest.mark.parametrize(
    ("model", "n", "d", "answer"),
    [
        (SparseClassifier(5, feature_bound=1.0), 50, 7129, "no"),
        (SparseClassifier(1, feature_bound=1.0), 50, 7129, "no"),
        (SparseClassifier(10, feature_bound=1.0), 4000, 1000, "yes"),
        (SparseRegressor(10, feature_bound=1.0, target_bound=3.0), 4000, 1000, "yes"),
    ],
)
def test_50_patients_are_too_few_and_4000_rows_are_enough(model, n, d, answer):
    """By simulation with fixed seeds."""
    found = forecast(model, n, d, draws=5, algorithms=["pursuit", "peeling", "dp-ight", "two-stage", "frank-wolfe"])
    assert verdict(found, n, 1.0).answer == answer


@pytest.mark.parametrize(
    ("n", "d", "s", "epsilon", "answer"),
    [
        (300, 200, 10, 0.5, "no"),
        (400, 2000, 5, 1.0, "perhaps"),
        (800, 1000, 10, 1.0, "perhaps"),
        (62, 2000, 5, 4.0, "no"),
    ],
)
def test_where_noise_exceeds_the_signal_the_verdict_is_not_yes(n, d, s, epsilon, answer):
    """The warning that needs no simulation does not contradict the one that rests on it."""
    model = SparseRegressor(s, epsilon=epsilon, feature_bound=1.0, target_bound=3.0)
    plan = model.plan(n, d)
    assert noise_over_signal(plan.problem, plan.budget) > 1
    assert verdict(forecast(model, n, d, draws=5), n, epsilon).answer == answer
