"""The text vault with an auditor's ear: what it published, and how likely its counts make that."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from thresher.audit.local_witness import IMPOSSIBLE
from thresher.audit.script import Said
from thresher.privacy.plan import Plan
from thresher.vaults import TextVault
from thresher.vaults.randomness import NoiseSource

__all__ = ["TextWitness"]


class TextWitness(TextVault):
    """Publishes as its vault does or, given a ``script``, what stands there; adds up how likely its counts make that.

    The likelihood is that of the set of texts, each of which is published or not by noise of its own. Their order is
    left out: a score may be anything that is computed from the answer.
    """

    def __init__(
        self, X: NDArray[Any], y: Any, plan: Plan, noise: NoiseSource, script: Iterable[Said] | None = None
    ) -> None:
        super().__init__(X, y, plan, noise)
        self._script = None if script is None else iter(script)
        self.said: list[Said] = []
        self.log_likelihood = 0.0

    def _above(
        self, counts: dict[Any, int], threshold: float, sensitivity: float, multiplier: float
    ) -> tuple[list[Any], float]:
        if self._script is None:
            published, scale = super()._above(counts, threshold, sensitivity, multiplier)
        else:
            said = next(self._script)
            published, scale = list(said.answer), said.scale
        self.said.append(Said(list(published), scale))
        self.log_likelihood += self._chance(set(published), counts, threshold, scale)
        return published, scale

    @staticmethod
    def _chance(published: set[Any], counts: dict[Any, int], threshold: float, scale: float) -> float:
        """log P[these texts are published, and of those that are there no others]."""
        if published - set(counts):
            return IMPOSSIBLE
        off = (np.array([*counts.values()], dtype=float) - threshold) / scale
        signs = np.array([1.0 if text in published else -1.0 for text in counts])
        return math.fsum(log_ndtr(signs * off)) if counts else 0.0
