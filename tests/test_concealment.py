"""No exception carries a cell: not in its message, and not in one that lies behind it, printed or hidden."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from planted_values import told_by
from thresher import (
    DenseClassifier,
    DenseRegressor,
    LocalSparseRegressor,
    PrivateSearchCV,
    Schema,
    SparseClassifier,
    SparseRegressor,
)
from thresher.audit.attacks import read_records
from thresher.data.reading.table import read_table
from thresher.data.schema.draft import draft
from thresher.estimates.counts import count_faults
from thresher.estimates.draft import estimate
from thresher.federated import FederatedSparseClassifier, FederatedSparseRegressor
from thresher.local.client import Client
from thresher.local.task import SurveyTask
from thresher.models.scaler import PrivateScaler

SECRET = "MRN-" + "77431"  # in two parts: tracebacks quote source lines
BOUNDED = {"feature_bound": 1.0}
NUMBERS = {**BOUNDED, "target_bound": 1.0}

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (60, 3))
y = X[:, 0]
two = (y > 0).astype(int)
cells = X.astype(object)
cells[5, 1] = SECRET
planted_y = np.append(y[:-1].astype(object), SECRET)
planted_two = np.append(np.array(["no", "yes"])[two[:-1]], SECRET)

ROWS = {
    "objects": cells,
    "lists": cells.tolist(),
    "text": cells.astype(str),
    "frame": pd.DataFrame(cells, columns=list("abc")),
    "strings of pandas": pd.DataFrame(cells, columns=list("abc")).astype("string"),
    "ragged": [*X.tolist()[:-1], [SECRET]],
    "a dict": {"a": SECRET},
}

numbers = SparseRegressor(1, epsilon=50.0, **NUMBERS).fit(X, y)
dense = DenseRegressor(epsilon=50.0, **NUMBERS).fit(X, y)
classes = SparseClassifier(1, epsilon=50.0, classes=[0, 1], **BOUNDED).fit(X, two)
named = SparseClassifier(1, epsilon=50.0, classes=["no", "yes"], **BOUNDED).fit(X, np.array(["no", "yes"])[two])
scaler = PrivateScaler(epsilon=50.0, **BOUNDED).fit(X)


def searched(model, target, **settings):
    return PrivateSearchCV(model, {"sparsity": [1]}, **settings).fit(X, target)


OF_ROWS = {
    "fit": lambda rows: SparseRegressor(1, **NUMBERS).fit(rows, y),
    "fit of classes": lambda rows: SparseClassifier(1, **BOUNDED).fit(rows, two),
    "fit of people": lambda rows: SparseRegressor(1, **NUMBERS).fit(rows, y, groups=list(range(60))),
    "dense fit": lambda rows: DenseClassifier(**BOUNDED).fit(rows, two),
    "local fit": lambda rows: LocalSparseRegressor(1, **NUMBERS).fit(rows, y),
    "federated fit": lambda rows: FederatedSparseRegressor(1, **NUMBERS).fit([(X, y), (rows, y)]),
    "predict": numbers.predict,
    "dense predict": dense.predict,
    "class": classes.predict,
    "chance": classes.predict_proba,
    "margin": classes.decision_function,
    "score": lambda rows: numbers.score(rows, y),
    "scaler": lambda rows: PrivateScaler(**BOUNDED).fit(rows),
    "transform": scaler.transform,
    "search": lambda rows: PrivateSearchCV(SparseRegressor(1, **NUMBERS), {"sparsity": [1]}).fit(rows, y),
    "attack": lambda rows: read_records(SparseRegressor(), rows, y),
}
OF_TARGETS = {
    "fit": lambda: SparseRegressor(1, **NUMBERS).fit(X, planted_y),
    "federated fit": lambda: FederatedSparseRegressor(1, **NUMBERS).fit([(X, y), (X, planted_y)]),
    "federated classes": lambda: FederatedSparseClassifier(1, **BOUNDED, classes=["no", "yes"]).fit(
        [(X, planted_two), (X, planted_two)]
    ),
    "classes": lambda: SparseClassifier(1, classes=["no", "yes"], **BOUNDED).fit(X, planted_two),
    "score": lambda: numbers.score(X, planted_y),
    "score of few": lambda: numbers.score(X[:3], ["1", "2", SECRET]),
    "score by weights": lambda: numbers.score(X, y, sample_weight=planted_y),
    "score of numbers": lambda: classes.score(X, planted_two),
    "score of mixed labels": lambda: named.score(X, planted_y),
    "search": lambda: searched(SparseRegressor(1, **NUMBERS), y).score(X, planted_y),
    "search by loss": lambda: searched(
        SparseClassifier(1, classes=[0, 1], **BOUNDED), two, scoring="neg_log_loss"
    ).score(X, [SECRET] * 60),
    "attack": lambda: read_records(SparseRegressor(), X, planted_y),
}


def refused(call):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    return caught.value


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("door", OF_ROWS)
def test_no_cell_of_a_row_is_carried(door, rows):
    error = refused(lambda: OF_ROWS[door](ROWS[rows]))
    assert SECRET not in told_by(error)
    assert SECRET.encode() not in pickle.dumps(error)


@pytest.mark.parametrize("door", OF_TARGETS)
def test_no_target_is_carried(door):
    error = refused(OF_TARGETS[door])
    assert SECRET not in told_by(error)
    assert SECRET.encode() not in pickle.dumps(error)


def test_scores_are_those_of_scikit_learn():
    from sklearn.metrics import accuracy_score, r2_score

    weights = rng.uniform(0, 1, 60)
    assert numbers.score(X, y, weights) == r2_score(y, numbers.predict(X), sample_weight=weights)
    assert classes.score(X, two) == accuracy_score(two, classes.predict(X))
    with pytest.raises(ValueError, match="X has 2 features, but SparseRegressor is expecting 3"):
        numbers.score(X[:, :2], y)


FILES = {
    "t.csv": f"a,b,y\n1,2,3\n4,{SECRET},6\n".encode(),
    "quoted.csv": f'a,b,y\n1,2,3\n4,"{SECRET},6\n'.encode(),
    "short.csv": f"a,b,y\n1,2,3\n{SECRET}\n".encode(),
    "bytes.csv": f"a,b,y\n1,2,3\n4,{SECRET}\xff,6\n".encode("latin-1"),
    "t.svm": f"1 1:2 2:{SECRET}\n".encode(),
    "y.svm": f"{SECRET} 1:2\n".encode(),
    "t.parquet": b"PAR1" + SECRET.encode() * 9 + b"PAR1",
    "t.npz": b"PK\x03\x04" + SECRET.encode() * 9,
}


@pytest.mark.parametrize("name", FILES)
def test_no_cell_of_a_file_is_carried(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(FILES[name])
    error = refused(lambda: read_table(path, "y" if path.suffix in (".csv", ".parquet") else None))
    assert SECRET not in told_by(error)


SCHEMA = {"columns": {"y": {"role": "target", "bounds": [0, 1]}, "a": {"bounds": [0, 1]}}}


@pytest.mark.parametrize(
    "call",
    [
        lambda data: Schema.from_dict(SCHEMA).rows(data),
        lambda data: SparseRegressor.from_schema(SCHEMA).fit(data),
        lambda data: draft(data, "y"),
        lambda data: estimate(data, "y", epsilon=1.0),
        lambda data: count_faults(data, Schema.from_dict(SCHEMA), epsilon=1.0),
    ],
    ids=["rows", "fit", "draft", "estimate", "counts"],
)
@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame({"a": [SECRET] * 3, "b": [SECRET] * 3}),
        {"a": SECRET},
        [SECRET],
        sparse.csr_array(X),
        "t.csv",
        "t.parquet",
    ],
    ids=["frame", "dict", "list", "matrix", "csv", "parquet"],
)
def test_no_cell_of_a_table_is_carried(call, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text('a,b\n"' + SECRET * 40_000)
    (tmp_path / "t.parquet").write_bytes(FILES["t.parquet"])
    assert SECRET not in told_by(refused(lambda: call(data)))


def test_a_schema_is_as_private_as_the_data_that_it_was_drafted_from(tmp_path):
    for at, content in enumerate((f'[columns.y]\nbounds = ["{SECRET}', f"x = {SECRET}", f"a = '{SECRET}'\xff")):
        (tmp_path / f"{at}.toml").write_bytes(content.encode("latin-1"))
        assert SECRET not in told_by(refused(lambda at=at: Schema.read(tmp_path / f"{at}.toml")))


@pytest.mark.parametrize(("x", "target"), [([SECRET, 1, 2], 0.5), ([1, 2, 3], SECRET), ([{SECRET}], 0.5)])
def test_no_record_of_a_person_is_carried(x, target):
    from thresher.local import Server

    task: SurveyTask = Server(LocalSparseRegressor(1, **NUMBERS), people=1000, features=3).task
    assert SECRET not in told_by(refused(lambda: Client(task, x, target)))
