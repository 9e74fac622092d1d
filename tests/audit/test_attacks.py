"""The pool of models and the scores, by hand; and every refusal."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeRegressor

from thresher import SparseClassifier, SparseRegressor
from thresher.audit.attacks import Records, attack_scores, check_settings, fit_pool, mean_without, read_records
from thresher.audit.rates import Guarantee

GOOD = {"attack": "loss", "models": 8, "priors": (1, 10), "confidence": 0.99, "claimed": None}


def rows(n=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, X @ np.arange(1.0, d + 1) + rng.normal(size=n)


def pool_of(estimator, X, y, models=6, groups=None, claim=None):
    records = read_records(estimator, X, y)
    return fit_pool(estimator, records, groups or [np.ones(len(y), dtype=bool)], models, 0, claim, None, 0)


# -- records and settings -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"attack": "guess"}, r"attack='guess' .*'loss', 'gradient'"),
        ({"models": 3}, r"models=3 .*at least 4"),
        ({"models": 8.0}, r"models=8.0 .*whole"),
        ({"models": True}, r"models=True .*whole"),
        ({"confidence": 1.0}, r"confidence=1.0 .*between 0 and 1"),
        ({"confidence": "high"}, r"confidence='high' .*between 0 and 1"),
        ({"priors": (1, 0)}, r"priors=\(1, 0\) .*positive"),
        ({"priors": ()}, r"priors=\(\) .*positive"),
        ({"priors": 3}, r"priors=3 .*positive"),
        ({"priors": (1, math.inf)}, r"priors=.*positive"),
        ({"claimed": "much"}, r"claimed='much' must be a Budget, a pair"),
        ({"claimed": (1.0, 2.0)}, r"claimed=\(1.0, 2.0\): epsilon must be positive and finite, delta"),
        ({"claimed": (-1.0, 0.0)}, r"claimed=\(-1.0, 0.0\): epsilon must be positive"),
    ],
)
def test_a_setting_without_sense_is_refused(bad, words):
    with pytest.raises(ValueError, match=words):
        check_settings(**{**GOOD, **bad})


def test_good_settings_become_numbers():
    assert check_settings(**GOOD) == ((1.0, 10.0), None)
    assert check_settings(**{**GOOD, "claimed": (1, 0), "priors": np.array([2])}) == ((2.0,), Guarantee(1.0, 0.0))


@pytest.mark.parametrize(
    ("estimator", "X", "y", "words"),
    [
        (LinearRegression(), np.eye(9), None, "y=None.*one target for each row"),
        (LinearRegression(), np.eye(9), np.ones(8), r"y has shape \(8,\) and X has 9 rows"),
        (LinearRegression(), np.eye(9), np.ones((9, 2)), r"y has shape \(9, 2\)"),
        (LinearRegression(), np.eye(9), ["a"] * 9, "y: a regression target must be numbers"),
        (LinearRegression(), np.eye(7), np.ones(7), "X has 7 rows.*at least 8"),
        (LinearRegression(), np.full((9, 2), np.nan), np.ones(9), "X contains NaN"),
        (LinearRegression(), pd.DataFrame({"name": ["x"] * 9}), np.ones(9), "column 'name' holds text"),
        (LogisticRegression(), np.eye(30), np.repeat([0, 1, 2], 10), "y holds 3 classes.*one against the rest"),
        (LogisticRegression(), np.eye(30), np.zeros(30), "y holds 1 classes"),
        (LogisticRegression(), np.eye(30), np.arange(30) < 7, "smallest with 7 rows.*at least 8"),
    ],
)
def test_bad_rows_are_refused_before_any_fit(estimator, X, y, words):
    with pytest.raises(ValueError, match=words):
        read_records(estimator, X, y)


@pytest.mark.parametrize("estimator", [LinearRegression, "ridge", None])
def test_what_is_no_estimator_is_refused(estimator):
    with pytest.raises(TypeError, match=r"estimator=.*is no scikit-learn estimator"):
        read_records(estimator, np.eye(9), np.ones(9))


def test_models_that_are_not_linear_or_have_several_outputs_are_refused():
    X, y = rows()
    with pytest.raises(TypeError, match=r"DecisionTreeRegressor.*no coef_ once fitted"):
        pool_of(DecisionTreeRegressor(), X, y)
    three = SparseClassifier(2, feature_bound=1.0, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="several outputs"):
        pool_of(three, X, (y > 0).astype(int))


# -- the pool -----------------------------------------------------------------------------------------------------


def test_exactly_half_of_the_rows_are_members_unless_coins_are_tossed():
    X, y = rows()
    halves = pool_of(LinearRegression(), X, y, models=20).members.sum(axis=1)
    assert set(halves.tolist()) == {20}
    coins = SparseRegressor(2, feature_bound=1.0, target_bound=8.0, adjacency="add-remove")
    tossed = pool_of(coins, X, y, models=20).members.sum(axis=1)
    assert len(set(tossed.tolist())) > 3


class FirstRow(BaseEstimator):
    """Remembers which rows it was fitted on, in order."""

    seen = []  # noqa: RUF012  (shared on purpose: clones report here)

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        self.coef_, self.intercept_ = np.zeros(X.shape[1]), 0.0
        self.seen.append((y.tolist(), self.random_state))


def test_members_come_in_random_order_with_fresh_seeds():
    """An outsider takes the very place of the row it replaces: what an ordered mechanism needs to be audited."""
    FirstRow.seen.clear()
    pool = pool_of(FirstRow(random_state=7), np.eye(20), np.arange(20.0), models=6)
    for members, (order, _) in zip(pool.members, FirstRow.seen, strict=True):
        assert sorted(order) == np.flatnonzero(members).tolist()
        assert order != sorted(order)
    seeds = [seed for _, seed in FirstRow.seen]
    assert len(set(seeds)) == 6
    assert all(isinstance(seed, int) for seed in seeds)
    assert pool.guarantee is None


class NeedsBoth(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        assert set(y) == {"no", "yes"}
        self.coef_, self.intercept_ = np.zeros((1, X.shape[1])), np.zeros(1)


def test_every_half_holds_both_classes_and_every_group():
    y = np.where(np.arange(60) < 8, "yes", "no")
    group = np.arange(60) >= 52
    pool = pool_of(NeedsBoth(), np.ones((60, 1)), y, models=40, groups=[group])
    for which in (group, y == "yes"):
        inside = pool.members[:, which].sum(axis=1)
        assert inside.min() >= 2
        assert inside.max() <= 6


def test_margins_are_the_models_predictions():
    X, y = rows()
    pool = pool_of(LinearRegression(), X, y)
    model = LinearRegression().fit(X[pool.members[0]], y[pool.members[0]])
    assert pool.margins(X)[0] == pytest.approx(model.predict(X))
    assert pool.margins(sparse.csr_array(X)) == pytest.approx(pool.margins(X))


def test_the_guarantee_is_read_from_the_certificates():
    X, y = rows()
    facts = {"sparsity": 2, "feature_bound": 1.0, "target_bound": 8.0, "delta": 1e-5}
    gaussian = pool_of(SparseRegressor(epsilon=0.5, algorithm="dp-ight", **facts), X, y).guarantee
    assert (gaussian.epsilon, gaussian.delta) == (0.5, 1e-5)
    assert gaussian.advantage < Guarantee(0.5, 1e-5).advantage
    mixed = pool_of(SparseRegressor(epsilon=0.5, algorithm="peeling", **facts), X, y).guarantee
    assert mixed == Guarantee(0.5, 1e-5)
    off = SparseRegressor(epsilon=math.inf, algorithm="ight", **facts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pool_of(off, X, y).guarantee is None
    assert pool_of(off, X, y, claim=Guarantee(1.0, 0.0)).guarantee == Guarantee(1.0, 0.0)


def test_with_coins_the_weakest_certificate_counts():
    X, y = rows()
    model = SparseRegressor(2, feature_bound=1.0, target_bound=8.0, adjacency="add-remove", algorithm="dp-ight")
    pool = pool_of(model, X, y)
    assert pool.guarantee.delta == pytest.approx(float(pool.members.sum(axis=1).min()) ** -2)


# -- scores -------------------------------------------------------------------------------------------------------


def test_the_mean_without_a_record_leaves_the_model_itself_out():
    values = np.array([[1.0, 10.0, 5.0], [3.0, 20.0, 5.0], [5.0, 30.0, 5.0], [7.0, 40.0, 5.0]])
    without = np.array([[True, True, False], [True, False, False], [False, False, False], [False, False, False]])
    overall = (1 + 10 + 3) / 3
    expected = [[3.0, overall, overall], [1.0, 10.0, overall], [2.0, 10.0, overall], [2.0, 10.0, overall]]
    assert mean_without(values, without) == pytest.approx(np.array(expected))


def test_scores_by_hand():
    without = np.array([[True, True], [True, True], [False, False]])
    margins = np.array([[1.0, 0.0], [1.0, 2.0], [2.0, 3.0]])
    squared = Records(None, np.array([2.0, 1.0]), np.array([2.0, 1.0]), classifier=False)
    loss = attack_scores("loss", margins, squared, without)
    assert loss["plain"][2].tolist() == [0.0, -2.0]
    assert loss["calibrated"][2].tolist() == [0.5, -1.5]  # both shadow losses are 1/2
    gradient = attack_scores("gradient", margins, squared, without)
    assert gradient["plain"][2].tolist() == [4.0, 3.0]  # y m
    assert gradient["calibrated"][2].tolist() == [1.0, 0.0]  # (y - 1)(m - 1)


@pytest.mark.parametrize("classifier", [False, True])
def test_the_pull_is_minus_the_derivative_of_the_loss(classifier):
    target = np.array([0.0, 1.0, 1.0])
    records = Records(None, target, target, classifier)
    margins, step = np.array([-3.0, 0.2, 4.0]), 1e-6
    slope = (records.loss(margins + step) - records.loss(margins - step)) / (2 * step)
    assert records.pull(margins) == pytest.approx(-slope, abs=1e-8)


def test_a_huge_margin_overflows_nothing():
    target = np.array([0.0, 1.0])
    records = Records(None, target, target, classifier=True)
    assert records.loss(np.array([1e300, 1e300])).tolist() == [1e300, 0.0]
    assert records.pull(np.array([1e300, -1e300])).tolist() == [-1.0, 1.0]
