"""What an algorithm is."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from thresher.privacy.budget import Budget
from thresher.privacy.plan import Plan
from thresher.vaults import CentralVault
from thresher.vaults.problem import LinearProblem

__all__ = ["Algorithm", "LocalAlgorithm"]


class Algorithm(Protocol):
    """A frozen dataclass of hyper-parameters. Touches no row, draws no noise of its own."""

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        """Every release and hyper-parameter, from public facts alone."""
        ...

    def run(self, vault: CentralVault) -> NDArray[np.float64]:
        """Ask what was planned and return the sparse vector: d coefficients and, last, the intercept's coordinate."""
        ...


class LocalAlgorithm(Protocol):
    """The same over a vault that hears reports: a local one, or one of labels (``thresher.vaults``)."""

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan: ...

    def run(self, vault: Any) -> NDArray[np.float64]: ...
