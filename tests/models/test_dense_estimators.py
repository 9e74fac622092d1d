"""Front doors of dense models: the scikit-learn contract, several classes, penalties, files, refusals."""

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

from thresher import DenseClassifier, DenseRegressor, SparseClassifier, load_model
from thresher.algorithms import DENSE, DPGD, DPIGHT, DPSGD, DPSRM
from thresher.models.scaler import PrivateScaler
from thresher.privacy.certificate import combine

pytestmark = pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (4000, 5))
    margins = X @ [2.0, -2.0, 1.0, 0.0, 0.0]
    return X, margins + 0.2 * rng.normal(size=4000), (rng.random(4000) < expit(3 * margins)).astype(int)


def classifier(**changes):
    facts = {"epsilon": 2.0, "delta": 1e-6, "feature_bound": 1.0, "random_state": 0, "algorithm": "dp-srm"}
    return DenseClassifier(**{**facts, **changes})


def regressor(**changes):
    facts = {"epsilon": 2.0, "delta": 1e-6, "feature_bound": 1.0, "random_state": 0, "algorithm": "dp-srm"}
    return DenseRegressor(**{**facts, "target_bound": 5.0, **changes})


@pytest.mark.parametrize("make", [regressor, classifier])
@pytest.mark.parametrize("algorithm", ["dp-srm", "dp-gd", "dp-agd"])
def test_check_estimator_passes_without_exceptions(make, algorithm):
    # scikit-learn's own data are unscaled: a wide public bound and a large epsilon let its accuracy checks see a model
    wide = {"epsilon": 1e5, "delta": None, "feature_bound": 3.0, "algorithm": algorithm}
    wide |= {"target_bound": 100.0} if make is regressor else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(make(**wide), on_fail=None)
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}
    assert sum(r["status"] == "passed" for r in results) > 40


def test_a_regression_and_a_classification_are_learnt(table):
    X, numbers, labels = table
    assert regressor().fit(X, numbers).score(X, numbers) > 0.9
    assert classifier().fit(X, labels).score(X, labels) > 0.8


@pytest.mark.parametrize("name", [name for name in DENSE if name not in ("rrpsgd", "storm", "sgd", "lssgd")])
def test_more_than_two_classes_share_one_budget(table, name):
    """Three bands of a margin: one softmax, one plan; well above the largest class's share."""
    X = table[0]
    bands = np.digitize(X @ [1.0, -1.0, 0.5, 0.0, 0.0], [-0.4, 0.4])
    model = classifier(algorithm=name, epsilon=8.0).fit(X, bands)
    assert model.coef_.shape == (3, 5)
    assert model.score(X, bands) > np.bincount(bands).max() / len(bands) + 0.1
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.certificate_.verify()


def test_names_in_names_out_and_single_precision(table):
    X, _, labels = table
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = classifier().fit(frame, labels)
    np.testing.assert_array_equal(model.feature_names_in_, list("abcde"))
    np.testing.assert_array_equal(model.coef_, classifier().fit(X, labels).coef_)
    single = classifier().fit(X.astype(np.float32), labels)
    np.testing.assert_allclose(single.coef_, model.coef_, rtol=1e-3, atol=1e-3)


def test_sparse_rows_give_the_same_model(table):
    X, numbers, _ = table
    dense, scattered = (regressor().fit(rows, numbers) for rows in (X, sparse.csr_array(X)))
    np.testing.assert_allclose(dense.coef_, scattered.coef_, rtol=1e-8)


def test_a_model_survives_its_file(tmp_path, table):
    X, numbers, labels = table
    for model in (classifier(loss="nonconvex-logistic", penalty=0.01).fit(X, labels), regressor().fit(X, numbers)):
        model.save(tmp_path / "model.json")
        back = load_model(tmp_path / "model.json")
        np.testing.assert_array_equal(back.predict(X), model.predict(X))
        assert back.certificate_.verify()
        assert back.get_params()["penalty"] == model.penalty


def test_penalties_shrink_and_are_said(table):
    X, _, labels = table
    plain, ridge = (classifier(penalty=strength).fit(X, labels) for strength in (0.0, 1.0))
    assert np.linalg.norm(ridge.coef_) < 0.5 * np.linalg.norm(plain.coef_)
    assert ridge.plan_.releases == plain.plan_.releases
    bounded = classifier(penalty=1.0, loss="nonconvex-logistic").fit(X, labels)
    assert bounded.plan_.problem.penalty.kind == "nonconvex"
    assert bounded.certificate_.settings["penalty"] == {"kind": "nonconvex", "strength": 1.0}
    assert "penalty" not in plain.certificate_.settings


