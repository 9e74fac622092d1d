"""With a declared number of rows, how many there are is told by nothing: no refusal, no warning, no scale."""

import json
import math
import warnings

import numpy as np
import pytest
from scipy import sparse

from thresher import DenseClassifier, DenseRegressor, PrivateSearchCV, SparseClassifier, SparseRegressor
from thresher.algorithms import DENSE, REGISTRY
from thresher.models.scaler import PrivateScaler
from thresher.vaults import Trials

ALL = {**REGISTRY, **DENSE}
NOT_PRIVATE = {"ight", "storm", "sgd", "lssgd"}
PRIVATE = [name for name in ALL if name not in NOT_PRIVATE]
NOT_FOR_PEOPLE = {"two-stage", "objective-perturbation"}
SEARCHED = {"two-stage", "output-perturbation", "dpsl-kt", "objective-perturbation"}
FORMS = {
    "dense": np.asarray,
    "single": lambda X: np.asarray(X, dtype=np.float32),
    "sparse": sparse.csr_array,
    "sparse single": lambda X: sparse.csr_array(X, dtype=np.float32),
}
COUNTS = [0, 1, 101, 450]
D, N = 6, 100


def some_rows(rows, loss):
    rng = np.random.default_rng(rows)
    X = rng.uniform(-1, 1, (rows, D))
    y = 2 * X[:, 0] + 0.3 * rng.normal(size=rows)
    if loss == "squared":
        return X, y
    return X, (y > 0).astype(int) if loss == "logistic" else np.digitize(y, [-1, 1])


def model_of(name, loss, **facts):
    facts = {
        "epsilon": math.inf if name in NOT_PRIVATE else 2.0, "delta": 1e-6, "feature_bound": 1.0, "algorithm": name,
        "adjacency": "add-remove", "n_public": N, **facts,
    }  # fmt: skip
    if loss == "squared":
        facts["target_bound"] = 6.0
    else:
        facts["classes"] = [0, 1] if loss == "logistic" else [0, 1, 2]
    if name in DENSE:
        return DenseRegressor(**facts) if loss == "squared" else DenseClassifier(**facts)
    return SparseRegressor(2, **facts) if loss == "squared" else SparseClassifier(2, **facts)


def told(certificate):
    """All that a certificate says; an algorithm that decides as it goes may stop sooner."""
    record = json.loads(certificate.to_json())
    return {name: value for name, value in record.items() if name not in ("releases", "model")}


def scales(certificate):
    return {
        (entry["question"], answer["clip"], answer["scale"])
        for entry in certificate.releases
        for answer in entry["answers"]
    }


