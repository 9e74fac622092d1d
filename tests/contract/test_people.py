"""What every algorithm must pass where the unit of privacy is a person: groups give each row's."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline

from thresher import (
    Certificate,
    DenseClassifier,
    DenseRegressor,
    LocalSparseClassifier,
    LocalSparseRegressor,
    PrivacyWarning,
    SparseClassifier,
    SparseRegressor,
    load_model,
)
from thresher.algorithms import DENSE, DPIGHT, DPSLKT, REGISTRY, FrankWolfe
from thresher.cli.display import out, show_certificate
from thresher.federated import FederatedSparseRegressor
from thresher.models.scaler import PrivateScaler
from thresher.privacy.certificate import combine
from thresher.privacy.facts import MOST_ROWS_EACH

pytestmark = pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")

ALL = {**REGISTRY, **DENSE}
NOT_PRIVATE = {"ight", "storm", "sgd", "lssgd"}
REFUSED = {"two-stage", "objective-perturbation"}  # whose proof is about one row
TAKEN = [name for name in ALL if name not in REFUSED]
PUBLIC_CLIPS = ["dp-ight", "output-perturbation", "frank-wolfe", "noisy-frank-wolfe", "dp-gd", "dp-sgd", "dp-srm"]
LOSSES = ["squared", "logistic"]
PEOPLE, ROWS, D, S = 207, 1423, 20, 3


def some_rows(loss, rows=ROWS, people=PEOPLE, seed=0):
    """Everybody has a row, and most have more; the first has more than count."""
    rng = np.random.default_rng(seed)
    more = rng.integers(1, people, max(rows - people - 100, 0))
    groups = np.concatenate([np.arange(people), np.zeros(min(100, rows - people), dtype=int), more])
    X = rng.uniform(-1, 1, (rows, D)) * (rng.random((rows, D)) < 0.5)
    y = X[:, :3] @ [2.0, -2.0, 2.0] + 0.3 * rng.normal(size=rows)
    return X, y if loss == "squared" else (y > 0).astype(int), groups


def model_of(name, loss, **facts):
    epsilon = math.inf if name in NOT_PRIVATE else 2.0
    facts = {"epsilon": epsilon, "delta": 1e-6, "feature_bound": 1.0, "algorithm": name, **facts}
    if name in DENSE:
        return DenseRegressor(target_bound=6.0, **facts) if loss == "squared" else DenseClassifier(**facts)
    return SparseRegressor(S, target_bound=6.0, **facts) if loss == "squared" else SparseClassifier(S, **facts)


@pytest.fixture(params=TAKEN)
def name(request):
    return request.param


@pytest.fixture(params=LOSSES)
def loss(request):
    return request.param


# -- models -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.array, sparse.csr_array], ids=["dense", "sparse"])
def test_people_with_one_row_each_are_rows(name, loss, form):
    """The same numbers, bit by bit."""
    X, y, _ = some_rows(loss, 300, 300)
    plain = model_of(name, loss, random_state=3).fit(form(X), y)
    people = model_of(name, loss, random_state=3).fit(form(X), y, groups=[f"id {7 * at % 300}" for at in range(300)])
    np.testing.assert_array_equal(people.coef_, plain.coef_)
    np.testing.assert_array_equal(people.intercept_, plain.intercept_)
    assert people.certificate_.n_samples == 300


def test_dense_and_sparse_rows_give_the_same_model(name, loss):
    X, y, groups = some_rows(loss)
    model = FrankWolfe(constant_work=True) if name == "frank-wolfe" else name  # sparse rows have another way to draw
    fits = [
        model_of(name, loss, algorithm=model, random_state=3, hardened=False).fit(form(X), y, groups=groups)
        for form in (np.array, sparse.csr_array)
    ]
    np.testing.assert_allclose(fits[1].coef_, fits[0].coef_, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(fits[1].intercept_, fits[0].intercept_, rtol=1e-6, atol=1e-6)
    # of so few people newton may keep the intercept alone, and peeling gives up what may be noise
    assert name in ("newton", "peeling") or fits[0].support_.size > 0


def test_a_person_with_many_wild_rows_does_no_harm(name, loss):
    X, y, groups = some_rows(loss)
    X[groups == 0] = np.array([1e300, -1e300] * (D // 2))
    model = model_of(name, loss, random_state=0).fit(X, y, groups=groups)
    assert np.all(np.isfinite(model.coef_))


def test_rows_of_one_person_count_as_one():
    """A person's rows, copied fifty times, change nothing: a copy takes what the others lose."""
    X, y, _ = some_rows("squared", 200, 200)
    copied = np.append(np.arange(200), np.repeat(7, 50))
    facts = {"epsilon": math.inf, "random_state": 0}
    once = model_of("ight", "squared", **facts).fit(X, y, groups=np.arange(200))
    often = model_of("ight", "squared", **facts).fit(X[copied], y[copied], groups=copied)
    rows = model_of("ight", "squared", **facts).fit(X[copied], y[copied])
    np.testing.assert_allclose(often.coef_, once.coef_, rtol=1e-10)
    assert np.abs(rows.coef_ - once.coef_).max() > 1e-3


