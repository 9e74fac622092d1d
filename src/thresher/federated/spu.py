"""Secure aggregation by SPU: two servers of which one must be honest, or three of which two must be.

Every party splits its vector into additive shares, one for each server. What a server sees: its share of each vector,
which is uniformly random; the bits it tossed itself; messages of CHEETAH (ciphertexts) or ABY3 (random shares); and the
noisy total, the only thing that is ever opened. Servers are taken to follow the protocol (semi-honest): one that put in
something other than bits could spoil the total, or the noise.

SPU needs NumPy 1, so its servers are processes of an environment of their own (``spu_worker.py``). Here all run on this
machine, and this process plays the parties.
"""

from __future__ import annotations

import json
import os
import secrets
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from thresher.federated.aggregation import Aborted
from thresher.federated.endpoints import free_ports
from thresher.federated.processes import Processes
from thresher.privacy.arrays import Integers
from thresher.privacy.laws.dithered_binomial import DitheredBinomial

__all__ = ["SPUAggregation", "additive_shares"]

SERVERS = {"cheetah": 2, "aby3": 3}
WORKER = Path(__file__).with_name("spu_worker.py")
QUESTION, SENT = struct.Struct(">IIII"), struct.Struct(">Q")  # as in spu_worker.py
VARIABLE = "THRESHER_SPU_PYTHON"
REMEDY = f"""
  python3.11 -m venv .venv-spu
  .venv-spu/bin/pip install spu==0.9.5
  export {VARIABLE}=$PWD/.venv-spu/bin/python"""


class SPUAggregation:
    """Two servers, of which one must be honest, add up what parties shared between them, and one copy of noise.

    ``protocol="aby3"`` takes three servers, of which two must be honest, and is faster. ``python`` is the interpreter
    of SPU's environment, by default what the environment variable THRESHER_SPU_PYTHON names. After
    ``thresher.federated.aggregation.Aborted`` the servers are gone: make a new aggregation.
    """

    def __init__(
        self,
        parties: int,
        *,
        protocol: Literal["cheetah", "aby3"] = "cheetah",
        python: str | None = None,
        timeout: float = 60.0,
    ) -> None:
        if not parties >= 1:
            raise ValueError(f"parties={parties!r} must be at least 1")
        if protocol not in SERVERS:
            raise ValueError(f"protocol={protocol!r} must be one of {', '.join(SERVERS)}")
        if not timeout > 0:
            raise ValueError(f"timeout={timeout!r} must be a positive number of seconds")
        self._parties, self._servers = parties, SERVERS[protocol]
        self._sent: int | None = 0
        interpreter = _interpreter_for(python)
        command = [interpreter, "-I", str(WORKER)]  # -I: this folder's spu.py must not pass for SPU
        try:
            self.processes = Processes([command] * self._servers, timeout)
            self.processes.ask(_configurations(self._servers, protocol, timeout))
            self.processes.ask([b""] * self._servers)  # now they link: one that starts early would lose seconds
        except (OSError, Aborted):
            _check_environment(interpreter, timeout)
            raise

    @property
    def randomness(self) -> str:
        return "joint coins of the servers (SPU); whole numbers, drawn exactly"

    @property
    def bytes_sent(self) -> int | None:
        """What the servers sent each other in all aggregations, as SPU counts it; None if it does not say."""
        return self._sent

    def noisy_sum(self, parts: Sequence[Integers], law: DitheredBinomial) -> Integers:
        """The sum of the parties' vectors modulo 2^64, plus noise of the law that nobody knows."""
        size = self._checked_size(parts)
        header = QUESTION.pack(self._parties, size, law.coins, law.dither)
        shares = zip(*(additive_shares(part, self._servers) for part in parts), strict=True)
        questions = [header + b"".join(share.astype("<i8").tobytes() for share in held) for held in shares]
        answers = self.processes.ask(questions)
        if len({answer[SENT.size :] for answer in answers}) != 1 or len(answers[0]) != SENT.size + 8 * size:
            self.close()
            raise Aborted("the servers disagree about the noisy sum: start them again")
        self._count([SENT.unpack_from(answer)[0] for answer in answers])
        return np.frombuffer(answers[0], "<i8", offset=SENT.size).astype(np.int64)

    def close(self) -> None:
        """Ends the servers; safe to call twice."""
        self.processes.close()

    def _checked_size(self, parts: Sequence[Integers]) -> int:
        if len(parts) != self._parties:
            raise ValueError(f"parts has {len(parts)} vectors: give one for each of the {self._parties} parties")
        for number, part in enumerate(parts):
            if part.dtype != np.int64 or part.ndim != 1 or part.size == 0 or part.shape != parts[0].shape:
                raise ValueError(
                    f"parts[{number}] is {part.dtype} of shape {part.shape}: all must be int64 vectors of one length"
                )
        return parts[0].size

    def _count(self, sent: list[int]) -> None:
        self._sent = self._sent + sum(sent) if self._sent is not None and all(sent) else None


def additive_shares(secret: Integers, holders: int) -> list[Integers]:
    """A share for each of the ``holders``, which add up to the secret modulo 2^64; any fewer are uniformly random."""
    random = [np.frombuffer(secrets.token_bytes(secret.nbytes), dtype=np.int64) for _ in range(holders - 1)]
    last = secret.copy()
    for share in random:
        last -= share  # NumPy's whole numbers wrap around
    return [*random, last]


def _interpreter_for(python: str | None) -> str:
    interpreter = python or os.environ.get(VARIABLE)
    if not interpreter:
        raise ValueError(f"python={python!r}, and {VARIABLE} is not set: SPU needs an environment of its own:{REMEDY}")
    return interpreter


def _check_environment(interpreter: str, timeout: float) -> None:
    command = [interpreter, "-I", "-c", "import jax, spu"]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=timeout)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        raise ValueError(
            f"python={interpreter!r} cannot import spu: it needs an environment of its own:{REMEDY}"
        ) from None


def _configurations(servers: int, protocol: str, timeout: float) -> list[bytes]:
    addresses = [f"127.0.0.1:{port}" for port in free_ports(servers)]  # if one is taken, its server cannot start
    common = {"addresses": addresses, "protocol": protocol.upper(), "timeout": timeout, "tls": None}
    return [json.dumps({"index": index, **common}).encode() for index in range(servers)]