def fitted(model, X, y, **more):
    """The model, and what was warned of."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        return model.fit(X, y, **more), {str(warning.message) for warning in seen}


@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
@pytest.mark.parametrize("form", ["dense", "single", "sparse"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("name", ALL)
def test_any_number_of_rows_is_fitted_and_the_certificate_is_the_same(name, loss, form, hardened):
    if hardened and name in NOT_PRIVATE:
        pytest.skip("it has no noise")
    said, warned = [], []
    for rows in COUNTS:
        X, y = some_rows(rows, loss)
        model, seen = fitted(model_of(name, loss, hardened=hardened), FORMS[form](X), y)
        assert np.all(np.isfinite(model.coef_))
        said.append(told(model.certificate_))
        warned.append(seen)
    assert all(each == said[0] for each in said)
    assert all(each == warned[0] for each in warned)
    assumed = " ".join(said[0]["assumptions"])
    assert ("twice as many rows" in assumed) == (name in SEARCHED)
    if name not in NOT_PRIVATE:
        assert said[0]["grade"] == ("proved" if hardened and name not in SEARCHED else "conditional")


@pytest.mark.parametrize("name", ["dp-ight", "dp-gd", "frank-wolfe", "output-perturbation", "dp-sgd"])
def test_scales_with_public_clips_do_not_tell_how_many_rows_there_are(name):
    models = [model_of(name, "squared", hardened=True).fit(*some_rows(rows, "squared")) for rows in COUNTS]
    assert len({frozenset(scales(model.certificate_)) for model in models}) == 1


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("name", [name for name in ALL if name not in NOT_FOR_PEOPLE])
def test_any_number_of_people_is_fitted(name, loss):
    said = []
    for people in (0, 1, 2, 60):
        X, y = some_rows(3 * people, loss)
        model, _ = fitted(model_of(name, loss), X, y, groups=np.arange(3 * people) % max(people, 1))
        said.append(told(model.certificate_))
    assert all(each == said[0] for each in said)


@pytest.mark.parametrize("algorithm", ["auto", "dp-ight", "output-perturbation"])
def test_any_number_of_rows_of_three_classes_is_fitted(algorithm):
    said = []
    for rows in COUNTS:
        model, _ = fitted(model_of(algorithm, "multinomial"), *some_rows(rows, "multinomial"))
        said.append(told(model.certificate_))
    assert all(each == said[0] for each in said)


def test_few_rows_for_many_declared_classes_are_not_warned_about():
    """scikit-learn would: that more than half of the labels differ is a fact about the rows."""
    model = model_of("dp-ight", "logistic", n_public=1000).set_params(classes=list(range(60)))
    X, labels = some_rows(60, "squared")[0], np.arange(60)
    assert fitted(model, X, labels)[1] == fitted(model, -X, labels % 2)[1]


@pytest.mark.parametrize("form", ["dense", "single", "sparse"])
def test_a_scaler_takes_any_number_of_rows(form):
    said, warned = [], []
    for rows in COUNTS:
        scaler = PrivateScaler(
            feature_bound=1.0, adjacency="add-remove", n_public=N, centre=form != "sparse", delta=1e-6
        )
        scaler, seen = fitted(scaler, FORMS[form](some_rows(rows, "squared")[0]), None)
        said.append(told(scaler.certificate_))
        warned.append(seen)
    assert all(each == said[0] for each in said)
    assert all(each == warned[0] for each in warned)


def test_where_the_number_is_read_from_the_data_one_row_is_still_refused():
    """It is public by the assumption that the certificate names, so its refusal tells nothing."""
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        model_of("dp-ight", "squared", n_public=None).fit(*some_rows(1, "squared"))
    with pytest.raises(ValueError, match="a single id"):
        model_of("dp-ight", "squared", n_public=None).fit(*some_rows(3, "squared"), groups=[7, 7, 7])


@pytest.mark.parametrize("name", PRIVATE)
def test_a_declared_number_that_no_table_has_is_refused_in_a_sentence(name):
    for number in (10**400, 2**54, 0, 1.5):
        with pytest.raises(ValueError, match="must be a whole number of at least 1, and at most 2\\^53"):
            model_of(name, "squared", n_public=number).plan(number, D)
    if name == "dp-srm":
        with pytest.raises(ValueError, match="parts of the rows; declare at least 2"):
            model_of(name, "squared", n_public=1).plan(1, D)


# -- trials ---------------------------------------------------------------------------------------------------------


def searched(name, loss, form, rows, groups=None, **facts):
    X, y = some_rows(rows, loss)
    scoring = facts.pop("scoring", None)
    search = PrivateSearchCV(
        model_of(name, loss, **facts), {"feature_bound": [1.0, 0.5]}, epsilon=4.0, delta=1e-6, trials=2.0,
        scoring=scoring,
    )  # fmt: skip
    return search.fit(FORMS[form](X), y, groups=groups)


@pytest.fixture
def no_trial_fails(monkeypatch):
    """What goes wrong in a trial is told here."""
    monkeypatch.setattr(Trials, "_trial", Trials._run_trial)


@pytest.mark.usefixtures("no_trial_fails")
@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", ["squared", "logistic", "multinomial"])
@pytest.mark.parametrize("name", PRIVATE)
def test_every_algorithm_comes_to_a_result_in_a_trial_on_no_rows_or_one(name, loss, form, hardened):
    for rows in (0, 1):
        assert searched(name, loss, form, rows, hardened=hardened).certificate_.verify()


@pytest.mark.usefixtures("no_trial_fails")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("name", [name for name in PRIVATE if name not in NOT_FOR_PEOPLE])
def test_every_algorithm_comes_to_a_result_in_a_trial_on_nobody_or_one_person(name, loss, form):
    for rows in (0, 3):
        assert searched(name, loss, form, rows, groups=["same"] * rows).certificate_.unit == "person"


@pytest.mark.usefixtures("no_trial_fails")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("loss", "scoring"),
    [
        ("squared", "neg_mean_squared_error"), ("squared", "neg_mean_absolute_error"), ("logistic", "accuracy"),
        ("logistic", "neg_log_loss"), ("multinomial", "accuracy"), ("multinomial", "neg_log_loss"),
    ],
)  # fmt: skip
def test_every_score_is_given_on_no_rows_or_one(loss, scoring, form):
    for rows in (0, 1):
        assert math.isfinite(searched("dp-ight", loss, form, rows, scoring=scoring).best_score_)
