"""The summary of a model says what its attributes say, as text, as HTML and as JSON."""

from __future__ import annotations

import json
import math
import re
import warnings
from html import unescape

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from thresher import (
    DenseRegressor,
    LocalSparseRegressor,
    PrivacyWarning,
    PrivateSearchCV,
    SparseClassifier,
    SparseRegressor,
    load_model,
)
from thresher.cli.display import out, show_coefficients
from thresher.federated import FederatedSparseClassifier
from thresher.report.summary import MOST_SHOWN

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (4000, 20))
y = 2 * X[:, 3] - X[:, 7] + rng.normal(0, 0.3, 4000)
two, three = (y > 0).astype(int), np.digitize(y, [-0.6, 0.6])
BOUNDED = {"feature_bound": 1.0, "random_state": 0}
NUMBERS = {**BOUNDED, "target_bound": 4.0}
KINDS = {
    "numbers": lambda: SparseRegressor(3, epsilon=1.0, **NUMBERS).fit(X, y),
    "no intervals": lambda: SparseRegressor(3, algorithm="dp-ight", **NUMBERS).fit(X, y),
    "three classes": lambda: SparseClassifier(3, epsilon=6.0, algorithm="pursuit", **BOUNDED).fit(X, three),
    "dense": lambda: DenseRegressor(1.0, **NUMBERS).fit(X, y),
    "local": lambda: LocalSparseRegressor(2, 2.0, **NUMBERS).fit(X, y),
    "parties": lambda: FederatedSparseClassifier(2, **BOUNDED).fit([(X[:2000], two[:2000]), (X[2000:], two[2000:])]),
    "search": lambda: (
        PrivateSearchCV(SparseRegressor(2, feature_bound=1.0, target_bound=4.0), {"sparsity": [2, 3]}, random_state=0)
        .fit(X, y)
        .best_estimator_
    ),
    "nothing found": lambda: SparseClassifier(3, epsilon=0.01, **BOUNDED).fit(X, two),
    "not private": lambda: SparseRegressor(3, epsilon=math.inf, algorithm="ight", **NUMBERS).fit(X, y),
}


@pytest.fixture(scope="module")
def models():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return {kind: fit() for kind, fit in KINDS.items()}


def cells(text):
    """The lines of the table, split where two blanks or more are."""
    return [re.split(r"\s{2,}", line) for line in text.partition("\n\n")[0].splitlines()]


@pytest.mark.parametrize("kind", KINDS)
def test_every_nonzero_coefficient_is_listed_the_largest_first(kind, models):
    model = models[kind]
    record = json.loads(json.dumps(model.summary().to_dict(), allow_nan=False))
    coefficients = np.atleast_2d(model.coef_)
    for k, row in enumerate(coefficients):
        label = model.classes_[k] if len(coefficients) > 1 else None
        listed = [entry for entry in record["coefficients"] if entry["class"] == label]
        assert [entry["position"] for entry in listed] == sorted(np.flatnonzero(row), key=lambda j: -abs(row[j]))
        assert [entry["coefficient"] for entry in listed] == [row[entry["position"]] for entry in listed]
        assert record["intercepts"][k] == {"class": label, "intercept": np.ravel(model.intercept_)[k]}
    for name, value in record["cost"].items():
        assert value == getattr(model.certificate_, name)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_and_stability_are_those_of_the_model(level, models):
    model = models["numbers"]
    lines = cells(str(model.summary(level)))
    assert lines[0] == ["feature", "coefficient", f"{100 * level:g} % interval", "stability"]
    for feature, value, interval, stability in lines[1:-1]:
        at = list(model.support_).index(int(feature))
        low, high = model.intervals(level)[at]
        assert value == f"{model.coef_[int(feature)]:+.4g}"
        assert interval == f"{low:+.4g} to {high:+.4g}"
        assert stability == f"{model.uncertainty_.stability[at]:.0%}"
    assert lines[-1] == ["(intercept)", f"{model.intercept_:+.4g}"]


def test_a_level_that_is_none_is_refused(models):
    with pytest.raises(ValueError, match="level=1 must lie strictly between 0 and 1"):
        models["numbers"].summary(1)


