"""How often 90 % intervals of pursuit's coefficients hold the truth, and whether features are found again as said.

Tables in Markdown, for docs/uncertainty.md. Coverage: of the true features that were selected, and of all features
that were, where the interval of a column that means nothing must hold 0. "Found again": the mean stability of the
selected true features, and the part of them that a second run on fresh rows of the same law selects. The constants of
the formulas were chosen on these laws with other draws, and with a9a in view.

With THRESHER_DATA, a9a besides: how often intervals hold the coefficients of a logistic regression without privacy on
the same features.

Run: ./dev coverage [DRAWS]
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression

import laws
from thresher import SparseClassifier, SparseRegressor
from thresher.models.linear import LinearModel
from thresher.privacy.arrays import Floats

DRAWS = 20
LEVEL = 0.9

Law = Callable[..., laws.Drawn]


@dataclass(frozen=True)
class Case:
    """A law of X and theta; for classes, log-odds X theta with coefficients U(-strength, strength)."""

    name: str
    law: Law
    n: int
    d: int
    s: int
    epsilon: float = 1.0
    delta: float = 1e-6
    strength: float = 0.0  # of classes; 0: numbers
    intercept: float = 0.0  # of classes

    def theta(self, seed: int) -> Floats:
        found = self.law(np.random.default_rng(seed), 2, self.d, self.s)[2]
        return found * (self.strength or 1.0)

    def fit(self, theta: Floats, seed: int) -> LinearModel:
        """A model of fresh rows that follow ``theta``."""
        rng = np.random.default_rng(seed)
        X, y, other = self.law(rng, self.n, self.d, self.s)
        facts: dict[str, Any] = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "feature_bound": 1.0,
            "random_state": seed,
        }
        if self.strength:
            odds = X @ theta + self.intercept
            ill = rng.random(self.n) < 1 / (1 + np.exp(-odds))
            return SparseClassifier(self.s, algorithm="pursuit", classes=[False, True], **facts).fit(X, ill)
        y += X @ (theta - other)  # the law's noise, with the model asked for
        return SparseRegressor(self.s, algorithm="pursuit", target_bound=8.0, **facts).fit(X, y)


ones, neighbours = laws.ones, partial(laws.correlated, r=0.5)
CASES = (
    Case("entries U(-1, 1)", laws.uniform, 800, 1000, 10, 2.0, 0.01),
    Case("entries U(-1, 1)", laws.uniform, 800, 1000, 10, 5.0, 0.01),
    Case("entries U(-1, 1)", laws.uniform, 4000, 1000, 10),
    Case("entries U(-1, 1)", laws.uniform, 20000, 1000, 20),
    Case("an intercept of 5", partial(laws.uniform, intercept=5.0), 4000, 1000, 10),
    Case("signal 30 % weaker", partial(laws.uniform, strength=0.7), 4000, 1000, 10),
    Case("t(3) noise", laws.heavy_tails, 4000, 1000, 10),
    Case("AR(1) .5", neighbours, 4000, 1000, 10),
    Case("AR(1) .5", neighbours, 20000, 1000, 20),
    Case("AR(1) .9", partial(laws.correlated, r=0.9), 4000, 1000, 10),
    Case("0/1 columns, 10 % ones", ones, 4000, 1000, 10),
    Case("0/1 columns, 10 % ones", ones, 20000, 1000, 20),
    Case("classes, U(-3, 3)", laws.uniform, 4000, 200, 5, strength=3.0),
    Case("classes, U(-3, 3)", laws.uniform, 20000, 200, 5, strength=3.0),
    Case("classes, U(-3, 3)", laws.uniform, 20000, 1000, 10, strength=3.0),
    Case("classes, U(-3, 3)", laws.uniform, 20000, 200, 10, 8.0, strength=3.0),
    Case("classes, U(-1.5, 1.5)", laws.uniform, 20000, 500, 5, strength=1.5),
    Case("classes, intercept -1.5", laws.uniform, 20000, 200, 5, strength=3.0, intercept=-1.5),
    Case("classes, AR(1) .5", neighbours, 20000, 200, 5, strength=4.0),
    Case("classes, 0/1 columns", ones, 20000, 200, 5, strength=3.0),
)

WEAK = (  # near the noise, where it matters whether features are found again
    Case("entries U(-1, 1)", laws.uniform, 800, 300, 10, 1.0, 1e-5),
    Case("entries U(-1, 1)", laws.uniform, 4000, 300, 10, 0.25, 1e-5),
    Case("entries U(-1, 1)", laws.uniform, 4000, 300, 20, 0.6, 1e-5),
    Case("classes, U(-3, 3)", laws.uniform, 2000, 100, 5, 0.5, 1e-5, strength=3.0),
    Case("classes, U(-2, 2)", laws.uniform, 4000, 100, 5, 0.5, 1e-5, strength=2.0),
)
BANDS = ((0.0, 0.3), (0.3, 0.6), (0.6, 0.9), (0.9, 1.0))


@dataclass
class Tally:
    """Over all draws, one entry per selected feature."""

    true: list[bool]
    held: list[bool]
    stability: list[float]
    again: list[bool]
    errors: list[float]

    def add(self, case: Case, seed: int) -> None:
        theta = case.theta(seed)
        model: Any = case.fit(theta, seed + 10**6)
        second: Any = case.fit(theta, seed + 2 * 10**6)
        support, (low, high) = model.support_, model.intervals(LEVEL).T
        self.true += list(theta[support] != 0)
        self.held += list((low <= theta[support]) & (theta[support] <= high))
        self.stability += list(model.uncertainty_.stability)
        self.again += list(np.isin(support, second.support_))
        self.errors += list(model.uncertainty_.standard_errors)


def measured(case: Case, draws: int) -> Tally:
    tally = Tally([], [], [], [], [])
    for seed in range(draws):
        tally.add(case, seed)
    return tally


def coverage(draws: int, cases: Iterable[Case] = CASES) -> None:
    print(f"\nPursuit with its defaults, {draws} draws of each law:\n")
    row(
        "law", "n, d, s", "epsilon, delta", "true features selected", "held", "all selected", "held",
        "median standard error", "stability said", "found again",
    )  # fmt: skip
    print("|---" * 10 + "|")
    for case in cases:
        tally = measured(case, draws)
        true = np.array(tally.true)
        held, again, stability = np.array(tally.held), np.array(tally.again), np.array(tally.stability)
        row(
            *facts(case), int(true.sum()), f"{held[true].mean():.3f}", len(true), f"{held.mean():.3f}",
            f"{np.median(tally.errors):.3g}", f"{stability[true].mean():.3f}", f"{again[true].mean():.3f}",
        )  # fmt: skip


def found_again(draws: int, cases: Iterable[Case] = WEAK) -> None:
    print("\nNear the noise, true features by their stability: how many there were, and the part found again:\n")
    row("law", "n, d, s", "epsilon, delta", *(f"{low:g} to {high:g}" for low, high in BANDS))
    print("|---" * 7 + "|")
    for case in cases:
        tally = measured(case, draws)
        true = np.array(tally.true)
        again, stability = np.array(tally.again)[true], np.array(tally.stability)[true]
        within = [(low <= stability) & (stability < high + (high == 1)) for low, high in BANDS]
        row(*facts(case), *(f"{band.sum()}: {again[band].mean():.2f}" if band.any() else "-" for band in within))


def a9a(folder: Path, fits: int = 5) -> None:
    print(f"\na9a, 32561 x 123, 20 features, {fits} fits of each:\n")
    row("epsilon", "selected", "held", "median standard error")
    print("|---" * 4 + "|")
    X = sparse.csr_array(sparse.load_npz(folder / "a9a_train.npz"))
    y = np.load(folder / "a9a_train.npz")["y"]
    for epsilon in (0.5, 1.0, 4.0):
        held: list[bool] = []
        errors: list[float] = []
        for seed in range(fits):
            model: Any = SparseClassifier(
                20, epsilon=epsilon, feature_bound=1.0, algorithm="pursuit", random_state=seed
            )
            model.fit(X, y)
            low, high = model.intervals(LEVEL).T
            (known,) = LogisticRegression(C=1e6, max_iter=2000).fit(X[:, model.support_], y).coef_
            held += list((low <= known) & (known <= high))
            errors += list(model.uncertainty_.standard_errors)
        row(f"{epsilon:g}", len(held), f"{np.mean(held):.3f}", f"{np.median(errors):.3g}")


def facts(case: Case) -> tuple[str, ...]:
    return case.name, f"{case.n}, {case.d}, {case.s}", f"{case.epsilon:g}, {case.delta:g}"


def row(*cells: object) -> None:
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def smallest() -> None:
    easy = Case("entries U(-1, 1)", laws.uniform, 400, 10, 2, 8.0, 0.01)
    coverage(1, [easy])
    found_again(1, [easy])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else DRAWS
    coverage(wanted)
    found_again(wanted)
    if "THRESHER_DATA" in os.environ:
        a9a(Path(os.environ["THRESHER_DATA"]))
