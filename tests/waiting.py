"""Waiting for what will happen, however busy the machine is: no test judges by a clock."""

from __future__ import annotations

import time

MINUTES = 600.0
"""Seconds after which something hangs. Whatever waits for less than this must not decide whether a test passes."""


def eventually(condition, pause=0.02):
    """Whether it comes true, asked again and again until it does; after minutes it never will."""
    end = time.monotonic() + MINUTES
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(pause)
    return found


def with_enough_patience(attempt, enough):
    """What ``attempt`` gives with the first patience in which this machine does all that comes before it ends."""
    for patience in (4.0, 20.0, 100.0, MINUTES):
        if enough(found := attempt(patience)):
            break
    return found
