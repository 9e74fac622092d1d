"""Parties on this machine that make the same call at the same time, and a peer that can do as it likes."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading

from thresher.federated.endpoints import free_ports
from thresher.federated.mpyc import MPyCParty
from thresher.federated.mpyc_worker.links import HELLO, MAGIC, MESSAGE
from waiting import MINUTES, eventually


def addresses_of(parties):
    return [("127.0.0.1", port) for port in free_ports(parties)]


@contextlib.contextmanager
def joined_parties(*seats, parties=3, addresses=None, **settings):
    """The parties of these numbers, all of them by default, each with its own value of a setting that is a list."""
    addresses = addresses or addresses_of(parties)
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(MPyCParty(me, addresses, **{name: of(value, me) for name, value in settings.items()}))
            for me in seats or range(parties)
        ]


def of(value, me):
    return value[me] if isinstance(value, tuple) else value


def call_all(parties, call, *arguments):
    """What each party gets from a call, or the error it raises."""
    outcomes = [None] * len(parties)

    def make(at, party, *own):
        try:
            outcomes[at] = getattr(party, call)(*own)
        except Exception as error:
            outcomes[at] = error

    calls = zip(range(len(parties)), parties, *arguments, strict=True)
    threads = [threading.Thread(target=make, args=own, daemon=True) for own in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * MINUTES)
        assert not thread.is_alive(), f"{call} hangs"
    return outcomes


def process_ends(pid):
    """Whether a process ends and is no zombie."""

    def ended():
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return False

    return eventually(ended)


def connected(address):
    """A connection with a worker, which takes a while until it listens."""

    def tried():
        try:
            return socket.create_connection(address, timeout=MINUTES)
        except ConnectionRefusedError:
            return None

    connection = eventually(tried)
    assert connection is not None, f"nobody listens at {address}"
    return connection


def connect_as(addresses, peer, claim=0):
    """A connection on which ``claim`` said hello to ``peer`` like the worker of one of three parties."""
    keys = bytes(16)  # a party shares one set of two with each other
    connection = connected(addresses[peer])
    connection.sendall(HELLO.pack(MAGIC, 3, claim, peer) + keys)
    return connection


class FakeParty:
    """Party 0 of three as a pair of sockets."""

    def __init__(self, addresses):
        self.sockets = [connect_as(addresses, peer) for peer in (1, 2)]

    def send(self, label, payload):
        self.send_raw(MESSAGE.pack(label, len(payload)) + payload)

    def send_raw(self, data):
        for connection in self.sockets:
            connection.sendall(data)

    def receive(self):
        """The next message of each peer: label and payload."""
        found = []
        for connection in self.sockets:
            label, length = MESSAGE.unpack(connection.recv(MESSAGE.size, socket.MSG_WAITALL))
            found.append((label, connection.recv(length, socket.MSG_WAITALL)))
        return found

    def close(self):
        for connection in self.sockets:
            connection.close()


def words_in(data):
    """Every eight bytes in a row of ``data``, as little-endian words."""
    return {word for start in range(8) for (word,) in struct.iter_unpack("<Q", _whole(data[start:]))}


def _whole(data):
    return data[: len(data) - len(data) % 8]
