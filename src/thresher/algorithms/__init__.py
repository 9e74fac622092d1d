"""The algorithms: each plans its releases and turns answers into a sparse vector. One file each."""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from thresher.algorithms.dp_ight import DPIGHT
from thresher.algorithms.ight import IGHT
from thresher.algorithms.output_perturbation import OutputPerturbation
from thresher.budget import Budget
from thresher.plan import Plan, Problem
from thresher.vaults import CentralVault

__all__ = ["DPIGHT", "IGHT", "REGISTRY", "Algorithm", "OutputPerturbation", "resolve"]


class Algorithm(Protocol):
    """A frozen dataclass of hyper-parameters. Touches no row, draws no noise of its own."""

    name: ClassVar[str]

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Every release and hyper-parameter, from public facts alone."""
        ...

    def run(self, vault: CentralVault) -> NDArray[np.float64]:
        """Ask what was planned and return the sparse vector: d coefficients and, last, the intercept's coordinate."""
        ...


REGISTRY: dict[str, type[Algorithm]] = {cls.name: cls for cls in (DPIGHT, OutputPerturbation, IGHT)}


def resolve(algorithm: str | Algorithm) -> Algorithm:
    """The algorithm behind a name ("auto" is "dp-ight", the most accurate one here) or the instance itself."""
    if not isinstance(algorithm, str):
        if not (hasattr(algorithm, "plan") and hasattr(algorithm, "run")) or isinstance(algorithm, type):
            raise ValueError(f"algorithm={algorithm!r} must be a name or an instance such as DPIGHT(iterations=20)")
        return algorithm
    name = "dp-ight" if algorithm == "auto" else algorithm
    if name not in REGISTRY:
        raise ValueError(f"algorithm={algorithm!r} must be one of {', '.join(map(repr, ('auto', *REGISTRY)))}")
    return REGISTRY[name]()
