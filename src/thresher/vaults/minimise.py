"""Minimising a strongly convex function until its gradient certifies the distance to the minimiser."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

__all__ = ["minimise_strongly_convex"]

Floats = NDArray[np.float64]


def minimise_strongly_convex(
    objective: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    strong_convexity: float,
    smoothness: float,
    tolerance: float,
) -> Floats:
    """A point with ||gradient||_2 <= tolerance, hence within tolerance/strong_convexity of the minimiser (erratum E-7).

    L-BFGS does the work. If it stops short, accelerated gradient descent (Nesterov 2004, scheme 2.2.11) goes on; its
    linear rate holds for every such function, so the certificate is always reached and there is no fall-back that
    could depend on the data.
    """
    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"gtol": tolerance / np.sqrt(start.size), "ftol": 0.0, "maxiter": 1000},
    )
    theta: Floats = found.x
    previous = theta
    gradient = objective(theta)[1]
    root = np.sqrt(strong_convexity / smoothness)
    momentum = (1 - root) / (1 + root)
    while not np.linalg.norm(gradient) <= tolerance:
        ahead = theta + momentum * (theta - previous)
        previous, theta = theta, ahead - objective(ahead)[1] / smoothness
        gradient = objective(theta)[1]
    return theta
