"""Attribute inference: more about members than about strangers, and no more than the guarantee allows."""

import json
import math
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression, LogisticRegression

from thresher import SparseRegressor
from thresher.audit.attributes import attribute, count_guesses
from thresher.audit.rates import Guarantee


def rows(n, d, seed=0):
    """Column 0 is the secret: -1 or 1, and it matters."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    X[:, 0] = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    return X, X[:, :3] @ [1.0, -2.0, 2.0] + 0.5 * rng.normal(size=n)


@pytest.mark.parametrize(
    ("estimator", "d", "least"),
    [(LinearRegression(), 150, 0.15), (LogisticRegression(C=100.0, max_iter=1000), 150, 0.06)],
    ids=["least squares", "logistic"],
)
def test_an_overfitted_model_tells_more_about_its_members(estimator, d, least):
    """The advantages are 1.5 times ``least`` or more; a 99.9 % interval lies above 0 without a leak once in 2000."""
    X, y = rows(200, d)
    y = y if isinstance(estimator, LinearRegression) else y > 0
    result = attribute(estimator, X, y, 0, confidence=0.999, random_state=0)
    assert result.accuracy_members - result.accuracy_non_members == pytest.approx(result.advantage)
    assert result.advantage > least
    assert result.advantage_interval[0] > 0
    assert result.accuracy_non_members > 0.6  # the model is right about strangers too: that is imputation
    assert result.predictive_values_members[2] > result.predictive_values_non_members[2]
    assert np.all(np.diff(result.predictive_values_non_members) < 0)
    assert result.values == (-1.0, 1.0)
    assert (result.advantage_bound, result.predictive_value_bounds) == (None, None)


@pytest.mark.parametrize("attack", ["loss", "gradient"])
def test_a_private_model_does_not(attack):
    """False alarms: 1/200 for the interval; the rates may be five standard errors beside what the guarantee allows.

    Predictive values are not compared: at a threshold that flags few, one without a false alarm is 1 by chance.
    """
    X, y = rows(800, 10)
    private = SparseRegressor(5, epsilon=1.0, feature_bound=1.0, target_bound=8.0, algorithm="dp-ight")
    result = attribute(private, X, y, 0, attack=attack, random_state=1)
    assert result.advantage_interval[0] <= 0
    assert result.advantage < result.advantage_bound
    of_members, of_others = np.array(result.rates_members), np.array(result.rates_non_members)
    assert np.all(of_members <= np.e * of_others + 0.02)
    assert np.all(of_others <= np.e * of_members + 0.02)


class Blabbing(RegressorMixin, BaseEstimator):
    """One column for each person beside the secret; releases everybody's secret by randomised response.

    About those who are out it tosses a fair coin. Under add-remove a person is one bit.
    """

    adjacency = "add-remove"

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        rng = np.random.default_rng(self.random_state)
        secret = X[:, 1:].T @ X[:, 0]  # 0 for those who are out
        self.coef_ = np.concatenate([[-1.0], np.where(rng.random(len(secret)) < (1 + secret / 3) / 2, 1.0, -1.0)])
        self.intercept_ = 0.0


def test_the_bound_follows_from_the_rates_on_non_members():
    """An alarm has chance 2/3 or 1/3 on members and 1/2 on others, so epsilon = log(3/2).

    By hand: TPR <= min(3/4, 1 - 1/2 / 1.5) = 2/3 and FPR >= max(1/2 / 1.5, 1/4) = 1/3: the bound is attained.
    False alarms: the rates rest on 4000 records each, 0.03 is nearly 4 deviations; 1 % for the interval.
    """
    n = 1000
    X = np.column_stack([np.where(np.arange(n) % 2, 1.0, -1.0), np.eye(n)])
    result = attribute(Blabbing(), X, np.zeros(n), 0, attack="loss", claimed=(math.log(1.5), 0.0), random_state=0)
    assert result.rates_members == pytest.approx((2 / 3, 1 / 3), abs=0.03)
    assert result.rates_non_members == pytest.approx((1 / 2, 1 / 2), abs=0.03)
    assert result.predictive_value_bounds == pytest.approx([2 / (2 + g) for g in result.priors], rel=0.1)
    assert result.predictive_values_members == pytest.approx(result.predictive_value_bounds, rel=0.1)
    assert result.advantage_interval[0] <= 1 / 6 <= result.advantage_interval[1]
    assert result.advantage_interval[1] <= result.advantage_bound == pytest.approx(1 / 5)


def test_the_counted_models_choose_nothing_and_rows_with_other_values_do_not_count():
    rng = np.random.default_rng(0)
    members = rng.random((8, 300)) < 0.5
    low, high = np.arange(300) < 100, np.arange(300) >= 200
    evidence = {"plain": rng.normal(size=(8, 300)) + np.where(members & high, 2.0, 0.0)}
    facts = {"attack": "loss", "column": 0, "values": (0.0, 1.0), "confidence": 0.9, "priors": (1.0,)}
    wrong = {"plain": np.where(np.arange(8)[:, None] < 4, evidence["plain"], -evidence["plain"])}
    others = {"plain": np.where(low | high, evidence["plain"], 1e6)}
    honest, flipped, same = (count_guesses(e, members, 4, [low, high], None, facts) for e in (evidence, wrong, others))
    assert (honest.threshold, honest.sure_threshold) == (flipped.threshold, flipped.sure_threshold)
    assert honest.advantage > 0 > flipped.advantage
    assert honest == same
    assert honest.rows == 200


def test_what_is_counted_by_hand():
    """Flag from 1/2 on. Of the counted models' members all guesses are right; of the others half."""
    members = np.array([[True, True, True, True, False, False, False, False]] * 4)
    high = np.array([True, True, False, False] * 2)
    evidence = {"plain": np.array([[1.0, 1, 0, 0, 1, 0, 1, 0]] * 4)}
    facts = {"attack": "loss", "column": 0, "values": (0.0, 1.0), "confidence": 0.9, "priors": (1.0, 4.0)}
    result = count_guesses(evidence, members, 2, [~high, high], Guarantee(math.log(2), 0.0), facts)
    assert (result.accuracy_members, result.accuracy_non_members, result.advantage) == (1.0, 0.5, 0.5)
    assert (result.rates_members, result.rates_non_members) == ((1.0, 0.0), (0.5, 0.5))
    assert result.predictive_values_non_members == pytest.approx((1 / 2, 1 / 5))
    # TPR <= min(1, 2 * .5, 1 - .5 / 2) = 3/4 and FPR >= 1/4
    assert result.predictive_value_bounds == pytest.approx((3 / 4, 3 / 7))
    assert result.advantage_bound == pytest.approx(1 / 3)


