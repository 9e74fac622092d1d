"""The scikit-learn contract, input kinds, and errors before any budget is spent."""

from __future__ import annotations

import json
import math
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

import thresher
from thresher import Budget, PrivacyWarning, SparseClassifier, SparseRegressor, load_model
from thresher.algorithms import DPIGHT, OutputPerturbation
from thresher.vaults import CentralVault

pytestmark = pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")


def regressor(**changes):
    params = {"sparsity": 2, "epsilon": 4.0, "feature_bound": 1.0, "target_bound": 3.0, "random_state": 0}
    return SparseRegressor(**{**params, **changes})


def classifier(**changes):
    params = {"sparsity": 2, "epsilon": 4.0, "feature_bound": 1.0, "random_state": 0}
    return SparseClassifier(**{**params, **changes})


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 6))
    X[np.abs(X) < 0.5] = 0
    y = 2 * X[:, 1] - X[:, 4] + rng.normal(0, 0.1, 2000)
    return X, y


# -- the scikit-learn contract ----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [regressor, classifier])
def test_check_estimator_passes_without_exceptions(make):
    # scikit-learn's own data are unscaled: a wide public bound and a large epsilon let its accuracy checks see a model
    wide = {"sparsity": 1, "epsilon": 1e4, "feature_bound": 10.0}
    if make is regressor:
        wide["target_bound"] = 100.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(make(**wide), on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    assert sum(r["status"] == "passed" for r in results) > 40


@pytest.mark.parametrize("make", [regressor, classifier])
def test_clone_keeps_every_parameter_and_no_fitted_state(make, table):
    model = make(algorithm=DPIGHT(iterations=3)).fit(table[0], _labels(make, table[1]))
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "certificate_")


def test_works_in_a_pipeline_and_a_grid_search(table):
    X, y = table
    pipeline = make_pipeline(FunctionTransformer(lambda X: X / 2), regressor())
    search = GridSearchCV(pipeline, {"sparseregressor__sparsity": [1, 2]}, cv=2).fit(X, y)
    assert search.best_params_ == {"sparseregressor__sparsity": 2}
    assert search.score(X, y) > 0.9


def test_fits_in_parallel_processes_draw_different_noise(table):
    X, y = table
    models = Parallel(n_jobs=2)(delayed(regressor(random_state=None).fit)(X, y) for _ in range(4))
    assert len({tuple(model.coef_) for model in models}) == 4


@pytest.mark.parametrize("make", [regressor, classifier])
def test_a_fitted_model_pickles_and_holds_no_generator_and_no_rows(make, table):
    X, y = table
    model = make().fit(X, _labels(make, y))
    pickled = pickle.dumps(model)
    assert np.array_equal(pickle.loads(pickled).predict(X), model.predict(X))
    for word in (b"AESCounter", b"NoiseSource", b"Vault", b"Engine"):
        assert word not in pickled
    assert len(pickled) < X[:100].nbytes + 10_000


# -- what may come in -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [regressor, classifier])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix])
def test_sparse_input_gives_the_dense_model(make, kind, dtype, table):
    X, y = table[0].astype(dtype), _labels(make, table[1])
    dense, other = make().fit(X, y), make().fit(kind(X), y)
    assert np.allclose(dense.coef_, other.coef_, rtol=1e-6, atol=1e-9)
    margins = [getattr(each, "decision_function", each.predict) for each in (dense, other)]
    assert np.allclose(margins[0](X[:50]), margins[1](kind(X[:50])))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_go_in_and_feature_names_come_out(frame, table):
    X, y = table
    names = [f"gene{j}" for j in range(X.shape[1])]
    model = regressor().fit(frame(X, columns=names) if frame is pd.DataFrame else frame(X, schema=names), y)
    assert list(model.feature_names_in_) == names
    assert [model.feature_names_in_[j] for j in model.support_] == ["gene1", "gene4"]


def test_the_intercept_is_found_and_the_target_range_may_be_off_centre(table):
    X, y = table
    model = regressor(target_bound=(2.0, 8.0)).fit(X, y + 5)
    assert abs(model.intercept_ - 5) < 0.1
    assert abs(model.coef_[1] - 2) < 0.1


def test_per_column_feature_bounds_clip_each_column_to_its_own(table):
    X, y = table
    model = regressor(feature_bound=[1.0, 1, 1, 1, 1, 1]).fit(X, y)
    assert np.array_equal(model.coef_, regressor(feature_bound=1.0).fit(X, y).coef_)


