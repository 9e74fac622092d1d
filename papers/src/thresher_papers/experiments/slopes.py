"""Exponents of errors with their statistical error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thresher.privacy.arrays import Floats

__all__ = ["Slope", "slope"]


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
