"""Peeling: noisy iterative hard thresholding that pays for the chosen coordinates only (Cai, Wang, Zhang 2021)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from thresher.algorithms.defaults import (
    check_positive,
    check_rounds,
    clip_levels,
    guess_loss,
    largest_residual,
    residual_clip,
)
from thresher.privacy.arrays import Floats, Indices
from thresher.privacy.budget import Budget
from thresher.privacy.conversions import zcdp_rho
from thresher.privacy.facts import INTERCEPT_ENTRY
from thresher.privacy.plan import Plan
from thresher.privacy.pricing import positions
from thresher.privacy.releases import (
    GaussianRestrictedGradient,
    GumbelNearMaximum,
    GumbelQuantile,
    GumbelSelection,
    GumbelStep,
    Release,
)
from thresher.vaults import CentralVault
from thresher.vaults.problem import LinearProblem

__all__ = ["Peeling"]

Loop = Literal["searched", "paper"]

CLIPS, LENGTHS = 0.05, 0.10  # of the budget of a searched loop: for clips, and for how far it goes
START, FINISH = 0.03, 0.03  # the same for where an intercept of numbers starts, and for its correction at the end
MEDIANS = np.linspace(-1, 1, 257)  # of targets, in units of their radius
STEPS = np.append(0.0, 2.0 ** np.arange(-4, 3))  # times the last step
SCALES = (2.0**-8, 2.0**3)  # of steps, over the first
KEPT = np.linspace(0.0, 1.0, 5)  # of the coefficients in the end
LEVELS = 30  # of a clip
ALLOWED = 4.0  # times the noise of a sum, in rows
EVIDENCE = 3.0  # times what the noise of a step does to a value: what is less is dropped
WIDER = 4.5  # times the square of a residual's clip is the most that a row's loss may count: half of (3 R)^2


@dataclass(frozen=True)
class Peeling:
    """theta_t = P_s(theta_{t-1} - step * gradient(theta_{t-1})): P_s chooses s coordinates and adds noise to them only.

    Guarantee: in each of T rounds the s largest of |theta - step * gradient| are picked at once with Gumbel noise
    (errata 3c, item 1: as good as peeling them off one by one), s epsilon_0^2/8-zCDP, and the values of those s get
    Gaussian noise. The picks need the l-infinity sensitivity only: one residual clip times one entry, not a whole row.

    With ``loop="paper"`` all steps have one length and residuals one public clip: where columns are correlated that
    diverges. The default asks, in every round, at which level to clip residuals and which of several lengths has the
    least loss, no step among them; and in the end how much of the model to keep, nothing included. So noise and
    correlation may cost the model its use, and no more. Their price is a part of the same budget.

    Parameters
    ----------
    iterations : int, optional
        Rounds T. None: a public rule of n, d, s and the budget.
    step : float, optional
        Of the paper's loop: length of a step in units in which every column's bound is 1. None: a public rule.
    clip : float, optional
        Of the paper's loop: what residuals are clipped to. None: a public rule of the bounds.
    share : float
        Of the budget for picks and values, the part for picks.
    loop : {"searched", "paper"}
        Whether lengths and clips are asked for. A loss that states no value can take the paper's loop only, and does.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> from thresher.algorithms import Peeling
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = SparseRegressor(
    ...     1, epsilon=2.0, feature_bound=1.0, target_bound=1.0, algorithm=Peeling(iterations=3)
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.epsilon
    2.0
    """

    iterations: int | None = None
    step: float | None = None
    clip: float | None = None  # of a residual
    share: float = 0.5  # of the budget for the picks
    loop: Loop = "searched"

    name: ClassVar[str] = "peeling"

    def __post_init__(self) -> None:
        check_rounds(self.iterations)
        check_positive(step=self.step, clip=self.clip)
        if not 0 < self.share < 1:
            raise ValueError(f"share={self.share!r} of the picks must lie strictly between 0 and 1")
        if self.loop not in ("searched", "paper"):
            raise ValueError(f"loop={self.loop!r} must be 'searched' or 'paper'")
        for name in ("step", "clip"):
            if self.loop != "paper" and getattr(self, name) is not None:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is searched for privately; to fix it, add loop='paper'"
                )

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        rho = zcdp_rho(budget.epsilon, budget.delta)
        rounds = self.iterations or default_rounds(problem, rho)
        loop: Loop = self.loop if problem.loss.states("value") else "paper"
        centred = loop == "searched" and problem.intercept and not problem.loss.residuals_stay
        spent = 0.0 if loop == "paper" else CLIPS + LENGTHS + (START + FINISH) * centred
        left = rho if math.isinf(rho) else (1 - spent) * rho
        picks = GumbelSelection.for_rho(self.share * left, rounds, problem.sparsity)
        values = GaussianRestrictedGradient.for_rho((1 - self.share) * left, rounds)
        releases: list[Release] = [picks, values]
        asked: list[Release] = [picks, values] * rounds
        settings: dict[str, Any] = {
            "rounds": rounds,
            "loop": loop,
            "share": self.share,
            "step": float(self.step or first_step(problem)),
        }
        settings["clip"] = float(self.clip or residual_clip(problem)) if loop == "paper" else "private near maxima"
        if loop == "searched":
            clips = GumbelNearMaximum.for_rho(CLIPS * rho, rounds + centred)
            lengths = GumbelStep.for_rho(LENGTHS * rho, rounds + 1)
            releases = [*releases, clips, lengths]
            asked = [*[clips, picks, values, lengths] * rounds, lengths]
            if centred:
                start, finish = GumbelQuantile.for_rho(START * rho), GaussianRestrictedGradient.for_rho(FINISH * rho)
                releases, asked = [*releases, start, finish], [start, *asked, clips, finish]
        settings["order"] = positions(releases, asked)
        return Plan(self.name, problem, budget, tuple(releases), settings)

    def run(self, vault: CentralVault) -> Floats:
        return _searched(vault) if vault.plan.settings["loop"] == "searched" else _as_in_the_paper(vault)


def _as_in_the_paper(vault: CentralVault) -> Floats:
    picks, values = vault.plan.releases
    steps, clip, theta = _steps(vault), vault.plan.settings["clip"], vault.problem.origin()
    for _ in range(picks.times):
        support, gradient = _asked(vault, theta, picks, values, steps, clip)
        kept = theta[support] - steps[support] * gradient
        theta = vault.problem.origin()
        theta[support] = kept
    return theta


def _searched(vault: CentralVault) -> Floats:
    picks, values, clips, lengths, *ends = vault.plan.releases
    problem, theta, scale = vault.problem, vault.problem.origin(), 1.0
    if ends:
        levels = problem.target_radius * MEDIANS
        theta[problem.d] = vault.quantile("targets", 0.5, levels, theta, ends[0]) / problem.intercept_column
    for _ in range(picks.times):
        steps = _steps(vault)
        steps[: problem.d] *= scale
        clip = _clip(vault, theta, clips, _worth_clipping(problem, values))
        support, gradient = _asked(vault, theta, picks, values, steps, clip)
        noise = vault.answers[-1].scale * steps * problem.units  # in what a whole step leads to; none in other columns
        noise[problem.d :] = 0.0
        start, direction = problem.origin(), problem.origin()
        start[support], direction[support] = theta[support], steps[support] * gradient
        length = _length(vault, start, direction, STEPS, lengths, clip)
        theta = start - length * direction
        theta[np.abs(theta) < EVIDENCE * length * noise] = 0.0
        scale = float(np.clip(scale * (length or 0.5), *SCALES))
    rest = theta.copy()
    rest[problem.d :] = 0.0
    theta = theta - _length(vault, theta, rest, 1 - KEPT, lengths, clip) * rest
    return _at_the_mean(vault, theta, clips, ends[1]) if ends else theta


def _asked(
    vault: CentralVault, theta: Floats, picks: Release, values: Release, steps: Floats, clip: float
) -> tuple[Indices, Floats]:
    """Which coordinates a step would leave largest, and the gradient on them and the intercept's."""
    problem = vault.problem
    offset = (theta / (steps * problem.entry_bounds))[: problem.d]
    support = np.append(vault.selection(theta, picks, clip, offset), np.arange(problem.d, problem.dimension))
    return support, vault.restricted_gradient(theta, support, values, clip * problem.norm_in_units(problem.sparsity))


def _steps(vault: CentralVault) -> Floats:
    """The length of a step in each coordinate; in the intercept's, one over its curvature."""
    problem = vault.problem
    steps: Floats = vault.plan.settings["step"] / problem.entry_bounds**2
    if problem.intercept:
        steps[problem.d] = 1 / (problem.curvature * problem.intercept_column**2)
    return steps


def _at_the_mean(vault: CentralVault, theta: Floats, clips: Release, release: Release) -> Floats:
    """With the intercept where predictions are right on the average: a low clip has led it to a median."""
    constant, allowed = np.array([vault.problem.d]), ALLOWED * math.sqrt(2) * release.multiplier
    clip = INTERCEPT_ENTRY * _clip(vault, theta, clips, allowed)
    found = vault.restricted_gradient(theta, constant, release, clip)
    theta[constant] -= found / vault.problem.intercept_column**2
    return theta


def _worth_clipping(problem: LinearProblem, values: Release) -> float:
    """Half of the residuals: of numbers a low clip has the least noise, and turns few gradients.

    Of classes so few that clipping does no more harm than the noise of the values: the rarer one has the large ones.
    """
    if not problem.loss.residuals_stay:
        return problem.n / 2
    return min(ALLOWED * math.sqrt(2 * problem.sparsity) * values.multiplier, problem.n / 3)


def _clip(vault: CentralVault, theta: Floats, release: Release, allowed: float) -> float:
    """What about so many residuals exceed."""
    problem = vault.problem
    levels, price = clip_levels(largest_residual(problem), LEVELS, release.multiplier, problem.n)
    return vault.near_maximum("residuals", levels, min(allowed, problem.n / 2), price, theta, release)


def _length(
    vault: CentralVault, theta: Floats, direction: Floats, lengths: Floats, release: Release, clip: float
) -> float:
    """The one with the least loss, that of a row clipped where its residual is."""
    largest = 4 * guess_loss(vault.problem) if vault.problem.loss.residuals_stay else WIDER * clip**2
    return float(lengths[vault.step_length(theta, direction, lengths, release, largest)])


def first_step(problem: LinearProblem) -> float:
    """Over the loss's curvature: one over the second moment of a column that fills its bound as a uniform one does is
    3."""
    return STEP / problem.curvature


STEP = 2.0


def default_rounds(problem: LinearProblem, rho: float) -> int:
    """More rounds where the noise of one is small against the signal: a public rule of n, s and the budget."""
    return round(min(max(problem.n * math.sqrt(rho) / (50 * problem.sparsity), 3), 20))