# -- what may not come in: an error that says what to do, before a vault is opened ----------------------------------

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epsilon": 0}, ("epsilon=0", "above 0")),
        ({"epsilon": -1.0}, ("epsilon=-1.0", "above 0")),
        ({"epsilon": "one"}, ("epsilon='one'", "number")),
        ({"delta": 0.0}, ("delta=0.0", "None for 1/n^2")),
        ({"delta": 1.0}, ("delta=1.0", "None for 1/n^2")),
        ({"sparsity": 0}, ("sparsity=0", "at least 1")),
        ({"sparsity": 7}, ("sparsity=7", "at most 6")),
        ({"sparsity": 2.5}, ("sparsity=2.5", "whole number")),
        ({"feature_bound": None}, ("feature_bound=None", "give at least one")),
        ({"feature_bound": -1.0}, ("feature_bound=-1.0", "positive")),
        ({"feature_bound": [1.0, 2.0]}, ("2 values", "6 columns")),
        ({"row_bound": NAN}, ("row_bound=nan", "positive")),
        ({"target_bound": None}, ("target_bound=None", "give the public range")),
        ({"target_bound": (1, 2, 3)}, ("target_bound=(1, 2, 3)", "pair (low, high)")),
        ({"target_bound": "wide"}, ("target_bound='wide'", "pair (low, high)")),
        ({"feature_bound": "wide"}, ("feature_bound='wide'", "positive")),
        ({"feature_bound": ["a"] * 6}, ("feature_bound=['a'", "one per column")),
        ({"target_bound": (3, 1)}, ("target_bound=(3.0, 1.0)", "low < high")),
        ({"algorithm": "magic"}, ("algorithm='magic'", "'dp-ight'")),
        ({"algorithm": DPIGHT}, ("algorithm=", "instance")),
        ({"algorithm": "ight"}, ("algorithm='ight'", "float('inf')")),
        ({"adjacency": "both"}, ("adjacency='both'", "'replace-one'")),
        ({"n_public": 2000}, ("n_public=2000", "add-remove")),
    ],
)
def test_bad_parameters_are_named_with_value_and_remedy_before_any_row_is_held(change, words, table, monkeypatch):
    monkeypatch.setattr(CentralVault, "__init__", _never)
    with pytest.raises(ValueError) as error:  # noqa: PT011  (the words are the match)
        regressor(**change).fit(*table)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("spoil", "error", "words"),
    [
        (lambda X, y: (np.where(X > 0.9, NAN, X), y), ValueError, ("X", "NaN")),
        (lambda X, y: (np.where(X > 0.9, INF, X), y), ValueError, ("X", "infinity")),
        (lambda X, y: (X, np.where(y > 1, NAN, y)), ValueError, ("y", "NaN")),
        (lambda X, y: (X, [None] * len(y)), ValueError, ("y", "NaN")),
        (lambda X, y: (X, ["Paris"] * len(y)), ValueError, ("y: ", "SparseClassifier")),
        (lambda X, y: (X[:10], y), ValueError, ("inconsistent", "10")),
        (lambda X, y: (X.ravel(), y), ValueError, ("2D",)),
        (lambda X, y: (X[:1], y[:1]), ValueError, ("1 sample",)),
        (lambda X, y: (pd.DataFrame(X).assign(city="Paris"), y), ValueError, ("'city'", "schema")),
        (lambda X, y: (pl.DataFrame({"a": X[:, 0], "city": ["Paris"] * len(X)}), y), ValueError, ("'city'", "schema")),
        (lambda X, y: (np.array([["a", "b"]] * 5), y[:5]), ValueError, ("column 0", "schema")),
    ],
)
def test_bad_data_is_refused_before_any_row_is_held(spoil, error, words, table, monkeypatch):
    monkeypatch.setattr(CentralVault, "__init__", _never)
    with pytest.raises(error) as caught:
        regressor().fit(*spoil(*table))
    for word in words:
        assert word in str(caught.value)
    assert "Paris" not in str(caught.value)


