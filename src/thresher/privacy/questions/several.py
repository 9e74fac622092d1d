"""Questions that are answered by asking others, whose own rules hold for what they answer."""

from __future__ import annotations

from thresher.privacy.questions.base import Question

__all__ = ["AnyQuestion", "BestOfTrials"]


class AnyQuestion(Question):
    """Whatever is asked while running, within a cap."""

    name = "any"
    words = "whatever is decided on while running, within a cap"
    of_rows_only = False
    answered_as = "any"


class BestOfTrials(Question):
    """What a secret number of trials ask."""

    name = "trials"
    words = "which of a secret number of trials is best"
    of_rows_only = False
    answered_as = "any"
