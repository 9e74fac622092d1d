"""Broken copies of the questions, each of which an audit must catch: the control of the catalogue."""

from __future__ import annotations

from typing import Any

from thresher.algorithms import Peeling
from thresher.audit import pairs
from thresher.audit.broken import (
    AskedTwice,
    BarePart,
    ClippedEarly,
    FreeSign,
    KnownCoins,
    LowThreshold,
    NoDither,
    QuietCoins,
    QuietLabels,
    QuietNoise,
    QuietReports,
    Rerun,
    ReusedBatch,
    SharedFormula,
    SwappedClips,
    Twice,
    TwoSided,
    Unclipped,
    UnclippedLabels,
    UnclippedParties,
    WholeBatch,
    WrongSign,
)
from thresher.audit.cases import AuditCase, Claim
from thresher.audit.game import Suspect
from thresher.audit.questions import QUESTIONS, AuditedQuestion
from thresher.audit.shortcuts import ExactLengths, ExactMeans, NarrowScreen
from thresher.vaults.vault import Vault

__all__ = ["broken_cases"]


def broken_cases() -> list[AuditCase]:
    """Of a curator's questions, of random batches, of people, of parties, and of whole algorithms."""
    return [*_broken(), *_broken_batches(), *_broken_reports(), *_broken_parties(), *_shortcuts()]


def _broken() -> list[AuditCase]:
    """Each break of the questions it concerns, ``others`` in other ways.

    Free signs of choices are those of vertices of an l1 ball.
    """
    others = ("signed-vertex", "sampled-gradients", "few-fixed-gradient", "rare-category", "norm-quantile")
    quiet = [name for name, item in QUESTIONS.items() if item.probe.trust == "central" and name not in others]
    unclipped = [name for name in quiet if name not in ("votes", "quantile", "near-maximum", "categories")]
    choices = ["selection", "votes", "quantile", "near-maximum", "vertex", "signed-vertex", "step-length"]
    signed = ["gradient", "restricted-gradient", "mean", "minimiser", "pure-minimiser", "labels", "signed-vertex"]
    # with these the bound lies about four of its standard deviations above the claim: hardly any seed misses a copy
    most = dict.fromkeys([*choices, "walked-vertex"], 20_000) | {"pure-minimiser": 8_000, "selection": 30_000}
    # their prices, Renyi curves, are so much above their costs that 0.7 of the noise costs little more than claimed
    most |= {"perturbed-minimiser": 100_000, "fixed-gradient": 80_000}
    most |= {"sampled-gradient": 10_000, "sampled-momentum": 10_000, "added-gradient": 20_000, "quantile": 24_000}
    most |= {"categories": 20_000, "step-length": 24_000}
    cases = [_broken_case(name, "quiet", {"noise": QuietNoise}, most.get(name, 4_000)) for name in quiet]
    cases += [_broken_case(name, "unclipped", {"vault": Unclipped}, 2_000) for name in unclipped]
    cases += [_broken_case(name, "free-sign", {"vault": FreeSign}, 1_000) for name in signed]
    cases += [_broken_case(name, "rerun", {"vault": Rerun}, 2_000) for name in choices]
    projected = ("projected-gradient", "projected-gram")
    cases += [_broken_case(name, "clipped-early", {"vault": ClippedEarly}, 1_000) for name in projected]
    cases.append(_broken_case("near-maximum", "two-sided", {"vault": TwoSided}, 4_000))
    cases.append(_broken_case("rare-category", "low-threshold", {"vault": LowThreshold}, 2_000))
    cases.append(_broken_case("norm-quantile", "shared-formula", {"vault": SharedFormula}, 1_000))
    return cases


def _broken_batches() -> list[AuditCase]:
    """Broken copies of random batches; of choices, the one whose noise has the wrong sign."""
    whole = ["sampled-gradient", "added-gradient", "few-fixed-gradient", "sampled-momentum"]
    cases = [_broken_case(name, "whole-batch", {"vault": WholeBatch}, 8_000) for name in whole]
    cases.append(_broken_case("sampled-gradients", "reused-batch", {"vault": ReusedBatch}, 12_000))
    cases.append(_broken_case("sampled-momentum", "swapped-clips", {"vault": SwappedClips}, 1_000))
    cases.append(_broken_case("step-length", "wrong-sign", {"vault": WrongSign}, 1_000))
    return cases


def _broken_reports() -> list[AuditCase]:
    """Broken copies of people. Unclipped labels that are numbers alone can escape.

    A class is one of a list. A gradient that was not clipped leaves only its direction or its signs: whatever vector a
    person holds, the randomiser's law of a report is one of those that are within e^epsilon of each other.
    """
    vectors, labels = (
        [name for name, item in QUESTIONS.items() if item.probe.trust == trust] for trust in ("local", "labels")
    )
    cases = [_broken_case(name, "quiet", {"vault": QuietReports}, 2_000) for name in vectors]
    cases += [_broken_case(name, "quiet", {"vault": QuietLabels}, 2_000) for name in labels]
    cases += [_broken_case(name, "twice", {"vault": Twice}, 2_000) for name in vectors]
    numbers = [name for name in labels if name != "class-report"]
    return cases + [_broken_case(name, "unclipped", {"vault": UnclippedLabels}, 500) for name in numbers]


SHARED = ("shared-gradient", "shared-minimiser")


def _broken_parties() -> list[AuditCase]:
    """Broken copies of joint answers. What is opened beside a noisy sum is the same for both questions.

    A minimiser takes long to find, so of copies with too little noise it gets the one that is caught in fewer runs.
    """
    both: dict[str, tuple[type[Vault], int]] = {
        "unclipped": (UnclippedParties, 500),
        "known-coins": (KnownCoins, 3_000),
    }
    one: dict[str, tuple[type[Vault], int]] = {
        "quiet": (QuietCoins, 10_000),
        "no-dither": (NoDither, 500),
        "bare-part": (BarePart, 500),
        "asked-twice": (AskedTwice, 8_000),
    }
    breaks = {"joint-gradient": one | both, **dict.fromkeys(("joint-minimiser", *SHARED), both)}
    return [
        _broken_case(name, how, {"vault": vault}, runs)
        for name, copies in breaks.items()
        for how, (vault, runs) in copies.items()
    ]


def _shortcuts() -> list[AuditCase]:
    """Algorithms that go on with what is exact, on pairs where a single row decides how."""
    means, lengths = Suspect(NarrowScreen(), vault=ExactMeans), Suspect(Peeling(iterations=4), vault=ExactLengths)
    claim = Claim(2.0, 0.01)
    return [
        AuditCase("screened-ight-exact-means", "broken", means, pairs.halves(), claim, 600, "exact-means"),
        AuditCase("peeling-exact-lengths", "broken", lengths, pairs.crowd(50), claim, 2_500, "exact-lengths"),
    ]


def _broken_case(name: str, how: str, parts: dict[str, Any], runs: int) -> AuditCase:
    item: AuditedQuestion = QUESTIONS[name]
    return AuditCase(f"{name}-{how}", "broken", Suspect(item.probe, **parts), item.pair, item.claim, runs, how)
