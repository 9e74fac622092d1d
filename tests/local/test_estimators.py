"""The local front doors: the scikit-learn contract, what is refused, and a certificate that says whom to trust."""

from __future__ import annotations

import json
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator
from typer.testing import CliRunner

from thresher import (
    Certificate,
    LocalSparseClassifier,
    LocalSparseRegressor,
    SparseRegressor,
    load_model,
)
from thresher.algorithms import DPIGHT, LDPIHT, LabelLDPIHT
from thresher.cli.app import app
from thresher.privacy.certificate import combine
from thresher.vaults import LabelVault, SimulatedVault
from thresher_papers.datasets import ldp_law

ALGORITHMS = ["ldp-iht", "label-ldp-iht", "label-lasso"]


def regressor(**changes):
    params = {"sparsity": 2, "epsilon": 4.0, "feature_bound": 1.0, "target_bound": 2.0, "random_state": 0}
    return LocalSparseRegressor(**{**params, **changes})


def classifier(**changes):
    params = {"sparsity": 2, "epsilon": 4.0, "feature_bound": 1.0, "classes": [0, 1], "random_state": 0}
    return LocalSparseClassifier(**{**params, **changes})


@pytest.fixture(scope="module")
def table():
    X, y, _ = ldp_law(5000, 8, 2, unit=True).draw(seed=0)
    return X.astype(float), y


# -- the scikit-learn contract ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "algorithm"),
    [*((regressor, name) for name in ALGORITHMS), (classifier, "ldp-iht"), (classifier, "label-ldp-iht")],
)
def test_check_estimator_passes_without_exceptions(make, algorithm):
    wide = {"sparsity": 1, "epsilon": 50.0, "feature_bound": 10.0, "algorithm": algorithm}
    wide |= {"target_bound": 100.0} if make is regressor else {"classes": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(clone(make()).set_params(**wide), on_fail=None)
    failed = [result["check_name"] for result in results if result["status"] == "failed"]
    assert failed == []
    assert sum(result["status"] == "passed" for result in results) > 40


def test_sparsity_and_epsilon_may_be_given_by_position(table):
    model = LocalSparseRegressor(2, 0.5, feature_bound=1.0, target_bound=2.0).fit(*table)
    assert model.certificate_.epsilon == 0.5


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array, pd.DataFrame], ids=["csr", "csc", "pandas"])
def test_every_kind_of_table_gives_the_same_model(table, algorithm, form):
    X, y = table
    dense = regressor(algorithm=algorithm).fit(X, y)
    rows = form(X, columns=[f"column {j}" for j in range(X.shape[1])]) if form is pd.DataFrame else form(X)
    other = regressor(algorithm=algorithm).fit(rows, y)
    assert other.coef_ == pytest.approx(dense.coef_, abs=1e-9)
    if form is pd.DataFrame:
        assert other.feature_names_in_[0] == "column 0"


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.float32, bool])
def test_small_numbers_are_not_misread(table, kind):
    """Squares of small integers overflow; a bool has no minus."""
    X = (table[0] > 0).astype(kind)
    for algorithm in ALGORITHMS:
        model = regressor(algorithm=algorithm, feature_bound=None, row_bound=8.0).fit(X, table[1])
        other = regressor(algorithm=algorithm, feature_bound=None, row_bound=8.0).fit(X.astype(float), table[1])
        assert model.coef_ == pytest.approx(other.coef_, abs=1e-6)


def test_integers_at_the_edge_of_their_type_are_clipped_like_any_other():
    X = np.full((200, 3), -128, dtype=np.int8)
    for algorithm in ALGORITHMS:
        model = regressor(algorithm=algorithm, feature_bound=None, row_bound=1.0).fit(X, np.ones(200))
        assert np.all(np.isfinite(model.coef_))
    model = regressor(algorithm="label-ldp-iht", feature_bound=None).fit(X, np.ones(200))
    assert model.certificate_.bounds["row"] == pytest.approx(128 * math.sqrt(3))


@pytest.mark.parametrize("algorithm", ["ldp-iht", "label-ldp-iht", "label-lasso", LDPIHT(iterations=3)])
def test_a_random_state_repeats_a_fit_and_its_absence_does_not(table, algorithm):
    def fit(seed):
        return regressor(algorithm=algorithm, random_state=seed, epsilon=1.0).fit(*table).coef_

    assert np.array_equal(fit(1), fit(1))
    assert not np.array_equal(fit(None), fit(None))


