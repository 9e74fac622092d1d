"""Staged private pursuit: few features at a time, with clips that are estimated again, privately, at every stage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from thresher.algorithms.defaults import check_rounds, largest_residual
from thresher.algorithms.uncertainty import (
    CLIPPED,
    Competition,
    Move,
    Uncertainty,
    errors_of_classes,
    errors_of_numbers,
    keeping_chance,
)
from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Budget, is_whole
from thresher.privacy.conversions import zcdp_rho
from thresher.privacy.facts import INTERCEPT_ENTRY
from thresher.privacy.plan import Plan
from thresher.privacy.pricing import positions
from thresher.privacy.releases import (
    GaussianGram,
    GaussianMoments,
    GaussianRestrictedGradient,
    GumbelQuantile,
    GumbelSelection,
    Release,
)
from thresher.vaults import CentralVault
from thresher.vaults.problem import LinearProblem

__all__ = ["GramCurvature", "MomentCurvature", "Pursuit", "has_standard_errors"]


class MomentCurvature:
    """Columns one by one: their second moments, at least three times their noise and 0.3 of their mean."""

    def __init__(self, fixed: Floats) -> None:
        self._fixed = fixed  # the columns known from the start: the intercept's
        self._squares = np.empty(0)

    def add(self, squares: Floats, sd: float) -> None:
        """The noisy second moments of new columns."""
        self._squares = np.append(self._squares, np.maximum(squares, 3 * sd))

    def matrix(self) -> Floats:
        squares = self._squares
        return np.diag(np.append(self._fixed, np.maximum(squares, 0.3 * squares.mean())))


class GramCurvature:
    """Columns together: the mean of the Gram matrices of a growing set, weighted by one over their noise variance."""

    def __init__(self) -> None:
        self._total = self._weight = np.zeros((0, 0))

    def add(self, gram: Floats, sd: float) -> None:
        """One more noisy Gram matrix; new columns come last. ``sd`` is the noise on its diagonal."""
        more = (0, len(gram) - len(self._total))
        variance = max(sd, 1e-150) ** 2 if sd > 0 else 1.0  # a smaller sd would have no square
        self._total = np.pad(self._total, more) + gram / variance
        self._weight = np.pad(self._weight, more) + 1 / variance
        self._noisy = sd > 0

    def matrix(self) -> Floats:
        """The mean, its eigenvalues raised to the size of its noise and to a tenth of their median."""
        values, vectors = np.linalg.eigh(self._total / self._weight)
        noise = math.sqrt(2 * len(values) * float(np.mean(1 / self._weight))) if self._noisy else 0.0
        least = max(noise, 0.1 * float(np.median(values)), 1e-12)
        raised: Floats = (vectors * np.maximum(values, least)) @ vectors.T
        return raised


GROWTH = 1.4  # every stage gets so many times the budget of the one before: its clip is smaller
PICKS, MOMENTS, GRAM = 0.55, 0.05, 0.10  # of what the quantiles leave; the values get the rest
CHEAP = 0.1  # a Gram matrix is worth its price if its noise is below this part of a typical eigenvalue
RANK_ERROR, QUANTILES = 0.05, 0.10  # a quantile may be off by this part of the rows, unless all cost more than this
LEVELS = 1.1 ** -np.arange(150.0)  # a geometric grid, downwards from the largest value
START = 0.02  # for the share of ones that a classifier's intercept starts from
BELIEF = 2.0  # an effect of more than so many first clips is not believed to be signal
SURPRISE = 3.0  # of d columns that mean nothing the best few reach so many standard errors by sampling alone
FLATTEST = 0.3  # of the logistic loss's largest curvature: no flatter is believed
LEAST_ROW, LEAST_ENTRY = 0.5, 0.2  # of a bound: if most rows are 0 on the chosen columns, so are the quantiles of
# their norms, and clips of almost nothing would leave a curvature of nothing to divide by
OVERSHOT = 0.25  # a move whose end still has this part of its slope, the other way, is cut back
INWARD = 1 - 1e-12  # shares that add up to the whole must not exceed it by round-off
METHOD: dict[str | None, str] = {
    "gaussian": "The known noise of the last gradient, what the moves show to be left of the error before it, and the "
    "sampling error of a regression with clipped residuals; leaves out what features that were not selected explain of "
    "selected ones, and that values near zero are reported only if they are large.",
    "bernoulli": "The known noise of the last gradient, and for Gaussian margins that follow the model the sampling "
    "error and what clipping and steps that are too short leave; leaves out features that were not selected, and that "
    "values near zero are reported only if they are large.",
}


@dataclass(frozen=True)
class Pursuit:
    """Stages 1..S, then refinements: the clip of a stage is a private quantile, picks and values get noise to match.

    A stage (1) takes R, a private quantile of |residual|; (2) picks s/S new columns at once by |X' clip(r, R)|; (3)
    takes G, a private quantile of the rows' gradient norms on the columns chosen so far, and their noisy gradient
    clipped at G; (4) moves all their values by H^-1 gradient, H the noisy second moments or Gram matrix of the columns,
    and sets those to zero that the known noise could explain. If a gradient shows that the last move overshot, the move
    is cut back first. A refinement has no picks.

    Guarantee: exponential mechanisms and Gaussians composed in zCDP. Clips are private answers themselves, and the
    price of a release depends on its noise over its clip only.

    Parameters
    ----------
    stages : int, optional
        Stages S in which new columns are picked. None: a public rule.
    refinements : int, optional
        Rounds without picks at the end. None: 2 where classes take several stages, since their loss bends; else
        1.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> from thresher.algorithms import Pursuit
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = SparseRegressor(
    ...     1, epsilon=2.0, feature_bound=1.0, target_bound=1.0, algorithm=Pursuit(stages=1)
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.epsilon
    2.0
    """

    stages: int | None = None
    refinements: int | None = None  # None: 2 where classes take several stages, since their loss bends; else 1

    name: ClassVar[str] = "pursuit"

    def __post_init__(self) -> None:
        check_rounds(self.stages, "stages")
        if self.refinements is not None and not (is_whole(self.refinements) and self.refinements >= 0):
            raise ValueError(
                f"refinements={self.refinements!r} must be a whole number of at least 0, or None for the public default"
            )

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        if not has_standard_errors(problem):
            raise ValueError(
                f"algorithm='pursuit' has no formulas for the loss {problem.loss.name!r}, only for 'squared' and "
                "'logistic'; use algorithm='dp-ight' or 'peeling'"
            )
        stay, odds = problem.loss.residuals_stay, problem.loss.likelihood == "bernoulli"
        rho = zcdp_rho(budget.epsilon, budget.delta)
        stages = min(self.stages or default_stages(problem, rho), problem.sparsity)
        refinements = (2 if stay and stages > 1 else 1) if self.refinements is None else self.refinements
        rounds, gram = stages + refinements, worth_a_gram(problem, rho)
        asked = (3 if gram else 2) * rounds + (problem.intercept and not odds)
        quantiles = asked * quantile_rho(problem, rho, asked)
        start = START * rho if odds and problem.intercept else 0.0
        left = rho if math.isinf(rho) else (rho - quantiles - start) * INWARD
        late = GROWTH ** np.arange(rounds) / np.sum(GROWTH ** np.arange(rounds)) * left
        early = GROWTH ** np.arange(stages) / np.sum(GROWTH ** np.arange(stages)) * left
        counts = np.diff(np.linspace(0, problem.sparsity, stages + 1).round().astype(int))
        releases: list[Release] = [GumbelQuantile.for_rho(quantiles, times=asked)]
        releases += [GaussianRestrictedGradient.for_rho(start)] if start else []
        releases += [GumbelSelection.for_rho(PICKS * part, picks=int(k)) for part, k in zip(early, counts, strict=True)]
        if gram:
            releases += [GaussianGram.for_rho(GRAM * part) for part in late]
        else:
            releases += [GaussianMoments.for_rho(MOMENTS * part) for part in early]
        values = 1 - PICKS - (GRAM if gram else MOMENTS)
        releases += [GaussianRestrictedGradient.for_rho(values * part) for part in late]
        order = positions(releases, _asked(releases, rounds, start > 0))
        settings = {"stages": stages, "refinements": refinements, "clip": "private quantiles", "order": order}
        return Plan(self.name, problem, budget, tuple(releases), settings)

    def run(self, vault: CentralVault) -> Floats:
        path = _Path(vault)
        path.start()
        for stage in range(path.rounds):
            path.take_clip()
            if stage < len(path.picks):
                path.pick(stage)
            path.move(stage)
        vault.published["uncertainty"] = path.uncertainty()
        return path.theta


def _asked(releases: Sequence[Release], rounds: int, odds: bool) -> list[Release]:
    """What is asked, in this order: an intercept's start, then stage by stage."""
    (quantile,) = (release for release in releases if isinstance(release, GumbelQuantile))
    picks, moments, grams, values = (
        [release for release in releases if isinstance(release, kind)]
        for kind in (GumbelSelection, GaussianMoments, GaussianGram, GaussianRestrictedGradient)
    )
    asked: list[Release] = [values.pop(0)] if odds else []
    asked += [quantile] * (quantile.times - (3 if grams else 2) * rounds)
    for stage in range(rounds):
        asked += [quantile, *picks[stage : stage + 1], *moments[stage : stage + 1]]
        asked += [quantile, grams[stage]] if grams else []
        asked += [quantile, values[stage]]
    return asked


class _Path:
    """Where the pursuit stands: the model, the columns chosen so far, the clip in force and the last move."""

    def __init__(self, vault: CentralVault) -> None:
        self.vault, self.problem = vault, vault.problem
        (self.quantile,) = _of(GumbelQuantile, vault.plan)
        self.picks, self.values = _of(GumbelSelection, vault.plan), _of(GaussianRestrictedGradient, vault.plan)
        self.moments, self.grams = _of(GaussianMoments, vault.plan), _of(GaussianGram, vault.plan)
        self.rounds = vault.plan.settings["stages"] + vault.plan.settings["refinements"]
        self.theta = self.problem.origin()
        self.support = np.arange(self.problem.d, self.problem.dimension)  # the intercept first, then columns as picked
        self.curvature = (
            GramCurvature() if self.grams else MomentCurvature(np.full(len(self.support), INTERCEPT_ENTRY**2))
        )
        self.clip = self.first_clip = math.inf
        self.damping = 1.0
        self.moves: list[Move] = []
        self.floors = np.empty(0)
        self.picked = (0, 0, 0.0, 0.0)  # of the last picks: columns, how many, noise, clip
        self.likelihood = self.problem.loss.likelihood
        self.odds = self.likelihood == "bernoulli"
        # a clip at the median has the least noise, but it cuts off the rarer class and a classifier learns nothing
        self.q, self.evidence = (0.9, 2.0) if self.odds else (0.5, 3.0)
        self.largest = largest_residual(self.problem)

    def start(self) -> None:
        """The intercept alone: the private median of the targets, or the log-odds of the noisy share of ones."""
        problem = self.problem
        if not problem.intercept:
            return
        if self.odds:  # at the origin every residual is +-1/2
            half_column = INTERCEPT_ENTRY / 2
            mean = self.vault.restricted_gradient(self.theta, self.support, self.values.pop(0), half_column)
            ones = float(np.clip(0.5 - mean[0] / problem.intercept_column, 0.01, 0.99))
            value = math.log(ones / (1 - ones))
        else:
            levels = problem.target_radius * np.concatenate([-LEVELS, [0.0], LEVELS[::-1]])
            value = self.vault.quantile("targets", 0.5, levels, self.theta, self.quantile)
        self.theta[problem.d] = value / problem.intercept_column

    def take_clip(self) -> None:
        """R, the private quantile of |residual|."""
        self.clip = self.vault.quantile("residuals", self.q, self.largest * LEVELS, self.theta, self.quantile)
        if math.isinf(self.first_clip):
            self.first_clip = self.clip

    def pick(self, stage: int) -> None:
        """New columns by their correlation with the clipped residual."""
        taken = self.support[self.support < self.problem.d]
        chosen = self.vault.selection(self.theta, self.picks[stage], self.clip, excluded=taken)
        self.picked = self.problem.d - len(taken), len(chosen), self._last_noise(), self.clip
        self.support = np.append(self.support, chosen)
        if self.moments:
            self.curvature.add(self.vault.moments(chosen, self.moments[stage]), self._last_noise())

    def move(self, stage: int) -> None:
        """theta <- theta - H^-1 gradient on the chosen columns and the intercept; what may be noise becomes zero."""
        problem, support, release = self.problem, self.support, self.values[stage]
        units = problem.units[support]
        norm = problem.norm_in_units(len(support) - problem.intercept)
        if self.grams:
            self._ask_gram(self.grams[stage], norm)
        levels = self.largest * norm * LEVELS
        clip = self.vault.quantile("gradient norms", self.q, levels, self.theta, self.quantile, support)
        clip = max(clip, LEAST_ENTRY * self.clip)
        gradient = self.vault.restricted_gradient(self.theta, support, release, clip) / units
        H = self.curvature.matrix()
        sd = self._last_noise()
        now, gradient, variance = self._cut_back(self.theta[support] * units, gradient, sd)
        step: Floats = self.damping / self._flattened(now, H) * np.linalg.inv(H).astype(np.float64)
        values = now - step @ gradient
        noise = np.hypot(self.evidence * sd * np.linalg.norm(step, axis=1), SURPRISE * self._sampling(step, H))
        believable = BELIEF * (1.0 if self.odds else self.first_clip)
        drowned = (np.abs(values) < noise) | (noise * np.sqrt(np.diag(H)) > believable)
        values[drowned] = np.where(support == problem.d, now, 0.0)[drowned]
        self.moves, self.floors = [*self.moves[-1:], Move(now, values, gradient, variance, step, H, clip)], noise
        self.theta = problem.origin()
        self.theta[support] = values / units

    def _cut_back(self, now: Floats, gradient: Floats, sd: float) -> tuple[Floats, Floats, Floats]:
        """Where to go on from, the gradient there and its noise: a move that overshot ends where its slope vanishes.

        The gradient at the end of the last move shows that for free (secant rule), if it stands out of its noise.
        Columns that share a mean or a neighbour move too far together; all later steps are shortened alike.
        """
        variance = np.full(len(now), sd**2)
        if self.moves:
            before, slope = self.moves[-1].now, self.moves[-1].gradient
            k = len(before)
            move = now[:k] - before
            start, end = -float(slope @ move), float(gradient[:k] @ move)
            if start > 0 and end > max(OVERSHOT * start, 2 * sd * float(np.linalg.norm(move))):
                part = start / (start + end)
                now, gradient = now.copy(), gradient.copy()
                now[:k] = before + part * move
                gradient[:k] = slope + part * (gradient[:k] - slope)
                variance[:k] = (1 - part) ** 2 * self.moves[-1].variance + part**2 * sd**2
                self.damping *= part
        return now, gradient, variance

    def uncertainty(self) -> Uncertainty:
        """How far the values may be off, and whether another run would find the same features: no further question."""
        problem, (*before, last) = self.problem, self.moves
        if self.odds:
            noise, sampling = errors_of_classes(last, before[0] if before else None, problem.n, problem.intercept)
        else:
            noise, sampling = errors_of_numbers(last, before[0] if before else None, self.clip, self.q, problem.n)
        columns, picks, gumbel, clip = self.picked
        slope = self._flattened(last.values, last.H)
        square = slope if self.odds else CLIPPED * clip**2
        picking = Competition(columns, picks, gumbel, slope, math.sqrt(square / problem.n))
        picked = picking.chance(last.values, np.diag(last.H))
        again = np.sqrt(last.noise + sampling**2)  # between runs: both would leave the same errors of method
        stability = picked * keeping_chance(last.values, again, self.floors)
        found = {"noise": noise / problem.units[self.support], "sampling": sampling / problem.units[self.support]}
        whole = {name: problem.origin() for name in ("noise", "sampling", "stability")}
        for name, values in {**found, "stability": stability}.items():
            whole[name][self.support] = values
        return Uncertainty(**whole, method=METHOD[self.likelihood])

    def _ask_gram(self, release: Release, norm: float) -> None:
        clip = self.vault.quantile("row norms", 0.9, norm * LEVELS, self.theta, self.quantile, self.support)
        clip = max(clip, LEAST_ROW)
        self.curvature.add(self.vault.gram(self.support, release, clip), self._last_noise())

    def _sampling(self, step: Floats, H: Floats) -> Floats:
        """The standard error that other rows of the same law would give each value: no noise, but as little signal.

        A row's gradient is its clipped residual times its entries. At most curvature = 1/4 is a class's variance.
        """
        square = self.problem.curvature if self.odds else CLIPPED * self.clip**2
        spread: Floats = np.sqrt(square / self.problem.n * np.einsum("ij,jk,ik->i", step, H, step))
        return spread

    def _flattened(self, now: Floats, H: Floats) -> float:
        """The loss's mean curvature in a margin.

        For numbers, residuals above the median are clipped: the part that are not. For classes, that of Gaussian
        margins with the model's own second moment.
        """
        if self.odds:
            nodes, weights = np.polynomial.hermite_e.hermegauss(15)
            p = expit(nodes * math.sqrt(max(float(now @ H @ now), 0.0)))
            return max(float(weights @ (p * (1 - p)) / weights.sum()), FLATTEST * self.problem.curvature)
        return min(1.0, self.q + math.log(len(LEVELS)) * self.quantile.multiplier / self.problem.n)

    def _last_noise(self) -> float:
        """The scale of the noise in the last answer, which is public."""
        return self.vault.answers[-1].scale


def has_standard_errors(problem: LinearProblem) -> bool:
    """Whether the law that belongs to the loss is one that moves and their errors are computed for."""
    return problem.loss.likelihood in METHOD


def default_stages(problem: LinearProblem, rho: float) -> int:
    """More stages where the noise of one is small: 3, 5 or 8 as n sqrt(rho) / s is below 20, below 80, or above.

    For classes 1, 2, 3 or 8 as n sqrt(rho / s) is below 250, 400, 700, or above.
    """
    if problem.loss.residuals_stay:  # those of classes hardly shrink from stage to stage
        strength = problem.n * math.sqrt(rho / problem.sparsity)
        return 1 if strength < 250 else 2 if strength < 400 else 3 if strength < 700 else 8
    strength = problem.n * math.sqrt(rho) / problem.sparsity
    return 3 if strength < 20 else 5 if strength < 80 else 8


def worth_a_gram(problem: LinearProblem, rho: float) -> bool:
    """Always for a classifier, whose columns are seldom centred; else if its noise, of order s^1.5 / n, is small."""
    return problem.loss.classifies or 2 * problem.sparsity**1.5 < CHEAP * problem.n * math.sqrt(2 * GRAM * rho)


def quantile_rho(problem: LinearProblem, rho: float, asked: int) -> float:
    """The zCDP price of one of ``asked`` quantiles: off by log(levels) noise scales, so by RANK_ERROR of the rows."""
    if math.isinf(rho):
        return rho
    return min((math.log(len(LEVELS)) / (RANK_ERROR * problem.n)) ** 2 / 2, QUANTILES * rho / asked)


def _of(kind: type[Release], plan: Plan) -> list[Release]:
    return [release for release in plan.releases if isinstance(release, kind)]
