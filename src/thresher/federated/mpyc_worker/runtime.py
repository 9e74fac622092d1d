"""The computation of one party: MPyC's secret sharing and joint coins, over links of our own.

MPyC moves arrays between parties as pickles, and a pickle from a hostile peer is a program. The two methods that would
do so here, input and output, are replaced by ones that send numbers of eight bytes and check what they get; any use of
pickle that is left raises.
"""

from __future__ import annotations

import functools
import os
import struct
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, NoReturn

import mpyc
import numpy as np
from mpyc import asyncoro, finfields, thresha
from mpyc import runtime as engine
from numpy.typing import NDArray

from . import mersenne
from .frames import Share
from .links import Fail, Links
from .mersenne import Residues

TESTED = "0.11"  # the version whose inner workings this file relies on
COINS = 2**16  # tossed at a time: more would only take more memory
TOKEN = 16  # bytes of which each party's makes the name of a sharing
LONGEST_STEP = 40  # bytes that name a step, with what all must agree on


class NoPickle:
    """Stands in for the pickle module in MPyC's runtime."""

    def __getattr__(self, name: str) -> NoReturn:
        raise RuntimeError("pickles are not exchanged with peers")


class SharingRuntime(engine.Runtime):  # type: ignore[misc]  # MPyC ships no types
    """MPyC's runtime for one party, its peers reached through ``links``."""

    links: Links

    def __init__(self, me: int, parties: int, longest: int, fail: Fail) -> None:
        if mpyc.__version__ != TESTED:
            fail("version", [])
        options = engine.mpc.options
        options.threshold, options.no_async, options.no_prss = (parties - 1) // 2, False, False
        self._fail, self._longest = fail, longest
        super().__init__(me, [engine.Party(party) for party in range(parties)], options)
        engine.pickle = NoPickle()
        asyncoro.runtime = self
        asyncoro._hop = lambda counter: counter[0] << 32  # labels of a coroutine; MPyC's hash might repeat itself
        self._field = finfields.GF(mersenne.MODULUS)
        self._field.array._sqrt = self._inverse_roots

    # -- keys, which every set of parties without t others shares -----------------------------------------------------

    def keys_for(self, peer: int) -> bytes:
        return b"".join(self._prss_keys_to_peer(peer))

    def keys_length(self, peer: int) -> int:
        length: int = self._prss_keys_from_peer(peer)
        return length

    def keep_keys(self, peer: int, keys: bytes) -> None:
        self._prss_keys_from_peer(peer, keys)

    @functools.cache  # noqa: B019  (MPyC empties it when keys change; there is one runtime in a process)
    def prfs(self, bound: int) -> dict[tuple[int, ...], Callable[..., Residues]]:
        """MPyC's pseudorandom functions, of which only those onto the whole field are asked for."""
        return {parties: mersenne.pseudorandom(key) for parties, key in self._prss_keys.items()}

    # -- messages -----------------------------------------------------------------------------------------------------

    @property
    def first_message(self) -> int:
        """The most bytes with which a command begins: the others wait for them, so nobody gets further ahead."""
        return LONGEST_STEP + max(self._longest, TOKEN)

    async def exchange(self, message: bytes) -> list[bytes]:
        """Everybody's message."""
        self.links.expect(self.first_message)
        return await self._at(b"exchange", message)

    async def _at(self, step: bytes, message: bytes = b"") -> list[bytes]:
        """Everybody's message of this step, on which the session ends unless all parties are at it."""
        messages = await self._swap([step + message] * len(self.parties))
        if apart := [party for party, other in enumerate(messages) if not other.startswith(step)]:
            self._fail("step", apart)
        return [message[len(step) :] for message in messages]

    async def _swap(self, messages: Sequence[bytes]) -> list[bytes]:
        """Sends each peer its message; the messages of all for this party."""
        label = self._next_label()
        for peer in self.links.peers:
            self.links[peer].send(label, messages[peer])
        mine = messages[self.pid]
        return [mine if party == self.pid else await self.links[party].receive(label) for party in range(len(messages))]

    def _next_label(self) -> int:
        """MPyC's program counter, which is the same at all parties: they call the same things in the same order."""
        self._program_counter[0] += 1
        label: int = self._program_counter[0]
        return label

    def _numbers(self, peer: int, message: bytes, count: int) -> Residues:
        numbers = mersenne.from_bytes(message, count)
        if numbers is None:
            self._fail("nonsense", [peer])
        return numbers.astype(object)

    # -- what MPyC asks for when it tosses coins ----------------------------------------------------------------------

    async def output(self, x: Any, receivers: Any = None, threshold: int | None = None, raw: bool = False) -> Any:
        """The array that is shared with polynomials of degree ``threshold``: each sends to so many that follow it."""
        label, parties = self._next_label(), len(self.parties)
        degree = self.threshold if threshold is None else threshold
        message = mersenne.to_bytes(x.value)
        for step in range(1, degree + 1):
            self.links[(self.pid + step) % parties].send(label, message)
        points = [(self.pid + 1, x.value)]
        for step in range(1, degree + 1):
            peer = (self.pid - step) % parties
            points.append((peer + 1, self._numbers(peer, await self.links[peer].receive(label), len(x.value))))
        return thresha.np_recombine(self._field, points)

    def _inverse_roots(self, squares: Residues, INV: bool = True) -> Residues:
        """Of numbers that were opened as squares; if they are none, somebody's share was wrong."""
        roots = mersenne.inverse_roots(squares.astype(np.uint64))
        if roots is None:
            self._fail("nonsense", [])
        return roots.astype(object)

    # -- the noisy sum ------------------------------------------------------------------------------------------------

    async def prepare(self, vector: NDArray[np.int64], weights: NDArray[np.int64], offset: int) -> Share:
        """This party's share of the sum of everybody's vector and one noise: nothing about either is opened."""
        agreed = struct.pack("<Qq", len(vector), offset) + weights.tobytes()
        coins = [8 * count * len(weights) for count in self._coin_batches(len(vector), len(weights))]
        self.links.expect(self.first_message, 8 * len(vector), *coins)
        tokens = await self._at(b"prepare" + sha256(agreed).digest(), os.urandom(TOKEN))
        name = sha256(b"".join(tokens)).digest()[:16]
        total = await self._dealt(vector) + await self._noise(len(vector), weights.astype(object)) - offset
        return Share(self.pid, len(self.parties), name, (total % mersenne.MODULUS).astype(np.uint64))

    async def _dealt(self, vector: NDArray[np.int64]) -> Residues:
        """A share of the sum, to which every party deals out its vector."""
        values = vector.astype(object) % mersenne.MODULUS
        shares = thresha.np_random_split(self._field, values, self.threshold, len(self.parties))
        messages = await self._swap([mersenne.to_bytes(share) for share in shares])
        dealt = [self._numbers(party, message, len(vector)) for party, message in enumerate(messages)]
        total: Residues = np.sum(dealt, axis=0)
        return total

    async def _noise(self, length: int, weights: Residues) -> Residues:
        """A share of ``length`` weighted sums of joint coins."""
        noise = []
        for count in self._coin_batches(length, len(weights)):
            coins = await self.np_random_bits(self._field, count * len(weights))
            noise.append(coins.value.reshape(count, len(weights)) @ weights)
        return np.concatenate(noise)

    def _coin_batches(self, length: int, coins: int) -> list[int]:
        """For how many coordinates at a time coins are tossed."""
        step = max(1, COINS // coins)
        return [min(step, length - start) for start in range(0, length, step)]

    async def open(self, share: Share) -> NDArray[np.int64]:
        """What is shared, once all parties have come with their share of the same sharing."""
        self.links.expect(self.first_message, 8 * len(share.numbers))
        await self._at(b"open" + share.name + struct.pack("<Q", len(share.numbers)))
        opened = await self.output(self._field.array(share.numbers.astype(object)))
        return mersenne.to_signed(opened.value.astype(np.uint64))
