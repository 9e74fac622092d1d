"""What one row, or one person, moves an answer: the only place where a clip and an adjacency become a sensitivity."""

from __future__ import annotations

import math

from thresher.privacy.budget import Adjacency

__all__ = [
    "CAPACITY",
    "CERTIFIED",
    "ROUND_OFF",
    "SUM_ERROR",
    "counts_sensitivity",
    "gradient_sensitivity",
    "gram_sensitivity",
    "mean_loss_sensitivity",
    "minimiser_sensitivity",
    "momentum_clip",
    "most_present",
    "norm_error",
    "report_sensitivity",
    "round_off",
]

ROUND_OFF = 2.0**-53
SUM_ERROR = 300.0
"""A sum of up to CAPACITY terms t_i is off by at most SUM_ERROR u sum_i |t_i|, u = 2^-53, as
``thresher.vaults.kernels.rows`` adds them up."""
CERTIFIED = 0.05  # relative: by which the tolerance of a minimiser may add to its sensitivity
TO_THE_MIDDLE = 0.5  # of a range, from either end
CAPACITY = 2**33  # rows: more than a table in memory has


def gradient_sensitivity(clip: float, n: int, adjacency: Adjacency) -> float:
    """l2 sensitivity of (1/n) sum_i g_i with ||g_i||_2 <= clip."""
    return adjacency.contributions * float(clip) / int(n)


def momentum_clip(clip: float, difference_clip: float, momentum: float) -> float:
    """(1-g) C2 + g C1: the l2 norm of a row's part in a recursive momentum g (erratum E-18)."""
    if not 0 <= momentum <= 1:
        raise ValueError(f"momentum={momentum!r} must lie from 0 to 1")
    if not min(clip, difference_clip) >= 0:  # one below 0 would lower the sum, and with it the noise
        raise ValueError(f"clip={clip!r} and difference_clip={difference_clip!r} must both be at least 0")
    if momentum == 0:
        return difference_clip
    return clip if momentum == 1 else (1 - momentum) * difference_clip + momentum * clip


def mean_loss_sensitivity(clip: float, n: int, adjacency: Adjacency) -> float:
    """What one row moves (1/n) times the sum of losses between 0 and ``clip``, each less half of that.

    Between losses that are compared with each other the half makes no difference: all of them move by it alike.
    """
    return gradient_sensitivity(TO_THE_MIDDLE * clip, n, adjacency)


def gram_sensitivity(clip: float, n: int, adjacency: Adjacency) -> float:
    """Frobenius sensitivity of (1/n) sum_i x_i x_i' with ||x_i||_2^2 <= clip.

    ||x x' - z z'||^2 = ||x||^4 + ||z||^4 - 2 (x'z)^2: the two terms are never more than a right angle apart.
    """
    return math.sqrt(adjacency.contributions) * float(clip) / int(n)


def counts_sensitivity(adjacency: Adjacency) -> float:
    """l2 sensitivity of the numbers of rows that hold each of several texts, where a row holds at most one.

    A row that comes or goes moves one count by 1; one that is replaced moves one down and another up.
    """
    return math.sqrt(adjacency.contributions)


def minimiser_sensitivity(clip: float, n: int, adjacency: Adjacency, ridge: float, tolerance: float) -> float:
    """l2 sensitivity of a certified minimiser of (1/n) sum_i l_i + (ridge/2)||theta||^2 with ||grad l_i||_2 <= clip.

    The objective is ridge-strongly convex and its gradient moves by at most contributions*clip/n between neighbours,
    so the minimisers are within that over ridge of each other. A found point whose gradient is within ``tolerance``
    of zero is within tolerance/ridge of its minimiser (erratum E-7).
    """
    return (gradient_sensitivity(clip, n, adjacency) + 2 * tolerance) / float(ridge)


def report_sensitivity(clip: float, adjacency: Adjacency) -> float:
    """How far apart two values of a ball of radius ``clip`` may be: what one person's report must hide."""
    return adjacency.contributions * float(clip)


def most_present(n: int, adjacency: Adjacency) -> int:
    """A public bound on how many rows, or people, there are. Where one may come or go, n is only what was declared, and
    the bound is what can be held: neighbours of any size are fitted alike, none is refused."""
    return n if adjacency is Adjacency.REPLACE_ONE else max(n, CAPACITY)


def round_off(n: int, clip: float, most: int) -> float:
    """An l2 bound on the floating-point error of (1/n) sum_i g_i over at most ``most`` rows or people, ||g_i|| <= clip.

    Engines add up rows in blocks of at most 256 terms, and the blocks' totals with compensation, so that a coordinate
    is off by at most SUM_ERROR u sum_i |g_ij| however many rows there are: 255 roundings within a block, a few for the
    product, the share, the division by n and the compensated sum, whose error does not grow with its length (Higham
    2002, sections 4.2 and 4.3). In norm that is SUM_ERROR u sum_i ||g_i|| <= SUM_ERROR u most clip, over n. The rows of
    a person count as one together, so people may have any number of them. With CAPACITY for ``most`` it is 3e-4 of what
    one row moves.
    """
    return 0.0 if math.isinf(clip) else SUM_ERROR * ROUND_OFF * (most / n) * clip


def norm_error(columns: int, clip: float) -> float:
    """By how much a row's clipped gradient may be longer than ``clip``.

    Its norm is computed from the squares of so many columns, added one after the other, so it is known to
    (columns / 2 + 4) u of itself (Higham 2002, section 4.2); the limit and the product are rounded once each.
    """
    return 0.0 if math.isinf(clip) else (columns + 8) * ROUND_OFF * clip
