"""Arithmetic modulo 2^61 - 1, against Python's whole numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.federated.mpyc_worker.mersenne import (
    BLOCK,
    MODULUS,
    from_bytes,
    inverse_roots,
    product,
    pseudorandom,
    reduced,
    to_bytes,
    to_signed,
)

FOLDED = st.integers(0, MODULUS + 7)


def words(*numbers):
    return np.array(numbers, dtype=np.uint64)


@given(st.integers(0, 2**64 - 1))
def test_any_word_is_reduced(number):
    assert reduced(words(number)).tolist() == [number % MODULUS]


@given(FOLDED, FOLDED)
def test_products_of_folded_numbers_are_folded_and_right(a, b):
    (found,) = product(words(a), words(b)).tolist()
    assert found % MODULUS == a * b % MODULUS
    assert found <= MODULUS + 7


def test_the_largest_factors_do_not_overflow():
    edges = [0, 1, 2**31 - 1, 2**31, 2**60, MODULUS - 1, MODULUS, MODULUS + 7]
    for a in edges:
        found = reduced(product(words(*[a] * len(edges)), words(*edges))).tolist()
        assert found == [a * b % MODULUS for b in edges]


def test_inverse_roots_of_more_than_a_block_of_squares():
    numbers = np.random.default_rng(0).integers(1, MODULUS, BLOCK + 5, dtype=np.uint64)
    squares = reduced(product(numbers, numbers))
    roots = inverse_roots(squares)
    assert np.all(reduced(product(product(roots, roots), squares)) == 1)
    assert set(reduced(product(roots, numbers)).tolist()) == {1, MODULUS - 1}  # fair if the number's sign is


@pytest.mark.parametrize("number", [0, MODULUS - 1, 3 * (MODULUS - 1) ** 2 % MODULUS])
def test_what_is_no_square_is_noticed(number):
    assert pow(number, (MODULUS - 1) // 2, MODULUS) != 1
    assert inverse_roots(words(4, 9, number)) is None


@given(st.lists(st.integers(0, MODULUS - 1)))
def test_bytes_there_and_back(numbers):
    array = np.array(numbers, dtype=object)
    assert from_bytes(to_bytes(array), len(numbers)).tolist() == numbers


@pytest.mark.parametrize("data", [b"", b"1234567", b"12345678" * 2, MODULUS.to_bytes(8, "little"), b"\xff" * 8])
def test_bytes_that_are_not_one_number_below_the_modulus(data):
    assert from_bytes(data, 1) is None


def test_the_upper_half_is_negative():
    half = MODULUS // 2
    assert to_signed(words(0, 1, half, half + 1, MODULUS - 1)).tolist() == [0, 1, half, -half, -1]


@pytest.mark.parametrize("shape", [(1,), (1000,), (50, 3)])
def test_pseudorandom_numbers_are_those_of_mpyc(shape):
    thresha = pytest.importorskip("mpyc.thresha")
    expected = thresha.PRF(b"k" * 16, MODULUS)(b"name", shape)
    found = pseudorandom(b"k" * 16)(b"name", shape)
    np.testing.assert_array_equal(found, expected)
    assert type(found.flat[0]) is int
