"""A report as bytes: small, versioned, with exactly one encoding, and checked against what a person could have sent.

    magic 4 | version 1 | task 16 | round 4 | id 16 | [row 4] | payload | CRC-32 4        (numbers big-endian)

``task`` is the start of its fingerprint. ``id`` is random, so that a report is counted once; it must never be anything
that names a person. ``row`` is there where features are public. The payload is whole numbers, the *units* of a report:

* signs: the coordinates (32 bits each, none if all are reported), then a bit for each sign;
* a point of a sphere: 16 bits for each coordinate, in steps of 1/32767 of the sphere's radius;
* a number: 16 bits, in steps of 1/1024 of its noise's scale (or of a label's largest size, if that is more);
* a class: 8 bits, or 16.

The low bits of a float64 computed from a record can tell the record (Mironov 2012), so none leaves the device. Points
and numbers go onto their coarse grid by rounding up or down at random, with chances that make the mean right: unbiased,
and a post-processing of the report with noise of its own, hence free. Noise beyond 16 of its scales is held there.
"""

from __future__ import annotations

import math
import struct
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from thresher.local.task import Randomiser, SurveyTask
from thresher.privacy.arrays import Floats
from thresher.vaults.randomisers import Classes, Gaussian, Hypercube, Laplace, Piecewise, Signs, Sphere
from thresher.vaults.randomness import NoiseSource

__all__ = ["REASONS", "BadReport", "Report", "decode", "encode", "format_of", "fresh_id"]

Units = NDArray[np.int64]

Reports = Signs | Floats | Units
"""What randomisers report."""

MAGIC, VERSION = b"THRS", 1
HEADER, ROW, CHECK = struct.Struct(">4sB16sI16s"), struct.Struct(">I"), struct.Struct(">I")
RADIUS = 32767  # grid steps of a sphere's radius
STEPS, TAIL = 1024, 16  # grid steps of a number's scale; scales of noise that are told apart

REASONS = ("malformed", "version", "task", "round", "range", "replayed", "unknown row", "crowd")


