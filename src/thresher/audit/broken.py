"""Deliberately broken vaults and federations: an auditor that does not catch these proves nothing by silence."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from thresher.audit.joint_witness import Consortium, blocks_of, sizes_of
from thresher.audit.local_witness import IMPOSSIBLE
from thresher.federated.aggregation import Law, drawn
from thresher.federated.vault import Party
from thresher.privacy.arrays import Floats, Indices, Integers, Matrix
from thresher.privacy.laws.skellam import Skellam
from thresher.privacy.plan import Plan
from thresher.privacy.releases import GaussianReport, Release, SampledRelease
from thresher.vaults import CentralVault, LabelVault, SimulatedVault, TextVault
from thresher.vaults.central.rows import Restricted
from thresher.vaults.people import Reporter
from thresher.vaults.polytopes import Walk
from thresher.vaults.randomness import NoiseSource

__all__ = [
    "AskedTwice",
    "BarePart",
    "ClippedEarly",
    "FreeSign",
    "KnownCoins",
    "LowThreshold",
    "NoDither",
    "QuietCoins",
    "QuietLabels",
    "QuietNoise",
    "QuietReports",
    "Rerun",
    "ReusedBatch",
    "SharedFormula",
    "SwappedClips",
    "Twice",
    "TwoSided",
    "Unclipped",
    "UnclippedLabels",
    "UnclippedParties",
    "WholeBatch",
    "WrongSign",
]

QUIET = 0.7  # of the noise that is paid for
WILDEST = 1e9  # times a clip, beyond which no residual of an audit lies
RETRIES = 10


class QuietNoise(NoiseSource):
    """Adds 0.7 of the noise that is paid for."""

    def gaussian(
        self, value: Floats, sensitivity: float, multiplier: float, error: float = 0.0, touched: int | None = None
    ) -> tuple[Floats, float]:
        return super().gaussian(value, sensitivity, QUIET * multiplier, error, touched)

    def gumbel_scale(self, sensitivity: float, multiplier: float) -> float:
        return QUIET * super().gumbel_scale(sensitivity, multiplier)

    def l2_laplace(self, scale: float, dimension: int) -> Floats:
        return super().l2_laplace(QUIET * scale, dimension)


class Unclipped(CentralVault):
    """Forgets to clip rows, targets and gradients, and adds noise as if it had not."""

    def _clip(self, X: Matrix, y: Floats) -> tuple[Matrix, Floats]:
        return X.copy() if sparse.issparse(X) else np.array(X, dtype=np.float64, order="F"), y.copy()

    def _limits_of(self, norms: Floats, clip: float) -> Floats:
        return np.full_like(norms, np.inf)

    def _follow(self, engine: Any, walk: Walk, release: Release, clip: float, sensitivity: float) -> tuple[int, float]:
        return super()._follow(engine, walk, release, WILDEST * clip, sensitivity)

    def _mean_gradient(self, engine: Any, margins: Floats, limits: Floats | float) -> Floats:
        return super()._mean_gradient(engine, margins, math.inf)

    def _clipped_losses(self, margins: Floats, clip: float) -> Floats:
        return super()._clipped_losses(margins, WILDEST * clip)


class ClippedEarly(CentralVault):
    """Takes the norms of rows before they are multiplied by a basis for those of what is clipped."""

    def _restricted(self, engine: Any, support: Indices, basis: Floats | None = None) -> Restricted:
        columns = super()._restricted(engine, support, basis)
        return Restricted(columns.engine, columns.units, super()._restricted(engine, support).norms)


class TwoSided(CentralVault):
    """Scores a level by the distance from the allowed number, as a quantile does, at the price of a near maximum: where
    a row comes to be above all levels, those with too few rows above become better and those with too many worse."""

    def _not_allowed(self, above: Floats | Indices, allowed: float) -> Floats:
        return np.abs(above - allowed)


class SharedFormula(CentralVault):
    """Chooses one formula for the norms of all rows: another one as soon as a single entry of any row is tiny."""

    def _norms(self) -> Floats:
        rows = self._open()
        X = np.column_stack([rows.product(column) for column in np.eye(rows.dimension)])
        sizes = np.abs(X)
        if np.all((sizes > 1e-150) | (sizes == 0)):
            return super()._norms()
        unit = sizes.max(axis=1)
        norms: Floats = unit * np.sqrt(np.square(X / unit[:, None]).sum(axis=1))
        return norms


class FreeSign(CentralVault):
    """Publishes exact signs: of every number, or of the vertex on an axis that was chosen privately."""

    def _add_noise(
        self, value: Floats, noise: str, sensitivity: float, multiplier: float, error: float = 0.0
    ) -> tuple[Floats, float]:
        answer, scale = super()._add_noise(value, noise, sensitivity, multiplier, error)
        return np.copysign(answer, value), scale

    def _pick_noisy(
        self, scores: Floats, picks: int, noise: str, sensitivity: float, multiplier: float, error: float
    ) -> tuple[Indices, float]:
        ahead, back = np.split(scores, 2)
        axes, scale = super()._pick_noisy(np.maximum(ahead, back), picks, noise, sensitivity, multiplier, error)
        return np.where(ahead[axes] >= back[axes], axes, axes + len(ahead)), scale


class Rerun(CentralVault):
    """Draws a choice again until it looks good, and pays for the last draw only."""

    def _pick_noisy(
        self, scores: Floats, picks: int, noise: str, sensitivity: float, multiplier: float, error: float
    ) -> tuple[Indices, float]:
        for _ in range(RETRIES):
            chosen, scale = super()._pick_noisy(scores, picks, noise, sensitivity, multiplier, error)
            if scores[chosen].max() == scores.max():
                break
        return chosen, scale


class WrongSign(CentralVault):
    """Takes one-sided noise off the scores where it should be added, as the code of DP-AGD does (erratum E-26).

    Exponential noise may be added before the largest is chosen: the rest of what is above a threshold has no memory.
    Taken off, every candidate is ahead of the best with a chance that falls with the number of the others.
    """

    def _pick_noisy(
        self, scores: Floats, picks: int, noise: str, sensitivity: float, multiplier: float, error: float
    ) -> tuple[Indices, float]:
        scale = multiplier * sensitivity
        taken_off = np.abs(self._noise.laplace(scale, scores.size))
        return np.array([np.argmax(scores - taken_off)]), scale


class LowThreshold(TextVault):
    """Publishes a text as soon as its noisy count is at least 1, as if everybody knew what texts there may be."""

    def _texts_above(
        self, counts: dict[str, int], threshold: float, sensitivity: float, multiplier: float
    ) -> tuple[list[str], float]:
        return super()._texts_above(counts, 1.0, sensitivity, multiplier)


# -- random batches -------------------------------------------------------------------------------------------------


class WholeBatch(CentralVault):
    """Takes all rows where a random batch of them is paid for."""

    def _draw_batch(self, release: SampledRelease) -> Indices:
        return np.arange(len(self._targets))


class ReusedBatch(CentralVault):
    """Draws one batch and keeps it for all answers."""

    def _draw_batch(self, release: SampledRelease) -> Indices:
        draw = super()._draw_batch
        return self._cached("batch", None, lambda: draw(release))


class SwappedClips(CentralVault):
    """Adds noise for (1-g) C1 + g C2, as the thesis prints it (erratum E-18).

    That is too little where (1-2g)(C2 - C1) > 0: for a small g, if changes are clipped at more than gradients. With
    the thesis's own C1 = 1, C2 = g = 0.01 it is 50 times too much, which is safe.
    """

    def _total_clip(self, clip: float, difference_clip: float, momentum: float) -> float:
        return super()._total_clip(difference_clip, clip, momentum)


# -- the local model ------------------------------------------------------------------------------------------------


def quieter(release: Any) -> Release:
    """A report with the noise of a larger epsilon, or with 0.7 of the noise, than is paid for."""
    if isinstance(release, GaussianReport):
        return replace(release, sd_per_sensitivity=QUIET * release.sd_per_sensitivity)
    return replace(release, epsilon=release.epsilon / QUIET)  # type: ignore[no-any-return]


class QuietReports(SimulatedVault):
    """People randomise their gradients less than is paid for."""

    def _reporter(self, release: Release, clip: float) -> Reporter:
        return super()._reporter(quieter(release), clip)


class QuietLabels(LabelVault):
    """People randomise their labels less than is paid for."""

    def _randomiser(self, release: Release) -> Any:
        return super()._randomiser(quieter(release))


class Twice(SimulatedVault):
    """Everybody stands in two groups and reports in both; one report is paid for."""

    def _groups(self, people: int, rounds: int) -> list[Indices]:
        once = super()._groups(people, rounds)
        return [np.union1d(group, other) for group, other in zip(once, once[1:] + once[:1], strict=True)]


@dataclass(frozen=True)
class Unbounded:
    """A randomiser that lets pass what lies beyond [-1, 1], where it should have been clipped."""

    randomiser: Any

    @property
    def size(self) -> float:
        return float(self.randomiser.size)

    def randomise(self, values: Floats, noise: NoiseSource) -> Floats:
        reports: Floats = self.randomiser.randomise(values, noise) + _beyond(values)
        return reports

    def log_density(self, reports: Floats, value: float) -> Floats:
        beyond = _beyond(np.asarray(value))
        densities: Floats = self.randomiser.log_density(reports - beyond, value - beyond)
        return densities


def _beyond(values: Floats) -> Floats:
    return values - np.clip(values, -1, 1)


class UnclippedLabels(LabelVault):
    """Forgets to clip labels, as they enter and before they are randomised."""

    def _clip(self, X: Matrix, y: Floats) -> tuple[Matrix, Floats]:
        return super()._clip(X, y)[0], y.copy()

    def _units(self) -> Floats:
        middle, radius = self.problem.bounds.target_span
        return (self._targets + self.problem.target_centre - middle) / radius

    def _randomiser(self, release: Release) -> Any:
        return Unbounded(super()._randomiser(release))


# -- federations ------------------------------------------------------------------------------------------------------
# What is opened is all that an attacker sees. So what else leaks stands beside the noisy sum, as a row of its own.


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

    def _seat_parties(self, X: Matrix, y: Floats, plan: Plan, noise: NoiseSource) -> list[Party]:
        data, clipped = blocks_of(X, sizes_of(plan.problem.n)), super()._seat_parties(X, y, plan, noise)
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
