"""What rows hold is told by nothing but the answers: no warning, no refusal, no note, however wild they are."""

import json
import warnings

import numpy as np
import pytest
from scipy import sparse

from thresher import DenseClassifier, DenseRegressor, PrivateSearchCV, SparseClassifier, SparseRegressor
from thresher.algorithms import DENSE, REGISTRY
from thresher.models.scaler import PrivateScaler

N, D = 60, 5
PRIVATE = [name for name in {**REGISTRY, **DENSE} if name not in {"ight", "storm", "sgd", "lssgd"}]
FORMS = {
    "dense": np.asarray,
    "single": lambda X: np.clip(X, -3e38, 3e38).astype(np.float32),
    "sparse": sparse.csr_array,
}
VALUES = [0.0, -0.0, 1e-200, 5e-324, 1e300, -1e300, 1.7e308, -1.7e308, 1e-160, 1.0]


def tables():
    """Tame rows, then rows that overflow when they are added up, are all alike, all zero, or of anything."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, D))
    signs = np.where(np.arange(N) % 2, 1.0, -1.0)[:, None]
    far = 1.7e308 * np.sort(signs, axis=0) * np.ones((N, D))
    return [X, far, np.tile(X[0], (N, 1)), np.zeros((N, D)), rng.choice(VALUES, (N, D))]


def targets(X, loss):
    y = np.clip(X[:, 0], -1.7e308, 1.7e308)
    return y if loss == "squared" else (y > 0).astype(int)


def told_of(make, X, y=None, **more):
    """What the certificate says beside the answers, and what was warned of."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        certificate = make().fit(X, y, **more).certificate_
    record = json.loads(certificate.to_json())
    known = {name: value for name, value in record.items() if name not in ("releases", "model", "notes")}
    said = {str(each.message) for each in seen if "fitted before" not in str(each.message)}
    return known, said


def assert_told_alike(make, form, loss=None, **more):
    told = [told_of(make, FORMS[form](X), None if loss is None else targets(X, loss), **more) for X in tables()]
    assert all(each == told[0] for each in told)


@pytest.mark.parametrize("people", [False, True], ids=["rows", "people"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("name", PRIVATE)
def test_no_fit_tells_how_wild_its_rows_are(name, loss, form, people):
    if people and name in ("two-stage", "objective-perturbation"):
        pytest.skip("it is for rows only")
    facts = {"epsilon": 2.0, "delta": 1e-6, "feature_bound": 1.0, "row_bound": 1.5, "algorithm": name}
    facts |= {"target_bound": 6.0} if loss == "squared" else {"classes": [0, 1]}
    doors = (DenseRegressor, DenseClassifier) if name in DENSE else (SparseRegressor, SparseClassifier)
    door = doors[loss == "logistic"]
    facts |= {} if name in DENSE else {"sparsity": 2}
    assert_told_alike(lambda: door(**facts), form, loss, groups=np.arange(N) // 2 if people else None)


@pytest.mark.parametrize("form", FORMS)
def test_no_scaler_and_no_search_does(form):
    assert_told_alike(lambda: PrivateScaler(2.0, 1e-6, feature_bound=1.0, centre=form != "sparse"), form)
    model = SparseRegressor(2, feature_bound=1.0, target_bound=6.0)
    search = {"param_distributions": {"feature_bound": [1.0]}, "epsilon": 4.0, "delta": 1e-6, "trials": 2.0}
    assert_told_alike(lambda: PrivateSearchCV(model, **search), form, "squared")
