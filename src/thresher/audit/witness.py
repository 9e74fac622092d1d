"""A vault with an auditor's ear: every answer it gives, and how likely its rows make what was said.

The strongest attacker a guarantee speaks of knows both data sets, sees every answer, and compares how likely each
makes them. All algorithms are deterministic given the answers, so the same questions can be put to the other data set:
its vault is handed the answers that were given (the *script*) in place of noise of its own. The difference of the two
log-likelihoods is the privacy loss of the run, the best score there is (Neyman and Pearson).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, log_ndtr

from thresher.audit.joint_witness import Consortium, JointWitness
from thresher.audit.local_witness import IMPOSSIBLE, LabelWitness, LocalWitness
from thresher.audit.transcript import RecordedAnswer
from thresher.privacy.arrays import Floats, Indices, Matrix, Values
from thresher.privacy.plan import Plan
from thresher.privacy.releases import GaussianCategories, Release, SampledRelease
from thresher.privacy.subsampling import Sampling
from thresher.privacy.trust import Trust
from thresher.vaults import CentralVault, LabelVault, SimulatedVault, TextVault
from thresher.vaults.central.gradients import Residuals
from thresher.vaults.polytopes import Walk
from thresher.vaults.randomness import NoiseSource
from thresher.vaults.vault import Vault

__all__ = [
    "MOST_ROWS",
    "VAULTS",
    "Mixture",
    "TextWitness",
    "Witness",
    "log_chance_of_first",
    "log_chance_of_top",
    "log_sum",
    "mixture_of",
    "vault_of",
    "witness_of",
]

LOG_TIMES = np.arange(-60.0, 6.0, 0.25)  # the trapezoidal rule in log t, whose integrand is analytic
TIMES = np.exp(LOG_TIMES)


class Witness(CentralVault):
    """Answers as its vault does or, given a ``script``, says what stands there; adds up how likely its rows make that.

    The score must be a function of what was released and of nothing else that depends on the coin. So the likelihood is
    computed from the answers alone, in the same way whether they were drawn here or scripted. Blocks of rows, which are
    drawn without looking at the data, are part of the script: their proof holds even for those who know them.
    """

    def __init__(
        self, X: Matrix, y: Floats, plan: Plan, noise: NoiseSource, script: Iterable[RecordedAnswer] | None = None
    ) -> None:
        super().__init__(X, y, plan, noise)
        self._script = None if script is None else iter(script)
        self.transcript: list[RecordedAnswer] = []
        self.log_likelihoods: list[float] = []  # a list, so that one-against-rest views add to the same
        self._mixture: Mixture | None = None

    @property
    def log_likelihood(self) -> float:
        """Of everything said so far under these rows, up to a constant that all data sets share."""
        return math.fsum(self.log_likelihoods)

    def _add_noise(
        self, value: Floats, noise: str, sensitivity: float, multiplier: float, error: float = 0.0
    ) -> tuple[Floats, float]:
        if self._script is None:
            answer, scale = super()._add_noise(value, noise, sensitivity, multiplier, error)
        else:
            said = next(self._script)
            answer, scale = said.answer, said.scale
        if self._mixture is not None:
            self._hear(
                RecordedAnswer(answer.copy(), scale, self._mixture.expected), self._mixture.log_density(answer, scale)
            )
            return answer.copy(), scale
        off = answer - value
        size = float(np.linalg.norm(off)) / scale
        self._hear(RecordedAnswer(answer.copy(), scale, value), -size if noise == "l2-laplace" else -size * size / 2)
        return answer.copy(), scale

    def _noised_sum(self, residuals: Residuals, release: Release, clip: float) -> Floats:
        """The batch stays unknown: the answer is judged by all that may have been drawn."""
        self._mixture = self._mixture_of(residuals, release) if isinstance(release, SampledRelease) else None
        try:
            return super()._noised_sum(residuals, release, clip)
        finally:
            self._mixture = None

    def _draw_batch(self, release: SampledRelease) -> Indices:
        return super()._draw_batch(release) if self._script is None else np.empty(0, dtype=np.intp)

    def _mixture_of(self, residuals: Residuals, release: SampledRelease) -> Mixture:
        rows = np.arange(len(self._targets))
        if len(rows) > MOST_ROWS:
            return Mixture.at(release.rate / release.batch * self._batch_sum(residuals, rows))
        factors = residuals(self._batch(rows), rows)

        def compute() -> Mixture:
            matter = rows[np.any(factors.reshape(len(rows), -1) != 0, axis=1)]
            vectors = self._batch(matter).transposed_product(np.eye(len(matter))).T
            parts = [
                self.problem.stacked(np.multiply.outer(x, factors[i])) for x, i in zip(vectors, matter, strict=True)
            ]
            return mixture_of(np.reshape(parts, (len(matter), self.problem.dimension)), release)

        return self._cached(f"mixture {release.sampling} {release.batch}", factors, compute)

    def whole_number(self, below: int) -> int:
        """Has nothing to do with the rows, so that everybody may know it."""
        number = super().whole_number(below) if self._script is None else int(next(self._script).answer)
        self._hear(RecordedAnswer(np.array(number)), 0.0)
        return number

    def _pick_noisy(
        self, scores: Floats, picks: int, noise: str, sensitivity: float, multiplier: float, error: float
    ) -> tuple[Indices, float]:
        if self._script is None:
            chosen, scale = super()._pick_noisy(scores, picks, noise, sensitivity, multiplier, error)
        else:
            said = next(self._script)
            chosen, scale = said.answer.copy(), said.scale
        chance = log_chance_of_first if noise == "laplace" else log_chance_of_top
        self._hear(RecordedAnswer(chosen.copy(), scale), chance(chosen, scores / scale))
        return chosen, scale

    def _follow(self, engine: Any, walk: Walk, release: Release, clip: float, sensitivity: float) -> tuple[int, float]:
        """The scores, which following avoids to compute, are what the answer is judged by."""
        if self._script is None:
            vertex, scale = super()._follow(engine, walk, release, clip, sensitivity)
        else:
            said = next(self._script)
            vertex, scale = int(said.answer[0]), said.scale
        scores = self._scores(engine, walk.theta, walk.polytope, clip)
        self._hear(RecordedAnswer(np.array([vertex]), scale), log_chance_of_top(np.array([vertex]), scores / scale))
        return vertex, scale

    def _blocks(self, blocks: int) -> NDArray[np.int64]:
        labels = super()._blocks(blocks) if self._script is None else next(self._script).answer.copy()
        if len(labels) != len(self._targets):
            raise ValueError("votes: blocks of rows are replayed row by row; audit them with replace-one neighbours")
        self._hear(RecordedAnswer(labels.copy(), 0.0), 0.0)
        return labels

    def perturbed_minimiser(self, support: Indices, release: Release, clip: float, ridge: float) -> Floats:
        """The tilt b that leads to the answer is -(gradient + ridge phi) there, and N(0, scale^2 I).

        The determinant and the little noise on top are left out: they change the score by no more than a ratio that is
        kept small, and a score may be anything that is computed from the answer.
        """
        if self._script is None:
            answer = super().perturbed_minimiser(support, release, clip, ridge)
        else:
            self._charge("perturbed minimiser", release, clip, self.problem.origin())
            said = next(self._script)
            answer = said.answer.copy()
            self._record(release, clip, self._sensitivity(release, clip), said.scale)
        engine, units, norms = self._restricted(self._open(), support)
        objective = self._objective(engine, self._limits_of(norms, clip), ridge)
        scale = self.answers[-1].scale
        size = float(np.linalg.norm(objective(answer * units)[1])) / scale
        self._hear(RecordedAnswer(answer.copy(), scale), -size * size / 2)
        return answer

    def _hear(self, said: RecordedAnswer, log_likelihood: float) -> None:
        self.transcript.append(said)
        self.log_likelihoods.append(log_likelihood)


# -- choices ----------------------------------------------------------------------------------------------------------


def log_chance_of_top(chosen: Indices, scores: Floats) -> float:
    """log P[the largest of scores + Gumbel(1) are those ``chosen``, in any order].

    As a race: E_j = -log of the noise is exponential with rate w_j = e^score_j, and the chosen come in before all
    others, whose first has rate W: the integral over its arrival t of W e^(-W t) prod_j (1 - e^(-w_j t)).
    """
    if len(chosen) == 1:
        return float(scores[chosen[0]] - log_sum(scores))
    others = np.delete(scores, chosen)
    others = others[others > -np.inf]
    if others.size == 0:
        return 0.0
    log_rates = scores[chosen] - log_sum(others)  # in units of W
    with np.errstate(over="ignore", divide="ignore"):  # scores far apart: chances of 1, or of 0
        log_terms = LOG_TIMES - TIMES + np.log(-np.expm1(-np.exp(log_rates[:, None] + LOG_TIMES))).sum(axis=0)
    return float(log_sum(log_terms) + math.log(LOG_TIMES[1] - LOG_TIMES[0]))


def log_chance_of_first(chosen: Indices, scores: Floats) -> float:
    """log P[the largest of scores + Laplace(1) is the one chosen], by the trapezoidal rule."""
    (first,) = chosen
    x = np.linspace(np.max(scores) - 20, np.max(scores) + 20, 401)
    off = x - scores[:, None]
    below = np.where(off < 0, off - math.log(2), np.log1p(-np.exp(-np.abs(off)) / 2))  # log P[Laplace < off]
    log_terms = below.sum(axis=0) - below[first] - np.abs(off[first]) - math.log(2)
    return float(log_sum(log_terms) + math.log(x[1] - x[0]))


# -- random batches ---------------------------------------------------------------------------------------------------
# Which rows were drawn is no part of the answer, so a likelihood that knew it would know more than an attacker can:
# it is a mixture over all batches that may have been drawn.


MOST = 4096  # batches that are told apart
MOST_ROWS = 1000  # whose vectors are looked at one by one


@dataclass(frozen=True)
class Mixture:
    """Means, the logarithms of their chances, and the mean of it all."""

    means: Floats
    log_chances: Floats
    expected: Floats

    @classmethod
    def at(cls, mean: Floats) -> Mixture:
        """A single mean."""
        return cls(mean[None], np.zeros(1), mean)

    def log_density(self, answer: Floats, sd: float) -> float:
        """Of N(mean, sd^2 I), up to a constant that all mixtures share."""
        squares = np.sum(np.square((answer - self.means) / sd), axis=1)
        return log_sum(self.log_chances - squares / 2)


def mixture_of(parts: Floats, release: SampledRelease) -> Mixture:
    """The means of an answer over what batches may hold of ``parts``, the vectors that rows add to their sum.

    Equal rows are counted, not told apart. Where still too many batches differ, their mean stands for them all: less
    sharp, but a score may be anything that is computed from the answer.
    """
    parts = parts[np.any(parts != 0, axis=1)]
    expected = release.rate * parts.sum(axis=0) / release.batch
    at, counts = _alike(parts)
    if math.prod(count + 1 for count in counts) > MOST:
        return Mixture.at(expected)
    drawn, log_chances = _draws(counts, release.batch, release.population, release.sampling)
    return Mixture(drawn @ parts[at] / release.batch, log_chances, expected)


def _alike(parts: Floats) -> tuple[NDArray[np.intp], tuple[int, ...]]:
    """One row of each kind, and how many there are of it; round-off makes no new kind."""
    if len(parts) <= 1:
        return np.arange(len(parts)), (1,) * len(parts)
    unit = np.max(np.abs(parts))
    _, at, counts = np.unique(np.round(parts / unit, 9) + 0.0, axis=0, return_index=True, return_counts=True)
    return at, tuple(counts.tolist())


@lru_cache(maxsize=64)
def _draws(counts: tuple[int, ...], batch: int, population: int, sampling: Sampling) -> tuple[Floats, Floats]:
    """How many of each kind a batch may hold, and the logarithm of its chance; all other rows are of no kind."""
    drawn = np.array(list(product(*(range(count + 1) for count in counts))), dtype=np.float64)
    chances = _log_choose(np.array(counts, dtype=np.float64), drawn).sum(axis=1)
    held, kinds = drawn.sum(axis=1), sum(counts)
    if sampling == "poisson":
        rate = batch / population
        return drawn, chances + held * math.log(rate) + (kinds - held) * math.log1p(-rate)
    others = _log_choose(np.float64(population - kinds), batch - held)
    return drawn, chances + others - _log_choose(np.float64(population), np.float64(batch))


def _log_choose(n: Floats | np.float64, k: Floats | np.float64) -> Floats:
    """log of n over k; -inf where k lies outside 0..n."""
    outside = (k < 0) | (k > n)
    inside = np.where(outside, 0, k)
    log: Floats = gammaln(n + 1) - gammaln(inside + 1) - gammaln(n - inside + 1)
    return np.where(outside, -np.inf, log)


def log_sum(logs: Floats) -> float:
    """log(sum(exp(logs))); SciPy's takes ten times as long for a few numbers, and this is most of a short run."""
    largest = float(np.max(logs))
    return largest + math.log(float(np.sum(np.exp(logs - largest)))) if largest > -math.inf else largest


