"""Where Newton steps stand, and what they make of an answer."""

from __future__ import annotations

import math
from collections import deque
from typing import Literal, TypeVar

import numpy as np

from thresher.algorithms.defaults import largest_residual
from thresher.algorithms.gaussian_margins import centre_of, mean_curvature
from thresher.algorithms.quadratic import NoisyGram, eliminate, inverse_root, ridge_for
from thresher.privacy.arrays import Floats, Indices
from thresher.privacy.facts import INTERCEPT_ENTRY
from thresher.privacy.releases import (
    GaussianGram,
    GaussianMean,
    GaussianRestrictedGradient,
    GumbelNearMaximum,
    GumbelQuantile,
    GumbelSelection,
    Release,
)
from thresher.vaults import CentralVault

__all__ = ["NewtonPath"]

LEVELS = 1.25 ** -np.arange(59, -1, -1.0)
NORMS = LEVELS[-12:]  # of rows: no table is worth looking for more than ten times below its bound
PRICE = 0.7  # of a level, in noise scales
ALLOWED = 4.0
CUT_NORMS = 0.02
PRICE_OF_NORMS = 0.7
CUT_MEANS = 0.05
CUT_PICKS = 10.0
FLOOR, FLOOR_OF_CLASSES = 0.1, 0.5
NOISE, NOISE_OF_CLASSES = 0.2, 0.03
MEDIANS = np.linspace(-1, 1, 257)
LARGEST_MOVE = 1.0
SMALLEST_SHARE = 0.1

Of = Literal["residuals", "gradient norms", "row norms"]


