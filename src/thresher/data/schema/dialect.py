"""How a .csv file is written: its bytes, what stands between cells, and what stands in numbers."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

__all__ = ["DELIMITERS", "PLAIN", "THOUSANDS", "Dialect", "encoding_of"]

DELIMITERS = (",", ";", "\t", "|")
THOUSANDS = (",", ".", "'", " ")
BLANKS = " \u00a0\u202f"  # of which one may stand where a blank is declared


@dataclass(frozen=True)
class Dialect:
    """Public: it says nothing about what cells hold."""

    delimiter: str = ","
    decimal: str = "."
    thousands: str = ""  # between groups of three digits
    encoding: str = "utf-8"

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Dialect:
        known = [field.name for field in fields(cls)]
        for key in table:
            if key not in known:
                raise ValueError(f"schema: [table] has the unknown key {key!r}; use {', '.join(known)}")
        made = cls(**table)
        made._check()
        return made

    def to_dict(self) -> dict[str, str]:
        """For JSON and TOML; of the last two, what is not as usual."""
        always = ("delimiter", "decimal")
        return {key: value for key, value in asdict(self).items() if key in always or value != getattr(PLAIN, key)}

    def pythonic(self, text: str) -> str:
        """A number as Python writes it; of groups that are not of three digits nothing is left, so that it is a gap."""
        if self.thousands and self._mark.search(text):
            text = self._mark.sub("", text) if self._grouped.fullmatch(text.strip()) else ""
        return text.replace(self.decimal, ".")

    @property
    def is_pythonic(self) -> bool:
        return self.decimal == "." and not self.thousands

    @cached_property
    def _mark(self) -> re.Pattern[str]:
        """What stands between groups, wherever it is between digits."""
        return re.compile(rf"(?<=\d)[{BLANKS if self.thousands == ' ' else self.thousands}](?=\d)")

    @cached_property
    def _grouped(self) -> re.Pattern[str]:
        """A number of groups of three digits."""
        return re.compile(rf"[+-]?\d{{1,3}}(?:{self._mark.pattern}\d{{3}})+(?:[{self.decimal}]\d*)?")

    def _check(self) -> None:
        if self.delimiter not in DELIMITERS:
            raise ValueError(
                f"schema: delimiter = {self.delimiter!r} must be one of {', '.join(map(repr, DELIMITERS))}"
            )
        if self.decimal not in (".", ","):
            raise ValueError(f"schema: decimal = {self.decimal!r} must be '.' or ','")
        if self.thousands and (self.thousands not in THOUSANDS or self.thousands == self.decimal):
            raise ValueError(
                f"schema: thousands = {self.thousands!r} must be one of {', '.join(map(repr, THOUSANDS))}, and another "
                "one than decimal; leave it out if nothing stands between groups of three digits"
            )
        try:
            "".encode(self.encoding)  # refuses what is no encoding of texts, too
        except (LookupError, TypeError, UnicodeError):
            raise ValueError(
                f"schema: encoding = {self.encoding!r} is unknown; use utf-8, cp1252 (Western Windows), utf-16, ..."
            ) from None


PLAIN = Dialect()


def encoding_of(start: bytes) -> str:
    """Of the first bytes of a file: UTF-16 has a mark, and hardly anything else is UTF-8 by chance."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)  # the last character may be cut off
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"