class BadReport(ValueError):  # noqa: N818  (the public name says what it is)
    """Bytes that are no report to this task.

    Parameters
    ----------
    reason : str
        One of ``thresher.local.wire.REASONS``.

    Examples
    --------
    >>> from thresher.local import BadReport
    >>> BadReport("range").reason
    'range'
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"not a report to this task: {reason}")
        self.reason = reason


@dataclass(frozen=True, eq=False)
class Report:
    """What a person sent.

    Parameters
    ----------
    round : int
        Which question it answers.
    id : bytes
        Random, so that a report counts once; it names nobody.
    row : int or None
        The number of the person's row, where features are public.
    units : array of int
        The randomised record, in whole steps of the task's grid.

    Examples
    --------
    >>> from thresher import LocalSparseRegressor
    >>> from thresher.local import Client, Server, decode
    >>> server = Server(LocalSparseRegressor(1, 4.0, feature_bound=1.0, target_bound=2.0), people=100, features=2)
    >>> decode(Client(server.task, [0.5, -1.0], 1.5).answer(server.question()), server.task).round
    1
    """

    round: int
    id: bytes
    row: int | None
    units: Units


def encode(report: Report, task: SurveyTask) -> bytes:
    """The bytes of a report.

    Parameters
    ----------
    report : Report
        What a person's randomiser gave.
    task : SurveyTask
        The survey that it is for.

    Examples
    --------
    >>> from thresher import LocalSparseRegressor
    >>> from thresher.local import Client, Server, decode, encode
    >>> server = Server(LocalSparseRegressor(1, 4.0, feature_bound=1.0, target_bound=2.0), people=100, features=2)
    >>> data = Client(server.task, [0.5, -1.0], 1.5).answer(server.question())
    >>> encode(decode(data, server.task), server.task) == data
    True
    """
    head = HEADER.pack(MAGIC, VERSION, _short_name(task), report.round, report.id)
    row = b"" if report.row is None else ROW.pack(report.row)
    body = head + row + format_of(task).pack(report.units)
    return body + CHECK.pack(zlib.crc32(body))


def decode(data: bytes, task: SurveyTask) -> Report:
    """The report that ``data`` encodes; any bytes that ``encode`` would not have made raise ``BadReport``.

    Whoever sends may lie about the record; the checks make sure that it is a lie some record could have told.

    Parameters
    ----------
    data : bytes
        What came.
    task : SurveyTask
        The survey that it came for.

    Examples
    --------
    >>> from thresher import LocalSparseRegressor
    >>> from thresher.local import BadReport, Server, decode
    >>> server = Server(LocalSparseRegressor(1, 4.0, feature_bound=1.0, target_bound=2.0), people=100, features=2)
    >>> try:
    ...     decode(b"hello", server.task)
    ... except BadReport as error:
    ...     print(error.reason)
    malformed
    """
    if not isinstance(data, bytes) or len(data) < HEADER.size or not data.startswith(MAGIC):
        raise BadReport("malformed")
    _, version, name, number, identity = HEADER.unpack_from(data)
    if version != VERSION:
        raise BadReport("version")
    layout, public = format_of(task), task.trust == "labels"
    start = HEADER.size + (ROW.size if public else 0)
    body, check = data[: -CHECK.size], data[-CHECK.size :]
    if len(body) != start + layout.size or CHECK.pack(zlib.crc32(body)) != check:
        raise BadReport("malformed")
    if name != _short_name(task):
        raise BadReport("task")
    if not 1 <= number <= task.rounds:
        raise BadReport("round")
    row = ROW.unpack_from(data, HEADER.size)[0] if public else None
    if row is not None and row >= task.people:
        raise BadReport("unknown row")
    return Report(number, identity, row, layout.unpack(body[start:]))


def fresh_id(noise: NoiseSource) -> bytes:
    """128 random bits that name a report, or a survey, and nobody."""
    return noise.uniform_integers(256, 16).astype(np.uint8).tobytes()


def _short_name(task: SurveyTask) -> bytes:
    return bytes.fromhex(task.fingerprint)[:16]


Reported = TypeVar("Reported")


class Format(Protocol[Reported]):
    """How the reports of a randomiser are whole numbers, and those are bytes."""

    size: int
    """Bytes of a payload."""

    def units(self, reports: Reported, noise: NoiseSource) -> Units:
        """Reports of the randomiser on the grid, a row for each."""
        ...

    def reports(self, units: Units) -> Reported:
        """Rows of units, or sums of such rows, as the randomiser knows reports."""
        ...

    def pack(self, units: Units) -> bytes: ...

    def unpack(self, payload: bytes) -> Units:
        """The units in a payload of the right size, if the randomiser can report them."""
        ...


def format_of(task: SurveyTask) -> Format[Any]:
    """The payload of a task's reports."""
    return _format_of(task.randomiser)


@lru_cache(maxsize=64)
def _format_of(randomiser: Randomiser) -> Format[Any]:
    if isinstance(randomiser, Hypercube):
        return SignBits(randomiser)
    if isinstance(randomiser, Sphere):
        return SpherePoint(randomiser)
    if isinstance(randomiser, Classes):
        return ClassNumber(randomiser)
    return GridNumber(randomiser)


