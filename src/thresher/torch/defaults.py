"""The algorithms a module can be trained with, and public rules for what a caller leaves open.

The rules were found on MNIST (``thresher reproduce x14``) and depend on n and the budget only.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any, Protocol, cast

from thresher.algorithms import DENSE
from thresher.algorithms.stochastic import State
from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Budget
from thresher.privacy.conversions import gaussian_mu
from thresher.privacy.plan import Plan

__all__ = ["TRAINERS", "RoundAlgorithm", "trainable_algorithm", "with_neural_defaults"]

TRAINERS = (
    "dp-sgd", "dp-adam", "dp-srm", "dp-lssgd", "dp-lsadam", "dp-gd",
    "sgd", "lssgd", "storm",
)  # fmt: skip

PASSES, ROUNDS_PER_PASS = 5.0, 60
FULL_ROUNDS = 100.0  # of dp-gd, whose rounds are passes
CLIP = 0.1  # below most gradients' norms, so that every example counts about alike
GATHERED = 0.1  # sd of the noise that a parameter gathers in a training: about the size of a weight
DIFFERENCE = 0.2  # of dp-srm, the clip of an example's change over that of its part in the momentum
LONGEST = 10.0  # step times clip
PLAIN_STEP = 0.5  # where nothing is clipped


class RoundAlgorithm(Protocol):
    """An algorithm that advances round by round, so that it may stop in between."""

    @property
    def name(self) -> str: ...

    def plan(self, problem: Any, budget: Budget) -> Plan: ...

    def run(self, vault: Any) -> Floats: ...

    def start(self, vault: Any) -> State: ...

    def advance(self, vault: Any, state: State) -> State: ...

    def finish(self, vault: Any, state: State) -> Floats: ...


def trainable_algorithm(optimizer: str | RoundAlgorithm) -> RoundAlgorithm:
    """An algorithm, by its name or as it is."""
    if isinstance(optimizer, str):
        if optimizer not in TRAINERS:
            raise ValueError(
                f"optimizer={optimizer!r} must be one of {', '.join(map(repr, TRAINERS))}, or an algorithm"
            )
        return cast(RoundAlgorithm, DENSE[optimizer]())
    if not all(hasattr(optimizer, method) for method in ("plan", "start", "advance", "finish")):
        raise TypeError(
            f"optimizer={optimizer!r} must be a name, such as 'dp-sgd', or an algorithm that advances round by round, "
            "such as thresher.algorithms.DPSGD(clip=0.5)"
        )
    return optimizer


def with_neural_defaults(algorithm: Any, n: int, budget: Budget) -> RoundAlgorithm:
    """The same, with a rule for every hyper-parameter that is None."""
    full = algorithm.name == "dp-gd"
    passes = algorithm.passes or (FULL_ROUNDS if full else PASSES)
    batch = n if full else algorithm.batch or max(1, n // ROUNDS_PER_PASS)
    clip = algorithm.clip or CLIP
    step = neural_step(algorithm, max(1, round(passes * n / batch)), clip, n, budget)
    rules = {"passes": passes, "batch": None if full else batch, "clip": clip, "step": step}
    if hasattr(algorithm, "difference_clip"):
        rules["difference_clip"] = DIFFERENCE * algorithm.momentum * clip
    left_open = {field.name for field in fields(algorithm) if getattr(algorithm, field.name) is None}
    filled: RoundAlgorithm = replace(algorithm, **{name: value for name, value in rules.items() if name in left_open})
    return filled


def neural_step(algorithm: RoundAlgorithm, rounds: int, clip: float, n: int, budget: Budget) -> float:
    """The step with which a parameter gathers noise of sd GATHERED.

    T rounds of step eta gather about contributions * eta * T * clip / (n mu), whatever the batches; Adam, which
    divides noise by its size, eta sqrt(T).
    """
    if not budget.private:
        return PLAIN_STEP
    if algorithm.name in ("dp-adam", "dp-lsadam"):
        return GATHERED / math.sqrt(rounds)
    travel = GATHERED * n * gaussian_mu(budget.epsilon, budget.delta) / budget.adjacency.contributions
    return min(travel / rounds, LONGEST) / clip
