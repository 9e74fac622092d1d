"""What a release is, and the Gaussian one."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self

from thresher.privacy.accounting import Cost
from thresher.privacy.budget import Adjacency, Budget, is_whole
from thresher.privacy.composition import Step
from thresher.privacy.conversions import gaussian_mu
from thresher.privacy.facts import PublicFacts, Settings
from thresher.privacy.profiles import GaussianAnswer
from thresher.privacy.questions import CertifiedSearch, Clips, Question, question_named
from thresher.privacy.sensitivity import CERTIFIED

__all__ = ["ExactRelease", "GaussianRelease", "Release", "check_multiplier"]


@dataclass(frozen=True)
class Release:
    """One mechanism, used at most ``times`` times."""

    times: int

    question: ClassVar[Question] = Question()
    """What is asked of the vault, with its rules; an answer is only given to a release of the same question."""

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

    @property
    def steps(self) -> tuple[Step, ...] | None:
        """What one use is to the exact composition; None if its price is known in other ways only."""
        return None

    def with_noise(self, factor: float) -> Self:
        """The same with its noise times ``factor``."""
        raise NotImplementedError

    @property
    def answered_as(self) -> str:
        """Under whose trust, or as what kind of noise, it is answered."""
        return self.question.answered_as

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        """How far neighbours of n rows, or people, can move the answer, each row's part within ``clip``."""
        return self.question.sensitivity(clip, n, adjacency, search)

    def most_sensitivity(self, least: float, n: int, round_off: float, margins: float) -> float:
        """The largest that a vault may state where the clip by itself makes it ``least``.

        What is certified of a minimiser adds to it: by the factor ``round_off`` of sums over the rows, and by what the
        round-off of their ``margins`` adds relative to the least.
        """
        return least * (1 + CERTIFIED + margins) * round_off if self.question.certified else least

    def clips_of_settings(self, facts: PublicFacts, settings: Settings, columns: int) -> Clips:
        """The clips that settings, "clip" among them, lead to where so many columns are picked."""
        return self.question.clips_of_settings(facts, settings, columns)

    def scale(self, clip: float, sensitivity: float) -> float:
        """The scale of the noise, or of the report, that hides so large a sensitivity."""
        return self.multiplier * sensitivity

    @property
    def terms(self) -> tuple[str, str] | None:
        """What it allows, in words, if it answers nothing itself and pays for other releases; None if it answers."""
        return None

    def coordinate_sd(self, dimension: int) -> float:
        """Standard deviation of the noise in one coordinate of an answer of this dimension, over the sensitivity."""
        return self.multiplier

    def to_dict(self) -> dict[str, Any]:
        return {"kind": type(self).__name__, **asdict(self)}


@dataclass(frozen=True)
class GaussianRelease(Release):
    """Adds N(0, (sd_per_sensitivity * Delta_2)^2 I), where Delta_2 is the l2 sensitivity of what is asked.

    Cost of T uses: exactly mu-GDP with mu^2 = T / sd_per_sensitivity^2 (Dong, Roth, Su 2022), hence T / (2
    sd_per_sensitivity^2)-zCDP.
    """

    sd_per_sensitivity: float
    noise: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_multiplier("sd_per_sensitivity", self.sd_per_sensitivity)

    @classmethod
    def calibrated(cls, budget: Budget, times: int, share: float = 1.0) -> Self:
        """``times`` uses that together take ``share`` of the budget's mu^2."""
        if not 0 < share <= 1:
            raise ValueError(f"share={share!r} of the budget must lie above 0 and not above 1")
        mu = gaussian_mu(budget.epsilon, budget.delta) * math.sqrt(share)
        return cls(times=times, sd_per_sensitivity=math.sqrt(times) / mu)

    @classmethod
    def for_rho(cls, rho: float, times: int = 1) -> Self:
        """``times`` uses that together cost ``rho`` in zCDP."""
        return cls(times=times, sd_per_sensitivity=math.sqrt(times / (2 * rho)))

    @property
    def multiplier(self) -> float:
        return self.sd_per_sensitivity

    def cost(self) -> Cost:
        if self.sd_per_sensitivity == 0:
            return Cost.unbounded()
        mu = 1 / self.sd_per_sensitivity
        return Cost.gaussian(self.times * mu * mu)

    @property
    def steps(self) -> tuple[Step, ...] | None:
        return (GaussianAnswer(1 / self.sd_per_sensitivity),) if self.sd_per_sensitivity > 0 else None

    def with_noise(self, factor: float) -> Self:
        return replace(self, sd_per_sensitivity=factor * self.sd_per_sensitivity)


@dataclass(frozen=True)
class ExactRelease(Release):
    """A question answered without any noise. It has no finite price, so only a plan without privacy can hold it."""

    question: Question  # type: ignore[misc]  # any question may be asked exactly; it may be given by its name
    noise: ClassVar[str] = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.question, Question):
            object.__setattr__(self, "question", question_named(self.question))

    @property
    def multiplier(self) -> float:
        return 0.0

    def cost(self) -> Cost:
        return Cost.unbounded()

    def to_dict(self) -> dict[str, Any]:
        return {"kind": type(self).__name__, "times": self.times, "question": self.question.name}


def check_multiplier(name: str, value: float) -> None:
    if not (isinstance(value, (int, float)) and 0 <= value < math.inf):
        raise ValueError(f"{name}={value!r} must be a finite number of at least 0")
