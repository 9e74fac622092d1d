"""The questions: each says how far one row moves its answer, which clips it can have, and what it asks in words.

Those of the files here are all that there are: a certificate that lists another, or a caller's own, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from thresher.privacy.questions.base import *  # noqa: F403  (each file lists what it defines)
from thresher.privacy.questions.base import Question
from thresher.privacy.questions.central import *  # noqa: F403
from thresher.privacy.questions.local import *  # noqa: F403

_QUESTIONS: Mapping[str, Question] = MappingProxyType({kind.name: kind() for kind in Question.__subclasses__()})


def question_named(name: str) -> Question:
    """The question that certificates list under this name."""
    if name not in _QUESTIONS:
        raise ValueError(f"question={name!r} must be one of {', '.join(_QUESTIONS)}")
    return _QUESTIONS[name]
