"""Dask collections through the front door: the same model and certificate as in memory, the same refusals, no leaks."""

import json
import logging
import math
import pickle
import subprocess
import sys
import tempfile
import textwrap
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

pytest.importorskip("distributed")
pytest.importorskip("pandas")

import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import pandas
import psutil
from distributed import Client, LocalCluster

from thresher import LocalSparseRegressor, SparseClassifier, SparseRegressor
from thresher.algorithms import REGISTRY
from thresher.data.dask import dask_client, map_rows
from waiting import eventually

pytestmark = pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")

N, D, S = 300, 20, 3
SECRET = 31337.4242


@pytest.fixture(scope="module")
def cluster():
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def client(cluster):
    with cluster.as_current():
        yield cluster


@pytest.mark.parametrize("algorithm", ["pursuit", "dp-ight", "frank-wolfe", "two-stage", "output-perturbation"])
def test_no_rows_at_all_are_fitted_where_their_number_is_declared(client, algorithm):
    """A refusal would tell an empty table from one with a row."""
    public = {"epsilon": 2.0, "delta": 1e-6, "feature_bound": 1.0, "target_bound": 1.0}
    public |= {"adjacency": "add-remove", "n_public": 100}
    for count in (0, 1):
        X = da.zeros((count, 4), chunks=(max(count, 1), 4))
        model = SparseRegressor(2, algorithm=algorithm, **public).fit(X, np.zeros(count))
        assert model.certificate_.n_samples == 100


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, D)) * (rng.random((N, D)) < 0.5)
    return X, X[:, :3] @ [2.0, -2.0, 2.0] + 0.3 * rng.normal(size=N)


def regressor(**facts):
    facts = {"epsilon": 2.0, "delta": 1e-6, "feature_bound": 1.0, "random_state": 0, "algorithm": "dp-ight", **facts}
    return SparseRegressor(S, target_bound=6.0, **facts)


def classifier(**facts):
    facts = {"epsilon": 2.0, "delta": 1e-6, "feature_bound": 1.0, "random_state": 0, "algorithm": "dp-ight", **facts}
    return SparseClassifier(S, **facts)


def parts(X, form=np.array, chunks=(70, 90, 0, 140)):
    dense = da.from_array(X, chunks=(chunks, -1))
    return dense if form is np.array else dense.map_blocks(form, meta=form(np.empty((0, 0))))


