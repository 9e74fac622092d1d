"""Laws that the defaults were not made for: scales, correlation, heavy tails, weak signal, an intercept, 0/1 columns.

All have entries in [-1, 1] and theta with s nonzeros U(-1, 1), as the law of the DPSL-KT paper does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from thresher.privacy.arrays import Floats

Drawn = tuple[Floats, Floats, Floats]  # X, y, theta


def _model(rng: Any, X: Floats, s: int, noise: Floats, strength: float = 1.0, intercept: float = 0.0) -> Drawn:
    theta = np.zeros(X.shape[1])
    theta[rng.choice(len(theta), s, replace=False)] = strength * rng.uniform(-1, 1, s)
    return X, X @ theta + intercept + noise, theta


def _gaussian(rng: Any, n: int) -> Floats:
    noise: Floats = rng.normal(0, 0.1**0.5, n)
    return noise


def uniform(rng: Any, n: int, d: int, s: int, **facts: float) -> Drawn:
    return _model(rng, rng.uniform(-1, 1, (n, d)), s, _gaussian(rng, n), **facts)


def heavy_tails(rng: Any, n: int, d: int, s: int) -> Drawn:
    """t(3) noise, of the variance of the others."""
    return _model(rng, rng.uniform(-1, 1, (n, d)), s, rng.standard_t(3, n) * (0.1 / 3) ** 0.5)


def scales(rng: Any, n: int, d: int, s: int) -> Drawn:
    """Columns of scales from .01 to 1."""
    return _model(rng, rng.uniform(-1, 1, (n, d)) * 10 ** rng.uniform(-2, 0, d), s, _gaussian(rng, n))


def correlated(rng: Any, n: int, d: int, s: int, r: float) -> Drawn:
    """AR(1): neighbouring columns have correlation r."""
    X = rng.normal(size=(n, d))
    for j in range(1, d):
        X[:, j] = r * X[:, j - 1] + (1 - r * r) ** 0.5 * X[:, j]
    return _model(rng, np.clip(X / 3, -1, 1), s, _gaussian(rng, n))


def ones(rng: Any, n: int, d: int, s: int) -> Drawn:
    """0/1 columns, a tenth of the entries 1."""
    return _model(rng, (rng.random((n, d)) < 0.1).astype(float), s, _gaussian(rng, n))


LAWS: dict[str, Callable[..., Drawn]] = {
    "the law of the targets": uniform,
    "column scales .01 to 1": scales,
    "AR(1) .5": partial(correlated, r=0.5),
    "AR(1) .9": partial(correlated, r=0.9),
    "t(3) noise": heavy_tails,
    "signal 30 % weaker": partial(uniform, strength=0.7),
    "an intercept of 5": partial(uniform, intercept=5.0),
    "0/1 columns, 10 % ones": ones,
}


def relative_error(coefficients: Floats, X: Floats, theta: Floats) -> float:
    """In the metric of the columns' scales."""
    scale = X.std(axis=0)
    return float(np.linalg.norm(scale * (coefficients - theta)) / np.linalg.norm(scale * theta))
