"""How a loss bends, read off gradients that were asked for anyway: no row is asked about."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from thresher.privacy.arrays import Floats

__all__ = ["NoisyGradient", "with_secants"]

SURELY = 5.0  # times its mean square: noise is hardly ever longer, and what is longer is believed less that
LEAST, MOST = 0.2, 20.0  # times what was thought: the curvature along a move is not believed to be further off


class NoisyGradient(NamedTuple):
    """The gradient at a point, with noise that is white in coordinates of its own."""

    point: Floats
    gradient: Floats
    root: Floats
    """The noise is root^(-1) times white noise: root^2 was thought to be the inverse Hessian."""
    weight: float
    """One over the variance of the white noise."""


def with_secants(hessian: Floats, asked: Sequence[NoisyGradient]) -> Floats:
    """The hessian, corrected to explain by how much gradients changed from point to point, as far as that is no noise.

    The update of Broyden, Fletcher, Goldfarb and Shanno (1970), with a change of the gradient that is shrunk towards
    the one that the hessian expects (James and Stein 1961). Where the difference may be noise, nothing is corrected.
    """
    for before, after in pairwise(asked):
        move = (after.point - before.point)[:, 0]
        expected = hessian @ move
        length = float(move @ expected)
        if length <= 0:
            continue
        surprise = (after.gradient - before.gradient)[:, 0] - expected
        noise = SURELY * (_mean_square(hessian, before) + _mean_square(hessian, after))
        part = max(1 - noise / max(float(surprise @ np.linalg.solve(hessian, surprise)), 1e-300), 0.0)
        change = expected + part * surprise
        ratio = float(move @ change) / length
        if LEAST <= ratio <= MOST:
            hessian = hessian + (np.outer(change, change) / ratio - np.outer(expected, expected)) / length
    return hessian


def _mean_square(hessian: Floats, asked: NoisyGradient) -> float:
    """Of the noise of a gradient, its length measured as the hessian does."""
    inverse_of_noise = asked.root @ hessian @ asked.root
    return float(np.trace(np.linalg.inv(inverse_of_noise))) / asked.weight