class NewtonPath:
    """The model so far: its columns, in units of their bounds, the intercept first; their means; their Gram matrix."""

    def __init__(self, vault: CentralVault) -> None:
        self.vault, self.problem = vault, vault.problem
        self.free = int(self.problem.intercept)
        self.classes = self.problem.loss.classifies
        self._releases = {
            kind: deque(release for release in vault.plan.releases if isinstance(release, kind))
            for kind in (GumbelQuantile, GumbelSelection, GaussianMean, GaussianGram, GaussianRestrictedGradient)
        }
        (self.near,) = (release for release in vault.plan.releases if isinstance(release, GumbelNearMaximum))
        self.support: Indices = np.arange(self.problem.d, self.problem.d + self.free)
        self.means = np.zeros(0)
        self.gram = NoisyGram()
        self.values = np.zeros((self.free, self.problem.outputs))
        """Coefficients of the centred columns, and before them the intercept; a column for each output."""
        self.shares = np.full(self.problem.outputs, 0.5)
        self.largest = largest_residual(self.problem)

    # -- what it asks -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """The intercept alone: the private median of the targets, or the log-odds of noisy shares of the classes."""
        if not self.free:
            return
        problem = self.problem
        if not self.classes:
            levels = problem.target_radius * MEDIANS
            release = self._next(GumbelQuantile)
            self.values[0] = self.vault.quantile("targets", 0.5, levels, problem.origin(), release)
            return
        self.shares = self._mean_residuals(INTERCEPT_ENTRY * 0.5 if problem.outputs == 1 else INTERCEPT_ENTRY)
        self.shares = (0.5 if problem.outputs == 1 else 1 / problem.outputs) - self.shares
        sd = self._noise / INTERCEPT_ENTRY
        least = min(2 * sd, 0.5 / max(2, problem.outputs))
        self.shares = np.clip(self.shares, least, 1 - least)
        self.values[0] = np.log(self.shares / (1 - self.shares)) if problem.outputs == 1 else np.log(self.shares)

    def choose(self, picks: int) -> None:
        """New columns, by their correlation with what is not explained yet; without picks all columns, once."""
        d = self.problem.d
        if picks:
            release = self._next(GumbelSelection)
            clip = self._near_maximum("residuals", self.largest * LEVELS, CUT_PICKS * release.multiplier * math.sqrt(picks))
            taken = self.support[self.support < d]
            chosen = self.vault.selection(self.theta, release, clip, excluded=taken)
        elif len(self.support) == self.free:
            chosen = np.arange(d)
        else:
            return
        means = self._means_of(chosen)
        self.support, self.means = np.append(self.support, chosen), np.append(self.means, means)
        self.values = np.vstack([self.values, np.zeros((len(chosen), self.problem.outputs))])

    def measure(self) -> None:
        """The Gram matrix of the centred columns and a constant 1."""
        columns = len(self.means)
        top = math.hypot(self.problem.norm_in_units(columns) + float(np.linalg.norm(self.means)), 1.0)
        clip = self._near_maximum("row norms", top * NORMS, CUT_NORMS * self.problem.n, basis=self._basis())
        release = self._next(GaussianGram)
        self.gram.add(self.vault.gram(self.support, release, clip, self._basis()), self._noise)
        self.matrix, self.least = self.gram.raised(FLOOR_OF_CLASSES if self.classes else FLOOR)
        self.points: list[tuple[Floats, Floats, float]] = []

    def step(self) -> None:
        release = self._next(GaussianRestrictedGradient)
        curvatures = self._curvatures()
        curvature = float(curvatures.mean())
        noise = NOISE_OF_CLASSES * curvature if self.classes else NOISE
        most = max(2.0, self.problem.n * math.sqrt(noise / 4) / release.multiplier) if release.multiplier else math.inf
        H = ridge_for(curvature * self.matrix, self.free, curvature * self.least, most)
        root = inverse_root(H)
        basis = self._basis() @ root
        top = self.largest * float(np.linalg.norm(root, 2)) * self.problem.norm_in_units(len(self.means))
        allowed = ALLOWED * math.sqrt(2 * len(root)) * release.multiplier
        clip = self._near_maximum("gradient norms", top * LEVELS, allowed, basis=basis)
        answer = self.vault.restricted_gradient(self.theta, self.support, release, clip, basis)
        answer = answer.reshape(len(root), -1)
        if self.problem.outputs > 1:
            answer = answer - answer.mean(axis=1, keepdims=True)
        move = -root @ answer * (curvature / curvatures)
        if self.points or self.problem.intercept is None:
            pass
        self.points.append((self.values, move, 1 / max(self._noise, 1e-150) ** 2))
        known = self.points[1:] or self.points
        weights = np.array([weight for *_, weight in known])
        weights /= weights.sum()
        towards = sum(weight * (values + move) for weight, (values, move, _) in zip(weights, known, strict=True))
        made = towards - self.values
        size = math.sqrt(float(np.max(np.einsum("ik,ij,jk->k", made, self.matrix, made))))
        limit = LARGEST_MOVE if self.classes else 2 * self.problem.target_radius
        self.values = self.values + made * min(1.0, limit / max(size, 1e-150))
        self.H = H

    def prune(self, keep: int) -> None:
        """Columns go until at most ``keep`` are left."""
        if len(self.means) <= keep:
            return
        if self.problem.outputs == 1:
            values, left = eliminate(self.values[:, 0], self.H, keep, self.free)
            self.values = values[:, None]
            self.support, self.means = self.support[left], self.means[left[self.free :] - self.free]
            self.gram.keep(left)
            self.matrix = self.matrix[np.ix_(left, left)]
            return
        for output in range(self.problem.outputs):
            values, left = eliminate(self.values[:, output], self.H, keep, self.free)
            self.values[:, output] = 0
            self.values[left, output] = values

    def finish(self) -> None:
        """The intercept, so that predictions are right on the average."""
        if not self.free:
            return
        release = self._releases[GaussianRestrictedGradient][0]
        if not self.classes:
            clip = self._near_maximum("residuals", self.largest * LEVELS, ALLOWED * math.sqrt(2) * release.multiplier)
            self.values[0] -= self._mean_residuals(clip * INTERCEPT_ENTRY)
            return
        if self.problem.outputs == 1:
            rest = self.values[1:, 0]
            self.values[0] = centre_of(float(self.shares[0]), float(rest @ self.matrix[1:, 1:] @ rest))
        found = self._mean_residuals(INTERCEPT_ENTRY)
        least = SMALLEST_SHARE * np.minimum(self.shares, 1 - self.shares)
        said = np.clip(self.shares + found, least, 1 - least)
        if self.problem.outputs == 1:
            self.values[0] += np.log(self.shares / (1 - self.shares)) - np.log(said / (1 - said))
        else:
            self.values[0] += np.log(self.shares) - np.log(said)

    # -- what it knows ------------------------------------------------------------------------------------------

    @property
    def theta(self) -> Floats:
        problem = self.problem
        table = np.zeros((problem.d + self.free, problem.outputs))
        table[self.support] = (self._basis() @ self.values) / problem.units[self.support][:, None]
        return problem.stacked(table if problem.outputs > 1 else table[:, 0])

    def _basis(self) -> Floats:
        """Rows in units times this are 1 and the centred columns; coefficients of those, times this, are in units."""
        basis = np.eye(len(self.support))
        if self.free:
            basis[0, 0] = 1 / INTERCEPT_ENTRY
            basis[0, 1:] = -self.means / INTERCEPT_ENTRY
        return basis

    def _curvatures(self) -> Floats:
        """The loss's mean second derivative in the margin of each output."""
        if not self.classes:
            return np.array([self.problem.curvature])
        centres = self.values[0] if self.free else np.zeros(self.problem.outputs)
        if self.problem.outputs > 1:
            chances = np.exp(centres - centres.max())
            chances /= chances.sum()
            centres = np.log(chances / (1 - chances))
        rest = self.values[self.free :]
        variances = np.einsum("ik,ij,jk->k", rest, self.matrix[self.free :, self.free :], rest)
        return np.array([mean_curvature(*each) for each in zip(centres, variances, strict=True)])

    def _means_of(self, columns: Indices) -> Floats:
        if not self.free:
            return np.zeros(len(columns))
        top = self.problem.norm_in_units(len(columns)) * NORMS
        at = np.append(self.problem.d, columns)
        clip = self._near_maximum("row norms", top, CUT_MEANS * self.problem.n, support=at)
        return self.vault.mean(at, self._next(GaussianMean), clip)[1:]

    def _mean_residuals(self, clip: float) -> Floats:
        constant = np.array([self.problem.d])
        answer = self.vault.restricted_gradient(self.theta, constant, self._next(GaussianRestrictedGradient), clip)
        return np.ravel(answer) / self.problem.intercept_column

    def _near_maximum(
        self, of: Of, levels: Floats, allowed: float, basis: Floats | None = None, support: Indices | None = None
    ) -> float:
        allowed = min(allowed, self.problem.n / 2)
        price = (PRICE_OF_NORMS if of == "row norms" else PRICE) * self.near.multiplier
        if of == "residuals":
            return self.vault.near_maximum(of, levels, allowed, price, self.theta, self.near)
        support = self.support if support is None else support
        return self.vault.near_maximum(of, levels, allowed, price, self.theta, self.near, support, basis)

    def _next(self, kind: type[Release]) -> Release:
        return self._releases[kind].popleft()

    @property
    def _noise(self) -> float:
        """The scale of the noise in the last answer, which is public."""
        return self.vault.answers[-1].scale
