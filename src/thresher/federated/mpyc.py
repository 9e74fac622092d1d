"""Secure aggregation by the parties themselves, with MPyC: safe as long as fewer than half of them collude.

Every party deals out its vector in Shamir shares, all toss joint coins for one noise, and the noisy sum is opened:
fewer than half of the parties together learn nothing else, as long as all follow the protocol. It takes two steps.
``MPyCParty.prepare`` makes this party's share of the noisy sum; once every party has it on disk,
``MPyCParty.open`` reveals the sum. Whoever dies in between comes back and opens the same sharing: it is the same
noise, hence no second release.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from thresher.federated import mpyc_worker
from thresher.federated.aggregation import LARGEST_UNIT, Aborted
from thresher.federated.endpoints import TLS, check_endpoints, free_ports
from thresher.federated.mpyc_worker import frames
from thresher.privacy.arrays import Integers
from thresher.privacy.laws.dithered_binomial import DitheredBinomial

__all__ = ["RANDOMNESS", "TLS", "MPyCAggregation", "MPyCParty"]

LONGEST = 2**20  # bytes of what parties say to each other, but for vectors of more than 2**17 coordinates
GRACE = 1.0  # seconds a worker has to say that its time is over, before it is killed
FAREWELL = 6.0  # seconds it has to send what is left, if a peer is slow to take it

RANDOMNESS = "joint coins of the parties (MPyC); whole numbers, drawn exactly"
REASONS = {
    "lost": "the connection with {who} was lost",
    "silent": "no answer in time from {who}",
    "slow": "the time was over before this party had done its own part: raise timeout",
    "absent": "not everybody joined in time: {who} did not",
    "flood": "{who} sent more than this run needs",
    "nonsense": "{who} sent what is no message of this protocol",
    "twice": "{who} joined twice",
    "stranger": "somebody connected who is no party to this session",
    "identity": "the certificate at the other end is not that of {who}",
    "step": "{who} is at another step, or has another length or noise",
    "address": "the own address, that of {who}, cannot be listened at",
    "version": "the installed MPyC is not the version this was tested with: pip install 'thresher[mpc]'",
}


class MPyCParty:
    """One party's end of the computation: a worker process that speaks MPyC with the others.

    ``me`` is the number of this party, and ``addresses`` are those of all: a host and a port at which it listens, and
    nowhere else. Without ``tls`` all must be on this machine, whose other users are then trusted. With it, ``names``
    are the names in the parties' certificates. Every call must be made by all parties, in the same order, and takes at
    most ``timeout`` seconds; so does joining, which starts at once and for which the first call waits. ``longest`` is
    the most bytes that anybody may exchange in a message: a peer that sends more than the calls need ends the session.
    ``transcript`` is a file for every byte that passes between this party and its peers: it holds keys, so it is for
    tests only.
    """

    def __init__(
        self,
        me: int,
        addresses: Sequence[tuple[str, int]],
        *,
        tls: TLS | None = None,
        names: Sequence[str] | None = None,
        timeout: float = 60.0,
        longest: int = LONGEST,
        transcript: Path | None = None,
    ) -> None:
        if importlib.util.find_spec("mpyc") is None:
            raise ImportError("secure aggregation needs one more package (mpyc); run: pip install 'thresher[mpc]'")
        check_endpoints(me, addresses, tls, names)
        if not timeout > 0:
            raise ValueError(f"timeout={timeout!r} must be a positive number of seconds")
        self._me, self._parties, self._timeout, self._longest = me, len(addresses), timeout, longest
        self._names = [f"party {name!r}" if names else f"party {name}" for name in names or range(len(addresses))]
        self.bytes_sent = 0
        """What this party has sent to its peers, before encryption."""
        config = {
            "me": me,
            "addresses": [list(address) for address in addresses],
            "names": list(names or ()),
            **(tls.files() if tls is not None else dict.fromkeys(("certificate", "key", "authority"))),
            "timeout": timeout,
            "longest": longest,
            "transcript": str(transcript) if transcript is not None else None,
        }
        self.worker = Worker(Path(mpyc_worker.__file__).parent, json.dumps(config).encode())

    def exchange(self, message: bytes) -> list[bytes]:
        """The messages of all parties, in their order; they are not secret among the parties."""
        if len(message) > self._longest:
            raise ValueError(f"message has {len(message)} bytes, longest={self._longest}: raise it at every party")
        return frames.unpack_messages(self._ask(frames.EXCHANGE, message, "nothing was revealed"))

    def prepare(self, mine: Integers, law: DitheredBinomial) -> bytes:
        """This party's share of the sum of all vectors plus one noise, of which nobody learns anything yet."""
        if mine.dtype != np.int64 or mine.ndim != 1 or len(mine) == 0:
            raise ValueError(f"mine must be a vector of int64, not an array of {mine.dtype} of shape {mine.shape}")
        if np.any(mine > LARGEST_UNIT) or np.any(mine < -LARGEST_UNIT):
            raise ValueError("mine holds a number beyond 2^52: take a coarser grid or a smaller clip")
        argument = frames.pack_sum(mine, law.weights, law.offset)
        return self._ask(frames.PREPARE, argument, "nothing was revealed")

    def open(self, share: bytes) -> Integers:
        """The noisy sum, the same at every party. The share may be of an earlier session between the same parties."""
        try:
            known = frames.Share.unpack(share)
        except ValueError as error:
            raise ValueError(f"share is not one that prepare made: {error}") from None
        if (known.party, known.parties) != (self._me, self._parties):
            raise ValueError(
                f"share is that of party {known.party} of {known.parties}, but this is party {self._me} of "
                f"{self._parties}: open it where it was made"
            )
        left = "others may know the noisy sum: open the same share again, which is no second release"
        return np.frombuffer(self._ask(frames.OPEN, share, left), "<i8").astype(np.int64)

    def close(self) -> None:
        """Leaves the others; what this party has sent still arrives."""
        if self.bytes_sent and not self.worker.ended:
            self.worker.dismiss(frames.CLOSE, FAREWELL)
        self.worker.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, command: bytes, argument: bytes, left: str) -> bytes:
        """The worker's answer; if there is none, or a failure, the session is over. ``left`` says what was revealed."""
        if self.worker.killed:
            raise Aborted("this session is over: start a new one")
        try:
            answer = self.worker.ask(command + argument, self._timeout + GRACE)
        except TimeoutError:
            self.worker.kill()
            raise Aborted(f"the worker of {self._names[self._me]} did not answer in time; {left}") from None
        except BaseException:
            self.worker.kill()
            raise
        if answer is None or answer[:1] != frames.DONE:
            self.worker.kill()
            raise Aborted(f"{self._reason(answer)}; {left}")
        (self.bytes_sent,) = frames.SENT.unpack_from(answer, 1)
        return answer[1 + frames.SENT.size :]

    def _reason(self, answer: bytes | None) -> str:
        """What a worker's failure means, in words of our own."""
        me = self._names[self._me]
        if answer is None:
            return f"the worker of {me} died"
        failure = json.loads(answer[1:])
        who = " and ".join(self._names[peer] for peer in failure["peers"]) or "somebody"
        return REASONS.get(failure["reason"], f"the worker of {me} failed ({failure['reason']})").format(who=who)


