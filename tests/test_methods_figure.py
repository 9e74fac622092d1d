"""The figure of all methods: none is left out, and its table is what the benchmark measures."""

from __future__ import annotations

import re

import numpy as np

import methods
from thresher.algorithms import REGISTRY


def test_every_sparse_method_of_the_registry_is_drawn():
    assert {*methods.COLOURS, methods.NOT_PRIVATE} == set(REGISTRY)


def test_the_table_says_what_is_measured_at_epsilon_1(monkeypatch):
    """The seeds are those of the table; other linear algebra may round a close pick the other way, hence 20 %."""
    monkeypatch.setattr(methods, "COLOURS", {"pursuit": "", "peeling": ""})
    page = (methods.FOLDER / "methods.md").read_text()
    errors = [methods.of_one_draw(seed, epsilons=[1.0]) for seed in range(methods.DRAWS)]
    for name in ("pursuit", "peeling"):
        (row,) = re.findall(rf"^\| {name} \|(.*)\|$", page, flags=re.MULTILINE)
        printed = float(row.split("|")[2].split("(")[0])
        np.testing.assert_allclose(np.median([each[name] for each in errors]), printed, rtol=0.2)


def test_names_are_pushed_apart_and_no_further():
    places = methods.spread(np.array([0.0, 0.1, 2.0]), gap=1.0)
    np.testing.assert_allclose(places, [-0.45, 0.55, 2.0])
    np.testing.assert_allclose(methods.spread(np.array([0.0, 0.1, 1.0]), gap=1.0), [-0.633, 0.367, 1.367], atol=1e-3)
