"""The upper tail of the normal law, to as many digits as are asked for."""

from __future__ import annotations

from decimal import Context, Decimal
from functools import lru_cache

__all__ = ["upper_tail"]

SPARE = 10  # digits: more than the round-off of the operations below takes away


def upper_tail(x: Decimal, digits: int) -> Decimal:
    """P(Z > x) for Z ~ N(0, 1) and 0 <= x <= 64, off by less than 10^-digits.

    P(0 < Z < x) = e^(-x^2/2) / sqrt(2 pi) * (x + x^3/3 + x^5/15 + x^7/105 + ...): terms of one sign, none of them, nor
    their sum, beyond e^(x^2/2) x, so that round-off is relative to a number below 1.
    """
    exact = Context(prec=digits + SPARE)
    square = exact.multiply(x, x)
    term = total = x
    odd = 1
    while True:
        odd += 2
        term = exact.divide(exact.multiply(term, square), Decimal(odd))
        grown = exact.add(total, term)
        if grown == total and odd > square:  # what follows is smaller by more than a half each time
            break
        total = grown
    density = exact.divide(
        exact.exp(exact.divide(square, Decimal(-2))), exact.sqrt(exact.multiply(Decimal(2), _pi(digits)))
    )
    return exact.subtract(Decimal("0.5"), exact.multiply(density, total))


@lru_cache(maxsize=8)
def _pi(digits: int) -> Decimal:
    """By arithmetic-geometric means (Gauss and Legendre), whose digits double with every step."""
    exact = Context(prec=digits + 2 * SPARE)
    a, b = Decimal(1), exact.divide(Decimal(1), exact.sqrt(Decimal(2)))
    t, p = Decimal("0.25"), 1
    while exact.subtract(a, b).copy_abs() > Decimal(10) ** -(digits + SPARE):
        middle = exact.divide(exact.add(a, b), Decimal(2))
        b = exact.sqrt(exact.multiply(a, b))
        t = exact.subtract(t, exact.multiply(Decimal(p), exact.power(exact.subtract(a, middle), 2)))
        a, p = middle, 2 * p
    return exact.divide(exact.power(exact.add(a, b), 2), exact.multiply(Decimal(4), t))
