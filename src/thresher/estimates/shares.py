"""Private shares: of how many rows something is true, for many things at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from thresher.models.estimator import PrivateEstimator
from thresher.privacy.arrays import Floats
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.plan import Plan
from thresher.privacy.releases import GaussianGradient
from thresher.vaults import CentralVault
from thresher.vaults.losses import SQUARED
from thresher.vaults.problem import LinearProblem

__all__ = ["ColumnShares", "MeanFlags", "flags_of"]


@dataclass(frozen=True)
class MeanFlags:
    """The mean of rows of flags, each 0 or 1, with Gaussian noise: one gradient, of squares at 0 with targets of 1.

    At theta = 0 a row's gradient is (x'theta - 1) x = -x. Its norm is at most the square root of the flags it may set.
    """

    name: ClassVar[str] = "column-shares"

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        release = GaussianGradient.calibrated(budget, times=1)
        error = release.multiplier * release.sensitivity(problem.row_norm, problem.n, budget.adjacency)
        return Plan(self.name, problem, budget, (release,), {"standard_error": error})

    def run(self, vault: CentralVault) -> Floats:
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
        ledger: Any = None,
        dataset: str | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.most = most
        self.epsilon = epsilon
        self.delta = delta
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, flags: Any, *, groups: Any = None) -> Self:
        """Learn the shares of the rows of ``flags``, dense or sparse.

        ``groups`` holds the id of each row's person; a share is then the mean over people of the share of their rows.
        """
        rows = flags.shape[0]
        return self._fit(flags, np.ones(rows), (), self._owners(groups, rows))

    def _problem(self, n_samples: int, n_features: int, outputs: int) -> LinearProblem:
        bounds = Bounds(1.0, math.sqrt(self.most), (-1.0, 1.0))  # the targets are all 1
        return LinearProblem(n_samples, n_features, bounds, sparsity=n_features, loss=SQUARED, intercept=False)

    def _algorithm(self, outputs: int) -> MeanFlags:
        return MeanFlags()

    def _keep(self, theta: Floats, plan: Plan) -> None:
        self.shares_ = theta
        self.standard_error_: float = plan.settings["standard_error"]


def flags_of(codes: list[NDArray[Any]], kinds: int) -> Any:
    """Rows of flags, ``kinds`` for each column of codes: the one that a code below ``kinds`` names, none for -1."""
    found = np.array(codes)
    columns, rows = np.nonzero(found >= 0)
    flags = (np.ones(len(rows)), (rows, kinds * columns + found[columns, rows]))
    return sparse.csr_array(flags, shape=(found.shape[1], kinds * len(codes)))
