"""What an error needs: the search, on known curves; and the answer, against a forecast there."""

import math

import pytest

from thresher import SparseClassifier, SparseRegressor
from thresher.planning import Prediction, Spread, forecast, least, reach
from thresher.planning.reach import next_value

NUMBERS = SparseRegressor(5, feature_bound=1.0, target_bound=3.0)
LIMITS = (1 / 64, 64.0)


def spread(mean, error=0.001):
    return Spread(mean, error, mean, mean)


def known(curve, error=0.001):
    """Predictions whose mean error is a known function of rows and budget."""

    def predict_cases(simulation, cases):
        for case in cases:
            at = spread(curve(case.n, case.epsilon), error)
            yield Prediction(case.algorithm, case.n, case.epsilon, at, spread(0.5), at, at)

    return predict_cases


def search(monkeypatch, curve, target=0.2, error=0.001, **settings):
    monkeypatch.setattr(reach, "predict_cases", known(curve, error))
    (answer,) = least(NUMBERS, 1000, 100, target, algorithms=["pursuit"], **settings)
    return answer


@pytest.mark.parametrize("needed", [0.05, 0.3, 1.0, 7.0, 40.0])
def test_the_epsilon_of_a_known_curve_is_bracketed(needed, monkeypatch):
    found = search(monkeypatch, lambda n, epsilon: min(1.0, 0.2 * needed / epsilon))
    assert found.low <= needed <= found.high
    assert found.high / found.low <= 2
    assert found.about == pytest.approx(needed, rel=0.01)  # a power law is a line in both logarithms


@pytest.mark.parametrize("needed", [60, 1000, 1500, 100_000])
def test_the_rows_of_a_known_curve_are_bracketed(needed, monkeypatch):
    found = search(monkeypatch, lambda n, epsilon: min(1.0, 0.2 * needed / n), over="rows")
    assert found.low <= needed <= found.high
    assert found.about == pytest.approx(needed, rel=0.02)
    assert all(value == int(value) for value in (found.low, found.high, *found.tried))


def test_ends_that_are_not_reached_are_none(monkeypatch):
    stuck = search(monkeypatch, lambda n, epsilon: 0.5)
    assert (stuck.low, stuck.high, stuck.about, stuck.tried) == (64.0, None, None, (1.0, 64.0))
    easy = search(monkeypatch, lambda n, epsilon: 0.01)
    assert (easy.low, easy.high, easy.about, easy.tried) == (None, 1 / 64, None, (1 / 64, 1.0))
    many = search(monkeypatch, lambda n, epsilon: 0.5, over="rows")
    assert many.tried[1] * 100 <= reach.LARGEST < 2 * many.tried[1] * 100
    few = search(monkeypatch, lambda n, epsilon: 0.01, over="rows")
    assert reach.FEWEST_ROWS <= few.tried[0] < 2 * reach.FEWEST_ROWS


def test_what_is_not_clear_widens_the_bracket(monkeypatch):
    """With a standard error of .05 nothing between .1 and .3 is clear."""
    found = search(monkeypatch, lambda n, epsilon: min(1.0, 0.2 / epsilon), error=0.05)
    assert 0.2 / found.low > 0.3
    assert 0.2 / found.high <= 0.1
    assert found.about == pytest.approx(1)


def test_a_plateau_above_the_error_is_no_answer(monkeypatch):
    """Where more budget does not help, the search says so instead of extrapolating."""
    found = search(monkeypatch, lambda n, epsilon: max(0.25, 0.2 / epsilon))
    assert (found.high, found.about) == (None, None)


def test_an_infinite_budget_is_searched_from_the_largest(monkeypatch):
    monkeypatch.setattr(reach, "predict_cases", known(lambda n, epsilon: min(1.0, 0.2 / epsilon)))
    (found,) = least(NUMBERS.set_params(epsilon=math.inf), 1000, 100, 0.2, algorithms=["pursuit"])
    NUMBERS.set_params(epsilon=1.0)
    assert found.low <= 1 <= found.high


def test_the_next_value():
    assert next_value({1.0: spread(0.5)}, 0.2, LIMITS) == 2
    assert next_value({1.0: spread(0.1)}, 0.2, LIMITS) == 0.5
    assert next_value({1.0: spread(0.5), 2.0: spread(0.1)}, 0.2, LIMITS) == pytest.approx(math.sqrt(2))
    assert next_value({1.0: spread(0.5), 1.4: spread(0.2), 2.0: spread(0.1)}, 0.2, LIMITS) is None
    assert next_value({1.0: spread(0.5), 2.0: spread(0.2), 4.0: spread(0.1)}, 0.2, LIMITS) == pytest.approx(2**0.5)
    assert next_value({64.0: spread(0.5)}, 0.2, LIMITS) is None
    assert next_value({1 / 64: spread(0.1)}, 0.2, LIMITS) is None


def test_the_answer_agrees_with_a_forecast_at_its_ends():
    """By simulation, with the draws of the search and so without chance."""
    settings = {"algorithms": ["pursuit"], "n_jobs": 1}
    (found,) = least(NUMBERS, 1000, 50, 0.3, **settings)
    ends = forecast(NUMBERS, 1000, 50, epsilons=[found.low, found.high], **settings)
    short, enough = (ends.one("pursuit", 1000, value).error for value in (found.low, found.high))
    assert short.mean - 2 * short.standard_error > 0.3
    assert enough.mean + 2 * enough.standard_error <= 0.3
    assert found.low < found.about < found.high


def test_rows_are_searched_by_simulation_too_and_by_direction_for_classes():
    model = SparseClassifier(3, epsilon=2.0, feature_bound=1.0)
    settings = {"algorithms": ["dp-ight"], "over": "rows", "draws": 5, "n_jobs": 1}
    (turned,) = least(model, 1000, 20, 0.5, measure="direction", **settings)
    (exact,) = least(model, 1000, 20, 0.5, **settings)
    assert turned.high < exact.low  # the coefficients of dp-ight are short long after their direction is right
    assert turned.to_dict()["over"] == "rows"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"error": 0}, "error=0 must lie strictly between 0 and 1"),
        ({"error": 1.0}, "error=1.0 must lie strictly between 0 and 1"),
        ({"error": 0.2, "over": "columns"}, "over='columns' must be 'epsilon' or 'rows'"),
        ({"error": 0.2, "measure": "score"}, "measure='score' must be 'error' or 'direction'"),
        ({"error": 0.2, "signal": 2}, "signal=2"),
    ],
)
def test_bad_input_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        least(NUMBERS, 1000, 100, **settings)
