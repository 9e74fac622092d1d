"""What passes between a worker and its parent: frames of bytes, and a share that outlives both.

A frame is its length, 4 bytes, and so many bytes (numbers are little-endian throughout). The parent's first frame is
the configuration, as JSON. Each later one is a command: one byte that names it, then its argument. An answer is
``DONE``, the bytes sent to peers so far (8) and the result; or ``FAILED`` and a reason as JSON: its last words.
"""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from typing import IO

import numpy as np
from numpy.typing import NDArray

from .mersenne import MODULUS, Words, from_bytes, to_bytes

EXCHANGE, PREPARE, OPEN, CLOSE = b"E", b"P", b"O", b"C"
DONE, FAILED = b"+", b"-"

LENGTH = struct.Struct("<I")
SENT = struct.Struct("<Q")
NOISE = struct.Struct("<Iq")  # how many weights, and the offset
SHARE = struct.Struct("<4sQHHQ16s")  # magic, modulus, party, parties, length, name of the sharing
MAGIC = b"THS1"


def write_frame(stream: IO[bytes], data: bytes) -> None:
    stream.write(LENGTH.pack(len(data)) + data)
    stream.flush()


def read_frame(stream: IO[bytes]) -> bytes | None:
    """The next frame, or None at the end of the stream."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    data = stream.read(length)
    return data if len(data) == length else None


def pack_messages(messages: list[bytes]) -> bytes:
    stream = io.BytesIO()
    for message in messages:
        write_frame(stream, message)
    return stream.getvalue()


def unpack_messages(data: bytes) -> list[bytes]:
    stream = io.BytesIO(data)
    return list(iter(lambda: read_frame(stream), None))


def pack_sum(vector: NDArray[np.int64], weights: NDArray[np.int64], offset: int) -> bytes:
    """The argument of ``PREPARE``: this party's vector and the noise, coins @ weights - offset."""
    return NOISE.pack(len(weights), offset) + weights.astype("<i8").tobytes() + vector.astype("<i8").tobytes()


def unpack_sum(data: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    bits, offset = NOISE.unpack_from(data)
    numbers = np.frombuffer(data, "<i8", offset=NOISE.size).astype(np.int64)
    return numbers[bits:], numbers[:bits], offset


@dataclass(frozen=True, eq=False)
class Share:
    """One party's numbers of a sharing; ``name`` is the same at every party and at no other sharing."""

    party: int
    parties: int
    name: bytes
    numbers: Words

    def pack(self) -> bytes:
        head = SHARE.pack(MAGIC, MODULUS, self.party, self.parties, len(self.numbers), self.name)
        return head + to_bytes(self.numbers)

    @classmethod
    def unpack(cls, data: bytes) -> Share:
        """The share in ``data``; ValueError says why there is none."""
        if len(data) < SHARE.size or not data.startswith(MAGIC):
            raise ValueError("it does not start like one")
        _, modulus, party, parties, length, name = SHARE.unpack_from(data)
        if modulus != MODULUS:
            raise ValueError(f"its modulus is {modulus}, not {MODULUS}")
        numbers = from_bytes(data[SHARE.size :], length)
        if numbers is None:
            raise ValueError(f"it does not hold {length} numbers below its modulus")
        return cls(party, parties, name, numbers)
