"""DP-SRM (thesis, Algorithm 4): stochastic recursive momentum with noise; STORM is the same without (CO 2019)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from thresher.algorithms.defaults import between_classes, check_positive, check_rounds
from thresher.algorithms.stochastic import State, Stochastic
from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Budget
from thresher.privacy.plan import Plan
from thresher.privacy.releases import (
    GaussianGradient,
    Release,
    SampledGradient,
    SampledMomentum,
    least_noise,
    noise_guess,
)
from thresher.privacy.sensitivity import gradient_sensitivity, momentum_clip
from thresher.vaults import CentralVault
from thresher.vaults.problem import LinearProblem

__all__ = ["DPSRM", "STORM"]


@dataclass(frozen=True)
class DPSRM(Stochastic):
    """theta_{t+1} = theta_t - eta_t v_t, eta_t = min(step, reach / ||v_t||);

    v_{t+1} = (1-g) v_t + mean over a new batch of [(1-g) clip_C2(g_i(theta_{t+1}) - g_i(theta_t)) + g
    clip_C1(g_i(theta_{t+1}))] + noise, with C1 = ``clip``, C2 = ``difference_clip`` and g = ``momentum``.

    A short move changes a row's gradient by little, so the noise is that of (1-g) C2 + g C1, not of C1 (erratum E-18);
    where the move bounds the change below C2, C2 follows it. The accountant calibrates the noise as a whole: the
    printed lemma certifies nothing at the printed budgets (erratum E-17).

    The thesis starts with v_0, the noisy gradient of ``first_batch`` rows. By default v starts at rest, from 0: the
    first gradient is the largest, and would drive the iterate for 1/g rounds.

    Parameters
    ----------
    passes : float, optional
        How often every row is asked about on the average. None: a public rule of n, d and the budget.
    batch : int, optional
        Expected number of rows in a batch. None: a public rule; n takes all rows, and no batch is drawn.
    step : float, optional
        Length of a step. None: as long as the noise, known in advance, lets it be useful.
    clip : float, optional
        l2 norm to which the gradient of a row is clipped. None: a public rule of the bounds.
    sampling : {"poisson", "fixed"}
        Each row joins a batch by a coin of its own, or a batch is a random set of a fixed size (replace-one
        only).
    output : {"average", "last", "random"}
        The mean of the last quarter of the iterates, the last one, or one drawn at random.
    first_batch : int, optional
        Rows of the first gradient. None or 0: start at rest.
    difference_clip : float, optional
        l2 norm to which the change of a row's gradient is clipped. None: a public rule.
    momentum : float
        g: how much of the direction is new in every round.
    reach : float, optional
        Longest move. None: a public rule.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import DenseRegressor
    >>> from thresher.algorithms import DPSRM
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = DenseRegressor(
    ...     epsilon=2.0, feature_bound=1.0, target_bound=1.0, algorithm=DPSRM(batch=100, passes=2)
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.epsilon
    2.0
    """

    first_batch: int | None = None
    difference_clip: float | None = None
    momentum: float = 0.2
    reach: float | None = None

    name: ClassVar[str] = "dp-srm"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_rounds(self.first_batch, "first_batch")
        check_positive(difference_clip=self.difference_clip, reach=self.reach)
        if not 0 < self.momentum <= 1:
            raise ValueError(f"momentum={self.momentum!r} must lie above 0 and not above 1")

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        self._check_budget(budget)
        if problem.n < 2:
            raise ValueError(f"n={problem.n}: {self.name} draws batches, parts of the rows; declare at least 2")
        batch, rounds = self._sizes(problem, budget)
        batch, clip = min(batch, problem.n - 1), self._clip(problem)
        difference = math.inf if not self.private else float(self.difference_clip or DIFFERENCE * self.momentum * clip)
        facts = (problem.n, self.sampling, budget.adjacency)
        first, ratio = self._first(problem.n, batch, clip, difference)

        def releases(sd: float) -> tuple[Release, ...]:
            if first == 0:
                return (SampledMomentum(rounds, sd, batch, *facts),)
            later = SampledMomentum(rounds - 1, sd, batch, *facts)
            if first == problem.n:
                return GaussianGradient(1, ratio * sd), later
            return SampledGradient(1, ratio * sd, first, *facts), later

        guess = noise_guess(budget, rounds, batch / problem.n, self.sampling)
        noise = releases(least_noise(releases, budget, guess))
        sd = 0.0
        if self.private:  # of all that one answer adds to the moves, a part in every round to come
            total = momentum_clip(clip, difference, self.momentum) / self.momentum
            sd = noise[-1].multiplier * gradient_sensitivity(total, batch, budget.adjacency)
        settings = {
            **self._settings(problem, batch, rounds, sd),
            "first_batch": first,
            "difference_clip": difference if math.isfinite(difference) else "none",
            "momentum": self.momentum,
            "reach": self.reach or "none",
        }
        return Plan(self.name, problem, budget, noise, settings, notes=self._notes())

    def _first(self, n: int, batch: int, clip: float, difference: float) -> tuple[int, float]:
        """The first batch's size, and its noise multiplier over the later ones'.

        v_t gathers the noise of about 1/(2g) answers; the first estimate is made as noisy as that, no less.
        """
        if self.first_batch is None:
            return 0, 1.0
        first = min(self.first_batch, n)
        gathered = 1 / math.sqrt(self.momentum * (2 - self.momentum))
        share = momentum_clip(clip, difference, self.momentum) / clip if self.private else 1.0
        return first, share * gathered * first / batch

    def start(self, vault: CentralVault) -> State:
        theta = vault.problem.origin()
        return {**super().start(vault), "before": theta, "estimate": np.zeros_like(theta)}

    def advance(self, vault: CentralVault, state: State) -> State:
        return super().advance(vault, {**state, "estimate": self._estimate(vault, state)})

    def _ask(self, vault: CentralVault, state: State) -> Floats:
        estimate: Floats = state["estimate"]
        return estimate

    def _estimate(self, vault: CentralVault, state: State) -> Floats:
        """v_t."""
        problem, settings = vault.problem, vault.plan.settings
        clip, difference = (_limit(settings[name]) for name in ("clip", "difference_clip"))
        first, later = vault.plan.releases[0], vault.plan.releases[-1]
        if state["t"] == 0 and self.first_batch is not None:
            question = vault.gradient if isinstance(first, GaussianGradient) else vault.sampled_gradient
            return between_classes(question(state["theta"], first, clip), problem)
        moved = float(np.linalg.norm(state["theta"] - state["before"]))
        change = vault.sampled_momentum(
            state["theta"],
            state["before"],
            later,
            clip,
            difference_clip=min(difference, problem.gradient_change(moved)),  # a smaller clip needs less noise
            momentum=self.momentum,
        )
        estimate: Floats = (1 - self.momentum) * state["estimate"] + between_classes(change, problem)
        return estimate

    def _move(self, vault: CentralVault, state: State, gradient: Floats) -> State:
        step, length = vault.plan.settings["step"], float(np.linalg.norm(gradient))
        if self.reach is not None and step * length > self.reach:
            step = self.reach / length
        return {**state, "before": state["theta"], "theta": state["theta"] - step * gradient}

    def _longest_step(self) -> float:
        """As with heavy-ball momentum of 1 - g, which it is where differences are clipped away."""
        return (2 - self.momentum) / self.momentum


@dataclass(frozen=True)
class STORM(DPSRM):
    """DP-SRM without clipping and noise. No privacy whatsoever; it only runs with ``epsilon=float("inf")``.

    Parameters
    ----------
    passes : float, optional
        How often every row is asked about on the average. None: a public rule of n, d and the budget.
    batch : int, optional
        Expected number of rows in a batch. None: a public rule; n takes all rows, and no batch is drawn.
    step : float, optional
        Length of a step. None: as long as the noise, known in advance, lets it be useful.
    clip : float, optional
        l2 norm to which the gradient of a row is clipped. None: a public rule of the bounds.
    sampling : {"poisson", "fixed"}
        Each row joins a batch by a coin of its own, or a batch is a random set of a fixed size (replace-one
        only).
    output : {"average", "last", "random"}
        The mean of the last quarter of the iterates, the last one, or one drawn at random.
    first_batch : int, optional
        Rows of the first gradient. None or 0: start at rest.
    difference_clip : float, optional
        Without effect, as nothing is clipped.
    momentum : float
        g: how much of the direction is new in every round.
    reach : float, optional
        Longest move. None: a public rule.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import DenseRegressor
    >>> from thresher.algorithms import STORM
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = DenseRegressor(
    ...     epsilon=float("inf"), feature_bound=1.0, target_bound=1.0, algorithm=STORM(batch=100, passes=2)
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.grade
    'none'
    """

    name: ClassVar[str] = "storm"
    private: ClassVar[bool] = False

    def _longest_step(self) -> float:
        return 1.0


DIFFERENCE = 0.05
"""The clip of a row's change, over that of its part in the momentum."""


def _limit(setting: Any) -> float:
    return math.inf if setting == "none" else float(setting)
