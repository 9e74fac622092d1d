"""Deliberately broken federations: parties that forget to clip, and aggregations that say more than they are paid for.

What is opened is all that an attacker sees. So what else leaks stands beside the noisy sum, as a row of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from thresher.audit.broken import QUIET, Unclipped
from thresher.audit.joint_witness import Consortium, blocks_of, sizes_of
from thresher.audit.local_witness import IMPOSSIBLE
from thresher.federated.aggregation import Law, drawn
from thresher.federated.vault import Party
from thresher.privacy.arrays import Floats, Integers
from thresher.privacy.laws.skellam import Skellam
from thresher.privacy.plan import Plan
from thresher.vaults.randomness import NoiseSource

__all__ = ["AskedTwice", "BarePart", "KnownCoins", "NoDither", "QuietCoins", "UnclippedParties"]

Parts = Callable[[], list[Integers]]

UNKNOWN = 0.25  # of the coins, to those who collude


def fewer_coins(law: Law, share: float) -> Law:
    """The law with that share of the coins, which must be an even number, or of the variance."""
    if isinstance(law, Skellam):
        return Skellam(share * law.variance)
    return replace(law, coins=2 * round(share * law.coins / 2))


class QuietCoins(Consortium):
    """Tosses about half of the coins: 0.7 of the noise that is paid for."""

    def _noisy_sum(self, parts: Parts, law: Law) -> Integers:
        return super()._noisy_sum(parts, fewer_coins(law, QUIET**2))

    def _log_chance(self, answer: Integers, parts: Sequence[Integers], law: Law) -> float:
        return super()._log_chance(answer, parts, fewer_coins(law, QUIET**2))


class _UnclippedParty(Unclipped, Party):
    """Forgets to clip rows, targets and gradients."""


class UnclippedParties(Consortium):
    """Parties that forget to clip; the noise is as if they had not."""

    def _seated(self, X: Any, y: Floats, plan: Plan, noise: NoiseSource) -> list[Party]:
        data, clipped = blocks_of(X, sizes_of(plan.problem.n)), super()._seated(X, y, plan, noise)
        blocks = zip(data.blocks, data.split(y), clipped, strict=True)
        return [_UnclippedParty(rows, targets, party.plan, noise) for rows, targets, party in blocks]


class NoDither(Consortium):
    """Noise on whole multiples of 2^k alone, as a released circuit draws it: the rest is the exact sum (E-24)."""

    def _noisy_sum(self, parts: Parts, law: Any) -> Integers:
        held = parts()
        total = np.sum(held, axis=0)
        heads = super()._noisy_sum(lambda: [np.zeros_like(total)], law.coarser(law.dither))
        noisy: Integers = total + heads * 2**law.dither
        return noisy

    def _log_chance(self, answer: Integers, parts: Sequence[Integers], law: Any) -> float:
        heads, rest = np.divmod(answer - np.sum(parts, axis=0), 2**law.dither)
        if np.any(rest):
            return IMPOSSIBLE
        return super()._log_chance(heads, [np.zeros_like(heads)], law.coarser(law.dither))


class BarePart(Consortium):
    """Shows the first coordinate of one party's part, as if a share of it had gone to everybody."""

    def _noisy_sum(self, parts: Parts, law: Law) -> Integers:
        held = parts()
        noisy = super()._noisy_sum(lambda: held, law)
        return np.stack([noisy, np.full_like(noisy, held[0][0])])

    def _log_chance(self, answer: Integers, parts: Sequence[Integers], law: Law) -> float:
        noisy, shown = answer
        return super()._log_chance(noisy, parts, law) if shown[0] == parts[0][0] else IMPOSSIBLE


class AskedTwice(Consortium):
    """Prepares a round anew, with fresh noise, after it was opened: two releases for the price of one."""

    def _noisy_sum(self, parts: Parts, law: Law) -> Integers:
        held = parts()
        return np.stack([super(AskedTwice, self)._noisy_sum(lambda: held, law) for _ in range(2)])


class KnownCoins(Consortium):
    """Three quarters of the noise are known to colluding parties, who take them off: half of its sd is left."""

    def _noisy_sum(self, parts: Parts, law: Law) -> Integers:
        noisy = super()._noisy_sum(parts, fewer_coins(law, UNKNOWN))
        known = drawn(self._noise, fewer_coins(law, 1 - UNKNOWN), noisy.size)
        return np.stack([noisy + known, known])

    def _log_chance(self, answer: Integers, parts: Sequence[Integers], law: Law) -> float:
        noisy, known = answer
        return super()._log_chance(noisy - known, parts, fewer_coins(law, UNKNOWN))
