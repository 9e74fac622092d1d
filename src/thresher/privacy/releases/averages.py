"""Averages of a curator who holds all rows, with Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from thresher.privacy import questions
from thresher.privacy.questions import Question
from thresher.privacy.releases.base import GaussianRelease

__all__ = [
    "GaussianGradient",
    "GaussianGram",
    "GaussianMean",
    "GaussianMoments",
    "GaussianRestrictedGradient",
]


@dataclass(frozen=True)
class GaussianGradient(GaussianRelease):
    """The noisy mean gradient (1/n) sum_i g_i + noise over all coordinates, with ||g_i||_2 <= clip.

    Delta_2 = contributions(adjacency) * clip / n.
    """

    question: ClassVar[Question] = questions.Gradient()


@dataclass(frozen=True)
class GaussianRestrictedGradient(GaussianRelease):
    """The noisy mean gradient on an already public set of coordinates A, with ||g_i,A||_2 <= clip.

    Columns are measured in the problem's units, in which every bound is 1; or rows are taken times an already public
    matrix, which makes them other rows. Delta_2 = contributions(adjacency) * clip / n, whatever the other coordinates
    of a row hold.
    """

    question: ClassVar[Question] = questions.RestrictedGradient()


@dataclass(frozen=True)
class GaussianMean(GaussianRelease):
    """The noisy mean (1/n) sum_i x_i of an already public set of columns, in the problem's units.

    Rows are scaled to ||x_i||_2 <= clip. Delta_2 = contributions(adjacency) * clip / n.
    """

    question: ClassVar[Question] = questions.Mean()


@dataclass(frozen=True)
class GaussianMoments(GaussianRelease):
    """The noisy second moments (1/n) sum_i (x_ij / K_j)^2 of an already public set of columns, |x_ij| <= K_j.

    A row's vector of squares minus 1/2 has l2 norm at most clip = sqrt(columns)/2, so Delta_2 =
    contributions(adjacency) * clip / n.
    """

    question: ClassVar[Question] = questions.Moments()


@dataclass(frozen=True)
class GaussianGram(GaussianRelease):
    """The noisy Gram matrix (1/n) sum_i x_i x_i' of an already public set of columns, in the problem's units, or of
    rows times an already public matrix.

    Rows are scaled to ||x_i||_2^2 <= clip. Two such terms have no negative inner product, so in the Frobenius norm
    Delta_2 = sqrt(contributions(adjacency)) * clip / n; the noise is isotropic in that norm.
    """

    question: ClassVar[Question] = questions.Gram()
