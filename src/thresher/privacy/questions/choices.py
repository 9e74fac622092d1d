"""Questions whose answer is a choice among public candidates, by scores that are sums over the rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from thresher.privacy.budget import Adjacency
from thresher.privacy.facts import PublicFacts
from thresher.privacy.questions.base import CertifiedSearch, Clips, Question
from thresher.privacy.sensitivity import gradient_sensitivity, mean_loss_sensitivity

__all__ = ["Quantile", "Score", "Selection", "StepLength", "Vertex", "Votes"]


class Selection(Question):
    """The columns with the largest entries of a mean gradient."""

    name = "selection"
    words = "which columns go along most with what is not explained yet"
    of_rows_only = False

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return gradient_sensitivity(clip, n, adjacency)

    def clips_of_settings(self, facts: PublicFacts, settings: Mapping[str, Any], columns: int) -> Clips:
        only = settings.get("selection_clip", settings["clip"])
        return only, only


class Votes(Question):
    """The columns that most blocks of rows vote for."""

    name = "votes"
    words = "which columns most blocks of {rows} would select"
    of_rows_only = False

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return 1.0  # one row is in one block, whose votes count once each, for either adjacency

    def clips_of_bounds(self, facts: PublicFacts) -> Clips:
        return 1.0, 1.0


class Quantile(Question):
    """The public level that a share of the rows does not exceed."""

    name = "quantile"
    words = "at which size the values of a quantity should be cut off"
    of_rows_only = False

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return 1.0  # one row moves one rank, for either adjacency

    def clips_of_bounds(self, facts: PublicFacts) -> Clips:
        return 1.0, 1.0


class Vertex(Question):
    """The vertex of a public polytope that the loss falls towards most."""

    name = "vertex"
    words = "along which column to move next"
    of_rows_only = False

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return gradient_sensitivity(clip, n, adjacency)

    def clips_of_settings(self, facts: PublicFacts, settings: Mapping[str, Any], columns: int) -> Clips:
        if "radius" not in settings:
            return 0.0, math.inf  # of a polytope that is not listed
        only = settings["clip"] * settings["radius"] * facts.bounds.largest_entry(facts.d)
        return only, only


class StepLength(Question):
    """The point on a line with the least mean loss."""

    name = "step length"
    words = "how far to move"
    of_rows_only = False
    of_several_outputs = True

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return mean_loss_sensitivity(clip, n)

    def clips_of_settings(self, facts: PublicFacts, settings: Mapping[str, Any], columns: int) -> Clips:
        return settings["loss_clip"], settings["loss_clip"]


class Score(Question):
    """The mean score of held-out rows, by which trials are chosen."""

    name = "score"
    words = "how well a model does on rows it was not fitted to"
    of_rows_only = False

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return mean_loss_sensitivity(clip, n)

    def clips_of_bounds(self, facts: PublicFacts) -> Clips:
        return 1.0, 1.0
