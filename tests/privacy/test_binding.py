"""A certificate belongs to one model: the hash it carries is that of its coefficients, intercept, columns, classes."""

from __future__ import annotations

import functools
import json
import struct
import tracemalloc
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from certified_models import FITS, S, classes, fitted, numbers, rows
from thresher import Ledger, SparseClassifier, SparseRegressor, load_model
from thresher.cli.app import app
from thresher.models.linear import parts_of
from thresher.privacy.certificate import Certificate, combine
from thresher.privacy.model_hash import linear_parts, model_hash

pytestmark = pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")

FILES = [
    "dp-ight", "pursuit of classes", "pursuit of three classes", "dp-sgd of three classes", "local, lasso",
    "local, three class labels", "survey, sampled-signs", "federated dp-ight", "federated classes, skellam",
]  # fmt: skip


@pytest.fixture
def saved(tmp_path):
    def save(model):
        path = tmp_path / "model.json"
        model.save(path)
        return path, json.loads(path.read_text())

    return save


def verify(path, *options):
    return CliRunner().invoke(app, ["verify", str(path), *options])


@pytest.mark.parametrize("name", FITS)
def test_every_model_has_a_certificate_with_its_hash(name):
    """Whatever it is made of: a linear model's coefficients, a scaler's ranges, a network's parameters."""
    model = fitted(name)
    assert len(model.certificate_.model) == 64
    if name == "network":
        from thresher.torch.trainer import parameter_arrays

        assert model_hash(parameter_arrays(model.module)) == model.certificate_.model
    else:
        assert model_hash(parts_of(model)) == model.certificate_.model


@pytest.mark.parametrize("name", FILES)
def test_a_saved_model_still_has_the_hash(saved, name):
    path, _ = saved(fitted(name))
    assert load_model(path).certificate_ == Certificate.read(path)
    assert model_hash(parts_of(load_model(path))) == fitted(name).certificate_.model
    assert verify(path).exit_code == 0


@pytest.mark.parametrize(
    "change",
    [
        {"intercept": 0.25},
        {"coefficients": [1.0, 2.0, 3.0], "support": [0, 1, 2]},
        {"feature_names": list("abcdef")},
        {"classes": [0, 1]},
        {"n_features": 7},
    ],
    ids=str,
)
def test_a_certificate_of_another_model_is_refused(saved, change):
    path, record = saved(fitted("dp-ight"))
    path.write_text(json.dumps({**record, **change}))
    outcome = verify(path)
    assert outcome.exit_code == 1
    assert "belongs to another model" in outcome.output
    assert not json.loads(verify(path, "--json").stdout)["ok"]
    with pytest.raises(ValueError, match=r"model.json: .* another model.*take model and certificate from their source"):
        load_model(path)


def test_a_certificate_without_its_hash_belongs_to_no_model(saved):
    """Or whoever changes coefficients need only leave it out."""
    path, record = saved(fitted("dp-ight"))
    record["coefficients"] = [2 * value for value in record["coefficients"]]
    record["certificate"]["model"] = None
    path.write_text(json.dumps(record))
    outcome = verify(path)
    assert outcome.exit_code == 1
    assert "its hash was left out" in outcome.output
    with pytest.raises(ValueError, match="its hash was left out"):
        load_model(path)


COLUMNS = {"age": {"bounds": [0, 1]}, "dose": {"bounds": [0, 1]}, "stay": {"bounds": [0, 1], "role": "target"}}
OTHER_SCHEMAS = {
    "columns in another order": {name: COLUMNS[name] for name in ("dose", "age", "stay")},
    "another bound": {**COLUMNS, "age": {"bounds": [0, 0.1]}},
    "another name": {name.replace("age", "ages"): column for name, column in COLUMNS.items()},
    "another gap": {**COLUMNS, "age": {"bounds": [0, 1], "typical": 0.9}},
    "none": None,
}


