"""Methods of the literature under the same public bounds and the same budget, for comparison only.

Each is written after its paper, with replace-one neighbours and zero-concentrated privacy: a release with noise of
standard deviation sd on an answer that one person moves by at most s costs rho = (s / sd)^2 / 2, a choice by Gumbel
noise of scale b among scores that move by at most s each costs (2 s / b)^2 / 8; costs add up to the rho that the budget
buys. Noise is NumPy's: nobody should publish what comes out.

Rows x are within a ball of radius R by public bounds (with the constant column), targets within [-1, 1]. A person's
part of a sum is the mean over their rows, so it is bounded as one row is. Two classes are fitted as numbers -1 and 1,
more by one target for each of them, as BoostedAdaSSP's authors do. A target of numbers is centred first, at a private
mean for a twentieth of the budget: ridges shrink towards it then, and not towards the middle of the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import lu_factor, lu_solve
from scipy.stats import kendalltau, rankdata

from thresher.accounting import zcdp_rho
from yard.encoded import Encoded

__all__ = ["COMPETITORS", "Bounded", "Kendall", "ada_ssp", "boosted_ada_ssp", "dp_gcd", "kendall_ssp", "margins_of"]

MEAN = 0.05  # of the budget, for the mean of a target of numbers
MOST_COLUMNS = 5000  # a Gram matrix of more would not pay
FAILURE = 0.05  # the chance that AdaSSP's bound on its own noise does not hold


@dataclass(frozen=True, eq=False)
class Bounded:
    """What the methods take.

    Attributes
    ----------
    X : array or CSR
        Rows, a constant 1 as their last column, of norm at most ``radius``.
    Y : array, rows by targets
        Each row's within the ball of radius 1.
    shares : array
        One over the number of rows of the row's person: they sum to the number of people.
    first : array of int
        The first row of each person.
    radius : float
        R.
    kind : str
        "numbers", "two classes" or "more classes".
    ranked : array
        The first target as it was before it was centred.
    kept : dict
        What every fit of these rows needs, whatever its noise.
    """

    X: Any
    Y: Any
    shares: Any
    first: Any
    radius: float
    kind: str
    ranked: Any
    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def n(self) -> int:
        return len(self.first)

    @property
    def correlation(self) -> Kendall:
        """Of one row of each person."""
        made: Kendall = self._once("correlation", lambda: Kendall(self.X[self.first][:, :-1], self.ranked[self.first]))
        return made

    @property
    def gram(self) -> Any:
        """The sum over people of the mean of x x'. One person moves it by at most sqrt(2) R^2 (Frobenius)."""
        return self._once("gram", self._gram)

    @property
    def least_eigenvalue(self) -> float:
        """Of the Gram matrix. One person moves it by at most R^2."""
        return float(self._once("least eigenvalue", lambda: np.linalg.eigvalsh(self.gram)[0]))

    def _once(self, what: str, make: Callable[[], Any]) -> Any:
        if what not in self.kept:
            self.kept[what] = make()
        return self.kept[what]

    def _gram(self) -> Any:
        weighted = self.X.multiply(self.shares[:, None]) if sparse.issparse(self.X) else self.X * self.shares[:, None]
        made = weighted.T @ self.X
        return made.toarray() if sparse.issparse(made) else made

    def moments(self, residuals: Any) -> Any:
        """The sum over people of the mean of x r'. One person moves it by at most 2 R, where r has norm 1 at most."""
        return self.X.T @ (residuals * self.shares[:, None])

    def of_columns(self, chosen: Any) -> Bounded:
        """The same rows with these columns and the constant: every entry is within [-1, 1]."""
        kept = np.append(chosen, self.X.shape[1] - 1)
        radius = min(self.radius, math.sqrt(len(kept)))
        return replace(self, X=self.X[:, kept], radius=radius, kept={})


def margins_of(method: Callable[..., Any], encoded: Encoded, epsilon: float, seed: int) -> Any:
    """What a method predicts of the rows for scoring: numbers, margins of two classes, or labels."""
    data, rho, rng = _bounded(encoded), zcdp_rho(epsilon, encoded.size**-2.0), np.random.default_rng(seed)
    rows = _with_constant(encoded.X[np.flatnonzero(encoded.test)])
    if encoded.target_bound is not None:
        low, high = encoded.target_bound
        mean = data.shares @ data.Y[:, 0] / data.n + _gaussian(rng, None, 2 / data.n, MEAN * rho)
        centred = replace(data, Y=np.clip(data.Y - np.clip(mean, -1, 1), -1, 1))  # keeps what is kept
        found = mean + rows @ method(centred, (1 - MEAN) * rho, rng)
        return (low + high) / 2 + found[:, 0] * (high - low) / 2
    found = rows @ method(data, rho, rng)
    assert encoded.classes is not None
    return found[:, 0] if len(encoded.classes) == 2 else encoded.classes[np.argmax(found, axis=1)]


