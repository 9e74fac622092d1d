"""DP-LSSGD (thesis, Algorithm 5): DP-SGD whose noisy gradients are smoothed; LSSGD is the same without noise.

Laplacian smoothing (Osher et al. 2018) spreads noise over neighbouring coordinates. A = I - sigma * Laplacian on a ring
of d coordinates. A^-1 keeps the sum of a vector and damps what changes from one coordinate to the next. It is applied
to answers, after the noise: post-processing, so no privacy number changes (erratum E-21: it is an invertible map and
makes nothing more private either).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from thresher.algorithms.dp_sgd import DPSGD
from thresher.algorithms.stochastic import Stochastic
from thresher.privacy.arrays import Floats
from thresher.vaults.problem import LinearProblem

__all__ = ["DPLSSGD", "LSSGD", "Smoothed", "smooth", "spectral_means"]


def smooth(vector: Floats, sigma: float) -> Floats:
    """A^-1 vector: in the Fourier basis of the ring, A divides by 1 + 2 sigma - 2 sigma cos(2 pi k / d)."""
    if sigma == 0:
        return vector
    d = len(vector)
    symbol = 1 + 2 * sigma * (1 - np.cos(2 * np.pi * np.arange(d // 2 + 1) / d))
    return np.fft.irfft(np.fft.rfft(vector) / symbol, d)


def spectral_means(d: int, sigma: float) -> tuple[float, float]:
    """gamma and beta: the means over the spectrum of A^-1 and of its square, in closed form (Prop. 5.3.8).

    beta is what smoothing leaves of the power of white noise, gamma of its power in the norm of A. With a = 1 + 2
    sigma, r = sqrt(a^2 - 4 sigma^2) and w = (a - r) / (2 sigma), gamma = (1 + w^d) / ((1 - w^d) r), and beta is minus
    its derivative in a.
    """
    if sigma == 0:
        return 1.0, 1.0
    a, r = 1 + 2 * sigma, math.sqrt(1 + 4 * sigma)
    power = ((a - r) / (2 * sigma)) ** d
    ratio = (1 + power) / (1 - power)
    return ratio / r, ratio * a / r**3 + 2 * d * power / (r * (1 - power)) ** 2


@dataclass(frozen=True)
class Smoothed(Stochastic):
    """A method that sees A^-1 (noisy gradient), A = I - smoothing * Laplacian of a ring.

    The guarantee stays what it is, to the digit: smoothing comes after the noise (erratum E-21).
    """

    smoothing: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.smoothing < math.inf:
            raise ValueError(f"smoothing={self.smoothing!r} must be a finite number of at least 0; 0 smooths nothing")

    def _direction(self, gradient: Floats) -> Floats:
        return smooth(gradient, self.smoothing)

    def _extra_settings(self, problem: LinearProblem) -> dict[str, Any]:
        """The smoothing, and what it leaves of the noise's standard deviation."""
        left = math.sqrt(spectral_means(problem.dimension, self.smoothing)[1])
        return {"smoothing": self.smoothing, "noise_left": left}


@dataclass(frozen=True)
class DPLSSGD(Smoothed, DPSGD):
    """DP-SGD with A^-1 (noisy gradient) for the noisy gradient.

    Parameters
    ----------
    passes : float, optional
        How often every row is asked about on the average. None: a public rule of n, d and the budget.
    batch : int, optional
        Expected number of rows in a batch. None: a public rule; n takes all rows, and no batch is drawn.
    step : float, optional
        Length of a step. None: as long as the noise, known in advance, lets it be useful.
    clip : float, optional
        l2 norm to which the gradient of a row is clipped. None: a public rule of the bounds.
    sampling : {"poisson", "fixed"}
        Each row joins a batch by a coin of its own, or a batch is a random set of a fixed size (replace-one
        only).
    output : {"average", "last", "random"}
        The mean of the last quarter of the iterates, the last one, or one drawn at random.
    momentum : float
        Part of the step before that goes on, from 0 to below 1.
    smoothing : float
        sigma of A = I - sigma * Laplacian; 0 smooths nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import DenseRegressor
    >>> from thresher.algorithms import DPLSSGD
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = DenseRegressor(
    ...     epsilon=2.0, feature_bound=1.0, target_bound=1.0, algorithm=DPLSSGD(batch=100, smoothing=0.5)
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.epsilon
    2.0
    """

    name: ClassVar[str] = "dp-lssgd"


@dataclass(frozen=True)
class LSSGD(DPLSSGD):
    """DP-LSSGD without clipping and noise. No privacy whatsoever; it only runs with ``epsilon=float("inf")``.

    Parameters
    ----------
    passes : float, optional
        How often every row is asked about on the average. None: a public rule of n, d and the budget.
    batch : int, optional
        Expected number of rows in a batch. None: a public rule; n takes all rows, and no batch is drawn.
    step : float, optional
        Length of a step. None: as long as the noise, known in advance, lets it be useful.
    clip : float, optional
        l2 norm to which the gradient of a row is clipped. None: a public rule of the bounds.
    sampling : {"poisson", "fixed"}
        Each row joins a batch by a coin of its own, or a batch is a random set of a fixed size (replace-one
        only).
    output : {"average", "last", "random"}
        The mean of the last quarter of the iterates, the last one, or one drawn at random.
    momentum : float
        Part of the step before that goes on, from 0 to below 1.
    smoothing : float
        sigma of A = I - sigma * Laplacian; 0 smooths nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import DenseRegressor
    >>> from thresher.algorithms import LSSGD
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = DenseRegressor(
    ...     epsilon=float("inf"), feature_bound=1.0, target_bound=1.0, algorithm=LSSGD(batch=100, passes=2)
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.grade
    'none'
    """

    name: ClassVar[str] = "lssgd"
    private: ClassVar[bool] = False
