"""The compiled loops and SciPy do the same work; the loops refuse what does not fit together."""

import pickle
import shutil
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from thresher import SparseClassifier, SparseRegressor
from thresher.privacy.bounds import Bounds
from thresher.vaults import kernels
from thresher.vaults.clipping import clip_rows
from thresher.vaults.engines import engine_for
from thresher.vaults.engines import sparse as engine_module

LOOPS = kernels.compiled()
compiled_only = pytest.mark.skipif(LOOPS is None, reason="the compiled loops could not be built here")


def rows_of(kind, n=300, d=40, seed=0):
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n, d), density=0.2, random_state=rng, format="csr", data_sampler=rng.standard_normal)
    return X.astype(kind)


@compiled_only
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("width", [2, 4, 8], ids=["16 bits", "32 bits", "64 bits"])
@pytest.mark.parametrize("constant", [0.0, 0.5])
@pytest.mark.parametrize("outputs", [None, 3])
def test_loops_and_scipy_agree_for_every_kind_of_number_and_index(monkeypatch, kind, width, constant, outputs):
    X = rows_of(kind)
    if width > 2:
        monkeypatch.setattr(engine_module, "SHORT", 0)
    index = np.int64 if width > 4 else np.int32
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    rows = clip_rows(X, Bounds(row=100.0))
    ours = engine_for(rows.copy(), constant)
    assert ours._rows.dtype.itemsize == width
    monkeypatch.setattr(kernels, "_loops", None)
    scipys = engine_for(rows.copy(), constant)
    assert scipys._loops is None
    rng = np.random.default_rng(1)
    shape = () if outputs is None else (outputs,)
    r, theta = rng.normal(size=(300, *shape)), rng.normal(size=(ours.dimension, *shape))
    theta[rng.random(len(theta)) < 0.5] = 0
    np.testing.assert_allclose(ours.transposed_product(r), scipys.transposed_product(r), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ours.product(theta), scipys.product(theta), rtol=1e-12, atol=1e-12)
    support = np.array([5, 0, 17])
    np.testing.assert_allclose(
        ours.columns(support, 2.0).gram(np.ones(300)), scipys.columns(support, 2.0).gram(np.ones(300)), rtol=1e-6
    )


@compiled_only
@pytest.mark.parametrize(
    "model", [SparseRegressor(5, target_bound=2.0), SparseClassifier(5)], ids=["numbers", "classes"]
)
@pytest.mark.parametrize("algorithm", ["pursuit", "dp-ight", "peeling", "two-stage", "output-perturbation"])
def test_a_fit_is_the_same_with_and_without_the_loops(monkeypatch, model, algorithm):
    X = rows_of(np.float64, 400, 30)
    y = np.clip((X @ np.ones(30)), -2, 2)
    y = (y > 0).astype(int) if isinstance(model, SparseClassifier) else y
    model.set_params(algorithm=algorithm, epsilon=5.0, delta=1e-6, row_bound=3.0, random_state=0)
    ours = model.fit(X, y).coef_.copy()
    monkeypatch.setattr(kernels, "_loops", None)
    np.testing.assert_allclose(model.fit(X, y).coef_, ours, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_array], ids=["dense", "csr", "csc"])
@pytest.mark.parametrize("algorithm", ["pursuit", "dp-ight", "peeling"])
def test_rows_in_single_precision_are_kept_and_give_the_same_model_to_six_digits(form, algorithm):
    X = rows_of(np.float32, 400, 30).toarray()
    y = np.clip(X[:, 0] - X[:, 1], -2, 2)
    model = SparseRegressor(
        5, epsilon=20.0, delta=1e-6, row_bound=3.0, target_bound=2.0, algorithm=algorithm, random_state=0
    )
    double = model.fit(form(X.astype(np.float64)), y).coef_.copy()
    np.testing.assert_allclose(model.fit(form(X), y).coef_, double, atol=1e-4)


@compiled_only
def test_single_precision_takes_half_the_memory():
    held = [engine_for(clip_rows(rows_of(kind), Bounds(row=1.0)), 0.5)._values for kind in (np.float32, np.float64)]
    assert [values.dtype for values in held] == [np.float32, np.float64]
    assert 2 * held[0].nbytes == held[1].nbytes


def test_an_engine_survives_a_journey():
    engine = engine_for(clip_rows(rows_of(np.float64), Bounds(row=1.0)), 0.5)
    r = np.arange(300.0)
    again = pickle.loads(pickle.dumps(engine))
    np.testing.assert_array_equal(again.transposed_product(r), engine.transposed_product(r))
    assert "array" not in repr(engine)


@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("array", ["indices", "indptr"])
@pytest.mark.parametrize("bad", [-1, 10**6])
def test_a_matrix_whose_arrays_describe_none_is_refused_before_anything_is_spent(form, array, bad):
    X = rows_of(np.float64).asformat(form)
    getattr(X, array)[3] = bad
    with pytest.raises(ValueError, match="out of range"):
        clip_rows(X, Bounds(row=1.0))


@compiled_only
def test_the_loops_refuse_what_does_not_fit_together():
    values, rows, starts = np.ones(3), np.zeros(3, np.uint16), np.array([0, 3])
    r, out = np.ones(2), np.zeros(1)
    LOOPS.column_dots(values, rows, starts, r, out, 0, 1)
    assert out[0] == 3
    for first, last in ((0, 2), (-1, 1), (1, 0)):
        with pytest.raises(ValueError, match="do not fit"):
            LOOPS.column_dots(values, rows, starts, r, out, first, last)
    with pytest.raises(ValueError, match="do not fit"):
        LOOPS.column_dots(values, rows, np.array([0, 4]), r, out, 0, 1)
    with pytest.raises(ValueError, match="do not fit"):
        LOOPS.add_columns(values, rows, starts, np.array([1]), np.ones(1), np.zeros(2))
    with pytest.raises((TypeError, BufferError)):
        LOOPS.column_dots(values, rows, starts, [1.0], out, 0, 1)
    with pytest.raises(ValueError, match="never started"):
        LOOPS.Walk.__new__(LOOPS.Walk).sort(1)
    out.flags.writeable = False
    with pytest.raises((ValueError, BufferError)):
        LOOPS.column_dots(values, rows, starts, r, out, 0, 1)


@pytest.mark.parametrize("algorithm", ["pursuit", "dp-ight"])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_fit_holds_one_copy_of_the_rows_and_little_else(algorithm, intercept):
    """2 million entries in CSR, 24 MB; the copy by columns is as large, all else is vectors of n or d numbers, of which
    there are fewer than 40 at a time, and blocks."""
    rng = np.random.default_rng(0)
    n, d, per_row = 40_000, 20_000, 50
    columns = np.sort(rng.integers(0, d, (n, per_row), dtype=np.int32), axis=1).ravel()
    X = sparse.csr_array((rng.normal(size=n * per_row), columns, np.arange(0, n * per_row + 1, per_row)), shape=(n, d))
    size = X.data.nbytes + X.indices.nbytes
    model = SparseRegressor(10, row_bound=5.0, target_bound=1.0, algorithm=algorithm, fit_intercept=intercept)
    y = rng.uniform(-1, 1, n)
    model.fit(X[:100], y[:100])  # what is imported or cached the first time does not count
    tracemalloc.start()
    try:
        model.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 1.1 * size + 40 * 8 * max(n, d) + 10e6


def test_the_loops_are_there_where_a_compiler_is():
    """So that nothing above is skipped unnoticed on a machine that could have built them."""
    assert LOOPS is not None or shutil.which("cc") is None
