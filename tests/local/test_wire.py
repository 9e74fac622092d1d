"""Reports as bytes: one encoding each, nothing else accepted, and grids that leave the mean alone."""

from __future__ import annotations

import math
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surveys import ESTIMATORS, LABELS, client_of, could_be_sent, server_of
from thresher import LocalSparseRegressor
from thresher.algorithms import LDPIHT
from thresher.local import BadReport, Report, Server, decode, encode
from thresher.local.wire import REASONS, format_of
from thresher.vaults.randomisers import Classes, Gaussian, Hypercube, Laplace, Piecewise, Sphere
from thresher.vaults.randomness import NoiseSource

FALSE_ALARM = 1e-6  # of each statistical test under a fresh seed; with the seeds here the verdicts never change
SERVERS = {name: server_of(name) for name in ESTIMATORS}
HEADER = 41
kinds = pytest.mark.parametrize("name", ESTIMATORS)


def report_of(name, person=0, seed=0):
    server = SERVERS[name]
    client = client_of(server.task, name, person, _noise=NoiseSource(100 * person + seed))
    return client.answer(server.question())


def sealed(body):
    """With the check that belongs to it."""
    return body + struct.pack(">I", zlib.crc32(body))


def verdict(data, task):
    """ "fine", or the reason why not; what is fine must be possible and have this one encoding."""
    try:
        report = decode(data, task)
    except BadReport as error:
        return REASONS[REASONS.index(error.reason)]
    assert encode(report, task) == data
    assert could_be_sent(task, report.units)
    return "fine"


# -- the format ---------------------------------------------------------------------------------------------------


@kinds
def test_a_report_comes_back_as_it_was_sent(name):
    task = SERVERS[name].task
    for person in range(20):
        data = report_of(name, person)
        report = decode(data, task)
        assert verdict(data, task) == "fine"
        assert report.round == 1
        assert report.row == (person if name in LABELS else None)


def test_the_bytes_are_those_of_the_specification():
    """Written out by hand: version 1 must never change."""
    task = SERVERS["sampled-signs"].task
    assert (task.randomiser.dimension, task.randomiser.sampled) == (6, 2)
    units = np.array([0, 1, 0, 0, -1, 0])
    body = b"THRS\x01" + bytes.fromhex(task.fingerprint)[:16] + b"\x00\x00\x00\x03" + bytes(range(16))
    body += b"\x00\x00\x00\x01\x00\x00\x00\x04" + b"\x80"
    assert encode(Report(3, bytes(range(16)), None, units), task) == sealed(body)
    task = SERVERS["laplace labels"].task
    body = b"THRS\x01" + bytes.fromhex(task.fingerprint)[:16] + b"\x00\x00\x00\x01" + bytes(16)
    body += b"\x00\x00\x00\x07" + b"\xff\xfe"
    assert encode(Report(1, bytes(16), 7, np.array([-2])), task) == sealed(body)


SIZES = {
    ("duchi-l2", 1): 247, ("duchi-l2", 4): 247, ("priv-unit", 1): 247, ("priv-unit", 4): 247,
    ("duchi-linf", 1): 58, ("duchi-linf", 4): 58, ("one-coordinate", 1): 50, ("one-coordinate", 4): 50,
    ("sampled-signs", 1): 50, ("sampled-signs", 4): 62,
}  # fmt: skip


@pytest.mark.parametrize(("name", "epsilon"), SIZES)
def test_reports_of_a_hundred_features_are_small(name, epsilon):
    estimator = LocalSparseRegressor(5, epsilon, algorithm=LDPIHT(randomiser=name), feature_bound=1.0, target_bound=1.0)
    layout = format_of(Server(estimator, 10_000, 100).task)
    assert HEADER + layout.size + 4 == SIZES[name, epsilon]


# -- the grid -----------------------------------------------------------------------------------------------------

SAMPLE = 20_000
VECTOR = np.array([0.6, -0.3, 0.0, 1e-5, 0.1])
RANDOMISED = {
    "half-sphere": (Sphere.duchi(5, 1.0), VECTOR),
    "cap": (Sphere.best(5, 4.0), VECTOR),
    "all signs": (Hypercube.duchi(5, 1.0), VECTOR),
    "some signs": (Hypercube.best(5, 8.0), VECTOR),
    "one sign": (Hypercube.one_coordinate(5, 1.0), VECTOR),
    "laplace": (Laplace(1.0), 0.3),
    "laplace, large epsilon": (Laplace(20.0), -1.0),
    "gaussian": (Gaussian(0.5), 0.3),
    "piecewise": (Piecewise(1.0), 0.9),
    "piecewise, small epsilon": (Piecewise(0.01), -1.0),
}


class Asked:
    """A task of which only the randomiser matters."""

    def __init__(self, randomiser):
        self.randomiser = randomiser


