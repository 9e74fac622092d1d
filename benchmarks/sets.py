"""Sparse matrices of the shape of well-known sets, for speed: what is in them does not matter, where it is does."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from thresher.privacy.arrays import Floats
from thresher_papers.datasets import RealSet


def words(n: int, d: int, per_row: int, seed: int = 0) -> sparse.csr_array:
    """Rows of norm 1 with about ``per_row`` entries, in columns that are as unevenly used as words are."""
    rng = np.random.default_rng(seed)
    popularity = np.cumsum(1 / (np.arange(d) + 100.0))
    popularity /= popularity[-1]
    drawn = int(per_row * 1.25)  # some columns are drawn twice
    columns = np.searchsorted(popularity, rng.random(n * drawn)).astype(np.int32)
    rows = np.repeat(np.arange(n, dtype=np.int32), drawn)
    X = sparse.coo_array((rng.random(n * drawn) + 0.1, (rows, columns)), shape=(n, d)).tocsr()
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(norms, np.diff(X.indptr))
    return X


def even(n: int, d: int, per_row: int, seed: int = 0) -> sparse.csr_array:
    """Rows with ``per_row`` entries of size 1/sqrt(per_row) in columns drawn alike."""
    rng = np.random.default_rng(seed)
    columns = np.sort(rng.integers(0, d, (n, per_row), dtype=np.int32), axis=1)
    values = rng.choice([-1.0, 1.0], n * per_row) / np.sqrt(per_row)
    starts = np.arange(0, n * per_row + 1, per_row, dtype=np.int32)
    X = sparse.csr_array((values, columns.ravel(), starts), shape=(n, d))
    X.sum_duplicates()
    return X


def rcv1_like() -> sparse.csr_array:
    """The training set of RCV1: 20,242 documents, 47,236 words, 73 in each."""
    return words(20_242, 47_236, 73)


def e2006_like() -> sparse.csr_array:
    """The training set of E2006-tfidf: 16,087 reports, 150,360 words, 1,240 in each."""
    return words(16_087, 150_360, 1_240)


def numbers(X: sparse.csr_array, relevant: int = 50, seed: int = 1) -> Floats:
    """A target within [-1, 1] that some popular columns explain."""
    rng = np.random.default_rng(seed)
    theta = np.zeros(X.shape[1])
    theta[:relevant] = rng.standard_normal(relevant)
    margins = X @ theta
    target: Floats = np.clip(margins / (3 * margins.std()) + 0.1 * rng.standard_normal(len(margins)), -1, 1)
    return target


def two_classes(n: int = 200, d: int = 10, seed: int = 0) -> RealSet:
    """What stands for a real set where only the way there is tried: people of two rows, and rows to score."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (2 * n, d))
    y = np.where(X[:, 0] + X[:, 1] > 0, 1, -1)
    people = np.repeat(np.arange(n), 2)
    known = {"row_bound": float(np.sqrt(d)), "classes": [-1, 1]}
    return RealSet("two classes", X[:n], y[:n], X[n:], y[n:], known, "", groups=people[:n], groups_test=people[n:])


def classes(X: sparse.csr_array, seed: int = 1) -> Floats:
    """Two classes that the same columns explain."""
    return (numbers(X, seed=seed) > 0).astype(np.float64)
