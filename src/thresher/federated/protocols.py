"""The protocols of "Distributed learning without distress" (thesis, chapter 6): an algorithm, and who adds noise.

Two of its baselines need vaults of their own: one with more noise than it needs, one without a guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from thresher.algorithms import (
    DPGD,
    DPIGHT,
    NoisyFrankWolfe,
    ObjectivePerturbation,
    OutputPerturbation,
    RajkumarAgarwal,
)
from thresher.algorithms.protocol import Algorithm
from thresher.federated.vault import FederatedVault, GatheredVault, Party, SeparateVault
from thresher.privacy.arrays import Floats
from thresher.privacy.plan import Plan
from thresher.privacy.releases import PrintedGradient, Release
from thresher.vaults.randomness import NoiseSource
from thresher.vaults.vault import no_watch

__all__ = ["DENSE", "SPARSE", "VAULTS", "PathakVault", "PrintedVault", "Protocol", "protocol_of"]


class PathakVault(GatheredVault):
    """Pathak, Rane and Raj (NeurIPS 2010): joint noise that hides a row in the smallest party's own minimiser.

    What is released is the mean of all minimisers, in which a row moves far less: m times, for m parties of one size.
    """

    def _minimiser_sensitivity(self, release: Release, clip: float, ridge: float) -> float:
        smallest = self._sensitivity_alone(release, clip, ridge, min(self._sizes))
        return max(smallest, super()._minimiser_sensitivity(release, clip, ridge))


class PrintedVault(FederatedVault):
    """Answers that nobody is promised anything about; whoever runs this process sees every party's part."""

    def __init__(
        self, parties: Sequence[Party], plan: Plan, noise: NoiseSource, watch: Callable[[], None] = no_watch
    ) -> None:
        super().__init__(parties, plan, noise, watch)
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


Noise = Literal["joint", "smallest", "separate", "printed"]
"""One copy inside the secure aggregation, as much as all rows need or as much as the smallest party's; one by each
party; or as a paper prints it."""

VAULTS: Mapping[Noise, type[FederatedVault]] = {
    "joint": GatheredVault,
    "smallest": PathakVault,
    "separate": SeparateVault,
    "printed": PrintedVault,
}
"""Who answers."""


class Protocol(NamedTuple):
    """What runs, given the ridge and the rounds asked for (None: the algorithm's own rule), and who adds noise."""

    algorithm: Callable[[float | None, int | None], Algorithm]
    noise: Noise

    @property
    def joint(self) -> bool:
        """Whether a secure aggregation draws the noise."""
        return issubclass(VAULTS[self.noise], GatheredVault)


SPARSE: Mapping[str, Protocol] = {
    "dp-ight": Protocol(lambda ridge, rounds: DPIGHT(iterations=rounds, ridge=ridge or 0.0), "joint"),
    "noisy-frank-wolfe": Protocol(lambda ridge, rounds: NoisyFrankWolfe(iterations=rounds), "joint"),
    "mpc-out-p": Protocol(lambda ridge, rounds: OutputPerturbation(ridge=ridge), "joint"),
}

DENSE: Mapping[str, Protocol] = {
    "mpc-grad-p": Protocol(lambda ridge, rounds: DPGD(passes=rounds), "joint"),
    "mpc-out-p": Protocol(lambda ridge, rounds: OutputPerturbation(ridge=ridge), "joint"),
    "local-grad-p": Protocol(lambda ridge, rounds: DPGD(passes=rounds), "separate"),
    "local-out-p": Protocol(lambda ridge, rounds: OutputPerturbation(ridge=ridge), "separate"),
    "local-obj-p": Protocol(lambda ridge, rounds: ObjectivePerturbation(ridge=ridge), "separate"),
    "pathak": Protocol(lambda ridge, rounds: OutputPerturbation(ridge=ridge), "smallest"),
    "rajkumar-agarwal": Protocol(lambda ridge, rounds: RajkumarAgarwal(), "printed"),
}


def protocol_of(algorithm: str | Algorithm, known: Mapping[str, Protocol]) -> Protocol:
    """The protocol behind a name; an algorithm's instance runs jointly."""
    if isinstance(algorithm, str):
        if algorithm not in known:
            raise ValueError(f"algorithm={algorithm!r} must be one of {', '.join(map(repr, known))}, or an instance")
        return known[algorithm]
    if not (hasattr(algorithm, "plan") and hasattr(algorithm, "run")) or isinstance(algorithm, type):
        raise ValueError(f"algorithm={algorithm!r} must be a name or an instance such as DPIGHT(iterations=20)")
    return Protocol(lambda ridge, rounds: algorithm, "joint")
