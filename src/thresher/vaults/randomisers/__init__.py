"""Local randomisers: channels from one person's value to one report that may leave the person's hands.

Each draws reports of a law of ``thresher.privacy.laws``, which states its privacy, is unbiased, and knows how likely
every report is for every value. Values are measured in units of a public bound: vectors of the unit ball or cube,
labels in [-1, 1].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from thresher.privacy.laws.hypercube import Signs
from thresher.vaults.randomisers.hypercube import Hypercube
from thresher.vaults.randomisers.labels import Classes, Gaussian, Laplace, Piecewise
from thresher.vaults.randomisers.sphere import Sphere

__all__ = [
    "VECTOR_RANDOMISERS",
    "Classes",
    "Gaussian",
    "Hypercube",
    "Laplace",
    "Piecewise",
    "Signs",
    "Sphere",
    "best_vector_randomiser",
]

VECTOR_RANDOMISERS: Mapping[str, Callable[[int, float], Sphere | Hypercube]] = MappingProxyType(
    {
        "duchi-l2": Sphere.duchi,
        "priv-unit": Sphere.best,
        "duchi-linf": Hypercube.duchi,
        "one-coordinate": Hypercube.one_coordinate,
        "sampled-signs": Hypercube.best,
    }
)


def best_vector_randomiser(dimension: int, epsilon: float, row_norm: float, entry_norm: float) -> str:
    """The name of the randomiser with the least error on vectors of l2 norm at most ``row_norm`` whose entries have
    public bounds of l2 norm ``entry_norm`` together. A rule of public constants, not of data."""
    for name, norm in (("row_norm", row_norm), ("entry_norm", entry_norm)):
        if not norm >= 0:
            raise ValueError(f"{name}={norm!r} must not be negative")
    ball = Sphere.best(dimension, epsilon).second_moment * row_norm**2
    cube = Hypercube.best(dimension, epsilon).second_moment / dimension * entry_norm**2
    return "priv-unit" if ball < cube else "sampled-signs"
