"""The law of a vector of the unit l2 ball that is reported as a point of a larger sphere: Duchi et al. and PrivUnit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Self

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import betainc, gammaln

from thresher.privacy.arrays import Floats
from thresher.privacy.laws.checks import check_dimension, check_epsilon

__all__ = ["SphereLaw", "polar"]


@dataclass(frozen=True)
class SphereLaw:
    """A point on a sphere, more likely within a cap around the direction of the value.

    v in the unit ball becomes a direction e = +-v/||v||, with the signs' chances (1 +- ||v||)/2. The report's direction
    u has density e^epsilon/Z (relative to uniform) on the cap <u, e> >= ``height`` and 1/Z off it, with Z = 1 + q
    (e^epsilon - 1) and q the cap's share of the sphere. Any two densities differ by at most e^epsilon, whatever v is:
    pure epsilon-LDP. E[u] = m e with m the ``pull``, so u/m is unbiased and of norm 1/m.

    ``height=0`` is the half-sphere of Duchi, Jordan and Wainwright (2018). The height that maximises m is PrivUnit
    (Bhowmick et al. 2018) with the parameters that make it the best of all unbiased epsilon-LDP reports in l2 error
    (Asi, Feldman and Talwar 2022); here with the exact law of the sphere in place of their Gaussian limit PrivUnitG.
    """

    dimension: int
    epsilon: float
    height: float

    def __post_init__(self) -> None:
        check_dimension(self.dimension)
        check_epsilon(self.epsilon)
        if not 0 <= self.height < 1:
            raise ValueError(f"height={self.height!r} of the cap must lie from 0 to below 1")
        if not self.pull > 0:
            raise ValueError(f"height={self.height!r} leaves no cap in {self.dimension} dimensions; take a lower one")

    @classmethod
    def duchi(cls, dimension: int, epsilon: float) -> Self:
        """Duchi et al.: the half-sphere."""
        return cls(dimension, epsilon, 0.0)

    @classmethod
    def best(cls, dimension: int, epsilon: float) -> Self:
        """PrivUnit with the cap that gives the least error."""
        check_dimension(dimension)
        check_epsilon(epsilon)
        return cls(dimension, epsilon, _best_height(dimension, epsilon))

    @cached_property
    def pull(self) -> float:
        """m, the mean of <u, e>: how much of the direction survives."""
        odds = math.exp(-self.epsilon)
        gain = -math.expm1(-self.epsilon)
        return gain * _cap_moment(self.dimension, self.height) / (self.share * gain + odds)

    @property
    def size(self) -> float:
        """The norm of a report."""
        return 1 / self.pull

    @property
    def second_moment(self) -> float:
        """E ||report||^2; the mean squared error at v is this less ||v||^2."""
        return self.size**2

    def log_density(self, reports: Floats, value: Floats) -> Floats:
        """The log-density of each report for a person who holds ``value``, relative to the uniform law."""
        (direction,), (norm,) = polar(np.atleast_2d(value))
        along = reports @ direction * self.pull
        odds = math.exp(-self.epsilon)
        up, down = (np.where(side >= self.height, 1.0, odds) for side in (along, -along))
        tilt = float(norm) / 2
        return np.log((0.5 + tilt) * up + (0.5 - tilt) * down) - math.log(self.share * (1 - odds) + odds)

    @cached_property
    def share(self) -> float:
        """q, the cap's share of the sphere."""
        return _cap_share(self.dimension, self.height)


def polar(values: Floats) -> tuple[Floats, Floats]:
    """Directions and norms, the latter at most 1."""
    directions = np.where(np.isfinite(values), values, 0.0).astype(np.float64)
    largest = np.abs(directions).max(axis=1)  # divided by it, no square over- or underflows
    directions[largest == 0, 0] = 1.0
    directions /= np.where(largest > 0, largest, 1.0)[:, None]
    lengths = np.linalg.norm(directions, axis=1)
    directions /= lengths[:, None]
    return directions, np.minimum(np.minimum(largest, 1.0) * lengths, 1.0)


def _cap_share(dimension: int, height: float) -> float:
    """P[u_1 >= height] for u uniform on the sphere."""
    if dimension == 1:
        return 0.5
    return float(betainc((dimension - 1) / 2, 0.5, (1 - height) * (1 + height))) / 2


def _cap_moment(dimension: int, height: float) -> float:
    """E[u_1; u_1 >= height] for u uniform on the sphere."""
    log_half_mean = gammaln(dimension / 2) - gammaln((dimension + 1) / 2) - math.log(2 * math.sqrt(math.pi))
    return float(math.exp(log_half_mean + (dimension - 1) / 2 * math.log((1 - height) * (1 + height))))


@lru_cache(maxsize=64)
def _best_height(dimension: int, epsilon: float) -> float:
    """The height with the largest pull. It is never 0: a cap a little smaller than the half-sphere pulls more."""
    if dimension == 1:
        return 0.0
    widest = min(
        math.sqrt(3 * max(epsilon, 1.0) / dimension), 1.0
    )  # the best is near sqrt(2 epsilon/dimension) or less
    found = minimize_scalar(
        lambda height: -SphereLaw(dimension, epsilon, height).pull,
        bounds=(0.0, widest * (1 - 1e-9)), method="bounded", options={"xatol": 1e-9},
    )  # fmt: skip
    return float(found.x)
