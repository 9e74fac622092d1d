"""Write tests/slow.txt: which tests ``./dev test --fast`` leaves out, from the log of a whole run that lists durations.

Run: ./dev test --all --durations=0 --durations-min=0.02 >log; ./dev run python tools/slow_tests.py log
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

SLOW = Path(__file__).parent.parent / "tests" / "slow.txt"
DURATION = re.compile(r"^ *([0-9.]+)s (?:call|setup|teardown) +([^\[\n]+)", re.MULTILINE)
FAST = 100.0  # seconds of one processor that the tests which are left in may take together


def slow_tests(log: str) -> list[str]:
    """The test functions, all cases of one together, without which the others take no longer than FAST.

    A function's setup counts as its own, and the slowest functions go first.
    """
    taken: defaultdict[str, float] = defaultdict(float)
    for seconds, name in DURATION.findall(log):
        taken[name.strip()] += float(seconds)
    left, slow = sum(taken.values()), []
    for name in sorted(taken, key=taken.__getitem__, reverse=True):
        if left <= FAST:
            break
        slow.append(name)
        left -= taken[name]
    return sorted(slow)


if __name__ == "__main__":
    SLOW.write_text("".join(f"{name}\n" for name in slow_tests(Path(sys.argv[1]).read_text(errors="replace"))))
