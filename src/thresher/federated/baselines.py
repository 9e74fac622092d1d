"""The vaults of two baselines of the thesis' chapter 6: one with more noise than it needs, one without a guarantee."""

from __future__ import annotations

from typing import Any

from thresher.federated.vault import FederatedVault, GatheredVault
from thresher.privacy.arrays import Floats
from thresher.privacy.releases import PrintedGradient, Release

__all__ = ["PathakVault", "PrintedVault"]


class PathakVault(GatheredVault):
    """Pathak, Rane and Raj (NeurIPS 2010): joint noise that hides a row in the smallest party's own minimiser.

    What is released is the mean of all minimisers, in which a row moves far less: m times, for m parties of one size.
    """

    def _minimiser_sensitivity(self, release: Release, clip: float, ridge: float) -> float:
        smallest = self._sensitivity_alone(release, clip, ridge, min(self._sizes))
        return max(smallest, super()._minimiser_sensitivity(release, clip, ridge))


class PrintedVault(FederatedVault):
    """Answers that nobody is promised anything about; whoever runs this process sees every party's part."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._tilt = self._noise.standard_normal(self.problem.dimension)  # one linear term for all rounds

    def printed_gradient(self, theta: Floats, release: PrintedGradient, clip: float) -> Floats:
        """(1/n) (sum over the rows of all parties + b) + v, each row's term clipped to l2 norm ``clip``."""
        clip = float(clip)
        self._charge("printed gradient", release, clip, theta)
        per_row = clip / self.problem.n
        total = per_row * release.tilt * self._tilt
        for party in self._parties:
            total += party.printed_part(theta, release, clip, self._weight(party))
        scale = per_row * release.laplace
        if scale > 0:
            total += self._noise.laplace(scale, total.size)
        self._record(release, clip, release.sensitivity(clip, self.problem.n, self._plan.budget.adjacency), scale)
        return total
