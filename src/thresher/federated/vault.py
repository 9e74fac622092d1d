"""The federated vaults: the questions of a central vault, answered by parties that cannot share rows.

Each party holds rows of its own, and says nothing about them but to a secure aggregation.

Algorithms run on them unchanged. MPC Grad P is DP-GD over a ``JointVault``, federated DP-IGHT is DP-IGHT over it,
and the baselines of the thesis' chapter 6 are the same algorithms where each party adds noise of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from thresher.federated.aggregation import LARGEST_UNIT, Aggregation, Law
from thresher.privacy.arrays import Floats, Indices, Integers, Matrix
from thresher.privacy.plan import Plan
from thresher.privacy.releases import JointRelease, Release
from thresher.privacy.sensitivity import most_present, norm_error, round_off
from thresher.vaults import CentralVault
from thresher.vaults.central.minimisers import certified_search, check_ridge
from thresher.vaults.randomness import NoiseSource
from thresher.vaults.vault import Vault, no_watch

__all__ = ["DataSets", "FederatedVault", "GatheredVault", "JointVault", "Party", "SeparateVault", "parties_of"]


@dataclass(frozen=True)
class DataSets:
    """The rows of several parties that hold the same columns, one block for each party."""

    blocks: Sequence[Matrix]

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


def parties_of(data: DataSets, y: Floats, plan: Plan, noise: NoiseSource, sizes: Sequence[int]) -> list[Party]:
    """A party for each block of rows, its plan that of all for its own public number of rows."""
    plans = {n: replace(plan, problem=replace(plan.problem, n=n)) for n in set(sizes)}
    blocks = zip(data.blocks, data.split(y), sizes, strict=True)
    return [Party(X, targets, plans[n], noise) for X, targets, n in blocks]


class FederatedVault(Vault):
    """Parties, of which each answers for its own rows, and their shares n_j / n of all rows."""

    def __init__(
        self,
        parties: Sequence[Party],
        plan: Plan,
        noise: NoiseSource,
        watch: Callable[[], None] = no_watch,
    ) -> None:
        super().__init__(plan, noise, watch)
        self._parties = list(parties)

    def close(self) -> None:
        """Drop every party's rows. The answers stay."""
        for party in self._parties:
            party.close()

    def _charge(self, question: str, release: Release, clip: float, theta: Floats | None) -> None:
        """Refuse what cannot be answered, then pay; only after this is a party asked."""
        self._check_question(release, clip, theta)
        self._meter.charge(release, question)

    def _weight(self, party: Party) -> float:
        return party.problem.n / self.problem.n


