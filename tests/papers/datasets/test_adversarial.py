"""The pair of erratum E-5 and the fingerprints have the properties their theorems speak of."""

import numpy as np
import pytest

from thresher.audit import pairs
from thresher_papers.datasets import fingerprints, support_flip_rows


def best_with_one_feature(X, y, ridge):
    """The l0-constrained minimiser of (1/2n) sum (x'theta - y)^2 + (ridge/2) theta^2 with one nonzero."""
    n, d = X.shape
    slopes = X.T @ y / (np.sum(X**2, axis=0) + n * ridge)
    values = [np.sum((X[:, j] * slopes[j] - y) ** 2) / (2 * n) + ridge * slopes[j] ** 2 / 2 for j in range(d)]
    theta = np.zeros(d)
    theta[np.argmin(values)] = slopes[np.argmin(values)]
    return theta


@pytest.mark.parametrize(("n", "ridge", "distance"), [(801, 0.05, 1.286), (801, 0.297, 0.888), (4001, 0.297, 0.887)])
def test_one_row_moves_the_best_model_with_one_feature_as_far_as_the_erratum_says(n, ridge, distance):
    first, second = support_flip_rows(n, 4)
    assert np.sum(np.any(first[0] != second[0], axis=1)) == 1
    moved = np.linalg.norm(best_with_one_feature(*first, ridge) - best_with_one_feature(*second, ridge))
    assert moved == pytest.approx(distance, abs=5e-4)


def test_the_audit_has_the_same_rows():
    pair = pairs.support_flip(11, 4)
    for mine, theirs in zip(support_flip_rows(11, 4), (pair.first, pair.second), strict=True):
        assert all(np.array_equal(one, other) for one, other in zip(mine, theirs, strict=True))


SIZES = [(27, 256, 0.25), (27, 256, 0.125), (60, 200, 0.3), (5, 64, 0.5)]


@pytest.mark.parametrize(("m", "p", "tau"), SIZES)
class TestFingerprints:
    def test_a_data_set_has_the_rows_and_bounds_of_the_paper(self, m, p, tau):
        made, w = fingerprints(m, p, tau), int(m / np.log(m))
        X, y = made.without(2)
        assert X.shape == (w + len(made.padding), p)
        assert set(np.unique(X)) == {-1, 1}
        assert y.tolist() == [1.0] * w + [0.0] * len(made.padding)

    def test_the_columns_of_the_padding_are_orthogonal(self, m, p, tau):
        Y = fingerprints(m, p, tau).padding.astype(float)
        assert np.array_equal(Y.T @ Y, len(Y) * np.eye(p))

    def test_consensus_columns_are_those_where_all_other_codes_agree(self, m, p, tau):
        made = fingerprints(m, p, tau)
        for left_out in range(len(made.codes)):
            kept = [word for at, word in enumerate(made.codes) if at != left_out]
            expected = [column[0] if len(set(column)) == 1 else 0 for column in zip(*kept, strict=True)]
            assert made.consensus(left_out).tolist() == expected

    def test_nearly_all_columns_are_consensus_columns(self, m, p, tau):
        made = fingerprints(m, p, tau)
        assert all(np.mean(made.consensus(i) != 0) >= 1 - tau for i in range(len(made.codes)))

    def test_the_signs_of_the_consensus_have_a_small_loss(self, m, p, tau):
        """Inequality (3): w rows within 2 tau of their target, and k/p for the padding."""
        made = fingerprints(m, p, tau)
        for left_out in range(len(made.codes)):
            X, y = made.without(left_out)
            signs = made.consensus(left_out)
            loss = np.sum((X @ (np.where(signs == 0, 1, signs) / p) - y) ** 2)
            assert loss <= (len(made.codes) - 1) * (2 * tau) ** 2 + len(made.padding) / p

    def test_data_sets_next_to_each_other_differ_in_one_row(self, m, p, tau):
        made = fingerprints(m, p, tau)
        first, second = made.without(0), made.without(1)
        assert np.sum(np.any(first[0] != second[0], axis=1)) == 1
        assert np.array_equal(first[1], second[1])


def test_the_padding_has_exactly_tau_w_p_rows_where_that_is_possible():
    assert fingerprints(27, 256, 0.25).padding.shape == (0.25 * 8 * 256, 256)


def test_the_code_words_are_all_different_and_a_seed_says_which():
    codes = fingerprints(27, 256, 0.25, seed=3).codes
    assert len(np.unique(codes, axis=0)) == len(codes)
    assert np.array_equal(codes, fingerprints(27, 256, 0.25, seed=3).codes)
    assert not np.array_equal(codes, fingerprints(27, 256, 0.25, seed=4).codes)


def test_the_signs_of_the_consensus_tell_who_is_missing():
    """What the code is for: only who is not in disagrees with it somewhere. Columns where one of 9 is alone: 2.2 %; so
    each has 11 of 512 on average."""
    made = fingerprints(27, 1024, 0.5)
    for left_out in range(len(made.codes)):
        signs = made.consensus(left_out)
        disagree = np.any((made.codes != signs) & (signs != 0), axis=1)
        assert np.flatnonzero(disagree).tolist() == [left_out]


@pytest.mark.parametrize(
    ("sizes", "words"),
    [((1, 8, 0.5), "m=1"), ((10, 0, 0.5), "p=0"), ((10, 8, 1.0), "tau=1"), ((10,), "tau of at least 0.33")],
)
def test_sizes_that_cannot_be_are_refused(sizes, words):
    with pytest.raises(ValueError, match=words):
        fingerprints(*sizes)
