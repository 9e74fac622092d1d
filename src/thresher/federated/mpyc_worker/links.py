"""Connections with the peers: who may join, and messages with labels.

Of two parties the one with the lower number connects. It says hello: magic, how many parties there are, its number, the
number it wants to speak to, and the keys it shares with it. A message is a label (8 bytes), a length (4) and so many
bytes. Whatever goes wrong ends the process through ``fail``: the caller can only start again.

How many bytes a peer may send follows from what this party does: each command expects so many, and a peer is at most
the first message of the next command ahead, which all have to answer. Whoever sends more ends the session.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, NoReturn, Protocol

HELLO = struct.Struct("<4sHHH")
MAGIC = b"THM1"
MESSAGE = struct.Struct("<qI")
LARGEST = 2**28  # bytes in a message; longer is nonsense, which must not fill the memory
AGAIN = 0.05  # seconds until a peer that does not listen yet is tried again

Fail = Callable[[str, Sequence[int]], NoReturn]  # the reason, and whose fault it is, if known


class Keys(Protocol):
    """Where the keys of joint randomness come from and go to."""

    def keys_for(self, peer: int) -> bytes: ...

    def keys_length(self, peer: int) -> int: ...

    def keep_keys(self, peer: int, keys: bytes) -> None: ...


@dataclass(frozen=True)
class Endpoint:
    """This party's place: its number, everybody's address, the names in their certificates, and its files."""

    me: int
    addresses: Sequence[tuple[str, int]]
    names: Sequence[str]
    certificate: str | None
    key: str | None
    authority: str | None

    def context(self, side: int) -> ssl.SSLContext | None:
        """TLS in which both sides show a certificate."""
        if self.certificate is None:
            return None
        context = ssl.SSLContext(side)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(self.certificate, self.key)
        context.load_verify_locations(self.authority)
        return context

    def recognises(self, peer: int, certificate: Mapping[str, Sequence[tuple[str, str]]]) -> bool:
        """Whether a certificate names this peer, and no other party; without TLS there is none to look at."""
        if self.certificate is None:
            return True
        carried = {value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"}
        return carried & set(self.names) == {self.names[peer]}


class Links:
    """A link with every peer, once all have joined."""

    def __init__(self, endpoint: Endpoint, keys: Keys, fail: Fail, ahead: int, transcript: IO[bytes] | None) -> None:
        self.endpoint, self.keys, self.fail = endpoint, keys, fail
        self.sent = 0
        self.allowed = MESSAGE.size + ahead
        """Bytes of messages that each peer may have sent by now; ``ahead`` are those of a command's first."""
        self._transcript = transcript
        self._links: dict[int, Link] = {}
        self._complete = asyncio.Event()

    def __getitem__(self, peer: int) -> Link:
        return self._links[peer]

    @property
    def peers(self) -> list[int]:
        return [party for party in range(len(self.endpoint.addresses)) if party != self.endpoint.me]

    @property
    def absent(self) -> list[int]:
        return [peer for peer in self.peers if peer not in self._links]

    @property
    def awaited(self) -> list[int]:
        return [peer for peer, link in self._links.items() if link.awaited]

    async def join(self) -> None:
        """Listens at this party's own address, and nowhere else, until everybody is there."""
        loop, me = asyncio.get_running_loop(), self.endpoint.me
        server = None
        if me > 0:
            context = self.endpoint.context(ssl.PROTOCOL_TLS_SERVER)
            try:
                server = await loop.create_server(lambda: Link(self), *self.endpoint.addresses[me], ssl=context)
            except OSError:
                self.fail("address", [me])
        async with asyncio.TaskGroup() as group:
            for peer in self.peers:
                if peer > me:
                    group.create_task(self._connect(peer))
        await self._complete.wait()
        if server is not None:
            server.close()

    async def _connect(self, peer: int) -> None:
        loop, context = asyncio.get_running_loop(), self.endpoint.context(ssl.PROTOCOL_TLS_CLIENT)
        name = self.endpoint.names[peer] if context is not None else None
        while True:
            try:
                await loop.create_connection(
                    lambda: Link(self, peer), *self.endpoint.addresses[peer], ssl=context, server_hostname=name
                )
                return
            except ssl.SSLCertVerificationError:
                self.fail("identity", [peer])
            except OSError:
                await asyncio.sleep(AGAIN)

    def expect(self, *messages: int) -> None:
        """Each peer may send messages of these many bytes."""
        self.allowed += sum(MESSAGE.size + size for size in messages)

    def joined(self, peer: int, link: Link) -> None:
        if peer in self._links:
            self.fail("twice", [peer])
        self._links[peer] = link
        if not self.absent:
            self._complete.set()

    def record(self, data: bytes) -> None:
        if self._transcript is not None:
            self._transcript.write(data)
            self._transcript.flush()

    async def close(self, linger: float) -> None:
        """Ends the connections, after at most ``linger`` seconds for what is still to be sent."""
        for link in self._links.values():
            link.transport.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(linger):
                for link in self._links.values():
                    await link.lost.wait()