def ada_ssp(data: Bounded, rho: float, rng: Any) -> Any:
    """Sufficient statistics with a ridge that adapts to the noise (Wang, "Revisiting DP linear
    regression", UAI 2018)."""
    solve = _noisy_gram(data, 2 * rho / 3, rng)
    moments = data.moments(data.Y)
    return solve(moments + _gaussian(rng, moments.shape, 2 * data.radius, rho / 3))


def boosted_ada_ssp(data: Bounded, rho: float, rng: Any, rounds: int = 10) -> Any:
    """AdaSSP fitted to clipped residuals again and again (Tang et al., "Improved DP regression via gradient boosting",
    NeurIPS 2023), with a clip of 1, as targets are within [-1, 1]. More rounds share the same budget, and did worse."""
    solve = _noisy_gram(data, 2 * rho / 3, rng)
    theta = np.zeros((data.X.shape[1], data.Y.shape[1]))
    for _ in range(rounds):
        residuals = data.Y - data.X @ theta
        norms = np.sqrt(np.einsum("ij,ij->i", residuals, residuals))[:, None]
        moments = data.moments(residuals / np.maximum(norms, 1))
        theta = theta + solve(moments + _gaussian(rng, moments.shape, 2 * data.radius, rho / 3 / rounds))
    return theta


def kendall_ssp(data: Bounded, rho: float, rng: Any, columns: int = 10) -> Any:
    """Columns by Kendall's correlation, chosen privately one after the other, each less welcome the more it goes with
    those before (Dick, Gillenwater & Joseph, "Better private linear regression through better private feature
    selection", NeurIPS 2023), then AdaSSP on them. A quarter of the budget chooses."""
    if data.kind == "more classes":
        raise ValueError("Kendall's correlation is for numbers or two classes")
    picks = min(columns, data.X.shape[1] - 1)
    moves = 4 / data.n  # replacing a row touches n - 1 of n (n - 1) / 2 pairs, each by at most 2
    chosen: list[int] = []
    penalty = np.zeros(data.X.shape[1] - 1)
    for pick in range(picks):
        scores = np.abs(data.correlation.with_target)
        if pick:
            penalty += np.abs(data.correlation.with_column(chosen[-1]))
            scores = scores - penalty / pick
        sensitivity = moves if pick == 0 else 2 * moves
        scale = 2 * sensitivity / math.sqrt(8 * rho / 4 / picks)
        noisy = scores + rng.gumbel(scale=scale, size=len(scores))
        noisy[chosen] = -np.inf
        chosen.append(int(np.argmax(noisy)))
    theta = np.zeros((data.X.shape[1], data.Y.shape[1]))
    theta[[*chosen, -1]] = ada_ssp(data.of_columns(np.array(chosen)), 3 * rho / 4, rng)
    return theta


def dp_gcd(data: Bounded, rho: float, rng: Any, rounds: int = 20) -> Any:
    """Greedy coordinate descent: the coordinate with the largest noisy gradient takes a noisy step of the length that
    its smoothness allows (Mangold, Bellet, Salmon & Tommasi, AISTATS 2023). Half of a round's budget chooses.

    Squares for numbers, the logistic loss for two classes; an entry of a row is within [-1, 1], so is a residual: a
    coordinate of the mean gradient moves by at most 2/n."""
    if data.kind == "more classes":
        raise ValueError("DP-GCD is for numbers or two classes")
    is_number = data.kind == "numbers"
    smoothness = 1.0 if is_number else 0.25
    theta, moves = np.zeros((data.X.shape[1], 1)), 2 / data.n
    for _ in range(rounds):
        margins = data.X @ theta
        if is_number:
            residuals = np.clip(data.Y - margins, -1, 1)
        else:
            residuals = (data.Y + 1) / 2 - 1 / (1 + np.exp(-np.clip(margins, -500, 500)))
        gradient = np.ravel(data.moments(residuals)) / data.n
        noisy = np.abs(gradient) + rng.gumbel(scale=2 * moves / math.sqrt(8 * rho / 2 / rounds), size=len(gradient))
        at = int(np.argmax(noisy))
        theta[at] += (gradient[at] + _gaussian(rng, 1, moves, rho / 2 / rounds)[0]) / smoothness
    return theta


COMPETITORS: dict[str, Callable[..., Any]] = {
    "AdaSSP": ada_ssp, "BoostedAdaSSP": boosted_ada_ssp, "DPKendall + SSP": kendall_ssp, "DP-GCD": dp_gcd,
}  # fmt: skip


# -- parts -------------------------------------------------------------------------------------------------------------


