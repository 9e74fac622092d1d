"""The vault of one data set, opened for every run of a game: its rows are the same each time and are clipped once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from thresher.audit.joint_witness import Consortium
from thresher.audit.transcript import RecordedAnswer
from thresher.privacy.arrays import Floats, Matrix
from thresher.privacy.plan import Meter, Plan
from thresher.vaults import CentralVault
from thresher.vaults.randomness import NoiseSource

__all__ = ["opener"]

Script = Iterable[RecordedAnswer]


def opener(witness: Any, X: Matrix, y: Floats, plan: Plan, noise: NoiseSource) -> Callable[[Script | None], Any]:
    """A function that opens a witness of these rows, given the script or None: each with a meter of its own."""
    if not issubclass(witness, CentralVault | Consortium):
        return lambda script: witness(X, y, plan, noise, script=script)
    never_asked = witness(X, y, plan, noise)

    def reopen(script: Script | None) -> Any:
        fresh = _copy_of(never_asked)
        fresh._script = None if script is None else iter(script)
        return fresh

    return reopen


def _copy_of(never_asked: Any) -> Any:
    """A vault of the same clipped rows that shares nothing with it that an answer or its closing changes."""
    fresh = object.__new__(type(never_asked))
    for name, held in vars(never_asked).items():
        fresh.__dict__[name] = held.copy() if isinstance(held, list | dict) else held
    fresh._meter = Meter(never_asked.plan)
    if isinstance(fresh, Consortium):
        fresh._parties = [_copy_of(party) for party in never_asked._parties]
    return fresh