class SignBits:
    """Units: +1, -1, or 0 where a coordinate was not sampled."""

    def __init__(self, randomiser: Hypercube) -> None:
        self._dimension, self._sampled = randomiser.dimension, randomiser.sampled
        self._places = 0 if self._sampled == self._dimension else 4 * self._sampled  # bytes
        self.size = self._places + math.ceil(self._sampled / 8)

    def units(self, reports: Signs, noise: NoiseSource) -> Units:
        units = np.zeros((len(reports.at), self._dimension), dtype=np.int64)
        np.put_along_axis(units, reports.at, reports.signs, axis=1)
        return units

    def reports(self, units: Units) -> Signs:
        signs: Any = units  # sums of signs are as good as signs
        return Signs(np.broadcast_to(np.arange(self._dimension), units.shape), signs)

    def pack(self, units: Units) -> bytes:
        at = np.flatnonzero(units)
        places = at.astype(">u4").tobytes() if self._places else b""
        return places + np.packbits(units[at] > 0).tobytes()

    def unpack(self, payload: bytes) -> Units:
        at = (
            np.frombuffer(payload[: self._places], ">u4").astype(np.int64) if self._places else np.arange(self._sampled)
        )
        if at[-1] >= self._dimension:
            raise BadReport("range")
        bits = np.unpackbits(np.frombuffer(payload[self._places :], np.uint8))
        if np.any(at[1:] <= at[:-1]) or bits[self._sampled :].any():
            raise BadReport("malformed")
        units = np.zeros(self._dimension, dtype=np.int64)
        units[at] = np.where(bits[: self._sampled], 1, -1)
        return units


class SpherePoint:
    """Units: the coordinates, in steps of 1/32767 of the radius."""

    def __init__(self, randomiser: Sphere) -> None:
        self._step = randomiser.size / RADIUS
        self.size = 2 * randomiser.dimension

    def units(self, reports: Floats, noise: NoiseSource) -> Units:
        radii = np.linalg.norm(reports, axis=1, keepdims=True)  # the known radius, to the last bit
        return _on_grid(reports / radii * RADIUS, RADIUS, noise)

    def reports(self, units: Units) -> Floats:
        points: Floats = np.multiply(units, self._step, dtype=np.float64)
        return points

    def pack(self, units: Units) -> bytes:
        return units.astype(">i2").tobytes()

    def unpack(self, payload: bytes) -> Units:
        """A point whose every coordinate is less than a step away from one on the sphere: the cube of such points
        holds shorter and longer ones than the radius."""
        units = np.frombuffer(payload, ">i2").astype(np.int64)
        sizes = np.abs(units)
        shortest, longest = np.maximum(sizes - 1, 0), sizes + 1
        if sizes.max() > RADIUS or not shortest @ shortest < RADIUS**2 < longest @ longest:
            raise BadReport("range")
        return units


class GridNumber:
    """Units: the number, in steps of 1/1024 of the noise's scale, or of a label's largest size, 1, if that is more."""

    size = 2

    def __init__(self, randomiser: Laplace | Piecewise | Gaussian) -> None:
        scale = randomiser.size
        self._step = max(scale, 1.0) / STEPS
        self._most = STEPS if isinstance(randomiser, Piecewise) else math.floor((1 + TAIL * scale) / self._step)

    def units(self, reports: Floats, noise: NoiseSource) -> Units:
        return _on_grid(reports / self._step, self._most, noise)[:, None]

    def reports(self, units: Units) -> Floats:
        numbers: Floats = np.multiply(units[:, 0], self._step, dtype=np.float64)
        return numbers

    def pack(self, units: Units) -> bytes:
        return units.astype(">i2").tobytes()

    def unpack(self, payload: bytes) -> Units:
        units = np.frombuffer(payload, ">i2").astype(np.int64)
        if abs(units[0]) > self._most:
            raise BadReport("range")
        return units


class ClassNumber:
    """Units: the number of the class."""

    def __init__(self, randomiser: Classes) -> None:
        self._classes = randomiser.classes
        self.size = 1 if self._classes <= 2**8 else 2

    def units(self, reports: Units, noise: NoiseSource) -> Units:
        return reports[:, None]

    def reports(self, units: Units) -> Units:
        return units[:, 0]

    def pack(self, units: Units) -> bytes:
        return int(units[0]).to_bytes(self.size, "big")

    def unpack(self, payload: bytes) -> Units:
        found = int.from_bytes(payload, "big")
        if found >= self._classes:
            raise BadReport("range")
        return np.array([found], dtype=np.int64)


def _on_grid(steps: Floats, most: int, noise: NoiseSource) -> Units:
    """Whole numbers whose mean is ``steps``; what lies beyond ``most`` is held there."""
    return np.clip(np.floor(steps + noise.uniform(steps.shape)), -most, most).astype(np.int64)