def _noisy_gram(data: Bounded, rho: float, rng: Any) -> Callable[[Any], Any]:
    """How to divide by the Gram matrix with noise and an adaptive ridge; half of rho for its least eigenvalue."""
    gram, d = data.gram, data.X.shape[1]
    squared = data.radius**2  # a person adds a mean of x x' and takes another away: so far the least eigenvalue moves
    least = max(data.least_eigenvalue, 0.0)
    sd_least = squared / math.sqrt(rho)  # (squared / sd)^2 / 2 = rho / 2
    surely = math.log(6 * data.n**2)  # delta = 1/n^2
    lowered = max(least + rng.normal(scale=sd_least) - sd_least * math.sqrt(surely), 0.0)
    sensitivity = math.sqrt(2) * squared
    sd = sensitivity / math.sqrt(rho)
    noise = np.triu(rng.normal(scale=sd, size=(d, d)))  # the upper triangle is what is released
    noisy = gram + noise + np.triu(noise, 1).T
    ridge = max(0.0, sd * math.sqrt(d * math.log(2 * d**2 / FAILURE)) - lowered)
    factors = lu_factor(noisy + ridge * np.eye(d))
    return lambda moments: lu_solve(factors, moments)


def _gaussian(rng: Any, shape: Any, sensitivity: float, rho: float) -> Any:
    return rng.normal(scale=sensitivity / math.sqrt(2 * rho), size=shape)


class Kendall:
    """Kendall's tau-a of columns with a target and with each other: concordant minus discordant pairs, over all."""

    def __init__(self, X: Any, y: Any) -> None:
        self._X = X.toarray() if sparse.issparse(X) else np.asarray(X)
        self._two_valued = np.array([_has_two_values(column) for column in self._X.T])
        self._found: dict[int, Any] = {}
        self.with_target = self._with(y)

    def with_column(self, at: int) -> Any:
        """Of all columns with one of them, kept: fits with other noise ask again."""
        if at not in self._found:
            self._found[at] = self._with(self._X[:, at])
        return self._found[at]

    def _with(self, y: Any) -> Any:
        """A column of two values needs y's ranks only: pairs within one value count 0."""
        n = len(y)
        ahead = 2 * rankdata(y) - n - 1  # the sum of signs of y_i - y_k over all k
        pairs = n * (n - 1) / 2
        found = np.zeros(self._X.shape[1])
        two = self._two_valued
        low = self._X[:, two].min(axis=0)
        found[two] = ahead @ (self._X[:, two] > low) / pairs
        for at in np.flatnonzero(~two):
            found[at] = _tau(self._X[:, at], y) / pairs
        return found


def _tau(x: Any, y: Any) -> float:
    """Concordant minus discordant pairs, from the tau-b that SciPy computes in n log n."""
    n = len(x)
    pairs = n * (n - 1) / 2
    spread = [pairs - float(np.sum(counts * (counts - 1) / 2)) for counts in map(_counts, (x, y))]
    if min(spread) <= 0:
        return 0.0
    return float(kendalltau(x, y).statistic) * math.sqrt(spread[0]) * math.sqrt(spread[1])


def _counts(values: Any) -> Any:
    return np.unique(values, return_counts=True)[1].astype(np.float64)


def _has_two_values(column: Any) -> bool:
    low, high = column.min(), column.max()
    return bool(np.all((column == low) | (column == high)))


@lru_cache(maxsize=1)
def _bounded(encoded: Encoded) -> Bounded:
    rows = np.flatnonzero(~encoded.test)
    if encoded.X.shape[1] > MOST_COLUMNS:
        raise ValueError(f"more than {MOST_COLUMNS} columns")
    people = np.arange(len(rows)) if encoded.groups is None else encoded.groups[rows]
    _, first, owner, counts = np.unique(people, return_index=True, return_inverse=True, return_counts=True)
    y = encoded.y[rows]
    kind = "numbers"
    if encoded.target_bound is not None:
        low, high = encoded.target_bound
        Y = np.clip((2 * y - low - high) / (high - low), -1, 1)[:, None]
    else:
        assert encoded.classes is not None
        k = len(encoded.classes)
        kind = "two classes" if k == 2 else "more classes"
        member = np.equal.outer(y, encoded.classes[1:] if k == 2 else encoded.classes)
        Y = 2.0 * member - 1 if k == 2 else member - 1 / k  # of norm sqrt(1 - 1/k)
    radius = math.sqrt(encoded.row_bound**2 + 1)
    return Bounded(_with_constant(encoded.X[rows]), Y, 1 / counts[owner], first, radius, kind, Y[:, 0])


def _with_constant(X: Any) -> Any:
    ones = np.ones((X.shape[0], 1))
    return sparse.hstack([X, sparse.csr_array(ones)], format="csr") if sparse.issparse(X) else np.hstack([X, ones])
