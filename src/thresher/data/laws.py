"""The synthetic laws of the papers, for demos, tests and planning."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from thresher.privacy.arrays import Floats

__all__ = ["SignLaw", "SparseLaw", "dp_ight_law", "dpsl_kt_law", "ldp_law"]


@dataclass(frozen=True)
class SparseLaw:
    """y = X theta + N(0, noise_variance), theta with s nonzeros U(-1, 1), X entries U(-width, width), rows cut to
    row_bound; or classes that a logistic model of the same X theta draws.
    """

    n: int
    d: int
    s: int
    width: float
    row_bound: float | None = None
    noise_variance: float = 0.1

    @property
    def target_deviation(self) -> float:
        """The standard deviation of y under the law: public knowledge about a synthetic table."""
        second_moment = self.width**2 / 3
        if self.row_bound is not None:
            second_moment = min(second_moment, self.row_bound**2 / self.d)
        return math.sqrt(self.s / 3 * second_moment + self.noise_variance)

    def draw(self, seed: int) -> tuple[Floats, Floats, Floats]:
        """X, y and the true theta."""
        rng = np.random.default_rng(seed)
        X, theta = self._draw_rows(rng)
        return X, X @ theta + rng.normal(0, math.sqrt(self.noise_variance), self.n), theta

    def draw_classes(self, seed: int) -> tuple[Floats, NDArray[np.int8], Floats]:
        """The X and theta of ``draw``, and classes 0 and 1 with P(y = 1) = 1/(1 + exp(-<x, theta>)).

        The papers print 1/(1 + exp(<x, theta>)), while the model they fit has the other sign: its best theta would be
        the negative of the true one, and the relative error would tend to 2. So the sign is flipped here.
        """
        rng = np.random.default_rng(seed)
        X, theta = self._draw_rows(rng)
        return X, (rng.random(self.n) < expit(X @ theta)).astype(np.int8), theta

    def _draw_rows(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        theta = np.zeros(self.d)
        theta[rng.choice(self.d, self.s, replace=False)] = rng.uniform(-1, 1, self.s)
        X = rng.uniform(-self.width, self.width, (self.n, self.d))
        if self.row_bound is not None:
            X *= np.minimum(1, self.row_bound / np.linalg.norm(X, axis=1))[:, None]
        return X, theta


@dataclass(frozen=True)
class SignLaw:
    """y = <x, theta> + U(-noise_bound, noise_bound), x uniform on {-1, +1}^d, theta with s nonzeros U(0, 1).

    ``unit``: nonzeros +-1/sqrt(s) instead, a theta of norm 1 as the theorems of the paper assume (its experiment does
    not), of which no part is easier to find than another.
    """

    n: int
    d: int
    s: int
    noise_bound: float = 0.05
    unit: bool = False

    @property
    def largest_target(self) -> float:
        """What no |y| exceeds: ||theta||_1 is at most s, or sqrt(s) in the unit ball."""
        return (math.sqrt(self.s) if self.unit else self.s) + self.noise_bound

    @property
    def target_deviation(self) -> float:
        """The standard deviation of y under the law."""
        return math.sqrt((1 if self.unit else self.s / 3) + self.noise_bound**2 / 3)

    def draw(self, seed: int) -> tuple[NDArray[np.int8], Floats, Floats]:
        """X (small integers: an eighth of the memory of floats), y and the true theta."""
        rng = np.random.default_rng(seed)
        theta = np.zeros(self.d)
        strengths = rng.choice([-1.0, 1.0], self.s) / math.sqrt(self.s) if self.unit else rng.uniform(0, 1, self.s)
        theta[rng.choice(self.d, self.s, replace=False)] = strengths
        X = rng.integers(0, 2, (self.n, self.d), dtype=np.int8)
        X *= 2
        X -= 1
        (support,) = np.nonzero(theta)
        return X, X[:, support] @ theta[support] + rng.uniform(-self.noise_bound, self.noise_bound, self.n), theta


def dp_ight_law(n: int = 1000, d: int = 1000, s: int = 10) -> SparseLaw:
    """The law of the DP-IGHT paper, section 6: entries U(-2, 2), rows rescaled to ||x||_2 <= 2 s.

    Its second size is n = d = 5000, s = 30.
    """
    return SparseLaw(n, d, s, width=2.0, row_bound=2.0 * s)


def dpsl_kt_law(n: int = 800, d: int = 1000, s: int = 10) -> SparseLaw:
    """The law of the DPSL-KT paper: entries U(-1, 1). Its second size is n = 4000, d = 5000, s = 50."""
    return SparseLaw(n, d, s, width=1.0)


def ldp_law(n: int = 20_000, d: int = 200, s: int = 10, *, unit: bool = False) -> SignLaw:
    """The law of "On sparse linear regression in the local differential privacy model", section 7.1."""
    return SignLaw(n, d, s, unit=unit)
