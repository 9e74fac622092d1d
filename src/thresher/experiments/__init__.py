"""The tables and figures of the papers, one file each."""

from __future__ import annotations

from importlib import import_module

from thresher.experiments.experiment import Experiment

__all__ = ["NAMES", "find_experiments"]

NAMES = tuple(f"x{number}" for number in (*range(1, 15), 17, 18, *range(20, 26)))


def find_experiments(names: list[str]) -> list[Experiment]:
    """By name, in any spelling of case; all of them if none is named."""
    wanted = [name.lower() for name in names] or list(NAMES)
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        raise ValueError(f"ID={unknown[0]!r} is no experiment; it must be one of {', '.join(NAMES)}, or list")
    return [import_module(f"thresher.experiments.x{int(name[1:]):02d}").EXPERIMENT for name in wanted]
