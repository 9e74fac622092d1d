"""What is asked of the rows, and the rules that hold for its answer whatever noise hides it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from thresher.privacy.budget import Adjacency
from thresher.privacy.facts import PublicFacts, Settings
from thresher.privacy.trust import Unit

__all__ = ["CertifiedSearch", "Clips", "Question"]

Clips = tuple[float, float]
"""The least and the largest clip that there can be."""


class CertifiedSearch(NamedTuple):
    """How a minimiser is searched for: with a ridge, until the gradient's l2 norm is at most ``tolerance``."""

    ridge: float
    tolerance: float = 0.0


@dataclass(frozen=True, repr=False)
class Question:
    """One question, by the name that certificates list it under.

    Each kind states its own rules. There are none to fall back on, since the rule of another kind would be a wrong
    promise: what is forgotten raises ``NotImplementedError`` where it is needed.
    """

    name: ClassVar[str] = "question"

    of_several_outputs: ClassVar[bool] = False
    """Whether linear predictors that are fitted side by side can be asked about at once."""

    searched: ClassVar[bool] = False
    """Whether the answer is found by searching for a minimiser."""

    certified: ClassVar[bool] = False
    """Whether the sensitivity allows for how far from the minimiser the search may have stopped."""

    answered_as: ClassVar[str] = "numbers"
    """Under whose trust, or as what kind of noise, it is answered: a curator's numbers or a person's own report."""

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return repr(self.name)

    @property
    def words(self) -> str:
        """What it asks, for people who do not know its name; ``{rows}`` stands for what the unit of privacy is."""
        raise self._no_rule("its words")

    @property
    def of_rows_only(self) -> bool:
        """Whether its price, or its formula, is about a single row: a person with several rows then has none."""
        raise self._no_rule("people with several rows")

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        """How far neighbours of n rows, or people, can move the answer, each row's part within ``clip``."""
        raise self._no_rule("its sensitivity")

    def clips_of_bounds(self, facts: PublicFacts) -> Clips | None:
        """Where the public bounds alone decide; None where a setting does."""
        return None

    def clips_of_settings(self, facts: PublicFacts, settings: Settings, columns: int) -> Clips:
        """Where settings decide, "clip" among them, for an algorithm that picks so many columns."""
        raise self._no_rule("its clip")

    def objection_to(self, clip: float) -> str | None:
        """Why no bounds and settings lead to this clip; None if some may."""
        return None

    def asked(self, unit: Unit) -> str:
        """In words, of rows or of people."""
        return self.words.format(rows="people" if unit == "person" else "rows")

    def _no_rule(self, what: str) -> NotImplementedError:
        return NotImplementedError(f"{self.name}: no rule is stated for {what}")