def decoded(randomiser, units):
    """The values of units, the first of which went through bytes."""
    layout = format_of(Asked(randomiser))
    for row in units[:200]:
        np.testing.assert_array_equal(layout.unpack(layout.pack(row)), row)
    reports = layout.reports(units)
    if isinstance(randomiser, Hypercube):
        return reports.signs * randomiser.size
    return reports.reshape(len(units), -1)


@pytest.mark.parametrize("name", RANDOMISED)
def test_the_mean_of_decoded_reports_is_the_value(name):
    randomiser, value = RANDOMISED[name]
    noise, layout = NoiseSource(1), format_of(Asked(randomiser))
    units = layout.units(randomiser.randomise(np.array([value] * SAMPLE), noise), noise)
    values = decoded(randomiser, units)
    errors = np.abs(values.mean(axis=0) - value) / (values.std(axis=0) / math.sqrt(SAMPLE))
    assert errors.max() < 5.3  # one in 10^6 of five coordinates


@pytest.mark.parametrize("name", [name for name in RANDOMISED if "sign" not in name])
def test_rounding_alone_has_no_bias_and_a_fiftieth_of_a_step_would_be_noticed(name):
    """One report, rounded again and again; the sd of a rounding is at most half a step."""
    randomiser, value = RANDOMISED[name]
    noise, layout = NoiseSource(2), format_of(Asked(randomiser))
    (report,) = randomiser.randomise(np.array([value]), noise)
    step = randomiser.size / 32767 if isinstance(randomiser, Sphere) else max(1.0, randomiser.size) / 1024
    units = layout.units(np.array([report] * 4 * SAMPLE), noise)
    off = layout.reports(units).reshape(len(units), -1) - report
    errors = off.mean(axis=0) / (step / 2 / math.sqrt(len(units)))
    assert np.abs(errors).max() < 5.3
    assert np.abs(errors + 0.02 * 2 * math.sqrt(len(units))).max() > 5.3
    assert np.abs(off).max() <= step


@pytest.mark.parametrize("randomiser", [Laplace(0.5), Gaussian(3.0), Piecewise(0.5)])
def test_noise_beyond_what_is_told_apart_is_held_at_the_edge(randomiser):
    layout = format_of(Asked(randomiser))
    units = layout.units(np.array([1e300, -1e300, np.inf]), NoiseSource(0))
    most = 1024 if isinstance(randomiser, Piecewise) else (1 + 16 * randomiser.size) * 1024 / max(randomiser.size, 1)
    assert np.abs(units).ravel().tolist() == [math.floor(most)] * 3
    assert decoded(randomiser, units).shape == (3, 1)


def test_no_float_leaves_the_device():
    """Two reports whose floats differ in the last bits only are the same bytes."""
    for name in ("half-sphere", "laplace", "gaussian", "piecewise"):
        randomiser, value = RANDOMISED[name]
        layout = format_of(Asked(randomiser))
        report = randomiser.randomise(np.array([value]), NoiseSource(3))
        near = np.nextafter(np.nextafter(report, np.inf), np.inf)
        one, two = (layout.units(given, NoiseSource(4))[0] for given in (report, near))
        assert layout.pack(one) == layout.pack(two)


def test_a_class_beyond_256_takes_two_bytes():
    for classes, size in ((256, 1), (257, 2), (65536, 2)):
        layout = format_of(Asked(Classes(classes, 1.0)))
        assert layout.size == size
        assert layout.unpack(layout.pack(np.array([classes - 1])))[0] == classes - 1
        with pytest.raises(BadReport, match="range"):
            format_of(Asked(Classes(classes - 1, 1.0))).unpack(layout.pack(np.array([classes - 1]))[-layout.size :])


# -- hostile bytes ------------------------------------------------------------------------------------------------


@kinds
def test_every_flipped_bit_is_noticed(name):
    data, task = report_of(name), SERVERS[name].task
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        assert verdict(bytes(flipped), task) != "fine"


@kinds
def test_every_other_length_is_noticed(name):
    data, task = report_of(name), SERVERS[name].task
    for length in range(len(data)):
        assert verdict(data[:length], task) != "fine"
        assert verdict(sealed(data[:length]), task) != "fine" or length == len(data) - 4
    assert verdict(data + b"\0", task) == verdict(sealed(data[:-4] + b"\0"), task) == "malformed"


@pytest.mark.parametrize("data", [None, "THRS", 10**9, [1, 2], bytearray(60), memoryview(b"THRS")])
def test_what_is_no_bytes_is_malformed(data):
    assert verdict(data, SERVERS["row bound"].task) == "malformed"


def changed(data, at, new):
    return sealed(data[:at] + new + data[at + len(new) : -4])