def test_clone_pickle_and_a_grid_search(table):
    X, _, labels = table
    model = classifier(algorithm=DPSGD(passes=3))
    assert clone(model).get_params() == model.get_params()
    fitted = pickle.loads(pickle.dumps(model.fit(X, labels)))
    np.testing.assert_array_equal(fitted.predict(X), model.predict(X))
    search = GridSearchCV(classifier(), {"algorithm": ["dp-sgd", "dp-gd"]}, cv=2).fit(X, labels)
    assert search.best_score_ > 0.8


def test_a_pipeline_with_a_private_scaler_is_priced_as_a_whole(table):
    """Batches and choices have no currency in common: the total is proved by halves of delta, or by Renyi curves."""
    X, _, labels = table
    scaler = PrivateScaler(feature_bound=1.0, epsilon=0.5, delta=1e-6, random_state=0).fit(X)
    model = classifier(feature_bound=5.0).fit(scaler.transform(X), labels)
    whole = combine(scaler, model)
    assert whole.verify()
    assert model.certificate_.epsilon < whole.epsilon <= 2.5 * 1.05


def test_the_certificate_says_how_rows_were_drawn(table):
    X, _, labels = table
    certificate = classifier(algorithm=DPSRM(sampling="fixed", output="random")).fit(X, labels).certificate_
    (entry,) = certificate.releases
    assert entry["release"]["sampling"] == "fixed"
    assert entry["release"]["population"] == 4000
    assert "uniformly at random" in certificate.notes[0]
    assert "by RDP" in certificate.composition
    assert "by privacy loss distributions" in classifier().fit(X, labels).certificate_.composition


def test_add_remove_takes_a_public_row_count(table):
    X, _, labels = table
    model = classifier(adjacency="add-remove", n_public=3800, hardened=True).fit(X, labels)
    assert model.certificate_.releases[0]["release"]["population"] == 3800
    assert model.certificate_.grade == "conditional"  # the classes were read from the data, nothing else
    assert len(model.certificate_.assumptions) == 2  # and a seed was set


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"algorithm": "pursuit"}, "must be one of 'auto', .*; SparseRegressor and SparseClassifier have that one"),
        ({"algorithm": "adagrad"}, "algorithm='adagrad' must be one of 'auto', 'newton', 'dp-srm'"),
        ({"algorithm": DPIGHT()}, "such as DPSGD"),
        ({"algorithm": DPSGD}, "such as DPSGD"),
        ({"algorithm": "sgd"}, "not private, so it cannot keep epsilon=2"),
        ({"loss": "hinge"}, "loss='hinge' must be one of 'logistic', 'nonconvex-logistic'"),
        ({"penalty": -1.0}, "penalty=-1.0 must be a finite number"),
        ({"feature_bound": None}, "give at least one of them"),
        ({"algorithm": DPSGD(sampling="fixed"), "adjacency": "add-remove"}, "sampling='fixed' is private for"),
    ],
)
def test_bad_input_is_refused_before_anything_is_spent(table, changes, message):
    X, _, labels = table
    model = classifier(**changes)
    with pytest.raises(ValueError, match=message):
        model.fit(X, labels)
    assert not hasattr(model, "certificate_")


def test_sparse_front_doors_point_to_the_dense_ones(table):
    X, _, labels = table
    with pytest.raises(ValueError, match="DenseRegressor and DenseClassifier have that one"):
        SparseClassifier(5, feature_bound=1.0, algorithm="dp-sgd").fit(X, labels)


def test_epsilon_infinity_switches_privacy_off_loudly(table):
    X, _, labels = table
    with pytest.warns(UserWarning, match="privacy is OFF"):
        model = classifier(epsilon=math.inf, algorithm=DPGD(passes=50)).fit(X, labels)
    assert model.certificate_.epsilon is None
    assert model.score(X, labels) > 0.8


def test_batches_need_rows_in_memory_and_full_passes_do_not(table):
    da = pytest.importorskip("dask.array")
    X, _, labels = table
    rows = da.from_array(X, chunks=(1000, 5))
    with pytest.raises(TypeError, match="random batches need the rows in memory; use dp-gd or dp-agd"):
        classifier().fit(rows, da.from_array(labels, chunks=1000))
    model = classifier(algorithm=DPGD(passes=5)).fit(rows, da.from_array(labels, chunks=1000))
    here = classifier(algorithm=DPGD(passes=5)).fit(X, labels)
    np.testing.assert_allclose(model.coef_, here.coef_, rtol=1e-8)
