"""What would help where nothing works."""

from thresher import SparseClassifier, SparseRegressor
from thresher.planning import Verdict, forecast
from thresher.planning.verdict import WORTHWHILE, remedies

SETTINGS = {"draws": 5, "n_jobs": 1, "signal": 0.8}


def test_rows_and_epsilon_of_the_default_algorithm_and_they_do_help():
    model = SparseRegressor(3, feature_bound=1.0, target_bound=3.0, epsilon=0.5)
    rows, epsilon = remedies(model, 100, 50, Verdict("no", (), True, ""), **SETTINGS)
    assert (rows.over, epsilon.over) == ("rows", "epsilon")
    assert rows.algorithm == epsilon.algorithm == "pursuit"
    there = forecast(model, 100, 50, rows=[int(rows.high)], epsilons=[epsilon.high], **SETTINGS)
    assert there.one("pursuit", 100, 0.5).error.mean > 0.9
    assert there.one("pursuit", int(rows.high), 0.5).error.mean < WORTHWHILE
    assert there.one("pursuit", 100, epsilon.high).error.mean < WORTHWHILE


def test_where_rows_are_missing_no_epsilon_is_offered():
    model = SparseClassifier(3, feature_bound=1.0)
    (rows,) = remedies(model, 20, 50, Verdict("no", (), False, ""), **SETTINGS)
    assert rows.over == "rows"
    assert rows.low >= 20
