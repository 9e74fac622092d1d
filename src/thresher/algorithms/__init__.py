"""The algorithms: each plans its releases and turns answers into a sparse vector. One file each."""

from __future__ import annotations

from collections.abc import Callable

from thresher.algorithms.auto import Auto
from thresher.algorithms.dp_ight import DPIGHT
from thresher.algorithms.dpsl_kt import DPSLKT
from thresher.algorithms.frank_wolfe import FrankWolfe
from thresher.algorithms.ight import IGHT
from thresher.algorithms.noisy_frank_wolfe import NoisyFrankWolfe
from thresher.algorithms.one_vs_rest import OneVsRest
from thresher.algorithms.output_perturbation import OutputPerturbation
from thresher.algorithms.peeling import Peeling
from thresher.algorithms.protocol import Algorithm
from thresher.algorithms.pursuit import Pursuit
from thresher.algorithms.two_stage import TwoStage

__all__ = [
    "DPIGHT",
    "DPSLKT",
    "IGHT",
    "REGISTRY",
    "Algorithm",
    "FrankWolfe",
    "NoisyFrankWolfe",
    "OutputPerturbation",
    "Peeling",
    "Pursuit",
    "TwoStage",
    "resolve",
]


REGISTRY: dict[str, Callable[[], Algorithm]] = {
    cls.name: cls
    for cls in (Pursuit, DPIGHT, Peeling, OutputPerturbation, TwoStage, DPSLKT, FrankWolfe, NoisyFrankWolfe, IGHT)
}


def resolve(algorithm: str | Algorithm, outputs: int = 1) -> Algorithm:
    """The algorithm behind a name or the instance itself; for several outputs, one per class if it knows no better."""
    found = _found(algorithm)
    return found if outputs == 1 or getattr(found, "many_outputs", False) else OneVsRest(found)


def _found(algorithm: str | Algorithm) -> Algorithm:
    if not isinstance(algorithm, str):
        if not (hasattr(algorithm, "plan") and hasattr(algorithm, "run")) or isinstance(algorithm, type):
            raise ValueError(f"algorithm={algorithm!r} must be a name or an instance such as DPIGHT(iterations=20)")
        return algorithm
    if algorithm == "auto":
        return Auto()
    if algorithm not in REGISTRY:
        raise ValueError(f"algorithm={algorithm!r} must be one of {', '.join(map(repr, ('auto', *REGISTRY)))}")
    return REGISTRY[algorithm]()
