"""The Dask engine is the same linear algebra as in memory, whichever worker does it, however often."""

import os
import pickle
import signal

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("distributed")

import dask.array as da
from dask.sizeof import sizeof
from distributed import Client, LocalCluster

from thresher import SparseRegressor
from thresher.algorithms import DPIGHT
from thresher.data.dask import Collection, Partitions, Sealed, apply_to_rows
from thresher.privacy.bounds import Bounds
from thresher.vaults import CentralVault
from thresher.vaults.clipping import clip_rows
from thresher.vaults.engines import dask as dask_engine
from thresher.vaults.engines import engine_for
from waiting import eventually

N, D = 41, 12
BOUNDS = Bounds(feature=0.7, row=1.5)
CHUNKS = ((1, 9, 0, 17, 3, 11), (5, 7))  # of unequal rows, none in one, and not all columns together


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.6)


@pytest.fixture(params=["dense", "sparse"])
def form(request):
    return np.array if request.param == "dense" else sparse.csr_array


@pytest.fixture(params=[0.0, 2.5], ids=["no intercept", "intercept"])
def constant(request):
    return request.param


def in_memory(rows, form, constant):
    return engine_for(clip_rows(form(rows), BOUNDS), constant)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """A few rows are enough for a piece, so that there are as many as partitions."""
    monkeypatch.setattr(dask_engine, "ANSWER", 0)


def on_workers(rows, form, constant, client):
    X = da.from_array(rows, chunks=CHUNKS).rechunk({1: -1}).map_blocks(form, meta=np.empty((0, 0)))
    parts = Collection(X, client).partitions([np.float64])
    return engine_for(apply_to_rows(clip_rows, parts, BOUNDS), constant)


def same(found, expected):
    found, expected = (a.toarray() if sparse.issparse(a) else a for a in (found, expected))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def agree(engine, expected):
    d, r = expected.dimension, np.cos(np.arange(N))
    theta = np.zeros((d, 2))
    theta[[0, -1], 0], theta[-1, 1] = [1.0, -2.0], 3.0
    assert engine.dimension == d
    same(engine.product(theta[:, 0]), expected.product(theta[:, 0]))
    same(engine.product(theta), expected.product(theta))
    same(engine.product(np.zeros(d)), np.zeros(N))
    same(engine.transposed_product(r), expected.transposed_product(r))
    same(engine.transposed_product(np.column_stack([r, -r])), expected.transposed_product(np.column_stack([r, -r])))
    same(engine.mean_squares(N), expected.mean_squares(N))
    same(engine.mean_squares(N, np.abs(r)), expected.mean_squares(N, np.abs(r)))
    same(engine.gram(np.abs(r)), expected.gram(np.abs(r)))
    same(engine.row_norms(), expected.row_norms())
    labels = np.arange(N) % 3
    for found, part in zip(engine.parts(labels, 3), expected.parts(labels, 3), strict=True):
        assert sparse.issparse(found) == sparse.issparse(part)
        same(found, part)


def test_every_question_has_the_answer_of_the_engine_in_memory(rows, form, constant, client):
    agree(on_workers(rows, form, constant, client), in_memory(rows, form, constant))


@pytest.mark.parametrize("wild", [1e-200, 1e300, 0.0], ids=str)
def test_rows_have_the_bits_they_have_in_memory_whatever_lies_in_their_partition(rows, form, constant, client, wild):
    """Row-locality (docs/guarantees.md): not even an ulp may depend on other rows, or on how they are shared out."""
    expected, theta = in_memory(rows, form, constant), np.linspace(-1, 1, D + (constant > 0))
    changed = rows.copy()
    changed[3] = wild
    engine, support = on_workers(changed, form, constant, client), np.array([0, 5, 7])
    weights = np.array([[1.3, 0.2], [-0.7, 2.1], [0.1, 0.9]])
    projected, alike = (rows.projected(support, weights) for rows in (engine, expected))
    for found, alone in (
        (engine.row_norms(), expected.row_norms()),
        (engine.product(theta), expected.product(theta)),
        (engine.columns(support, 1.7).row_norms(), expected.columns(support, 1.7).row_norms()),
        (projected.row_norms(), alike.row_norms()),
        *((projected.product(axis), alike.X @ axis) for axis in np.eye(2)),
    ):
        np.testing.assert_array_equal(np.delete(found, 3), np.delete(alone, 3))


@pytest.mark.parametrize("support", [[3], [7, 0, 4], [-1]], ids=str)
def test_columns_are_an_engine_over_those_columns(rows, form, constant, support, client):
    support, factors = np.array(support), 1 / (1.0 + np.arange(len(support)))
    engine, expected = on_workers(rows, form, constant, client), in_memory(rows, form, constant)
    agree(engine.columns(support, factors), expected.columns(support, factors))


@pytest.mark.parametrize("support", [[3], [7, 0, 4], [-1, 2]], ids=str)
def test_projected_rows_are_an_engine_over_their_products(rows, form, constant, support, client):
    """Of two columns at least, as ``agree`` wants them."""
    support = np.array(support)
    weights = np.random.default_rng(0).normal(size=(len(support), 2))
    engine, expected = on_workers(rows, form, constant, client), in_memory(rows, form, constant)
    agree(engine.projected(support, weights), expected.projected(support, weights))