@pytest.mark.parametrize(
    ("labels", "classes", "words"),
    [
        (lambda y: np.ones(len(y)), None, ("1 class(es) in y", "classes=[0, 1]")),
        (lambda y: np.ones(len(y)), [1], ("1 class(es) in classes=[1]", "classes=[0, 1]")),
        (lambda y: np.ones(len(y)), [1, 1, 1], ("1 class(es) in classes=[1, 1, 1]", "at least two")),
        (lambda y: np.digitize(y, [-1, 1]), [0, 1], ("classes=[0, 1]", "add it")),
        (lambda y: y, None, ("Unknown label type",)),
        (lambda y: np.where(y > 0, "a", "b"), ["a", "c"], ("classes=['a', 'c']", "add it")),
    ],
)
def test_unfit_class_labels_are_refused(labels, classes, words, table, monkeypatch):
    monkeypatch.setattr(CentralVault, "__init__", _never)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        classifier(classes=classes).fit(table[0], labels(table[1]))
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("make", [regressor, classifier])
def test_sample_weight_is_rejected_clearly(make, table):
    X, y = table
    with pytest.raises(TypeError, match=r"sample_weight is not supported.*sensitivity"):
        make().fit(X, _labels(make, y), sample_weight=np.ones(len(X)))


# -- what the certificate says ----------------------------------------------------------------------------------


def test_a_plain_regression_is_proved(table):
    certificate = regressor(random_state=None).fit(*table).certificate_
    assert (certificate.grade, certificate.epsilon, certificate.delta) == ("proved", 4.0, 2000**-2.0)
    assert certificate.verify()


@pytest.mark.parametrize(
    ("model", "word"),
    [
        (regressor(random_state=None, hardened=False), "noise is taken for real numbers"),
        (regressor(random_state=1), "random_state"),
        (regressor(random_state=None, adjacency="add-remove"), "n_public"),
        (classifier(random_state=None), "class labels"),
    ],
)
def test_what_had_to_be_assumed_makes_the_grade_conditional(model, word, table):
    X, y = table
    certificate = model.fit(X, y > 0 if isinstance(model, SparseClassifier) else y).certificate_
    assert certificate.grade == "conditional"
    assert any(word in assumption for assumption in certificate.assumptions)


def test_noise_is_exact_unless_somebody_says_otherwise():
    doors = [getattr(thresher, name) for name in thresher.__all__]
    with_choice = [door for door in doors if hasattr(door, "hardened") and hasattr(door, "fit")]
    assert {SparseRegressor, thresher.DenseClassifier, thresher.PrivateScaler} <= set(with_choice)
    told = {door.__name__: door.hardened for door in with_choice if not isinstance(door.hardened, property)}
    assert {name for name, exact in told.items() if not exact} <= {"LocalSparseRegressor", "LocalSparseClassifier"}


def test_declared_public_facts_make_it_proved_again(table):
    X, y = table
    counted = regressor(random_state=None, adjacency="add-remove", n_public=1990).fit(X, y).certificate_
    labelled = classifier(random_state=None, classes=[False, True]).fit(X, y > 0).certificate_
    assert counted.grade == labelled.grade == "proved"
    assert counted.n_samples == 1990


def test_infinite_epsilon_is_loud_and_certifies_nothing(table):
    with pytest.warns(PrivacyWarning, match="privacy is OFF"):
        model = regressor(epsilon=INF).fit(*table)
    assert model.certificate_.epsilon is None
    assert model.certificate_.grade == "none"


def test_a_delta_that_allows_publishing_rows_is_warned_about(table):
    with pytest.warns(PrivacyWarning, match="E-4"):
        regressor(delta=0.01).fit(*table)


def test_the_plan_needs_no_data_and_is_the_one_that_runs(table):
    model = regressor()
    planned = model.plan(n_samples=2000, n_features=6)
    assert model.fit(*table).plan_ == planned


# -- what must not switch the noise off or spoil the guarantee --------------------------------------------------


@pytest.mark.parametrize(
    "algorithm",
    [
        DPIGHT(clip=np.float16(0.1), iterations=3),
        OutputPerturbation(ridge=np.float16(6e4), clip=np.float16(0.1)),
    ],
)
def test_half_precision_hyperparameters_keep_the_full_noise(algorithm):
    X = np.random.default_rng(0).uniform(-1, 1, (70_000, 3))  # more rows than the largest half-precision number
    params = {"sparsity": 1, "random_state": None, "target_bound": 1.0, "algorithm": algorithm}
    first, second = (regressor(**params).fit(X, X[:, 0]) for _ in range(2))
    (entry,) = first.certificate_.releases
    assert all(answer["scale"] > 0 for answer in entry["answers"])
    assert first.intercept_ != second.intercept_
    assert first.certificate_.verify()


