"""Non-linear measurements y = f(<x, theta>) + noise of sparse regression (Wang and Xu 2019, appendix D).

For an increasing f, theta minimises the convex loss F(m) - y m with F' = f in the margin m = <x, theta>, whose gradient
is (f(m) - y) x. The squared loss (f(m) - y)^2/2 of the paper multiplies that by f'(m): the same zero, but local minima
and, for the cube root, no bounded slope.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar, final

import numpy as np
from scipy.special import expit, ndtr

from thresher.privacy.arrays import Floats
from thresher.vaults.losses.loss import Loss
from thresher.vaults.losses.squared import SQUARED

__all__ = ["MEASUREMENTS", "Measured", "measurement_of"]

Function = Callable[[Floats], Floats]

TYPICAL_MARGINS = np.linspace(-2, 2, 81)
CUBE_ROOT_KNEE = 1e-3


@final
@dataclass(frozen=True)
class Measured(Loss):
    """The loss of y = f(m) + noise that is convex for every increasing f: its residual is f(m) - y.

    Files name it as they did when it was an option of the squared loss: by that name and its measurement's.
    """

    name: ClassVar[str] = "squared"
    linear_in_target: ClassVar[bool] = True

    function_name: str
    function: Function
    derivative: Function

    @property
    def measurement(self) -> str:  # type: ignore[override]  # the others measure the same whichever they are
        return self.function_name

    @cached_property
    def curvature(self) -> float:
        """The mean slope over typical margins: how long a step should be. The largest may be infinite."""
        return float(np.mean(self.derivative(TYPICAL_MARGINS)))

    def residual(self, margin: Floats, target: Floats) -> Floats:
        return self.inverse_link(margin) - target

    def inverse_link(self, margin: Floats) -> Floats:
        return np.asarray(self.function(margin), dtype=np.float64)

    def adds_to(self, classes: Sequence[object] | None) -> str:
        return f"margin; the prediction is a function of that, {self.measurement}"


def _cube_root_slope(margin: Floats) -> Floats:
    """1/(3 m^(2/3)), held below where it would grow without bound."""
    slope: Floats = 1 / (3 * np.maximum(np.abs(margin), CUBE_ROOT_KNEE) ** (2 / 3))
    return slope


def _logistic_slope(margin: Floats) -> Floats:
    slope: Floats = expit(margin) * expit(-margin)
    return slope


def _normal_density(margin: Floats) -> Floats:
    density: Floats = np.exp(-margin * margin / 2) / math.sqrt(2 * math.pi)
    return density


MEASUREMENTS: Mapping[str, Loss] = MappingProxyType(
    {
        "linear": SQUARED,
        "logistic": Measured("logistic", expit, _logistic_slope),
        "probit": Measured("probit", ndtr, _normal_density),
        "cube root": Measured("cube root", np.cbrt, _cube_root_slope),
    }
)


def measurement_of(given: str | tuple[Function, Function]) -> Loss:
    """The loss of a measurement that is given by its name, or as a pair (function, derivative) of NumPy arrays."""
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
    return Measured("given by the user", function, derivative)
