"""Halves of a set, and what it shows of itself."""

import numpy as np
import pytest
from scipy import sparse

from thresher_papers.datasets import RealSet, halves


def some_set(n, groups=None, kind=np.asarray):
    X = kind(np.arange(2.0 * n).reshape(n, 2))
    return RealSet("some", X, np.arange(n), X[:1], np.zeros(1), {"row_bound": 1.0}, "numbers", groups=groups)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_every_row_is_in_one_half_with_its_target(kind):
    private, public = halves(some_set(16, kind=kind), seed=1)
    assert sorted([*private.y, *public.y]) == list(range(16))
    for half in (private, public):
        rows = half.X.toarray() if sparse.issparse(half.X) else half.X
        assert np.array_equal(rows[:, 0], 2 * half.y)
        assert half.y_test.shape == (1,)


def test_the_private_half_of_e2006_has_the_row_more():
    private, public = halves(some_set(16_087), seed=0)
    assert (len(private.y), len(public.y)) == (8044, 8043)


def test_a_seed_says_which_half():
    first, again, other = (halves(some_set(50), seed)[0].y for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_nobody_is_in_both_halves():
    groups = np.random.default_rng(0).integers(100, 110, 60)
    private, public = halves(some_set(60, groups), seed=0)
    assert not set(private.groups) & set(public.groups)
    assert len(set(private.groups)) == len(set(public.groups)) == 5
    assert np.array_equal(private.groups, groups[private.y])


def test_a_set_shows_its_sizes_and_facts_but_no_row():
    assert repr(some_set(3)) == "RealSet('some', (3, 2) and (1, 2), row_bound=1.0)"


def test_classes_make_a_classification():
    assert some_set(3).regression
    assert not RealSet("two", None, None, None, None, {"classes": (-1, 1)}, "").regression
