"""All of it for one shape."""

import json

from thresher import SparseRegressor
from thresher.planning.verdict import run_study

SETTINGS = {"signal": 0.8, "draws": 3, "n_jobs": 1}


def studied(n, reach=None, epsilon=8.0):
    model = SparseRegressor(2, epsilon=epsilon, feature_bound=1.0, target_bound=3.0)
    names = ["pursuit", "peeling"]
    return run_study(model, n, 20, epsilons=[4.0], rows=[200], reach=reach, algorithms=names, **SETTINGS)


def test_a_shape_that_works_needs_no_remedy():
    found = studied(1000, reach=0.4)
    assert found.verdict.answer == "yes"
    assert found.remedies == ()
    assert [each.algorithm for each in found.by_epsilon] == ["pursuit", "peeling"]
    assert [each.over for each in (*found.by_epsilon, *found.by_rows)] == ["epsilon"] * 2 + ["rows"] * 2


def test_a_shape_that_does_not_gets_some():
    found = studied(60, epsilon=0.1)
    assert found.verdict.answer == "no"
    assert [each.over for each in found.remedies] == ["rows", "epsilon"]
    assert found.by_epsilon == found.by_rows == ()


def test_the_record_of_an_algorithm_is_plain_json_about_it_and_the_yardstick():
    record = json.loads(json.dumps(studied(1000, reach=0.4).of("peeling"), allow_nan=False))
    assert {each["algorithm"] for each in record["forecast"]["predictions"]} == {"peeling", "ight"}
    assert [each["algorithm"] for each in record["reach"]] == ["peeling"] * 2
    assert record["verdict"]["answer"] == "yes"
    assert record["remedies"] == []
