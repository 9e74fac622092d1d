"""RRPSGD (Zhang, Zheng, Mou and Wang, IJCAI 2017): random-round private SGD."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from thresher.algorithms.stochastic import Output, State, Stochastic
from thresher.privacy.arrays import Floats
from thresher.vaults import CentralVault

__all__ = ["RRPSGD"]


@dataclass(frozen=True)
class RRPSGD(Stochastic):
    """theta_{t+1} = theta_t - step * (gradient of one random row + noise); the model is theta_R, R uniform on 1..T.

    The paper prices T = n^2 rounds by strong composition; here the accountant prices the rounds that are planned.
    """

    batch: int | None = 1
    output: Output = "random"

    name: ClassVar[str] = "rrpsgd"

    def _move(self, vault: CentralVault, state: State, gradient: Floats) -> State:
        return {**state, "theta": state["theta"] - vault.plan.settings["step"] * gradient}
