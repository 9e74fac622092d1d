"""The vault of a search: it fits on some of its rows, scores on the others, and tells of one trial only."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from thresher.data.sparse_structure import by_rows
from thresher.privacy.arrays import Floats, Indices, Matrix
from thresher.privacy.budget import Adjacency
from thresher.privacy.plan import Answer, Plan
from thresher.privacy.releases import GaussianScore, RandomTrials
from thresher.privacy.sensitivity import most_present, round_off
from thresher.vaults.central.rows import Shares, margins_of
from thresher.vaults.central.vault import CentralVault
from thresher.vaults.engines import engine_for
from thresher.vaults.problem import LinearProblem, linear_problem
from thresher.vaults.randomness import NoiseSource
from thresher.vaults.scoring import Scoring
from thresher.vaults.vault import Vault, no_watch

__all__ = ["Candidate", "HeldOut", "Trial", "Trials"]

Part = tuple[Matrix, Floats, Indices | None]
"""Rows, their targets and, where the unit is a person, whose they are."""

HIGHEST = 1.0  # of a row's score


class Candidate(NamedTuple):
    """What a trial may do: an algorithm (anything with ``run``), and its plan for the rows that are fitted."""

    algorithm: Any
    plan: Plan


class Trial(NamedTuple):
    """What a trial found. Only the best one's leaves."""

    candidate: Candidate
    theta: Floats
    score: float
    answers: tuple[Answer, ...]
    published: dict[str, object]


class HeldOut(Vault):
    """Rows that nothing is fitted to; answers how well a model that was released does on them."""

    def __init__(self, X: Matrix, y: Floats, plan: Plan, noise: NoiseSource, owners: Indices | None = None) -> None:
        super().__init__(plan, noise)
        self._X, self._y = X, y
        self._shares = None if owners is None else Shares(owners, noise)

    def close(self) -> None:
        self._X, self._y, self._shares = None, np.empty(0), None

    def score(self, theta: Floats, problem: LinearProblem, scoring: Scoring, release: GaussianScore) -> float:
        """1/2 + (1/n) sum over rows of (their score - 1/2) + noise, each score in [0, 1] whatever the row is.

        Where people are the unit, a person's score is the mean of those of their rows.
        """
        if self._X is None:
            raise RuntimeError("the vault is closed: its rows are gone and it answers nothing more")
        self._meter.charge(release, "score")
        coefficients, intercepts = problem.model_of(theta)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not a number scores 0
            margins = margins_of(engine_for(self._X, 0.0), coefficients.T) + intercepts
            margins = margins if problem.outputs > 1 else margins[:, 0]
            scored = margins if problem.loss.classifies else problem.loss.inverse_link(margins)
        scores = np.clip(scoring.of_rows(scored, self._y), 0.0, HIGHEST) - HIGHEST / 2
        scores = scores if self._shares is None else self._shares.times(scores)
        n, adjacency = self.problem.n, self._plan.budget.adjacency
        sensitivity = release.sensitivity(HIGHEST, n, adjacency)
        error = round_off(n, HIGHEST, most_present(n, adjacency))
        mean = np.array([HIGHEST / 2 + math.fsum(scores) / n])
        noisy, scale = self._noise.gaussian(mean, sensitivity, release.multiplier, error)
        self._record(release, HIGHEST, sensitivity, scale)
        return float(noisy[0])


class Trials(Vault):
    """All rows of a search. Who is fitted and who is scored is drawn once, by lot."""

    of_people = True

    def __init__(
        self, X: Matrix, y: Floats, plan: Plan, noise: NoiseSource, watch: Callable[[], None] = no_watch,
        owners: Indices | None = None,
    ) -> None:  # fmt: skip
        super().__init__(plan, noise, watch)
        self._X = by_rows(X) if sparse.issparse(X) else X
        self._y = np.asarray(y, dtype=np.float64)
        self._owners = owners

    def close(self) -> None:
        self._X, self._y, self._owners = None, np.empty(0), None

    def best(self, release: RandomTrials, candidates: Sequence[Candidate], scoring: Scoring) -> Trial:
        """The trial with the best noisy score; its answers are all that is recorded.

        A trial that fails is an outcome like any other, the worst: what went wrong, and for whom, is not told.
        """
        if self._X is None:
            raise RuntimeError("the vault is closed: its rows are gone and it answers nothing more")
        priced = list(zip(release.fits, release.orders or ((),) * len(release.fits), strict=True))
        for candidate in candidates:
            asked = candidate.plan.releases, candidate.plan.order or ()  # which the meter of its vault holds to
            if (asked not in priced and (asked[0], ()) not in priced) or candidate.plan.problem.n != release.fit_rows:
                raise ValueError(f"{candidate.plan.algorithm}: the search is not priced for this plan of a candidate")
        self._meter.charge(release, "trials")
        fitted, held_out = self._parts(release)
        best: Trial | None = None
        for _ in range(self._noise.trials(release.trials)):
            candidate = candidates[self._noise.whole_number(len(candidates))]
            trial = self._trial(candidate, fitted, held_out, release, scoring)
            if trial is not None and (best is None or trial.score > best.score):
                best = trial
        if best is None:
            raise RuntimeError(
                "no trial came to a result, so there is no model; the budget stays spent. Try the candidates with "
                "estimator.fit on data that need no protection"
            )
        for answer in best.answers:
            self._meter.record(answer)
        self.chosen = best.candidate.plan
        return best

    def _parts(self, release: RandomTrials) -> tuple[Part, Part]:
        """The rows to fit and the rows to score.

        Replace-one: a random subset of public size. Add-remove: each row draws its own part, so that nobody else's
        depends on whether a row is there (see the vault's votes). Where people are the unit, all rows of a
        person are in one part.
        """
        present = len(self._y) if self._owners is None else int(self._owners.max(initial=-1)) + 1
        fixed = self._plan.budget.adjacency is Adjacency.REPLACE_ONE
        share = release.score_rows / (release.fit_rows + release.score_rows)
        scored = np.zeros(present, dtype=bool)
        scored[self._noise.batch(present, share, "fixed" if fixed else "poisson")] = True
        scored = scored if self._owners is None else scored[self._owners]
        return self._part(~scored), self._part(scored)

    def _part(self, taken: NDArray[np.bool_]) -> Part:
        rows = np.flatnonzero(taken)
        owners = None if self._owners is None else np.unique(self._owners[rows], return_inverse=True)[1]
        return self._X[rows], self._y[rows], owners

    def _trial(
        self, candidate: Candidate, fitted: Part, held_out: Part, release: RandomTrials, scoring: Scoring
    ) -> Trial | None:
        """None if it failed. Warnings would tell of other trials than the best, and of their number."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self._run_trial(candidate, fitted, held_out, release, scoring)
        except Exception:
            return None

    def _run_trial(
        self, candidate: Candidate, fitted: Part, held_out: Part, release: RandomTrials, scoring: Scoring
    ) -> Trial:
        X, y, owners = fitted
        with CentralVault(X, y, candidate.plan, self._noise, owners=owners) as rows:
            theta = candidate.algorithm.run(rows)
        X, y, owners = held_out
        with HeldOut(X, y, score_plan(candidate.plan, release), self._noise, owners) as others:
            score = others.score(theta, linear_problem(candidate.plan), scoring, release.score)
        return Trial(candidate, theta, score, (*rows.answers, *others.answers), rows.published)


def score_plan(fit: Plan, release: RandomTrials) -> Plan:
    """What is asked of the held-out rows after ``fit``."""
    problem = replace(fit.problem, n=release.score_rows)
    return Plan("score", problem, fit.budget, (release.score,))