def test_several_classes_take_groups():
    X, y, groups = some_rows("squared")
    classes = np.digitize(y, [-1, 1])
    for algorithm in ("auto", "output-perturbation"):
        model = SparseClassifier(S, epsilon=4.0, feature_bound=1.0, classes=[0, 1, 2], algorithm=algorithm)
        model.fit(X, classes, groups=groups)
        assert model.certificate_.verify()
        assert model.certificate_.unit == "person"


# -- certificates -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
def test_certificates_say_the_unit_and_verify(name, loss, adjacency, hardened):
    X, y, groups = some_rows(loss)
    model = model_of(name, loss, adjacency=adjacency, hardened=hardened).fit(X, y, groups=groups)
    certificate = Certificate.from_json(model.certificate_.to_json())
    assert certificate.to_json() == model.certificate_.to_json()
    assert certificate.verify()
    assert (certificate.unit, certificate.n_samples) == ("person", PEOPLE)
    assert certificate.epsilon == (None if name in NOT_PRIVATE else 2.0)
    assert any("each counts 1/k" in note and str(MOST_ROWS_EACH) in note for note in certificate.notes)
    assert "each person with all their records" in certificate.trust["protected"]
    assert model.plan_.epsilon <= model.plan_.budget.epsilon
    assert (model.plan_.problem.unit, model.plan_.problem.n) == ("person", PEOPLE)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_the_number_of_rows_is_in_nothing_that_is_published(name, loss, adjacency, tmp_path):
    X, y, groups = some_rows(loss)
    model = model_of(name, loss, adjacency=adjacency, random_state=1).fit(X, y, groups=groups)
    model.save(tmp_path / "model.json")
    with out.capture() as shown:
        show_certificate(model.certificate_)
    published = [model.certificate_.to_json(), (tmp_path / "model.json").read_text(), repr(model.plan_), shown.get()]
    assert not any(re.search(rf"(?<![\d.]){ROWS}(?!\d)", text) for text in published)
    assert all(str(PEOPLE) in text for text in published[:3])


@pytest.mark.parametrize("public", PUBLIC_CLIPS)
@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_certificate_is_the_same_however_many_rows_people_have(public, hardened, adjacency):
    """Noise scales and sensitivities are in it: they must follow from public numbers alone."""
    certificates = set()
    for rows in (ROWS, 308, PEOPLE):
        X, y, groups = some_rows("logistic", rows)
        facts = {"hardened": hardened, "adjacency": adjacency, "classes": [0, 1]}
        model = model_of(public, "logistic", **facts).fit(X, y, groups=groups)
        certificates.add(replace(model.certificate_, model=None).to_json())
    assert len(certificates) == 1


