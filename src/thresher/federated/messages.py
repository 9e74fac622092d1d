"""The messages of a secure sum as bytes, with exactly one encoding each.

    magic 4 | version 1 | stage 1 | round 8 | sender 2 | entries 2 | entries of (party 2 | size 4 | content)

Numbers are big-endian; entries are in increasing order of the party. What a content is depends on the stage and on
whether the sender is the server; see ``thresher.federated.secagg``.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

__all__ = ["REASONS", "SERVER", "BadMessage", "Message", "SumStage", "decode", "encode"]

MAGIC, VERSION = b"THRM", 1
SERVER = 2**16 - 1  # the sender of what comes from the server
HEADER, ENTRY = struct.Struct(">4sBBQHH"), struct.Struct(">HI")

REASONS = ("malformed", "version", "stage", "round", "sender", "repeated", "content", "signature", "too few", "sealed")


class SumStage(IntEnum):
    """The stages of a secure sum; in each the server asks and the parties answer."""

    ADVERTISE = 1
    SHARE = 2
    MASK = 3
    CONFIRM = 4
    UNMASK = 5


class BadMessage(ValueError):  # noqa: N818  (the public name says what it is)
    """Bytes that do not belong into this stage of this round, and the ``reason``, one of ``REASONS``."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"not a message for this stage of the secure sum: {reason}")
        self.reason = reason


@dataclass(frozen=True)
class Message:
    """A stage's question or answer: something about, from or for each of some parties."""

    stage: SumStage
    round: int
    sender: int
    contents: Mapping[int, bytes]


def encode(message: Message) -> bytes:
    """The bytes of a message."""
    head = (MAGIC, VERSION, message.stage, message.round, message.sender, len(message.contents))
    parts = [HEADER.pack(*head)]
    for party, content in sorted(message.contents.items()):
        parts += [ENTRY.pack(party, len(content)), content]
    return b"".join(parts)


def decode(data: bytes, stage: SumStage, number: int) -> Message:
    """The message of this stage of round ``number`` that ``data`` encodes; all else raises ``BadMessage``."""
    if len(data) < HEADER.size or not data.startswith(MAGIC):
        raise BadMessage("malformed")
    _, version, found, round_number, sender, entries = HEADER.unpack_from(data)
    if version != VERSION:
        raise BadMessage("version")
    if found != stage:
        raise BadMessage("stage")
    if round_number != number:
        raise BadMessage("round")
    return Message(stage, round_number, sender, _contents(data, entries))


def _contents(data: bytes, entries: int) -> dict[int, bytes]:
    contents: dict[int, bytes] = {}
    at, last = HEADER.size, -1
    for _ in range(entries):
        if len(data) < at + ENTRY.size:
            raise BadMessage("malformed")
        party, size = ENTRY.unpack_from(data, at)
        at += ENTRY.size
        if party <= last or len(data) < at + size:
            raise BadMessage("malformed")
        contents[party] = data[at : at + size]
        at, last = at + size, party
    if at != len(data):
        raise BadMessage("malformed")
    return contents
