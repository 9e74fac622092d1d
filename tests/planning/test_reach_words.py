"""Needs in words."""

import pytest

from thresher.cli.commands.plan import reach_text
from thresher.planning import Reach


@pytest.mark.parametrize(
    ("over", "low", "high", "about", "words"),
    [
        ("epsilon", 0.5, 0.7071, 0.6412, "0.64 (0.5 to 0.71)"),
        ("rows", 1600.0, 2263.0, 1722.4, "1722 (1600 to 2263)"),
        ("rows", None, 30.0, None, "30 or less"),
        ("epsilon", 64.0, None, None, "more than 64"),
        ("epsilon", 16.0, None, 20.0, "20 or more"),
        ("epsilon", 1.0, 4.0, None, "(1 to 4)"),
    ],
)
def test_needs_in_words(over, low, high, about, words):
    assert reach_text(Reach("pursuit", over, 0.2, low, high, about, (0.5, 64.0))) == words
