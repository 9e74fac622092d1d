"""What every vault is: a plan, a meter that holds to it, and a record of what was answered."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import TracebackType
from typing import NoReturn, Self, cast

import numpy as np

from thresher.privacy import logs
from thresher.privacy.arrays import Floats
from thresher.privacy.bounds import LARGEST, SMALLEST
from thresher.privacy.plan import Answer, Meter, Plan
from thresher.privacy.releases import Release
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

__all__ = ["Vault", "no_watch"]


def no_watch() -> None:
    """Watches no vault. One that nobody watches, such as that of a trial nobody may know about, logs nothing."""


class Vault:
    """Answers what its plan lists, as often as it lists it, and drops what it holds when it closes."""

    def __init__(self, plan: Plan, noise: NoiseSource, watch: Callable[[], None] = no_watch) -> None:
        self._plan = plan
        self._meter = Meter(plan)
        self._noise = noise
        self._watch = watch
        self.published: dict[str, object] = {}
        """By-products of a run that may leave with the model: public, or computed from answers alone."""
        self.chosen: Plan | None = None
        """The plan of the one trial that is told of, where there were several."""
        if watch is not no_watch:
            logs.opened(plan)

    @property
    def plan(self) -> Plan:
        return self._plan

    @property
    def problem(self) -> LinearProblem:
        return cast(LinearProblem, self._plan.problem)  # that of a module has what algorithms ask of it

    @property
    def answers(self) -> tuple[Answer, ...]:
        """What was answered so far; holds no private value."""
        return self._meter.answers

    @property
    def randomness(self) -> str:
        """Where the noise comes from, in words."""
        return self._noise.description

    def close(self) -> None:
        """Drop the data. The answers stay."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a vault never leaves its process: it cannot be pickled or copied")

    def _check_question(self, release: Release, clip: float, theta: Floats | None) -> None:
        """Refuse what cannot be answered, before it is paid for; a walk needs no check, its vertices are public."""
        if not SMALLEST <= clip <= (LARGEST if release.multiplier > 0 else math.inf):
            raise ValueError(
                f"clip={clip!r} must be a number from {SMALLEST:g} to {LARGEST:g}: it is what bounds the sensitivity"
            )
        if theta is None:
            return
        if theta.shape != (self.problem.dimension,):
            raise ValueError(f"theta has shape {theta.shape}, the problem {self.problem.dimension} coordinates")
        if not np.all(np.isfinite(theta)):
            raise ValueError("the point asked about is not finite: the iteration has diverged, take a smaller step")

    def _record(self, release: Release, clip: float, sensitivity: float, scale: float) -> None:
        if release.multiplier > 0 and not 0 < scale < math.inf:
            raise FloatingPointError(
                f"noise scale {scale!r}: the bounds are too extreme to be private; nothing is answered"
            )
        self._meter.record(Answer(release, clip, sensitivity, scale))
        if self._watch is not no_watch:
            self._watch()
            logs.answered(release, self._meter.charged)
