"""Membership inference: it finds what leaks, it does not find what is not there, and guarantees bound it."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression, LogisticRegression

from thresher import SparseClassifier, SparseRegressor
from thresher.audit.membership import count_guesses, membership

INF = float("inf")


def rows(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    y = X[:, :3] @ [2.0, -2.0, 2.0] + 0.5 * rng.normal(size=n)
    return X, y


def labels(y):
    return np.where(y > 0, "ill", "well")


class Randomised(RegressorMixin, BaseEstimator):
    """One column for each person; releases for everybody whether they are in, by randomised response."""

    adjacency = "add-remove"  # of which it is epsilon-DP: one person is one coin

    def __init__(self, epsilon=1.0, random_state=None):
        self.epsilon = epsilon
        self.random_state = random_state

    def fit(self, X, y):
        rng = np.random.default_rng(self.random_state)
        truth = rng.random(X.shape[1]) < 1 / (1 + math.exp(-self.epsilon))
        self.coef_ = np.where(truth == X.any(axis=0), 1.0, 0.0)
        self.intercept_ = 0.0


@pytest.mark.parametrize("attack", ["loss", "gradient"])
def test_randomised_response_is_attacked_up_to_its_bound(attack):
    """Its advantage and predictive values are what the bounds allow, no more and no less.

    False alarms: 1 % for the interval; the predictive values rest on 10^4 alarms, 1/20 is more than 5 deviations.
    """
    result = membership(Randomised(1.0), np.eye(1000), np.ones(1000), attack=attack, claimed=(1.0, 0.0), random_state=0)
    assert result.advantage_bound == pytest.approx(math.tanh(0.5))
    assert result.advantage_interval[0] <= result.advantage_bound <= result.advantage_interval[1]
    assert result.advantage_interval[1] - result.advantage_interval[0] < 0.05
    assert result.predictive_values == pytest.approx(result.predictive_value_bounds, rel=0.05)
    assert result.predictive_values == pytest.approx([math.e / (math.e + g) for g in result.priors], rel=0.05)


@pytest.mark.parametrize("attack", ["loss", "gradient"])
@pytest.mark.parametrize(
    ("estimator", "n", "d", "least"),
    [
        (LogisticRegression(C=100.0, max_iter=1000), 200, 150, 0.4),
        (LinearRegression(), 200, 50, 0.2),
        (SparseRegressor(10, epsilon=INF, feature_bound=1.0, target_bound=8.0, algorithm="ight"), 200, 100, 0.15),
        (SparseClassifier(10, epsilon=INF, feature_bound=1.0, algorithm="ight"), 200, 100, 0.1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_overfitted_model_gives_its_members_away(estimator, n, d, least, attack):
    """The measured advantages are a third above ``least`` or more; a 99.9 % interval must lie above 0.

    Were there no leak, each would pass with chance 1/2000. (Without a leak the predictive value at 1:1 would be 0.5.)
    """
    X, y = rows(n, d)
    y = labels(y) if hasattr(estimator, "predict_proba") else y
    result = membership(estimator, X, y, attack=attack, confidence=0.999, random_state=1)
    assert result.advantage > least
    assert result.advantage_interval[0] > 0
    assert result.predictive_values[0] > 0.6
    assert np.all(np.diff(result.predictive_values) < 0)
    assert (result.advantage_bound, result.predictive_value_bounds, result.guarantee) == (None, None, None)


def test_a_model_that_interpolates_gives_everybody_away():
    """Where a loss of 0 says all, calibration by difficulty must not be in the way."""
    X, y = rows(200, 150)
    result = membership(LinearRegression(), X, y, models=8, random_state=0)
    assert result.advantage > 0.99
    assert result.threshold.score == "plain"
    assert min(result.predictive_values) > 0.9


@pytest.mark.parametrize("attack", ["loss", "gradient"])
@pytest.mark.parametrize(
    "private",
    [
        SparseRegressor(5, epsilon=1.0, feature_bound=1.0, target_bound=8.0, algorithm="dp-ight"),
        SparseClassifier(5, epsilon=0.5, feature_bound=1.0, classes=["ill", "well"], adjacency="add-remove"),
    ],
    ids=["replace-one", "add-remove"],
)
def test_a_private_model_does_not(private, attack):
    """What leaks at such budgets and 400 members is far below what 16 models can show.

    False alarms: 1/200 for the interval's lower end (0 if there were no leak), less for the bounds, which are far away.
    Of the seeds 0 to 15, the second case has one at 2, with an advantage whose interval begins at .0008.
    """
    X, y = rows(800, 20)
    y = labels(y) if hasattr(private, "predict_proba") else y
    result = membership(private, X, y, attack=attack, random_state=3)
    assert result.advantage_interval[0] <= 0
    assert result.advantage < result.advantage_bound
    assert np.all(np.array(result.predictive_values) < result.predictive_value_bounds)
    assert result.guarantee.epsilon == private.epsilon


class Blind(RegressorMixin, BaseEstimator):
    """Random coefficients, whatever the data."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        self.coef_ = np.random.default_rng(self.random_state).normal(size=X.shape[1])
        self.intercept_ = 0.0


