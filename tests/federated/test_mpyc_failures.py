"""Peers that die, hang, lie or are somebody else: the session ends for everybody, in time, and nothing runs on."""

from __future__ import annotations

import os
import pickle
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from seated import FakeParty, addresses_of, connected, gone, knock, seated, together
from thresher.dithered import DitheredBinomial
from thresher.federated.aborted import Aborted
from thresher.federated.mpyc import MPyCParty

pytest.importorskip("mpyc")

LAW = DitheredBinomial()
LONG = np.zeros(4000, dtype=np.int64)  # preparing it takes seconds
SHORT = np.zeros(5, dtype=np.int64)
TIMEOUT = 4.0
BUSY = 6.0  # seconds that a busy machine may need; whoever waits instead waits for 10 s, 30 s or for ever


def aborted(outcomes, *words):
    """All are Aborted; the text of each holds one of the words."""
    assert all(isinstance(outcome, Aborted) for outcome in outcomes), outcomes
    texts = [str(outcome) for outcome in outcomes]
    assert all(any(word in text for word in words) for text in texts), texts
    return True


def hit(party, how, delay):
    """Sends the worker of a party a signal after so many seconds."""
    threading.Timer(delay, os.kill, (party._worker.pid, how)).start()


# -- death and silence --------------------------------------------------------------------------------------------


def test_when_a_worker_is_killed_while_coins_are_tossed_all_know_at_once():
    with seated(timeout=30.0) as table:
        together(table, "exchange", [b""] * 3)
        hit(table[1], signal.SIGKILL, delay := 1.0)
        outcomes, seconds = together(table, "prepare", [LONG] * 3, [LAW] * 3)
        assert aborted(outcomes, "party 1", "party 0 was lost", "party 2 was lost")
        assert all("nothing was revealed" in str(outcome) for outcome in outcomes)
        assert seconds < delay + BUSY
        assert all(gone(party._worker.pid) for party in table)
        with pytest.raises(Aborted, match="start a new one"):
            table[0].exchange(b"")


def test_a_peer_that_died_between_two_calls_is_missed_at_once():
    with seated(timeout=30.0) as table:
        shares, _ = together(table, "prepare", [SHORT] * 3, [LAW] * 3)
        os.kill(table[1]._worker.pid, signal.SIGKILL)
        outcomes, seconds = together(table, "open", shares)
        assert aborted(outcomes, "party 1", "party 0 was lost", "party 2 was lost")
        assert all("open the same share again" in str(outcome) for outcome in outcomes)
        assert seconds < BUSY
    with seated() as table:
        sums, _ = together(table, "open", shares)
        np.testing.assert_array_equal(sums[0], sums[1])


@pytest.mark.parametrize("call", ["prepare", "open"])
def test_when_a_worker_hangs_the_others_wait_no_longer_than_they_said(call):
    with seated(timeout=TIMEOUT) as table:
        shares, _ = together(table, "prepare", [SHORT] * 3, [LAW] * 3)
        hit(table[2], signal.SIGSTOP, 0.0 if call != "prepare" else 0.3)
        time.sleep(0.1)
        outcomes, seconds = together(table, call, *{"prepare": ([LONG] * 3, [LAW] * 3), "open": (shares,)}[call])
        assert aborted(outcomes, "in time from party 2", "of party 2 did not answer", "was lost", "in time from party")
        assert seconds < TIMEOUT + BUSY
        assert all(gone(party._worker.pid) for party in table)


def test_when_a_party_never_comes_the_others_say_who():
    with seated(0, 1, timeout=1.5) as table:
        outcomes, seconds = together(table, "exchange", [b""] * 2)
        assert aborted(outcomes, "party 2 did not", "did not answer in time", "party 0 was lost", "party 1 was lost")
        assert seconds < 1.5 + BUSY


class Leaving:
    """A party that leaves as soon as it has what it wanted."""

    def __init__(self, party):
        self._party = party

    def open(self, share):
        with self._party:
            return self._party.open(share)


def test_whoever_closes_after_the_last_call_leaves_the_others_their_result():
    with seated(timeout=20.0) as table:
        shares, _ = together(table, "prepare", [LONG[:500]] * 3, [DitheredBinomial(4, 1)] * 3)
        os.kill(table[2]._worker.pid, signal.SIGSTOP)  # slow to read
        hit(table[2], signal.SIGCONT, 0.8)

        sums, _ = together([*map(Leaving, table)], "open", shares)
    np.testing.assert_array_equal(sums[0], sums[1])
    np.testing.assert_array_equal(sums[0], sums[2])


