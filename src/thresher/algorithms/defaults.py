"""Public rules that more than one algorithm uses. All follow from the LinearProblem, never from the data."""

from __future__ import annotations

import math

import numpy as np

from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Adjacency, Budget, is_whole
from thresher.vaults.problem import LinearProblem

__all__ = [
    "between_classes",
    "check_local",
    "check_loss",
    "check_positive",
    "check_ridge",
    "check_rounds",
    "clip_levels",
    "gradient_clip",
    "guess_loss",
    "largest_residual",
    "removable_loss",
    "residual_clip",
    "signal_to_noise",
    "typical_margin",
]


def check_positive(**hyperparameters: float | None) -> None:
    """Refuse hyper-parameters that are given but not positive and finite."""
    for name, value in hyperparameters.items():
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"{name}={value!r} must be a positive finite number, or None for the public default")


def check_rounds(rounds: int | None, name: str = "iterations") -> None:
    """Refuse a number of rounds that is given but not a whole number of at least 1."""
    if rounds is not None and not (is_whole(rounds) and rounds >= 1):
        raise ValueError(f"{name}={rounds!r} must be a whole number of at least 1, or None for the public default")


def check_local(budget: Budget) -> None:
    """Refuse neighbours that differ in who takes part: everybody sees who reports."""
    if budget.adjacency is not Adjacency.REPLACE_ONE:
        raise ValueError(
            f"adjacency={str(budget.adjacency)!r}: a report hides what a record holds, not that it was sent; "
            "use 'replace-one'"
        )


def check_ridge(ridge: float) -> None:
    if not 0 <= ridge < math.inf:
        raise ValueError(f"ridge={ridge!r} must be a finite number of at least 0")


def check_loss(problem: LinearProblem, algorithm: str, needed: str) -> None:
    """Refuse a loss without the optional function that an algorithm asks."""
    if not problem.loss.states(needed):
        raise ValueError(
            f"algorithm={algorithm!r} needs {needed} of the loss, and {problem.loss.name!r} states none; state it, or "
            "take an algorithm that needs residuals alone, such as 'dp-ight' or, for dense models, 'dp-sgd'"
        )


def largest_residual(problem: LinearProblem) -> float:
    """What no residual of a useful model exceeds in size."""
    return problem.loss.largest_residual(problem.target_radius)


def residual_clip(problem: LinearProblem, part: int = 10) -> float:
    """Where residuals are clipped: a tenth, or another ``part``, of the target's bound; half of the largest residual
    where they stay as large as they are, 0.5 for class labels."""
    largest = largest_residual(problem)
    return largest / 2 if problem.loss.residuals_stay else min(problem.target_radius / part, largest)


def gradient_clip(problem: LinearProblem) -> float:
    """The l2 bound on one row's gradient.

    Residuals of rows at the row bound are clipped as ``residual_clip`` says. The clipped gradient keeps its
    direction while its noise shrinks with the clip, so a low clip wins (Huber loss).
    """
    return residual_clip(problem) * problem.row_norm


def typical_margin(problem: LinearProblem) -> float:
    """How far the margins of a useful model spread: a third of the target's bound, or log-odds of 1."""
    return problem.loss.typical_margin(problem.target_radius)


def guess_loss(problem: LinearProblem) -> float:
    """Of classes, the log loss of a uniform guess: that of a row at the origin."""
    return math.log(max(problem.outputs, 2))


def signal_to_noise(problem: LinearProblem, mu: float) -> float:
    """n mu / sqrt(s d): the gradient of s equally strong, isotropic features over its noise, up to a constant."""
    return problem.n * mu / math.sqrt(problem.sparsity * problem.d)


def removable_loss(problem: LinearProblem, clip: float) -> float:
    """The loss a first step may hope to remove: the clipped loss of a target at a third of its bound, or 0.2 log 2."""
    if problem.loss.residuals_stay:
        return 0.2 * guess_loss(problem)
    typical = typical_margin(problem)
    slope = min(typical, clip / problem.row_norm)
    return slope * (typical - slope / 2)


def between_classes(gradient: Floats, problem: LinearProblem) -> Floats:
    """With several outputs, each coordinate less its mean over them: exact gradients add up to 0, noise does not."""
    if problem.outputs == 1:
        return gradient
    by_column = problem.by_column(gradient)
    return problem.stacked(by_column - by_column.mean(axis=1, keepdims=True))


FINER = 1.25  # ratio of neighbouring levels


def clip_levels(highest: float, count: int, multiplier: float, n: int) -> tuple[Floats, float]:
    """Levels for a near maximum, and what each costs in rows: as much as the noise may be off, so that noise does not
    throw a clip far above the rows, and all of them together no more than a third of the rows."""
    return highest * FINER ** -np.arange(count - 1, -1, -1.0), min(multiplier, n / (3 * count))
