"""Private categories: which texts of a column many rows hold, without a list of those it may hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from thresher.data.schema.draft import FEWEST
from thresher.models.estimator import PrivateEstimator
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.plan import Plan
from thresher.privacy.releases import GaussianCategories
from thresher.vaults import TextVault
from thresher.vaults.losses import SQUARED
from thresher.vaults.problem import LinearProblem

__all__ = ["ColumnCategories", "FrequentTexts"]


@dataclass(frozen=True)
class FrequentTexts:
    """The texts of every column whose noisy count reaches a threshold, each column with an equal part of the budget."""

    fewest: int = FEWEST
    name: ClassVar[str] = "categories"

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        release = GaussianCategories.calibrated(budget, times=problem.d)
        sd = release.multiplier * release.sensitivity(1.0, problem.n, budget.adjacency)
        settings = {"fewest": self.fewest, "threshold": max(1 + release.clearance * sd, float(self.fewest))}
        return Plan(self.name, problem, budget, (release,), settings)

    def run(self, vault: TextVault) -> list[list[str]]:
        release: Any = vault.plan.releases[0]
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
        self, *, epsilon: float = 1.0, delta: float | None = None, random_state: Any = None, verbose: int = 0
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, texts: NDArray[Any]) -> Self:
        """Learn the categories of the columns of ``texts``, an array of str in which "" is a gap."""
        return self._fit(texts, np.zeros(len(texts)), ())

    def _problem(self, n_samples: int, n_features: int, outputs: int) -> LinearProblem:
        bounds = Bounds(1.0, None, (-1.0, 1.0))  # a row adds 1 to one count of a column; there are no targets
        return LinearProblem(n_samples, n_features, bounds, sparsity=n_features, loss=SQUARED, intercept=False)

    def _algorithm(self, outputs: int) -> FrequentTexts:
        return FrequentTexts()

    def _vault(self) -> Any:
        return TextVault

    def _keep(self, theta: Any, plan: Plan) -> None:
        self.categories_: list[list[str]] = theta
