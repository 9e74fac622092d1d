"""Runs of algorithms on draws of the planning law, over the cores."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from joblib import Parallel, delayed, parallel_config
from sklearn.base import clone

from thresher.algorithms import Algorithm
from thresher.models.sparse import SparseClassifier, SparseRegressor
from thresher.planning.law import PlanningLaw, SyntheticTable
from thresher.privacy.budget import is_whole
from thresher.privacy.progress import progress_bar
from thresher.privacy.warnings import ThresherWarning
from thresher.vaults.problem import linear_problem

__all__ = ["FRESH", "LARGEST", "Estimator", "Run", "SimulatedCase", "Simulation"]

Estimator: TypeAlias = SparseRegressor | SparseClassifier

LARGEST = 25_000_000
"""Cells (rows times columns) of the largest table that is simulated: 100 MB in single precision, and as much again in
the vault, in each process; 19 draws with all algorithms then take about a minute on two cores."""

FRESH = 2000
"""Rows on which a model is scored."""

FEWEST_DRAWS = 3
SMALL = 2_000_000  # cells over all draws below which more processes take longer to start than to work


@dataclass(frozen=True)
class SimulatedCase:
    """An algorithm by its name, on so many rows, with so large a budget (infinite: without privacy)."""

    algorithm: str
    n: int
    epsilon: float


@dataclass(frozen=True)
class Run:
    """How far one model was off; see ``thresher.planning.Prediction``."""

    error: float
    direction: float
    found: float
    score: float


@dataclass(frozen=True)
class Simulation:
    """What is simulated: the estimator with its bounds and budget, on tables of ``d`` columns that follow the law."""

    estimator: Estimator
    d: int
    signal: float
    algorithms: Mapping[str, str | Algorithm]
    """What ``algorithm=`` of the estimator is, by name."""
    draws: int
    random_state: int = 0
    n_jobs: int = -1
    verbose: int = 0

    def __post_init__(self) -> None:
        if not is_whole(self.draws) or self.draws < FEWEST_DRAWS:
            raise ValueError(f"draws={self.draws!r} must be a whole number of at least {FEWEST_DRAWS}")

    def check(self, cases: Sequence[SimulatedCase]) -> None:
        """Refuse what cannot be simulated, before anything is."""
        for case in cases:
            self.law(case)
            if case.n * self.d > LARGEST:
                raise ValueError(
                    f"n={case.n} rows of d={self.d} columns are {case.n * self.d:,} cells, more than the "
                    f"{LARGEST:,} that are simulated; ask for fewer, or plan without simulation"
                )

    def model(self, case: SimulatedCase, seed: int) -> Estimator:
        """A fresh estimator. The seed is no secret: there is no data to protect."""
        fresh: Estimator = clone(self.estimator).set_params(
            algorithm=self.algorithms[case.algorithm], epsilon=case.epsilon, n_public=None, random_state=seed, verbose=0
        )
        return fresh

    def law(self, case: SimulatedCase) -> PlanningLaw:
        """The law of the tables that a case is run on."""
        return PlanningLaw(linear_problem(self.model(case, 0).plan(case.n, self.d)), self.signal)

    def run(self, cases: Sequence[SimulatedCase]) -> dict[SimulatedCase, list[Run]]:
        """All draws of every case. Cases with the same rows share their draws, and all share the noise's seeds."""
        self.check(cases)
        by_rows: dict[int, list[SimulatedCase]] = {}
        for case in cases:
            by_rows.setdefault(case.n, []).append(case)
        tasks = [(together, draw) for together in by_rows.values() for draw in range(self.draws)]
        runs: dict[SimulatedCase, list[Run]] = {case: [] for case in cases}
        cells = sum(together[0].n * self.d for together, _ in tasks)
        jobs = 1 if cells < SMALL else self.n_jobs
        with (
            progress_bar("simulating", len(tasks), enabled=self.verbose > 0) as advance,
            parallel_config(backend="loky", n_jobs=jobs, inner_max_num_threads=1 if jobs != 1 else None),
        ):
            for found in Parallel(return_as="generator")(delayed(self._draw)(*task) for task in tasks):
                for case, run in found.items():
                    runs[case].append(run)
                advance()
        return runs

    def _draw(self, cases: Sequence[SimulatedCase], draw: int) -> dict[SimulatedCase, Run]:
        law = self.law(cases[0])
        source, noise = np.random.SeedSequence((self.random_state, draw)).spawn(2)
        rng = np.random.default_rng(source)
        theta = law.coefficients(rng)
        fresh = law.rows(rng, FRESH, theta)
        drawn = law.rows(rng, cases[0].n, theta)
        seed = int(noise.generate_state(1)[0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ThresherWarning)  # nothing here is private
            return {case: score_run(self.model(case, seed).fit(drawn.X, drawn.y), law, fresh) for case in cases}


def score_run(model: Estimator, law: PlanningLaw, fresh: SyntheticTable) -> Run:
    """How far a fitted model is off, columns in units of their widths."""
    support = np.flatnonzero(fresh.theta)
    truth, found = fresh.theta * law.widths, np.ravel(model.coef_) * law.widths
    lengths = np.linalg.norm(found) * np.linalg.norm(truth)
    cosine = found @ truth / lengths if lengths else 0.0
    return Run(
        error=float(np.linalg.norm(found - truth) / np.linalg.norm(truth)),
        direction=float(np.sqrt(1 - min(max(cosine, 0.0), 1.0) ** 2)),
        found=float(np.isin(support, model.support_).mean()),
        score=float(model.score(fresh.X, fresh.y)),
    )
