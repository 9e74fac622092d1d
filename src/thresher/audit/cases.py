"""What an audit tries to disprove, and a case of the catalogue that does."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from thresher.audit.pairs import Pair
from thresher.privacy.arrays import Matrix
from thresher.privacy.budget import Budget

__all__ = ["AuditCase", "Claim", "Claimed", "Estimator", "Kind", "Target"]

Target = Any
"""What is audited: an algorithm or its name, an estimator, or a function of (X, y, seed). The game tells them apart."""


class Estimator(Protocol):
    """A linear model with scikit-learn's conventions."""

    @property
    def coef_(self) -> Matrix:
        """Once fitted."""

    @property
    def intercept_(self) -> ArrayLike:
        """Once fitted."""

    def fit(self, X: Matrix, y: ArrayLike) -> object: ...

    def get_params(self, deep: bool = True) -> Mapping[str, object]: ...

    def set_params(self, **params: object) -> object: ...


@dataclass(frozen=True)
class Claim:
    """(epsilon, delta)-DP as somebody claims it; delta may be 0.

    Parameters
    ----------
    epsilon : float
        Positive and finite.
    delta : float
        From 0 to below 1.

    Examples
    --------
    >>> from thresher.audit import Claim
    >>> Claim.of(2.0), Claim.of((1.0, 1e-5))
    (Claim(epsilon=2.0, delta=0.0), Claim(epsilon=1.0, delta=1e-05))
    """

    epsilon: float
    delta: float = 0.0

    @classmethod
    def of(cls, claimed: Claimed) -> Claim:
        """From a ``thresher.Budget``, a pair (epsilon, delta), or a number for pure epsilon-DP."""
        if isinstance(claimed, Claim):
            return claimed
        try:
            if isinstance(claimed, Budget):
                epsilon, delta = claimed.epsilon, claimed.delta
            else:
                given: Any = claimed
                epsilon, delta = (float(given), 0.0) if np.ndim(given) == 0 else map(float, given)
        except (TypeError, ValueError):
            raise ValueError(f"claimed={claimed!r} must be a Budget, a pair (epsilon, delta), or an epsilon") from None
        if not (0 < epsilon < math.inf and 0 <= delta < 1):
            raise ValueError(f"claimed={claimed!r}: epsilon must be positive and finite, delta from 0 to below 1")
        return cls(epsilon, delta)


Claimed: TypeAlias = Claim | Budget | float | tuple[float, float]
Kind = Literal["algorithm", "question", "printed", "broken"]


@dataclass(frozen=True)
class AuditCase:
    """A claim, the pair on which it is tested, and how often."""

    name: str
    kind: Kind
    target: Target
    pair: Pair
    claim: Claim
    runs: int
    note: str = ""

    @property
    def sound(self) -> bool:
        """Whether this library says that the claim holds."""
        return self.kind in ("algorithm", "question")
