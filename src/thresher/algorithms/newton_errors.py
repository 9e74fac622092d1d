"""How far the values that Newton steps end at may be off: from what was released anyway, and one question more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from thresher.algorithms.quadratic import eliminate, inverse_root
from thresher.privacy.arrays import Floats, Indices
from thresher.vaults.problem import LinearProblem

__all__ = ["METHOD", "STILL_MOVING", "Answers", "Errors", "Pruning", "Step", "why_untold"]

METHOD = (
    "Newton steps on a private Gram matrix: noise is the known noise of the averaged last steps, what the noise of the "
    "Gram matrix, its ridge and the moves before them leave, an allowance for clipped rows, and the final shrinkage; "
    "sampling is the sandwich of a private matrix of gradients' second moments, widened for the choice of the features "
    "(false coverage rate at 90 %). A coefficient along which the Gram matrix is lost in its noise has no interval. "
    "Left out: rows far beyond the clip, and features that were not selected."
)
STILL_MOVING = "the coefficients were still moving by more than the noise when the steps ended"

FEWEST = 100.0  # n sqrt(2 rho) for each coefficient: below, the noise of the matrix is as large as what it is of
FEWEST_OF_A_CLASS = 25.0  # the same for the rows of the rarer class
LOST = 0.5  # the Gram matrix's noise over what it holds along a coefficient
MOST_LOST = 2 / 3  # of the coefficients: beyond, the others are not to be trusted either
MOVING = 2.0  # the square of the last steps' distance to their end, in noises: that of the end, and of where they were
GROWING, STILL_TO_GROW = 3.0, 2.0  # in noises, what a classifier may have grown by; and as many times that is to come
LEAST_SCALE = 0.5  # a model shrunk further is mostly noise
CLIPPED = 0.15  # of the noise's norm: what clipping the rows that a clip may cut off moves a coefficient by
BENT, BENT_OF_CLASSES = 0.01, 0.06  # the least square of the part of an error that a step leaves
PART_OF_SAMPLING = 0.1  # where there is no noise, steps end within that part of the sampling error
SURELY = 0.5  # of the sampling error that independent residuals give: no coefficient has less
LEVEL = 0.9  # for which the choice of features is allowed for
DRAWS, RIVALS = 64, 4  # of the released quadratic; columns that may win, in units of those that are kept


class Step(NamedTuple):
    """Where a step was asked for, what it would have moved by, and one over its noise variance."""

    values: Floats
    move: Floats
    weight: float
    root: Floats
    """The noise is this times white noise; of the last step, the same times its transpose is the inverse Hessian, if no
    secant has corrected that since."""
    curvature: float
    """The Hessian without its ridge is the Gram matrix times this."""


class Pruning(NamedTuple):
    """The quadratic on which columns went, and the noise variance in its coordinates."""

    values: Floats
    hessian: Floats
    variance: float
    left: Indices


def why_untold(problem: LinearProblem, rho: float, columns: int, keep: int) -> str | None:
    """By public numbers alone, why there are no standard errors of what ``keep`` of the last stage's columns end at;
    None if there are, unless the answers object."""
    if problem.outputs > 1:
        return "algorithm='newton' has no formulas for the standard errors of several classes"
    strength = problem.n * math.sqrt(2 * rho)
    if strength < FEWEST * (columns + problem.intercept) or columns > keep:
        return (
            f"{problem.counted} and epsilon are too few for standard errors of {columns} coefficients: n sqrt(2 rho) = "
            f"{strength:.3g} should be {FEWEST:g} for each"
        )
    return None


class Answers(NamedTuple):
    """What was released about the last stage: its steps, and matrices with their noise."""

    problem: LinearProblem
    steps: Sequence[Step]
    known: Sequence[Step]
    """Those whose mean is the end."""
    hessian: Floats
    """By which the steps were made."""
    matrix: Floats
    """The Gram matrix, its eigenvalues raised."""
    blur: float
    """How large the eigenvalues of its noise get."""
    meat: Floats
    """Second moments of the gradients, in the coordinates of the last step."""
    meat_noise: float
    scale: float
    """What the model was shrunk by."""
    rarer: float | None
    """The share of the rarer class, of two."""
    strength: float
    pruning: Pruning | None


class Errors:
    """Standard errors of values that were ``shrunk`` from the mean of the last steps' ends."""

    def __init__(self, answers: Answers, shrunk: Floats) -> None:
        self.answers, self.problem = answers, answers.problem
        self.free, self.k = int(self.problem.intercept), len(shrunk)
        self.known = answers.known
        self.weights = np.array([step.weight for step in self.known])
        self.shrunk, self.end = shrunk, shrunk / max(answers.scale, 1e-12)
        self.end[: self.free] = shrunk[: self.free]
        last = self.known[-1]
        self.hessian = answers.hessian
        self.inverse = np.linalg.inv(self.hessian)
        self.gram, self.blur = last.curvature * answers.matrix, last.curvature * answers.blur
        # how far the points that were stepped from are from the end: a step leaves a part of that
        self.moves = sum((w * step.values[:, 0] for w, step in zip(self.shares, self.known, strict=True)), -self.end)

    # -- refusals -----------------------------------------------------------------------------------------------

    @property
    def objection(self) -> str | None:
        """Why the answers tell no standard errors."""
        a, rows = self.answers, self.problem.counted
        if a.rarer is not None and a.rarer * a.strength < FEWEST_OF_A_CLASS * self.k:
            return f"the rarer class has too few {rows} for standard errors of {self.k - self.free} coefficients"
        if a.scale < LEAST_SCALE:
            return "the noise explains half of the model, which was shrunk so far that intervals would be guesses"
        usual = (self.k + 3 * math.sqrt(2 * self.k)) * (self.sd**2 + (PART_OF_SAMPLING * self._spread) ** 2)
        if self._length(self.moves) > MOVING * usual:  # by three sigmas more than noise alone
            return STILL_MOVING
        if self.problem.loss.classifies and abs(self._growth) > GROWING * self.sd:
            return STILL_MOVING
        if float(np.mean(self.lost[self.free :])) > MOST_LOST:
            return "the Gram matrix of the features is lost in its noise; fewer features or a larger epsilon help"
        return None

    @property
    def lost(self) -> NDArray[np.bool_]:
        """Whether the Gram matrix, along a coefficient, is not known well enough to say how far it may be off."""
        inverse = np.linalg.inv(self.gram)
        relative: Floats = self.blur * np.square(inverse).sum(axis=1) / np.diag(inverse)
        return np.asarray(relative > LOST)

    # -- standard errors ----------------------------------------------------------------------------------------

    @property
    def noise(self) -> Floats:
        """By all that is not sampling: known noise, and squares of what may be left."""
        left = self._noise_of_gram + self._ridge + self._left + self._grown
        return np.where(self.lost, np.nan, np.sqrt(self.noise_of_steps + left + self._clipped + self._shrinkage))

    @property
    def sampling(self) -> Floats:
        """W V W / n, the sandwich, and half of what its noise may be; widened for features that were chosen.

        Intervals at level 1 - alpha s/d have a false coverage rate of alpha (Benjamini and Yekutieli 2005).
        """
        root, a, d = self.known[-1].root, self.answers, self.problem.d
        own = np.diag(self.inverse)
        found: Floats = np.diag(root @ a.meat @ root.T) + a.meat_noise * np.square(root).sum(axis=1) / 2
        least = SURELY * self._spread**2 * self.problem.n * own
        if self.problem.loss.classifies:  # labels that follow the model give the Hessian itself
            least = np.maximum(least, own)
        chosen = min(1.0, (self.k - self.free) / d)
        wider = float(ndtri(1 - (1 - LEVEL) / 2 * chosen) / ndtri((1 + LEVEL) / 2))
        return wider * np.sqrt(np.maximum(found, least) / self.problem.n)

    @property
    def stability(self) -> Floats:
        """The part of other draws of the released quadratic, as noisy and on other rows, that keep a column.

        NaN where columns were picked: no answer tells how close the others were.
        """
        pruning = self.answers.pruning
        if pruning is None:
            return np.full(self.k, 1.0 if self.k - self.free == self.problem.d else np.nan)
        keep = self.k - self.free
        values, near = eliminate(pruning.values, pruning.hessian, min(RIVALS * keep, len(pruning.values)), self.free)
        hessian = np.linalg.inv(np.linalg.inv(pruning.hessian)[np.ix_(near, near)])
        spread = math.sqrt(2 * (pruning.variance + self._spread**2)) * inverse_root(hessian)
        kept = np.zeros(len(pruning.values))
        for draw in _normal_points(DRAWS, len(near)):
            kept[near[eliminate(values + spread @ draw, hessian, keep, self.free)[1]]] += 1 / DRAWS
        return kept[pruning.left]

    @cached_property
    def shares(self) -> Floats:
        """Of the steps in the end."""
        shares: Floats = self.weights / self.weights.sum()
        return shares

    @property
    def sd(self) -> float:
        """Of the noise of the end, in white coordinates."""
        return float(self.weights.sum() ** -0.5)

    @property
    def noise_of_steps(self) -> Floats:
        """Its variance is exactly known."""
        variance = np.zeros(self.k)
        for share, step in zip(self.shares, self.known, strict=True):
            variance += share**2 / step.weight * np.square(step.root).sum(axis=1)
        return variance

    @property
    def _noise_of_gram(self) -> Floats:
        """H^-1 E m, E the symmetric noise of the Gram matrix, m the moves: its covariance is sd^2/2 (|m|^2 I + mm')."""
        m, sd = self.moves, self.blur / math.sqrt(2 * self.k)
        variance: Floats = sd**2 / 2 * (m @ m * np.square(self.inverse).sum(axis=1) + np.square(self.inverse @ m))
        return variance

    @property
    def _ridge(self) -> Floats:
        """By how much a ridge holds the end back: what it adds to the gradient over the curvature without it."""
        held_back: Floats = np.linalg.inv(self.gram) @ (self.hessian - self.gram) @ self.moves
        return np.square(held_back)

    @property
    def _left(self) -> Floats:
        """The part that a step leaves of an error, from how differently the first and the last one point, spread over
        all directions; twice, since it is not spread evenly."""
        first, last = self.answers.steps[0], self.answers.steps[-1]
        apart = self._length(((last.values + last.move) - (first.values + first.move))[:, 0])
        between = self._length((last.values - first.values)[:, 0])
        noise = self.k * (1 / first.weight + 1 / last.weight)
        part = min(max(apart - noise, 0.0) / between, 1.0) if between > 0 else 1.0
        part = max(part, BENT_OF_CLASSES if self.problem.loss.classifies else BENT)
        left: Floats = 2 * part * self._length(self.moves) / self.k * np.diag(self.inverse)
        return left

    @property
    def _growth(self) -> float:
        """By how much the last steps made a model longer, in white coordinates."""
        size = math.sqrt(self._length(self._slopes))
        return -float(self._slopes @ self.hessian @ self.moves) / size if size > 0 else 0.0

    @property
    def _grown(self) -> Floats:
        """Curvatures of classes are smallest along the model, so steps are too short there: it may grow on."""
        if not self.problem.loss.classifies:
            return np.zeros(self.k)
        size = max(self._length(self._slopes), 1e-300)
        return (STILL_TO_GROW * self._growth) ** 2 * np.square(self._slopes) / size

    @property
    def _slopes(self) -> Floats:
        """The end without the constant."""
        return np.where(np.arange(self.k) < self.free, 0.0, self.end)

    @property
    def _clipped(self) -> Floats:
        """A clip may cut off so many rows that the sum of what is cut is of the order of the noise."""
        sd = float(self.shares @ self.weights**-0.5)
        return CLIPPED**2 * self.k * sd**2 * np.diag(self.inverse)

    @property
    def _shrinkage(self) -> Floats:
        """Known, but intervals lie around the shrunk values."""
        return np.square(self.end - self.shrunk)

    @property
    def _spread(self) -> float:
        """The sampling error in white coordinates."""
        size = max(float(np.trace(self.answers.meat)) / self.k, self.answers.meat_noise / math.sqrt(self.k))
        return math.sqrt(size / self.problem.n)

    def _length(self, v: Floats) -> float:
        return float(v @ self.hessian @ v)


def _normal_points(count: int, dimension: int) -> Floats:
    """Points spread as evenly as draws of N(0, I) are on the average: multiples of roots of primes, modulo 1."""
    primes = [p for p in range(2, 20 * dimension + 20) if all(p % q for q in range(2, math.isqrt(p) + 1))][:dimension]
    places = np.outer(np.arange(1, count + 1), np.sqrt(primes)) % 1.0
    points: Floats = ndtri(np.clip(places, 1e-9, 1 - 1e-9))
    return points
