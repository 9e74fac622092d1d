"""Estimators in notebooks and in pipelines: parameters and names are shown, rows and long arrays are not."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline

from thresher import (
    DenseClassifier,
    DenseRegressor,
    Ledger,
    LocalSparseClassifier,
    LocalSparseRegressor,
    PrivateSearchCV,
    SparseClassifier,
    SparseRegressor,
)
from thresher.federated import FederatedDenseRegressor, FederatedSparseClassifier
from thresher.models.scaler import PrivateScaler

PLANTED = 0.918273645
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (600, 12))
X[17, 3] = PLANTED
y = np.append(2 * X[:-1, 3], PLANTED)
two = (X[:, 3] > 0).astype(int)
NAMES = [f"gene {j}" for j in range(12)]
BOUNDED = {"feature_bound": np.full(12, 1.25)}
NUMBERS = {**BOUNDED, "target_bound": 2.0}
blocks = [(X[:300], y[:300]), (X[300:], y[300:])]
class_blocks = [(X[:300], two[:300]), (X[300:], two[300:])]
KINDS = {
    "sparse numbers": (lambda: SparseRegressor(2, **NUMBERS), (X, y)),
    "sparse classes": (lambda: SparseClassifier(2, **BOUNDED), (X, two)),
    "auxiliary rows": (lambda: SparseRegressor(2, algorithm="dpsl-kt", **NUMBERS), (X, y)),
    "dense numbers": (lambda: DenseRegressor(**NUMBERS), (X, y)),
    "dense classes": (lambda: DenseClassifier(**BOUNDED), (X, two)),
    "local numbers": (lambda: LocalSparseRegressor(2, **NUMBERS), (X, y)),
    "local classes": (lambda: LocalSparseClassifier(2, **BOUNDED), (X, two)),
    "parties": (lambda: FederatedDenseRegressor(**NUMBERS), (blocks,)),
    "parties of classes": (lambda: FederatedSparseClassifier(2, **BOUNDED), (class_blocks,)),
    "search": (lambda: PrivateSearchCV(SparseRegressor(2, **NUMBERS), {"sparsity": [1, 2]}), (X, y)),
    "scaler": (lambda: PrivateScaler(epsilon=8.0, **BOUNDED), (X,)),
}


def shown(model):
    """The HTML of a notebook, and the words in it; scikit-learn's styles and scripts left out."""
    html = re.sub("<style.*?</style>|<script.*?</script>", "", model._repr_html_(), flags=re.DOTALL)
    return html, " ".join(unescape(re.sub("<[^>]+>", " ", html)).split())


@pytest.mark.parametrize("kind", KINDS)
def test_a_notebook_shows_parameters_and_no_row_before_and_after_a_fit(kind):
    """A noisy number begins with the planted digits by a chance of 1e-5, and few are shown."""
    make, data = KINDS[kind]
    model = make()
    for state in ("Not fitted", "Fitted"):
        html, words = shown(model)
        assert state in words
        assert re.search(r"\bepsilon [\d.]+ ", words)
        bundle = model._repr_mimebundle_()
        text = html + bundle["text/html"] + bundle["text/plain"] + repr(model)
        assert not re.search(r"0?\.91827", text)
        assert "href=" not in html  # no documentation of these classes has an address
        assert len(re.findall(r"1\.25", repr(model))) <= 6
        model.fit(*data)


def test_a_notebook_shows_no_password_of_a_ledger():
    ledger = Ledger("postgresql://custodian:hunter2@localhost/base")
    model = SparseRegressor(ledger=ledger, dataset="patients")
    assert "hunter2" not in shown(model)[0] + repr(model)


# -- names of columns -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_names_pass_through_a_pipeline(kind):
    frame = pd.DataFrame(X, columns=NAMES)
    steps = PrivateScaler(epsilon=8.0, feature_bound=1.0), SparseRegressor(2, feature_bound=1.0, target_bound=2.0)
    pipeline = make_pipeline(*steps).set_output(transform=kind)
    pipeline.fit(frame if kind == "pandas" else pl.DataFrame(frame), y)
    assert pipeline[:-1].get_feature_names_out().tolist() == NAMES
    assert list(pipeline[0].transform(frame).columns) == NAMES
    assert pipeline[-1].feature_names_in_.tolist() == NAMES
    assert "gene 3" in str(pipeline[-1].summary())


def test_a_scaler_without_names_numbers_its_columns():
    scaler = PrivateScaler(epsilon=8.0, feature_bound=1.0).fit(X)
    assert scaler.get_feature_names_out().tolist() == [f"x{j}" for j in range(12)]
    assert scaler.set_output(transform="pandas").transform(X).columns.tolist() == [f"x{j}" for j in range(12)]


def test_a_search_passes_names_to_its_best_model():
    search = PrivateSearchCV(SparseRegressor(2, **NUMBERS), {"sparsity": [1, 2]}, epsilon=4.0)
    search.fit(pd.DataFrame(X, columns=NAMES), y)
    assert search.best_estimator_.feature_names_in_.tolist() == NAMES
    assert "gene 3" in str(search.best_estimator_.summary())