@kinds
def test_headers_that_do_not_fit_are_told_apart(name):
    data, task = report_of(name), SERVERS[name].task
    assert verdict(changed(data, 4, b"\x02"), task) == verdict(changed(data, 4, b"\x00"), task) == "version"
    assert verdict(changed(data, 0, b"XXXX"), task) == "malformed"
    assert verdict(changed(data, 5, bytes(16)), task) == "task"
    assert verdict(changed(data, 21, bytes(4)), task) == "round"
    assert verdict(changed(data, 21, struct.pack(">I", task.rounds + 1)), task) == "round"
    if name in LABELS:
        assert verdict(changed(data, 41, struct.pack(">I", task.people)), task) == "unknown row"


def test_a_report_has_one_encoding():
    """Coordinates out of order, twice, or beyond the dimension, and padding bits that are set."""
    data, task = report_of("sampled-signs"), SERVERS["sampled-signs"].task

    def told(first, second, signs):
        return verdict(changed(data, 41, struct.pack(">IIB", first, second, signs)), task)

    assert told(1, 4, 0b10000000) == told(1, 4, 0b11000000) == told(4, 5, 0) == "fine"
    assert told(4, 1, 0) == told(4, 4, 0) == told(1, 4, 0b00100000) == told(1, 4, 1) == "malformed"
    assert told(1, 6, 0) == told(1, 2**32 - 1, 0) == "range"


def test_points_off_the_sphere_are_out_of_range():
    data, task = report_of("priv-unit"), SERVERS["priv-unit"].task

    def told(*units):
        return verdict(changed(data, 41, struct.pack(">6h", *units)), task)

    assert told(32767, 0, 0, 0, 0, 0) == told(0, 0, -32766, 1, 1, 1) == told(23170, 23170, 0, 0, 0, 1) == "fine"
    assert told(0, 0, 0, 0, 0, 0) == told(32767, 32767, 0, 0, 0, 0) == told(-32768, 0, 0, 0, 0, 0) == "range"
    assert told(23173, 23172, 0, 0, 0, 0) == told(23168, 23168, 0, 0, 0, 0) == told(32765, 0, 0, 0, 0, 0) == "range"


def test_numbers_beyond_the_noise_are_out_of_range():
    for name, most in (("piecewise labels", 1024), ("laplace labels", 17 * 1024)):
        data, task = report_of(name), SERVERS[name].task
        for units, expected in ((most, "fine"), (-most, "fine"), (most + 1, "range"), (-most - 1, "range")):
            assert verdict(changed(data, 45, struct.pack(">h", units)), task) == expected


fuzzed = settings(max_examples=150, deadline=None)
REPORTS = {name: [report_of(name, person) for person in range(3)] for name in ESTIMATORS}


@fuzzed
@given(name=st.sampled_from(list(ESTIMATORS)), data=st.binary(max_size=200))
def test_random_bytes_are_refused(name, data):
    assert verdict(data, SERVERS[name].task) != "fine"
    assert verdict(b"THRS\x01" + data, SERVERS[name].task) != "fine"


@st.composite
def mutated(draw):
    """A valid report with bits flipped, cut, extended or spliced with another; perhaps with the right check again."""
    name = draw(st.sampled_from(list(ESTIMATORS)))
    data = bytearray(draw(st.sampled_from(REPORTS[name])))
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["flip", "cut", "extend", "splice", "overwrite"]))
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        if kind == "flip" and data:
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "cut":
            del data[at : at + draw(st.integers(1, 8))]
        elif kind == "extend":
            data[at:at] = draw(st.binary(min_size=1, max_size=8))
        elif kind == "overwrite":
            new = draw(st.binary(min_size=1, max_size=8))
            data[at : at + len(new)] = new
        else:
            other = draw(st.sampled_from(REPORTS[draw(st.sampled_from(list(ESTIMATORS)))]))
            data[at:] = other[at:]
    return name, sealed(bytes(data[:-4])) if draw(st.booleans()) else bytes(data)


@settings(max_examples=300, deadline=None)
@given(given_=mutated())
def test_mutated_reports_are_refused_or_possible(given_):
    name, data = given_
    verdict(data, SERVERS[name].task)


@st.composite
def shaped(draw):
    """The right header and length, any payload."""
    name = draw(st.sampled_from(list(ESTIMATORS)))
    start = 45 if name in LABELS else 41
    size = len(REPORTS[name][0]) - 4 - start
    row = struct.pack(">I", draw(st.integers(0, 70))) if name in LABELS else b""
    number = struct.pack(">I", draw(st.integers(0, 4)))
    payload = draw(st.binary(min_size=size, max_size=size))
    return name, sealed(REPORTS[name][0][:21] + number + draw(st.binary(min_size=16, max_size=16)) + row + payload)


@settings(max_examples=300, deadline=None)
@given(given_=shaped())
def test_a_right_header_with_any_payload_is_refused_or_possible(given_):
    name, data = given_
    verdict(data, SERVERS[name].task)