class MPyCAggregation:
    """All parties in one process, each with its worker on this machine: for simulations and tests."""

    def __init__(self, parties: int, timeout: float = 60.0) -> None:
        addresses = [("127.0.0.1", port) for port in free_ports(parties)]
        self._threads = ThreadPoolExecutor(parties)
        self.parties = [MPyCParty(me, addresses, timeout=timeout) for me in range(parties)]

    @property
    def randomness(self) -> str:
        return RANDOMNESS

    @property
    def bytes_sent(self) -> int:
        return sum(party.bytes_sent for party in self.parties)

    def noisy_sum(self, parts: Sequence[Integers], law: DitheredBinomial) -> Integers:
        """The sum of one vector of each party plus one noise."""
        if len(parts) != len(self.parties):
            raise ValueError(
                f"parts are {len(parts)} vectors, but there are {len(self.parties)} parties: give one each"
            )
        try:
            shares = list(self._threads.map(MPyCParty.prepare, self.parties, parts, [law] * len(parts)))
            sums = list(self._threads.map(MPyCParty.open, self.parties, shares))
            return sums[0]
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for party in self.parties:
            party.close()
        self._threads.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


START = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location({package!r}, {file!r})
sys.modules[spec.name] = package = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
from {package}.serve import main
main()
"""  # loads the folder alone: as a part of thresher it would load all of thresher


class Worker:
    """A child process that answers frames with frames, and does not outlive its parent.

    It runs ``main`` of ``serve.py`` in a folder, which gets ``config`` as its first frame.

    It has a session of its own: an interrupt from the keyboard is for its parent. What it prints is thrown away, since
    it could hold a private value.
    """

    def __init__(self, folder: Path, config: bytes) -> None:
        code = START.format(package=folder.name, file=str(folder / "__init__.py"))
        self._process = subprocess.Popen(  # noqa: S603  (this interpreter, and the code above)
            [sys.executable, "-P", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if not name.startswith("MPYC_")},
            start_new_session=True,
        )
        self.killed = False
        """Whether ``kill`` was called: there will be no more answers."""
        self._pipe = ThreadPoolExecutor(1)  # a thread that may wait for a worker that hangs
        self._pipe.submit(self._write, config)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def ask(self, frame: bytes, timeout: float) -> bytes | None:
        """Its answer, or None if it died without one; TimeoutError if it does not answer in time."""
        return self._pipe.submit(self._round_trip, frame).result(timeout)

    def dismiss(self, frame: bytes, timeout: float) -> None:
        """Sends a last frame, and waits for its end; if it does not come in time, ``kill`` is left."""
        self._pipe.submit(self._write, frame)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)

    def kill(self) -> None:
        """Ends it at once, and whoever waits for it."""
        self.killed = True
        self._process.kill()
        self._process.wait()
        self._pipe.shutdown()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # a frame that it did not read
                pipe.close()  # type: ignore[union-attr]

    def _round_trip(self, frame: bytes) -> bytes | None:
        self._write(frame)
        return frames.read_frame(self._process.stdout)  # type: ignore[arg-type]

    def _write(self, frame: bytes) -> None:
        with contextlib.suppress(OSError):  # it has ended; its last frame says why
            frames.write_frame(self._process.stdin, frame)  # type: ignore[arg-type]