# -- texts ------------------------------------------------------------------------------------------------------------


class TextWitness(TextVault):
    """Publishes as its vault does or, given a ``script``, what stands there; adds up how likely its counts make that.

    The likelihood is that of the set of texts, each of which is published or not by noise of its own. Their order is
    left out: a score may be anything that is computed from the answer.
    """

    def __init__(
        self,
        X: Values,
        y: Values | None,
        plan: Plan,
        noise: NoiseSource,
        script: Iterable[RecordedAnswer] | None = None,
    ) -> None:
        super().__init__(X, y, plan, noise)
        self._script = None if script is None else iter(script)
        self.transcript: list[RecordedAnswer] = []
        self.log_likelihood = 0.0

    def _texts_above(
        self, counts: dict[str, int], threshold: float, sensitivity: float, multiplier: float
    ) -> tuple[list[str], float]:
        if self._script is None:
            published, scale = super()._texts_above(counts, threshold, sensitivity, multiplier)
        else:
            said = next(self._script)
            published, scale = list(said.answer), said.scale
        self.transcript.append(RecordedAnswer(list(published), scale))
        self.log_likelihood += self._chance(set(published), counts, threshold, scale)
        return published, scale

    @staticmethod
    def _chance(published: set[str], counts: dict[str, int], threshold: float, scale: float) -> float:
        """log P[these texts are published, and of those that are there no others]."""
        if published - set(counts):
            return IMPOSSIBLE
        off = (np.array([*counts.values()], dtype=float) - threshold) / scale
        signs = np.array([1.0 if text in published else -1.0 for text in counts])
        return math.fsum(log_ndtr(signs * off)) if counts else 0.0


