"""Every loss has the derivative it says, clipped as it says, and stays convex and finite."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.special import logsumexp, softmax
from sklearn.metrics import log_loss, mean_squared_error

from thresher.vaults.losses import LOSSES, Multinomial

MARGINS = st.floats(-30, 30)
LIMITS = st.sampled_from([1e-3, 0.1, 0.5, 0.999, 1.0, 2.0, math.inf]) | st.floats(1e-3, 10)
MARGINAL = ["squared", "logistic"]  # of one margin; several are tested at the end
TARGETS = {"squared": st.floats(-5, 5), "logistic": st.sampled_from([0.0, 1.0])}


def value(loss, margin, target, limit):
    return float(LOSSES[loss].clipped_value(np.array([margin]), np.array([target]), np.array([limit]))[0])


def residual(loss, margin, target):
    return float(LOSSES[loss].residual(np.array([margin]), np.array([target]))[0])


@pytest.mark.parametrize("loss", MARGINAL)
@settings(max_examples=200, deadline=None)
@given(data=st.data(), margin=MARGINS, limit=LIMITS)
def test_the_clipped_loss_has_the_clipped_residual_as_its_derivative(loss, data, margin, limit):
    target, h = data.draw(TARGETS[loss]), 1e-5
    slope = (value(loss, margin + h, target, limit) - value(loss, margin - h, target, limit)) / (2 * h)
    assert slope == pytest.approx(np.clip(residual(loss, margin, target), -limit, limit), abs=2e-5)


@pytest.mark.parametrize("loss", MARGINAL)
@settings(max_examples=200, deadline=None)
@given(data=st.data(), a=MARGINS, b=MARGINS, part=st.floats(0, 1), limit=LIMITS)
def test_the_clipped_loss_is_convex(loss, data, a, b, part, limit):
    target = data.draw(TARGETS[loss])
    chord = part * value(loss, a, target, limit) + (1 - part) * value(loss, b, target, limit)
    assert value(loss, part * a + (1 - part) * b, target, limit) <= chord + 1e-10 * (1 + chord)


@pytest.mark.parametrize("limit", [1e-3, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("margin", [1e6, -1e6])
@pytest.mark.parametrize(("loss", "target"), [("squared", 2.0), ("logistic", 0.0), ("logistic", 1.0)])
def test_far_margins_cost_their_distance_times_the_limit(loss, target, margin, limit):
    slope = np.clip(residual(loss, margin, target), -limit, limit)
    assert value(loss, margin, target, limit) == pytest.approx(slope * margin, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("margin", [1e6, -1e6])
def test_an_unclipped_logistic_loss_of_a_far_margin_is_its_softplus(margin):
    assert value("logistic", margin, 0.0, math.inf) == max(margin, 0.0)


def test_without_a_limit_the_squared_loss_is_half_the_squared_error():
    rng = np.random.default_rng(0)
    margin, target = rng.normal(size=50), rng.normal(size=50)
    values = LOSSES["squared"].clipped_value(margin, target, np.full(50, np.inf))
    assert values.mean() == pytest.approx(mean_squared_error(target, margin) / 2, rel=1e-12)


def test_without_a_limit_the_logistic_loss_is_the_log_loss():
    rng = np.random.default_rng(0)
    margin, target = 3 * rng.normal(size=50), (rng.random(50) > 0.5).astype(float)
    values = LOSSES["logistic"].clipped_value(margin, target, np.full(50, np.inf))
    assert values.mean() == pytest.approx(log_loss(target, 1 / (1 + np.exp(-margin))), rel=1e-12)


@pytest.mark.parametrize("loss", MARGINAL)
@given(data=st.data(), a=MARGINS, b=MARGINS)
def test_residuals_change_no_faster_than_the_stated_curvature(loss, data, a, b):
    target = data.draw(TARGETS[loss])
    change = abs(residual(loss, a, target) - residual(loss, b, target))
    assert change <= LOSSES[loss].curvature * abs(a - b) * (1 + 1e-9) + 1e-14


@pytest.mark.parametrize("loss", MARGINAL)
def test_the_stated_curvature_is_reached(loss):
    steepest = (residual(loss, 1e-3, 0.0) - residual(loss, -1e-3, 0.0)) / 2e-3
    assert steepest == pytest.approx(LOSSES[loss].curvature, rel=1e-5)


@given(margin=st.floats(-1e6, 1e6), target=TARGETS["logistic"])
def test_logistic_residuals_keep_their_stated_bound(margin, target):
    assert abs(residual("logistic", margin, target)) <= 1


# -- several margins ------------------------------------------------------------------------------------------------


def test_every_loss_is_tested_here():
    assert set(LOSSES) == {*MARGINAL, "multinomial"}


def residuals(margins, label):
    return Multinomial().residual(np.array([margins], dtype=float), np.eye(len(margins))[[label]])[0]


some_margins = st.lists(MARGINS, min_size=2, max_size=6)


@settings(max_examples=100, deadline=None)
@given(margins=some_margins, data=st.data())
def test_multinomial_residuals_are_the_gradient_of_the_log_loss(margins, data):
    label = data.draw(st.integers(0, len(margins) - 1))
    slopes = approx_fprime(np.array(margins), lambda m: logsumexp(m) - m[label], 1e-6)
    np.testing.assert_allclose(residuals(margins, label), slopes, atol=1e-5)


@given(margins=st.lists(st.floats(allow_nan=True), min_size=2, max_size=6), data=st.data())
def test_multinomial_residuals_are_finite_add_up_to_nothing_and_keep_their_stated_bound(margins, data):
    label = data.draw(st.integers(0, len(margins) - 1))
    with np.errstate(over="ignore"):
        found = residuals(margins, label)
    assert np.all(np.isfinite(found))
    assert found.sum() == pytest.approx(0, abs=1e-12)
    assert np.linalg.norm(found) <= math.sqrt(2) * (1 + 1e-12)


def test_the_stated_bound_is_reached_by_a_margin_that_is_sure_of_the_wrong_class():
    assert np.linalg.norm(residuals([1e3, 0.0, 0.0], 1)) == pytest.approx(math.sqrt(2), rel=1e-12)


@given(margins=some_margins, shift=st.floats(-1e6, 1e6))
def test_a_margin_that_all_classes_share_changes_nothing(margins, shift):
    np.testing.assert_allclose(residuals([m + shift for m in margins], 0), residuals(margins, 0), atol=1e-8)


@given(a=st.lists(MARGINS, min_size=3, max_size=3), b=st.lists(MARGINS, min_size=3, max_size=3))
def test_multinomial_residuals_change_no_faster_than_the_stated_curvature(a, b):
    change = np.linalg.norm(residuals(a, 0) - residuals(b, 0))
    assert change <= Multinomial.curvature * np.linalg.norm(np.subtract(a, b)) * (1 + 1e-9) + 1e-14


def test_the_stated_curvature_is_reached_between_two_equal_classes():
    h, direction = 1e-4, np.array([1.0, -1.0]) / math.sqrt(2)
    change = residuals(h * direction, 0) - residuals(-h * direction, 0)
    assert np.linalg.norm(change) / (2 * h) == pytest.approx(Multinomial.curvature, rel=1e-6)


def test_two_margins_are_one_logistic_margin():
    for margin in (-3.0, 0.0, 2.0):
        assert residuals([0.0, margin], 1)[1] == pytest.approx(residual("logistic", margin, 1.0), abs=1e-12)


def test_rows_are_told_apart_and_the_margins_are_left_alone():
    margins, labels = np.array([[0.0, 1.0], [5.0, np.inf], [np.nan, 0.0]]), np.eye(2)[[0, 1, 0]]
    before = margins.copy()
    found = Multinomial().residual(margins, labels)
    np.testing.assert_array_equal(margins, before)
    np.testing.assert_allclose(found[0], softmax([0.0, 1.0]) - [1, 0])
    np.testing.assert_allclose(found[1], [0, 0], atol=1e-12)


def test_residuals_clipped_together_are_the_gradient_of_nothing_and_say_so():
    with pytest.raises(NotImplementedError, match="states no clipped_value"):
        Multinomial().clipped_value(np.zeros((1, 2)), np.eye(2)[[0]], np.ones(1))


# -- values ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", MARGINAL)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_the_value_is_the_loss_without_a_clip(loss, data):
    margin, target = data.draw(MARGINS), data.draw(TARGETS[loss])
    found = float(LOSSES[loss].value(np.array([margin]), np.array([target]))[0])
    assert found == pytest.approx(value(loss, margin, target, math.inf), rel=1e-9, abs=1e-12)
    assert found >= 0


def test_the_multinomial_value_is_minus_the_log_probability_of_the_class():
    rng = np.random.default_rng(0)
    margins, labels = rng.normal(size=(20, 4)), np.eye(4)[rng.integers(4, size=20)]
    expected = -np.log(np.sum(softmax(margins, axis=1) * labels, axis=1))
    np.testing.assert_allclose(Multinomial().value(margins, labels), expected, rtol=1e-12)
    assert np.all(np.isfinite(Multinomial().value(np.array([[np.inf, 0.0], [-np.inf, np.nan]]), np.eye(2))))
