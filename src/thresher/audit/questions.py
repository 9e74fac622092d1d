"""Every question a vault answers, asked once, on the data sets that lie furthest apart for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from thresher.audit import pairs
from thresher.audit.cases import Claim
from thresher.audit.pairs import Pair
from thresher.privacy.arrays import Floats, Indices
from thresher.privacy.budget import Adjacency, Budget
from thresher.privacy.conversions import gaussian_mu
from thresher.privacy.plan import Plan
from thresher.privacy.releases import (
    BinomialGradient,
    BinomialMinimiser,
    ClassReport,
    GaussianCategories,
    GaussianGradient,
    GaussianGram,
    GaussianLabels,
    GaussianMean,
    GaussianMinimiser,
    GaussianMoments,
    GaussianReport,
    GaussianRestrictedGradient,
    GumbelNearMaximum,
    GumbelQuantile,
    GumbelSelection,
    GumbelStep,
    GumbelVertex,
    GumbelVotes,
    HypercubeReport,
    L2LaplaceMinimiser,
    LaplaceReport,
    PerturbedMinimiser,
    PiecewiseReport,
    Release,
    SampledGradient,
    SampledMomentum,
    SampledRelease,
    SkellamGradient,
    SkellamMinimiser,
    SphereReport,
)
from thresher.privacy.trust import Trust
from thresher.vaults import CentralVault, LabelVault, LocalVault, TextVault
from thresher.vaults.central.minimisers import curvature_ratio
from thresher.vaults.losses import LOGISTIC
from thresher.vaults.polytopes import L1Ball, Polytope, Walk
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomisers import Hypercube, Sphere

__all__ = ["QUESTIONS", "AuditedQuestion", "Probe"]

Kind = TypeVar("Kind", bound=Release)
Ask = Callable[[Any, Any], object]
"""Puts one question to a vault of its kind, with a release of its kind."""

GAUSSIAN_CLAIM = Claim(4.0, 1e-5)
PURE_CLAIM = Claim(2.0)
CLIP, RIDGE = 0.5, 10.0  # of a residual; a ridge that keeps every residual clipped
LONGER = np.array([[2.0, 1.0], [1.0, -2.0]])
"""A basis in which every row is longer, by the root of 5."""
ASIDE = 1e-5  # of delta, for the tails of joint noise
FAR = 1e3  # where margins of rows at their bounds are wildly wrong


@dataclass(frozen=True)
class Probe:
    """An algorithm that asks one question and returns its answer."""

    name: str
    release: Release
    ask: Ask
    trust: Trust = "central"

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        """The release as it is. Its price is compared with the claim by the test of this file, not by the plan."""
        unlimited = Budget(math.inf, budget.delta, budget.adjacency)
        return Plan(self.name, problem, unlimited, (self.release,), trust=self.trust)

    def run(self, vault: Any) -> Any:
        return self.ask(vault, self.release)


@dataclass(frozen=True)
class AuditedQuestion:
    """A probe, the pair it is most sensitive to, and what its release claims."""

    probe: Probe
    pair: Pair
    claim: Claim

    def at(self, claim: Claim) -> Probe:
        """The probe of a Gaussian question with the noise for another claim."""
        return replace(self.probe, release=_gaussian(type(self.probe.release), claim))


def _gaussian(kind: Callable[[int, float], Kind], claim: Claim) -> Kind:
    return kind(1, 1 / gaussian_mu(claim.epsilon, claim.delta))


def _gumbel(kind: Callable[..., Kind], **picks: int) -> Kind:
    return kind(1, 2 / PURE_CLAIM.epsilon, **picks)


def _row_clip(vault: CentralVault) -> float:
    """The l2 clip with which residuals of a row at its bound are clipped at CLIP."""
    return CLIP * math.sqrt(vault.problem.d)


def _gradient(vault: CentralVault, release: Release) -> Floats:
    return vault.gradient(vault.problem.origin(), release, _row_clip(vault))


def _restricted_gradient(vault: CentralVault, release: Release) -> Floats:
    return vault.restricted_gradient(vault.problem.origin(), np.array([0, 2]), release, CLIP * math.sqrt(2))


def _projected_gradient(vault: CentralVault, release: Release) -> Floats:
    columns = np.array([0, 2])
    return vault.restricted_gradient(vault.problem.origin(), columns, release, CLIP, basis=LONGER)


def _mean(vault: CentralVault, release: Release) -> Floats:
    return vault.mean(np.arange(vault.problem.d), release, clip=1.0)


def _moments(vault: CentralVault, release: Release) -> Floats:
    return vault.moments(np.arange(vault.problem.d), release)


def _gram(vault: CentralVault, release: Release) -> Floats:
    return vault.gram(np.arange(vault.problem.d), release, norm=1.0)


def _projected_gram(vault: CentralVault, release: Release) -> Floats:
    return vault.gram(np.array([0, 1]), release, norm=1.0, basis=LONGER)


def _minimiser(vault: CentralVault, release: Release) -> Floats:
    return vault.minimiser(release, _row_clip(vault), RIDGE)


def _labels(vault: CentralVault, release: Release) -> Floats:
    columns = np.arange(vault.problem.d)
    return vault.labels(np.ones((2, len(columns))), columns, release, _row_clip(vault), RIDGE)


def _perturbed_minimiser(vault: CentralVault, release: Release) -> Floats:
    return vault.perturbed_minimiser(np.arange(vault.problem.d), release, _row_clip(vault), RIDGE)


def _selection(vault: CentralVault, release: Release) -> Indices:
    return vault.selection(vault.problem.origin(), release, CLIP)


def _votes(vault: CentralVault, release: Release) -> Indices:
    return vault.votes(release, blocks=1)


def _quantile(vault: CentralVault, release: Release) -> float:
    """Many more levels below the middle than above: those above are chosen rarely, like the column that rises."""
    levels = np.concatenate([np.linspace(-0.9, -0.1, 480), np.linspace(0.1, 0.9, 20)])
    return vault.quantile("targets", 0.5, levels, vault.problem.origin(), release)


def _norm_quantile(vault: CentralVault, release: Release) -> float:
    """Levels as pursuit has them; one is the norm of the pair's rows to the last bit, however powers are rounded."""
    levels = pairs.LEVEL * 1.1 ** -np.arange(-1.0, 19.0)
    return vault.quantile("row norms", 0.9, levels, vault.problem.origin(), release)


