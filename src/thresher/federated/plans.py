"""From a curator's plan to that of parties: the same rounds and settings, the noise drawn jointly."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

from thresher.algorithms.protocol import Algorithm
from thresher.algorithms.stochastic import Stochastic
from thresher.privacy.plan import Plan
from thresher.privacy.releases import (
    BinomialGradient,
    BinomialMinimiser,
    GaussianGradient,
    GaussianMinimiser,
    JointRelease,
    PerturbedMinimiser,
    SkellamGradient,
    SkellamMinimiser,
)
from thresher.privacy.trust import Trust
from thresher.vaults.problem import linear_problem

__all__ = [
    "bounds_note",
    "fingerprint",
    "sizes_note",
    "with_joint_noise",
    "with_noise_for_the_smallest",
    "with_steps_for_own_noise",
]

JOINTLY: Mapping[type, tuple[type[JointRelease], type[JointRelease]]] = {
    GaussianGradient: (BinomialGradient, SkellamGradient),
    GaussianMinimiser: (BinomialMinimiser, SkellamMinimiser),
}
"""What parties can answer together, what is linear in their parts: with one copy of noise, and with shares of it."""


def with_joint_noise(plan: Plan, trust: Trust, adds_up: bool = False) -> Plan:
    """``plan`` with its Gaussian noise replaced by joint noise that takes the same budget.

    What ``adds_up`` over fits in a ledger sets no part of delta aside.
    """
    kinds = {type(release) for release in plan.releases}
    if len(plan.releases) != 1 or not kinds <= set(JOINTLY):
        asked = ", ".join(sorted({release.question.name for release in plan.releases}))
        raise ValueError(
            f"algorithm={plan.algorithm!r} asks for a {asked}, which parties cannot answer jointly; use one that asks "
            "for noisy gradients or one minimiser: 'dp-ight', 'noisy-frank-wolfe', 'dp-gd' or 'output-perturbation'"
        )
    (release,) = plan.releases
    if plan.problem.outputs > 1 and isinstance(release, GaussianMinimiser):
        raise ValueError(
            f"algorithm={plan.algorithm!r}: parties average minimisers of two classes, not of {plan.problem.outputs}; "
            "use one that asks for noisy gradients"
        )
    kind = JOINTLY[type(release)][trust == "skellam"]
    shared = kind.calibrated(plan.budget, release.times, plan.problem.dimension, adds_up)
    settings = {**plan.settings, "coordinates": plan.problem.dimension}  # for whoever verifies the certificate
    return replace(plan, releases=(shared,), settings=settings, trust=trust)


def with_noise_for_the_smallest(plan: Plan, algorithm: Algorithm, sizes: Sequence[int]) -> Plan:
    """``plan`` whose objective perturbation holds for each of parties that have so many rows.

    The fewer rows, the more of epsilon the curvature of one takes (erratum E-27): what the smallest party pays for
    holds for the others. Other releases cost the same however many rows there are.
    """
    if not any(isinstance(release, PerturbedMinimiser) for release in plan.releases):
        return plan
    smallest = algorithm.plan(replace(linear_problem(plan), n=min(sizes)), plan.budget)
    return replace(plan, releases=smallest.releases, settings=smallest.settings)


def with_steps_for_own_noise(plan: Plan, algorithm: Algorithm, parties: int) -> Plan:
    """``plan`` with a step that suits noise which each of so many parties adds: sqrt(parties) times a joint one."""
    if not isinstance(algorithm, Stochastic) or algorithm.step is not None:
        return plan
    (release,) = plan.releases
    sensitivity = release.sensitivity(plan.settings["clip"], plan.problem.n, plan.budget.adjacency)
    sd = release.multiplier * sensitivity * math.sqrt(parties)
    step = algorithm.default_step(linear_problem(plan), release.times, sd)
    return replace(plan, settings={**plan.settings, "step": step})


def sizes_note(sizes: Sequence[int]) -> str:
    """What certificates say about the numbers of rows."""
    return f"{len(sizes)} parties; how many rows each holds is public: {_list_of_sizes(sizes)}"


def bounds_note(sizes: Sequence[int]) -> str:
    """The same where parties hold so many rows at most."""
    return f"{len(sizes)} parties, which hold at most {_list_of_sizes(sizes)} rows: these bounds are public"


def _list_of_sizes(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes)) if len(sizes) <= 10 else f"from {min(sizes)} to {max(sizes)}"


def fingerprint(facts: object) -> str:
    """A hash by which machines know that they mean the same: 64 hexadecimal digits that tell these facts from others.

    Of a number nine digits count: the last ones of what is computed may differ between two machines' libraries.
    """
    return sha256(json.dumps(_plain(facts), sort_keys=True).encode()).hexdigest()


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return f"{value:.9g}"
    return value if isinstance(value, (bool, int, str)) or value is None else str(value)
