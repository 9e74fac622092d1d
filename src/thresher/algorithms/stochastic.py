"""What the first-order methods share: batches, passes, the planned noise, the state of a run, what is handed over."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from thresher.algorithms.defaults import (
    between_classes,
    check_positive,
    check_rounds,
    largest_residual,
    residual_clip,
    typical_margin,
)
from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Budget
from thresher.privacy.conversions import gaussian_mu
from thresher.privacy.plan import Plan
from thresher.privacy.releases import GaussianGradient, Release, SampledGradient, SampledRelease
from thresher.privacy.sensitivity import gradient_sensitivity
from thresher.privacy.subsampling import Sampling
from thresher.vaults import CentralVault
from thresher.vaults.problem import LinearProblem

__all__ = ["Output", "State", "Stochastic", "residual_bound", "typical_coefficient"]

State = dict[str, Any]
"""Where a run stands: "t", "theta" and what else the method carries along. Arrays and numbers, so it can be saved."""

Output = Literal["average", "last", "random"]
"""What is handed over: the mean of the last quarter of the iterates, the last one, or one of them, all alike."""

FEWEST_ROUNDS, MOST_ROUNDS, SMALLEST_BATCH = 100, 1000, 32
TRAVEL = 0.75
"""How far a run may go: half the sd of the noise it gathers in the margin of a row at its bound, over a typical margin.
This and the other constants were found on a9a, ijcnn1, adult, Covertype, KDDCup99 and MNIST."""


@dataclass(frozen=True)
class Stochastic:
    """theta_{t+1} = theta_t - move(noisy gradient of a random batch + gradient of the penalty), t = 0..T-1.

    Guarantee: T Gaussian releases over random batches of expected size ``batch``, priced together
    (``SampledGradient``); with ``batch=n`` no batch is drawn and the exact Gaussian curve holds.
    Everything else, steps and averages included, is post-processing. ``None`` means a public rule.
    """

    passes: float | None = None
    batch: int | None = None
    step: float | None = None
    clip: float | None = None
    sampling: Sampling = "poisson"
    output: Output = "average"

    name: ClassVar[str]
    private: ClassVar[bool] = True
    many_outputs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive(passes=self.passes, step=self.step, clip=self.clip)
        check_rounds(self.batch, "batch")
        if self.sampling not in get_args(Sampling):
            raise ValueError(f"sampling={self.sampling!r} must be 'poisson' or 'fixed'")
        if self.output not in get_args(Output):
            raise ValueError(f"output={self.output!r} must be one of {', '.join(map(repr, get_args(Output)))}")

    # -- planning -----------------------------------------------------------------------------------------------

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        self._check_budget(budget)
        batch, rounds = self._sizes(problem, budget)
        release: Release = (
            GaussianGradient.calibrated(budget, rounds)
            if batch == problem.n
            else SampledGradient.calibrated(budget, rounds, batch, problem.n, self.sampling)
        )
        clip = self._clip(problem)
        sd = release.multiplier * gradient_sensitivity(clip, batch, budget.adjacency) if self.private else 0.0
        settings = {**self._settings(problem, batch, rounds, sd), **self._extra_settings(problem)}
        return Plan(self.name, problem, budget, (release,), settings, notes=self._notes())

    def _check_budget(self, budget: Budget) -> None:
        if budget.private and not self.private:
            raise ValueError(
                f"algorithm={self.name!r} is not private, so it cannot keep epsilon={budget.epsilon:g}; use "
                "epsilon=float('inf') for a non-private baseline, or an algorithm whose name begins with 'dp-'"
            )

    def _sizes(self, problem: LinearProblem, budget: Budget) -> tuple[int, int]:
        """The expected batch size and the number of rounds."""
        passes = self.passes or self._default_passes()
        if self.batch is not None:
            batch = min(self.batch, problem.n)
            return batch, max(2, round(passes * problem.n / batch))
        rounds = min(self._default_rounds(problem, budget), max(2, int(passes * problem.n / SMALLEST_BATCH)))
        return min(max(1, int(passes * problem.n / rounds)), problem.n), rounds

    def _default_passes(self) -> float:
        return 5.0

    def _default_rounds(self, problem: LinearProblem, budget: Budget) -> int:
        """As many as the longest stable steps take to go as far as the noise of all rows in every round would allow."""
        mu = gaussian_mu(budget.epsilon, budget.delta)
        per_noise = problem.n * mu / (budget.adjacency.contributions * residual_bound(problem))
        needed = 2 * TRAVEL * typical_margin(problem) * per_noise * problem.curvature / self._longest_step()
        return math.ceil(min(max(needed, FEWEST_ROUNDS), MOST_ROUNDS))

    def _clip(self, problem: LinearProblem) -> float:
        if not self.private:
            return math.inf
        return float(self.clip or residual_bound(problem) * problem.row_norm)

    def _settings(self, problem: LinearProblem, batch: int, rounds: int, sd: float) -> dict[str, Any]:
        clip = self._clip(problem)
        return {
            "rounds": rounds,
            "batch": batch,
            "clip": clip if math.isfinite(clip) else "none",  # JSON knows no infinity
            "sampling": "none" if batch == problem.n else self.sampling,
            "step": self.step or self.default_step(problem, rounds, sd),
            "output": self.output,
        }

    def default_step(self, problem: LinearProblem, rounds: int, sd: float) -> float:
        """The longest step that is stable and with which the noise gathered on the way stays in proportion.

        T steps of length eta along gradients with noise of this sd gather noise of sd eta sqrt(T) sd per coordinate,
        which a row at its bound turns into its margin. That is in proportion to a typical margin, whatever the batches
        and however many rounds: a public rule.
        """
        stable = self._longest_step() / (problem.curvature * problem.row_norm**2)
        if problem.penalty.curvature:  # its gradient enters without momentum
            stable = min(stable, 1 / problem.penalty.curvature)
        if sd == 0:
            return stable
        return min(2 * TRAVEL * typical_margin(problem) / (problem.row_norm * sd * math.sqrt(rounds)), stable)

    def _longest_step(self) -> float:
        """In units of 1/curvature of rows at their bound."""
        return 1.0

    def _extra_settings(self, problem: LinearProblem) -> dict[str, Any]:
        return {}

    def _notes(self) -> tuple[str, ...]:
        return {
            "average": ("the model is the mean of the last quarter of the iterates",),
            "last": ("the model is the last iterate",),
            "random": ("the model is one of the iterates, drawn uniformly at random",),
        }[self.output]

    # -- running ------------------------------------------------------------------------------------------------

    def run(self, vault: CentralVault) -> Floats:
        state = self.start(vault)
        for _ in range(vault.plan.settings["rounds"]):
            state = self.advance(vault, state)
        return self.finish(vault, state)

    def start(self, vault: CentralVault) -> State:
        theta = vault.problem.origin()
        state: State = {"t": 0, "theta": theta, "kept": theta}
        if self.output == "random":
            state["keep_at"] = 1 + vault.whole_number(vault.plan.settings["rounds"])
        return state

    def advance(self, vault: CentralVault, state: State) -> State:
        """One round: one question, one move."""
        gradient = self._ask(vault, state) + vault.problem.penalty_gradient(state["theta"])
        return self._kept(vault.plan, {**self._move(vault, state, gradient), "t": state["t"] + 1})

    def finish(self, vault: CentralVault, state: State) -> Floats:
        """What is handed over after the last round."""
        theta: Floats = state["theta"] if self.output == "last" else state["kept"]
        return theta

    def _ask(self, vault: CentralVault, state: State) -> Floats:
        """A noisy gradient at theta."""
        (release,) = vault.plan.releases
        question = vault.sampled_gradient if isinstance(release, SampledRelease) else vault.gradient
        clip = vault.plan.settings["clip"]
        answer = question(state["theta"], release, math.inf if clip == "none" else clip)
        return between_classes(answer, vault.problem)

    def _direction(self, gradient: Floats) -> Floats:
        """What is done to a noisy gradient before it moves theta."""
        return gradient

    def _move(self, vault: CentralVault, state: State, gradient: Floats) -> State:
        """The state after a move along ``gradient``."""
        raise NotImplementedError

    def _kept(self, plan: Plan, state: State) -> State:
        """The state with what will be handed over brought up to date."""
        if self.output == "random" and state["t"] == state["keep_at"]:
            return {**state, "kept": state["theta"]}
        later = state["t"] - plan.settings["rounds"] * 3 // 4
        if self.output == "average" and later > 0:
            return {**state, "kept": state["kept"] + (state["theta"] - state["kept"]) / later}
        return state


def residual_bound(problem: LinearProblem) -> float:
    """Where the residuals of rows at their bound are clipped: 0.6 for two classes, 0.5 for more, or R/5 for numbers."""
    if not problem.loss.residuals_stay or problem.outputs > 1:
        return residual_clip(problem, part=5)
    return 0.6 * largest_residual(problem)


def typical_coefficient(problem: LinearProblem) -> float:
    """How large a coefficient of a useful model is if all share the work and rows are at their bound."""
    return typical_margin(problem) / problem.row_norm
