"""Who takes part in a secure sum, and how many may leave it or turn against it."""

from __future__ import annotations

import struct
from dataclasses import dataclass

__all__ = ["Group"]

MOST = 2**15  # parties; their numbers and the server's fit into 16 bits


@dataclass(frozen=True)
class Group:
    """``parties`` of whom ``dropouts`` may leave at any moment and ``colluding`` may tell the server all they know.

    A round needs the answers of ``quorum`` = parties - dropouts in each stage, and takes as many shares to open a
    secret. At least ``honest`` = quorum - colluding of those whose vectors are summed add noise that the others do not
    know; quorum - 1 if nobody colludes, for whoever takes part knows its own share.

    parties > 2 dropouts + colluding is required. Whatever is opened takes a quorum, and honest parties speak once. Were
    two lists of survivors opened, or two kinds of shares of one party, two quorums would have spoken, of which only the
    colluding can be in both: 2 quorum <= parties + colluding, that is parties <= 2 dropouts + colluding.
    """

    parties: int
    dropouts: int = 0
    colluding: int = 0

    def __post_init__(self) -> None:
        if not 2 <= self.parties <= MOST:
            raise ValueError(f"parties={self.parties!r} must be from 2 to {MOST}")
        for name in ("dropouts", "colluding"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name}={getattr(self, name)!r} must not be negative")
        if self.parties <= 2 * self.dropouts + self.colluding:
            raise ValueError(
                f"parties={self.parties} must be more than 2 dropouts + colluding = 2*{self.dropouts} + "
                f"{self.colluding}: tolerate fewer of them or find more parties"
            )

    @property
    def quorum(self) -> int:
        """How many parties must stay to the end."""
        return self.parties - self.dropouts

    @property
    def honest(self) -> int:
        """How many of the parties in a sum add noise that nobody else knows."""
        return self.quorum - max(1, self.colluding)

    def to_bytes(self) -> bytes:
        return struct.pack(">HHH", self.parties, self.dropouts, self.colluding)
