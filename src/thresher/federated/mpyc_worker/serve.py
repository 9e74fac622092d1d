"""The worker's main loop: commands of the parent come in, answers go out."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, NoReturn, TypedDict

from .frames import (
    CLOSE,
    DONE,
    EXCHANGE,
    FAILED,
    OPEN,
    PREPARE,
    SENT,
    Share,
    pack_messages,
    read_frame,
    unpack_sum,
    write_frame,
)
from .links import Endpoint, Fail, Links

if TYPE_CHECKING:
    from .runtime import SharingRuntime

LINGER = 5.0  # seconds to send what is left when the parent closes

Command = tuple[float, bytes]  # when it came, and its frame


class WorkerConfiguration(TypedDict):
    """The parent's first frame."""

    me: int
    addresses: list[tuple[str, int]]
    names: list[str]
    certificate: str | None
    key: str | None
    authority: str | None
    timeout: float
    longest: int
    transcript: str | None


def main() -> None:
    """Serves the parent until it closes the pipe, or dies, which is the same."""
    commands, answers = _take_pipes()
    first = read_frame(commands)
    if first is None:
        return
    fail = _failure_handler(answers)
    try:
        asyncio.run(_serve(json.loads(first), commands, answers, fail))
    except Exception as error:
        _give_up(error, fail)


def _give_up(error: BaseException | None, fail: Fail) -> None:
    """Ends with an error that nobody foresaw: its text could hold a private value, its type cannot."""
    if error is not None:
        fail(f"worker: {type(error).__name__}", [])


def _take_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """The two pipes to the parent; what anybody prints from now on goes nowhere."""
    pipes = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    return pipes


def _transcript(path: str) -> IO[bytes]:
    """It holds keys, so it is for its owner only."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab")


def _failure_handler(answers: IO[bytes]) -> Fail:
    def fail(reason: str, peers: Sequence[int]) -> NoReturn:
        try:
            write_frame(answers, FAILED + json.dumps({"reason": reason, "peers": list(peers)}).encode())
        finally:  # even if the parent is gone
            os._exit(1)

    return fail


async def _serve(config: WorkerConfiguration, commands: IO[bytes], answers: IO[bytes], fail: Fail) -> None:
    loop, timeout, path = asyncio.get_running_loop(), config["timeout"], config["transcript"]
    queue: asyncio.Queue[Command] = asyncio.Queue()
    threading.Thread(target=_listen, args=(commands, queue, loop), daemon=True).start()
    sys.argv = sys.argv[:1]  # which MPyC reads when it is imported
    from .runtime import SharingRuntime

    runtime = SharingRuntime(config["me"], len(config["addresses"]), config["longest"], fail)
    transcript = _transcript(path) if path is not None else None
    endpoint = Endpoint(
        config["me"], config["addresses"], config["names"], config["certificate"], config["key"], config["authority"]
    )
    runtime.links = Links(endpoint, runtime, fail, runtime.first_message, transcript)
    loop.set_exception_handler(lambda _, context: _give_up(context.get("exception"), fail))
    try:
        async with asyncio.timeout(timeout):
            await runtime.links.join()
    except TimeoutError:
        fail("absent", runtime.links.absent)
    while True:
        came, frame = await queue.get()
        if frame[:1] == CLOSE:
            await runtime.links.close(LINGER)
            os._exit(0)
        try:
            async with asyncio.timeout_at(came + timeout):
                result = await _obey(runtime, frame[:1], frame[1:])
        except TimeoutError:
            awaited = runtime.links.awaited
            fail("silent" if awaited else "slow", awaited)
        write_frame(answers, DONE + SENT.pack(runtime.links.sent) + result)


async def _obey(runtime: SharingRuntime, command: bytes, argument: bytes) -> bytes:
    """The result of one command."""
    if command == EXCHANGE:
        return pack_messages(await runtime.exchange(argument))
    if command == PREPARE:
        share: Share = await runtime.prepare(*unpack_sum(argument))
        return share.pack()
    if command == OPEN:
        opened = await runtime.open(Share.unpack(argument))
        return bytes(opened.astype("<i8").tobytes())
    raise ValueError("no such command")


def _listen(commands: IO[bytes], queue: asyncio.Queue[Command], loop: asyncio.AbstractEventLoop) -> None:
    """Passes commands on, and ends the process with the parent, however busy it is."""
    while (frame := read_frame(commands)) is not None:
        loop.call_soon_threadsafe(queue.put_nowait, (loop.time(), frame))
    os._exit(0)