def same_model(one, other):
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(one.intercept_, other.intercept_, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(one.support_, other.support_)
    certificates = (replace(model.certificate_, model=None, notes=()).to_json() for model in (one, other))
    assert len(set(certificates)) == 1


# -- the same model -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REGISTRY)
@pytest.mark.parametrize(
    ("loss", "form"),
    [
        ("squared", np.array),
        ("squared", sparse.csr_array),
        ("logistic", np.array),
        ("three classes", sparse.csr_array),
    ],
)
def test_every_algorithm_gives_the_model_and_the_certificate_it_gives_in_memory(name, loss, form, rows, client):
    X, y = rows
    if name == "ight":  # which has thousands of rounds, each like the one before
        algorithm, epsilon = REGISTRY[name](iterations=5), math.inf
    else:
        algorithm, epsilon = name, 8.0
    y = {"squared": y, "logistic": y > 0, "three classes": np.digitize(y, [-0.5, 0.5])}[loss]
    model = (regressor if loss == "squared" else classifier)(algorithm=algorithm, epsilon=epsilon)
    # sparse rows in memory are followed along the walk of Frank-Wolfe, by another sampler of the same law
    here = clone(model).fit(X if name == "frank-wolfe" else form(X), y)
    there = clone(model).fit(parts(X, form), da.from_array(y, chunks=111))
    same_model(there, here)
    assert here.support_.size > 0


@pytest.mark.parametrize("form", [np.array, sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_hardened_noise_and_a_row_bound(form, rows, client):
    X, y = rows
    model = regressor(hardened=True, row_bound=1.0)
    same_model(clone(model).fit(parts(X, form), y), clone(model).fit(form(X), y))


def test_blocks_of_columns_are_put_together(rows, client):
    X, y = rows
    same_model(regressor().fit(da.from_array(X, chunks=(100, 6)), y), regressor().fit(X, y))
    halves = [parts(X[:, half], sparse.csr_matrix) for half in (slice(0, 8), slice(8, None))]
    same_model(regressor().fit(da.concatenate(halves, axis=1), y), regressor().fit(sparse.csr_matrix(X), y))


def test_rows_of_unknown_number_are_counted(rows, client):
    X, y = rows
    unknown = parts(X)[da.from_array(np.arange(N) < 250, chunks=((70, 90, 0, 140),))]
    assert math.isnan(unknown.shape[0])
    same_model(regressor().fit(unknown, y[:250]), regressor().fit(X[:250], y[:250]))


def test_whole_numbers_and_single_precision(rows, client):
    X, y = rows
    for dtype in (np.float32, np.int8):
        same_model(regressor().fit(parts(X.astype(dtype)), y), regressor().fit(X.astype(dtype), y))


@pytest.fixture(scope="module")
def frame(rows):
    X, y = rows
    frame = pandas.DataFrame(X, columns=[f"gene {j}" for j in range(D)])
    return frame.assign(flag=X[:, 0] > 0, kind=np.where(y > 0, "ill", "well"), stay=y)


def test_a_data_frame_brings_its_names(frame, client):
    table = dd.from_pandas(frame, npartitions=4)
    features = [name for name in frame.columns if name not in ("kind", "stay")]
    here = regressor().fit(frame[features], frame["stay"])
    there = regressor().fit(table[features], table["stay"])
    same_model(there, here)
    assert there.feature_names_in_.tolist() == features
    assert there.n_features_in_ == D + 1
    np.testing.assert_allclose(there.predict(table[features]).compute(), here.predict(frame[features]))
    labelled = classifier().fit(table[features], table["kind"])
    same_model(labelled, classifier().fit(frame[features], frame["kind"]))
    assert labelled.classes_.tolist() == ["ill", "well"]
    with pytest.raises(ValueError, match="feature names should match"):
        there.predict(table[features[::-1]])


def test_predictions_are_dask_arrays_that_nobody_has_computed(rows, client):
    X, y = rows
    for kinds in ([0.0], [-0.5, 0.5]):
        model = classifier().fit(X, np.digitize(y, kinds))
        for method in (model.predict, model.predict_proba, model.decision_function):
            for form in (np.array, sparse.csr_array):
                lazy = method(parts(X, form))
                assert isinstance(lazy, da.Array)
                expected = method(X)
                assert lazy.shape == expected.shape
                assert lazy.dtype == expected.dtype
    np.testing.assert_allclose(lazy.compute(), expected, rtol=1e-12)
    asked = []
    da.map_blocks(asked.append, parts(X), meta=np.empty((0, 0)))
    map_rows(lambda block: asked.append(block) or np.zeros(len(block)), parts(X))
    assert len(asked) == 1  # one row of zeros, to see what an answer looks like


def test_a_fitted_model_keeps_nothing_of_dask(rows, client):
    X, y = rows
    model = regressor().fit(parts(X), y)
    copy = pickle.loads(pickle.dumps(model))
    assert b"distributed" not in pickle.dumps(model)
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    assert clone(model).fit(parts(X), y).certificate_.verify()


# -- refusals -----------------------------------------------------------------------------------------------------


@pytest.fixture
def log(monkeypatch):
    """What Dask logs, from all of its loggers."""
    messages = []

    class Catch(logging.Handler):
        def emit(self, record):
            messages.append(self.format(record))

    handler = Catch()
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    for name in ("", "distributed", *names):
        logging.getLogger(name).addHandler(handler)
    yield messages
    for name in ("", "distributed", *names):
        logging.getLogger(name).removeHandler(handler)


def fails(x):
    raise ValueError(f"cannot do {x}")


def test_the_log_that_is_searched_would_show_a_value(client, log):
    with pytest.raises(ValueError, match="cannot do"):
        client.submit(fails, SECRET).result()
    assert any(str(SECRET) in message for message in log)


def spoilt(rows, value):
    X = rows[0].astype(object if isinstance(value, str) else float)
    X[200, 5] = value
    X[201, 5] = SECRET  # beside the cell that is wrong
    return X


BAD = {"text": "31337.4242 kg", "missing": math.nan, "infinite": math.inf}


@pytest.mark.parametrize(
    ("form", "kind"),
    [(form, kind) for form in ("array", "sparse", "frame") for kind in BAD if (form, kind) != ("sparse", "text")],
)
@pytest.mark.parametrize("embedded", [False, True], ids=["cluster", "embedded"])
def test_a_bad_cell_is_refused_by_column_and_shown_nowhere(kind, form, embedded, rows, cluster, log, capfd):
    X = spoilt(rows, BAD[kind])
    if form == "frame":
        X = dd.from_pandas(pandas.DataFrame(X, columns=[f"gene {j}" for j in range(D)]), npartitions=3)
        where = "'gene 5'"
    else:
        X, where = parts(X, sparse.csr_array if form == "sparse" else np.array), "5"
    model, words = regressor(), f"X: column {where} has missing or infinite|X: column {where} holds text"
    with nullcontext() if embedded else cluster.as_current(), pytest.raises(ValueError, match=words) as caught:
        model.fit(X, rows[1])
    assert not hasattr(model, "certificate_")
    shown = "".join([*log, str(caught.value), *capfd.readouterr()])
    assert "31337" not in shown


def test_a_bad_cell_in_what_is_predicted_is_shown_nowhere(rows, client, log):
    lazy = regressor().fit(*rows).predict(parts(spoilt(rows, math.nan)))
    with pytest.raises(ValueError, match="Input X contains NaN"):
        lazy.compute()
    assert log  # Dask says that a task failed
    assert "31337" not in "".join(log)


def test_a_fit_logs_nothing_and_leaves_nothing_on_the_workers(rows, client, log):
    regressor().fit(parts(rows[0]), rows[1])
    assert log == []
    assert eventually(lambda: not any(client.has_what().values()))


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (da.zeros(5), np.zeros(5), "expected a Dask array or DataFrame.*1 dimension"),
        (da.zeros((5, 2, 2)), np.zeros(5), "3 dimension"),
        (dask.delayed(np.zeros)((5, 2)), np.zeros(5), "expected a Dask array or DataFrame.*got Delayed"),
        (da.zeros((5, 2)), np.zeros(4), r"inconsistent numbers of samples: \[5, 4\]"),
        (da.zeros((5, 2)), da.zeros(6), r"inconsistent numbers of samples: \[5, 6\]"),
        (da.zeros((5, 2)), np.array([0, 1, 2, 3, math.nan]), "Input y contains NaN"),
        (da.zeros((5, 2)), np.array(["a"] * 5), "this one holds text"),
        (da.zeros((5, 2)), None, "target y is None"),
        (da.zeros((1, 2)), np.zeros(1), "minimum of 2 is required"),
        (da.zeros((5, 0)), np.zeros(5), "0 feature"),
        (da.zeros((5, 2), dtype=complex), np.zeros(5), "Complex data not supported"),
        (
            da.zeros((5, 2)).map_blocks(lambda b: b[:, :1], meta=np.empty((0, 0))),
            np.zeros(5),
            "1 columns where X has 2",
        ),
    ],
)
def test_what_is_refused_in_memory_is_refused_here(X, y, words, client):
    with pytest.raises(ValueError, match=words):
        regressor().fit(X, y)


def test_what_only_looks_like_dask_is_taken_as_it_is(rows):
    class Labelled(np.ndarray):
        def __dask_graph__(self):
            return None

    same_model(regressor().fit(rows[0].view(Labelled), rows[1]), regressor().fit(*rows))


def test_an_unknown_number_of_columns_is_refused(rows, client):
    X = parts(rows[0])
    unknown = X[:, da.from_array(np.arange(D) > 2)]
    with pytest.raises(ValueError, match=r"number of columns.*compute_chunk_sizes"):
        regressor().fit(unknown, rows[1])


def test_the_local_model_takes_rows_in_memory_only(rows, client):
    with pytest.raises(TypeError, match=r"LocalSparseRegressor takes rows in memory; give X\.compute\(\)"):
        LocalSparseRegressor(S, 1.0, feature_bound=1.0, target_bound=6.0).fit(parts(rows[0]), rows[1])


def test_without_distributed_the_error_says_what_to_install(rows, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install 'thresher\[dask\]'"):
        regressor().fit(parts(rows[0]), rows[1])


# -- without a cluster --------------------------------------------------------------------------------------------


def listening():
    return {c.laddr.ip for c in psutil.Process().net_connections() if c.status == psutil.CONN_LISTEN}


def test_an_embedded_client_is_seen_by_nobody_and_leaves_nothing(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = listening()
    with dask_client() as client:
        assert listening() - before <= {"127.0.0.1"}
        (folder,) = tmp_path.iterdir()
        assert folder.stat().st_mode & 0o077 == 0
        (worker,) = client.scheduler_info()["workers"].values()
        assert worker["local_directory"].startswith(str(folder))
        with pytest.raises(ValueError, match="No clients found"):
            distributed.default_client()
    assert client.status == "closed"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("bad", [False, True])
def test_a_fit_without_a_client_starts_one_and_closes_it(bad, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    if bad:
        with pytest.raises(ValueError, match="sparsity"):
            regressor().set_params(sparsity=D + 1).fit(parts(rows[0]), rows[1])
    else:
        same_model(regressor().fit(parts(rows[0]), rows[1]), regressor().fit(*rows))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="No clients found"):
        distributed.default_client()


LARGER_THAN_MEMORY = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_RSS, (80_000_000,) * 2)  # what Dask takes for the memory of the machine
import dask.array as da, numpy as np
from thresher import SparseRegressor
from thresher.algorithms import DPIGHT

def rows(block_info=None):
    return np.random.default_rng(block_info[None]["chunk-location"][0]).uniform(-1, 1, (250, 1000))

def peak():
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))