def test_numpys_small_integers_do_not_wrap_around(table):
    X, y = table[0][:100], table[1][:100]
    small = regressor(sparsity=np.int8(2), adjacency="add-remove", n_public=np.int8(100)).fit(X, y)
    plain = regressor(sparsity=2, adjacency="add-remove", n_public=100).fit(X, y)
    assert np.array_equal(small.coef_, plain.coef_)


class SpendsMore(DPIGHT):
    def plan(self, problem, budget):
        return super().plan(problem, Budget(100 * budget.epsilon, budget.delta))


def test_an_algorithm_that_plans_for_another_budget_is_refused(table, monkeypatch):
    monkeypatch.setattr(CentralVault, "__init__", _never)
    with pytest.raises(ValueError, match="another problem or budget"):
        regressor(algorithm=SpendsMore()).fit(*table)


class AsksNothing(DPIGHT):
    def plan(self, problem, budget):
        return replace(super().plan(problem, budget), releases=())

    def run(self, vault):
        return vault.problem.origin()


def test_a_model_whose_certificate_would_not_verify_is_dropped(table):
    model = regressor(algorithm=AsksNothing())
    with pytest.raises(RuntimeError, match="would not verify"):
        model.fit(*table)
    assert not hasattr(model, "coef_")


class Interrupted(DPIGHT):
    def run(self, vault):
        raise KeyboardInterrupt


@pytest.mark.parametrize("make", [regressor, classifier])
def test_an_interrupted_refit_leaves_no_model(make, table):
    X, y = table
    model = make().fit(X, _labels(make, y)).set_params(algorithm=Interrupted())
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, _labels(make, y))
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize(
    "X",
    [[["SECRET", "1"], ["2", "3"]], np.full(3, 31337.42), np.float64(31337.42), np.full((3, 2), 31337.42 + 1j)],
)
def test_no_message_quotes_a_cell(X):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        regressor().fit(X, [1.0, 2.0, 3.0][: np.shape(X)[0] if np.ndim(X) else 1])
    assert "SECRET" not in str(caught.value)
    assert "31337" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


# -- saving -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [regressor, classifier])
def test_a_saved_model_predicts_the_same_and_keeps_its_certificate(make, table, tmp_path):
    X, y = table
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = make(feature_bound=[1.0] * 6, algorithm=DPIGHT(iterations=4)).fit(frame, _labels(make, y))
    model.save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert np.array_equal(loaded.predict(frame), model.predict(frame))
    assert loaded.certificate_.to_json() == model.certificate_.to_json()
    assert loaded.certificate_.verify()
    assert list(loaded.feature_names_in_) == list("abcdef")


def test_a_file_that_is_no_model_is_refused(tmp_path):
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(ValueError, match=r"x\.json is not a model file"):
        load_model(tmp_path / "x.json")


@pytest.mark.parametrize("damage", ["half", "no support", "an unknown class", "an unknown parameter"])
def test_a_damaged_model_file_is_refused_in_one_line(tmp_path, damage):
    X, y = np.eye(20), np.arange(20.0)
    path = tmp_path / "m.json"
    SparseRegressor(2, feature_bound=1.0, target_bound=20.0, epsilon=5.0).fit(X, y).save(path)
    model = json.loads(path.read_text())
    if damage == "half":
        path.write_text(path.read_text()[:200])
    else:
        changes = {"no support": {"support": None}, "an unknown class": {"class": "Forest"},
                   "an unknown parameter": {"params": {**model["params"], "depth": 3}}}  # fmt: skip
        path.write_text(json.dumps({**model, **changes[damage]}))
    with pytest.raises(
        ValueError, match=r"m\.json (is not a model file|is a damaged model file|holds a model of the class 'Forest')"
    ):
        load_model(path)


def _labels(make, y):
    return np.where(y > 0, "high", "low") if make is classifier else y


def _never(*_args, **_kwargs):
    raise AssertionError("a vault was opened")


# -- by-products and infinities -----------------------------------------------------------------------------------


def test_a_refit_drops_the_by_products_of_the_fit_before(table):
    """They are not in the new certificate."""
    X, y = table
    model = regressor(algorithm="dpsl-kt").fit(X, y)
    assert model.auxiliary_[1].shape == (len(X),)
    assert not hasattr(model.set_params(algorithm="pursuit").fit(X, y), "auxiliary_")


@pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")
@pytest.mark.parametrize("make", [regressor, classifier])
def test_a_model_without_privacy_can_be_saved_and_loaded(make, table, tmp_path):
    X, y = table
    model = make(epsilon=math.inf).fit(X, _labels(make, y))
    model.save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.epsilon == math.inf
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
