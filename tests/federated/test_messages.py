"""Messages have one encoding, and bytes that are none are refused with a reason."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher.federated.messages import HEADER, REASONS, SERVER, BadMessage, Message, SumStage, decode, encode

MESSAGE = Message(SumStage.SHARE, 7, SERVER, {0: b"first", 3: b"", 9: b"last"})

messages = st.builds(
    Message,
    stage=st.sampled_from(SumStage),
    round=st.integers(0, 2**64 - 1),
    sender=st.integers(0, SERVER),
    contents=st.dictionaries(st.integers(0, SERVER), st.binary(max_size=20), max_size=6),
)


@given(messages)
@settings(max_examples=200, deadline=None)
def test_a_message_comes_back_as_it_was(message):
    assert decode(encode(message), message.stage, message.round) == message


@given(messages, st.data())
@settings(max_examples=300, deadline=None)
def test_changed_bytes_are_another_message_or_refused(message, data):
    """Never read as the same message: each has one encoding."""
    good = encode(message)
    place = data.draw(st.integers(0, len(good) - 1))
    bad = good[:place] + bytes([good[place] ^ data.draw(st.integers(1, 255))]) + good[place + 1 :]
    with suppress(BadMessage):
        assert decode(bad, message.stage, message.round) != message


@given(st.binary(max_size=80))
@settings(max_examples=300, deadline=None)
def test_noise_is_refused_with_a_reason(data):
    with pytest.raises(BadMessage) as error:
        decode(b"THRM\x01" + data, SumStage.MASK, 2**64 - 2)
    assert error.value.reason in REASONS


@pytest.mark.parametrize("size", [*range(HEADER.size + 1), len(encode(MESSAGE)) - 1])
def test_a_message_cut_short_is_refused(size):
    with pytest.raises(BadMessage, match="malformed"):
        decode(encode(MESSAGE)[:size], SumStage.SHARE, 7)


@pytest.mark.parametrize(
    ("data", "stage", "number", "reason"),
    [
        (encode(MESSAGE) + b"\0", SumStage.SHARE, 7, "malformed"),
        (encode(MESSAGE), SumStage.MASK, 7, "stage"),
        (encode(MESSAGE), SumStage.SHARE, 8, "round"),
        (b"THRM\x02" + encode(MESSAGE)[5:], SumStage.SHARE, 7, "version"),
        (b"JUNK" + encode(MESSAGE)[4:], SumStage.SHARE, 7, "malformed"),
    ],
)
def test_a_message_for_another_place_is_refused(data, stage, number, reason):
    with pytest.raises(BadMessage) as error:
        decode(data, stage, number)
    assert error.value.reason == reason


def test_parties_out_of_order_or_twice_are_refused():
    body = encode(Message(SumStage.SHARE, 7, SERVER, {1: b"a", 2: b"b"}))
    one, two = body[HEADER.size : HEADER.size + 7], body[HEADER.size + 7 :]
    for entries in (two + one, one + one):
        with pytest.raises(BadMessage, match="malformed"):
            decode(body[: HEADER.size] + entries, SumStage.SHARE, 7)