def test_grid_search_and_clone_and_pickle(table):
    X, y = table
    grid = {"algorithm": [LDPIHT(iterations=2), LDPIHT(iterations=4)]}
    search = GridSearchCV(regressor(), grid, cv=2).fit(X[:600], y[:600])
    assert search.best_params_["algorithm"] in grid["algorithm"]
    model = regressor().fit(X, y)
    assert not hasattr(clone(model), "coef_")
    assert pickle.loads(pickle.dumps(model)).predict(X) == pytest.approx(model.predict(X))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_saved_model_predicts_as_before(tmp_path, table, algorithm):
    model = regressor(algorithm=algorithm).fit(*table)
    model.save(tmp_path / "model.json")
    back = load_model(tmp_path / "model.json")
    assert isinstance(back, LocalSparseRegressor)
    assert back.predict(table[0]) == pytest.approx(model.predict(table[0]))
    assert back.certificate_.to_json() == model.certificate_.to_json()
    back = clone(back).set_params(random_state=0).fit(*table)
    assert back.coef_ == pytest.approx(model.coef_)


def test_the_command_line_verifies_a_local_model_and_predicts_with_it(tmp_path, table):
    rows, y = pd.DataFrame(table[0], columns=list("abcdefgh")), table[1]
    regressor(random_state=None).fit(rows, y).save(tmp_path / "model.json")
    shown = CliRunner().invoke(app, ["verify", str(tmp_path / "model.json")])
    assert shown.exit_code == 0, shown.output
    assert "each person's own device" in " ".join(shown.output.split())
    assert "epsilon 4 at delta 0 by pure composition" in " ".join(shown.output.split())
    rows[:5].to_csv(tmp_path / "rows.csv", index=False)
    outcome = CliRunner().invoke(app, ["predict", str(tmp_path / "model.json"), str(tmp_path / "rows.csv")])
    assert outcome.exit_code == 0, outcome.output


def test_a_saved_classifier_predicts_as_before(tmp_path, table):
    X, y = table
    model = classifier(algorithm="label-ldp-iht", classes=["no", "yes"]).fit(X, np.where(y > 0, "yes", "no"))
    model.save(tmp_path / "model.json")
    assert load_model(tmp_path / "model.json").predict(X).tolist() == model.predict(X).tolist()


# -- what is refused, before anybody reports --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epsilon": -1.0}, ["epsilon=-1.0"]),
        ({"epsilon": 60.0}, ["epsilon=60.0", "not above 50"]),
        ({"delta": 1.0}, ["delta=1.0"]),
        ({"feature_bound": None}, ["feature_bound=None and row_bound=None"]),
        ({"target_bound": None}, ["target_bound=None"]),
        ({"sparsity": 9}, ["sparsity=9", "8"]),
        ({"algorithm": "pursuit"}, ["algorithm='pursuit'", "'ldp-iht'", "SparseRegressor and SparseClassifier have"]),
        ({"algorithm": "ldp"}, ["algorithm='ldp' must be one of 'ldp-iht', 'label-ldp-iht', 'label-lasso'"]),
        ({"algorithm": DPIGHT()}, ["must be a name or an instance such as LDPIHT"]),
        ({"measurement": "log"}, ["measurement='log'"]),
        ({"algorithm": LDPIHT(iterations=6000)}, ["6000 rounds", "5000"]),
        ({"algorithm": LabelLDPIHT(noise="gaussian")}, ["needs delta above 0"]),
    ],
)
def test_bad_parameters_are_named_with_value_and_remedy_and_nobody_has_reported(table, change, words, monkeypatch):
    monkeypatch.setattr(SimulatedVault, "gradient", _never)
    monkeypatch.setattr(LabelVault, "labels", _never)
    with pytest.raises(ValueError, match=r"must|give|larger|need|not") as refusal:
        regressor(**change).fit(*table)
    for word in words:
        assert word in str(refusal.value)


def _never(*_):
    raise AssertionError("somebody reported")


def test_a_central_estimator_points_to_the_local_one(table):
    with pytest.raises(ValueError, match="LocalSparseRegressor and LocalSparseClassifier have that one"):
        SparseRegressor(2, feature_bound=1.0, target_bound=2.0, algorithm="ldp-iht").fit(*table)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_value_that_is_no_number_is_refused_without_being_shown(table, algorithm, bad):
    X, y = table[0].copy(), table[1]
    X[17, 3] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        regressor(algorithm=algorithm).fit(X, y)


