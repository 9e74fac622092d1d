"""Vaults of the local model with an auditor's ear: every single report, and how likely its person's record makes it.

The server of the local model is not trusted, so the strongest attacker sees each report by itself, and who was asked
when. Given the point that is asked about, people report independently of each other; what all reports together give
away about one record is the density of that person's report, and those of everybody else cancel.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from thresher.audit.transcript import RecordedAnswer
from thresher.privacy.arrays import Floats, Indices, Matrix, Values
from thresher.privacy.plan import Plan
from thresher.vaults import LabelVault, SimulatedVault
from thresher.vaults.people import Crowd, Reporter
from thresher.vaults.randomisers import Signs
from thresher.vaults.randomness import NoiseSource

__all__ = ["LabelWitness", "LocalWitness"]

IMPOSSIBLE = -1e9  # instead of minus infinity, so that differences of likelihoods are numbers


class _Listener:
    """Hears reports or, given a ``script``, repeats those that stand there; adds up each person's log-density.

    The score must be a function of what was released and of nothing else that depends on the coin. So densities are
    computed from the reports alone, in the same way whether they were drawn here or scripted.
    """

    _noise: NoiseSource

    def __init__(
        self, X: Matrix, y: Floats, plan: Plan, noise: NoiseSource, script: Iterable[RecordedAnswer] | None = None
    ) -> None:
        self._script = None if script is None else iter(script)
        self.transcript: list[RecordedAnswer] = []
        self.by_person = np.zeros(len(y))
        """The log-likelihood of each person's reports under their record in this vault."""
        super().__init__(X, y, plan, noise)  # type: ignore[call-arg]  # of the vault this is mixed with

    @property
    def log_likelihood(self) -> float:
        """Of all reports so far under these records."""
        return math.fsum(self.by_person)

    def _hear(self, randomiser: Any, values: Values, people: Iterable[int]) -> Any:
        """The reports of ``people`` who hold ``values``."""
        reports = randomiser.randomise(values, self._noise) if self._script is None else next(self._script).answer
        self.transcript.append(RecordedAnswer(reports))
        for i, (person, value) in enumerate(zip(people, values, strict=True)):
            (log_density,) = randomiser.log_density(_only(i, reports), value)
            self.by_person[person] += max(log_density, IMPOSSIBLE)
        return reports


class LocalWitness(_Listener, SimulatedVault):
    """A crowd that is overheard. Groups, which are drawn without looking at the data, are part of the script."""

    def _gather(self, X: Matrix, y: Floats, rounds: int) -> Crowd:
        return _Overheard(self, X, y, self._groups(len(y), rounds))

    def _groups(self, people: int, rounds: int) -> list[Indices]:
        groups: list[Indices] = super()._groups(people, rounds) if self._script is None else next(self._script).answer
        self.transcript.append(RecordedAnswer(groups))
        return groups


class _Overheard(Crowd):
    def __init__(self, witness: LocalWitness, X: Matrix, y: Floats, groups: list[Indices]) -> None:
        super().__init__(X, y, witness.problem, groups, witness._noise)
        self._witness = witness

    def _report(self, reporter: Reporter, people: Indices, theta: Floats) -> Any:
        values = reporter.values(self._X[people], self._y[people], theta)
        return self._witness._hear(reporter.randomiser, values, people)


class LabelWitness(_Listener, LabelVault):
    """Public rows, and labels that are overheard."""

    def _randomise(self, randomiser: Any, values: Values) -> Any:
        return self._hear(randomiser, values, range(len(values)))


def _only(i: int, reports: Any) -> Any:
    """The report of one person."""
    if isinstance(reports, Signs):
        return Signs(reports.at[i : i + 1], reports.signs[i : i + 1])
    return reports[i : i + 1]
