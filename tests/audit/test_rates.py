"""Predictive values, thresholds and what a guarantee leaves of them, against hand calculation and brute force."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from thresher.audit.rates import (
    ROC_POINTS,
    Guarantee,
    Threshold,
    accuracy,
    advantage,
    alarm_ratio,
    choose,
    draw_predictive_values,
    predictive_value,
    roc,
    shares,
    t_interval,
    thinned_roc,
)
from thresher.privacy.conversions import gaussian_delta

GRID = list(product([0.0, 0.1, 1.0, 4.0], [0.0, 1e-6, 0.05]))


def leaky_randomised_response(epsilon, delta):
    """The chances of four outcomes on two neighbours. Every (epsilon, delta)-DP mechanism post-processes this one."""
    told = (1 - delta) / (1 + math.exp(epsilon))
    q = np.array([delta, told * math.exp(epsilon), told, 0.0])
    return q[::-1], q


def all_tests(p, q):
    """(FPR, TPR) of all deterministic tests: one for each set of outcomes."""
    return [(float(np.dot(s, q)), float(np.dot(s, p))) for s in product([0, 1], repeat=len(p))]


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_no_test_beats_the_bound_and_one_attains_it(epsilon, delta):
    guarantee = Guarantee(epsilon, delta)
    tests = all_tests(*leaky_randomised_response(epsilon, delta))
    assert all(tpr <= guarantee.largest_rate(fpr) + 1e-12 for fpr, tpr in tests)
    assert all(tpr >= guarantee.smallest_rate(fpr) - 1e-12 for fpr, tpr in tests)
    attained = [fpr for fpr, tpr in tests if tpr == pytest.approx(guarantee.largest_rate(fpr), abs=1e-12)]
    assert {0.0, 1.0} < {round(fpr, 12) for fpr in attained}
    assert max(tpr - fpr for fpr, tpr in tests) == pytest.approx(guarantee.advantage, abs=1e-12)


def test_the_bounds_by_hand():
    guarantee = Guarantee(math.log(3), 0.1)
    assert guarantee.largest_rate(0.0) == pytest.approx(0.1)
    assert guarantee.largest_rate(0.1) == pytest.approx(0.4)
    assert guarantee.largest_rate(0.6) == pytest.approx(0.9)  # 1 - (1 - .1 - .6) / 3
    assert guarantee.largest_rate(0.95) == 1.0
    assert guarantee.smallest_rate(0.4) == pytest.approx(0.1)  # (.4 - .1) / 3
    assert guarantee.advantage == pytest.approx(2.2 / 4)
    assert guarantee.predictive_value(0.1, 10) == pytest.approx(0.4 / 1.4)
    assert guarantee.imputed_predictive_value(0.1, 0.4, 10) == pytest.approx(0.4 / 1.4)
    assert predictive_value(0.4, 0.1, 2) == pytest.approx(2 / 3)


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
def test_the_gaussian_curve_is_the_envelope_of_all_its_epsilons(mu):
    """Dong, Roth and Su 2022, Proposition 2.12: mu-GDP is (epsilon, delta(epsilon))-DP for every epsilon."""
    exact = Guarantee(50.0, 0.9, mu)
    pairs = [Guarantee(epsilon, gaussian_delta(mu, epsilon)) for epsilon in np.linspace(0, 12, 600)]
    for fpr in (0.001, 0.1, 0.5, 0.9):
        envelope = min(pair.largest_rate(fpr) for pair in pairs)
        assert exact.largest_rate(fpr) == pytest.approx(envelope, rel=1e-3)
        assert exact.largest_rate(fpr) <= envelope + 1e-12
    assert exact.advantage == pytest.approx(2 * norm.cdf(mu / 2) - 1)


@pytest.mark.parametrize("guarantee", [Guarantee(1e6, 0.0), Guarantee(0.0, 1.0), Guarantee(0.0, 0.0, 1e9)])
def test_extreme_guarantees_give_numbers(guarantee):
    for rate in (0.0, 0.5, 1.0):
        assert 0 <= guarantee.smallest_rate(rate) <= rate <= guarantee.largest_rate(rate) <= 1
    assert 0 <= guarantee.advantage <= 1


def test_no_alarm_has_no_predictive_value_and_its_bound_is_one():
    assert predictive_value(0.0, 0.0, 10) is None
    assert Guarantee(1.0, 0.0).predictive_value(0.0, 10) == 1.0
    assert Guarantee(1.0, 0.0, 0.5).predictive_value(0.0, 10) == 1.0


def test_the_roc_by_hand():
    thresholds, fpr, tpr = roc(np.array([3.0, 2.0, 2.0, 1.0]), np.array([2.0, 0.0]))
    assert thresholds.tolist() == [2.5, 1.5, 0.5, 0]
    assert fpr.tolist() == [0, 0.5, 0.5, 1]
    assert tpr.tolist() == [0.25, 0.75, 1, 1]


def test_the_kept_roc_is_short_and_runs_from_corner_to_corner():
    rng = np.random.default_rng(0)
    fpr, tpr = thinned_roc(rng.normal(1, 1, 5000), rng.normal(0, 1, 5000))
    assert len(fpr) == len(tpr) == ROC_POINTS
    assert (fpr[0], tpr[0], fpr[-1], tpr[-1]) == (0, 0, 1, 1)
    assert np.all(np.diff(fpr) >= 0)
    assert np.all(np.diff(tpr) >= 0)


def test_one_threshold_is_best_for_every_prior():
    rng = np.random.default_rng(1)
    positives, negatives = rng.normal(1, 1, 2000), rng.normal(0, 1, 2000)
    _, fpr, tpr = roc(positives, negatives)
    enough = (tpr >= 0.01) & (fpr > 0)
    best = {int(np.argmax(np.where(enough, tpr / (tpr + g * fpr + 1e-300), 0))) for g in (0.1, 1, 10, 100)}
    assert len(best) == 1
    assert best == {int(np.argmax(np.where(enough, tpr / np.maximum(fpr, 1e-9), 0)))}


def test_thresholds_by_hand():
    scores = {"dull": np.zeros((1, 8)), "good": np.array([[4.0, 3, 2, 0, 1, 0, 0, 0]])}
    positive = np.array([[True] * 4 + [False] * 4])
    assert choose(scores, positive, ~positive, advantage) == Threshold("good", 1.5)
    assert choose(scores, positive, ~positive, alarm_ratio) == Threshold("good", 1.5)
    assert choose(scores, positive, ~positive, accuracy) == Threshold("good", 1.5)
    assert Threshold("good", 1.5).alarms(scores).tolist() == [[True] * 3 + [False] * 5]


def test_a_threshold_that_finds_less_than_a_hundredth_is_not_taken():
    positives = np.concatenate([[9.0], np.full(199, 1.0)])  # half a percent, perfectly safe
    scores = {"score": np.concatenate([positives, np.zeros(100), np.ones(100)])[None]}
    positive = np.arange(400)[None] < 200
    assert choose(scores, positive, ~positive, alarm_ratio) == Threshold("score", 0.5)


def test_shares_and_their_interval():
    alarms = np.array([[True, True, False, False], [True, False, False, False]])
    among = np.array([[True, True, True, True], [True, True, False, False]])
    assert shares(alarms, among).tolist() == [0.5, 0.5]
    low, high = t_interval(np.array([0.0, 1.0, 2.0]), 0.95)
    assert (low, high) == pytest.approx((1 - 4.302653 / math.sqrt(3), 1 + 4.302653 / math.sqrt(3)), rel=1e-6)


class Paper:
    """Axes that remember what was drawn."""

    def __init__(self):
        self.lines = {}

    def plot(self, x, y, style, *, marker, label):
        self.lines[label] = (list(x), list(y), style)

    def set(self, **facts):
        self.facts = facts

    def set_ylabel(self, text):
        self.facts["ylabel"] = text

    def legend(self):
        self.facts["legend"] = True


def test_values_and_bounds_are_drawn_beside_each_other():
    paper = Paper()
    lines = {"measured": (0.5, None), "privacy bound": (0.7, 0.2), "absent": None}
    assert draw_predictive_values(paper, (1, 10), lines, "title") is paper
    assert set(paper.lines) == {"measured", "privacy bound"}
    assert paper.lines["privacy bound"] == ([1, 10], [0.7, 0.2], "--")
    assert math.isnan(paper.lines["measured"][1][1])
    assert paper.facts["xscale"] == "log"


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'thresher\[report\]'"):
        draw_predictive_values(None, (1,), {}, "title")


def test_with_matplotlib_new_axes_are_made():
    pytest.importorskip("matplotlib").use("agg")
    assert draw_predictive_values(None, (1, 10), {"measured": (0.5, 0.1)}, "title").get_xscale() == "log"
