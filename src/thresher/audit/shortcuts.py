"""Algorithms that take a shortcut: an answer is paid for and noisy, but they go on with the exact one.

What was answered shows nothing of it. What is asked afterwards does: it depends on the rows in a way nobody paid for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from thresher.algorithms import ScreenedIGHT
from thresher.privacy.arrays import Floats, Indices
from thresher.privacy.budget import Budget
from thresher.privacy.plan import Plan
from thresher.privacy.releases import Release
from thresher.vaults import CentralVault
from thresher.vaults.problem import LinearProblem

__all__ = ["ExactLengths", "ExactMeans", "NarrowScreen"]


@dataclass(frozen=True)
class NarrowScreen(ScreenedIGHT):
    """``screened-ight`` that looks at one column, as it looks at a thousand of many: a pair needs two columns only."""

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        plan = super().plan(problem, budget)
        return replace(plan, settings={**plan.settings, "columns": 1})


class ExactMeans(CentralVault):
    """Columns are chosen by exact means."""

    def _release_noisy(self, value: Floats, release: Release, clip: float, sensitivity: float, error: float) -> Floats:
        answer = super()._release_noisy(value, release, clip, sensitivity, error)
        return value.copy() if release.question.name == "mean" else answer


class ExactLengths(CentralVault):
    """Steps have the length that is best, whichever the noisy choice was."""

    def _release_choice(
        self, scores: Floats, picks: int, release: Release, clip: float, sensitivity: float, error: float
    ) -> Indices:
        chosen = super()._release_choice(scores, picks, release, clip, sensitivity, error)
        return np.array([np.argmax(scores)]) if release.question.name == "step length" else chosen
