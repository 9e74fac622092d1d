"""Rows made to defeat an algorithm: the pair of erratum E-5, and the fingerprints of the LASSO's lower bound."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hadamard

from thresher.privacy.arrays import Floats

__all__ = ["Fingerprints", "fingerprints", "support_flip_rows"]

Signs = NDArray[np.int8]


def support_flip_rows(n: int = 801, d: int = 10) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Erratum E-5: (n+1)/2 rows say "column 0" and the others "column 1", or one fewer does.

    The best model with one feature jumps from one column to the other: its distance does not shrink with n, so no
    noise of order 1/n hides it (DPSL-KT, Theorem 4.3).
    """
    half = (n + 1) // 2
    X = np.zeros((n, d))
    X[:half, 0] = X[half:, 1] = 1.0
    moved = X.copy()
    moved[half - 1, :2] = 0.0, 1.0
    y = np.ones(n)
    return (X, y), (moved, y)


@dataclass(frozen=True, eq=False)
class Fingerprints:
    """The w + 1 data sets of "Nearly optimal private LASSO", section 3: of w + 1 code words each leaves out one.

    Within ||theta||_1 <= 1 a small squared loss asks for the sign of nearly every column in which all w code words
    agree; of long codes, who knows these signs can tell whose code word is missing. So no private algorithm has a small
    loss on all of the data sets. Features and targets are within [-1, 1].
    """

    codes: Signs
    padding: Signs

    def without(self, left_out: int) -> tuple[Signs, Floats]:
        """The data set that has all code words but one, with target 1, and the padding, with target 0."""
        kept = np.delete(self.codes, left_out, axis=0)
        return np.vstack([kept, self.padding]), np.repeat([1.0, 0.0], [len(kept), len(self.padding)])

    def consensus(self, left_out: int) -> Signs:
        """The sign of every column in which the code words of that data set agree, 0 of the others."""
        kept = np.delete(self.codes, left_out, axis=0)
        return np.where(np.all(kept == kept[0], axis=0), kept[0], 0).astype(np.int8)


def fingerprints(m: int, p: int | None = None, tau: float = 0.001, *, seed: int = 0) -> Fingerprints:
    """w + 1 = floor(m/log m) + 1 code words of p signs, and about tau w p rows of padding with orthogonal columns.

    A share tau of the columns is a Tardos code; in the others all code words agree, as often on 1 as on -1. The paper's
    p is 1000 m^2 with a tau of .001, which needs m > 9000: far too much for a machine. Smaller p need a larger tau.

    The number of rows of padding is tau w p, as the paper has it, if p is a power of 2 and tau w is whole. Else it is
    the nearest multiple of the next power of 2 above p: only such are made, of a Hadamard matrix.
    """
    if m < 2:
        raise ValueError(f"m={m} must be at least 2: there are m/log m code words")
    w, p = int(m / math.log(m)), 1000 * m**2 if p is None else p
    if p < 1 or not 0 < tau < 1:
        raise ValueError(f"p={p} must be at least 1 and tau={tau:g} between 0 and 1: tau p columns hold the code")
    side = 1 << (p - 1).bit_length()
    if tau * w * p < side:
        raise ValueError(
            f"m={m}, p={p}, tau={tau:g}: {tau * w * p:.0f} rows of padding cannot have {p} orthogonal columns; "
            f"give a tau of at least {side / (w * p):.2g}"
        )
    rng = np.random.default_rng(seed)
    coded = int(tau * p)
    agreed = np.where(np.arange(p - coded) % 2 == 0, 1, -1).astype(np.int8)
    codes = np.hstack([_tardos(rng, w + 1, coded), np.tile(agreed, (w + 1, 1))])[:, rng.permutation(p)]
    return Fingerprints(codes, np.tile(hadamard(side, dtype=np.int8)[:, :p], (round(tau * w * p / side), 1)))


def _tardos(rng: np.random.Generator, people: int, columns: int) -> Signs:
    """A code word for each: every column has a bias of its own, drawn from the arcsine law away from 0 and 1."""
    cut = math.asin(math.sqrt(1 / (300 * people)))
    bias = np.sin(rng.uniform(cut, math.pi / 2 - cut, columns)) ** 2
    return np.where(rng.random((people, columns)) < bias, 1, -1).astype(np.int8)
