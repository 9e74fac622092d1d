"""a9a, ijcnn1 and Covertype from the original files and from the stored ones."""

import bz2
import gzip
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn.datasets

from thresher_papers.datasets import load


def test_a9a_is_read_from_the_original_files(tmp_path):
    (tmp_path / "a9a").write_text("-1 3:1 11:1 \n+1 5:1 123:1 \n")
    (tmp_path / "a9a.t").write_text("+1 1:1 122:1 \n")
    data = load("a9a", tmp_path)
    assert (data.X.shape, data.X_test.shape) == ((2, 123), (1, 123))
    assert data.X.indices.tolist() == [2, 10, 4, 122]
    assert (data.y.tolist(), data.y_test.tolist()) == ([-1, 1], [1])


def test_the_stored_a9a_is_the_official_split_within_its_bounds(data_dir):
    data = load("a9a", data_dir)
    assert (data.X.shape, data.X_test.shape) == ((32_561, 123), (16_281, 123))
    assert set(data.X.data) == {1.0}
    assert np.diff(data.X.indptr).max() == round(data.bounds["row_bound"] ** 2) == 14
    assert np.mean(data.y == 1) == pytest.approx(0.241, abs=5e-4)


def test_ijcnn1_is_read_from_the_original_files(tmp_path):
    (tmp_path / "ijcnn1.bz2").write_bytes(bz2.compress(b"-1.000000 5:1 11:-0.7\n1.000000 22:0.5\n"))
    (tmp_path / "ijcnn1.t.bz2").write_bytes(bz2.compress(b"-1.000000 1:1\n"))
    data = load("ijcnn1", tmp_path)
    assert (data.X.shape, data.X_test.shape) == ((2, 22), (1, 22))
    assert data.X[0, [4, 10]] == pytest.approx([1, -0.7])
    assert data.y.tolist() == [-1, 1]


def test_the_stored_ijcnn1_holds_back_a_fifth_of_its_rows(data_dir):
    data = load("ijcnn1", data_dir)
    assert (data.X.shape, data.X_test.shape) == ((39_992, 22), (9_998, 22))
    assert np.sum(data.y == 1) + np.sum(data.y_test == 1) == 4_853


FORESTS = np.array([[2596, 51, 3, 258, -100, 510, 221, 232, 148, 6279, *[0] * 44, kind] for kind in range(1, 6)])


def write_forests(folder, source):
    if source == "covtype.data.gz":
        text = "\n".join(",".join(map(str, row)) for row in FORESTS)
        (folder / source).write_bytes(gzip.compress(text.encode()))
    else:
        rows = (" ".join(f"{j + 1}:{v}" for j, v in enumerate(row[:54]) if v) for row in FORESTS)
        text = "\n".join(f"{1 + (row[54] == 2)} {cells}" for row, cells in zip(FORESTS, rows, strict=True))
        (folder / source).write_bytes(bz2.compress(text.encode()))


def check_forests(data):
    assert (data.X.shape, data.X_test.shape) == ((4, 54), (1, 54))
    assert data.X[0, :5] == pytest.approx([2596 / 4000, 51 / 360, 3 / 90, 258 / 2000, -0.1])
    assert sorted([*data.y, *data.y_test]) == [-1, -1, -1, -1, 1]


@pytest.mark.parametrize("source", ["covtype.data.gz", "covtype.libsvm.binary.bz2"])
def test_covertype_is_read_from_the_original_files(tmp_path, source):
    write_forests(tmp_path, source)
    check_forests(load("covertype", tmp_path))


def test_covertype_can_be_fetched(tmp_path, monkeypatch):
    found = SimpleNamespace(data=FORESTS[:, :54].astype(float), target=FORESTS[:, 54])
    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", lambda: found)
    check_forests(load("covertype", tmp_path, download=True))


def test_the_stored_covertype_is_complete_and_within_its_bounds(data_dir):
    data = load("covertype", data_dir)
    assert (data.X.shape, data.X_test.shape) == ((464_809, 54), (116_203, 54))
    assert np.sum(data.y == 1) + np.sum(data.y_test == 1) == 283_301
    for X in (data.X, data.X_test):
        assert np.abs(X).max() <= data.bounds["feature_bound"]
        assert np.linalg.norm(X, axis=1).max() <= data.bounds["row_bound"]
