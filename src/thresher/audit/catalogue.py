"""Everything that ``thresher audit all`` tries to disprove, with the pair that tells most about it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from thresher.algorithms import (
    DPAGD,
    DPGD,
    DPIGHT,
    DPLSSGD,
    DPSGD,
    DPSLKT,
    DPSRM,
    LDPIHT,
    REGISTRY,
    RRPSGD,
    Algorithm,
    DPAdam,
    DPLSAdam,
    FrankWolfe,
    LabelLasso,
    LabelLDPIHT,
    Newton,
    NoisyFrankWolfe,
    ObjectivePerturbation,
    OutputPerturbation,
    Peeling,
    Pursuit,
    ScreenedIGHT,
    TwoStage,
)
from thresher.audit import pairs
from thresher.audit.broken_cases import broken_cases
from thresher.audit.cases import AuditCase, Claim, Target
from thresher.audit.fitted_cases import broken_fits, sound_fits
from thresher.audit.game import AuditResult, Suspect, audit
from thresher.audit.membership import MembershipResult, membership
from thresher.audit.pairs import Pair
from thresher.audit.printed_cases import printed_cases
from thresher.audit.questions import QUESTIONS
from thresher.audit.shortcuts import NarrowScreen
from thresher.data.laws import dpsl_kt_law
from thresher.estimates.columns import FrequentTexts, MeanFlags
from thresher.federated.plans import with_joint_noise
from thresher.models.scaler import ColumnRanges
from thresher.models.sparse import SparseRegressor
from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Budget
from thresher.privacy.plan import Plan
from thresher.privacy.progress import progress_bar
from thresher.vaults import CentralVault
from thresher.vaults.losses import LOGISTIC, MULTINOMIAL
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

__all__ = ["AuditCase", "Finding", "audit_cases", "catalogue", "find_cases", "membership_examples", "verdict"]

NOT_PRIVATE = "ight"
GAUSSIAN = Claim(2.0, 1e-5)
MIXED = Claim(2.0, 0.01)  # counts see little of an epsilon that is only exceeded with chance 1e-5


@dataclass(frozen=True)
class Finding:
    """A case and what its audit found."""

    case: AuditCase
    result: AuditResult

    @property
    def surprising(self) -> bool:
        """A claim of this library that was disproved, or a broken copy that was not caught."""
        return (self.case.sound and self.result.violated) or (self.case.kind == "broken" and not self.result.violated)


def catalogue() -> list[AuditCase]:
    """Algorithms, single questions, formulas as printed, and broken copies of the questions."""
    return [
        *_algorithms(), *_stochastic_algorithms(), *_local_algorithms(), *_joint_algorithms(), *_questions(),
        *printed_cases(), *broken_cases(), *sound_fits(), *broken_fits(),
    ]  # fmt: skip


def find_cases(name: str) -> list[AuditCase]:
    """The cases of one name, or all."""
    known = catalogue()
    if name == "all":
        return known
    found = [case for case in known if case.name == name]
    if not found:
        names = ", ".join(dict.fromkeys(case.name for case in known if case.kind != "broken"))
        raise ValueError(
            f"NAME={name!r} is not known; use all, {names}, or a broken copy such as gradient-quiet or selection-rerun"
        )
    return found


def audit_cases(
    cases: Sequence[AuditCase], *, runs: int | None = None, confidence: float = 0.99, random_state: int | None = None,
    n_jobs: int | None = None, verbose: int = 0,
) -> Iterator[Finding]:  # fmt: skip
    """Audit one case after the other; ``confidence`` is that of the whole: no sound claim at all is flagged.

    The error that is left is divided among the claims that might hold. Broken copies cannot be flagged wrongly.
    """
    doubtful = sum(case.kind != "broken" for case in cases)
    shared = 1 - (1 - confidence) / max(doubtful, 1)
    several = len(cases) > 1  # then the bar counts cases, not the runs of one
    with progress_bar("audits", len(cases), enabled=several and verbose > 0) as advance:
        for at, case in enumerate(cases):
            result = audit(
                case.target, case.pair, claimed=case.claim, runs=runs or case.runs, name=case.name, n_jobs=n_jobs,
                confidence=confidence if case.kind == "broken" else shared, verbose=0 if several else verbose,
                random_state=None if random_state is None else random_state + at,
            )  # fmt: skip
            advance()
            yield Finding(case, result)


def verdict(finding: Finding) -> str:
    """What a finding means, in a word or two."""
    if finding.case.kind == "broken":
        return "caught" if finding.result.violated else "NOT CAUGHT"
    return "DISPROVED" if finding.result.violated else "not disproved"


def membership_examples(
    *, random_state: int | None = None, n_jobs: int | None = None, verbose: int = 0
) -> dict[str, MembershipResult]:
    """The same membership attack on a model without privacy and on a private one."""
    X, y, _ = dpsl_kt_law(n=200, d=100, s=10).draw(seed=0)
    facts: dict[str, Any] = {"sparsity": 10, "feature_bound": 1.0, "target_bound": 6.0}
    models = {
        "no privacy": SparseRegressor(epsilon=math.inf, algorithm="ight", **facts),
        "epsilon 1": SparseRegressor(epsilon=1.0, **facts),
    }
    return {
        name: membership(model, X, y, random_state=random_state, n_jobs=n_jobs, verbose=verbose)
        for name, model in models.items()
    }


def _algorithms() -> list[AuditCase]:
    row, one_column = pairs.mirrored_row(), pairs.mirrored_row(d=1, sparsity=1)
    classes, added = pairs.mirrored_row(LOGISTIC), pairs.mirrored_row(adjacency="add-remove")
    three_classes = pairs.mirrored_row(MULTINOMIAL)
    rises, class_rises = pairs.one_rises(), pairs.one_rises(LOGISTIC)
    cases: list[tuple[Target, Pair, Claim, int]] = [
        (DPIGHT(), row, GAUSSIAN, 10_000),
        (DPIGHT(iterations=5), classes, GAUSSIAN, 10_000),
        (DPIGHT(iterations=5), three_classes, GAUSSIAN, 10_000),
        (Peeling(iterations=1), three_classes, Claim(8.0, 0.01), 2_000),  # one class against the rest
        (DPIGHT(), added, GAUSSIAN, 10_000),
        (OutputPerturbation(), row, GAUSSIAN, 10_000),
        (OutputPerturbation(noise="l2-laplace"), one_column, Claim(2.0), 10_000),
        (NoisyFrankWolfe(iterations=5), row, GAUSSIAN, 10_000),
        (Newton(), row, MIXED, 5_000),
        (Newton(), classes, MIXED, 5_000),
        (Newton(), three_classes, MIXED, 5_000),
        (Newton(), added, MIXED, 5_000),
        (Pursuit(), rises, MIXED, 5_000),
        (Pursuit(), class_rises, MIXED, 5_000),
        (Peeling(), row, MIXED, 10_000),
        (Peeling(), class_rises, MIXED, 10_000),
        (Peeling(iterations=4), pairs.crowd(50), MIXED, 5_000),
        (ScreenedIGHT(), row, MIXED, 3_000),
        (ScreenedIGHT(), three_classes, MIXED, 3_000),
        (ScreenedIGHT(), added, MIXED, 3_000),
        (NarrowScreen(), pairs.halves(), MIXED, 3_000),
        (FrankWolfe(iterations=10), row, MIXED, 10_000),
        (ObjectivePerturbation(ridge=10.0), one_column, MIXED, 10_000),  # a ridge that keeps the row's residual clipped
        (TwoStage(ridge=10.0), one_column, MIXED, 10_000),
        (TwoStage(ridge=10.0), rises, MIXED, 10_000),
        (DPSLKT(), rises, MIXED, 10_000),
        (DPSLKT(), pairs.support_flip(101, 2), MIXED, 5_000),
        (DPSLKT(teacher="convex", ridge=10.0), row, GAUSSIAN, 5_000),
        (ColumnRanges(quantiles=None, centre=True), pairs.ranks(), MIXED, 10_000),
        (MeanFlags(), row, GAUSSIAN, 10_000),
        (FrequentTexts(fewest=1), pairs.edge(1), Claim(2.0, 0.1), 10_000),
        (FrequentTexts(fewest=1), pairs.rare_text(), Claim(2.0, 0.1), 10_000),
    ]
    listed = {item.name for item, *_ in cases}  # what is not has the pair that most algorithms tell most about
    cases += [(kind(), rises, MIXED, 10_000) for name, kind in REGISTRY.items() if name not in {*listed, NOT_PRIVATE}]
    return [AuditCase(item.name, "algorithm", item, pair, claim, runs) for item, pair, claim, runs in cases]


def _stochastic_algorithms() -> list[AuditCase]:
    """A few rounds on half of few rows: small batches of many hide a row so well that counts see nothing."""
    row, classes = pairs.mirrored_row(n=20), pairs.mirrored_row(LOGISTIC, n=20)
    added, three_classes = pairs.mirrored_row(n=20, adjacency="add-remove"), pairs.mirrored_row(MULTINOMIAL, n=20)
    few: dict[str, Any] = {"batch": 10, "passes": 1}
    cases: list[tuple[Target, Pair, Claim, int]] = [
        (DPSRM(**few), row, MIXED, 5_000),
        (DPSRM(**few, first_batch=20), classes, MIXED, 5_000),
        (DPLSSGD(**few), row, MIXED, 5_000),
        (DPLSAdam(**few), row, MIXED, 5_000),
        (DPSGD(**few), row, MIXED, 10_000),
        (DPSGD(**few), added, MIXED, 10_000),
        (DPSGD(**few, sampling="fixed"), pairs.crowd(), MIXED, 5_000),
        (DPSGD(**few), three_classes, MIXED, 5_000),
        (DPAdam(**few), classes, MIXED, 5_000),
        (DPGD(passes=5), row, GAUSSIAN, 10_000),
        (DPAGD(splits=4), row, MIXED, 5_000),
        (DPAGD(splits=4), classes, MIXED, 5_000),
        (RRPSGD(passes=2), pairs.mirrored_row(n=2), MIXED, 5_000),
    ]
    return [AuditCase(item.name, "algorithm", item, pair, claim, runs) for item, pair, claim, runs in cases]


def _local_algorithms() -> list[AuditCase]:
    """One person or two: the attacker sees every report by itself, so a crowd hides nobody. Three columns: no ties."""
    row, person = pairs.mirrored_row(n=2, d=3), pairs.mirrored_row(n=1, d=3)
    label, classes = pairs.mirrored_row(n=2, d=1, sparsity=1), pairs.mirrored_row(LOGISTIC, n=1, d=3)
    three_classes = pairs.mirrored_row(MULTINOMIAL, n=2)
    one, two = Claim(1.0), Claim(2.0)
    cases: list[tuple[Target, Pair, Claim, int]] = [
        (LDPIHT(), row, one, 10_000),
        (LDPIHT(iterations=1), classes, one, 10_000),
        (LDPIHT(randomiser="duchi-l2", iterations=1), person, one, 10_000),
        (LDPIHT(randomiser="duchi-linf", iterations=1), person, one, 10_000),
        (LDPIHT(randomiser="priv-unit"), row, two, 5_000),
        (LDPIHT(randomiser="one-coordinate"), row, two, 5_000),
        (LDPIHT(randomiser="sampled-signs"), row, two, 5_000),
        (LabelLDPIHT(noise="piecewise", iterations=5), label, one, 10_000),
        (LabelLDPIHT(noise="laplace", iterations=5), label, two, 5_000),
        (LabelLDPIHT(noise="gaussian", iterations=5), label, GAUSSIAN, 10_000),
        (LabelLDPIHT(iterations=5), classes, one, 10_000),
        (LabelLDPIHT(iterations=5), three_classes, two, 5_000),
        (LabelLasso(), label, two, 5_000),
    ]
    return [AuditCase(item.name, "algorithm", item, pair, claim, runs) for item, pair, claim, runs in cases]


@dataclass(frozen=True)
class JointAlgorithm:
    """An algorithm as parties run it together: the same, with joint noise."""

    name: str
    algorithm: Algorithm

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        return with_joint_noise(self.algorithm.plan(problem, budget), "reference")

    def run(self, vault: CentralVault) -> Floats:
        return self.algorithm.run(vault)


def _joint_algorithms() -> list[AuditCase]:
    """The row that is replaced is all that one of three parties holds."""
    row, added = pairs.mirrored_row(), pairs.mirrored_row(adjacency="add-remove")
    classes = pairs.mirrored_row(LOGISTIC)
    cases: list[tuple[str, Target, Pair, int]] = [
        ("joint-dp-ight", DPIGHT(iterations=3), row, 5_000),
        ("joint-dp-ight", DPIGHT(iterations=3), added, 5_000),
        ("mpc-grad-p", DPGD(passes=3), classes, 5_000),
        ("mpc-out-p", OutputPerturbation(ridge=10.0), row, 5_000),  # which keeps the residual clipped
    ]
    return [
        AuditCase(name, "algorithm", JointAlgorithm(name, item), pair, MIXED, runs) for name, item, pair, runs in cases
    ]


def _questions() -> list[AuditCase]:
    # selection: of all choices, the one that most algorithms rest on
    more = {"selection": 30_000, "votes": 6_000, "sampled-gradients": 4_000}
    cases = [
        AuditCase(name, "question", item.probe, item.pair, item.claim, more.get(name, 10_000))
        for name, item in QUESTIONS.items()
    ]
    gradient, strict = QUESTIONS["gradient"], Claim(1.0, 1e-5)
    cases.append(AuditCase("gradient", "question", gradient.at(strict), gradient.pair, strict, 60_000))
    exact = partial(NoiseSource, hardened=True)
    for name in ("gradient", "selection"):
        item = QUESTIONS[name]
        suspect = Suspect(item.probe, noise=exact)
        cases.append(AuditCase(f"{name}-hardened", "question", suspect, item.pair, item.claim, 10_000))
    return cases
