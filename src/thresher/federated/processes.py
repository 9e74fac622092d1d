"""Child processes that answer questions: frames over a socket that is their standard input and output.

A frame is its length, 4 bytes, and that many bytes. A socket, unlike a pipe, gives up in time when a process hangs.
"""

from __future__ import annotations

import socket
import struct
import subprocess
import time
import weakref
from collections.abc import Sequence
from multiprocessing.connection import wait
from subprocess import DEVNULL
from typing import Any

from thresher.federated.aggregation import Aborted

__all__ = ["Processes"]

LENGTH = struct.Struct(">I")


class Processes:
    """Runs the commands side by side. Each must end when its standard input does; here they are killed as well."""

    def __init__(self, commands: Sequence[Sequence[str]], timeout: float) -> None:
        self._timeout = timeout
        self._children: list[tuple[subprocess.Popen[bytes], socket.socket]] = []
        self._end = weakref.finalize(self, _end, self._children)  # also if nobody closes them
        try:
            for command in commands:
                self._children.append(_start(command))
        except OSError:
            self.close()
            raise

    @property
    def ids(self) -> list[int]:
        """The process ids."""
        return [process.pid for process, _ in self._children]

    def ask(self, questions: Sequence[bytes]) -> list[bytes]:
        """Sends each process its question and returns their answers; without all of them, ends all and raises."""
        if not self._end.alive:
            raise Aborted("the servers were closed: start them again")
        deadline = time.monotonic() + self._timeout
        try:
            for number, question in enumerate(questions):
                self._send(number, question, deadline)
            return self._answers(deadline)
        except BaseException:
            self.close()  # a process in the middle of an answer cannot be asked again
            raise

    def close(self) -> None:
        """Ends the processes; safe to call twice."""
        self._end()

    def _send(self, number: int, question: bytes, deadline: float) -> None:
        stream = self._children[number][1]
        stream.settimeout(self._seconds_left(deadline))
        try:
            stream.sendall(LENGTH.pack(len(question)) + question)
        except TimeoutError:
            raise self._timeout_error() from None
        except OSError:
            raise self._death_error(number) from None

    def _answers(self, deadline: float) -> list[bytes]:
        waiting: dict[Any, int] = {stream: number for number, (_, stream) in enumerate(self._children)}
        answers: dict[int, bytes] = {}
        while waiting:  # for all at once: the death of any is seen although others still work
            for stream in wait(list(waiting), self._seconds_left(deadline)):
                number = waiting.pop(stream)
                (length,) = LENGTH.unpack(self._receive(number, LENGTH.size, deadline))
                answers[number] = self._receive(number, length, deadline)
        return [answers[number] for number in range(len(answers))]

    def _receive(self, number: int, size: int, deadline: float) -> bytes:
        stream, data = self._children[number][1], bytearray()
        while len(data) < size:
            stream.settimeout(self._seconds_left(deadline))
            try:
                part = stream.recv(size - len(data))
            except TimeoutError:
                raise self._timeout_error() from None
            except OSError:
                part = b""
            if not part:
                raise self._death_error(number)
            data += part
        return bytes(data)

    def _seconds_left(self, deadline: float) -> float:
        left = deadline - time.monotonic()
        if left <= 0:
            raise self._timeout_error()
        return left

    def _timeout_error(self) -> Aborted:
        return Aborted(f"no answer within timeout={self._timeout} s: check the servers, or allow them more time")

    def _death_error(self, number: int) -> Aborted:
        return Aborted(f"server {number} of 0..{len(self._children) - 1} died before it answered: start them again")


def _start(command: Sequence[str]) -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            process = subprocess.Popen(command, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=DEVNULL)  # noqa: S603
        except OSError:
            ours.close()
            raise
    return process, ours


def _end(children: list[tuple[subprocess.Popen[bytes], socket.socket]]) -> None:
    for process, stream in children:
        stream.close()
        process.kill()
    for process, _ in children:
        process.wait()  # leaves no zombie
