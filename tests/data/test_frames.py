"""Frames of every library, lazy or not, make the model that the same numbers make."""

from __future__ import annotations

import numpy as np
import pytest

from thresher import PrivateScaler, Schema, SparseRegressor

NAMES = ["a", "b", "c"]
X = np.random.default_rng(0).uniform(-1, 1, (400, 3))
Y = X[:, 1].copy()
FORMS = ("pandas", "polars", "lazy polars", "Arrow")


def frame(form, columns):
    if form == "Arrow":
        return pytest.importorskip("pyarrow").table(columns)
    if form == "pandas":
        return pytest.importorskip("pandas").DataFrame(columns)
    eager = pytest.importorskip("polars").DataFrame(columns)
    return eager.lazy() if form == "lazy polars" else eager


def features(form):
    return frame(form, dict(zip(NAMES, X.T, strict=True)))


def model():
    return SparseRegressor(1, delta=1e-6, feature_bound=1.0, target_bound=1.0, random_state=0)


@pytest.mark.parametrize("form", FORMS)
def test_a_frame_of_numbers_is_fitted_and_predicted_like_its_array(form):
    expected = model().fit(X, Y)
    found = model().fit(features(form), Y)
    assert found.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    np.testing.assert_array_equal(found.predict(features(form)), expected.predict(X))


@pytest.mark.parametrize("form", FORMS)
def test_a_frame_is_read_by_a_schema(form):
    declared = {name: {"bounds": [-1, 1]} for name in NAMES} | {"y": {"role": "target", "bounds": [-1, 1]}}
    whole = frame(form, {**dict(zip(NAMES, X.T, strict=True)), "y": Y})
    schema = Schema.from_dict({"columns": declared})
    found = SparseRegressor.from_schema(schema, sparsity=1, epsilon=20.0, delta=1e-6, random_state=0).fit(whole)
    assert found.support_.tolist() == [1]
    assert found.predict(whole).shape == (400,)


@pytest.mark.parametrize("form", FORMS)
def test_a_frame_is_scaled_like_its_array(form):
    scaler = PrivateScaler(1.0, 1e-6, feature_bound=1.0, random_state=0).fit(features(form))
    np.testing.assert_array_equal(
        scaler.transform(features(form)),
        PrivateScaler(1.0, 1e-6, feature_bound=1.0, random_state=0).fit(X).transform(X),
    )


@pytest.mark.parametrize("form", FORMS)
def test_text_is_refused_by_the_name_of_its_column(form):
    text = frame(form, {"a": X[:, 0], "b": ["some", "text"] * 200})
    with pytest.raises(ValueError, match="X: column 'b' holds text"):
        model().fit(text, Y)
