"""Both engines are plain linear algebra; the sparse one never makes a dense matrix."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from thresher import SparseClassifier
from thresher.privacy.bounds import Bounds
from thresher.vaults.clipping import clip_rows
from thresher.vaults.engines import engine_for

FORMS = {"dense": np.array, "csc": sparse.csc_array, "csr": sparse.csr_array, "coo": sparse.coo_array}
NO_CLIP = Bounds(feature=1e6)
N, D = 30, 12


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.4)


@pytest.fixture(params=[0.0, 2.5], ids=["no intercept", "intercept"])
def constant(request):
    return request.param


@pytest.fixture
def matrix(rows, constant):
    """What the engine stands for."""
    return np.hstack([rows, np.full((N, 1), constant)]) if constant else rows


@pytest.fixture(params=FORMS)
def engine(request, rows, constant):
    return engine_for(clip_rows(FORMS[request.param](rows), NO_CLIP), constant)


@pytest.mark.parametrize("nonzeros", [0, 1, 3, 11])
def test_product_agrees_with_numpy_for_any_support(engine, matrix, nonzeros):
    rng = np.random.default_rng(nonzeros)
    theta = np.zeros(matrix.shape[1])
    theta[rng.choice(len(theta), nonzeros, replace=False)] = rng.normal(size=nonzeros)
    np.testing.assert_allclose(engine.product(theta), matrix @ theta, rtol=1e-12, atol=1e-14)


def test_transposed_product_agrees_with_numpy(engine, matrix):
    r = np.random.default_rng(1).normal(size=N)
    np.testing.assert_allclose(engine.transposed_product(r), matrix.T @ r, rtol=1e-12, atol=1e-14)


def test_sums_of_squares_and_products_agree_with_numpy(engine, matrix):
    w = np.random.default_rng(1).random(N)
    np.testing.assert_allclose(engine.mean_squares(7), (matrix**2).sum(axis=0) / 7, rtol=1e-12)
    np.testing.assert_allclose(engine.mean_squares(7, w), (w @ matrix**2) / 7, rtol=1e-12)
    np.testing.assert_allclose(engine.gram(w), (w**2 * matrix.T) @ matrix, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("form", FORMS)
def test_squares_of_single_precision_add_up_in_double_precision(form):
    """In single precision 2^24 + 1 is 2^24: the last of so many rows would not count, or move all the others."""
    X = np.full((3000, 1), 0.1, dtype=np.float32)
    engine = engine_for(clip_rows(FORMS[form](X), NO_CLIP), 0.0)
    np.testing.assert_allclose(engine.mean_squares(1), 3000 * float(X[0, 0]) ** 2, rtol=1e-12)


def test_row_norms_agree_with_numpy(engine, matrix):
    np.testing.assert_allclose(engine.row_norms(), np.linalg.norm(matrix, axis=1), rtol=1e-12)


@pytest.mark.parametrize("support", [[], [3], [7, 0, 4], [-1], list(range(D))], ids=str)
def test_columns_are_an_engine_over_those_columns(engine, matrix, support):
    support = np.array(support, dtype=np.intp)
    part, r, theta = engine.columns(support), np.arange(N) - 4.0, np.arange(len(support)) + 1.0
    np.testing.assert_allclose(part.product(theta), matrix[:, support] @ theta, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(part.transposed_product(r), matrix[:, support].T @ r, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(part.row_norms(), np.linalg.norm(matrix[:, support], axis=1), rtol=1e-12)


@pytest.mark.parametrize("support", [[3], [7, 0, 4], [-1, 2], [5, 5, 1], list(range(D))], ids=str)
@pytest.mark.parametrize("columns", [1, 2])
def test_projected_rows_are_an_engine_over_their_products(engine, matrix, support, columns):
    """A column that is named twice counts twice."""
    support, r, theta = np.array(support), np.arange(N) - 4.0, np.arange(columns) + 1.0
    weights = np.random.default_rng(columns).normal(size=(len(support), columns))
    part, expected = engine.projected(support, weights), matrix[:, support] @ weights
    assert part.dimension == columns
    np.testing.assert_allclose(part.product(theta), expected @ theta, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(part.transposed_product(r), expected.T @ r, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(part.row_norms(), np.linalg.norm(expected, axis=1), rtol=1e-11, atol=1e-14)
    w = np.random.default_rng(1).random(N)
    np.testing.assert_allclose(part.gram(w), (w**2 * expected.T) @ expected, rtol=1e-11, atol=1e-12)


def test_many_nonzeros_give_the_same_products_whatever_the_number_of_threads(monkeypatch):
    rng = np.random.default_rng(2)
    X = sparse.random_array((2000, 1000), density=0.3, random_state=rng, format="csc")
    r, answers = rng.normal(size=2000), []
    for threads in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        answers.append(engine_for(X, 2.5).transposed_product(r))
    np.testing.assert_array_equal(*answers)
    np.testing.assert_allclose(answers[0], np.append(X.T @ r, 2.5 * r.sum()), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("form", ["csc", "csr", "coo"])
def test_a_sparse_fit_never_holds_anything_near_n_times_d(form):
    """Dense rows would be 8 GB; 1e5 stored entries, a few copies and vectors of length n or d are a few MB."""
    n, d, stored = 20_000, 50_000, 100_000
    rng = np.random.default_rng(0)
    coordinates = rng.integers(0, n, stored), rng.integers(0, d, stored)
    X = sparse.coo_array((rng.normal(size=stored), coordinates), shape=(n, d)).asformat(form)
    y = np.arange(n) % 2
    tracemalloc.start()
    try:
        SparseClassifier(5, row_bound=1.0, epsilon=1.0, random_state=0).fit(X, y).predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50e6


@pytest.mark.parametrize("drawn", [[], [3], [0, 29, 7, 7, 15], list(range(N))], ids=["none", "one", "some", "all"])
@pytest.mark.parametrize("outputs", [None, 3])
def test_a_batch_of_rows_multiplies_like_those_rows(engine, matrix, drawn, outputs):
    rng, rows = np.random.default_rng(1), np.array(drawn, dtype=np.intp)
    theta = rng.normal(size=(matrix.shape[1], outputs) if outputs else matrix.shape[1])
    r = rng.normal(size=(len(rows), outputs) if outputs else len(rows))
    batch = engine.by_rows().take(rows)
    np.testing.assert_allclose(batch.product(theta), matrix[rows] @ theta, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(batch.transposed_product(r), matrix[rows].T @ r, rtol=1e-12, atol=1e-12)
