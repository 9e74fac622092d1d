"""The laws of the papers: what they draw, and that a seed says which."""

import hashlib

import numpy as np
import pytest
from scipy.special import expit

from thresher_papers.datasets import SparseLaw, dp_ight_law, dpsl_kt_law, ldp_law

LAWS = [dp_ight_law, dpsl_kt_law, ldp_law]


def print_of(arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()[:12]


@pytest.mark.parametrize(
    ("law", "expected"),
    [(dp_ight_law, "500524bdd7c3"), (dpsl_kt_law, "d05f4bdb8f17"), (ldp_law, "c7b8879df2b4")],
)
def test_a_seed_draws_the_rows_it_always_drew(law, expected):
    """X and theta; y is a product, whose last bits depend on the machine."""
    X, _, theta = law(50, 20, 4).draw(7)
    assert print_of([X, theta]) == expected


@pytest.mark.parametrize("law", LAWS)
def test_another_seed_draws_other_rows(law):
    first, second = (law(30, 20, 4).draw(seed) for seed in (0, 1))
    assert all(not np.array_equal(one, other) for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize("law", LAWS)
def test_theta_has_as_many_nonzeros_as_asked(law):
    _, _, theta = law(30, 20, 4).draw(0)
    assert np.count_nonzero(theta) == 4


def test_rows_of_the_dp_ight_law_are_cut_and_those_of_the_dpsl_kt_law_are_not():
    X, _, _ = dp_ight_law(200, 400, 5).draw(0)
    assert np.linalg.norm(X, axis=1).max() <= 10 * (1 + 1e-12)
    assert np.abs(dpsl_kt_law(200, 400, 5).draw(0)[0]).max() > 0.99


@pytest.mark.parametrize("law", [dp_ight_law, dpsl_kt_law])
def test_classes_come_with_the_same_rows_and_theta_as_numbers(law):
    X, _, theta = law(40, 30, 3).draw(5)
    Z, y, same = law(40, 30, 3).draw_classes(5)
    assert np.array_equal(X, Z)
    assert np.array_equal(theta, same)
    assert set(y) == {0, 1}
    assert np.array_equal(y, law(40, 30, 3).draw_classes(5)[1])


def test_classes_follow_the_logistic_model_with_the_sign_that_is_fitted():
    """z-scores in ten groups of 10,000 margins each: one of them exceeds 4.5 with a chance of 7e-5. With the sign of
    the papers most of them would be above 20."""
    X, y, theta = SparseLaw(100_000, 10, 5, width=2.0).draw_classes(0)
    order = np.argsort(X @ theta)
    chance = expit(X @ theta)
    for group in np.array_split(order, 10):
        sd = np.sqrt(np.sum(chance[group] * (1 - chance[group])))
        assert abs(np.sum(y[group]) - np.sum(chance[group])) < 4.5 * sd
