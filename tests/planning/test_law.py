"""The planning law: within the public bounds, with the signal it is told, and public alone."""

import math

import numpy as np
import pytest

from thresher.planning import PlanningLaw
from thresher.privacy.bounds import Bounds
from thresher.vaults.losses import MULTINOMIAL, loss_named
from thresher.vaults.problem import LinearProblem


def law(loss="squared", d=40, s=5, signal=0.6, intercept=True, n=100, **bounds):
    if not {"feature", "row"} & set(bounds):
        bounds["feature"] = 1.0
    if loss == "squared":
        bounds.setdefault("target", (-3.0, 3.0))
    return PlanningLaw(
        LinearProblem(n, d, Bounds(**bounds), sparsity=s, loss=loss_named(loss), intercept=intercept), signal
    )


def draw_forecast(law, n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    return law.rows(rng, n, law.coefficients(rng))


def margins(table):
    return table.X.astype(float) @ table.theta


@pytest.mark.parametrize(
    "bounds",
    [
        {"feature": 2.0},
        {"feature": tuple(np.linspace(0.1, 3, 40))},
        {"row": 1.5},
        {"feature": 1.0, "row": 2.0},
        {"feature": 1.0, "row": 50.0},
    ],
)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_rows_keep_to_the_public_bounds_and_fill_them(bounds, loss):
    """One of the bounds is reached: rows that stay far inside would be harder than the bounds say."""
    planned = law(loss, **bounds)
    X = draw_forecast(planned).X.astype(float)
    limits = planned.problem.bounds
    assert np.all(np.abs(X) <= limits.entries(40) * (1 + 1e-6))
    norms = np.linalg.norm(X, axis=1)
    assert norms.max() <= limits.row_norm(40) * (1 + 1e-6)
    filled = np.abs(X).max(axis=0) / limits.entries(40)
    assert filled.min() > 0.99 or np.median(norms) > 0.95 * limits.row


def test_single_precision_and_s_true_features():
    table = draw_forecast(law())
    assert table.X.dtype == np.float32
    assert np.count_nonzero(table.theta) == 5


@pytest.mark.parametrize("bounds", [{"feature": 2.0}, {"row": 1.5}, {"feature": tuple(np.linspace(0.1, 3, 40))}])
def test_true_features_explain_the_share_that_is_the_signal(bounds):
    """20,000 rows: the share has a deviation of .005."""
    table = draw_forecast(law(target=(-300.0, 300.0), **bounds))
    assert np.var(margins(table)) / np.var(table.y) == pytest.approx(0.6, abs=0.025)


def test_features_are_of_comparable_strength_whatever_the_bounds_of_their_columns():
    planned = law(feature=tuple(np.linspace(0.1, 3, 40)), s=40)
    effects = np.abs(planned.coefficients(np.random.default_rng(0)) * planned.widths)
    assert effects.max() / effects.min() <= 3
    assert effects.max() / effects.min() > 2


def test_signs_and_places_are_drawn():
    rng = np.random.default_rng(0)
    found = np.array([law().coefficients(rng) for _ in range(50)])
    assert np.count_nonzero(found.any(axis=0)) == 40  # 250 places in 40 columns: one is left out with a chance of .001
    assert 0.3 < np.mean(found[found != 0] > 0) < 0.7


@pytest.mark.parametrize(("target", "centre", "deviation"), [((-3.0, 3.0), 0, 1), ((10.0, 40.0), 25, 5)])
def test_the_target_range_is_three_deviations_to_either_side(target, centre, deviation):
    y = draw_forecast(law(target=target)).y
    assert y.mean() == pytest.approx(centre, abs=0.05 * deviation)
    assert y.std() == pytest.approx(deviation, rel=0.05)
    assert target[0] <= y.min() < y.max() <= target[1]


def test_without_an_intercept_there_is_none_to_fit():
    y = draw_forecast(law(target=(-6.0, 12.0), intercept=False)).y
    assert y.mean() == pytest.approx(0, abs=0.2)


@pytest.mark.parametrize("signal", [0.1, 0.5, 0.9])
def test_classes_follow_a_logistic_model_whose_score_has_the_signal(signal):
    table = draw_forecast(law("logistic", s=10, signal=signal))
    assert np.var(margins(table)) == pytest.approx(signal / (1 - signal) * math.pi**2 / 3, rel=0.06)
    certain = margins(table) > 1
    expected = np.mean(1 / (1 + np.exp(-margins(table)[certain])))
    assert np.mean(table.y[certain] == 1) == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("signal", [0.1, 0.5, 0.9])
def test_the_best_accuracy_is_that_of_the_true_coefficients(signal):
    """20,000 rows: accuracy has a deviation of .0035."""
    planned = law("logistic", s=10, signal=signal)
    table = draw_forecast(planned)
    assert np.mean((margins(table) > 0) == table.y) == pytest.approx(planned.best_accuracy(), abs=0.015)


@pytest.mark.parametrize("signal", [0, 1, -0.1, 1.5, math.nan])
def test_a_signal_that_is_no_share_is_refused(signal):
    with pytest.raises(ValueError, match=r"signal=.* strictly between 0 and 1"):
        law(signal=signal)


def test_many_classes_are_refused():
    with pytest.raises(ValueError, match="3 classes: predictions are made for numbers and for two classes"):
        PlanningLaw(LinearProblem(100, 10, Bounds(1.0), sparsity=2, loss=MULTINOMIAL, outputs=3), 0.5)