def test_a_worker_does_not_outlive_its_parent():
    code = (
        "from thresher.federated.mpyc import MPyCParty\n"
        f"party = MPyCParty(0, {addresses_of(3)!r})\n"
        "print(party._worker.pid, flush=True)\n"
        "party.exchange(b'')\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    worker = int(parent.stdout.readline())
    os.kill(worker, 0)  # it is there
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert gone(worker)


def test_parties_that_disagree_stop():
    with seated() as table:
        outcomes, _ = together(table, "prepare", [SHORT, SHORT, LONG], [LAW] * 3)
        assert aborted(outcomes, "another step", "was lost")
    with seated() as table:
        outcomes, _ = together(table, "prepare", [SHORT] * 3, [LAW, DitheredBinomial(4, 1), LAW])
        assert aborted(outcomes, "another step", "was lost")


# -- hostile peers ------------------------------------------------------------------------------------------------


def with_fake(call, *arguments, play):
    """Parties 1 and 2 make a call while ``play`` moves the hands of party 0."""
    addresses = addresses_of(3)
    with seated(1, 2, addresses=addresses, timeout=10.0) as table:
        fake = FakeParty(addresses)
        player = threading.Thread(target=play, args=(fake,))
        player.start()
        outcomes, seconds = together(table, call, *arguments)
        player.join()
        fake.close()
    assert seconds < BUSY
    return outcomes


def agree(fake):
    """Says that it is at the step at which party 1 is, and takes the others' messages of it."""
    (label, step), _ = fake.receive()
    fake.send(label, step)
    return label


def test_a_fake_that_keeps_to_the_protocol_is_heard():
    outcomes = with_fake("exchange", [b"one", b"two"], play=agree)
    assert outcomes == [[b"one", b"one", b"two"]] * 2


def garbage(fake):
    fake.send_raw(b"\xff" * 12 + secrets.token_bytes(1000))


def endless(fake):
    fake.send_raw(b"\x01" + bytes(7) + b"\xff\xff\xff\xff")


def too_few_numbers(fake):
    fake.send(agree(fake) + 1, bytes(8 * 4))


def numbers_beyond_the_modulus(fake):
    fake.send(agree(fake) + 1, b"\xff" * 8 * 5)


@pytest.mark.parametrize("play", [garbage, endless, too_few_numbers, numbers_beyond_the_modulus])
def test_nonsense_ends_the_session(play):
    outcomes = with_fake("prepare", [SHORT] * 2, [LAW] * 2, play=play)
    assert aborted(outcomes, "party 0 sent what is no message", "was lost")
    assert "no message" in " ".join(map(str, outcomes))


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("step", [0, 1])
def test_a_pickle_is_not_loaded(tmp_path, step):
    bomb = pickle.dumps(Bomb(str(tmp_path / "loaded")))

    def play(fake):
        if step == 0:
            fake.send(1, bomb)
        else:
            fake.send(agree(fake) + 1, bomb)

    assert aborted(with_fake("prepare", [SHORT] * 2, [LAW] * 2, play=play), "party 0", "was lost")
    assert not list(tmp_path.iterdir())
    pickle.loads(bomb)
    assert list(tmp_path.iterdir())  # it would have gone off


def test_the_engine_has_no_pickle_left():
    code = "\n".join(
        [
            "import asyncio",
            "from thresher.federated.mpyc_worker.table import Table, engine",
            "async def main():",
            "    Table(0, 3, None)",
            "    for name in ('loads', 'dumps'):",
            "        try:",
            "            getattr(engine.pickle, name)",
            "        except RuntimeError as error:",
            "            print(error)",
            "asyncio.run(main())",
        ]
    )
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert outcome.stdout.count("pickles are not exchanged") == 2, outcome.stderr


@pytest.mark.parametrize(
    ("claims", "message"), [([0, 0], "party 0 joined twice"), ([2], "no party to this session"), ([7], "no party")]
)
def test_nobody_joins_twice_or_as_somebody_who_does_not_connect(claims, message):
    addresses = addresses_of(3)
    with seated(2, addresses=addresses, timeout=10.0) as table:
        joined = [knock(addresses, 2, claim) for claim in claims]
        outcomes, seconds = together(table, "exchange", [b""])
        assert aborted(outcomes, message)
        assert seconds < BUSY
    for connection in joined:
        connection.close()


def test_only_the_address_that_was_given_is_listened_at():
    addresses = addresses_of(3)
    with seated(2, addresses=addresses):
        connected(addresses[2]).close()  # it listens
        for other in ("127.0.0.2", socket.gethostbyname(socket.gethostname())):
            if other != "127.0.0.1":
                with pytest.raises(OSError):  # noqa: PT011  (refused, or no such address on this system)
                    socket.create_connection((other, addresses[2][1]), timeout=2).close()


def test_parties_elsewhere_need_tls():
    with pytest.raises(ValueError, match="not this machine: give --certificate"):
        MPyCParty(0, [("127.0.0.1", 7000), ("127.0.0.1", 7001), ("192.0.2.1", 7002)])
    with pytest.raises(ValueError, match="timeout=0"):
        MPyCParty(0, addresses_of(3), timeout=0)
