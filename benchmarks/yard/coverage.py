"""Whether intervals of a private model hold what nobody's privacy would have cost: the refit on the chosen columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit
from scipy.stats import norm

from yard.encoded import Encoded
from yard.loading import DescribedTable
from yard.methods import encoded_table, fitted
from yard.tables import TABLES

__all__ = ["LEVEL", "coverage_of", "refit"]

LEVEL = 0.9
STEPS = 50  # of Newton's method, for classes


def coverage_of(name: str, method: str, epsilon: float, seed: int) -> dict[str, Any]:
    """Of one fit: how many intervals held the refit on the same rows, of how many there are, and their median width
    over that of the refit's own intervals. Raises ValueError where the algorithm knows none."""
    model, encoded = fitted(name, method, epsilon, seed), encoded_table(name)
    if encoded.classes is not None and len(encoded.classes) > 2:
        raise ValueError("several classes: no refit is defined")
    support = model.support_
    if len(support) == 0 or model.why_no_intervals_ is not None:  # another fit of the same table may have some
        return {"held": 0, "of": 0, "width": None}
    intervals = model.intervals(LEVEL)
    values, errors = refit(encoded, support)
    spread = _spread(name, encoded)[support]
    values, errors = values / spread, errors / spread
    known = np.isfinite(intervals).all(axis=1)  # a coefficient may have none
    held = (intervals[:, 0] <= values) & (values <= intervals[:, 1])
    own = 2 * norm.ppf((1 + LEVEL) / 2) * errors
    widths = ((intervals[:, 1] - intervals[:, 0]) / np.maximum(own, 1e-12))[known]
    width = float(np.median(widths)) if known.any() else None
    return {"held": int(held.sum()), "of": int(known.sum()), "width": width}


def _spread(name: str, encoded: Encoded) -> Any:
    """What a model of raw cells divides its columns by: its coefficients are in the table's own units."""
    table = TABLES[name]
    if not isinstance(table, DescribedTable):
        return np.ones(encoded.X.shape[1])
    whole = table.schema.for_columns(list(table.frame().columns))
    return whole.encoding().spread


def refit(encoded: Encoded, support: Any) -> tuple[Any, Any]:
    """Coefficients and robust standard errors on these columns and a constant, people counted alike."""
    rows = np.flatnonzero(~encoded.test)
    X = encoded.X[rows][:, support]
    X = np.hstack([X.toarray() if sparse.issparse(X) else X, np.ones((len(rows), 1))])
    weights, owner = np.ones(len(rows)), np.arange(len(rows))
    if encoded.groups is not None:
        _, owner, counts = np.unique(encoded.groups[rows], return_inverse=True, return_counts=True)
        weights = 1 / counts[owner]
    y = encoded.y[rows]
    if encoded.kind == "numbers":
        theta = np.linalg.lstsq(X * np.sqrt(weights)[:, None], y * np.sqrt(weights), rcond=None)[0]
        residuals, curvature = y - X @ theta, weights
    else:
        assert encoded.classes is not None
        theta = _logistic(X, y == encoded.classes[1], weights)
        chances = expit(X @ theta)
        residuals, curvature = (y == encoded.classes[1]) - chances, weights * chances * (1 - chances)
    inverse = np.linalg.pinv((X * curvature[:, None]).T @ X)
    scores = np.zeros((int(owner.max()) + 1, X.shape[1]))
    np.add.at(scores, owner, X * (weights * residuals)[:, None])
    covariance = inverse @ (scores.T @ scores) @ inverse
    return theta[:-1], np.sqrt(np.diag(covariance))[:-1]


def _logistic(X: Any, positive: Any, weights: Any) -> Any:
    """By Newton's method, with a ridge that only matters where classes come apart."""
    theta = np.zeros(X.shape[1])
    ridge = 1e-9 * weights.sum() * np.eye(X.shape[1])
    for _ in range(STEPS):
        chances = expit(X @ theta)
        gradient = X.T @ (weights * (positive - chances)) - ridge @ theta
        hessian = (X * (weights * chances * (1 - chances))[:, None]).T @ X + ridge
        step = np.linalg.solve(hessian, gradient)
        theta = theta + step * min(1.0, 5 / max(float(np.abs(step).max()), 1e-12))
        if np.abs(step).max() < 1e-8:
            break
    return theta
