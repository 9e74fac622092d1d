"""Files in the formats the sets were published in, and rows made of public facts."""

import bz2
import gzip
import struct

import numpy as np
import pytest
from scipy import sparse

from thresher_papers.datasets.formats import arrays, cifar, idx, integers, lines, one_hot, svmlight, unit_rows


@pytest.mark.parametrize(("ending", "pack"), [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress)])
def test_svmlight_counts_columns_from_one_and_keeps_those_a_file_does_not_use(tmp_path, ending, pack):
    path = tmp_path / f"file{ending}"
    path.write_bytes(pack(b"-1 1:0.5 3:2\n1 2:1\n"))
    X, y = svmlight(path, 5)
    assert X.toarray().tolist() == [[0.5, 0, 2, 0, 0], [0, 1, 0, 0, 0]]
    assert y.tolist() == [-1, 1]


@pytest.mark.parametrize("text", ["1 1:secret\n", "1 6:1\n"])
def test_what_is_not_the_expected_svmlight_is_refused_without_its_values(tmp_path, text):
    (tmp_path / "file").write_text(text)
    with pytest.raises(ValueError, match="is not a LIBSVM file of 5 columns") as caught:
        svmlight(tmp_path / "file", 5)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(("ending", "pack"), [("", bytes), (".gz", gzip.compress)])
def test_an_idx_file_has_its_own_shape(tmp_path, ending, pack):
    path = tmp_path / f"images{ending}"
    path.write_bytes(pack(b"\0\0\x08\x03" + struct.pack(">III", 2, 2, 3) + bytes(range(12))))
    assert np.array_equal(idx(path), np.arange(12).reshape(2, 2, 3))


@pytest.mark.parametrize(
    "content",
    [b"", b"\0\0\x08", b"\0\0\x08\x01", b"\0\0\x08\x01\0\0\0\x03ab", b"\0\0\x0d\x01\0\0\0\x01a", b"\0\0\x08\0"],
)
def test_a_broken_idx_file_is_refused(tmp_path, content):
    (tmp_path / "images").write_bytes(content)
    with pytest.raises(ValueError, match="is not a whole idx file"):
        idx(tmp_path / "images")


def test_a_cifar_batch_is_labels_and_planes(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (3, 3072), dtype=np.uint8)
    records = np.hstack([np.array([[3], [1], [9]], dtype=np.uint8), images])
    (tmp_path / "b.bin").write_bytes(records.tobytes())
    X, y = cifar(tmp_path / "b.bin")
    assert np.array_equal(X, images)
    assert y.tolist() == [3, 1, 9]


@pytest.mark.parametrize("content", [b"", b"x" * 3072])
def test_a_broken_cifar_batch_is_refused(tmp_path, content):
    (tmp_path / "b.bin").write_bytes(content)
    with pytest.raises(ValueError, match="not a batch of CIFAR-10's binary version"):
        cifar(tmp_path / "b.bin")


def test_empty_lines_and_the_first_line_of_adult_test_are_left_out(tmp_path):
    (tmp_path / "t").write_text("|1x3 Cross validator\n1, a\n\n2, b\n\n")
    assert lines(tmp_path / "t") == ["1, a", "2, b"]


def test_a_table_of_whole_numbers_must_have_its_columns(tmp_path):
    path = tmp_path / "t.gz"
    path.write_bytes(gzip.compress(b"1,2,3\n4,5,6\n"))
    assert integers(path, 3).tolist() == [[1, 2, 3], [4, 5, 6]]
    (tmp_path / "bad").write_text("1,secret,3\n")
    for file, columns in ((path, 4), (tmp_path / "bad", 3)):
        with pytest.raises(ValueError, match=f"is not a table of {columns} columns") as caught:
            integers(file, columns)
        assert "secret" not in str(caught.value)


def test_pickles_are_refused(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        arrays(tmp_path / "t.npz")["X"]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_rows_are_divided_by_their_own_norms_and_empty_ones_stay(kind):
    X = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 5.0]])
    given = kind(X)
    found = unit_rows(given)
    assert sparse.issparse(found) == sparse.issparse(given)
    dense = found.toarray() if sparse.issparse(found) else found
    assert dense.tolist() == [[0.6, 0.8], [0, 0], [0, 1]]
    assert np.array_equal(given.toarray() if sparse.issparse(given) else given, X)


def test_a_value_of_no_list_has_no_column():
    blocks = one_hot([[0, 1], [-1, 0]], [2, 3])
    assert [block.tolist() for block in blocks] == [[[1, 0], [0, 0]], [[0, 1, 0], [1, 0, 0]]]
