"""Where Newton steps stand, and what they make of each answer."""

from __future__ import annotations

import math
from collections import deque
from typing import Literal

import numpy as np

from thresher.algorithms.defaults import clip_levels, largest_residual
from thresher.algorithms.gaussian_margins import centre_of, mean_curvature
from thresher.algorithms.newton_errors import METHOD, STILL_MOVING, Answers, Errors, Pruning, Step
from thresher.algorithms.quadratic import NoisyGram, as_many_as_pay, eliminate, inverse_root, ridge_for
from thresher.algorithms.secants import NoisyGradient, with_secants
from thresher.algorithms.uncertainty import Uncertainty
from thresher.privacy.arrays import Floats, Indices
from thresher.privacy.conversions import zcdp_rho
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

LEVELS = 12, 42  # of a clip: up to four orders of magnitude
MEDIANS, FEW_MEDIANS = 257, 33  # levels for the median of the targets; with few rows the noise tells no more apart
ALLOWED = 4.0  # times the noise of a sum, in rows: clipping so many rows does as much harm as the noise
ALLOWED_NORMS, ALLOWED_MEANS = 0.05, 0.1  # of the rows
NOISE, NOISE_OF_CLASSES = 0.2, 0.03  # variance that the noise of a step may add to a margin, in units of the residual's
BENT = 0.06  # of the square of an error is left by a step of classes
LARGEST_MOVE = 1.0  # in log-odds
HIGHEST = 1.5  # a typical row's gradient norm with the largest residual, times this, is the highest level
MOST_CUT_OFF = 0.15  # of the rarer class, by a clip: with more, gradients differ by their clips, not by the curvature
LEAST_SHARE = 0.1  # what corrects the share of a class leaves at least this part of it
LEAST_SCALE = 0.05  # a classifier shrinks no further: the order of its predictions is worth having

Of = Literal["residuals", "gradient norms", "row norms"]