model = SparseRegressor(3, feature_bound=1.0, target_bound=1.0, algorithm=DPIGHT(iterations=2), random_state=0)
X = da.map_blocks(rows, chunks=((250,) * 160, (1000,)), dtype=float, meta=np.empty((0, 0)))
y = np.sin(np.arange(40_000))
if sys.argv[1] == "memory":
    X = X.compute()
before = peak()
model.fit(X, y)
print(json.dumps({"coef": model.coef_.tolist(), "bytes": X.nbytes, "peak": peak(), "before": before}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_data_larger_than_memory_are_fitted_in_bounded_memory():
    """320 MB of rows with a memory of 80 MB. Only the fit counts: Python and its packages alone take 200 MB."""
    runs = {}
    for where in ("disk", "memory"):
        code = textwrap.dedent(LARGER_THAN_MEMORY)
        run = subprocess.run([sys.executable, "-c", code, where], capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        runs[where] = json.loads(run.stdout)
    disk, memory = runs["disk"], runs["memory"]
    np.testing.assert_allclose(disk["coef"], memory["coef"], rtol=1e-9, atol=1e-9)
    assert np.any(disk["coef"])
    assert disk["bytes"] == 320_000_000
    assert disk["peak"] - disk["before"] < disk["bytes"] / 2
    assert memory["peak"] - memory["before"] > disk["bytes"] / 2  # the measure would notice


@pytest.mark.parametrize("algorithm", ["dp-ight", "pursuit", "output-perturbation"])
@pytest.mark.parametrize("form", [np.array, sparse.csr_array], ids=["dense", "sparse"])
def test_people_with_several_rows_give_the_same_model_as_in_memory(algorithm, form, rows, client):
    X, y = rows
    groups = np.array([f"p{at % 110}" for at in range(N)])
    lazy = da.from_array(groups, chunks=50) if form is np.array else groups
    here, there = (
        regressor(algorithm=algorithm).fit(X, y, groups=groups),
        regressor(algorithm=algorithm).fit(parts(X, form), y, groups=lazy),
    )
    same_model(here, there)
    assert (there.certificate_.unit, there.certificate_.n_samples) == ("person", 110)


def test_people_with_several_rows_in_a_frame(rows, client):
    X, y = rows
    frame = pandas.DataFrame(X, columns=[f"gene {j}" for j in range(D)]).assign(y=y, who=np.arange(N) % 110)
    table = dd.from_pandas(frame, npartitions=4)
    model = regressor().fit(table.drop(columns=["y", "who"]), table["y"], groups=table["who"])
    same_model(model, regressor().fit(X, y, groups=frame["who"]))