def _near_maximum(vault: CentralVault, release: Release) -> float:
    """A few levels that become worse, and five times as many that stay, of which none is better than another."""
    levels = np.concatenate([np.linspace(0.1, 0.4, 4), np.linspace(0.6, 0.9, 20)])
    return vault.near_maximum("residuals", levels, 10.0, 0.0, vault.problem.origin(), release)


def _vertex(vault: CentralVault, release: Release) -> int:
    return vault.vertex(vault.problem.origin(), release, Polytope(np.eye(vault.problem.d)), CLIP)


def _signed_vertex(vault: CentralVault, release: Release) -> int:
    return vault.vertex(vault.problem.origin(), release, L1Ball(1.0), CLIP)


def _walked_vertex(vault: CentralVault, release: Release) -> int:
    """After a few short moves, which are public and leave residuals clipped; on sparse rows the walk is followed."""
    ball = L1Ball(1.0)
    walk = Walk(ball, vault.problem, [1e-3] * 3)
    for end in (0, 1, 0):
        walk.towards(end)
    return vault.vertex(walk, release, ball, CLIP)


def _step_length(vault: CentralVault, release: Release) -> int:
    """To stay, or one of twenty steps: a row that is badly wrong where it is, or badly wrong everywhere else."""
    lengths = np.linspace(0.0, 1.0, 21)
    return vault.step_length(np.array([-FAR]), np.array([-40 * FAR]), lengths, release, clip=1.0)


def _sampled_gradient(vault: CentralVault, release: Release) -> list[Floats]:
    return [vault.sampled_gradient(vault.problem.origin(), release, _row_clip(vault)) for _ in range(release.times)]


def _sampled_momentum(vault: CentralVault, release: Release) -> Floats:
    """With a long move, and a clip of changes that is the larger one: swapped, the two would need less noise."""
    theta, before = np.array([0.0, FAR]), vault.problem.origin()
    return vault.sampled_momentum(theta, before, release, clip=0.05, difference_clip=0.5, momentum=0.1)


def _reports(vault: LocalVault, release: Release) -> list[Floats]:
    """Two people in two groups, of which both are asked; a person who stood in both would report twice."""
    return [vault.gradient(vault.problem.origin(), release, CLIP) for _ in range(release.times)]


def _labels_reported(vault: LabelVault, release: Release) -> Floats:
    return vault.labels(release)