def test_a_page_about_the_model_tells_of_people(tmp_path):
    X, y, groups = some_rows("squared")
    model_of("pursuit", "squared").fit(X, y, groups=groups).report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert f"{PEOPLE} people and {D} columns" in page
    assert "all rows of a person together count as one" in page
    assert "which of two sets of records one person has" in page
    assert "a fresh run on fresh people" in page
    assert not re.search(rf"(?<![\d.]){ROWS}(?![\d.])", page)
    assert f"{ROWS:,}" not in page


def test_a_certificate_of_before_is_about_rows():
    X, y, _ = some_rows("squared")
    data = json.loads(model_of("dp-ight", "squared").fit(X, y).certificate_.to_json())
    for name in ("unit", "format", "model"):
        del data[name]
    data["trust"]["protected"] = "each person's whole record, from whoever sees the model"
    old = Certificate.from_dict(data)
    assert old.unit == "row"
    assert old.verify()


def test_a_certificate_with_another_unit_or_a_question_about_one_row_does_not_verify():
    X, y, groups = some_rows("squared")
    data = json.loads(model_of("dp-ight", "squared").fit(X, y, groups=groups).certificate_.to_json())
    assert not Certificate.from_dict({**data, "unit": "household"}).verify()
    two_stage = json.loads(model_of("two-stage", "squared").fit(X, y).certificate_.to_json())
    assert Certificate.from_dict(two_stage).verify()
    assert "one row each" in str(Certificate.from_dict({**two_stage, "unit": "person"}).verify().problems)


def test_fits_of_rows_and_of_people_are_not_added_up():
    """Not even where there are as many rows as people: the sum would hold for neither."""
    X, y, _ = some_rows("squared", 200, 200)
    row, person = (model_of("dp-ight", "squared").fit(X, y, groups=g) for g in (None, np.arange(200)))
    with pytest.raises(ValueError, match="unit differs: \\['row', 'person'\\]"):
        combine(row, person)
    both = combine(person, person)
    assert (both.unit, both.counted) == ("person", "people")
    assert both.verify()


def test_a_saved_model_keeps_its_unit(tmp_path):
    X, y, groups = some_rows("squared")
    model_of("dp-ight", "squared").fit(X, y, groups=groups).save(tmp_path / "model.json")
    assert load_model(tmp_path / "model.json").certificate_.unit == "person"


# -- the number of people -----------------------------------------------------------------------------------------


def test_delta_and_noise_follow_the_number_of_people():
    X, y, groups = some_rows("squared")
    model = model_of("dp-ight", "squared", delta=None).fit(X, y, groups=groups)
    assert model.certificate_.delta == PEOPLE**-2.0
    planned = model_of("dp-ight", "squared", delta=None).plan(PEOPLE, D)
    assert model.plan_.releases == planned.releases
    assert model.plan_.settings == planned.settings


def test_with_add_remove_the_public_number_is_that_of_people():
    X, y, groups = some_rows("squared")
    facts = {"adjacency": "add-remove"}
    read = model_of("dp-ight", "squared", **facts).fit(X, y, groups=groups)
    assert f"the number of people, {PEOPLE}, is public" in read.certificate_.assumptions[0]
    declared = model_of("dp-ight", "squared", n_public=200, hardened=True, **facts).fit(X, y, groups=groups)
    assert (declared.certificate_.n_samples, declared.certificate_.assumptions) == (200, ())


def test_a_delta_that_is_large_for_people_is_warned_about():
    X, y, groups = some_rows("squared")
    with pytest.warns(PrivacyWarning, match="allows publishing some people in the clear"):
        model_of("dp-ight", "squared", delta=1 / 200).fit(X, y, groups=groups)


