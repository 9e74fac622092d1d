"""The algorithms as the papers' readers write them: CSR products, NumPy's generator, full sorts, and no vault."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from thresher.privacy.arrays import Floats

CLIP = 0.5


def residuals(X: sparse.csr_array, y: Floats, theta: Floats, logistic: bool) -> Floats:
    margins = X @ theta
    clipped: Floats = np.clip(1 / (1 + np.exp(-margins)) - y if logistic else margins - y, -CLIP, CLIP)
    return clipped


def dp_ight_step(X: sparse.csr_array, y: Floats, theta: Floats, sd: float, s: int, rng: np.random.Generator) -> Floats:
    """One step of DP-IGHT on the logistic loss."""
    gradient = X.T @ residuals(X, y, theta, True) / len(y) + rng.normal(0, sd, len(theta))
    theta = theta - 4.0 * gradient
    theta[np.argsort(np.abs(theta))[:-s]] = 0
    return theta


def peeling_step(
    X: sparse.csr_array, y: Floats, theta: Floats, scale: float, s: int, rng: np.random.Generator
) -> Floats:
    """One step of noisy hard thresholding: s coordinates peeled off one by one, each by its own noisy maximum."""
    theta = theta - X.T @ residuals(X, y, theta, False) / len(y)
    sizes, kept = np.abs(theta), np.zeros_like(theta)
    for _ in range(s):
        at = int(np.argmax(sizes + rng.laplace(0, scale, len(sizes))))
        kept[at] = theta[at] + rng.laplace(0, scale)
        sizes[at] = -np.inf
    return kept


def frank_wolfe_step(
    X: sparse.csr_array, y: Floats, theta: Floats, t: int, radius: float, scale: float, logistic: bool,
    rng: np.random.Generator,
) -> Floats:  # fmt: skip
    """One step of private Frank-Wolfe over the l1 ball."""
    gradient = X.T @ residuals(X, y, theta, logistic) / len(y)
    scores = np.concatenate([-radius * gradient, radius * gradient]) + rng.gumbel(0, scale, 2 * len(theta))
    at = int(np.argmax(scores))
    vertex = np.zeros_like(theta)
    vertex[at % len(theta)] = radius if at < len(theta) else -radius
    return (1 - 2 / (t + 2)) * theta + 2 / (t + 2) * vertex
