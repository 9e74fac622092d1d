"""What columns hold, within a stated budget: shares of flags, ranges of numbers, texts that many rows have.

Each is a fit of its own kind: an algorithm that plans and asks, and an estimator that supplies the public facts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from thresher.data.schema.draft import FEWEST, TAIL
from thresher.data.typing import Column, Values
from thresher.ledger import Ledger
from thresher.models.estimator import PrivateEstimator
from thresher.models.fit import Design
from thresher.models.scaler import TAILS, ColumnRanges
from thresher.privacy.arrays import Floats
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.facts import PublicFacts
from thresher.privacy.plan import Plan, table_facts
from thresher.privacy.releases import GaussianCategories, GaussianGradient
from thresher.vaults import CentralVault, TextVault
from thresher.vaults.losses import SQUARED
from thresher.vaults.problem import LinearProblem

__all__ = [
    "ColumnBounds", "ColumnCategories", "ColumnShares", "FrequentTexts", "MeanFlags", "WidestRanges", "flags_of",
]  # fmt: skip

SURELY = 2  # rank errors: an end is off by one with a chance of up to 1/20, by two with one of 1/(400 levels)


# -- shares -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MeanFlags:
    """The mean of rows of flags, each 0 or 1, with Gaussian noise: one gradient, of squares at 0 with targets of 1.

    At theta = 0 a row's gradient is (x'theta - 1) x = -x. Its norm is at most the square root of the flags it may set.
    """

    name: ClassVar[str] = "column-shares"

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        """One gradient for the whole budget."""
        release = GaussianGradient.calibrated(budget, times=1)
        error = release.multiplier * release.sensitivity(problem.row_norm, problem.n, budget.adjacency)
        return Plan(self.name, problem, budget, (release,), {"standard_error": error})

    def run(self, vault: CentralVault) -> Floats:
        """The noisy mean."""
        (release,) = vault.plan.releases
        return -vault.gradient(vault.problem.origin(), release, vault.problem.row_norm)


class ColumnShares(PrivateEstimator):
    """The share of rows that set each of several flags, within a stated budget.

    Parameters
    ----------
    most : int
        How many flags a row sets at most: public, and enforced.
    epsilon, delta, ledger, dataset, random_state, verbose
        As of every private fit.

    Attributes
    ----------
    shares_
        One for each flag, unbiased: a share may come out below 0 or above 1.
    standard_error_
        Of each share: that of the noise.
    certificate_, plan_, algorithm_
        What it cost, what was planned, and what ran.
    """

    def __init__(
        self,
        most: int,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        ledger: Ledger | str | None = None,
        dataset: str | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.most = most
        self.epsilon = epsilon
        self.delta = delta
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, flags: Floats | sparse.csr_array, *, groups: Column = None) -> Self:
        """Learn the shares of the rows of ``flags``, dense or sparse.

        ``groups`` holds the id of each row's person; a share is then the mean over people of the share of their rows.
        """
        rows = flags.shape[0]
        return self._fit(flags, np.ones(rows), (), self._people_of(groups, rows))

    def _problem(self, n_samples: int, n_features: int, outputs: int) -> LinearProblem:
        bounds = Bounds(1.0, math.sqrt(self.most), (-1.0, 1.0))  # the targets are all 1
        return LinearProblem(n_samples, n_features, bounds, sparsity=n_features, loss=SQUARED, intercept=False)

    def _algorithm(self, outputs: int) -> MeanFlags:
        return MeanFlags()

    def _keep(self, theta: Floats, plan: Plan) -> None:
        self.shares_ = theta
        self.standard_error_: float = plan.settings["standard_error"]


def flags_of(codes: Sequence[NDArray[np.integer]], kinds: int) -> sparse.csr_array:
    """Rows of flags, ``kinds`` for each column of codes: the one that a code below ``kinds`` names, none for -1."""
    found = np.array(codes)
    columns, rows = np.nonzero(found >= 0)
    flags = (np.ones(len(rows)), (rows, kinds * columns + found[columns, rows]))
    return sparse.csr_array(flags, shape=(found.shape[1], kinds * len(codes)))


# -- ranges -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WidestRanges:
    """Ranges that leave out as few rows as they can: two rank errors at each end, and not less than a draft does."""

    name: ClassVar[str] = ColumnRanges.name
    ranges: ClassVar[ColumnRanges] = ColumnRanges(quantiles=None, centre=True)

    def plan(self, problem: PublicFacts, budget: Budget) -> Plan:
        """The quantiles, with as little left out as their noise allows."""
        usual = self.ranges.plan(problem, budget)
        tail = min(max(SURELY * usual.settings["rank_error"] / problem.n, TAIL), TAILS[1])
        return replace(usual, settings={**usual.settings, "quantiles": [tail, 1 - tail]})

    def run(self, vault: CentralVault) -> Floats:
        """Centres and ends of all columns."""
        return self.ranges.run(vault)


class ColumnBounds(PrivateEstimator):
    """The range of each column of numbers, and its median, within a stated budget.

    Parameters
    ----------
    largest : float or one per column
        A public bound on |x_ij|, as generous as you like; numbers closer to 0 than 1e-9 of it count as 0.
    epsilon, delta, random_state, verbose
        As of every private fit.

    Attributes
    ----------
    low_, high_, median_
        For each column, of public levels: see ``thresher.models.scaler.ColumnRanges``.
    certificate_, plan_, algorithm_
        What it cost, what was planned, and what ran.
    """

    def __init__(
        self,
        largest: float | Sequence[float],
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.largest = largest
        self.epsilon = epsilon
        self.delta = delta
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Floats) -> Self:
        """Learn the ranges of the columns of ``X``, finite numbers."""
        return self._fit(X, np.zeros(len(X)), ())

    def _problem(self, n_samples: int, n_features: int, outputs: int) -> PublicFacts:
        largest = np.broadcast_to(np.asarray(self.largest, dtype=float), n_features)
        bounds = Bounds(tuple(largest.tolist()), None, (-1.0, 1.0))  # the targets are all 0
        return PublicFacts(n_samples, n_features, bounds)

    def _algorithm(self, outputs: int) -> WidestRanges:
        return WidestRanges()

    def _plan_design(self, design: Design) -> Plan:
        return design.plan()  # one of three fits, which share a budget in zCDP

    def _keep(self, theta: Floats, plan: Plan) -> None:
        self.median_, self.low_, self.high_ = theta * table_facts(plan).entry_bounds


# -- texts ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FrequentTexts:
    """The texts of every column whose noisy count reaches a threshold, each column with an equal part of the budget."""

    fewest: int = FEWEST
    name: ClassVar[str] = "categories"

    def plan(self, problem: PublicFacts, budget: Budget) -> Plan:
        """The counts of every column, and the threshold that keeps rare texts unpublished."""
        release = GaussianCategories.calibrated(budget, times=problem.d)
        sd = release.multiplier * release.sensitivity(1.0, problem.n, budget.adjacency)
        settings = {"fewest": self.fewest, "threshold": max(1 + release.clearance * sd, float(self.fewest))}
        return Plan(self.name, problem, budget, (release,), settings)

    def run(self, vault: TextVault) -> list[list[str]]:
        """The texts of each column."""
        release = cast(GaussianCategories, vault.plan.releases[0])
        return [vault.categories(j, release, self.fewest) for j in range(vault.problem.d)]


class ColumnCategories(PrivateEstimator):
    """The texts of each column that many rows hold, within a stated budget.

    Parameters
    ----------
    epsilon, delta, random_state, verbose
        As of every private fit.

    Attributes
    ----------
    categories_
        For each column a list of texts, the most frequent first, as far as the noise can tell.
    certificate_, plan_, algorithm_
        What it cost, what was planned, and what ran. ``plan_.settings["threshold"]`` is the number of rows above which
        a text is more likely listed than not.
    """

    def __init__(
        self, *, epsilon: float = 1.0, delta: float | None = None, random_state: int | None = None, verbose: int = 0
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, texts: Values) -> Self:
        """Learn the categories of the columns of ``texts``, an array of str in which "" is a gap."""
        return self._fit(texts, np.zeros(len(texts)), ())

    def _problem(self, n_samples: int, n_features: int, outputs: int) -> PublicFacts:
        bounds = Bounds(1.0, None, (-1.0, 1.0))  # a row adds 1 to one count of a column; there are no targets
        return PublicFacts(n_samples, n_features, bounds)

    def _algorithm(self, outputs: int) -> FrequentTexts:
        return FrequentTexts()

    def _vault(self) -> type[TextVault]:
        return TextVault

    def _keep(self, theta: Any, plan: Plan) -> None:
        self.categories_: list[list[str]] = theta
