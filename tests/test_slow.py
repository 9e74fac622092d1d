"""What ``./dev test --fast`` leaves out is there, and is what takes longest."""

from __future__ import annotations

import re

import pytest

from repository import ROOT, TESTS
from slow_tests import FAST, slow_tests


@pytest.mark.parametrize("name", (TESTS / "slow.txt").read_text().splitlines())
def test_what_is_slow_is_there(name):
    """If not: tools/slow_tests.py writes the list."""
    path, function = name.split("::")
    assert re.search(rf"^def {function}\(", (ROOT / path).read_text(), flags=re.MULTILINE)


def test_the_slowest_functions_are_left_out_until_the_others_are_quick():
    log = f"""
{FAST * 0.6:.2f}s call     tests/test_a.py::test_one
{FAST * 0.3:.2f}s setup    tests/test_b.py::test_many[1-x]
{FAST * 0.4:.2f}s call     tests/test_b.py::test_many[2]
{FAST * 0.3:.2f}s call     tests/test_c.py::test_little
"""
    assert slow_tests(log) == ["tests/test_b.py::test_many"]
    assert slow_tests(log + log) == ["tests/test_a.py::test_one", "tests/test_b.py::test_many"]
    assert slow_tests("0.02s call tests/test_a.py::test_one") == []
