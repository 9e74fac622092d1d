"""A case of the catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from thresher.audit.claims import Claim
from thresher.audit.pairs import Pair

__all__ = ["Case", "Kind"]

Kind = Literal["algorithm", "question", "printed", "broken"]


@dataclass(frozen=True)
class Case:
    """A claim, the pair on which it is tested, and how often."""

    name: str
    kind: Kind
    target: Any
    pair: Pair
    claim: Claim
    runs: int
    note: str = ""

    @property
    def sound(self) -> bool:
        """Whether this library says that the claim holds."""
        return self.kind in ("algorithm", "question")
