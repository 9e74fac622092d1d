"""Points of a sphere drawn for vectors of the unit l2 ball, on each person's own device."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betainccinv

from thresher.privacy.arrays import Floats
from thresher.privacy.laws.checks import check_width
from thresher.privacy.laws.sphere import SphereLaw, polar
from thresher.vaults.randomness import NoiseSource

__all__ = ["Sphere"]


@dataclass(frozen=True)
class Sphere(SphereLaw):
    """Reports with the law of a point on a sphere.

    They are floating-point vectors, whose last bits depend on the value in ways no proof covers: put them on a coarse
    grid before they leave a device, as ``thresher.local`` does.
    """

    def randomise(self, values: Floats, noise: NoiseSource) -> Floats:
        """One report for each row of ``values``."""
        check_width(values, self.dimension)
        directions = self._directions(values, noise)
        latitudes = self._latitudes(noise.uniform(len(values)), noise.uniform(len(values)))
        if self.dimension == 1:
            return directions * (latitudes[:, None] * self.size)
        across = noise.standard_normal(directions.shape)
        across -= np.einsum("ij,ij->i", across, directions)[:, None] * directions
        across *= (np.sqrt((1 - latitudes) * (1 + latitudes)) / np.linalg.norm(across, axis=1))[:, None]
        directions *= latitudes[:, None]
        directions += across
        directions *= self.size
        return directions

    def total(self, reports: Floats) -> Floats:
        """The sum of the reports, an unbiased estimate of the sum of the values."""
        total: Floats = reports.sum(axis=0)
        return total

    def _directions(self, values: Floats, noise: NoiseSource) -> Floats:
        """+-v/||v||, unbiased for v; one outside the ball is brought to its edge, one that is no number counts as 0."""
        directions, norms = polar(values)
        directions *= np.where(noise.uniform(len(values)) < (1 + norms) / 2, 1.0, -1.0)[:, None]
        return directions

    def _latitudes(self, coins: Floats, quantiles: Floats) -> Floats:
        """<u, e>: inside the cap with the chance that epsilon gives it, and there (or outside) as on the sphere."""
        odds, share = math.exp(-self.epsilon), self.share
        inside = coins >= odds * (1 - share) / (share * (1 - odds) + odds)  # rounds towards lies
        if self.dimension == 1:
            return np.where(inside, 1.0, -1.0)
        above = np.where(inside, share * quantiles, share + (1 - share) * quantiles)  # the chance of a larger latitude
        latitudes: Floats = np.sqrt(betainccinv(0.5, (self.dimension - 1) / 2, 2 * np.minimum(above, 1 - above)))
        return np.where(above <= 0.5, latitudes, -latitudes)