@pytest.mark.parametrize("other", OTHER_SCHEMAS)
def test_a_model_that_reads_tables_by_another_schema_is_another_model(saved, other):
    table = pd.DataFrame(np.random.default_rng(0).uniform(0, 1, (200, 3)), columns=["age", "dose", "stay"])
    path, record = saved(SparseRegressor.from_schema({"columns": COLUMNS}, sparsity=1, epsilon=50.0).fit(table))
    assert verify(path).exit_code == 0
    assert load_model(path).feature_names_in_.tolist() == ["age", "dose"]
    columns = OTHER_SCHEMAS[other]
    record["params"]["schema"] = None if columns is None else {**record["params"]["schema"], "columns": columns}
    path.write_text(json.dumps(record))
    outcome = verify(path)
    assert outcome.exit_code == 1
    assert "its schema" in outcome.output
    with pytest.raises(ValueError, match="its schema"):
        load_model(path)


def test_labels_are_not_read_as_numbers(saved):
    path, record = saved(fitted("pursuit of classes"))
    del record["params"]["classes"]
    path.write_text(json.dumps({**record, "class": "SparseRegressor"}))
    assert verify(path).exit_code == 1
    with pytest.raises(ValueError, match="of two models"):
        load_model(path)


def test_certificates_cannot_be_exchanged(saved):
    """Two fits of the same rows and settings: everything but the coefficients is alike."""
    path, record = saved(numbers("dp-ight"))
    record["certificate"] = json.loads(fitted("dp-ight").certificate_.to_json())
    path.write_text(json.dumps(record))
    assert Certificate.from_dict(record["certificate"]).verify()
    assert verify(path).exit_code == 1


def test_a_model_of_an_earlier_version_still_verifies_and_says_that_nothing_binds_it(saved):
    path, record = saved(fitted("dp-ight"))
    old = record["certificate"]
    for name in ("format", "model"):
        del old[name]
    old["trust"]["protected"] = "each person's whole record, from whoever sees the model"
    old["grade"], old["assumptions"] = "proved", []
    path.write_text(json.dumps(record))
    outcome = verify(path)
    assert outcome.exit_code == 0
    assert "nothing binds it" in outcome.output
    assert "noise is taken for real numbers" in outcome.output
    assert load_model(path).certificate_.model is None


def test_the_first_format_knows_no_model():
    """So a certificate of today does not pass as one that was graded by earlier rules."""
    record = {**json.loads(fitted("dp-ight").certificate_.to_json()), "format": "thresher-certificate-1"}
    problems = Certificate.from_dict(record).verify().problems
    assert any("which its format does not know" in problem for problem in problems)


def test_columns_and_classes_are_bound():
    X, y = rows()
    facts = {"feature_bound": 1.0, "target_bound": 2.0, "algorithm": "dp-ight"}
    named = SparseRegressor(S, **facts).fit(pd.DataFrame(X, columns=list("abcdef")), y)
    assert parts_of(named)["columns"] == list("abcdef")
    labels = SparseClassifier(S, feature_bound=1.0, classes=["no", "yes"], algorithm="dp-ight")
    labels.fit(X, np.where(y > 0, "yes", "no"))
    assert parts_of(labels)["classes"] == ["no", "yes"]
    assert model_hash(parts_of(labels)) == labels.certificate_.model


def test_a_fit_that_fails_leaves_the_old_labels():
    model = classes("dp-ight")
    X, y = rows("two classes")
    with pytest.raises(ValueError, match="n_public"):
        model.set_params(classes=[0, 1, 2], n_public=7).fit(X, y)
    assert model.classes_.tolist() == [0, 1]
    assert model_hash(parts_of(model)) == model.certificate_.model


