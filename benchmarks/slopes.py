"""Errors of the local algorithms on the law of their paper, and exponents of errors with their statistical error."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import LocalSparseRegressor, PrivacyWarning
from thresher.datasets import ldp_law

Floats = NDArray[np.float64]
Cell = tuple[int, int, int, float]  # n, d, s, epsilon


def squared_error(algorithm: Any, cell: Cell, seed: int) -> float:
    """||theta - theta*||^2 of one fit, theta* of norm 1."""
    n, d, s, epsilon = cell
    law = ldp_law(n, d, s, unit=True)
    X, y, theta = law.draw(seed)
    model = LocalSparseRegressor(
        s, epsilon, algorithm=algorithm, delta=1e-3 if getattr(algorithm, "calibration", "") == "printed" else 0.0,
        feature_bound=1.0, target_bound=law.largest_target, fit_intercept=False, random_state=seed,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        model.fit(X, y)
    return float(np.sum((model.coef_ - theta) ** 2))


@dataclass(frozen=True)
class Slope:
    """The exponent in error^2 ~ x^exponent and its standard error."""

    exponent: float
    error: float

    def deviates(self, claim: float) -> float:
        """How many standard errors the exponent is off a claim."""
        return abs(self.exponent - claim) / self.error

    def __str__(self) -> str:
        return f"{self.exponent:.2f} ± {self.error:.2f}"


def slope(x: Floats, errors: Floats) -> Slope:
    """Weighted least squares of log mean errors[i] on log x[i]; each row of ``errors`` holds one cell's replicates.

    The log of a mean of R replicates has standard error sd/(mean sqrt(R)), known here from the replicates themselves,
    so the exponent's standard error follows without assuming that the line fits.
    """
    means = errors.mean(axis=1)
    deviations = errors.std(axis=1, ddof=1) / (means * np.sqrt(errors.shape[1]))
    weights = deviations**-2.0
    centred = np.log(x) - np.average(np.log(x), weights=weights)
    information = float(np.sum(weights * centred**2))
    return Slope(float(np.sum(weights * centred * np.log(means))) / information, information**-0.5)
