"""The question about texts that nobody has listed."""

from __future__ import annotations

from thresher.privacy.budget import Adjacency
from thresher.privacy.facts import PublicFacts
from thresher.privacy.questions.base import CertifiedSearch, Clips, Question
from thresher.privacy.sensitivity import counts_sensitivity

__all__ = ["Categories"]


class Categories(Question):
    """The texts of a column that many rows hold."""

    name = "categories"
    words = "which texts of a column many rows hold"
    of_rows_only = True

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return counts_sensitivity(adjacency)

    def clips_of_bounds(self, facts: PublicFacts) -> Clips:
        return 1.0, 1.0
