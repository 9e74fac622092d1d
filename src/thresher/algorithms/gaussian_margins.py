"""Means over margins that are taken to be Gaussian: what a classifier's curvature and intercept are read off."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

__all__ = ["centre_of", "mean_curvature"]

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(41)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
FURTHEST = 30.0  # log-odds beyond which nobody can tell a chance from 0 or 1


def mean_curvature(centre: float, variance: float) -> float:
    """E p (1 - p), p the chances of margins N(centre, variance)."""
    p = expit(centre + math.sqrt(max(variance, 0.0)) * NODES)
    return float(WEIGHTS @ (p * (1 - p)))


def centre_of(share: float, variance: float) -> float:
    """The centre of margins whose chances average ``share``."""
    spread = math.sqrt(max(variance, 0.0)) * NODES
    return float(brentq(lambda centre: WEIGHTS @ expit(centre + spread) - share, -FURTHEST, FURTHEST))
