"""MNIST and CIFAR-10 from the original files and from the stored ones."""

import gzip
import struct
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn.datasets

from thresher_papers.datasets import load

RNG = np.random.default_rng(0)


def idx_of(values):
    return b"\0\0\x08" + bytes([values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


@pytest.mark.parametrize(("ending", "pack"), [("", bytes), (".gz", gzip.compress)])
def test_mnist_is_read_from_the_original_files(tmp_path, ending, pack):
    images, digits = RNG.integers(0, 256, (5, 28, 28), dtype=np.uint8), np.array([5, 0, 4, 1, 9], dtype=np.uint8)
    for part, some in (("train", slice(3)), ("t10k", slice(3, None))):
        (tmp_path / f"{part}-images-idx3-ubyte{ending}").write_bytes(pack(idx_of(images[some])))
        (tmp_path / f"{part}-labels-idx1-ubyte{ending}").write_bytes(pack(idx_of(digits[some])))
    data = load("mnist", tmp_path)
    assert np.array_equal(data.X, images[:3].reshape(3, 784))
    assert np.array_equal(data.X_test, images[3:].reshape(2, 784))
    assert (data.y.tolist(), data.y_test.tolist()) == ([5, 0, 4], [1, 9])
    assert data.bounds == {"feature_bound": 255.0, "row_bound": 255.0 * 28, "classes": range(10)}


def test_mnist_can_be_fetched(tmp_path, monkeypatch):
    found = SimpleNamespace(data=np.zeros((70_000, 2)), target=np.array(["7"] * 60_000 + ["2"] * 10_000, dtype=object))
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda name, **_: found if name == "mnist_784" else None)
    data = load("mnist", tmp_path, download=True)
    assert (data.X.shape, data.X_test.shape, data.X.dtype) == ((60_000, 2), (10_000, 2), np.uint8)
    assert (set(data.y), set(data.y_test)) == ({7}, {2})


def test_the_stored_mnist_is_complete(data_dir):
    data = load("mnist", data_dir)
    assert (data.X.shape, data.X_test.shape) == ((60_000, 784), (10_000, 784))
    assert data.X.mean() == pytest.approx(33.318, abs=1e-3)
    assert np.bincount(data.y).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]


@pytest.mark.parametrize("below", ["", "cifar-10-batches-bin"])
def test_cifar10_is_read_from_the_binary_version(tmp_path, below):
    folder = tmp_path / below
    folder.mkdir(exist_ok=True)
    images = RNG.integers(0, 256, (12, 3072), dtype=np.uint8)
    for at, name in enumerate(
        ["data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"]
    ):
        records = [bytes([(2 * at + i) % 10]) + images[2 * at + i].tobytes() for i in range(2)]
        (folder / f"{name}.bin").write_bytes(b"".join(records))
    data = load("cifar10", tmp_path)
    assert np.array_equal(data.X, images[:10])
    assert np.array_equal(data.X_test, images[10:])
    assert (data.y.tolist(), data.y_test.tolist()) == (list(range(10)), [0, 1])


def test_the_stored_cifar10_begins_with_the_frog(data_dir):
    data = load("cifar10", data_dir)
    assert (data.X.shape, data.X_test.shape) == ((10_000, 3072), (2_000, 3072))
    assert data.X[0].reshape(3, 32, 32)[:, 0, 0].tolist() == [59, 62, 63]
    assert data.y[0] == 6