def _perturbed() -> AuditedQuestion:
    """Its price, an RDP curve, is least loose where mu is above 1 and delta is not small."""
    pair = pairs.mirrored_row(n=20, d=1, sparsity=1)
    ratio = curvature_ratio(pair.stated_problem, np.arange(1), RIDGE)
    release = PerturbedMinimiser(1, 1 / 1.3, ratio, 1000.0)
    claim = Claim(release.cost().epsilon(0.05)[0], 0.05)
    return AuditedQuestion(Probe("perturbed-minimiser", release, _perturbed_minimiser), pair, claim)


def _text_questions() -> dict[str, AuditedQuestion]:
    """A text whose count lies a little below the threshold, or at it; and a text that one row holds.

    Their price has the chance that the latter is published in its delta, so that delta is not small.
    """
    release = GaussianCategories(1, 1 / 1.5, 2.0)
    claim = Claim(release.cost().epsilon(0.1)[0], 0.1)
    asked = {"categories": (_at_the_edge, pairs.edge()), "rare-category": (_categories, pairs.rare_text())}
    return {name: AuditedQuestion(Probe(name, release, ask), pair, claim) for name, (ask, pair) in asked.items()}


def _categories(vault: TextVault, release: GaussianCategories) -> list[str]:
    return vault.categories(0, release)


def _at_the_edge(vault: TextVault, release: GaussianCategories) -> list[str]:
    """The threshold at which the odds of counts of 19 and 20 are about e^epsilon."""
    return vault.categories(0, release, fewest=20.34)


def _sampled_questions() -> dict[str, AuditedQuestion]:
    """Half of the rows with little noise and a large delta, where counts see most; several small batches, where it
    matters that each is drawn anew.

    Of batches of a fixed size the price, a Renyi curve, is close to the cost only if they are nearly all rows; that
    they are drawn at all matters only if they are few.
    """
    row, added = (pairs.mirrored_row(n=20, d=1, sparsity=1, adjacency=a) for a in ("replace-one", "add-remove"))
    crowd, turned = pairs.crowd(), pairs.turned_row()
    replaced, removed = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
    asked: dict[str, tuple[SampledRelease, Ask, Pair, float]] = {
        "sampled-gradient": (SampledGradient(1, 0.5, 10, 20, "poisson", replaced), _sampled_gradient, row, 0.05),
        "added-gradient": (SampledGradient(1, 0.5, 10, 20, "poisson", removed), _sampled_gradient, added, 0.1),
        "fixed-gradient": (SampledGradient(1, 0.7, 19, 20, "fixed", replaced), _sampled_gradient, crowd, 0.1),
        "few-fixed-gradient": (SampledGradient(1, 1.0, 2, 20, "fixed", replaced), _sampled_gradient, crowd, 0.01),
        "sampled-gradients": (SampledGradient(16, 0.5, 2, 20, "poisson", replaced), _sampled_gradient, row, 0.01),
        "sampled-momentum": (SampledMomentum(1, 0.5, 10, 20, "poisson", replaced), _sampled_momentum, turned, 0.05),
    }
    return {
        name: AuditedQuestion(Probe(name, release, ask), pair, Claim(release.cost().epsilon(delta)[0], delta))
        for name, (release, ask, pair, delta) in asked.items()
    }


