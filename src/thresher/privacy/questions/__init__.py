"""The questions: each says how far one row moves its answer, which clips it can have, and what it asks in words."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from thresher.privacy.questions.base import CertifiedSearch, Clips, Question
from thresher.privacy.questions.central import (
    AnyQuestion,
    BatchGradient,
    BatchMomentum,
    BestOfTrials,
    Categories,
    Gradient,
    GradientAsPrinted,
    Gram,
    Labels,
    LabelsAsPrinted,
    Minimiser,
    Moments,
    Quantile,
    RestrictedGradient,
    Score,
    Selection,
    StepLength,
    TiltedMinimiser,
    Vertex,
    Votes,
)
from thresher.privacy.questions.local import LocalGradient, LocalLabels

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
