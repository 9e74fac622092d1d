"""Questions that each person answers for themselves, on their own device."""

from __future__ import annotations

from thresher.privacy.budget import Adjacency
from thresher.privacy.facts import PublicFacts, Settings
from thresher.privacy.questions.base import CertifiedSearch, Clips, Question
from thresher.privacy.sensitivity import report_sensitivity

__all__ = ["LocalGradient", "LocalLabels"]


class LocalGradient(Question):
    """A person's own part of the gradient."""

    name = "local gradient"
    words = "each person's own direction, randomised before it is sent"
    of_rows_only = False
    answered_as = "local"

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return report_sensitivity(clip, adjacency)

    def clips_of_settings(self, facts: PublicFacts, settings: Settings, columns: int) -> Clips:
        return settings["clip"], settings["clip"]


class LocalLabels(Question):
    """A person's own label."""

    name = "local labels"
    words = "each person's own label, randomised before it is sent"
    of_rows_only = False
    answered_as = "labels"

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return report_sensitivity(clip, adjacency)

    def clips_of_bounds(self, facts: PublicFacts) -> Clips:
        radius = 1.0 if facts.bounds.target is None else facts.bounds.target_span[1]  # a class, or half the range
        return radius, radius