def _questions() -> dict[str, AuditedQuestion]:
    row, rises = pairs.mirrored_row(n=20), pairs.one_rises(n=20)
    gaussian = {
        "gradient": (GaussianGradient, _gradient, row),
        "restricted-gradient": (GaussianRestrictedGradient, _restricted_gradient, row),
        "projected-gradient": (GaussianRestrictedGradient, _projected_gradient, row),
        "mean": (GaussianMean, _mean, pairs.opposite_rows()),
        "moments": (GaussianMoments, _moments, pairs.full_row()),
        "gram": (GaussianGram, _gram, pairs.orthogonal_rows()),
        "projected-gram": (GaussianGram, _projected_gram, pairs.orthogonal_rows()),
        "minimiser": (GaussianMinimiser, _minimiser, pairs.mirrored_row(n=20, d=2, sparsity=1)),
        "labels": (GaussianLabels, _labels, pairs.mirrored_row(n=20, d=2, sparsity=1)),
    }
    pure = {
        "pure-minimiser": (
            L2LaplaceMinimiser(1, PURE_CLAIM.epsilon),
            _minimiser,
            pairs.mirrored_row(n=20, d=1, sparsity=1),
        ),
        "selection": (_gumbel(GumbelSelection, picks=1), _selection, rises),
        "votes": (_gumbel(GumbelVotes, picks=1), _votes, pairs.ballots()),
        "quantile": (_gumbel(GumbelQuantile), _quantile, pairs.ranks()),
        "norm-quantile": (_gumbel(GumbelQuantile), _norm_quantile, pairs.on_a_level()),
        "near-maximum": (GumbelNearMaximum(1, 1 / PURE_CLAIM.epsilon), _near_maximum, pairs.above_all()),
        "vertex": (_gumbel(GumbelVertex), _vertex, rises),
        "signed-vertex": (_gumbel(GumbelVertex), _signed_vertex, row),
        "walked-vertex": (_gumbel(GumbelVertex), _walked_vertex, pairs.leaning()),
        "step-length": (_gumbel(GumbelStep), _step_length, pairs.mirrored_row(LOGISTIC, n=20, d=1, sparsity=1)),
    }
    found = {
        name: AuditedQuestion(Probe(name, _gaussian(kind, GAUSSIAN_CLAIM), ask), pair, GAUSSIAN_CLAIM)
        for name, (kind, ask, pair) in gaussian.items()
    }
    found |= {
        name: AuditedQuestion(Probe(name, release, ask), pair, PURE_CLAIM)
        for name, (release, ask, pair) in pure.items()
    }
    found |= {"perturbed-minimiser": _perturbed()} | _sampled_questions() | _text_questions()
    return found | _local_questions() | _joint()


def _local_questions() -> dict[str, AuditedQuestion]:
    """Reports of one person whose record moves from one end to the other; the second person is there to be left alone.

    Three columns, an odd number: all signs of a corner turn, and no vote among them is a tie.
    """
    epsilon, columns = PURE_CLAIM.epsilon, 3
    row = pairs.mirrored_row(n=2, d=columns, sparsity=1)
    label, classes = pairs.mirrored_row(n=2, d=1, sparsity=1), pairs.mirrored_row(LOGISTIC, n=2, d=1, sparsity=1)
    ball, cube = Sphere.best(columns, epsilon), Hypercube.best(columns, epsilon)
    vectors = {
        "sphere-report": SphereReport(2, epsilon, columns, ball.height),
        "hypercube-report": HypercubeReport(2, epsilon, columns, cube.sampled, cube.agreeing),
    }
    labels = {
        "laplace-report": (LaplaceReport(1, epsilon), label, PURE_CLAIM),
        "piecewise-report": (PiecewiseReport(1, epsilon), label, PURE_CLAIM),
        "gaussian-report": (_gaussian(GaussianReport, GAUSSIAN_CLAIM), label, GAUSSIAN_CLAIM),
        "class-report": (ClassReport(1, epsilon, 2), classes, PURE_CLAIM),
    }
    found = {
        name: AuditedQuestion(Probe(name, release, _reports, "local"), row, PURE_CLAIM)
        for name, release in vectors.items()
    }
    return found | {
        name: AuditedQuestion(Probe(name, release, _labels_reported, "labels"), pair, claim)
        for name, (release, pair, claim) in labels.items()
    }


def _joint() -> dict[str, AuditedQuestion]:
    """As of Gaussian noise; counts see most where mu is above 1 and delta is not small."""
    pair = pairs.mirrored_row(n=21, d=2, sparsity=1)
    size = pair.stated_problem.dimension
    asked: dict[str, tuple[Release, Ask, Trust]] = {
        "joint-gradient": (BinomialGradient(1, 1 / 1.5, size, 1024, 7, ASIDE), _gradient, "reference"),
        "joint-minimiser": (BinomialMinimiser(1, 1 / 1.5, size, 1024, 7, ASIDE), _minimiser, "reference"),
        "shared-gradient": (SkellamGradient(1, 1 / 1.5, size, 2**22), _gradient, "skellam"),
        "shared-minimiser": (SkellamMinimiser(1, 1 / 1.5, size, 2**22), _minimiser, "skellam"),
    }
    return {
        name: AuditedQuestion(Probe(name, release, ask, trust), pair, Claim(release.cost().epsilon(0.15)[0], 0.15))
        for name, (release, ask, trust) in asked.items()
    }


QUESTIONS = _questions()
