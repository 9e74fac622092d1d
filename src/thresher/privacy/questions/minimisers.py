"""Questions that are answered by searching for a minimiser of the regularised loss."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from thresher.privacy.budget import Adjacency
from thresher.privacy.facts import PublicFacts
from thresher.privacy.questions.base import CertifiedSearch, Clips, Question
from thresher.privacy.sensitivity import gradient_sensitivity, minimiser_sensitivity

__all__ = ["Labels", "LabelsAsPrinted", "Minimiser", "TiltedMinimiser"]


class Minimiser(Question):
    """The minimiser itself (erratum E-7: it is known up to a certified distance)."""

    name = "minimiser"
    words = "the best coefficients, found at once"
    of_rows_only = False
    searched = True
    certified = True

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return _moved(self, clip, n, adjacency, search)

    def clips_of_settings(self, facts: PublicFacts, settings: Mapping[str, Any], columns: int) -> Clips:
        return settings["clip"], settings["clip"]


class Labels(Question):
    """Predictions of a minimiser for public rows; the clip is a row's, times the norm of the public rows."""

    name = "labels"
    words = "what a model of the rows predicts for public rows"
    of_rows_only = False
    searched = True
    certified = True

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return _moved(self, clip, n, adjacency, search)

    def clips_of_settings(self, facts: PublicFacts, settings: Mapping[str, Any], columns: int) -> Clips:
        return 0.0, math.inf  # of public rows that are not listed


class TiltedMinimiser(Question):
    """The minimiser of a loss with a random linear term, whose noise hides a gradient."""

    name = "perturbed minimiser"
    words = "the best coefficients for a randomly tilted loss"
    of_rows_only = True
    searched = True

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return gradient_sensitivity(clip, n, adjacency)

    def clips_of_settings(self, facts: PublicFacts, settings: Mapping[str, Any], columns: int) -> Clips:
        only = settings["clip"] * facts.norm_in_units(columns)
        return only, only


class LabelsAsPrinted(Question):
    """Predictions of a teacher that is not stable (erratum E-5): no number bounds how far a row moves them."""

    name = "printed labels"
    words = "what a model of the rows predicts for public rows, with noise as printed"
    of_rows_only = True


def _moved(question: Question, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None) -> float:
    if search is None:
        raise ValueError(f"a {question} moves as far as its ridge lets it; give the search")
    return minimiser_sensitivity(clip, n, adjacency, search.ridge, search.tolerance)
