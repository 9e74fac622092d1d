"""What is done with a noisy quadratic: eigenvalues are raised, columns eliminated, ridges found, as by other ways."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.algorithms.gaussian_margins import centre_of, mean_curvature
from thresher.algorithms.quadratic import NoisyGram, as_many_as_pay, eliminate, eliminations, inverse_root, ridge_for


def a_matrix(k, seed, scale=1.0):
    A = np.random.default_rng(seed).normal(size=(3 * k, k)) * scale
    return A.T @ A / len(A)


# -- Gram matrices ------------------------------------------------------------------------------------------------


def test_two_looks_are_weighted_by_one_over_their_noise_and_new_columns_have_one():
    gram = NoisyGram()
    gram.add(np.array([[2.0]]), 0.1)
    gram.add(np.array([[4.0, 1.0], [1.0, 3.0]]), 0.2)
    matrix, _ = gram.raised(0.0)
    np.testing.assert_allclose(matrix, [[(100 * 2 + 25 * 4) / 125, 1], [1, 3]])
    gram.keep(np.array([1]))
    np.testing.assert_allclose(gram.raised(0.0)[0], [[3.0]])


@pytest.mark.parametrize("part", [0.1, 1.0])
def test_no_eigenvalue_is_below_a_part_of_the_noise(part):
    gram, sd, k = NoisyGram(), 0.3, 20
    gram.add(np.diag(np.linspace(-1, 2, k)), sd)
    matrix, least = gram.raised(part)
    assert least == pytest.approx(part * sd * math.sqrt(2 * k))
    np.testing.assert_allclose(np.linalg.eigvalsh(matrix), np.maximum(np.linspace(-1, 2, k), least))


def test_the_noise_of_a_gram_matrix_is_as_large_as_it_says():
    """Of 200 symmetric matrices of noise none has an eigenvalue above 1.25 of it, and each one above 0.8."""
    rng, k, sd = np.random.default_rng(0), 60, 0.7
    gram = NoisyGram()
    gram.add(np.zeros((k, k)), sd)
    for _ in range(200):
        noise = rng.normal(size=(k, k)) * sd / math.sqrt(2)
        noise = np.triu(noise, 1) + np.triu(noise, 1).T + np.diag(rng.normal(size=k) * sd)
        assert 0.8 < np.max(np.abs(np.linalg.eigvalsh(noise))) / gram.noise < 1.25


def test_without_noise_nothing_but_zero_is_raised():
    gram = NoisyGram()
    gram.add(np.diag([0.0, 1e-6, 2.0]), 0.0)
    np.testing.assert_allclose(np.linalg.eigvalsh(gram.raised(1.0)[0]), [1e-9, 1e-6, 2.0])


# -- ridges -------------------------------------------------------------------------------------------------------


@given(st.integers(1, 12), st.integers(0, 10**6), st.floats(1.0, 12.0), st.integers(0, 1))
def test_a_ridge_leaves_at_most_so_many_degrees_of_freedom_and_the_next_smaller_one_does_not(k, seed, most, free):
    hessian, least = a_matrix(k + free, seed), 1e-6
    with_ridge = ridge_for(hessian, free, least, most)
    added = np.diag(with_ridge - hessian)
    np.testing.assert_allclose(added[:free], 0, atol=1e-15)
    ridge = added[free]

    def degrees(ridge):
        part = hessian[free:, free:]
        return float(np.trace(part @ np.linalg.inv(part + ridge * np.eye(k))))

    assert degrees(ridge) <= most + 1e-9
    assert ridge < least * 1.0001 or degrees(ridge / 1.26) > most - 1e-9


def test_an_inverse_root_whitens():
    H = a_matrix(7, 3)
    root = inverse_root(H)
    np.testing.assert_allclose(root @ H @ root.T, np.eye(7), atol=1e-10)


# -- elimination --------------------------------------------------------------------------------------------------


def least_without(values, H, out):
    """The minimum of (v - values)' H (v - values) with v_out = 0, and where it is."""
    k = len(values)
    stay = [j for j in range(k) if j not in out]
    right = H @ values
    v = np.zeros(k)
    v[stay] = np.linalg.solve(H[np.ix_(stay, stay)], right[stay])
    return float((v - values) @ H @ (v - values)), v


@given(st.integers(2, 8), st.integers(0, 10**6), st.integers(0, 1))
def test_one_elimination_takes_the_column_whose_going_costs_least(k, seed, free):
    H, values = a_matrix(k + free, seed), np.random.default_rng(seed + 1).normal(size=k + free)
    found, left = eliminate(values, H, k - 1, free)
    costs = {out: least_without(values, H, [out]) for out in range(free, k + free)}
    best = min(costs, key=lambda out: costs[out][0])
    assert set(range(k + free)) - set(left) == {best}
    np.testing.assert_allclose(found, costs[best][1][left], rtol=1e-6, atol=1e-8)


