"""Projections that end a step: the hard-thresholding operator H_s of the papers, and the one on an l2 ball."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from thresher.privacy.arrays import Floats
from thresher.vaults.problem import LinearProblem

__all__ = ["hard_threshold", "noise_floor", "project"]

SAMPLED = 16  # every so-manieth coefficient tells where the largest begin


def hard_threshold(theta: Floats, problem: LinearProblem, floor: float = 0.0) -> Floats:
    """Keep the ``sparsity`` largest coefficients in magnitude, if they reach ``floor``; the intercept always stays.

    With several outputs, ``sparsity`` times as many are kept in all, wherever they are largest.
    """
    width = problem.width
    kept = _largest(np.abs(theta[:width]), problem.sparsity * problem.outputs)
    kept = kept[np.abs(theta[kept]) >= floor]
    out = np.zeros_like(theta)
    out[kept] = theta[kept]
    out[width:] = theta[width:]
    return out


def _largest(sizes: Floats, count: int) -> NDArray[np.intp]:
    """The positions of the ``count`` largest.

    A sample suggests a cut that few stay above; where enough do, only those are partitioned.
    """
    sample = sizes[::SAMPLED]
    wanted = 2 * count // SAMPLED + 20
    if wanted < sample.size:
        cut = np.partition(sample, sample.size - wanted)[sample.size - wanted]
        above = np.flatnonzero(sizes >= cut)
        if len(above) >= count:
            return above[np.argpartition(sizes[above], len(above) - count)[len(above) - count :]]
    return np.argpartition(sizes, sizes.size - count)[sizes.size - count :]


def noise_floor(sd: float, problem: LinearProblem) -> float:
    """The size that noise of this sd is expected to reach in its s-th largest of d coordinates.

    A coefficient below it cannot be told from noise. The sd is public, so dropping it is post-processing; where the
    noise drowns the signal the answer is then close to the zero model instead of s coordinates of noise.
    """
    return sd * math.sqrt(2 * math.log(problem.d / problem.sparsity))


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
