"""The text vault: cells of which nobody knows what they may hold; it tells what many rows hold alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from thresher.privacy.arrays import Values
from thresher.privacy.plan import Plan
from thresher.privacy.releases import GaussianCategories
from thresher.vaults.randomness import NoiseSource
from thresher.vaults.vault import Vault, no_watch

__all__ = ["TextVault"]


class TextVault(Vault):
    """Columns of texts, one text or none ("") in a cell."""

    def __init__(
        self, X: Values, y: Values | None, plan: Plan, noise: NoiseSource, watch: Callable[[], None] = no_watch
    ) -> None:
        """``y`` is there because every vault is made alike; nothing is asked about it."""
        super().__init__(plan, noise, watch)
        self._cells: Values | None = X

    def categories(self, column: int, release: GaussianCategories, fewest: float = 0.0) -> list[str]:
        """The texts of a column whose noisy count reaches the release's threshold and ``fewest``, the largest first."""
        if self._cells is None:
            raise RuntimeError("the vault is closed: its texts are gone and it answers nothing more")
        self._check_question(release, 1.0, None)
        self._meter.charge(release, "categories")
        counts = Counter(text for text in self._cells[:, column].tolist() if text)
        sensitivity = release.sensitivity(1.0, self.problem.n, self._plan.budget.adjacency)
        threshold = max(release.threshold(sensitivity), fewest)
        published, scale = self._texts_above(dict(counts), threshold, sensitivity, release.multiplier)
        self._record(release, 1.0, sensitivity, scale)
        return published

    def close(self) -> None:
        """Drop the texts. The answers stay."""
        self._cells = None

    def _texts_above(
        self, counts: dict[str, int], threshold: float, sensitivity: float, multiplier: float
    ) -> tuple[list[str], float]:
        """The way out of every text: those whose noisy counts reach the threshold, and the noise's scale."""
        values = np.array([*counts.values()], dtype=float)
        # how many texts there are is private, and the scale is told: it follows from how many of them a row may touch
        touched = self._plan.budget.adjacency.contributions
        noisy, scale = self._noise.gaussian(values, sensitivity, multiplier, touched=touched)
        found = [(count, text) for text, count in zip(counts, noisy, strict=True) if count >= threshold]
        return [text for _, text in sorted(found, reverse=True)], scale
