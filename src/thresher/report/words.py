"""Numbers and terms of certificates in plain words, and text from files as a terminal may show it."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping
from typing import TextIO

__all__ = [
    "BOUNDS", "GRADES", "UNITS", "DisplayableStream", "displayable", "range_text", "setting_text", "value_text",
]  # fmt: skip

GRADES = {
    "proved": "every bound is enforced by the code and the accounting is sound",
    "conditional": "the accounting is sound if the assumptions listed below hold",
    "printed": "a formula is used as a paper prints it, which is for reproduction only",
    "none": "privacy was switched off",
}

UNITS = {
    "row": "a row: of a person with several rows each is protected by itself, not all together",
    "person": "a person: all rows with one id are protected together",
}

BOUNDS = {
    "feature": "a feature's value",
    "row": "a row's norm",
    "target": "the target",
    "gradient": "a row's gradient",
    "row_norm": "a row's norm, with the intercept's constant",
    "intercept_column": "the intercept's constant",
}


def range_text(values: Iterable[float]) -> str:
    """The only value, or the least and the largest."""
    values = [float(value) for value in values]
    low, high = (value_text(min(values)), value_text(max(values))) if values else ("-", "-")
    return low if low == high else f"{low} to {high}"


def value_text(value: object) -> str:
    """Three digits of a number that is not whole; anything else as it is."""
    return f"{value:.3g}" if isinstance(value, float) and math.isfinite(value) else str(value)


def setting_text(value: object) -> str:
    """A setting or bound: long lists of numbers by their range, mappings by their entries."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {setting_text(each)}" for name, each in value.items())
    if isinstance(value, (list, tuple)):
        if len(value) > 3 and all(isinstance(each, (int, float)) for each in value):
            return f"{range_text(value)} ({len(value)} values)"
        return "; ".join(map(setting_text, value)) if len(value) != 2 else " to ".join(map(setting_text, value))
    return value_text(value)


# -- on a terminal: shown, steering nothing ---------------------------------------------------------------------------


def displayable(text: str, *, kept: str = "") -> str:
    """``text`` with what is not printed written out (\\x1b, \\u202e), but for the characters in ``kept``.

    Control characters move a cursor, change a title, fill the clipboard; marks of direction turn the order of letters
    round. A name with a line end could pass for a line of ours.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept or unicodedata.category(c) == "Zs" else _escape(c) for c in text)


def _escape(character: str) -> str:
    return ascii(character)[1:-1]


class DisplayableStream:
    """A stream for rows of text: line ends pass, other characters are made displayable."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write what of the text may be shown."""
        return self._stream.write(displayable(text, kept="\r\n"))
