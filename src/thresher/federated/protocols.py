"""The protocols of "Distributed learning without distress" (thesis, chapter 6): an algorithm, and who adds noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from thresher.algorithms import DPGD, DPIGHT, NoisyFrankWolfe, OutputPerturbation
from thresher.algorithms.protocol import Algorithm

__all__ = ["DENSE", "SPARSE", "Protocol", "protocol_of"]

Noise = Literal["joint", "separate"]
"""One copy inside the secure aggregation, or one by each party."""


class Protocol(NamedTuple):
    """What runs, given the ridge and the rounds asked for (None: the algorithm's own rule), and who adds noise."""

    algorithm: Callable[[float | None, int | None], Algorithm]
    noise: Noise


SPARSE: Mapping[str, Protocol] = {
    "dp-ight": Protocol(lambda ridge, rounds: DPIGHT(iterations=rounds, ridge=ridge or 0.0), "joint"),
    "noisy-frank-wolfe": Protocol(lambda ridge, rounds: NoisyFrankWolfe(iterations=rounds), "joint"),
    "mpc-out-p": Protocol(lambda ridge, rounds: OutputPerturbation(ridge=ridge), "joint"),
}

DENSE: Mapping[str, Protocol] = {
    "mpc-grad-p": Protocol(lambda ridge, rounds: DPGD(passes=rounds), "joint"),
    "mpc-out-p": Protocol(lambda ridge, rounds: OutputPerturbation(ridge=ridge), "joint"),
    "local-grad-p": Protocol(lambda ridge, rounds: DPGD(passes=rounds), "separate"),
    "local-out-p": Protocol(lambda ridge, rounds: OutputPerturbation(ridge=ridge), "separate"),
}


def protocol_of(algorithm: str | Algorithm, known: Mapping[str, Protocol]) -> Protocol:
    """The protocol behind a name; an algorithm's instance runs jointly."""
    if isinstance(algorithm, str):
        if algorithm not in known:
            raise ValueError(f"algorithm={algorithm!r} must be one of {', '.join(map(repr, known))}, or an instance")
        return known[algorithm]
    if not (hasattr(algorithm, "plan") and hasattr(algorithm, "run")) or isinstance(algorithm, type):
        raise ValueError(f"algorithm={algorithm!r} must be a name or an instance such as DPIGHT(iterations=20)")
    instance: Any = algorithm
    return Protocol(lambda ridge, rounds: instance, "joint")
