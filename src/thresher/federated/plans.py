"""From a curator's plan to that of parties: the same rounds and settings, the noise drawn jointly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from thresher.plan import Plan
from thresher.releases import (
    BinomialGradient,
    BinomialMinimiser,
    GaussianGradient,
    GaussianMinimiser,
    JointRelease,
    SkellamGradient,
    SkellamMinimiser,
)
from thresher.trust import Trust

__all__ = ["bounds_note", "joint", "sizes_note"]

JOINTLY: Mapping[type, tuple[type[JointRelease], type[JointRelease]]] = {
    GaussianGradient: (BinomialGradient, SkellamGradient),
    GaussianMinimiser: (BinomialMinimiser, SkellamMinimiser),
}
"""What parties can answer together, what is linear in their parts: with one copy of noise, and with shares of it."""


def joint(plan: Plan, trust: Trust) -> Plan:
    """``plan`` with its Gaussian noise replaced by joint noise that takes the same budget."""
    kinds = {type(release) for release in plan.releases}
    if len(plan.releases) != 1 or not kinds <= set(JOINTLY):
        asked = ", ".join(sorted({release.question for release in plan.releases}))
        raise ValueError(
            f"algorithm={plan.algorithm!r} asks for a {asked}, which parties cannot answer jointly; use one that asks "
            "for noisy gradients or one minimiser: 'dp-ight', 'noisy-frank-wolfe', 'dp-gd' or 'output-perturbation'"
        )
    (release,) = plan.releases
    kind = JOINTLY[type(release)][trust == "skellam"]
    shared = kind.calibrated(plan.budget, release.times, plan.problem.dimension)
    return replace(plan, releases=(shared,), trust=trust)


def sizes_note(sizes: Sequence[int]) -> str:
    """What certificates say about the numbers of rows."""
    return f"{len(sizes)} parties; how many rows each holds is public: {_listed(sizes)}"


def bounds_note(sizes: Sequence[int]) -> str:
    """The same where parties hold so many rows at most."""
    return f"{len(sizes)} parties, which hold at most {_listed(sizes)} rows: these bounds are public"


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes)) if len(sizes) <= 10 else f"from {min(sizes)} to {max(sizes)}"