# -- which witness hears which vault ----------------------------------------------------------------------------------


JOINT: tuple[Trust, ...] = ("reference", "mpyc", "spu", "skellam")  # whose noise the reference draws here

VAULTS: Mapping[Trust, type[Vault]] = MappingProxyType(
    {
        "central": CentralVault,
        "local": SimulatedVault,
        "labels": LabelVault,
        **dict.fromkeys(JOINT, Consortium),
    }
)
"""The vault that a plan is put to, by who sees the rows."""

_WITNESSES: Mapping[type[Vault], Any] = MappingProxyType(
    {
        CentralVault: Witness,
        SimulatedVault: LocalWitness,
        LabelVault: LabelWitness,
        Consortium: JointWitness,
        TextVault: TextWitness,
    }
)


def vault_of(plan: Plan) -> type[Vault]:
    """The vault that a plan is put to; a curator's texts have one of their own."""
    of_texts = any(isinstance(release, GaussianCategories) for release in plan.releases)
    return TextVault if of_texts else VAULTS[plan.trust]


def witness_of(vault: type[Vault]) -> Any:
    """A witness that answers as ``vault`` does."""
    if vault in _WITNESSES:
        return _WITNESSES[vault]
    (witness,) = (heard for kind, heard in _WITNESSES.items() if issubclass(vault, kind))
    return type(f"WitnessOf{vault.__name__}", (witness, vault), {})
