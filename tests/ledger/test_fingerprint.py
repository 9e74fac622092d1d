"""Data sets are recognised by their rows, in any order and form, and not by chance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from thresher.ledger.chain import Key
from thresher.ledger.fingerprint import KEPT, are_alike, sketch_of

KEY = Key(bytes(range(32)))


def table(seed, n=1000, d=6):
    return np.random.default_rng(seed).normal(size=(n, d)) * (np.random.default_rng(seed + 99).random((n, d)) < 0.7)


FORMS = {
    "shuffled": lambda X: X[np.random.default_rng(1).permutation(len(X))],
    "in Fortran's order": np.asfortranarray,
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "with stored zeros": lambda X: sparse.csr_array((X.ravel(), np.tile(np.arange(6), 1000), np.arange(0, 6001, 6))),
    "with minus zeros": lambda X: np.where(X == 0, -0.0, X),
    "with duplicates": lambda X: sparse.coo_array(
        (np.tile(X.ravel() / 2, 2), np.tile(np.indices(X.shape).reshape(2, -1), 2)), X.shape
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_form_of_a_table_does_not_matter(form):
    X = table(0)
    assert sketch_of(FORMS[form](X), KEY) == sketch_of(X, KEY)


def test_single_precision_is_the_same_table_as_its_double():
    X = table(0).astype(np.float32)
    assert sketch_of(X, KEY) == sketch_of(X.astype(np.float64), KEY)


def test_blocks_do_not_matter(monkeypatch):
    X = np.round(table(3), 1)  # with rows that occur more than once
    whole = sketch_of(X, KEY)
    monkeypatch.setattr("thresher.ledger.fingerprint.BLOCK", 70)
    assert sketch_of(X, KEY) == sketch_of(sparse.csc_array(X), KEY) == whole
    assert len(whole) == KEPT


@pytest.mark.parametrize("share", [0.65, 0.8, 1.0])
def test_a_part_is_recognised(share):
    """Of 64 rows about 64 share are in both; 31 or fewer of 64 at a share of .65 has a chance of 1 in 200."""
    for seed in range(10):
        X = table(seed)
        part = X[np.random.default_rng(seed).permutation(1000)[: int(1000 * share)]]
        assert are_alike(sketch_of(X, KEY), sketch_of(part, KEY))


@pytest.mark.parametrize("share", [0.0, 0.2, 0.35])
def test_a_small_overlap_is_none(share):
    for seed in range(10):
        X, other = table(seed), table(seed + 1000)
        mixed = np.vstack([X[: int(1000 * share)], other[int(1000 * share) :]])
        assert not are_alike(sketch_of(X, KEY), sketch_of(mixed, KEY))


def test_answers_to_three_questions_are_not_mistaken_for_one_another():
    """Two surveys have the same 216 possible rows, but not as often."""
    one, other = (np.random.default_rng(seed).integers(0, 6, (50_000, 3)).astype(float) for seed in (0, 1))
    assert not are_alike(sketch_of(one, KEY), sketch_of(other, KEY))
    assert are_alike(sketch_of(one, KEY), sketch_of(one[::-1], KEY))


def test_a_few_rows_in_common_tell_nothing():
    """Nobody can find out by a refusal whether a single row is among those of another account."""
    X = table(0)
    known = sketch_of(X, KEY)
    assert not any(are_alike(known, sketch_of(X[at : at + 1], KEY)) for at in range(1000))
    assert not are_alike(sketch_of(X[:15], KEY), sketch_of(X[:15], KEY))
    assert are_alike(sketch_of(X[:16], KEY), sketch_of(X[:16], KEY))


def test_a_sketch_says_nothing_without_the_key():
    X = table(0)
    assert not set(sketch_of(X, KEY)) & set(sketch_of(X, Key(bytes(32))))


def test_a_broken_matrix_is_refused_before_it_is_read():
    X = sparse.csr_array(table(0))
    X.indices[5] = 10**6
    with pytest.raises(ValueError, match="out of range"):
        sketch_of(X, KEY)


def test_rows_on_dask_workers_are_the_same_rows():
    distributed = pytest.importorskip("distributed")
    from dask import array

    from thresher.data.dask import Collection

    X = np.round(table(4), 1)
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        parts = Collection(array.from_array(X, chunks=(300, 6)), client).partitions(np.float64)
        assert sketch_of(parts, KEY) == sketch_of(X, KEY)
        assert sum(parts.rows) == 1000