def test_columns_are_aligned(models):
    """In every line the coefficient ends where its heading ends."""
    text = str(models["three classes"].summary()).partition("\n\n")[0]
    head, *rows = text.splitlines()
    end = head.index("coefficient") + len("coefficient")
    assert len(rows) > 3
    assert all(row[end - 1].isdigit() and row[end : end + 1] in ("", " ") for row in rows)


def test_names_and_units_are_shown_where_they_are_known():
    model = SparseRegressor(2, **NUMBERS).fit(pd.DataFrame(X, columns=[f"gene {j}" for j in range(20)]), y)
    assert cells(str(model.summary()))[0][:2] == ["feature", "coefficient"]
    model.units_ = np.array(["cm" if j == 3 else "" for j in range(20)])
    head, first, second, _ = cells(str(model.summary()))
    assert head[:3] == ["feature", "unit", "coefficient"]
    assert first[:3] == ["gene 3", "cm", f"{model.coef_[3]:+.4g}"]
    assert second[:2] == ["gene 7", f"{model.coef_[7]:+.4g}"]
    assert [entry["unit"] for entry in model.summary().to_dict()["coefficients"]] == ["cm", None]


def test_what_is_not_there_is_said_in_words(models):
    text = str(models["no intervals"].summary())
    assert "No intervals: the answers that algorithm='dp-ight' releases do not tell" in text
    assert "stability" not in text.lower()
    nothing = str(models["nothing found"].summary())
    assert "No feature stood out of the noise: the zero model. More rows" in nothing
    assert "Stability:" not in nothing
    free = str(models["not private"].summary())
    assert "Cost: no guarantee. Grade none" in free
    assert "Protected is" not in free


def test_the_cost_the_grade_and_what_is_assumed_are_said(models):
    text = str(models["numbers"].summary())
    assert "Cost: epsilon 1 at delta 6.25e-08, replace-one neighbours. Grade conditional" in text
    assert "Assumed: random_state was set" in text  # the tests' seed
    assert "Protected is a row: " in text
    assert "Stability: the chance that a fresh run on fresh rows keeps the feature" in text
    people = SparseRegressor(2, algorithm="pursuit", **NUMBERS).fit(X, y, groups=np.arange(4000) % 2000)
    assert "Protected is a person: all rows" in str(people.summary())
    assert "fresh run on fresh people" in str(people.summary())
    assert "adds its coefficient to the log-odds of 1." in str(models["parties"].summary())


def test_html_holds_the_same_cells_and_escapes_names():
    model = SparseRegressor(2, **NUMBERS).fit(pd.DataFrame(X, columns=[f"<b>{j}</b>" for j in range(20)]), y)
    html = model.summary()._repr_html_()
    assert "<b>" not in html
    rows = [re.findall(r"<t[dh]\b[^>]*>(.*?)</t[dh]>", row) for row in html.partition("</table>")[0].split("</tr>")]
    assert [[unescape(cell) for cell in row if cell] for row in rows if row] == cells(str(model.summary()))


def test_a_long_model_is_cut_in_print_and_whole_in_its_record():
    wide = rng.uniform(-1, 1, (300, MOST_SHOWN + 7))
    summary = DenseRegressor(1.0, **NUMBERS).fit(wide, wide[:, 0]).summary()
    assert cells(str(summary))[-2] == ["... and 7 more"]
    assert len(cells(str(summary))) == MOST_SHOWN + 3
    assert len(summary.to_dict()["coefficients"]) == len(summary.to_frame()) == MOST_SHOWN + 7


def test_a_model_read_back_has_the_same_summary(models, tmp_path):
    for kind in ("numbers", "three classes"):
        models[kind].save(tmp_path / "model.json")
        assert str(load_model(tmp_path / "model.json").summary()) == str(models[kind].summary())


def test_a_model_that_is_not_fitted_has_none():
    with pytest.raises(NotFittedError):
        SparseRegressor().summary()


def test_the_terminal_shows_names_that_look_like_markup():
    model = SparseRegressor(2, **NUMBERS).fit(pd.DataFrame(X, columns=[f"[red]{j}" for j in range(20)]), y)
    with out.capture() as shown:
        show_coefficients(model, truth=np.arange(20.0))
    assert re.search(r"\[red\]3 .*\+3 ", shown.get())
