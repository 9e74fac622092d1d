"""The examples in docstrings of the privacy floor, the algorithms and the audit run, and print what they say."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module

import pytest

ROOMS = ("privacy", "algorithms", "audit")


def modules():
    for room in ROOMS:
        package = import_module(f"thresher.{room}")
        yield from (each.name for each in pkgutil.walk_packages(package.__path__, f"thresher.{room}."))


WITH_EXAMPLES = [name for name in modules() if ">>> " in (import_module(name).__loader__.get_source(name) or "")]


@pytest.mark.filterwarnings("ignore::thresher.ThresherWarning")
@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_run(name):
    failed, _ = doctest.testmod(import_module(name))
    assert failed == 0


def test_every_algorithm_has_one():
    algorithms = import_module("thresher.algorithms")
    kinds = {**algorithms.REGISTRY, **algorithms.DENSE, **algorithms.LOCAL}
    assert [name for name, kind in kinds.items() if ">>> " not in kind.__doc__] == []
