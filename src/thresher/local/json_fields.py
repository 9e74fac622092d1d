"""JSON from strangers: readers that take a field's name and value and return the value, or say which field is wrong."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from thresher.privacy.budget import is_whole
from thresher.privacy.strict_json import without_repeats

__all__ = [
    "Reader",
    "any_number",
    "canonical",
    "flag",
    "list_of",
    "number",
    "one_of",
    "optional",
    "parse_json",
    "short",
    "whole",
]

T = TypeVar("T")

Reader = Callable[[str, object], T]

MOST_TEXT = 2**25  # characters of JSON: a bound for each of a million columns fits


def whole(least: int, most: int) -> Reader[int]:
    def read(name: str, value: Any) -> int:
        if not is_whole(value) or not least <= value <= most:
            raise ValueError(f"{name}={short(value)} must be a whole number from {least} to {most}")
        return int(value)

    return read


def number(least: float, most: float) -> Reader[float]:
    def read(name: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise ValueError(f"{name}={short(value)} must be a number from {least:g} to {most:g}")
        return float(value)

    return read


any_number = number(-sys.float_info.max, sys.float_info.max)


def one_of(choices: Iterable[str]) -> Reader[str]:
    allowed = tuple(choices)

    def read(name: str, value: object) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise ValueError(f"{name}={short(value)} must be one of {', '.join(map(repr, allowed))}")
        return value

    return read


def list_of(read_one: Reader[T], least: int, most: int) -> Reader[tuple[T, ...]]:
    def read(name: str, value: object) -> tuple[T, ...]:
        if not isinstance(value, list | tuple) or not least <= len(value) <= most:
            raise ValueError(f"{name}={short(value)} must be a list of {least} to {most} entries")
        return tuple(read_one(name, one) for one in value)

    return read


def optional(read: Reader[T]) -> Reader[T | None]:
    return lambda name, value: None if value is None else read(name, value)


def name_of(most: int) -> Reader[str]:
    """Plain words that cannot be mistaken for a part of the text they are put in."""

    def read(name: str, value: object) -> str:
        if not isinstance(value, str) or not re.fullmatch(rf"[A-Za-z0-9 ._-]{{1,{most}}}", value):
            raise ValueError(f"{name}={short(value)} must be 1 to {most} letters, digits, spaces, dots or dashes")
        return value

    return read


def flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{name}={short(value)} must be true or false")
    return value


def canonical(values: Mapping[str, object]) -> str:
    """The one JSON text of these values."""
    return json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)


def parse_json(text: str, form: str, names: Iterable[str]) -> dict[str, Any]:
    """The fields of a JSON object that has exactly these, and this format, none of them twice."""
    if not isinstance(text, str) or len(text) > MOST_TEXT:
        raise ValueError(f"text must be JSON of at most {MOST_TEXT} characters")
    try:
        found = json.loads(text, object_pairs_hook=without_repeats)  # NaN is left to the readers, who know the field
    except RecursionError:
        raise ValueError("text is nested too deeply to be JSON of ours") from None
    if not isinstance(found, dict) or found.pop("format", None) != form:
        raise ValueError(f"format must be {form!r}: this is of another kind, or of another version")
    if found.keys() != set(names):
        raise ValueError(f"fields {short(sorted(found.keys() ^ set(names)))} are missing or unknown")
    return found


def short(value: object) -> str:
    """``value`` for an error message, of bounded length."""
    try:
        shown = repr(value)
    except ValueError:  # a whole number of more than 4300 digits
        return "a huge number"
    return shown if len(shown) <= 80 else f"{shown[:80]}..."
