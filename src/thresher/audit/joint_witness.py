"""A vault of parties with an auditor's ear: every noisy sum that is opened, and how likely the rows make it.

Nobody sees a party's part or the sum without noise, so the strongest attacker has the opened whole numbers, and both
data sets. The law of the noise is known outcome by outcome: the privacy loss is exact, down to the last step of the
grid, where an answer may be possible under one data set and impossible under the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache

import numpy as np
from scipy.special import ive

from thresher.audit.local_witness import IMPOSSIBLE
from thresher.audit.transcript import RecordedAnswer
from thresher.federated.aggregation import Law, ReferenceAggregation
from thresher.federated.vault import DataSets, GatheredVault, Party, parties_of
from thresher.privacy.arrays import Floats, Integers, Matrix
from thresher.privacy.laws.skellam import Skellam
from thresher.privacy.plan import Plan
from thresher.vaults.randomness import NoiseSource

__all__ = ["Consortium", "JointWitness", "blocks_of", "log_chances", "sizes_of"]

FAR = 15.0  # standard deviations of Skellam noise, beyond which no audit sees an outcome


class Consortium(GatheredVault):
    """Three parties in one process: one holds the first row alone, which pairs replace, and two share the others."""

    def __init__(self, X: Matrix, y: Floats, plan: Plan, noise: NoiseSource) -> None:
        sizes = sizes_of(plan.problem.n)
        super().__init__(self._seat_parties(X, y, plan, noise), sizes, ReferenceAggregation(noise), plan, noise)

    def _seat_parties(self, X: Matrix, y: Floats, plan: Plan, noise: NoiseSource) -> list[Party]:
        sizes = sizes_of(plan.problem.n)
        return parties_of(blocks_of(X, sizes), y, plan, noise, sizes)

    def _log_chance(self, answer: Integers, parts: Sequence[Integers], law: Law) -> float:
        """Of what was opened, given the parts."""
        return float(np.sum(log_chances(answer - np.sum(parts, axis=0), law)))


class JointWitness(Consortium):
    """Answers as its vault does or, given a ``script``, says what stands there; adds up how likely its rows make that.

    As of any witness, the likelihood is computed from the answers alone, in the same way whether they were drawn here
    or scripted.
    """

    def __init__(
        self, X: Matrix, y: Floats, plan: Plan, noise: NoiseSource, script: Iterable[RecordedAnswer] | None = None
    ) -> None:
        super().__init__(X, y, plan, noise)
        self._script = None if script is None else iter(script)
        self.transcript: list[RecordedAnswer] = []
        self.log_likelihoods: list[float] = []

    @property
    def log_likelihood(self) -> float:
        """Of everything opened so far under these rows."""
        return math.fsum(self.log_likelihoods)

    def _noisy_sum(self, parts: Callable[[], list[Integers]], law: Law) -> Integers:
        held = parts()  # once: parties are paid for each time
        opened = super()._noisy_sum(lambda: held, law) if self._script is None else next(self._script).answer
        self.transcript.append(RecordedAnswer(opened.copy(), law.sd, np.sum(held, axis=0)))
        self.log_likelihoods.append(self._log_chance(opened, held, law))
        return opened.copy()


def blocks_of(X: Matrix, sizes: Sequence[int]) -> DataSets:
    """Rows by party, counted from the end: if a neighbour has one row less, it is the first party that is without."""
    first, second = np.maximum(X.shape[0] - np.cumsum(sizes[:0:-1]), 0)[::-1]
    return DataSets([X[:first], X[first:second], X[second:]])


def sizes_of(n: int) -> tuple[int, int, int]:
    """How many rows each party declares."""
    return 1, n // 2, n - n // 2 - 1


def log_chances(noise: Integers, law: Law) -> Floats:
    """The logarithm of each outcome's chance; of one that the law cannot give, a large negative number."""
    logs, least = _logs(law)
    at = noise - least
    return np.where((at >= 0) & (at < len(logs)), logs[np.clip(at, 0, len(logs) - 1)], IMPOSSIBLE)


@cache
def _logs(law: Law) -> tuple[Floats, int]:
    """Those of all outcomes that matter, from the least one on, and that one."""
    if isinstance(law, Skellam):
        reach = math.ceil(FAR * law.sd)
        chances = ive(np.abs(np.arange(-reach, reach + 1)), law.variance)
        return np.log(chances), -reach
    with np.errstate(divide="ignore"):  # chances below the smallest float
        return np.maximum(np.log(law.pmf(int(law.weights.sum()))), IMPOSSIBLE), -law.offset
