"""Arithmetic modulo the prime 2^61 - 1 on arrays of machine words.

2^61 is 1 modulo this prime, so what lies above bit 61 is added to what lies below: no division. MPyC's own arrays hold
Python integers and take a root of one number at a time, which would be most of the time of a joint coin.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import shake_128

import numpy as np
from numpy.typing import NDArray

MODULUS = 2**61 - 1
BLOCK = 2**13  # numbers whose powers stay in the processor's cache

Words = NDArray[np.uint64]

Residues = NDArray[np.object_]
"""Numbers modulo the prime as MPyC has them: of Python, in NumPy's arrays."""


def to_bytes(numbers: Words | Residues) -> bytes:
    """Eight bytes each, little-endian."""
    return numbers.astype("<u8").tobytes()


def from_bytes(data: bytes, count: int) -> Words | None:
    """The ``count`` numbers below the modulus that ``data`` holds, or None if it does not hold that."""
    if len(data) != 8 * count:
        return None
    numbers = np.frombuffer(data, "<u8").astype(np.uint64)
    return numbers if np.all(numbers < MODULUS) else None


def to_signed(numbers: Words) -> NDArray[np.int64]:
    """The representative nearest to zero."""
    signed = numbers.astype(np.int64)
    return np.where(signed > MODULUS // 2, signed - MODULUS, signed)


def folded(numbers: Words) -> Words:
    """The same numbers, less than 8 above the modulus: all that ``product`` asks for."""
    return (numbers & np.uint64(MODULUS)) + (numbers >> np.uint64(61))


def reduced(numbers: Words) -> Words:
    """The same numbers below the modulus."""
    numbers = folded(numbers)
    return np.where(numbers >= MODULUS, numbers - np.uint64(MODULUS), numbers)


def product(a: Words, b: Words) -> Words:
    """a b, folded, of folded factors: with halves of 31 bits no sum reaches 2^64."""
    half, low = np.uint64(31), np.uint64(2**31 - 1)
    a_high, a_low, b_high, b_low = a >> half, a & low, b >> half, b & low
    middle = a_high * b_low + a_low * b_high  # times 2^31; its part above bit 30 so is times 2^61
    middle = (middle >> np.uint64(30)) + ((middle & np.uint64(2**30 - 1)) << half)
    return folded(((a_high * b_high) << np.uint64(1)) + middle + a_low * b_low)  # 2^62 is 2


def inverse_roots(squares: Words) -> Words | None:
    """1/sqrt(a) = a^(2^59 - 1) of every a, or None unless all are squares and none is zero."""
    roots = np.empty_like(squares)
    for start in range(0, len(squares), BLOCK):
        block = squares[start : start + BLOCK]
        root = _power_of_ones(block, 59)
        if np.any(reduced(product(product(root, root), block)) != 1):
            return None
        roots[start : start + BLOCK] = reduced(root)
    return roots


def _power_of_ones(a: Words, ones: int) -> Words:
    """a^(2^ones - 1), an exponent of so many binary ones: it is built from its two halves."""
    if ones == 1:
        return a
    half = _power_of_ones(a, ones // 2)
    power = half
    for _ in range(ones // 2):
        power = product(power, power)
    power = product(power, half)
    return product(product(power, power), a) if ones % 2 else power


def pseudorandom(key: bytes) -> Callable[[bytes, tuple[int, ...]], Residues]:
    """MPyC's pseudorandom function with this key, value for value: 192 bits of SHAKE-128 modulo the prime."""

    def numbers(name: bytes, shape: tuple[int, ...]) -> Residues:
        count = int(np.prod(shape))
        words = np.frombuffer(shake_128(key + name).digest(24 * count), "<u8").astype(np.uint64).reshape(count, 3)
        total = reduced(words[:, 2])
        for column in (1, 0):
            total = reduced(reduced(total << np.uint64(3)) + reduced(words[:, column]))  # 2^64 is 8
        return total.astype(object).reshape(shape)

    return numbers
