"""Processes that answer, die, hang: no answer is waited for longer than allowed, and no process stays."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import closing

import pytest

from thresher.federated.aggregation import Aborted
from thresher.federated.processes import Processes
from waiting import MINUTES

ECHO = """
import struct, sys
while len(head := sys.stdin.buffer.read(4)) == 4:
    sys.stdout.buffer.write(head + sys.stdin.buffer.read(*struct.unpack(">I", head)))
    sys.stdout.buffer.flush()
"""


def running(code: str, count: int = 2, timeout: float = MINUTES) -> Processes:
    return Processes([[sys.executable, "-c", code]] * count, timeout)


def gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def test_each_process_answers_its_own_question() -> None:
    with closing(running(ECHO)) as processes:
        assert processes.ask([b"one", b""]) == [b"one", b""]
        long = os.urandom(3_000_000)  # more than a socket holds
        assert processes.ask([b"two", long]) == [b"two", long]


def test_a_killed_process_aborts_at_once_and_all_are_gone() -> None:
    processes = running(ECHO)
    ids = processes.ids
    processes.ask([b"", b""])
    os.kill(ids[1], signal.SIGKILL)
    with pytest.raises(Aborted, match=r"server 1 of 0\.\.1 died"):
        processes.ask([b"", b""])
    assert all(map(gone, ids))


@pytest.mark.parametrize("size", [10, 3_000_000])  # the second cannot even be sent
def test_a_hanging_process_aborts_when_the_time_is_over(size: int) -> None:
    processes = running("import time; time.sleep(1000)", timeout=0.5)
    ids = processes.ids
    with pytest.raises(Aborted, match=r"timeout=0\.5 s"):
        processes.ask([bytes(size)] * 2)
    assert all(map(gone, ids))


def test_a_closed_one_cannot_be_asked() -> None:
    processes = running(ECHO)
    processes.close()
    processes.close()
    with pytest.raises(Aborted, match="closed"):
        processes.ask([b"", b""])


def test_processes_nobody_closes_end_with_their_owner() -> None:
    processes = running(ECHO)
    ids = processes.ids
    del processes
    assert all(map(gone, ids))


def test_a_command_that_does_not_exist_leaves_no_process() -> None:
    with pytest.raises(FileNotFoundError):
        Processes([[sys.executable, "-c", ECHO], ["/no/such/command"]], 5.0)
