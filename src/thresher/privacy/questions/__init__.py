"""The questions: each says how far one row moves its answer, which clips it can have, and what it asks in words."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from thresher.privacy.questions.averages import (
    BatchGradient,
    BatchMomentum,
    Gradient,
    GradientAsPrinted,
    Gram,
    Moments,
    RestrictedGradient,
)
from thresher.privacy.questions.base import CertifiedSearch, Clips, Question
from thresher.privacy.questions.choices import Quantile, Score, Selection, StepLength, Vertex, Votes
from thresher.privacy.questions.minimisers import Labels, LabelsAsPrinted, Minimiser, TiltedMinimiser
from thresher.privacy.questions.reports import LocalGradient, LocalLabels
from thresher.privacy.questions.several import AnyQuestion, BestOfTrials
from thresher.privacy.questions.texts import Categories

__all__ = [
    "AnyQuestion",
    "BatchGradient",
    "BatchMomentum",
    "BestOfTrials",
    "Categories",
    "CertifiedSearch",
    "Clips",
    "Gradient",
    "GradientAsPrinted",
    "Gram",
    "Labels",
    "LabelsAsPrinted",
    "LocalGradient",
    "LocalLabels",
    "Minimiser",
    "Moments",
    "Quantile",
    "Question",
    "RestrictedGradient",
    "Score",
    "Selection",
    "StepLength",
    "TiltedMinimiser",
    "Vertex",
    "Votes",
    "question_named",
]

_QUESTIONS: Mapping[str, Question] = MappingProxyType(
    {
        kind.name: kind()
        for kind in (
            Gradient, RestrictedGradient, BatchGradient, BatchMomentum, Moments, Gram, GradientAsPrinted,
            Selection, Votes, Quantile, Vertex, StepLength, Score, Minimiser, TiltedMinimiser, Labels,
            LabelsAsPrinted, LocalGradient, LocalLabels, Categories, AnyQuestion, BestOfTrials,
        )
    }
)  # fmt: skip


def question_named(name: str) -> Question:
    """The question that certificates list under this name."""
    if name not in _QUESTIONS:
        raise ValueError(f"question={name!r} must be one of {', '.join(_QUESTIONS)}")
    return _QUESTIONS[name]
