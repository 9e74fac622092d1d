"""The algorithms a module can be trained with, and public rules for what a caller leaves open."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from thresher.algorithms import ERM

__all__ = ["TRAINERS", "with_neural_defaults"]

TRAINERS = {name: kind for name, kind in ERM.items() if hasattr(kind, "advance")}

CLIP = 1.0
DIFFERENCE_CLIP = 0.1
STEPS = {"dp-adam": 2e-3, "dp-lsadam": 2e-3}
STEP = 0.5
PASSES = 10.0
ROUNDS_PER_PASS = 30


def with_neural_defaults(algorithm: Any, n: int) -> Any:
    """The same, with a rule of n for every hyper-parameter that is None."""
    rules = {
        "passes": PASSES,
        "batch": max(1, n // ROUNDS_PER_PASS),
        "step": STEPS.get(algorithm.name, STEP),
        "clip": CLIP,
        "difference_clip": DIFFERENCE_CLIP,
    }
    if algorithm.name == "dp-gd":  # has no batches
        del rules["batch"], rules["passes"]
    left_open = {field.name for field in fields(algorithm) if getattr(algorithm, field.name) is None}
    return replace(algorithm, **{name: value for name, value in rules.items() if name in left_open})
