"""The projection on an l2 ball that the local algorithms of the papers end every step with."""

from __future__ import annotations

import numpy as np

from thresher.privacy.arrays import Floats
from thresher.vaults.problem import LinearProblem

__all__ = ["project"]


def project(theta: Floats, problem: LinearProblem, radius: float | None) -> Floats:
    """The nearest point whose coefficients have l2 norm at most ``radius``; None is no bound. The intercept is free."""
    if radius is None:
        return theta
    size = float(np.linalg.norm(theta[: problem.width]))
    if size <= radius:
        return theta
    projected = theta.copy()
    projected[: problem.width] *= radius / size
    return projected