def keys_on(client, count):
    """The keys that workers hold, once they are ``count``: they are dropped some time after nobody wants them."""

    def keys():
        return {key for keys in client.has_what().values() for key in keys}

    eventually(lambda: len(keys()) == count)
    return keys()


def test_blocks_and_the_latest_answers_stay_on_the_workers_while_they_are_wanted(rows, client):
    engine = on_workers(rows, np.array, 1.0, client)
    engine.row_norms()
    count = 2 * len(engine.blocks)
    assert {block.key for block in engine.blocks} <= keys_on(client, count)
    narrow = engine.columns(np.arange(3))
    narrow.row_norms()
    assert len(keys_on(client, 2 * count)) == 2 * count
    del narrow
    assert len(keys_on(client, count)) == count
    del engine
    assert keys_on(client, 0) == set()


@pytest.mark.parametrize("pieces", [64, 3])
def test_a_sum_has_the_same_bits_however_the_pieces_are_shared_out(rows, form, client, pieces, monkeypatch):
    monkeypatch.setattr(dask_engine, "PIECES", pieces)
    sums, blocks = [], []
    for threads, largest in [(1, 2**27), (2, 2**27), (50, 2**27), (1, 1.0)]:
        monkeypatch.setattr(dask_engine, "_room", lambda _, room=(threads, largest): room)
        engine = on_workers(rows, form, 1.0, client)
        sums.append(engine.transposed_product(np.cos(np.arange(N))))
        blocks.append(len(engine.blocks))
    assert blocks[0] == 1 < blocks[1] < blocks[2]
    for total in sums:
        np.testing.assert_array_equal(total, sums[0])


def test_neighbours_go_together_up_to_a_size():
    assert dask_engine.runs_of([1] * 8, 4.0) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert dask_engine.runs_of([1] * 4, 0.5) == [[0], [1], [2], [3]]
    assert dask_engine.runs_of([50, 1, 1], 10.0) == [[0], [1, 2]]
    assert dask_engine.runs_of([3], 0.1) == [[0]]


def test_partitions_that_are_smaller_than_their_answers_go_together(rows, client, monkeypatch):
    monkeypatch.setattr(dask_engine, "ANSWER", 4 * rows.nbytes)
    assert on_workers(rows, np.array, 1.0, client).slices == [[slice(0, N)]]


def test_many_answers_are_fetched_a_few_at_a_time(rows, client, monkeypatch):
    expected = in_memory(rows, np.array, 1.0).transposed_product(np.ones(N))
    monkeypatch.setattr(dask_engine, "BATCH", 1)
    monkeypatch.setattr(dask_engine, "_room", lambda _: (50, 1.0))
    same(on_workers(rows, np.array, 1.0, client).transposed_product(np.ones(N)), expected)


def test_a_block_says_how_large_it_is_and_nothing_else(rows):
    X = sparse.random_array((200, 300), density=0.3, random_state=np.random.default_rng(0), format="csc")
    block = Sealed([engine_for(X, 0.0)])
    assert X.data.nbytes < sizeof(block) < 2 * X.data.nbytes  # and the row numbers
    assert rows.nbytes < sizeof(Sealed(rows)) < rows.nbytes + 500
    assert repr(block) == repr(Sealed(rows)) == "<sealed>"
    copy = pickle.loads(pickle.dumps(block))
    np.testing.assert_array_equal(copy.value[0].product(np.ones(300)), block.value[0].product(np.ones(300)))


def test_a_worker_that_cannot_answer_is_named_by_the_kind_of_its_error_alone(rows, client):
    engine = on_workers(rows, np.array, 1.0, client)
    engine.slices = [slices[:-1] for slices in engine.slices]  # so that arguments and pieces do not match
    with pytest.raises(RuntimeError, match=r"could not compute its part of an answer: ValueError$"):
        engine.row_norms()


def test_partitions_that_are_nowhere_else_can_be_used_once(rows, client):
    parts = Collection(da.from_array(rows), client).partitions([np.float64])
    engine_for(parts, 0.0)
    assert isinstance(parts, Partitions)
    assert parts.parts == []


def test_a_fit_that_loses_a_worker_gives_the_same_model_to_the_last_bit(monkeypatch):
    """The rows that were on it are computed again, and counted once."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (4000, 30)), rng.uniform(-1, 1, 4000)
    rows = da.from_array(X, chunks=(500, -1))
    model = SparseRegressor(
        3, feature_bound=1.0, target_bound=1.0, algorithm=DPIGHT(iterations=6), random_state=0, epsilon=4.0
    )
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        undisturbed = model.fit(rows, y).coef_
        ask, killed = CentralVault.gradient, []

        def kill_then_ask(vault, *question):
            if len(vault.answers) == 3:
                victim, process = min(client.run(os.getpid).items())
                killed.extend(client.has_what()[victim])
                os.kill(process, signal.SIGKILL)
            return ask(vault, *question)

        monkeypatch.setattr(CentralVault, "gradient", kill_then_ask)
        disturbed = model.fit(rows, y).coef_
    assert killed, "it held no block"
    assert np.any(undisturbed)
    np.testing.assert_array_equal(disturbed, undisturbed)
