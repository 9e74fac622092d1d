"""Non-linear measurements: increasing functions of the margin, by name or given with their derivative."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.differentiate import derivative

from thresher import LocalSparseRegressor
from thresher.algorithms import LDPIHT
from thresher.privacy.bounds import Bounds
from thresher.vaults.losses import MEASUREMENTS, SQUARED, Measured, loss_named, measurement_of
from thresher.vaults.problem import LinearProblem

MARGINS = np.array([-1.7, -0.4, -0.1, 0.2, 0.9, 2.3])


def wave(margin):
    return 2 * margin + np.cos(margin)


def wave_slope(margin):
    return 2 - np.sin(margin)


# -- the functions ----------------------------------------------------------------------------------------------


BENT = [name for name in MEASUREMENTS if name != "linear"]


@pytest.mark.parametrize("name", BENT)
def test_derivatives_are_those_of_the_functions(name):
    measurement = MEASUREMENTS[name]
    assert measurement.derivative(MARGINS) == pytest.approx(derivative(measurement.function, MARGINS).df, rel=1e-6)


@pytest.mark.parametrize("name", BENT)
def test_named_measurements_increase_and_have_bounded_slopes(name):
    margins = np.linspace(-30, 30, 2001)
    values, slopes = MEASUREMENTS[name].function(margins), MEASUREMENTS[name].derivative(margins)
    assert np.all(np.diff(values[np.abs(margins) < 5]) > 0)
    assert np.all(np.isfinite(slopes))
    assert np.all(slopes >= 0)


def test_a_name_and_a_pair_are_understood():
    assert measurement_of("probit") is MEASUREMENTS["probit"]
    given = measurement_of((wave, wave_slope))
    assert given.measurement == "given by the user"
    assert given.inverse_link(MARGINS) == pytest.approx(wave(MARGINS))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("cubic", ["measurement='cubic'", "'cube root'"]),
        (None, ["measurement=None", "a pair"]),
        ((wave,), ["a pair (f, derivative of f)"]),
        ((wave, 3), ["must be functions"]),
        ((np.log, np.reciprocal), ["f must take an array of margins to finite numbers"]),
        ((wave, lambda m: m[:2]), ["its derivative must take"]),
        ((np.cos, lambda m: -np.sin(m)), ["f must increase"]),
        ((np.zeros_like, np.zeros_like), ["f must increase"]),
    ],
)
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_a_bad_measurement_is_refused_by_name_value_and_remedy(given, words):
    with pytest.raises(ValueError, match="measurement") as refusal:
        measurement_of(given)
    for word in words:
        assert word in str(refusal.value)


# -- the loss ---------------------------------------------------------------------------------------------------


def test_the_linear_measurement_is_the_squared_loss():
    assert measurement_of("linear") is loss_named("squared") is SQUARED
    assert LinearProblem(10, 5, Bounds(feature=1.0, target=(-1.0, 1.0)), sparsity=2, loss=SQUARED).curvature == 1.0


def test_residuals_are_the_function_less_the_target():
    loss = loss_named("squared", "logistic")
    assert isinstance(loss, Measured)
    assert loss.residual(np.array([0.0, 50.0]), np.array([0.25, 0.25])) == pytest.approx([0.25, 0.75])


def test_a_measurement_is_for_numbers_only():
    with pytest.raises(ValueError, match="measurement='probit' is for targets that are numbers"):
        loss_named("logistic", "probit")


def test_targets_of_a_non_linear_measurement_are_not_centred():
    """What is taken off the target is given back by the intercept, which a non-linear measurement holds inside."""
    bounds = Bounds(feature=1.0, target=(0.0, 1.0))
    assert LinearProblem(10, 5, bounds, sparsity=2, loss=SQUARED).target_centre == 0.5
    assert LinearProblem(10, 5, bounds, sparsity=2, loss=MEASUREMENTS["logistic"]).target_centre == 0.0


# -- the models -------------------------------------------------------------------------------------------------

CLOSE = 0.1
THETA = np.array([1.0, 0.0, -0.8, 0.0, 0.0, 0.6, 0.0, 0.0])


def measured(function, n, seed=0, intercept=0.0):
    rng = np.random.default_rng(seed)
    X = rng.choice([-1.0, 1.0], (n, len(THETA)))
    return X, function(X @ THETA + intercept) + rng.uniform(-0.05, 0.05, n)


RANGES = {"linear": 2.5, "logistic": (-0.05, 1.05), "probit": (-0.05, 1.05), "cube root": 1.5, "wave": 6.0}
FUNCTIONS = {name: measurement.inverse_link for name, measurement in MEASUREMENTS.items()} | {"wave": wave}


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("algorithm", ["ldp-iht", "label-ldp-iht"])
def test_the_coefficients_behind_a_measurement_are_found(name, algorithm):
    """Seeds are fixed; over seeds 1 to 20 the largest relative error of any was .04."""
    measurement = (wave, wave_slope) if name == "wave" else name
    X, y = measured(FUNCTIONS[name], 100_000)
    model = LocalSparseRegressor(
        3, 4.0, algorithm=algorithm, feature_bound=1.0, target_bound=RANGES[name], measurement=measurement,
        fit_intercept=False, random_state=0,
    ).fit(X, y)  # fmt: skip
    assert set(model.support_) == set(np.flatnonzero(THETA))
    assert np.linalg.norm(model.coef_ - THETA) < CLOSE * np.linalg.norm(THETA)
    assert model.predict(X) == pytest.approx(FUNCTIONS[name](X @ model.coef_))
    assert model.certificate_.settings["measurement"] == ("given by the user" if name == "wave" else name)


@pytest.mark.parametrize("name", ["logistic", "cube root"])
def test_the_wrong_measurement_finds_other_coefficients(name):
    """So that the test above cannot pass with any measurement."""
    X, y = measured(FUNCTIONS[name], 100_000)
    model = LocalSparseRegressor(
        3, 4.0, algorithm="label-ldp-iht", target_bound=RANGES[name], fit_intercept=False, random_state=0
    ).fit(X, y)
    assert np.linalg.norm(model.coef_ - THETA) > CLOSE * np.linalg.norm(THETA)


def test_an_intercept_inside_a_measurement_is_found():
    X, y = measured(FUNCTIONS["logistic"], 100_000, intercept=0.5)
    model = LocalSparseRegressor(
        3, 4.0, algorithm="label-ldp-iht", target_bound=(-0.05, 1.05), measurement="logistic", random_state=0
    ).fit(X, y)
    assert model.intercept_ == pytest.approx(0.5, abs=0.1)


def test_a_model_of_a_named_measurement_survives_its_file_and_of_a_function_is_refused(tmp_path):
    from thresher import load_model

    X, y = measured(FUNCTIONS["probit"], 5000)
    facts = {"feature_bound": 1.0, "target_bound": (-0.05, 1.05), "random_state": 0}
    model = LocalSparseRegressor(3, 4.0, measurement="probit", **facts).fit(X, y)
    model.save(tmp_path / "model.json")
    assert load_model(tmp_path / "model.json").predict(X) == pytest.approx(model.predict(X))
    model = LocalSparseRegressor(3, 4.0, measurement=(wave, wave_slope), **facts).fit(X, y)
    with pytest.raises(ValueError, match="is a function, which no JSON file can hold"):
        model.save(tmp_path / "other.json")


def test_wild_values_of_a_users_function_do_no_harm():
    """Infinite or absent values become clipped or zero residuals, never a NaN in the answer."""

    def steep(margin):
        return np.where(np.abs(margin) > 2.5, np.where(margin > 0, np.inf, np.nan), margin)

    X, y = measured(np.asarray, 2000)
    model = LocalSparseRegressor(
        3, 2.0, algorithm=LDPIHT(iterations=4, step=50.0), feature_bound=1.0, target_bound=3.0,
        measurement=(steep, np.ones_like), random_state=0,
    ).fit(X, y)  # fmt: skip
    assert np.all(np.isfinite(model.coef_))
    assert math.isfinite(model.intercept_)