class JointVault(FederatedVault):
    """One copy of noise, drawn inside a secure aggregation; nobody sees a party's part, nor the sum without noise.

    ``sizes`` are the public numbers of rows of all parties, in this process or not.
    """

    def __init__(
        self,
        parties: Sequence[Party],
        sizes: Sequence[int],
        plan: Plan,
        noise: NoiseSource,
        watch: Callable[[], None] = no_watch,
    ) -> None:
        super().__init__(parties, plan, noise, watch)
        self._sizes = tuple(sizes)
        if sum(self._sizes) != self.problem.n:
            raise ValueError(f"the parties have {sum(self._sizes)} rows, the plan is for {self.problem.n}")

    def gradient(self, theta: Floats, release: Release, clip: float) -> Floats:
        """(1/n) sum over the rows of all parties, each row's term clipped to l2 norm ``clip``, + joint noise."""
        clip = float(clip)
        law = self._law(release)
        self._charge("gradient", release, clip, theta)
        theta = self._agreed_point(theta)
        return self._joint(
            lambda party, grid: party.gradient_part(theta, release, clip, self._weight(party), grid),
            law, release, clip, self._gradient_sensitivity(release, clip),
        )  # fmt: skip

    def minimiser(self, release: Release, clip: float, ridge: float) -> Floats:
        """sum_j (n_j / n) argmin (1/n_j) sum_i l_i + (ridge/2)||theta||^2 over the rows i of party j, + joint noise."""
        clip, ridge = float(clip), float(ridge)
        law = self._law(release)
        check_ridge(ridge)
        self._charge("minimiser", release, clip, self.problem.origin())
        return self._joint(
            lambda party, grid: party.minimiser_part(release, clip, ridge, self._weight(party), grid),
            law, release, clip, self._minimiser_sensitivity(release, clip, ridge),
        )  # fmt: skip

    def grid_step(self, release: Release, clip: float, ridge: float | None) -> float:
        """The grid of a gradient or, with a ridge, of a minimiser: from public facts alone."""
        if ridge is None:
            return self._grid(release, self._gradient_sensitivity(release, clip))
        return self._grid(release, self._minimiser_sensitivity(release, clip, ridge))

    def _gradient_sensitivity(self, release: Release, clip: float) -> float:
        n, adjacency = self.problem.n, self._plan.budget.adjacency
        error = round_off(n, clip, most_present(n, adjacency)) + norm_error(self.problem.dimension, clip) / n
        return release.sensitivity(clip, n, adjacency) + 2 * error

    def _minimiser_sensitivity(self, release: Release, clip: float, ridge: float) -> float:
        """A record moves one party's minimiser, whose weight is its share of the rows."""
        sizes = set(self._sizes)
        return max(n / self.problem.n * self._sensitivity_alone(release, clip, ridge, n) for n in sizes)

    def _sensitivity_alone(self, release: Release, clip: float, ridge: float, n: int) -> float:
        """Of the minimiser of a party with n rows."""
        problem = replace(self.problem, n=n)
        search = certified_search(problem, problem.dimension, clip, ridge, problem.row_norm)
        return release.sensitivity(clip, n, self._plan.budget.adjacency, search)

    def _law(self, release: Release) -> Law:
        """The law of the noise, if the release pays for all the coordinates that a record can touch."""
        if not isinstance(release, JointRelease):
            raise ValueError(f"{release!r} is not drawn jointly; plan with thresher.federated.plans.joint")
        if release.touched < self.problem.dimension:
            raise ValueError(f"{release!r} pays for fewer coordinates than the problem's {self.problem.dimension}")
        return release.law

    def _joint(
        self,
        part: Callable[[Party, float], Integers],
        law: Law,
        release: Release,
        clip: float,
        sensitivity: float,
    ) -> Floats:
        """The way out of every number: parts on a grid, added up with noise where nobody sees them."""
        grid = self._grid(release, sensitivity)
        noisy = self._noisy_sum(lambda: [part(party, grid) for party in self._parties], law)
        self._record(release, clip, sensitivity, release.multiplier * sensitivity)
        return (noisy.astype(np.float64) - law.mean) * grid

    def _grid(self, release: Release, sensitivity: float) -> float:
        grid = release.multiplier * sensitivity / self._law(release).sd
        if not 0 < grid < math.inf:
            raise FloatingPointError(f"grid step {grid!r}: the bounds are too extreme; nothing is answered")
        return grid

    def _agreed_point(self, theta: Floats) -> Floats:
        """The point that all parties compute at."""
        return theta

    def _noisy_sum(self, parts: Callable[[], list[Integers]], law: Law) -> Integers:
        """What the secure aggregation makes of all parties' parts; ``parts`` computes those of this process."""
        raise NotImplementedError


class GatheredVault(JointVault):
    """A joint vault whose parties are all in this process."""

    def __init__(
        self, parties: Sequence[Party], sizes: Sequence[int], aggregation: Aggregation, plan: Plan, noise: NoiseSource,
        watch: Callable[[], None] = no_watch,
    ) -> None:  # fmt: skip
        super().__init__(parties, sizes, plan, noise, watch)
        self._aggregation = aggregation

    @property
    def randomness(self) -> str:
        return self._aggregation.randomness

    def close(self) -> None:
        super().close()
        self._aggregation.close()

    def _noisy_sum(self, parts: Callable[[], list[Integers]], law: Law) -> Integers:
        return self._aggregation.noisy_sum(parts(), law)


class SeparateVault(FederatedVault):
    """Each party adds noise of its own to its own answer; the answers are then added up in the open.

    A record is one party's, so that all answers to a question cost what one party's does. The noise is sqrt(m) times
    that of a joint answer. This is how the baselines Local Out P, Local Obj P and Local Grad P work.
    """

    def gradient(self, theta: Floats, release: Release, clip: float) -> Floats:
        """sum_j (n_j / n) (mean gradient of party j + its noise)."""
        self._charge("gradient", release, float(clip), theta)
        return self._weighted_sum(lambda party: party.gradient(theta, release, clip))

    def minimiser(self, release: Release, clip: float, ridge: float) -> Floats:
        """sum_j (n_j / n) (minimiser of party j + its noise)."""
        self._charge("minimiser", release, float(clip), self.problem.origin())
        return self._weighted_sum(lambda party: party.minimiser(release, clip, ridge))

    def perturbed_minimiser(self, support: Indices, release: Release, clip: float, ridge: float) -> Floats:
        """sum_j (n_j / n) (minimiser of party j's perturbed objective)."""
        self._charge("perturbed minimiser", release, float(clip), self.problem.origin())
        return self._weighted_sum(lambda party: party.perturbed_minimiser(support, release, clip, ridge))

    def _weighted_sum(self, answer: Callable[[Party], Floats]) -> Floats:
        """The answers, each with its party's weight. On record is the largest party's, the least noisy one."""
        total = np.zeros(self.problem.dimension)
        for party in self._parties:
            total += self._weight(party) * answer(party)
        given = max(self._parties, key=self._weight).answers[-1]
        self._record(given.release, given.clip, given.sensitivity, given.scale)
        return total
