"""How a protocol of chapter 6 is planned and opened without a front door, so that its iterates can be watched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thresher.federated.aggregation import ReferenceAggregation
from thresher.federated.plans import with_joint_noise, with_noise_for_the_smallest
from thresher.federated.protocols import VAULTS, Noise
from thresher.federated.vault import GatheredVault, Party
from thresher.privacy.budget import Budget
from thresher.privacy.plan import Plan
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

__all__ = ["open_vault", "plan_for"]


def plan_for(algorithm: Any, kind: Noise, problem: LinearProblem, budget: Budget, sizes: Sequence[int]) -> Plan:
    plan = with_noise_for_the_smallest(algorithm.plan(problem, budget), algorithm, sizes)
    return with_joint_noise(plan, "reference") if issubclass(VAULTS[kind], GatheredVault) else plan


def open_vault(kind: Noise, parties: Sequence[Party], sizes: Sequence[int], plan: Plan, noise: NoiseSource) -> Any:
    vault = VAULTS[kind]
    if issubclass(vault, GatheredVault):
        return vault(parties, sizes, ReferenceAggregation(noise), plan, noise)
    return vault(parties, plan, noise)
