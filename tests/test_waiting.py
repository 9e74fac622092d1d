"""Tests judge by what happened: a machine that is busy makes them slow, and nothing else."""

import re
from pathlib import Path

import pytest

from repository import TESTS

CLOCKS = r"\b(monotonic|perf_counter|process_time|time\.time)(_ns)?\("
ALLOWED = {
    "waiting.py",  # waits for minutes before it says that something hangs
    "spending.py",  # spreads moments over as long as a fit takes, and asserts nothing
    Path(__file__).name,
}


@pytest.mark.parametrize("path", sorted(TESTS.rglob("*.py")), ids=lambda path: str(path.relative_to(TESTS)))
def test_no_test_reads_a_clock(path):
    assert path.name in ALLOWED or not re.search(CLOCKS, path.read_text(encoding="utf-8"))
