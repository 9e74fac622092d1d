"""What people do on their own devices: clip their record, compute, randomise, report once.

A simulated crowd and a real client run the same code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from thresher.data.sparse_structure import by_rows
from thresher.privacy.arrays import Floats, Indices, Matrix
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Adjacency, BudgetExceeded
from thresher.privacy.releases import (
    ClassReport,
    ExactRelease,
    GaussianReport,
    HypercubeReport,
    LaplaceReport,
    PiecewiseReport,
    Release,
    SphereReport,
)
from thresher.vaults.clipping import clip_rows, clip_targets
from thresher.vaults.kernels.rows import product
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomisers import Classes, Gaussian, Hypercube, Laplace, Piecewise, Sphere
from thresher.vaults.randomness import NoiseSource

__all__ = [
    "Crowd",
    "Reporter",
    "Unrandomised",
    "label_randomiser",
    "refuse_hardened",
    "unit_labels",
    "vector_randomiser",
]

BLOCK = 2**20  # numbers in a block of simulated people: 8 MB, whatever the size of the crowd


@dataclass(frozen=True)
class Unrandomised:
    """The value itself, for debugging with privacy switched off."""

    size = 0.0

    def randomise(self, values: Floats, noise: NoiseSource) -> Floats:
        return values

    def total(self, reports: Floats) -> Floats:
        total: Floats = reports.sum(axis=0)
        return total


def vector_randomiser(release: Release) -> Sphere | Hypercube | Unrandomised:
    """The channel a planned report of a gradient goes through."""
    if isinstance(release, SphereReport):
        return Sphere(release.dimension, release.epsilon, release.height)
    if isinstance(release, HypercubeReport):
        return Hypercube(release.dimension, release.epsilon, release.sampled, release.agreeing)
    if isinstance(release, ExactRelease):
        return Unrandomised()
    raise TypeError(f"{release!r} is no report of a gradient")


def label_randomiser(release: Release) -> Laplace | Piecewise | Gaussian | Classes | Unrandomised:
    """The channel a planned report of a label goes through."""
    if isinstance(release, LaplaceReport):
        return Laplace(release.epsilon)
    if isinstance(release, PiecewiseReport):
        return Piecewise(release.epsilon)
    if isinstance(release, GaussianReport):
        return Gaussian(release.scale(1.0, release.sensitivity(1.0, 1, Adjacency.REPLACE_ONE)))
    if isinstance(release, ClassReport):
        return Classes(release.classes, release.epsilon)
    if isinstance(release, ExactRelease):
        return Unrandomised()
    raise TypeError(f"{release!r} is no report of a label")


def unit_labels(y: Floats, bounds: Bounds) -> Floats:
    """Labels, clipped to their public range, as numbers of [-1, 1]."""
    middle, radius = bounds.target_span
    return (clip_targets(y, bounds) - middle) / radius


def refuse_hardened(noise: NoiseSource) -> None:
    """Reports have a grid of their own (labels, signs) or are rounded where they leave the device; a certificate must
    not say more."""
    if noise.hardened:
        raise ValueError("hardened=True is for noise that a curator adds; reports of the local model take False")


class Reporter:
    """How a person answers a question about their gradient: public facts, no data."""

    def __init__(self, problem: LinearProblem, release: Release, clip: float) -> None:
        self.randomiser = vector_randomiser(release)
        self._problem, self._clip = problem, float(clip)
        self._reach: Any = problem.row_norm if isinstance(release, SphereReport) else problem.entry_bounds

    @property
    def radius(self) -> float:
        """The public radius of what is reported: of a ball, or of a cube whose sides are measured in column bounds."""
        return self._clip * (self._reach if isinstance(self._reach, float) else 1.0)

    def report(self, X: Matrix, y: Floats, theta: Floats, noise: NoiseSource) -> Any:
        """A report for each row of X."""
        return self.randomiser.randomise(self.values(X, y, theta), noise)

    def values(self, X: Matrix, y: Floats, theta: Floats) -> Floats:
        """clip(r_i) x_i over its bound, so that it lies in the unit ball or cube whatever the record is.

        Clipping the residual keeps the direction of x_i and makes the radius real (erratum E-14).
        """
        problem = self._problem
        rows = clip_rows(X, problem.bounds)
        rows = rows.toarray() if sparse.issparse(rows) else rows
        if problem.intercept:
            rows = np.column_stack([rows, np.full(len(rows), problem.intercept_column)])
        targets = clip_targets(np.asarray(y, dtype=np.float64), problem.bounds) - problem.target_centre
        with np.errstate(over="ignore", invalid="ignore"):
            margins = product(np.asfortranarray(rows), np.arange(rows.shape[1]), theta)
            residuals = problem.loss.residual(margins, targets)
        residuals = np.clip(np.nan_to_num(residuals, nan=0.0), -self._clip, self._clip) / self._clip
        values: Floats = rows / self._reach * residuals[:, None]
        return values

    def mean_gradient(self, total: Floats, people: int) -> Floats:
        """The mean gradient that a sum of reports estimates."""
        mean: Floats = total / people * self._clip * self._reach
        return mean


class Crowd:
    """People simulated in one process, in groups that report one after the other; only reports come out."""

    def __init__(
        self, X: Matrix, y: Floats, problem: LinearProblem, groups: Sequence[Indices], noise: NoiseSource
    ) -> None:
        self._X = by_rows(X) if sparse.issparse(X) else X
        self._y, self._problem, self._noise = y, problem, noise
        self._groups = iter(groups)

    def reports(self, reporter: Reporter, theta: Floats) -> Iterator[tuple[int, Any]]:
        """The reports of the next group, block by block, with the number of people in each block."""
        group = next(self._groups, None)
        if group is None:
            raise BudgetExceeded("everybody has reported; nobody reports twice")
        step = max(1, BLOCK // self._problem.dimension)
        for first in range(0, len(group), step):
            block = group[first : first + step]
            yield len(block), self._report(reporter, block, theta)

    def _report(self, reporter: Reporter, people: Indices, theta: Floats) -> Any:
        return reporter.report(self._X[people], self._y[people], theta, self._noise)
