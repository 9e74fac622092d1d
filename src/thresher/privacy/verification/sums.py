"""The certificate of several fits on the same rows: what it states follows from its parts, and none is left out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, get_args

from thresher.privacy.grades import Grade
from thresher.privacy.trust import trust_formerly_in
from thresher.privacy.verification.fields import FORMATS
from thresher.privacy.verification.statements import trust_of

if TYPE_CHECKING:
    from thresher.privacy.certificate import Certificate

__all__ = ["missing_parts", "parts_of", "problems_of_sum", "stated_by"]


def stated_by(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What a sum states that its parts alone decide."""
    claims = [part["claimed_epsilon"] for part in parts]
    return {
        "algorithm": " + ".join(part["algorithm"] for part in parts),
        "delta": math.fsum(part["delta"] for part in parts),
        "grade": max((part["grade"] for part in parts), key=get_args(Grade).index),
        "claimed_epsilon": None if None in claims else math.fsum(claims),
        "bounds": {name: [part["bounds"].get(name) for part in parts] for name in parts[0]["bounds"]},
        "assumptions": tuple(dict.fromkeys(words for part in parts for words in part["assumptions"])),
        "notes": tuple(dict.fromkeys(words for part in parts for words in part["notes"])),
        "randomness": "; ".join(dict.fromkeys(part["randomness"] for part in parts)),
        "n_features": max(part["n_features"] for part in parts),
    }


def problems_of_sum(certificate: Certificate) -> list[str]:
    """Where the sum of a certificate's parts is not what it states."""
    parts = certificate.settings["parts"]
    problems = missing_parts(certificate)
    if certificate.is_old:
        return problems
    expected = stated_by(parts)
    for name in ("algorithm", "grade", "bounds", "assumptions", "randomness", "n_features"):
        if _plain(getattr(certificate, name)) != _plain(expected[name]):
            problems.append(f"{name} is not what the parts of the sum make it")
    # a budget that was fixed before the first fit is stated as a whole, even if not all of it was spent
    if certificate.claimed_epsilon not in (expected["claimed_epsilon"], certificate.epsilon):
        problems.append("claimed_epsilon is not what the parts of the sum make it")
    if not certificate.delta >= expected["delta"]:
        problems.append("delta is less than the parts of the sum have together")
    if not set(expected["notes"]) <= set(certificate.notes):
        problems.append("notes of parts are left out of the sum")
    if (certificate.epsilon is None) != any(part["epsilon"] is None for part in parts):
        problems.append("epsilon is stated of the sum and not of its parts, or of them and not of the sum")
    return problems


def parts_of(certificate: Certificate) -> list[Certificate]:
    """The certificate of each fit, which has its releases, settings and bounds; itself, if it is one fit's."""
    if "parts" not in certificate.settings:
        return [certificate]
    names, trust = {f.name for f in fields(certificate)} - {"releases"}, trust_of(certificate)
    words = {} if trust is None else {FORMATS[0]: trust_formerly_in(trust, certificate.unit)}
    return [
        replace(
            certificate,
            trust=words.get(part.get("format", certificate.format), certificate.trust),
            **{name: _listed(value) for name, value in part.items() if name in names},
            releases=tuple(
                {name: value for name, value in entry.items() if name != "part"}
                for entry in certificate.releases
                if entry.get("part", 0) == at
            ),
        )
        for at, part in enumerate(certificate.settings["parts"])
    ]


def missing_parts(certificate: Certificate) -> list[str]:
    """Fits that no longer list every release they made."""
    parts = certificate.settings["parts"]
    listed = Counter(entry["part"] for entry in certificate.releases)
    problems = [
        f"part {at} ({part['algorithm']}) made {part['releases']} releases; listed are {listed[at]}"
        for at, part in enumerate(parts)
        if listed[at] != part["releases"]
    ]
    if certificate.algorithm != " + ".join(part["algorithm"] for part in parts):
        problems.append(f"the parts are not those of {certificate.algorithm!r}")
    return problems + [f"a release is of part {at}, which there is none of" for at in listed if at >= len(parts)]


def _plain(value: Any) -> Any:
    """As JSON gives it back, to compare what was written with what is computed."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def _listed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
