"""The releases: each is one kind of private answer, described by a few numbers, that knows its own price.

A release is priced by its noise *multiplier* (noise scale over sensitivity), never by an absolute scale: the vault
derives the sensitivity from the clip in force and scales the multiplier. So a clip level may be chosen while
running, from earlier private answers, without touching the price.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

from thresher.accounting import Cost, gaussian_mu
from thresher.budget import Budget, is_whole

__all__ = [
    "ExactRelease",
    "GaussianGradient",
    "GaussianMinimiser",
    "GaussianRestrictedGradient",
    "L2LaplaceMinimiser",
    "Release",
    "release_from_dict",
]


@dataclass(frozen=True)
class Release:
    """One mechanism, used at most ``times`` times."""

    times: int

    question: ClassVar[str]
    """What is asked of the vault; an answer is only given to a release that names the same question."""

    noise: ClassVar[str]
    """The law of the noise, as named in certificates."""

    def __post_init__(self) -> None:
        if not is_whole(self.times) or self.times < 1:
            raise ValueError(f"times={self.times!r} must be a whole number of at least 1")
        object.__setattr__(self, "times", int(self.times))

    def cost(self) -> Cost:
        """The price of all ``times`` uses together."""
        raise NotImplementedError

    @property
    def multiplier(self) -> float:
        """Noise scale over sensitivity."""
        raise NotImplementedError

    def coordinate_sd(self, dimension: int) -> float:
        """Standard deviation of the noise in one coordinate of an answer of this dimension, over the sensitivity."""
        return self.multiplier

    def to_dict(self) -> dict[str, Any]:
        return {"kind": type(self).__name__, **asdict(self)}


@dataclass(frozen=True)
class _Gaussian(Release):
    """Adds N(0, (sd_per_sensitivity * Delta_2)^2 I), where Delta_2 is the l2 sensitivity of what is asked.

    Cost of T uses: exactly mu-GDP with mu^2 = T / sd_per_sensitivity^2 (Dong, Roth, Su 2022), hence T / (2
    sd_per_sensitivity^2)-zCDP.
    """

    sd_per_sensitivity: float
    noise: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_multiplier("sd_per_sensitivity", self.sd_per_sensitivity)

    @classmethod
    def calibrated(cls, budget: Budget, times: int, share: float = 1.0) -> Self:
        """``times`` uses that together take ``share`` of the budget's mu^2."""
        if not 0 < share <= 1:
            raise ValueError(f"share={share!r} of the budget must lie above 0 and not above 1")
        mu = gaussian_mu(budget.epsilon, budget.delta) * math.sqrt(share)
        return cls(times=times, sd_per_sensitivity=math.sqrt(times) / mu)

    @property
    def multiplier(self) -> float:
        return self.sd_per_sensitivity

    def cost(self) -> Cost:
        if self.sd_per_sensitivity == 0:
            return Cost.unbounded()
        mu = 1 / self.sd_per_sensitivity
        return Cost.gaussian(self.times * mu * mu)


@dataclass(frozen=True)
class GaussianGradient(_Gaussian):
    """The noisy mean gradient (1/n) sum_i g_i + noise over all coordinates, with ||g_i||_2 <= clip.

    Delta_2 = contributions(adjacency) * clip / n.
    """

    question: ClassVar[str] = "gradient"


@dataclass(frozen=True)
class GaussianRestrictedGradient(_Gaussian):
    """The noisy mean gradient on an already public set of coordinates A, with ||g_i,A||_2 <= clip.

    Delta_2 = contributions(adjacency) * clip / n, whatever the other coordinates of a row hold.
    """

    question: ClassVar[str] = "restricted gradient"


@dataclass(frozen=True)
class GaussianMinimiser(_Gaussian):
    """argmin of (1/n) sum_i l_i(theta) + (ridge/2) ||theta||^2, plus noise, with ||grad l_i||_2 <= clip.

    Delta_2 = contributions(adjacency) * clip / (n ridge) + 2 tolerance / ridge, where the vault certifies
    ||gradient|| <= tolerance at the point it found (erratum E-7).
    """

    question: ClassVar[str] = "minimiser"


@dataclass(frozen=True)
class L2LaplaceMinimiser(Release):
    """The minimiser as above plus a vector with density proportional to exp(-epsilon ||v||_2 / Delta_2).

    Direction uniform, norm Gamma(dimension, Delta_2 / epsilon): pure epsilon-DP per use. (Erratum E-22: independent
    Laplace coordinates of this scale would cost sqrt(dimension) times as much.)
    """

    epsilon: float
    question: ClassVar[str] = "minimiser"
    noise: ClassVar[str] = "l2-laplace"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.epsilon < math.inf:
            raise ValueError(f"epsilon={self.epsilon!r} of a pure release must be positive and finite")

    @property
    def multiplier(self) -> float:
        return 1 / self.epsilon

    def coordinate_sd(self, dimension: int) -> float:
        return self.multiplier * math.sqrt(dimension + 1)  # E ||v||^2 = dimension (dimension + 1) scale^2

    def cost(self) -> Cost:
        return Cost.pure_dp(self.epsilon, self.times)


@dataclass(frozen=True)
class ExactRelease(Release):
    """A question answered without any noise. It has no finite price, so only a plan without privacy can hold it."""

    question: str  # type: ignore[misc]  # any question may be asked exactly
    noise: ClassVar[str] = "none"

    @property
    def multiplier(self) -> float:
        return 0.0

    def cost(self) -> Cost:
        return Cost.unbounded()


_KINDS: dict[str, type[Release]] = {
    kind.__name__: kind
    for kind in (GaussianGradient, GaussianRestrictedGradient, GaussianMinimiser, L2LaplaceMinimiser, ExactRelease)
}


def release_from_dict(fields: dict[str, Any]) -> Release:
    """The release a certificate lists; only kinds priced in this module are known."""
    arguments = dict(fields)
    kind = _KINDS.get(arguments.pop("kind", None))
    if kind is None:
        raise ValueError(f"unknown release kind {fields.get('kind')!r}; known: {', '.join(_KINDS)}")
    return kind(**arguments)


def is_priced_here(release: object) -> bool:
    """Whether ``release`` is one of this module's own kinds, and not a look-alike with a price of its own."""
    return type(release) in _KINDS.values()


def _check_multiplier(name: str, value: float) -> None:
    if not (isinstance(value, (int, float)) and 0 <= value < math.inf):
        raise ValueError(f"{name}={value!r} must be a finite number of at least 0")
