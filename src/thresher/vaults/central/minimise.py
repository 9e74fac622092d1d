"""Minimising a strongly convex function until a subgradient certifies the distance to the minimiser."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from thresher.privacy.arrays import Floats

__all__ = ["minimise_strongly_convex"]

Objective = Callable[[Floats], tuple[float, Floats]]


def minimise_strongly_convex(
    objective: Objective,
    start: Floats,
    strong_convexity: float,
    smoothness: float,
    tolerance: float,
    l1: Floats | float = 0.0,
) -> Floats:
    """A point where objective + sum_j l1_j |theta_j| has a subgradient of l2 norm at most ``tolerance``, hence within
    tolerance/strong_convexity of the minimiser (erratum E-7).

    L-BFGS does the work. If it stops short, accelerated proximal gradient descent goes on (Nesterov 2004, scheme
    2.2.11; with an l1 term, Beck 2017, Theorem 10.42). Its linear rate holds for every such function, and as its steps
    shrink so does the least subgradient, so the certificate is always reached and there is no fall-back that could
    depend on the data.
    """
    theta = previous = _quasi_newton(objective, start, tolerance, l1)
    gradient = objective(theta)[1]
    root = np.sqrt(strong_convexity / smoothness)
    momentum = (1 - root) / (1 + root)
    while not np.linalg.norm(_least_subgradient(theta, gradient, l1)) <= tolerance:
        ahead = theta + momentum * (theta - previous)
        previous, theta = theta, _soft_threshold(ahead - objective(ahead)[1] / smoothness, l1 / smoothness)
        gradient = objective(theta)[1]
    return theta


def _quasi_newton(objective: Objective, start: Floats, tolerance: float, l1: Floats | float) -> Floats:
    """L-BFGS, with an l1 term on the positive and negative parts of theta."""
    options = {"gtol": tolerance / np.sqrt(start.size), "ftol": 0.0, "maxiter": 1000}
    if not np.any(l1):
        plain: Floats = minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x
        return plain

    def of_parts(parts: Floats) -> tuple[float, Floats]:
        value, gradient = objective(parts[0::2] - parts[1::2])
        slopes = np.empty_like(parts)
        slopes[0::2], slopes[1::2] = gradient + l1, l1 - gradient
        return value + float(np.sum(l1 * (parts[0::2] + parts[1::2]))), slopes

    parts = np.zeros(2 * start.size)
    parts[0::2], parts[1::2] = np.maximum(start, 0), np.maximum(-start, 0)
    bounds = [(0, None)] * parts.size
    found = minimize(of_parts, parts, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    difference: Floats = found[0::2] - found[1::2]
    return difference


def _soft_threshold(theta: Floats, limit: Floats | float) -> Floats:
    shrunk: Floats = np.sign(theta) * np.maximum(np.abs(theta) - limit, 0.0)
    return shrunk


def _least_subgradient(theta: Floats, gradient: Floats, l1: Floats | float) -> Floats:
    """The subgradient of least norm of a function with this gradient plus sum_j l1_j |theta_j|."""
    return np.where(theta == 0, _soft_threshold(gradient, l1), gradient + l1 * np.sign(theta))
