"""One server of SPU: adds up the shares it holds and, with the other servers, opens the total plus noise.

It runs as a script in SPU's own environment, since SPU needs NumPy 1: it imports nothing of thresher, and nobody
imports it. Frames are a length, 4 bytes, and that many bytes. The first on standard input is the configuration, and the
second is empty: every server is ready to link. Both are answered by an empty frame. Each further one is a question:

    parties 4 | coordinates 4 | coins 4 | dither 4 | a share from each party, 8 bytes a coordinate (little-endian)

answered by the bytes this server sent for it, 8 bytes (0: SPU did not say), and the noisy total, 8 bytes a coordinate.

The noise is a public weighted sum of fair coins, each the exclusive or of a bit of server 0 and a bit of server 1: if
either is honest, a coin is fair and the other cannot know it. A third server tosses none: of three, two are honest.
"""

from __future__ import annotations

import functools
import json
import os
import queue
import re
import secrets
import struct
import sys
import tempfile
import threading
from typing import Any, BinaryIO, TypedDict

import jax
import numpy as np
import spu
from numpy.typing import NDArray
from spu.experimental import reveal
from spu.utils import frontend

LENGTH, QUESTION, SENT = struct.Struct(">I"), struct.Struct(">IIII"), struct.Struct(">Q")
SECRET = spu.Visibility.VIS_SECRET
RETRY = 50  # milliseconds between two tries to reach a server that is still starting


Integers = NDArray[np.int64]


class ServerConfiguration(TypedDict):
    """The first frame: which server this is, where all are, and how they speak."""

    index: int
    addresses: list[str]
    protocol: str
    timeout: float
    tls: dict[str, str] | None


def serve() -> None:
    """Answers on standard output, which SPU would log to."""
    answers, log = os.fdopen(os.dup(1), "wb"), tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    questions: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=listen, args=(questions,), daemon=True).start()
    configuration = json.loads(questions.get())
    write_frame(answers, b"")
    questions.get()
    server = SPUServer(configuration)
    write_frame(answers, b"")
    while True:
        noisy = server.noisy_total(questions.get())
        write_frame(answers, SENT.pack(sent_bytes(log)) + noisy.astype("<i8").tobytes())


def listen(questions: queue.Queue[bytes]) -> None:
    """Takes the frames as they come, so that the end of them ends the process even in the middle of an answer."""
    while len(length := sys.stdin.buffer.read(LENGTH.size)) == LENGTH.size:
        questions.put(sys.stdin.buffer.read(*LENGTH.unpack(length)))
    os._exit(0)


def write_frame(stream: BinaryIO, frame: bytes) -> None:
    stream.write(LENGTH.pack(len(frame)) + frame)
    stream.flush()


def sent_bytes(log: BinaryIO) -> int:
    """What SPU's log, which starts anew, says of the last run."""
    log.seek(0)
    found = re.findall(rb"total send bytes (\d+)", log.read())
    log.seek(0)
    log.truncate()
    return int(found[-1]) if found else 0


class SPUServer:
    """A server of SPU that is linked to the others."""

    def __init__(self, configuration: ServerConfiguration) -> None:
        self._rank, self._world = configuration["index"], len(configuration["addresses"])
        settings = spu.RuntimeConfig(
            protocol=getattr(spu.ProtocolKind, configuration["protocol"]), field=spu.FieldType.FM64
        )
        settings.experimental_enable_colocated_optimization = True  # what a server puts in stays with it, unshared
        settings.enable_pphlo_profile = True  # logs the bytes sent
        self._io = spu.Io(self._world, settings)
        self._runtime = spu.Runtime(linked(configuration), settings)

    def noisy_total(self, question: bytes) -> Integers:
        """The sum of all shares that all servers hold, modulo 2^64, plus the noise."""
        parties, coordinates, coins, dither = QUESTION.unpack_from(question)
        shares = np.frombuffer(question, "<i8", offset=QUESTION.size).reshape(parties, coordinates)
        program = compiled(self._world, coordinates, coins, dither)
        tosses = (coordinates, coins + 3 * dither)
        self._put_in("tosses", random_bits(tosses), range(2))
        self._put_in("total", shares.sum(axis=0), range(self._world))
        self._runtime.run(program)
        noisy = self._runtime.get_var("noisy")
        total: Integers = self._io.reconstruct([noisy] * self._world)  # it is public: every server has the same
        return total

    def _put_in(self, name: str, mine: Integers, owners: range) -> None:
        """A private input of each owner: mine, and for the others' the place only."""
        for owner in owners:
            value = mine if owner == self._rank else np.zeros_like(mine)
            self._runtime.set_var(f"{name}{owner}", self._io.make_shares(value, SECRET, owner)[self._rank])


def linked(configuration: ServerConfiguration) -> spu.link.Context:
    """A link to the other servers, which listens on this server's address only.

    With TLS nothing leaves except encrypted and to a server whose certificate the authority signed, so let it sign for
    these servers only. The link still takes in connections without TLS: a firewall must admit the servers only.
    """
    description = spu.link.Desc()
    for index, address in enumerate(configuration["addresses"]):
        description.add_party(f"server{index}", address)
    patience = int(1000 * configuration["timeout"])
    description.recv_timeout_ms = description.http_timeout_ms = patience
    description.connect_retry_interval_ms, description.connect_retry_times = RETRY, patience // RETRY
    if tls := configuration["tls"]:
        description.enable_ssl = True
        for side in (description.server_ssl_opts, description.client_ssl_opts):
            side.cert.certificate_path, side.cert.private_key_path = tls["certificate"], tls["key"]
            side.verify.ca_file_path, side.verify.verify_depth = tls["authority"], 1
    return spu.link.create_brpc(description, configuration["index"])


def random_bits(shape: tuple[int, int]) -> Integers:
    """Fair bits, as whole numbers, from the operating system."""
    count = shape[0] * shape[1]
    octets = np.frombuffer(secrets.token_bytes(-(-count // 8)), np.uint8)
    return np.unpackbits(octets, count=count).reshape(shape).astype(np.int64)


@functools.lru_cache(maxsize=16)
def compiled(world: int, coordinates: int, coins: int, dither: int) -> Any:
    """The program of the servers: sums in, noisy total out."""
    powers = 2 ** np.arange(dither)
    weights = np.concatenate([np.full(coins, 2**dither), powers, powers, powers])
    offset = int(weights.sum()) // 2

    def noisy_total(tosses: list[jax.Array], totals: list[jax.Array]) -> jax.Array:
        # The exclusive or is a + b - 2ab, written with the shared a + b: of a product with one factor that a server
        # knows, CHEETAH computes one cross term instead of two.
        both = tosses[0] + tosses[1]
        heads = both + 2 * (1 - both) * tosses[1]
        return reveal(sum(totals) + heads @ weights - offset)

    tosses = jax.ShapeDtypeStruct((coordinates, len(weights)), np.int64)
    total = jax.ShapeDtypeStruct((coordinates,), np.int64)
    names = ["tosses0", "tosses1"] + [f"total{owner}" for owner in range(world)]
    inputs = ([tosses] * 2, [total] * world)
    visibility = [SECRET] * len(names)
    executable, _ = frontend.compile(
        frontend.Kind.JAX, noisy_total, inputs, {}, names, visibility, lambda outputs: ["noisy"]
    )
    return executable


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    try:
        serve()
    finally:
        os._exit(1)  # SPU's threads would keep a process that failed
