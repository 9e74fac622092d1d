"""A vault with an auditor's ear: every answer it gives, and how likely its rows make what was said.

The strongest attacker a guarantee speaks of knows both data sets, sees every answer, and compares how likely each
makes them. All algorithms are deterministic given the answers, so the same questions can be put to the other data set:
its vault is handed the answers that were given (the *script*) in place of noise of its own. The difference of the two
log-likelihoods is the privacy loss of the run, the best score there is (Neyman and Pearson).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.audit.joint_witness import Consortium, JointWitness
from thresher.audit.local_witness import LabelWitness, LocalWitness
from thresher.audit.mixtures import MOST_ROWS, Mixture, log_sum, mixture_of
from thresher.audit.script import Said
from thresher.audit.text_witness import TextWitness
from thresher.privacy.arrays import Floats, Indices
from thresher.privacy.plan import Plan
from thresher.privacy.releases import GaussianCategories, Release, SampledRelease
from thresher.privacy.trust import Trust
from thresher.vaults import CentralVault, LabelVault, SimulatedVault, TextVault
from thresher.vaults.central.batches import Residuals
from thresher.vaults.frank_wolfe import Walk
from thresher.vaults.randomness import NoiseSource
from thresher.vaults.vault import Vault

__all__ = ["VAULTS", "Witness", "log_chance_of_first", "log_chance_of_top", "vault_of", "witness_of"]

LOG_TIMES = np.arange(-60.0, 6.0, 0.25)  # the trapezoidal rule in log t, whose integrand is analytic
TIMES = np.exp(LOG_TIMES)


class Witness(CentralVault):
    """Answers as its vault does or, given a ``script``, says what stands there; adds up how likely its rows make that.

    The score must be a function of what was released and of nothing else that depends on the coin. So the likelihood is
    computed from the answers alone, in the same way whether they were drawn here or scripted. Blocks of rows, which are
    drawn without looking at the data, are part of the script: their proof holds even for those who know them.
    """

    def __init__(self, X: Any, y: Floats, plan: Plan, noise: NoiseSource, script: Iterable[Said] | None = None) -> None:
        super().__init__(X, y, plan, noise)
        self._script = None if script is None else iter(script)
        self.said: list[Said] = []
        self._log_likelihoods: list[float] = []  # a list, so that one-against-rest views add to the same
        self._mixture: Mixture | None = None

    @property
    def log_likelihood(self) -> float:
        """Of everything said so far under these rows, up to a constant that all data sets share."""
        return math.fsum(self._log_likelihoods)

    def _added(
        self, value: Floats, noise: str, sensitivity: float, multiplier: float, error: float = 0.0
    ) -> tuple[Floats, float]:
        if self._script is None:
            answer, scale = super()._added(value, noise, sensitivity, multiplier, error)
        else:
            said = next(self._script)
            answer, scale = said.answer, said.scale
        if self._mixture is not None:
            self._hear(Said(answer.copy(), scale, self._mixture.expected), self._mixture.log_density(answer, scale))
            return answer.copy(), scale
        off = answer - value
        size = float(np.linalg.norm(off)) / scale
        self._hear(Said(answer.copy(), scale, value), -size if noise == "l2-laplace" else -size * size / 2)
        return answer.copy(), scale

    def _noised_sum(self, residuals: Residuals, release: Release, clip: float) -> Floats:
        """The batch stays unknown: the answer is judged by all that may have been drawn."""
        self._mixture = self._mixture_of(residuals, release)
        try:
            return super()._noised_sum(residuals, release, clip)
        finally:
            self._mixture = None

    def _drawn(self, release: SampledRelease) -> Indices:
        return super()._drawn(release) if self._script is None else np.empty(0, dtype=np.intp)

    def _mixture_of(self, residuals: Residuals, release: Any) -> Mixture:
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

        return self._known(f"mixture {release.sampling} {release.batch}", factors, compute)  # type: ignore[no-any-return]

    def whole_number(self, below: int) -> int:
        """Has nothing to do with the rows, so that everybody may know it."""
        number = super().whole_number(below) if self._script is None else int(next(self._script).answer)
        self._hear(Said(np.array(number)), 0.0)
        return number

    def _top(
        self, scores: Floats, picks: int, noise: str, sensitivity: float, multiplier: float, error: float
    ) -> tuple[Indices, float]:
        if self._script is None:
            chosen, scale = super()._top(scores, picks, noise, sensitivity, multiplier, error)
        else:
            said = next(self._script)
            chosen, scale = said.answer.copy(), said.scale
        chance = log_chance_of_first if noise == "laplace" else log_chance_of_top
        self._hear(Said(chosen.copy(), scale), chance(chosen, scores / scale))
        return chosen, scale

    def _followed(
        self, engine: Any, walk: Walk, release: Release, clip: float, sensitivity: float
    ) -> tuple[int, float]:
        """The scores, which following avoids to compute, are what the answer is judged by."""
        if self._script is None:
            vertex, scale = super()._followed(engine, walk, release, clip, sensitivity)
        else:
            said = next(self._script)
            vertex, scale = int(said.answer[0]), said.scale
        scores = self._scores(engine, walk.theta, walk.polytope, clip)
        self._hear(Said(np.array([vertex]), scale), log_chance_of_top(np.array([vertex]), scores / scale))
        return vertex, scale

    def _blocks(self, blocks: int) -> NDArray[np.int64]:
        labels = super()._blocks(blocks) if self._script is None else next(self._script).answer.copy()
        if len(labels) != len(self._targets):
            raise ValueError("votes: blocks of rows are replayed row by row; audit them with replace-one neighbours")
        self._hear(Said(labels.copy(), 0.0), 0.0)
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
        self._hear(Said(answer.copy(), scale), -size * size / 2)
        return answer

    def _hear(self, said: Said, log_likelihood: float) -> None:
        self.said.append(said)
        self._log_likelihoods.append(log_likelihood)


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
