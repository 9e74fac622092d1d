"""Everything that ``thresher audit all`` tries to disprove, with the pair that tells most about it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from thresher.algorithms import (
    DPAGD,
    DPGD,
    DPIGHT,
    DPLSSGD,
    DPSGD,
    DPSLKT,
    DPSRM,
    LDPIHT,
    RRPSGD,
    DPAdam,
    DPLSAdam,
    FrankWolfe,
    LabelLasso,
    LabelLDPIHT,
    NoisyFrankWolfe,
    OutputPerturbation,
    Peeling,
    Pursuit,
    TwoStage,
)
from thresher.audit import pairs
from thresher.audit.broken import (
    FreeSign,
    QuietLabels,
    QuietNoise,
    QuietReports,
    Rerun,
    ReusedBatch,
    SwappedClips,
    Twice,
    Unclipped,
    UnclippedLabels,
    WholeBatch,
    WrongSign,
)
from thresher.audit.claims import Claim
from thresher.audit.errata import CANDIDATES, ClippedMean, CoordinateLaplace, NoisyMin
from thresher.audit.game import AuditResult, Suspect, audit
from thresher.audit.membership import MembershipResult, membership
from thresher.audit.pairs import Pair
from thresher.audit.questions import QUESTIONS, Question
from thresher.budget import Budget
from thresher.clipping import gradient_sensitivity
from thresher.datasets import dpsl_kt_law
from thresher.estimators import SparseRegressor
from thresher.preprocessing import ColumnRanges
from thresher.progress import progress_bar
from thresher.randomness import NoiseSource

__all__ = ["Case", "Finding", "audit_cases", "catalogue", "find_cases", "membership_examples", "verdict"]

Floats = NDArray[np.float64]
Kind = Literal["algorithm", "question", "printed", "broken"]

GAUSSIAN = Claim(2.0, 1e-5)
LARGEST_LABEL = math.sqrt(10) + 0.05  # sqrt(s) + C for ||theta||_2 <= 1, s = 10 and C = .05
MIXED = Claim(2.0, 0.01)  # counts see little of an epsilon that is only exceeded with chance 1e-5


@dataclass(frozen=True)
class Case:
    """A claim, the pair on which it is tested, and how often."""

    name: str
    kind: Kind
    target: Any
    pair: Pair
    claim: Claim
    runs: int
    note: str = ""

    @property
    def sound(self) -> bool:
        """Whether this library says that the claim holds."""
        return self.kind in ("algorithm", "question")


@dataclass(frozen=True)
class Finding:
    """A case and what its audit found."""

    case: Case
    result: AuditResult

    @property
    def surprising(self) -> bool:
        """A claim of this library that was disproved, or a broken copy that was not caught."""
        return (self.case.sound and self.result.violated) or (self.case.kind == "broken" and not self.result.violated)


def catalogue() -> list[Case]:
    """Algorithms, single questions, formulas as printed, and broken copies of the questions."""
    return [
        *_algorithms(), *_stochastic_algorithms(), *_local_algorithms(), *_questions(), *_printed(), *_broken(),
        *_broken_batches(), *_broken_reports(),
    ]  # fmt: skip


def find_cases(name: str) -> list[Case]:
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
    cases: Sequence[Case], *, runs: int | None = None, confidence: float = 0.99, random_state: int | None = None,
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


def _algorithms() -> list[Case]:
    row, one_column = pairs.mirrored_row(), pairs.mirrored_row(d=1, sparsity=1)
    classes, added = pairs.mirrored_row("logistic"), pairs.mirrored_row(adjacency="add-remove")
    three_classes = pairs.mirrored_row("multinomial")
    rises, class_rises = pairs.one_rises(), pairs.one_rises("logistic")
    cases: list[tuple[Any, Pair, Claim, int]] = [
        (DPIGHT(), row, GAUSSIAN, 10_000),
        (DPIGHT(iterations=5), classes, GAUSSIAN, 10_000),
        (DPIGHT(iterations=5), three_classes, GAUSSIAN, 10_000),
        (Peeling(iterations=1), three_classes, Claim(8.0, 0.01), 2_000),  # one class against the rest
        (DPIGHT(), added, GAUSSIAN, 10_000),
        (OutputPerturbation(), row, GAUSSIAN, 10_000),
        (OutputPerturbation(noise="l2-laplace"), one_column, Claim(2.0), 10_000),
        (NoisyFrankWolfe(iterations=5), row, GAUSSIAN, 10_000),
        (Pursuit(), rises, MIXED, 5_000),
        (Pursuit(), class_rises, MIXED, 5_000),
        (Peeling(), row, MIXED, 10_000),
        (Peeling(), class_rises, MIXED, 10_000),
        (FrankWolfe(iterations=10), row, MIXED, 10_000),
        (TwoStage(ridge=10.0), one_column, MIXED, 10_000),  # a ridge that keeps the row's residual clipped
        (TwoStage(ridge=10.0), rises, MIXED, 10_000),
        (DPSLKT(), rises, MIXED, 10_000),
        (DPSLKT(), pairs.support_flip(101, 2), MIXED, 5_000),
        (DPSLKT(teacher="convex", ridge=10.0), row, GAUSSIAN, 5_000),
        (ColumnRanges(quantiles=None, centre=True), pairs.ranks(), MIXED, 10_000),
    ]
    return [Case(item.name, "algorithm", item, pair, claim, runs) for item, pair, claim, runs in cases]


def _stochastic_algorithms() -> list[Case]:
    """A few rounds on half of few rows: small batches of many hide a row so well that counts see nothing."""
    row, classes = pairs.mirrored_row(n=20), pairs.mirrored_row("logistic", n=20)
    added, three_classes = pairs.mirrored_row(n=20, adjacency="add-remove"), pairs.mirrored_row("multinomial", n=20)
    few: dict[str, Any] = {"batch": 10, "passes": 1}
    cases: list[tuple[Any, Pair, Claim, int]] = [
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
    return [Case(item.name, "algorithm", item, pair, claim, runs) for item, pair, claim, runs in cases]


def _local_algorithms() -> list[Case]:
    """One person or two: the attacker sees every report by itself, so a crowd hides nobody. Three columns: no ties."""
    row, person = pairs.mirrored_row(n=2, d=3), pairs.mirrored_row(n=1, d=3)
    label, classes = pairs.mirrored_row(n=2, d=1, sparsity=1), pairs.mirrored_row("logistic", n=1, d=3)
    three_classes = pairs.mirrored_row("multinomial", n=2)
    one, two = Claim(1.0), Claim(2.0)
    cases: list[tuple[Any, Pair, Claim, int]] = [
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
    return [Case(item.name, "algorithm", item, pair, claim, runs) for item, pair, claim, runs in cases]


def _questions() -> list[Case]:
    # selection: of all choices, the one that most algorithms rest on
    more = {"selection": 30_000, "votes": 6_000, "sampled-gradients": 4_000}
    cases = [
        Case(name, "question", item.probe, item.pair, item.claim, more.get(name, 10_000))
        for name, item in QUESTIONS.items()
    ]
    gradient, strict = QUESTIONS["gradient"], Claim(1.0, 1e-5)
    cases.append(Case("gradient", "question", gradient.at(strict), gradient.pair, strict, 60_000))
    exact = partial(NoiseSource, hardened=True)
    for name in ("gradient", "selection"):
        item = QUESTIONS[name]
        suspect = Suspect(item.probe, noise=exact)
        cases.append(Case(f"{name}-hardened", "question", suspect, item.pair, item.claim, 10_000))
    return cases


def _printed() -> list[Case]:
    """Each with what it really costs, where that is known exactly."""
    row, flip, ends, diagonal = (
        pairs.mirrored_row(),
        pairs.support_flip(),
        pairs.label_ends(LARGEST_LABEL),
        pairs.all_ones(),
    )
    remark, corollary = DPIGHT(calibration="printed"), DPIGHT(calibration="printed", printed_constant=1.0)
    loose, usual, labels, vector = Claim(10.0, 0.01), Claim(2.0, 0.01), Claim(1.0, 1e-3), Claim(0.5)
    choice, mean = Claim(0.1), Claim(0.3, 1e-5)
    label_noise = LabelLDPIHT(calibration="printed", noise_bound=0.05)
    n, d = diagonal.first[0].shape
    laplace = CoordinateLaplace(vector.epsilon, gradient_sensitivity(1.0, n, diagonal.adjacency))
    exactly = {
        "E-1": _planned_epsilon(remark, row, loose),
        "E-2": _planned_epsilon(corollary, row, usual),
        "E-12": _planned_epsilon(label_noise, ends, labels),
        "E-22": math.sqrt(d) * vector.epsilon,
        "E-26": (CANDIDATES - 1) * choice.epsilon,
    }
    cases: list[tuple[str, Any, Pair, Claim, int, str]] = [
        ("dp-ight-printed", remark, row, loose, 8_000, "E-1: the variance lacks a factor 2"),
        ("dp-ight-printed", corollary, row, usual, 4_000, "E-2: the corollary drops a factor 6"),
        ("dpsl-kt-printed", DPSLKT(calibration="printed"), flip, Claim(0.8, 0.01), 1_000, "E-5: the support flips"),
        (
            "frank-wolfe-printed", FrankWolfe(calibration="printed", iterations=30, radius=0.5), row, loose, 2_000,
            "E-15: too little noise for so large an epsilon, but more than counts can show",
        ),
        (
            "label-ldp-iht-printed", label_noise, ends, labels, 500,
            "E-12: noise for the range of the regression's noise, not of the labels",
        ),
        (
            "coordinate-laplace-printed", laplace, replace(diagonal, score=_AlongDiagonal(1 / (n * math.sqrt(d)))),
            vector, 20_000, "E-22: an l2 sensitivity with independent Laplace noise",
        ),
        (
            "dp-agd-printed", NoisyMin(choice.epsilon), pairs.mirrored_row("logistic", 20, 1, 1, "add-remove"), choice,
            10_000, "E-26: a noisy minimum whose noise has the wrong sign",
        ),
        (
            "dp-lssgd-printed", ClippedMean(mean.epsilon, mean.delta, batch=100, rounds=10),
            pairs.mirrored_row(n=1000, d=1, sparsity=1), mean, 1_000, "E-20: not rows are clipped, but their mean",
        ),
    ]  # fmt: skip
    found = []
    for name, target, pair, claim, runs, note in cases:
        cost = exactly.get(note.split(":")[0])
        found.append(Case(name, "printed", target, pair, claim, runs, f"{note}; exactly {cost:.3g}" if cost else note))
    return found


def _planned_epsilon(algorithm: Any, pair: Pair, claim: Claim) -> float:
    """What the plan really costs."""
    return float(algorithm.plan(pair.problem, Budget(claim.epsilon, claim.delta)).epsilon)


def _broken() -> list[Case]:
    """Each break of the questions it concerns. Free signs of choices are those of vertices of an l1 ball."""
    others = ("signed-vertex", "sampled-gradients", "few-fixed-gradient")  # broken in other ways
    quiet = [name for name, item in QUESTIONS.items() if item.probe.trust == "central" and name not in others]
    unclipped = [name for name in quiet if name not in ("votes", "quantile")]
    choices = ["selection", "votes", "quantile", "vertex", "signed-vertex", "step-length"]
    signed = ["gradient", "restricted-gradient", "minimiser", "pure-minimiser", "labels", "signed-vertex"]
    most = dict.fromkeys([*choices, "walked-vertex"], 12_000) | {"pure-minimiser": 8_000, "step-length": 8_000}
    # their prices, Renyi curves, are so much above their costs that 0.7 of the noise costs little more than claimed
    most |= {"perturbed-minimiser": 80_000, "fixed-gradient": 40_000}
    most |= {"sampled-gradient": 10_000, "sampled-momentum": 10_000}
    cases = [_broken_case(name, "quiet", {"noise": QuietNoise}, most.get(name, 4_000)) for name in quiet]
    cases += [_broken_case(name, "unclipped", {"vault": Unclipped}, 2_000) for name in unclipped]
    cases += [_broken_case(name, "free-sign", {"vault": FreeSign}, 1_000) for name in signed]
    cases += [_broken_case(name, "rerun", {"vault": Rerun}, 1_000) for name in choices]
    return cases


def _broken_batches() -> list[Case]:
    """Broken copies of random batches; of choices, the one whose noise has the wrong sign."""
    whole = ["sampled-gradient", "added-gradient", "few-fixed-gradient", "sampled-momentum"]
    cases = [_broken_case(name, "whole-batch", {"vault": WholeBatch}, 8_000) for name in whole]
    cases.append(_broken_case("sampled-gradients", "reused-batch", {"vault": ReusedBatch}, 12_000))
    cases.append(_broken_case("sampled-momentum", "swapped-clips", {"vault": SwappedClips}, 1_000))
    cases.append(_broken_case("step-length", "wrong-sign", {"vault": WrongSign}, 1_000))
    return cases


def _broken_reports() -> list[Case]:
    """Broken copies of people. Unclipped labels that are numbers alone can escape.

    A class is one of a list. A gradient that was not clipped leaves only its direction or its signs: whatever vector a
    person holds, the randomiser's law of a report is one of those that are within e^epsilon of each other.
    """
    vectors, labels = (
        [name for name, item in QUESTIONS.items() if item.probe.trust == trust] for trust in ("local", "labels")
    )
    cases = [_broken_case(name, "quiet", {"vault": QuietReports}, 2_000) for name in vectors]
    cases += [_broken_case(name, "quiet", {"vault": QuietLabels}, 2_000) for name in labels]
    cases += [_broken_case(name, "twice", {"vault": Twice}, 1_000) for name in vectors]
    numbers = [name for name in labels if name != "class-report"]
    return cases + [_broken_case(name, "unclipped", {"vault": UnclippedLabels}, 500) for name in numbers]


def _broken_case(name: str, how: str, parts: dict[str, Any], runs: int) -> Case:
    item: Question = QUESTIONS[name]
    return Case(f"{name}-{how}", "broken", Suspect(item.probe, **parts), item.pair, item.claim, runs, how)


@dataclass(frozen=True)
class _AlongDiagonal:
    """The log-likelihood ratio of Laplace noise around +step and around -step in every coordinate, times its scale."""

    step: float

    def __call__(self, outcome: Floats) -> float:
        return float(np.sum(np.abs(outcome + self.step) - np.abs(outcome - self.step)))