@pytest.mark.parametrize("seed", range(3))
def test_a_model_that_ignores_its_data_gives_nobody_away(seed):
    """False alarms: 1 % for each seed."""
    X, y = rows(200, 10)
    result = membership(Blind(), X, y, random_state=seed)
    assert result.advantage_interval[0] <= 0 <= result.advantage_interval[1]


def test_a_constant_model_has_no_advantage_at_all():
    """Every score ties with every other: all are flagged, or none."""

    class Constant(Blind):
        def fit(self, X, y):
            self.coef_, self.intercept_ = np.zeros(X.shape[1]), 0.0

    X, y = rows(200, 10)
    result = membership(Constant(), X, np.ones(200), random_state=0)
    assert result.advantage == 0
    assert result.advantage_interval == (0, 0)
    assert result.predictive_values == pytest.approx([1 / (1 + g) for g in result.priors])
    assert membership(Constant(), X, y, random_state=0).advantage == pytest.approx(0, abs=0.1)


def test_the_counted_models_choose_nothing():
    rng = np.random.default_rng(0)
    members = rng.random((8, 100)) < 0.5
    scores = {name: rng.normal(size=(8, 100)) + members for name in ("plain", "calibrated")}
    corrupted = {name: np.where(np.arange(8)[:, None] < 4, values, -100 * values) for name, values in scores.items()}
    honest, other = (count_guesses("loss", s, members, 4, (1.0,), 0.9, None) for s in (scores, corrupted))
    assert (honest.threshold, honest.sure_threshold) == (other.threshold, other.sure_threshold)
    assert honest.advantage > 0 > other.advantage


def test_what_is_counted_by_hand():
    """The attacker's two models say: flag from 1/2 on. The others flag 2 of 2 and 1 of 2 members, 0 and 1 others."""
    members = np.array([[True, True, False, False]] * 4)
    scores = np.array([[1.0, 1, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0]])
    result = count_guesses("loss", {"plain": scores}, members, 2, (1.0, 4.0), 0.5, None)
    assert result.threshold.at == 0.5
    assert result.advantage == 0.5
    assert result.advantage_interval == pytest.approx((0.0, 1.0))  # Cauchy quartiles: 0.5 -+ 1 * sd / sqrt 2
    assert (result.true_positive_rate, result.false_positive_rate, result.alarms) == (0.75, 0.25, (3, 1))
    assert result.predictive_values == pytest.approx((0.75, 0.75 / 1.75))
    assert (result.roc_fpr, result.roc_tpr) == ((0, 0.25, 1), (0, 0.75, 1))


def test_the_seed_decides_everything_and_the_number_of_processes_nothing():
    X, y = rows(200, 30)
    one, two = (membership(LinearRegression(), X, y, models=8, random_state=3, n_jobs=jobs) for jobs in (1, 2))
    assert one == two
    assert one != membership(LinearRegression(), X, y, models=8, random_state=4)
    private = SparseRegressor(3, feature_bound=1.0, target_bound=8.0)
    assert len({membership(private, X, y, models=4, random_state=5).advantage for _ in range(2)}) == 1


def test_sparse_rows_and_frames_are_attacked_like_arrays():
    X, y = rows(200, 30)
    dense, csc, frame = (
        membership(LogisticRegression(), table, labels(y), models=8, random_state=0)
        for table in (X, sparse.csc_array(X), pd.DataFrame(X).add_prefix("x"))
    )
    assert csc.advantage == pytest.approx(dense.advantage, abs=0.01)
    assert frame == dense


def test_the_result_is_plain_json():
    X, y = rows(40, 3)
    model = SparseRegressor(2, feature_bound=1.0, target_bound=8.0)
    told = json.loads(json.dumps(membership(model, X, y, models=4, random_state=0).to_dict(), allow_nan=False))
    assert told["guarantee"]["epsilon"] == 1.0
    assert told["threshold"]["score"] in ("plain", "calibrated")
    assert len(told["predictive_value_bounds"]) == len(told["priors"]) == 4


def test_the_plot_shows_the_measured_values_and_the_bound():
    pytest.importorskip("matplotlib").use("agg")
    X, y = rows(40, 3)
    axes = membership(LinearRegression(), X, y, models=4, claimed=(1.0, 0.0), random_state=0).plot()
    assert [line.get_label() for line in axes.get_lines()] == ["measured", "privacy bound"]


def test_bad_settings_are_refused_before_any_fit():
    class Untouchable(LinearRegression):
        def fit(self, X, y):
            raise AssertionError("fitted")

    X, y = rows(40, 3)
    for bad, words in [({"attack": "x"}, "attack='x'"), ({"models": 2}, "models=2"), ({"priors": [-1]}, "priors=")]:
        with pytest.raises(ValueError, match=words):
            membership(Untouchable(), X, y, **bad)
    with pytest.raises(ValueError, match="y=None"):
        membership(Untouchable(), X, None)
