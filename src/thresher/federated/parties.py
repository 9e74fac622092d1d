"""The parties: each holds rows of its own, and says nothing about them but to a secure aggregation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.federated.aggregation import LARGEST_UNIT
from thresher.privacy.arrays import Floats, Integers
from thresher.privacy.releases import Release
from thresher.vaults import CentralVault
from thresher.vaults.central.minimisers import check_ridge

__all__ = ["DataSets", "Party"]


@dataclass(frozen=True)
class DataSets:
    """The rows of several parties that hold the same columns, one block for each party."""

    blocks: Sequence[Any]

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(block.shape[0] for block in self.blocks)

    @property
    def shape(self) -> tuple[int, int]:
        return sum(self.sizes), self.blocks[0].shape[1]

    def split(self, y: Floats) -> list[Floats]:
        """The targets of each party, of those of all."""
        return np.split(y, np.cumsum(self.sizes)[:-1])


class Party(CentralVault):
    """The vault of one party, whose problem counts its own rows.

    Beside the noisy answers of any vault it gives its part of a joint answer, in whole steps of a public grid. A part
    has no noise: it may go nowhere but into an aggregation that adds it. It is paid for like an answer.
    """

    def gradient_part(self, theta: Floats, release: Release, clip: float, weight: float, grid: float) -> Integers:
        """``weight`` times this party's mean gradient, each row's term clipped to l2 norm ``clip``."""
        engine = self._charge("gradient", release, clip, theta)
        mean = self._mean_gradient(engine, self._margins(engine, theta), self._limits(clip))
        return whole_steps(weight * self.problem.stacked(mean), grid)

    def minimiser_part(self, release: Release, clip: float, ridge: float, weight: float, grid: float) -> Integers:
        """``weight`` times this party's certified minimiser."""
        check_ridge(ridge)
        engine = self._charge("minimiser", release, clip, self.problem.origin())
        theta, _ = self._certified_minimiser(engine, self._limits(clip), clip, ridge, self.problem.row_norm)
        return whole_steps(weight * theta, grid)

    def printed_part(self, theta: Floats, release: Release, clip: float, weight: float) -> Floats:
        """What ``gradient_part`` gives, without a grid: for a release that promises nothing."""
        engine = self._charge("printed gradient", release, clip, theta)
        mean = self._mean_gradient(engine, self._margins(engine, theta), self._limits(clip))
        return weight * self.problem.stacked(mean)


def whole_steps(value: Floats, grid: float) -> Integers:
    """``value`` on the grid, each coordinate off by at most half a step and a round-off."""
    return np.rint(np.clip(value / grid, -LARGEST_UNIT, LARGEST_UNIT)).astype(np.int64)
