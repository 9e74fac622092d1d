"""What a certificate states of itself: fields of the right type, a grade, a price, whom it protects and from whom."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, TypeGuard, get_args

from thresher.privacy.budget import Adjacency, is_whole
from thresher.privacy.facts import PEOPLE_NOTE
from thresher.privacy.grades import PRINTED_NOTE, REAL_NOISE, SEEDED, Grade, grade_of, real_noise
from thresher.privacy.releases import Release
from thresher.privacy.strict_json import Record
from thresher.privacy.trust import TRUST, Trust, Unit, trust_words, trust_words_of_first_format

if TYPE_CHECKING:
    from thresher.privacy.certificate import Certificate

__all__ = ["FORMATS", "problems_of_fields", "problems_of_statements", "trust_of"]

FORMATS = ("thresher-certificate-1", "thresher-certificate-2")
"""The first has no format of its own: no hash of a model, and noise in floating point counted as proved."""

ENTRY = {"release", "question", "noise", "answers"}
ANSWER = {"count", "clip", "sensitivity", "scale"}
TEXTS_OF_RELEASES = ("kind", "question", "sampling", "adjacency")


# -- fields of another type, out of range, or unknown -----------------------------------------------------------------


def problems_of_fields(certificate: Certificate) -> list[str]:
    """Everything else is checked only if this finds nothing."""
    problems = [
        f"{name}={_short(getattr(certificate, name))} is not {what}"
        for name, (what, holds) in FIELDS.items()
        if not holds(getattr(certificate, name))
    ]
    return problems or [problem for entry in certificate.releases for problem in _problems_of_entry(entry)]


def is_number(value: object) -> TypeGuard[float]:
    """A number that is one: no truth value, no text, neither infinite nor NaN."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _problems_of_entry(entry: object) -> Iterator[str]:
    if not isinstance(entry, Mapping) or not ENTRY <= set(entry) <= ENTRY | {"part", "within"}:
        names = set(entry) if isinstance(entry, Mapping) else {_short(entry)}
        yield f"a release is listed with fields {sorted(names ^ ENTRY)} missing or unknown"
        return
    if not (is_whole(entry.get("part", 0)) and entry.get("part", 0) >= 0):
        yield f"part={_short(entry['part'])} of a release is not the number of a part"
    if not all(isinstance(entry[name], str) for name in ("question", "noise")):
        yield f"question={_short(entry['question'])}, noise={_short(entry['noise'])} of a release are not text"
    if not isinstance(entry["release"], Mapping) or not _is_plain_release(entry["release"]):
        yield f"release={_short(entry['release'])} holds something else than numbers"
    if not (isinstance(entry["answers"], (list, tuple)) and all(map(_is_answer, entry["answers"]))):
        yield f"answers={_short(entry['answers'])} of a {entry['question']} are not counts, clips and numbers"


def _is_plain_release(value: object, name: str = "") -> bool:
    """Numbers, but for a few names; some releases are made of others."""
    if isinstance(value, Mapping):
        return all(_is_plain_release(each, name) for name, each in value.items())
    if isinstance(value, (list, tuple)):
        return all(_is_plain_release(each, name) for each in value)
    return isinstance(value, str) if name in TEXTS_OF_RELEASES else is_number(value) or value == math.inf


def _is_answer(answer: object) -> bool:
    if not isinstance(answer, Mapping) or set(answer) != ANSWER or not is_whole(answer["count"]):
        return False
    return all(_is_size(answer[name]) for name in ("clip", "sensitivity", "scale"))


def _is_size(value: object) -> bool:
    return value == "inf" or (is_number(value) and value >= 0)


def _is_texts(value: object) -> TypeGuard[Sequence[str]]:
    return isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value)


def _is_named(value: object) -> TypeGuard[Record]:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


def _is_named_texts(value: object) -> TypeGuard[Mapping[str, str]]:
    return _is_named(value) and _is_texts(list(value.values()))


def _is_epsilon(value: object) -> bool:
    return value is None or (is_number(value) and value > 0)


def _one_of(known: tuple[str, ...]) -> tuple[str, Callable[[object], bool]]:
    return f"one of {', '.join(known)}", lambda value: isinstance(value, str) and value in known


def _is_hash(value: object) -> bool:
    return value is None or (isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None)


def _is_count(value: object) -> bool:
    return is_whole(value) and value >= 1


def _is_account(value: object) -> bool:
    return value is None or (_is_named_texts(value) and set(value) == {"dataset", "entry", "hash"})


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:80]}..."


FIELDS: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    "format": _one_of(FORMATS),
    "algorithm": ("text", _is_text),
    "epsilon": ("a number above 0, or nothing", _is_epsilon),
    "delta": ("a number from 0 to below 1", lambda value: is_number(value) and 0 <= value < 1),
    "adjacency": _one_of(tuple(map(str, Adjacency))),
    "trust": (
        "the words on whom to trust",
        lambda value: _is_named_texts(value) and set(value) == set(TRUST["central"]),
    ),
    "grade": _one_of(get_args(Grade)),
    "claimed_epsilon": ("a number above 0, or nothing", _is_epsilon),
    "composition": ("text", _is_text),
    "releases": ("a list", lambda value: isinstance(value, (list, tuple))),
    "bounds": ("bounds by name", _is_named),
    "settings": ("settings by name", _is_named),
    "assumptions": ("a list of sentences", _is_texts),
    "notes": ("a list of sentences", _is_texts),
    "randomness": ("text", _is_text),
    "n_samples": ("a whole number of at least 1", _is_count),
    "n_features": ("a whole number of at least 1", _is_count),
    "versions": ("the versions it was made with", lambda value: _is_named_texts(value) and "thresher" in value),
    "ledger": ("a data set, an entry and its hash", _is_account),
    "unit": _one_of(get_args(Unit)),
    "model": ("a hash of 64 digits", _is_hash),
}


# -- one fit's grade, price, unit and trust ---------------------------------------------------------------------------


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
    grade, assumptions = grade_of(private, printed, certificate.assumptions, certificate.randomness, releases)
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
    words = trust_words_of_first_format if certificate.is_old else trust_words
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