class NewtonPath:
    """The model so far: the intercept and the columns in use, their means, and what is known of their Gram matrix."""

    def __init__(self, vault: CentralVault) -> None:
        self.vault, self.problem = vault, vault.problem
        self.free = int(self.problem.intercept)
        self.classes, self.outputs = self.problem.loss.classifies, self.problem.outputs
        kinds: tuple[type[Release], ...] = (
            GumbelQuantile, GumbelSelection, GaussianMean, GaussianGram, GaussianRestrictedGradient,
        )  # fmt: skip
        self._left = {kind: deque(each for each in vault.plan.releases if isinstance(each, kind)) for kind in kinds}
        (self.near,) = (each for each in vault.plan.releases if isinstance(each, GumbelNearMaximum))
        self.weak: bool = vault.plan.settings["weak"]
        self.largest = largest_residual(self.problem)
        self.support: Indices = np.arange(self.problem.d, self.problem.d + self.free)
        """Columns of the problem: that of the intercept first, if there is one."""
        self.values: Floats = np.zeros((self.free, self.outputs))
        """Coefficients of 1 and of the centred columns, in units of their bounds; a column for each output."""
        self.begun = self.values
        """Where the intercept started."""
        self.means: Floats = np.zeros(0)
        self.shares: Floats = np.full(self.outputs, 1 / max(self.outputs, 2))
        self.gram = NoisyGram()
        self.asked: list[NoisyGradient] = []
        """Gradients of this stage."""
        self.bends = False
        """Whether they are taken to tell how the loss bends."""
        self.steps: list[Step] = []
        """What they say by all that is known now."""
        self.held = False
        """Whether a move of this stage was more than is believable, and made shorter."""
        self.known: list[Step] = []
        """Steps of this stage that count."""
        self.pruning: Pruning | None = None
        self.pruned = False

    # -- questions ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """The intercept alone: the median of the targets, or the log-odds of the shares of the classes."""
        if not self.free:
            return
        if not self.classes:
            release = self._next(GumbelQuantile)
            levels = self.problem.target_radius * np.linspace(-1, 1, FEW_MEDIANS if self.weak else MEDIANS)
            self.values[0] = self.vault.quantile("targets", 0.5, levels, self.theta, release)
            self.begun = self.values.copy()
            return
        # at the origin a residual is 1/2 - y, or for several classes at most 1 long
        found = self.shares - self._mean_residuals(INTERCEPT_ENTRY / (2 if self.outputs == 1 else 1))
        least = min(2 * self._noise / INTERCEPT_ENTRY, 0.5 / max(self.outputs, 2))
        self.shares = np.clip(found, least, 1 - least)
        self.values[0] = self._log_odds(self.shares)
        self.begun = self.values.copy()

    def choose(self, picks: int) -> None:
        """Columns that go along most with what is not explained yet; without ``picks`` all of them, once."""
        if len(self.means):
            return
        columns = np.arange(self.problem.d)
        if picks:
            release = self._next(GumbelSelection)
            allowed = ALLOWED * release.multiplier * math.sqrt(2)
            columns = self.vault.selection(self.theta, release, self._clip_of_residuals(allowed))
        means = self._means_of(columns)
        self.support, self.means = np.append(self.support, columns), means
        self.values = np.vstack([self.values, np.zeros((len(columns), self.outputs))])

    def measure(self) -> None:
        """The Gram matrix of 1 and the centred columns.

        Of numbers, that of the columns alone: 1 has the second moment 1, and none with what is centred. Left out, it
        takes no noise. (Of classes it stays: with less noise eigenvalues are believed that few rows of the rarer class
        have anything to say about.)
        """
        constant = slice(0 if self.classes else self.free, None)
        basis = self._basis()[:, constant]
        top = self.problem.norm_in_units(len(self.means)) + float(np.linalg.norm(self.means))
        highest, allowed = math.hypot(top, float(self.classes)), ALLOWED_NORMS * self.problem.n
        clip = self._near_maximum("row norms", highest, allowed, self.support, basis)
        gram = np.eye(len(self.support))
        gram[constant, constant] = self.vault.gram(self.support, self._next(GaussianGram), clip, basis)
        self.gram.add(gram, self._noise)
        self.matrix, self.least = self.gram.raised(self.vault.plan.settings["floor"])
        self.asked, self.held = [], False

    def step(self) -> None:
        """From the mean of where the gradients of this stage point that count."""
        if self.weak:
            self.shrink()
        release, curvatures = self._next(GaussianRestrictedGradient), self._curvatures()
        allowed = ALLOWED * math.sqrt(2 * len(self.support)) * release.multiplier
        self.bends = self._shows_curvature(allowed)
        curvature = float(curvatures.mean())
        self.hessian = self._bent(self._with_ridge(curvature, release))
        root = inverse_root(self.hessian)
        basis = self._basis() @ root
        degrees = curvature * float(np.trace(root @ self.matrix @ root))
        highest = HIGHEST * self.largest * math.sqrt((degrees + 1) / curvature)
        clip = self._near_maximum("gradient norms", highest, allowed, self.support, basis)
        gradient = self.vault.restricted_gradient(self.theta, self.support, release, clip, basis)
        gradient = gradient.reshape(len(root), self.outputs)
        if self.outputs > 1:  # exact ones add up to 0 over the classes, noise does not
            gradient = gradient - gradient.mean(axis=1, keepdims=True)
        self.asked.append(NoisyGradient(self.values, np.linalg.solve(root, gradient), root, self._weight))
        self.hessian = self._bent(self.hessian)
        inverse, stretched = np.linalg.inv(self.hessian), curvature / curvatures
        self.steps = [
            Step(
                each.point,
                -inverse @ each.gradient * stretched,
                each.weight,
                np.linalg.solve(each.root, inverse).T,
                curvature,
            )
            for each in self.asked
        ]
        self.clip = clip
        self.known = self._known()
        total = math.fsum(step.weight for step in self.known)
        towards = sum(
            (step.weight / total * (step.values + step.move) for step in self.known), np.zeros_like(self.values)
        )
        self.values = self.values + self._held_back(towards - self.values)

    def _known(self) -> list[Step]:
        """All steps of this stage but the very first, whose point is a guess; of classes, whose loss bends, without
        those from so far away that what they leave of the error is more than their noise."""
        from_guess = self.pruning is None and len(self.steps) > 1
        later, last = self.steps[from_guess:], self.steps[-1]
        if not self.classes:
            return later
        ways = [last.values - step.values for step in later]
        lengths = [float(np.einsum("ik,ij,jk->", way, self.hessian, way)) for way in ways]
        return [
            step for step, length in zip(later, lengths, strict=True) if BENT * length * step.weight <= last.move.size
        ]

    def finish(self) -> None:
        """The intercept, so that predictions are right on the average."""
        if not self.free:
            return
        if self.classes and self.outputs == 1:
            self.values[0] = centre_of(float(self.shares[0]), float(self._variances()[0]))
        if self.weak:
            return
        if not self.classes:
            allowed = ALLOWED * math.sqrt(2) * self._left[GaussianRestrictedGradient][0].multiplier
            self.values[0] -= self._lasting(self._mean_residuals(self._clip_of_residuals(allowed) * INTERCEPT_ENTRY))
            return
        least = LEAST_SHARE * np.minimum(self.shares, 1 - self.shares)
        found = self._lasting(self._mean_residuals(INTERCEPT_ENTRY))
        predicted = np.clip(self.shares + found, least, 1 - least)
        self.values[0] += self._log_odds(self.shares) - self._log_odds(predicted)

    # -- for nothing --------------------------------------------------------------------------------------------

    def prune(self, keep: int) -> None:
        """Columns go until at most ``keep`` are left, of each output, or as many as pay for their noise."""
        if self.pruned or (len(self.means) <= keep and not self.problem.as_many_as_pay):
            return
        self.pruned = True
        found = [eliminate(values, self.hessian, self._paying(values, keep), self.free) for values in self.values.T]
        if self.outputs > 1:
            self.values = np.zeros_like(self.values)
            for output, (values, left) in enumerate(found):
                self.values[left, output] = values
            return
        ((values, left),) = found
        if len(self.means) == self.problem.d:  # else nobody knows how close the others were
            variance = 1 / math.fsum(step.weight for step in self.known)
            self.pruning = Pruning(self.values[:, 0], self.hessian, variance, left)
        self.values, self.support = values[:, None], self.support[left]
        self.means = self.means[left[self.free :] - self.free]
        self.gram.keep(left)
        self.matrix, self.hessian = self.matrix[np.ix_(left, left)], self.hessian[np.ix_(left, left)]

    def _paying(self, values: Floats, most: int) -> int:
        """How many of an output's columns to keep: ``most`` of them, or as many as pay for the noise that they will
        have when all steps are made. Its variance is one over the sum of the steps' budgets, and grows with the
        columns, as a clip does. (That of classes grows with the margins as well: theirs is said too small.)"""
        if not self.problem.as_many_as_pay:
            return most
        noise, columns = 1 / math.fsum(step.weight for step in self.known), len(self.means) + 1
        asked = [each for each in self.vault.plan.releases if isinstance(each, GaussianRestrictedGradient)]
        now = len(asked) - len(self._left[GaussianRestrictedGradient])
        to_come = sum(steps for _, steps, _ in self.vault.plan.settings["stages"]) - len(self.steps)
        before, after = (
            math.fsum(max(each.multiplier, 1e-150) ** -2 for each in part)
            for part in (asked[now - len(self.known) : now], asked[now : now + to_come])
        )

        def noise_of(kept: int) -> float:
            return noise * before / after * (kept + 1) / columns if to_come else noise

        return as_many_as_pay(values, self.hessian, self.free, most, noise, noise_of)

    def shrink(self) -> None:
        """By what the noise alone would explain (James and Stein 1961): a model of noise is worse than none.

        Of few rows, the intercept's way from where it started, too.
        """
        if not self.known:
            return
        rest, variance = self.values[self.free :], 1 / math.fsum(step.weight for step in self.known)
        energy = np.einsum("ik,ij,jk->k", rest, self.hessian[self.free :, self.free :], rest)
        least = LEAST_SCALE if self.classes else 0.0
        scale = np.maximum(_signal(energy, np.count_nonzero(rest, axis=0) * variance), least)
        self.scale = float(scale[0])
        constant = self.values[: self.free]
        if self.weak and self.free:
            moved = constant - self.begun
            noise = max(self.outputs - 1, 1) * variance * float(np.linalg.inv(self.hessian)[0, 0])
            constant = self.begun + _signal(np.sum(np.square(moved)), noise) * moved
        self.values = np.vstack([constant, scale * rest])

    def told(self) -> dict[str, object]:
        """Standard errors for who fits, or why there are none; the second moments of gradients are asked for them."""
        why = self.vault.plan.settings["why_no_intervals"]
        if why is None:
            basis, release = self._basis() @ self.asked[-1].root, self._next(GaussianGram)
            meat = self.vault.gram(self.support, release, self.clip, basis, self.theta)
            rarer = float(np.minimum(self.shares, 1 - self.shares)[0]) if self.classes else None
            budget = self.vault.plan.budget
            strength = self.problem.n * math.sqrt(2 * zcdp_rho(budget.epsilon, budget.delta))
            answers = Answers(
                self.problem, self.steps, self.known, self.hessian, self.matrix, self.gram.noise, meat, self._noise,
                self.scale, rarer, strength, self.pruning,
            )  # fmt: skip
            errors = Errors(answers, self.values[:, 0])
            why = STILL_MOVING if self.held else errors.objection
        if why is not None:
            return {"uncertainty": None, "why_no_intervals": why}
        whole = {name: self.problem.origin() for name in ("noise", "sampling", "stability")}
        units = self.problem.units[self.support]
        whole["noise"][self.support], whole["sampling"][self.support] = errors.noise / units, errors.sampling / units
        whole["stability"][self.support] = errors.stability
        return {"uncertainty": Uncertainty(**whole, method=METHOD)}

    @property
    def theta(self) -> Floats:
        """The model as the problem has it."""
        table = np.zeros((self.problem.d + self.free, self.outputs))
        table[self.support] = (self._basis() @ self.values) / self.problem.units[self.support][:, None]
        return self.problem.stacked(table if self.outputs > 1 else table[:, 0])

    def _basis(self) -> Floats:
        """Rows in units times this are 1 and the centred columns; and so are their coefficients turned back."""
        basis = np.eye(len(self.support))
        if self.free:
            basis[0] = np.append(1.0, -self.means) / INTERCEPT_ENTRY
        return basis

    def _curvatures(self) -> Floats:
        """The loss's mean second derivative in the margin of each output, margins taken to be Gaussian."""
        if not self.classes:
            return np.array([self.problem.curvature])
        centres = self.values[0] if self.free else np.zeros(self.outputs)
        if self.outputs > 1:  # one class against the others
            chances = np.exp(centres - centres.max())
            centres = np.log(chances / (chances.sum() - chances))
        return np.array([mean_curvature(*each) for each in zip(centres, self._variances(), strict=True)])

    def _variances(self) -> Floats:
        """Of the margins of each output."""
        rest = self.values[self.free :]
        variances: Floats = np.einsum("ik,ij,jk->k", rest, self.matrix[self.free :, self.free :], rest)
        return variances

    def _with_ridge(self, curvature: float, release: Release) -> Floats:
        """The Hessian, and what keeps the noise of a step from more than a public part of the residual's variance."""
        part = NOISE_OF_CLASSES * curvature if self.classes else NOISE
        noise = release.multiplier / self.problem.n
        most = max(2.0, math.sqrt(part / 4) / noise) if noise > 0 else math.inf
        return ridge_for(curvature * self.matrix, self.free, curvature * self.least, most)

    def _shows_curvature(self, cut_off: float) -> bool:
        """Whether gradients differ by how the loss bends, which that of numbers does not; classes share one Hessian."""
        rarer = float(np.minimum(self.shares, 1 - self.shares).min())
        return self.classes and self.outputs == 1 and cut_off < MOST_CUT_OFF * rarer * self.problem.n

    def _bent(self, hessian: Floats) -> Floats:
        return with_secants(hessian, self.asked) if self.bends else hessian

    def _held_back(self, move: Floats) -> Floats:
        """A move that changes margins by no more than is believable."""
        size = math.sqrt(float(np.max(np.einsum("ik,ij,jk->k", move, self.matrix, move))))
        limit = LARGEST_MOVE if self.classes else 2 * self.problem.target_radius
        self.held |= size > limit
        return move * min(1.0, limit / max(size, 1e-300))

    def _log_odds(self, shares: Floats) -> Floats:
        """The intercepts that give these shares."""
        odds: Floats = np.log(shares / (1 - shares)) if self.outputs == 1 else np.log(shares)
        return odds

    # -- parts of questions -------------------------------------------------------------------------------------

    def _means_of(self, columns: Indices) -> Floats:
        if not self.free:
            return np.zeros(len(columns))
        support = np.append(self.problem.d, columns)
        highest, allowed = self.problem.norm_in_units(len(columns)), ALLOWED_MEANS * self.problem.n
        clip = self._near_maximum("row norms", highest, allowed, support)
        return self.vault.mean(support, self._next(GaussianMean), clip)[1:]

    def _mean_residuals(self, clip: float) -> Floats:
        """Of each output; the clip is that of a residual in the intercept's column."""
        constant, release = np.array([self.problem.d]), self._next(GaussianRestrictedGradient)
        answer = self.vault.restricted_gradient(self.theta, constant, release, clip)
        return np.ravel(answer) / self.problem.intercept_column

    def _lasting(self, found: Floats) -> Floats:
        """What stands out of the noise of the last answer about the intercept's column."""
        noise = (self._noise / INTERCEPT_ENTRY) ** 2
        return found * _signal(np.square(found), noise)

    def _clip_of_residuals(self, allowed: float) -> float:
        return self._near_maximum("residuals", self.largest, allowed)

    def _near_maximum(
        self, of: Of, highest: float, allowed: float, support: Indices | None = None, basis: Floats | None = None
    ) -> float:
        """Of as many levels as can be told apart: all of them together cost no more than a third of the rows."""
        n, multiplier = self.problem.n, self.near.multiplier
        count = int(np.clip(n / max(3 * multiplier, 1e-9), *LEVELS))
        levels, price = clip_levels(highest, count, multiplier, n)
        return self.vault.near_maximum(of, levels, min(allowed, n / 2), price, self.theta, self.near, support, basis)

    def _next(self, kind: type[Release]) -> Release:
        return self._left[kind].popleft()

    @property
    def _noise(self) -> float:
        """The scale of the noise in the last answer, which is public."""
        return self.vault.answers[-1].scale

    @property
    def _weight(self) -> float:
        return 1 / max(self._noise, 1e-150) ** 2


def _signal(energy: Floats, noise: Floats | float) -> Floats:
    """The part of an energy that noise does not explain."""
    return np.maximum(1 - noise / np.maximum(energy, 1e-300), 0.0)
