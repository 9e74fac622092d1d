"""The local vault: nobody but each person sees a row. It hears reports, and answers with their mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from thresher.privacy.arrays import Floats, Indices, Matrix
from thresher.privacy.budget import Adjacency, BudgetExceeded
from thresher.privacy.plan import Plan
from thresher.privacy.releases import Release
from thresher.vaults.people import Crowd, Reporter, refuse_hardened
from thresher.vaults.randomness import NoiseSource
from thresher.vaults.vault import Vault, no_watch

__all__ = ["LocalVault", "SimulatedVault"]


class LocalVault(Vault):
    """Each question goes to the next group of people, who report once in their lives; no row ever reaches the vault."""

    def gradient(self, theta: Floats, release: Release, clip: float) -> Floats:
        """The mean report of clip(r_i) x_i over the next group, residuals clipped to [-clip, clip]."""
        self._check_question(release, clip, theta)
        self._meter.charge(release, "local gradient")
        reporter = self._reporter(release, clip)
        total, people = np.zeros(self.problem.dimension), 0
        for count, reports in self._reports(reporter, theta):
            total += reporter.randomiser.total(reports)
            people += count
        radius = reporter.radius
        sensitivity = release.sensitivity(radius, self.problem.n, Adjacency.REPLACE_ONE)
        self._record(release, radius, sensitivity, reporter.randomiser.size * radius)
        return reporter.mean_gradient(total, people)

    def _reporter(self, release: Release, clip: float) -> Reporter:
        """How everybody answers this question."""
        return Reporter(self.problem, release, clip)

    def _reports(self, reporter: Reporter, theta: Floats) -> Iterable[tuple[int, Any]]:
        """Numbers of people and their reports."""
        raise NotImplementedError


class SimulatedVault(LocalVault):
    """A local vault over a crowd simulated in this process, streamed in blocks."""

    def __init__(
        self, X: Matrix, y: Floats, plan: Plan, noise: NoiseSource, watch: Callable[[], None] = no_watch
    ) -> None:
        refuse_hardened(noise)
        super().__init__(plan, noise, watch)
        rounds = sum(release.times for release in plan.releases)
        if rounds > len(y):
            raise ValueError(f"{rounds} rounds need at least as many people, there are {len(y)}; plan fewer rounds")
        self._crowd: Crowd | None = self._gather(X, y, rounds)

    def close(self) -> None:
        self._crowd = None

    def _gather(self, X: Matrix, y: Floats, rounds: int) -> Crowd:
        return Crowd(X, y, self.problem, self._groups(len(y), rounds), self._noise)

    def _groups(self, people: int, rounds: int) -> list[Indices]:
        """Everybody is in one group, drawn anew, so that the order of a table (sorted by target, say) says nothing."""
        order = np.argsort(self._noise.uniform(people), kind="stable")
        return [np.sort(group) for group in np.array_split(order, rounds)]

    def _reports(self, reporter: Reporter, theta: Floats) -> Iterable[tuple[int, Any]]:
        if self._crowd is None:
            raise BudgetExceeded("the vault is closed: its people are gone and it answers nothing more")
        return self._crowd.reports(reporter, theta)
