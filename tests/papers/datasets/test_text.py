"""Sets of texts: the original files, the stored ones, and what scikit-learn fetches."""

import bz2
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn.datasets
from scipy import sparse

from thresher_papers.datasets import load

TEXTS = ["imdb", "imdb_rating", "news20", "reuters", "rcv1_small"]


def norms(X):
    return np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())


@pytest.mark.parametrize("packed", [False, True])
def test_e2006_is_read_from_the_original_files(tmp_path, packed):
    """The test file uses fewer columns than the training file, as the original does."""
    for name, text in {
        "E2006.train": b"-3.5 1:0.3 150360:0.4\n-4.25 2:7\n",
        "E2006.test": b"-2.5 150358:2 # a comment\n",
    }.items():
        (tmp_path / f"{name}{'.bz2' * packed}").write_bytes(bz2.compress(text) if packed else text)
    data = load("e2006", tmp_path)
    assert data.X.shape == (2, 150_360)
    assert data.X_test.shape == (1, 150_360)
    assert data.X[0, 0] == pytest.approx(0.6)
    assert data.X[0, 150_359] == pytest.approx(0.8)
    assert data.X_test[0, 150_357] == pytest.approx(1.0)
    assert data.y.tolist() == [-3.5, -4.25]
    assert data.bounds == {"row_bound": 1.0, "target_bound": (-8.0, 0.0)}
    assert data.regression
    assert data.stand_in_for is None


def test_rcv1_is_read_from_the_original_files(tmp_path):
    (tmp_path / "rcv1_train.binary").write_text("1 1:0.6 47236:0.8\n-1 2:1\n")
    (tmp_path / "rcv1_test.binary.bz2").write_bytes(bz2.compress(b"-1 47000:1\n"))
    data = load("rcv1", tmp_path)
    assert data.X.shape == (2, 47_236)
    assert data.X_test.shape == (1, 47_236)
    assert data.y.tolist() == [1, -1]
    assert norms(data.X) == pytest.approx([1, 1])
    assert data.bounds == {"row_bound": 1.0, "classes": (-1, 1)}


def test_rcv1_is_made_binary_where_it_is_fetched(tmp_path, monkeypatch):
    """Documents with a topic of each side are left out, and those with none."""
    topics = np.array([[1, 0, 0, 0, 1], [0, 0, 1, 0, 0], [1, 0, 1, 0, 0], [0, 0, 0, 0, 1], [0, 1, 0, 0, 0]])
    found = SimpleNamespace(
        data=sparse.csr_matrix(np.eye(5, 47_236)), target=sparse.csr_matrix(topics),
        target_names=np.array(["CCAT", "ECAT", "GCAT", "MCAT", "E12"], dtype=object),
    )  # fmt: skip
    asked = []
    monkeypatch.setattr(sklearn.datasets, "fetch_rcv1", lambda subset: asked.append(subset) or found)
    data = load("rcv1", tmp_path, download=True)
    assert asked == ["train", "test"]
    assert data.y.tolist() == [1, -1, 1]
    assert data.X.indices.tolist() == [0, 1, 4]


@pytest.mark.parametrize(
    ("name", "rows", "columns", "stands_for"),
    [
        ("imdb", (25_000, 25_000), 35_432, "rcv1"),
        ("imdb_rating", (25_000, 25_000), 35_432, "e2006"),
        ("news20", (11_293, 7_528), 42_254, None),
        ("reuters", (6_532, 2_568), 12_163, None),
        ("rcv1_small", (1_000, 500), 47_118, "rcv1"),
    ],
)
def test_stored_texts_have_unit_rows_and_targets_within_their_bounds(data_dir, name, rows, columns, stands_for):
    data = load(name, data_dir)
    assert (data.X.shape, data.X_test.shape) == ((rows[0], columns), (rows[1], columns))
    for X in (data.X, data.X_test):
        assert np.abs(norms(X) - 1).max() < 1e-5
    for y in (data.y, data.y_test):
        if data.regression:
            low, high = data.bounds["target_bound"]
            assert (low, high) == (y.min(), y.max())
        else:
            assert set(y) <= set(data.bounds["classes"])
    assert data.stand_in_for == stands_for
    assert ("stands in for" in data.description) == (stands_for is not None)


def test_stored_texts_name_their_columns(data_dir):
    data = load("imdb", data_dir)
    assert len(data.names) == data.X.shape[1]
    weights = np.asarray(data.X.sum(axis=0)).ravel()
    assert "the" in {data.names[at] for at in np.argsort(-weights)[:20]}
