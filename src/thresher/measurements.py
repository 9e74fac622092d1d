"""Non-linear measurements y = f(<x, theta>) + noise of sparse regression (Wang and Xu 2019, appendix D).

For an increasing f, theta minimises the convex loss F(m) - y m with F' = f in the margin m = <x, theta>, whose gradient
is (f(m) - y) x. The squared loss (f(m) - y)^2/2 of the paper multiplies that by f'(m): the same zero, but local minima
and, for the cube root, no bounded slope.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

__all__ = ["LINEAR", "MEASUREMENTS", "Measurement", "measurement_of"]

Floats = NDArray[np.float64]
Function = Callable[[Floats], Floats]

TYPICAL_MARGINS = np.linspace(-2, 2, 81)
CUBE_ROOT_KNEE = 1e-3


@dataclass(frozen=True)
class Measurement:
    """An increasing function of the margin, with its derivative."""

    name: str
    function: Function
    derivative: Function

    @cached_property
    def slope(self) -> float:
        """The mean slope over typical margins: how long a step should be."""
        return float(np.mean(self.derivative(TYPICAL_MARGINS)))


def _cube_root_slope(margin: Floats) -> Floats:
    """1/(3 m^(2/3)), held below where it would grow without bound."""
    slope: Floats = 1 / (3 * np.maximum(np.abs(margin), CUBE_ROOT_KNEE) ** (2 / 3))
    return slope


def _linear(margin: Floats) -> Floats:
    return margin


def _logistic_slope(margin: Floats) -> Floats:
    slope: Floats = expit(margin) * expit(-margin)
    return slope


def _normal_density(margin: Floats) -> Floats:
    density: Floats = np.exp(-margin * margin / 2) / math.sqrt(2 * math.pi)
    return density


LINEAR = Measurement("linear", _linear, np.ones_like)

MEASUREMENTS: Mapping[str, Measurement] = MappingProxyType(
    {
        "linear": LINEAR,
        "logistic": Measurement("logistic", expit, _logistic_slope),
        "probit": Measurement("probit", ndtr, _normal_density),
        "cube root": Measurement("cube root", np.cbrt, _cube_root_slope),
    }
)


def measurement_of(given: Any) -> Measurement:
    """The measurement behind a name, or of a pair (function, derivative) of NumPy arrays."""
    if isinstance(given, Measurement):
        return given
    if isinstance(given, str):
        if given not in MEASUREMENTS:
            raise ValueError(f"measurement={given!r} must be one of {', '.join(map(repr, MEASUREMENTS))}, or a pair")
        return MEASUREMENTS[given]
    try:
        function, derivative = given
    except (TypeError, ValueError):
        raise ValueError(
            f"measurement={given!r} must be one of {', '.join(map(repr, MEASUREMENTS))}, or a pair (f, derivative of f)"
        ) from None
    if not (callable(function) and callable(derivative)):
        raise ValueError(f"measurement={given!r}: both of the pair (f, derivative of f) must be functions")
    for part, what in ((function, "f"), (derivative, "its derivative")):
        values = np.asarray(part(TYPICAL_MARGINS.copy()))
        if values.shape != TYPICAL_MARGINS.shape or not np.all(np.isfinite(values)):
            raise ValueError(f"measurement: {what} must take an array of margins to finite numbers, one each")
    slopes = np.asarray(derivative(TYPICAL_MARGINS.copy()))
    if np.any(slopes < 0) or not np.any(slopes > 0):
        raise ValueError("measurement: f must increase, and its derivative falls below 0 (or is 0) on [-2, 2]")
    return Measurement("given by the user", function, derivative)