def test_names_sparse_rows_processes_and_seeds():
    X, y = rows(200, 20)
    frame = pd.DataFrame(X).add_prefix("x")
    by_index = attribute(LinearRegression(), X, y, 0, models=8, random_state=0)
    by_name = attribute(LinearRegression(), frame, y, "x0", models=8, random_state=0, n_jobs=2)
    assert by_name.column == "x0"
    assert {**by_name.to_dict(), "column": 0} == by_index.to_dict()
    as_sparse = attribute(LinearRegression(), sparse.csr_array(X), y, np.int64(0), models=8, random_state=0)
    assert as_sparse.accuracy_members == pytest.approx(by_index.accuracy_members, abs=0.01)
    json.dumps(as_sparse.to_dict(), allow_nan=False)


class Moments(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        self.coef_, self.intercept_ = X.T @ y / len(y), 0.0


def test_sparse_rows_are_never_made_dense():
    """300 x 100 000 cells are 240 MB; the models' coefficients are 4 x 0.8."""
    X = sparse.random_array((300, 100_000), density=1e-4, random_state=np.random.default_rng(0), format="lil")
    X[:, 5] = np.tile([0.0, 1.0], 150)
    y = np.random.default_rng(1).normal(size=300)
    X = X.tocsr()
    tracemalloc.start()
    result = attribute(Moments(), X, y, 5, models=4, random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6
    assert result.rows == 300


def test_the_plot_shows_members_others_and_the_bound():
    pytest.importorskip("matplotlib").use("agg")
    X, y = rows(100, 3)
    axes = attribute(LinearRegression(), X, y, 0, models=4, claimed=(1.0, 0.0), random_state=0).plot()
    assert len(axes.get_lines()) == 3


class Untouchable(LinearRegression):
    def fit(self, X, y):
        raise AssertionError("fitted")


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"column": 3}, r"column=3 is not in X; X has columns 0 to 2"),
        ({"column": -1}, r"column=-1 is not in X"),
        ({"column": "age"}, r"column='age' is not in X"),
        ({"column": 1}, r"column=1 holds 100 different values; .*values=\(low, high\)"),
        ({"column": 2}, r"column=2 holds 1 different values"),
        ({"values": (0.0, 1.0)}, r"values=\(0, 1\) are held by 0 and 5\d rows of column=0; each needs at least 8"),
        ({"values": (1.0, 1.0)}, r"values=\(1.0, 1.0\) must be two different numbers"),
        ({"values": 1.0}, r"values=1.0 must be two different numbers"),
        ({"values": ("no", "yes")}, r"values=\('no', 'yes'\) must be two different numbers"),
        ({"attack": "x"}, r"attack='x' is unknown"),
        ({"y": None}, r"y=None"),
    ],
)
def test_bad_input_is_refused_before_any_fit(facts, words):
    X, y = rows(100, 3)
    X[:, 2] = 0.5
    with pytest.raises(ValueError, match=words):
        attribute(Untouchable(), X, **{"y": y, "column": 0, **facts})


def test_a_missing_name_is_answered_with_the_names_there_are():
    X, y = rows(100, 3)
    with pytest.raises(ValueError, match="column='age' is not in X; the columns are 'a', 'b', 'c'"):
        attribute(Untouchable(), pd.DataFrame(X, columns=list("abc")), y, "age")


def test_chosen_values_may_leave_rows_out():
    X, y = rows(200, 3)
    X[:50, 0] = 7.0
    result = attribute(LinearRegression(), X, y, 0, values=(1, -1), models=4, random_state=0)
    assert result.rows == 150
    assert result.values == (1.0, -1.0)