class Link(asyncio.Protocol):
    """The connection with one peer, whose number is not known before its hello if it was the one to connect."""

    transport: asyncio.Transport

    def __init__(self, links: Links, peer: int | None = None) -> None:
        self._links, self._peer = links, peer
        self._received = bytearray()
        self._taken = 0  # bytes of whole messages
        self._messages: dict[int, bytes] = {}
        self._awaited: dict[int, asyncio.Future[bytes]] = {}
        self.lost = asyncio.Event()

    @property
    def awaited(self) -> bool:
        return bool(self._awaited)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  (for the type checker: TCP is a stream)
        self.transport = transport
        if self._peer is not None:
            endpoint = self._links.endpoint
            hello = HELLO.pack(MAGIC, len(endpoint.addresses), endpoint.me, self._peer)
            self._check_identity(self._peer)
            self._write(hello + self._links.keys.keys_for(self._peer))
            self._links.joined(self._peer, self)

    def send(self, label: int, payload: bytes) -> None:
        self._write(MESSAGE.pack(label, len(payload)) + payload)

    async def receive(self, label: int) -> bytes:
        """The peer's message of this label; what it sent before it left is still there."""
        if label in self._messages:
            return self._messages.pop(label)
        if self.lost.is_set():
            self._links.fail("lost", self._who())
        self._awaited[label] = asyncio.get_running_loop().create_future()
        return await self._awaited[label]

    def data_received(self, data: bytes) -> None:
        self._links.record(data)
        self._received += data
        if self._peer is None and not self._is_hello_complete():
            return
        if self._taken + len(self._received) > self._links.allowed:
            self._links.fail("flood", self._who())
        while len(self._received) >= MESSAGE.size:
            label, length = MESSAGE.unpack_from(self._received)
            if length > LARGEST or label in self._messages:
                self._links.fail("nonsense", self._who())
            end = MESSAGE.size + length
            if len(self._received) < end:
                return
            self._deliver(label, bytes(self._received[MESSAGE.size : end]))
            del self._received[:end]
            self._taken += end

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.set()
        joining = self._peer is not None and self._links.absent
        if joining or self._awaited:
            self._links.fail("lost", self._who())

    def _write(self, data: bytes) -> None:
        self._links.record(data)
        self._links.sent += len(data)
        self.transport.write(data)

    def _deliver(self, label: int, payload: bytes) -> None:
        if label in self._awaited:
            self._awaited.pop(label).set_result(payload)
        else:
            self._messages[label] = payload

    def _is_hello_complete(self) -> bool:
        """Whether the hello is complete; it is then checked, and the peer has joined."""
        endpoint, keys = self._links.endpoint, self._links.keys
        if len(self._received) < HELLO.size:
            return False
        magic, parties, peer, wanted = HELLO.unpack_from(self._received)
        if magic != MAGIC or parties != len(endpoint.addresses) or wanted != endpoint.me or peer >= endpoint.me:
            self._links.fail("stranger", [])
        end = HELLO.size + keys.keys_length(peer)
        if len(self._received) < end:
            return False
        self._check_identity(peer)
        self._peer = peer
        self._links.joined(peer, self)
        keys.keep_keys(peer, bytes(self._received[HELLO.size : end]))
        del self._received[:end]
        return True

    def _check_identity(self, peer: int) -> None:
        if not self._links.endpoint.recognises(peer, self.transport.get_extra_info("peercert")):
            self._links.fail("identity", [peer])

    def _who(self) -> list[int]:
        return [] if self._peer is None else [self._peer]
