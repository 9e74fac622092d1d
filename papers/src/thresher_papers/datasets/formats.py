"""The file formats the sets were published in, and rows made of public facts alone."""

from __future__ import annotations

import bz2
import gzip
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from thresher.data.reading.svmlight import ends_of, read_svmlight, renumbered

__all__ = ["arrays", "cifar", "idx", "integers", "lines", "matrix", "one_hot", "svmlight", "unit_rows"]

IMAGE = 3 * 32 * 32
SMALLEST = 1e-12


def arrays(path: Path) -> Any:
    """The arrays of an .npz file; pickles are refused."""
    return np.load(path, allow_pickle=False)


def matrix(path: Path) -> Any:
    """The CSR matrix of an .npz file."""
    return sparse.csr_array(sparse.load_npz(path))


def svmlight(path: Path, columns: int) -> tuple[Any, NDArray[np.float64]]:
    """Rows and targets of a LIBSVM file, whose columns are counted from 1; a test file may use fewer of them."""
    try:
        X, y = read_svmlight(path)
        lowest, highest = ends_of(X)
        if lowest < 1 or highest > columns:
            raise ValueError
    except ValueError:
        raise ValueError(
            f"{path} is not a LIBSVM file of {columns} columns: each line must be 'target column:value ...'"
        ) from None
    return sparse.csr_array(renumbered(X, 1, columns)), y


def integers(path: Path, columns: int) -> NDArray[np.int16]:
    """A table of small whole numbers between commas."""
    try:
        table: NDArray[np.int16] = np.loadtxt(path, delimiter=",", dtype=np.int16, ndmin=2)
    except ValueError:
        table = np.empty((0, 0), dtype=np.int16)
    if table.shape[1] != columns:
        raise ValueError(f"{path} is not a table of {columns} columns of whole numbers; take the original file")
    return table


def idx(path: Path) -> NDArray[np.uint8]:
    """The bytes of an idx file (MNIST): two zeros, 8 for unsigned bytes, the number of axes, their lengths."""
    content = _unpacked(path)
    axes = content[3] if len(content) > 3 and content.startswith(b"\0\0\x08") else 0
    start = 4 + 4 * axes
    shape = [int.from_bytes(content[at : at + 4], "big") for at in range(4, start, 4)]
    if not axes or len(content) != start + math.prod(shape):
        raise ValueError(f"{path} is not a whole idx file of bytes; take it once more from where it was published")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def cifar(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Images (red, green and blue planes of 32 x 32) and labels of a batch of CIFAR-10's binary version."""
    content = np.frombuffer(_unpacked(path), np.uint8)
    if len(content) == 0 or len(content) % (1 + IMAGE):
        raise ValueError(f"{path} is not a batch of CIFAR-10's binary version: records have {1 + IMAGE} bytes")
    records = content.reshape(-1, 1 + IMAGE)
    return records[:, 1:], records[:, 0]


def lines(path: Path) -> list[str]:
    """The lines of a text that are neither empty nor a comment of adult.test."""
    text = _unpacked(path).decode("latin-1")
    return [line for line in text.splitlines() if line.strip() and not line.startswith("|")]


def _unpacked(path: Path) -> bytes:
    content = path.read_bytes()
    return {".gz": gzip.decompress, ".bz2": bz2.decompress}.get(path.suffix, bytes)(content)


def unit_rows(X: Any) -> Any:
    """Every row divided by its own norm, which needs no other row: ||x||_2 <= 1 is then a public fact."""
    if sparse.issparse(X):
        X = sparse.csr_array(X, copy=True)
        norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
        X.data /= np.repeat(np.maximum(norms, SMALLEST), np.diff(X.indptr))
        return X
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), SMALLEST)


def one_hot(codes: Any, counts: Sequence[int]) -> list[NDArray[np.float64]]:
    """A block for each column of codes, with a column for each of its levels; a code of -1 has none."""
    return [
        (np.asarray(column)[:, None] == np.arange(count)).astype(np.float64)
        for column, count in zip(np.transpose(codes), counts, strict=True)
    ]
