"""Laplacian smoothing (Osher et al. 2018; thesis, chapter 5): noise is spread over neighbouring coordinates.

A = I - sigma * Laplacian on a ring of d coordinates. A^-1 keeps the sum of a vector and damps what changes from one
coordinate to the next. It is applied to answers, after the noise: post-processing, so no privacy number changes
(erratum E-21: it is an invertible map and makes nothing more private either).
"""

from __future__ import annotations

import math

import numpy as np

from thresher.privacy.arrays import Floats

__all__ = ["smoothed", "spectral_means"]


def smoothed(vector: Floats, sigma: float) -> Floats:
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