# -- public features --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["label-ldp-iht", "label-lasso"])
def test_public_features_need_no_bound_and_a_plan_without_data_does(table, algorithm):
    X, y = table
    model = regressor(algorithm=algorithm, feature_bound=None).fit(3 * X, y)
    assert model.certificate_.bounds["row"] == pytest.approx(3 * math.sqrt(8))
    assert model.certificate_.grade == "conditional"  # a random_state was set
    with pytest.raises(ValueError, match="feature_bound=None and row_bound=None"):
        regressor(algorithm=algorithm, feature_bound=None).plan(100, 8)
    assert regressor(algorithm=algorithm).plan(100, 8).epsilon == 4.0


# -- the certificate --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_certificate_is_pure_and_says_whom_to_trust(table, algorithm):
    """Signs are flipped by exact coins; a label plus noise is a floating-point number before it is rounded."""
    certificate = regressor(algorithm=algorithm, random_state=None).fit(*table).certificate_
    assert (certificate.epsilon, certificate.delta) == (4.0, 0.0)
    assert certificate.grade == ("proved" if algorithm == "ldp-iht" else "conditional")
    assert certificate.verify()
    assert certificate.verify().method == "pure composition"
    assert Certificate.from_json(certificate.to_json()).to_json() == certificate.to_json()
    trust = certificate.trust
    assert trust["model"] == ("local" if algorithm == "ldp-iht" else "labels")
    assert "server" in trust["need not be trusted"]
    assert "own device" in trust["must be trusted"]
    assert ("PUBLIC" in trust["protected"]) == (algorithm != "ldp-iht")


@pytest.mark.parametrize("algorithm", ["ldp-iht", "label-ldp-iht"])
def test_reports_of_classes_are_pure_too(table, algorithm):
    X, y = table
    certificate = classifier(algorithm=algorithm, random_state=None).fit(X, (y > 0).astype(int)).certificate_
    assert (certificate.grade, certificate.epsilon, certificate.delta) == ("proved", 4.0, 0.0)
    assert certificate.verify().method == "pure composition"


def test_a_central_certificate_names_its_curator(table):
    certificate = SparseRegressor(2, feature_bound=1.0, target_bound=2.0).fit(*table).certificate_
    assert certificate.trust["model"] == "central"
    assert "curator" in certificate.trust["must be trusted"]
    first = json.loads(certificate.to_json())
    for name in ("trust", "model", "format"):
        del first[name]
    assert Certificate.from_dict(first).trust["model"] == "central"
    assert Certificate.from_dict(first).verify()


@pytest.mark.parametrize(
    "tamper",
    [
        lambda entry: entry["release"].update(epsilon=9.0),
        lambda entry: entry["answers"][0].update(scale=1e-3),
        lambda entry: entry["answers"][0].update(sensitivity=1e-3),
        lambda entry: entry["answers"][0].update(count=99),
        lambda entry: entry["release"].update(kind="GaussianGradient"),
        lambda entry: entry.update(question="gradient"),
    ],
    ids=["dearer", "quieter", "less sensitive", "more often", "another kind", "another question"],
)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_tampered_certificate_does_not_verify(table, algorithm, tamper):
    certificate = json.loads(regressor(algorithm=algorithm).fit(*table).certificate_.to_json())
    assert Certificate.from_dict(certificate).verify()
    tamper(certificate["releases"][0])
    assert not Certificate.from_dict(certificate).verify()


def test_two_surveys_of_the_same_people_add_up_and_do_not_mix_with_a_curators_fit(table):
    first, second = (regressor(algorithm=LDPIHT(iterations=rounds)).fit(*table) for rounds in (2, 3))
    total = combine(first, second)
    assert total.epsilon == 8.0
    assert total.trust["model"] == "local"
    assert total.verify()
    central = SparseRegressor(2, delta=1e-6, feature_bound=1.0, target_bound=2.0).fit(*table)
    with pytest.raises(ValueError, match=r"trust differs: \['local', 'central'\]"):
        combine(first, central)


def test_a_second_opinion_on_pure_reports_is_none_at_delta_0(table):
    """The Renyi accountant knows no pure guarantee; with a delta it bounds the same report."""
    certificate = regressor(epsilon=1.0).fit(*table).certificate_
    assert certificate.second_opinion() is None
    certificate = regressor(epsilon=1.0, delta=1e-6).fit(*table).certificate_
    assert certificate.second_opinion() >= 1.0
