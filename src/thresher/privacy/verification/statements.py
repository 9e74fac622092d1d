"""What one fit's certificate states about itself: its grade, its price, whom it protects and from whom."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from thresher.privacy.facts import PEOPLE_NOTE
from thresher.privacy.grades import PRINTED_NOTE, REAL_NOISE, SEEDED, graded, real_noise
from thresher.privacy.releases import Release
from thresher.privacy.trust import TRUST, Trust, trust_formerly_in, trust_in

if TYPE_CHECKING:
    from thresher.privacy.certificate import Certificate

__all__ = ["problems_of_statements", "trust_of"]

CLOSE = 1e-9  # relative: what is computed twice from the same numbers is as close as that
_BITS = r"(AES-128 counter mode keyed by the operating system|seeded by random_state \(not private\))"
RANDOMNESS: Mapping[str, str] = {
    rf"{_BITS}; (floating-point|grid-rounded exact) noise": "numbers",
    rf"({_BITS}|joint coins of the (parties \(MPyC\)|servers \(SPU\))); whole numbers, drawn exactly": "binomial",
    rf"each party's own share \({_BITS}\); whole numbers, masked": "skellam",
    r"drawn on each person's own device: AES-128 counter mode keyed by its operating system; grid-rounded reports": (
        "reports"
    ),
}
"""How certificates say where noise comes from, and of what kind it then is."""

KINDS: Mapping[str, tuple[str, ...]] = {
    "central": ("numbers",), "parties": ("numbers",), "reference": ("numbers", "binomial"), "mpyc": ("binomial",),
    "spu": ("binomial",), "skellam": ("skellam",), "local": ("numbers", "reports"), "labels": ("numbers", "reports"),
}  # fmt: skip


def problems_of_statements(certificate: Certificate, releases: list[Release]) -> list[str]:
    """``releases`` are those that the certificate lists."""
    return [
        *_problems_of_grade(certificate, releases),
        *_problems_of_price(certificate),
        *_problems_of_unit(certificate, releases),
        *_problems_of_trust(certificate, releases),
    ]


def _problems_of_grade(certificate: Certificate, releases: list[Release]) -> list[str]:
    problems = []
    private = certificate.claimed_epsilon is not None
    printed = any(note.startswith(PRINTED_NOTE) for note in certificate.notes)
    grade, assumptions = graded(private, printed, certificate.assumptions, certificate.randomness, releases)
    if certificate.is_old and set(assumptions) - set(certificate.assumptions) == {REAL_NOISE}:
        assumptions = certificate.assumptions  # as it was graded then; verify warns of it
        grade = "proved" if grade == "conditional" and not assumptions else grade
    if certificate.grade != grade:
        problems.append(f"grade {certificate.grade!r}: what is stated of assumptions and noise makes it {grade!r}")
    tacit = [words for words in assumptions if words not in certificate.assumptions]
    problems += [f"it rests on {words!r}, which is not assumed" for words in tacit]
    if SEEDED in certificate.assumptions and "seeded" not in certificate.randomness:
        problems.append("random_state is assumed to be secret, yet the randomness has none")
    taken_for_real = {words for words in certificate.assumptions if words.endswith(REAL_NOISE)}
    if private and taken_for_real - set(real_noise(certificate.randomness, releases)):
        problems.append("noise is assumed to be real-valued, yet it is exact")
    for words in certificate.assumptions:
        told = re.match(r"the number of (\w+), (\d+), is public", words)
        if told and (int(told[2]) != certificate.n_samples or certificate.adjacency != "add-remove"):
            problems.append(f"{words.partition(':')[0]!r} is assumed; that is of other rows or neighbours")
    return problems


def _problems_of_price(certificate: Certificate) -> list[str]:
    epsilon, claimed, grade = certificate.epsilon, certificate.claimed_epsilon, certificate.grade
    if epsilon is None:
        return [f"grade {grade!r} without an epsilon"] if grade in ("proved", "conditional") else []
    if grade == "none":
        return ["grade 'none' promises nothing, yet an epsilon is stated"]
    if claimed is None or not math.isclose(epsilon, claimed, rel_tol=CLOSE):
        return [f"epsilon={epsilon:g} is stated where {claimed} was asked for"]
    return []


def _problems_of_unit(certificate: Certificate, releases: list[Release]) -> list[str]:
    problems = []
    if certificate.unit == "person":
        of_rows = {release.question.name for release in releases if release.question.of_rows_only}
        problems += [f"a {question} is priced for people with one row each" for question in sorted(of_rows)]
    if (certificate.unit == "person") != (PEOPLE_NOTE in certificate.notes):
        problems.append(f"the unit is a {certificate.unit}, and the notes tell of another")
    return problems


def trust_of(certificate: Certificate) -> Trust | None:
    """By whose words it tells who must be trusted; None if they are nobody's."""
    words = trust_formerly_in if certificate.is_old else trust_in
    return next((model for model in TRUST if words(model, certificate.unit) == certificate.trust), None)


def _problems_of_trust(certificate: Certificate, releases: list[Release]) -> list[str]:
    trust = trust_of(certificate)
    if trust is None:
        return [f"who is protected and who must be trusted is not what a fit of {certificate.counted} says"]
    kind = next((kind for form, kind in RANDOMNESS.items() if re.fullmatch(form, certificate.randomness)), None)
    if kind is None:
        return [f"randomness {certificate.randomness[:80]!r} is none that thresher draws"]
    asked = {release.answered_as for release in releases} - {"any"}
    problems = []
    if kind not in KINDS[trust]:
        problems.append(f"trust is {certificate.trust['model']!r}, whose noise is not {certificate.randomness[:80]!r}")
    if any(each != trust and each != kind for each in asked):
        problems.append(f"trust is {certificate.trust['model']!r}, and releases are answered under another")
    return problems
