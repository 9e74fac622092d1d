"""Questions whose answer is an average over the rows, each row's part clipped."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from thresher.privacy.budget import Adjacency
from thresher.privacy.facts import PublicFacts
from thresher.privacy.questions.base import CertifiedSearch, Clips, Question
from thresher.privacy.sensitivity import gradient_sensitivity, gram_sensitivity, momentum_clip

__all__ = [
    "BatchGradient",
    "BatchMomentum",
    "Gradient",
    "GradientAsPrinted",
    "Gram",
    "Moments",
    "RestrictedGradient",
]

CLOSE = 1e-9  # relative: what is computed twice from the same numbers is as close as that


class Gradient(Question):
    """The mean gradient of the loss."""

    name = "gradient"
    words = "in which direction the coefficients should move"
    of_rows_only = False
    of_several_outputs = True

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return gradient_sensitivity(clip, n, adjacency)

    def clips_of_settings(self, facts: PublicFacts, settings: Mapping[str, Any], columns: int) -> Clips:
        return settings["clip"], settings["clip"]


class GradientAsPrinted(Question):
    """A mean gradient with noise as a paper prints it, which has no price."""

    name = "printed gradient"
    words = "in which direction the coefficients should move, with noise as printed"
    of_rows_only = True

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return gradient_sensitivity(clip, n, adjacency)


class RestrictedGradient(Question):
    """The mean gradient on public columns, in units of their bounds."""

    name = "restricted gradient"
    words = "in which direction the coefficients of the columns in use should move"
    of_rows_only = False

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return gradient_sensitivity(clip, n, adjacency)

    def clips_of_settings(self, facts: PublicFacts, settings: Mapping[str, Any], columns: int) -> Clips:
        only = settings["clip"] * facts.norm_in_units(columns)
        return only, only


class Moments(Question):
    """The mean squares of public columns, over their bounds."""

    name = "moments"
    words = "how large the values of the columns in use are"
    of_rows_only = False

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return gradient_sensitivity(clip, n, adjacency)

    def clips_of_bounds(self, facts: PublicFacts) -> Clips:
        return 0.5, math.sqrt(facts.d) / 2

    def denied(self, clip: float) -> str | None:
        columns = 4 * clip * clip
        if math.isclose(columns, max(1, round(columns)), rel_tol=CLOSE):
            return None
        return f"a clip of {clip:.6g} is not half the root of a number of columns"


class Gram(Question):
    """The mean of x x' over public columns, in units of their bounds."""

    name = "gram"
    words = "how the columns in use vary together"
    of_rows_only = False

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return gram_sensitivity(clip, n, adjacency)

    def clips_of_settings(self, facts: PublicFacts, settings: Mapping[str, Any], columns: int) -> Clips:
        return 0.0, facts.norm_in_units(columns) ** 2  # of the row norm, which is a private answer


class BatchGradient(Question):
    """The gradient of a random batch. Its sensitivity is that of a release, which knows the size of the batch."""

    name = "sampled gradient"
    words = "in which direction the coefficients should move, by a random batch of {rows}"
    of_rows_only = False
    of_several_outputs = True

    def clips_of_settings(self, facts: PublicFacts, settings: Mapping[str, Any], columns: int) -> Clips:
        return settings["clip"], settings["clip"]


class BatchMomentum(Question):
    """A step of a recursive momentum by a random batch. Its sensitivity is that of a release, as above."""

    name = "sampled momentum"
    words = "how that direction changed, by a random batch of {rows}"
    of_rows_only = False
    of_several_outputs = True

    def clips_of_settings(self, facts: PublicFacts, settings: Mapping[str, Any], columns: int) -> Clips:
        """The clip of changes follows the moves, below what the settings allow."""
        clip, largest, momentum = settings["clip"], settings["difference_clip"], settings["momentum"]
        return momentum_clip(clip, 0.0, momentum), momentum_clip(clip, largest, momentum)