@given(st.integers(3, 8), st.integers(0, 10**6))
def test_after_several_the_others_are_where_the_quadratic_is_least(k, seed):
    H, values = a_matrix(k, seed), np.random.default_rng(seed + 1).normal(size=k)
    found, left = eliminate(values, H, 2, 0)
    out = [j for j in range(k) if j not in left]
    np.testing.assert_allclose(found, least_without(values, H, out)[1][left], rtol=1e-5, atol=1e-7)


def test_columns_that_are_copies_of_each_other_share_what_one_of_them_had():
    H = np.array([[1.0, 0.99, 0.0], [0.99, 1.0, 0.0], [0.0, 0.0, 1.0]])
    found, left = eliminate(np.array([1.0, 0.9, 0.5]), H, 2, 0)
    np.testing.assert_array_equal(left, [0, 2])
    np.testing.assert_allclose(found, [1.0 + 0.99 * 0.9, 0.5])


def test_eliminating_is_often_the_best_subset_and_never_better():
    better = 0
    for seed in range(40):
        H, values = a_matrix(6, seed), np.random.default_rng(seed).normal(size=6)
        best = min(least_without(values, H, out)[0] for out in itertools.combinations(range(6), 3))
        _, left = eliminate(values, H, 3, 0)
        own = least_without(values, H, [j for j in range(6) if j not in left])[0]
        assert own >= best - 1e-9
        better += own <= best + 1e-9
    assert better > 25


@given(st.integers(2, 8), st.integers(0, 10**6), st.integers(0, 1))
def test_what_is_lost_is_how_far_the_least_point_is_above_that_with_all(k, seed, free):
    H, values = a_matrix(k + free, seed), np.random.default_rng(seed + 1).normal(size=k + free)
    steps = list(eliminations(values, H, free))
    assert [len(each.left) for each in steps] == list(range(k + free, free - 1, -1))
    for each in steps:
        out = [j for j in range(k + free) if j not in each.left]
        assert each.lost == pytest.approx(least_without(values, H, out)[0], rel=1e-6, abs=1e-8)


def test_without_correlations_a_column_pays_whose_square_is_above_its_noise_and_that_of_the_estimate():
    values = np.array([9.0, 3.0, 2.0, 1.5, 1.3, 0.1])  # the first is free
    H = np.eye(6)
    assert as_many_as_pay(values, H, 1, 5, 0.0, lambda kept: 2.0) == 3  # 9, 4 and 2.25 are above 2
    assert as_many_as_pay(values, H, 1, 5, 1.0, lambda kept: 1.0) == 3
    assert as_many_as_pay(values, H, 1, 5, 0.0, lambda kept: 1.0) == 4  # 1.69 as well
    assert as_many_as_pay(values, H, 1, 5, 0.0, lambda kept: 0.5 * kept) == 2  # the third costs 4.5 - 2
    assert as_many_as_pay(values, H, 1, 2, 0.0, lambda kept: 1.0) == 2  # no more than are allowed
    assert as_many_as_pay(values, H, 1, 5, 0.0, lambda kept: 100.0) == 1  # no model without columns
    assert as_many_as_pay(values, H, 1, 5, 0.0, lambda kept: 0.0) == 5


def test_of_columns_that_hold_noise_only_few_are_kept_and_all_that_hold_much():
    """A square of noise is above 2 with a chance of .157: of 60, 9.4 with a deviation of 2.8; the mean of 50 draws is
    within 1.9 of that by six deviations."""
    rng, kept = np.random.default_rng(0), []
    signal = np.append(np.full(5, 8.0), np.zeros(60))
    for _ in range(50):
        values = signal + rng.normal(size=65)
        count = as_many_as_pay(values, np.eye(65), 0, 65, 1.0, lambda kept: 1.0)
        assert set(range(5)) <= set(eliminate(values, np.eye(65), count, 0)[1])
        kept.append(count - 5)
    assert np.mean(kept) == pytest.approx(60 * 0.157, abs=2.4)


# -- Gaussian margins ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("centre", [-4.0, 0.0, 1.5])
@pytest.mark.parametrize("variance", [0.0, 0.5, 6.0])
def test_means_over_gaussian_margins_are_those_of_many_draws(centre, variance):
    draws = centre + math.sqrt(variance) * np.random.default_rng(0).normal(size=400_000)
    p = 1 / (1 + np.exp(-draws))
    assert mean_curvature(centre, variance) == pytest.approx(np.mean(p * (1 - p)), rel=0.02)
    assert centre_of(float(p.mean()), variance) == pytest.approx(centre, abs=0.05)
