"""Public rules of thumb that more than one algorithm uses. All follow from the Problem, never from the data."""

from __future__ import annotations

import math

from thresher.plan import Problem

__all__ = ["check_positive", "gradient_clip", "typical_margin"]


def check_positive(**hyperparameters: float | None) -> None:
    """Refuse hyper-parameters that are given but not positive and finite."""
    for name, value in hyperparameters.items():
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"{name}={value!r} must be a positive finite number, or None for the public default")


def gradient_clip(problem: Problem) -> float:
    """The l2 bound on one row's gradient: residuals of rows at the row bound are clipped at a tenth of the target's
    bound, or at 0.5 for class labels.

    The clipped gradient keeps its direction while its noise shrinks with the clip, so a low clip wins (Huber loss).
    """
    residual = 0.5 if problem.loss == "logistic" else problem.target_radius / 10
    return residual * problem.row_norm


def typical_margin(problem: Problem) -> float:
    """How far the margins of a useful model spread: a third of the target's bound, or log-odds of 1."""
    return 1.0 if problem.loss == "logistic" else problem.target_radius / 3
