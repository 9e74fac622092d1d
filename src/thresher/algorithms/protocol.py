"""What an algorithm is."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from thresher.budget import Budget
from thresher.plan import Plan, Problem
from thresher.vaults import CentralVault

__all__ = ["Algorithm"]


class Algorithm(Protocol):
    """A frozen dataclass of hyper-parameters. Touches no row, draws no noise of its own."""

    @property
    def name(self) -> str: ...

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Every release and hyper-parameter, from public facts alone."""
        ...

    def run(self, vault: CentralVault) -> NDArray[np.float64]:
        """Ask what was planned and return the sparse vector: d coefficients and, last, the intercept's coordinate."""
        ...
