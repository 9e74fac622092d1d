"""What an audit tries to disprove, and a case of the catalogue that does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from thresher.audit.pairs import Pair
from thresher.privacy.budget import Budget

__all__ = ["AuditCase", "Claim", "Kind"]


@dataclass(frozen=True)
class Claim:
    """(epsilon, delta)-DP as somebody claims it; delta may be 0."""

    epsilon: float
    delta: float = 0.0

    @classmethod
    def of(cls, claimed: Any) -> Claim:
        """From a ``thresher.Budget``, a pair (epsilon, delta), or a number for pure epsilon-DP."""
        if isinstance(claimed, Claim):
            return claimed
        try:
            if isinstance(claimed, Budget):
                epsilon, delta = claimed.epsilon, claimed.delta
            else:
                epsilon, delta = (float(claimed), 0.0) if np.ndim(claimed) == 0 else map(float, claimed)
        except (TypeError, ValueError):
            raise ValueError(f"claimed={claimed!r} must be a Budget, a pair (epsilon, delta), or an epsilon") from None
        if not (0 < epsilon < math.inf and 0 <= delta < 1):
            raise ValueError(f"claimed={claimed!r}: epsilon must be positive and finite, delta from 0 to below 1")
        return cls(epsilon, delta)


Kind = Literal["algorithm", "question", "printed", "broken"]


@dataclass(frozen=True)
class AuditCase:
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