# -- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["two-stage", DPIGHT(calibration="printed"), DPSLKT(calibration="printed")])
def test_what_is_proved_for_single_rows_only_is_refused_before_a_row_is_held(algorithm, monkeypatch):
    X, y, groups = some_rows("squared")
    monkeypatch.setattr("thresher.vaults.central.rows.Rows.__init__", lambda *_: pytest.fail("a vault was opened"))
    with pytest.raises(ValueError, match="for people with one row each"):
        model_of("dp-ight", "squared", algorithm=algorithm).fit(X, y, groups=groups)


@pytest.mark.parametrize("algorithm", ["ldp-iht", "label-ldp-iht"])
def test_local_models_refuse_groups(algorithm):
    X, y, groups = some_rows("squared")
    regressor = LocalSparseRegressor(S, 2.0, algorithm=algorithm, feature_bound=1.0, target_bound=6.0)
    with pytest.raises(TypeError, match="groups is not supported by LocalSparseRegressor"):
        regressor.fit(X, y, groups=groups)
    classifier = LocalSparseClassifier(S, 2.0, algorithm=algorithm, feature_bound=1.0, classes=[0, 1])
    with pytest.raises(TypeError, match="groups is not supported by LocalSparseClassifier"):
        classifier.fit(X, (y > 0).astype(int), groups=groups)


def test_federated_models_refuse_groups():
    X, y, groups = some_rows("squared")
    with pytest.raises(TypeError, match="groups"):
        FederatedSparseRegressor(S, feature_bound=1.0, target_bound=6.0).fit([(X, y), (X, y)], groups=groups)


@pytest.mark.parametrize("estimator", [model_of("dp-ight", "squared"), PrivateScaler(feature_bound=1.0)], ids=str)
def test_groups_of_another_length_are_refused_without_a_count(estimator):
    X, y, groups = some_rows("squared")
    with pytest.raises(ValueError, match="groups must hold one id for each row") as refused:
        estimator.fit(X, y, groups=groups[:-1])
    assert str(ROWS) not in str(refused.value)
    assert str(ROWS - 1) not in str(refused.value)


def test_targets_of_another_length_are_refused_without_a_count():
    X, y, groups = some_rows("squared")
    with pytest.raises(ValueError, match="inconsistent numbers of samples; give a target for each row") as refused:
        model_of("dp-ight", "squared").fit(X, y[:-1], groups=groups)
    assert str(ROWS) not in str(refused.value)


def test_sample_weights_are_still_refused():
    X, y, groups = some_rows("squared")
    with pytest.raises(TypeError, match="sample_weight is not supported"):
        model_of("dp-ight", "squared").fit(X, y, groups=groups, sample_weight=np.ones(ROWS))


# -- pipelines ----------------------------------------------------------------------------------------------------


def test_a_scaler_protects_people_and_its_pipeline_adds_up():
    X, y, groups = some_rows("squared")
    steps = PrivateScaler(epsilon=8.0, feature_bound=100.0), model_of("dp-ight", "squared")
    pipeline = make_pipeline(*steps).fit(X, y, privatescaler__groups=groups, sparseregressor__groups=groups)
    total = combine(pipeline)
    assert (total.unit, total.n_samples) == ("person", PEOPLE)
    assert total.verify()
    half = make_pipeline(*steps).fit(X, y, sparseregressor__groups=groups)
    with pytest.raises(ValueError, match="unit differs"):
        combine(half)


def test_a_scaler_takes_the_range_of_people_not_of_rows():
    """One of 300 people has 30,000 rows of 50; the others, one row each, lie within 1."""
    rng = np.random.default_rng(0)
    X = np.append(rng.uniform(-1, 1, 299), np.full(30_000, 50.0))[:, None]
    groups = np.minimum(np.arange(len(X)), 299)
    scaler = PrivateScaler(epsilon=20.0, feature_bound=1000.0, quantiles=(0.1, 0.9), random_state=0)
    assert scaler.fit(X, groups=groups).scale_[0] < 1.5
    assert scaler.fit(X).scale_[0] > 10 or scaler.centre_[0] > 10
