"""A party's side of a study: it answers each round once, as planned, and nothing else.

The server is not believed: the plan, the grid and the noise are this party's own, and what it has answered is on its
own disk. Nothing is kept in memory, so the party may be another process in every round.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from thresher.federated.estimators import checked_party
from thresher.federated.journal import Journal, price
from thresher.federated.parties import Party
from thresher.federated.questions import Question, check, longest_question
from thresher.federated.study import Study
from thresher.privacy.arrays import Integers
from thresher.vaults.randomness import NoiseSource

__all__ = ["Load", "answer"]

Load = Callable[[], tuple[Any, Any]]
"""Gives a party's own rows and targets, as any fit would take them."""


def answer(study: Study, number: int, load: Load, folder: Path, asked: bytes) -> Integers:
    """Party ``number``'s part of the answer, without noise: for the masks only.

    The price of the whole plan and the round are in ``folder`` before a row is clipped, and a round is begun once: one
    that fails later is missed, not repeated.
    """
    if len(asked) > longest_question(study):
        raise ValueError(f"the question has {len(asked)} bytes, more than any of this study: its sender is none of us")
    question = Question.from_bytes(asked)
    grid = check(question, study)
    X, y = _rows(study, number, load)
    with Journal.held(folder) as journal:
        journal.charged(price(study.plan, study.hash))
        journal.begin(question.round)
    weight = study.sizes[number] / sum(study.sizes)
    with Party(X, y, study.share_of(number), NoiseSource()) as party:
        if question.ridge is not None:
            return party.minimiser_part(study.release, question.clip, question.ridge, weight, grid)
        return party.gradient_part(np.array(question.theta), study.release, question.clip, weight, grid)


def _rows(study: Study, number: int, load: Load) -> tuple[Any, Any]:
    """This party's rows and targets, checked like those of any fit."""
    X, y = checked_party(study.model(), *load())
    if X.shape[1] != study.features:
        raise ValueError(f"X has {X.shape[1]} columns, the study {study.features}")
    if X.shape[0] > study.sizes[number]:
        raise ValueError(f"X has more rows than the {study.sizes[number]} this party declared; declare more")
    return X, y