def test_the_ledger_notes_the_certificate_with_its_hash(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.grant("rows", 1.0, 1e-5)
    certificate = numbers("dp-ight", ledger=ledger, dataset="rows").certificate_
    assert ledger.verify(certificate=certificate)
    assert not ledger.verify(certificate=replace(certificate, model="0" * 64))


def test_a_sum_keeps_the_hash_of_every_part():
    total = combine(fitted("scaler"), fitted("dp-ight"))
    assert total.model is None
    kept = [part["model"] for part in total.settings["parts"]]
    assert kept == [fitted(name).certificate_.model for name in ("scaler", "dp-ight")]


def test_the_hash_is_one_that_anybody_can_compute():
    """Names, shapes and labels behind their lengths, numbers as little-endian doubles, all behind a word of our own."""

    def sized(text):
        return struct.pack("<Q", len(text)) + text

    expected = b"thresher model 1\0"
    expected += sized(b"coefficients") + b"a" + struct.pack("<QQQdd", 2, 1, 2, 1.0, 0.0)
    expected += sized(b"intercept") + b"a" + struct.pack("<QQd", 1, 1, 0.5)
    expected += sized(b"columns") + b"l" + struct.pack("<Q", 2) + b"s" + sized("ä".encode()) + b"s" + sized(b"b")
    expected += sized(b"classes") + b"l" + struct.pack("<Q", 2) + b"i" + sized(b"0") + b"i" + sized(b"1")
    known = linear_parts([1.0, -0.0], 0.5, np.array(["ä", "b"]), np.array([0, 1]))
    assert model_hash(known) == sha256(expected).hexdigest()


@pytest.mark.parametrize(
    "other",
    [
        ([[1.0, 0.0]], [0.5], ["ab", ""], [0, 1]),
        ([[1.0, 0.0]], [0.5], ["a", "b"], ["0", "1"]),
        ([[1.0, 0.0]], [0.5], ["a", "b"], [False, True]),
        ([[1.0, 0.0]], [0.5], ["a", "b"], [0.0, 1.0]),
        ([[1.0, 0.0]], [0.5], ["a", "b"], None),
        ([[1.0, 0.0]], [0.5], ["a", "b"], []),
        ([[1.0], [0.0]], [0.5], ["a", "b"], [0, 1]),
        ([[np.nextafter(1.0, 2.0), 0.0]], [0.5], ["a", "b"], [0, 1]),
    ],
    ids=str,
)
def test_models_that_are_nearly_alike_have_other_hashes(other):
    assert model_hash(linear_parts(*other)) != model_hash(linear_parts([[1.0, 0.0]], [0.5], ["a", "b"], [0, 1]))


# -- files that say two things --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["epsilon", "clip", "intercept"])
def test_a_field_that_is_given_twice_is_refused(saved, name):
    path, _ = saved(fitted("dp-ight"))
    path.write_text(path.read_text().replace(f'"{name}": ', f'"{name}": 0.1, "{name}": ', 1))
    for refused in (Certificate.read, load_model):
        with pytest.raises(ValueError, match="is given twice"):
            refused(path)
    assert verify(path).exit_code != 0


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_is_none_is_refused(constant):
    text = fitted("dp-ight").certificate_.to_json()
    with pytest.raises(ValueError, match="is not a number that JSON knows"):
        Certificate.from_json(text.replace('"delta": 1e-06', f'"delta": {constant}', 1))


@pytest.mark.parametrize("field", ["trust", "bounds", "releases", "delta", "grade", "versions"])
@pytest.mark.parametrize("value", [None, 7, "seven", [], {}, [[]], True], ids=str)
def test_whatever_stands_in_a_field_the_command_says_no_and_does_not_crash(tmp_path, field, value):
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps({**json.loads(fitted("dp-ight").certificate_.to_json()), field: value}))
    outcome = verify(path)
    assert outcome.exit_code == 1
    assert outcome.exception is None or isinstance(outcome.exception, SystemExit)


HUGE = 10**4000  # beyond the largest float
DAMAGES = {
    "a huge intercept": (("intercept",), HUGE),
    "an intercept of text": (("intercept",), "x" * 10**6),
    "a huge coefficient": (("coefficients",), [HUGE]),
    "a huge epsilon": (("certificate", "epsilon"), HUGE),
    "a grade that steers the terminal": (("certificate", "grade"), "\x1b[31m"),
    "no unit": (("certificate", "unit"), None),
    "huge errors": (("uncertainty", "noise"), [HUGE]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_model_whose_fields_hold_what_none_can_is_refused_when_it_is_loaded(tmp_path, damage):
    path, value = DAMAGES[damage]
    fitted("pursuit").save(tmp_path / "m.json")
    record = json.loads((tmp_path / "m.json").read_text())
    *outer, last = path
    functools.reduce(lambda place, name: place[name], outer, record)[last] = value
    (tmp_path / "m.json").write_text(json.dumps(record))
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"m\.json"):
        load_model(tmp_path / "m.json")
    verify(tmp_path / "m.json")
    assert tracemalloc.get_traced_memory()[1] < 2**27  # a text of a megabyte took five hundred
    tracemalloc.stop()
