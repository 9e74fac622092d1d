"""Spending that is decided while it goes on, within a cap."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

from thresher.privacy import questions
from thresher.privacy.accounting import Cost, zcdp_rho
from thresher.privacy.budget import Budget
from thresher.privacy.questions import Question
from thresher.privacy.releases.base import Release

__all__ = ["ZCDPFilter"]


@dataclass(frozen=True)
class ZCDPFilter(Release):
    """Any releases, each chosen and priced while running, as long as their zCDP adds up to at most ``rho``.

    The whole is rho-zCDP, as if the releases had been fixed in advance (Feldman and Zrnic 2021, Theorem 4.5 for Renyi
    filters; Whitehouse et al. 2023): the question that would cross the cap is refused.
    """

    rho: float
    question: ClassVar[Question] = questions.AnyQuestion()
    noise: ClassVar[str] = "as listed"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.times != 1 or not self.rho > 0:
            raise ValueError(f"times={self.times!r}, rho={self.rho!r}: a filter is one cap above 0")

    @classmethod
    def calibrated(cls, budget: Budget) -> Self:
        return cls(1, zcdp_rho(budget.epsilon, budget.delta))

    @property
    def multiplier(self) -> float:
        return 0.0  # it gives no answer itself

    @property
    def terms(self) -> tuple[str, str]:
        return "spent while running", f"at most rho = {self.rho:.4g} in zCDP"

    def cost(self) -> Cost:
        return Cost.unbounded() if math.isinf(self.rho) else Cost.zcdp(self.rho)
