"""Fields that are not what they must be: of another type, out of range, or unknown."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any, get_args

from thresher.privacy.budget import Adjacency, is_whole
from thresher.privacy.grades import Grade
from thresher.privacy.trust import TRUST, Unit

if TYPE_CHECKING:
    from thresher.privacy.certificate import Certificate

__all__ = ["FORMATS", "problems_of_fields"]

FORMATS = ("thresher-certificate-1", "thresher-certificate-2")
"""The first has no format of its own: no hash of a model, and noise in floating point counted as proved."""

ENTRY = {"release", "question", "noise", "answers"}
ANSWER = {"count", "clip", "sensitivity", "scale"}
TEXTS_OF_RELEASES = ("kind", "question", "sampling", "adjacency")


def problems_of_fields(certificate: Certificate) -> list[str]:
    """Everything else is checked only if this finds nothing."""
    problems = [
        f"{name}={_short(getattr(certificate, name))} is not {what}"
        for name, (what, holds) in FIELDS.items()
        if not holds(getattr(certificate, name))
    ]
    return problems or [problem for entry in certificate.releases for problem in _problems_of_entry(entry)]


def is_number(value: Any) -> bool:
    """A number that is one: no truth value, no text, neither infinite nor NaN."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _problems_of_entry(entry: Any) -> Iterator[str]:
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


def _is_plain_release(value: Any, name: str = "") -> bool:
    """Numbers, but for a few names; some releases are made of others."""
    if isinstance(value, Mapping):
        return all(_is_plain_release(each, name) for name, each in value.items())
    if isinstance(value, (list, tuple)):
        return all(_is_plain_release(each, name) for each in value)
    return isinstance(value, str) if name in TEXTS_OF_RELEASES else is_number(value) or value == math.inf


def _is_answer(answer: Any) -> bool:
    if not isinstance(answer, Mapping) or set(answer) != ANSWER or not is_whole(answer["count"]):
        return False
    return all(_is_size(answer[name]) for name in ("clip", "sensitivity", "scale"))


def _is_size(value: Any) -> bool:
    return value == "inf" or (is_number(value) and value >= 0)


def _is_texts(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value)


def _is_named(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


def _is_named_texts(value: Any) -> bool:
    return _is_named(value) and _is_texts(list(value.values()))


def _is_epsilon(value: Any) -> bool:
    return value is None or (is_number(value) and value > 0)


def _one_of(known: Any) -> tuple[str, Callable[[Any], bool]]:
    return f"one of {', '.join(known)}", lambda value: isinstance(value, str) and value in known


def _is_hash(value: Any) -> bool:
    return value is None or (isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None)


def _is_count(value: Any) -> bool:
    return is_whole(value) and value >= 1


def _is_account(value: Any) -> bool:
    return value is None or (_is_named_texts(value) and set(value) == {"dataset", "entry", "hash"})


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:80]}..."


FIELDS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
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
