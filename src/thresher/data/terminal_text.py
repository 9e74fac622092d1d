"""Text from files on a terminal: it is shown, and steers nothing."""

from __future__ import annotations

import unicodedata
from typing import TextIO

__all__ = ["Cleaned", "displayable"]


def displayable(text: str, *, kept: str = "") -> str:
    """``text`` with what is not printed written out (\\x1b, \\u202e), but for the characters in ``kept``.

    Control characters move a cursor, change a title, fill the clipboard; marks of direction turn the order of letters
    round. A name with a line end could pass for a line of ours.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept or unicodedata.category(c) == "Zs" else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return ascii(character)[1:-1]


class Cleaned:
    """A stream for rows of text: line ends pass, other characters are made displayable."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(displayable(text, kept="\r\n"))
