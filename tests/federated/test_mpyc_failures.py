"""Peers that die, hang, lie or are somebody else: the session ends for everybody, and nothing runs on."""

from __future__ import annotations

import contextlib
import os
import pickle
import secrets
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from federated.local_parties import (
    FakeParty,
    addresses_of,
    call_all,
    connect_as,
    connected,
    joined_parties,
    process_ends,
)
from thresher.federated.aggregation import Aborted
from thresher.federated.mpyc import MPyCParty
from thresher.federated.mpyc_worker.links import MESSAGE
from thresher.privacy.laws.dithered_binomial import DitheredBinomial
from waiting import MINUTES, eventually, with_enough_patience

pytest.importorskip("mpyc")

LAW = DitheredBinomial()
LONG = np.zeros(4000, dtype=np.int64)  # preparing it takes seconds
SHORT = np.zeros(5, dtype=np.int64)
IN_TIME = "in time"  # what whoever waited in vain says; the others knew at once, however long that took


def aborted(outcomes, *words):
    """All are Aborted, but not because their patience ended; the text of each holds one of the words."""
    assert all(isinstance(outcome, Aborted) for outcome in outcomes), outcomes
    texts = [str(outcome) for outcome in outcomes]
    assert all(any(word in text for word in words) for text in texts), texts
    assert not any(IN_TIME in text for text in texts), texts
    return True


def stopped(pid):
    """Stops a process, and waits until it is."""
    os.kill(pid, signal.SIGSTOP)
    assert eventually(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "T")


# -- death and silence --------------------------------------------------------------------------------------------


def test_when_a_worker_is_killed_while_coins_are_tossed_all_know_at_once(tmp_path):
    transcript = tmp_path / "transcript"
    with joined_parties(timeout=MINUTES, transcript=(None, transcript, None)) as table:
        call_all(table, "exchange", [b""] * 3)

        def kill():
            assert eventually(lambda: transcript.stat().st_size > 10 * LONG.nbytes)  # its vector is dealt out
            os.kill(table[1].worker.pid, signal.SIGKILL)

        killing = threading.Thread(target=kill)
        killing.start()
        outcomes = call_all(table, "prepare", [LONG] * 3, [LAW] * 3)
        killing.join()
        assert aborted(outcomes, "party 1", "party 0 was lost", "party 2 was lost")
        assert all("nothing was revealed" in str(outcome) for outcome in outcomes)
        assert all(process_ends(party.worker.pid) for party in table)
        with pytest.raises(Aborted, match="start a new one"):
            table[0].exchange(b"")


def test_a_peer_that_died_between_two_calls_is_missed_at_once():
    with joined_parties(timeout=MINUTES) as table:
        shares = call_all(table, "prepare", [SHORT] * 3, [LAW] * 3)
        os.kill(table[1].worker.pid, signal.SIGKILL)
        outcomes = call_all(table, "open", shares)
        assert aborted(outcomes, "party 1", "party 0 was lost", "party 2 was lost")
        assert all("open the same share again" in str(outcome) for outcome in outcomes)
    with joined_parties(timeout=MINUTES) as table:
        sums = call_all(table, "open", shares)
        np.testing.assert_array_equal(sums[0], sums[1])


@pytest.mark.parametrize("call", ["prepare", "open"])
def test_when_a_worker_hangs_the_others_wait_no_longer_than_they_said(call):
    """Before, all goes well with the same patience."""

    def outcomes_with(patience):
        with joined_parties(timeout=patience) as table:
            shares = call_all(table, "prepare", [SHORT] * 3, [LAW] * 3)
            if any(isinstance(share, Aborted) for share in shares):
                return None
            stopped(table[2].worker.pid)
            outcomes = call_all(table, call, *{"prepare": ([SHORT] * 3, [LAW] * 3), "open": (shares,)}[call])
            assert all(process_ends(party.worker.pid) for party in table)
            return outcomes

    outcomes = with_enough_patience(outcomes_with, bool)
    assert all(isinstance(outcome, Aborted) for outcome in outcomes)
    assert any(f"{IN_TIME} from party 2" in text or "of party 2 did not" in text for text in map(str, outcomes))


def test_when_a_party_never_comes_the_others_say_who():
    def outcomes_with(patience):
        with joined_parties(0, 1, timeout=patience) as table:
            return call_all(table, "exchange", [b""] * 2)

    def told(outcomes):
        return any("party 2 did not" in str(outcome) for outcome in outcomes)

    outcomes = with_enough_patience(outcomes_with, told)
    assert all(isinstance(outcome, Aborted) for outcome in outcomes)
    assert told(outcomes)


class Leaving:
    """A party that leaves as soon as it has what it wanted."""

    def __init__(self, party):
        self._party = party

    def open(self, share):
        with self._party:
            return self._party.open(share)


def test_whoever_closes_after_the_last_call_leaves_the_others_their_result():
    with joined_parties(timeout=MINUTES) as table:
        shares = call_all(table, "prepare", [LONG[:500]] * 3, [DitheredBinomial(4, 1)] * 3)
        worker = table[2].worker.pid
        stopped(worker)  # slow to read
        threading.Timer(0.8, os.kill, (worker, signal.SIGCONT)).start()
        sums = call_all([*map(Leaving, table)], "open", shares)
    np.testing.assert_array_equal(sums[0], sums[1])
    np.testing.assert_array_equal(sums[0], sums[2])


def test_a_worker_does_not_outlive_its_parent():
    code = (
        "from thresher.federated.mpyc import MPyCParty\n"
        f"party = MPyCParty(0, {addresses_of(3)!r})\n"
        "print(party.worker.pid, flush=True)\n"
        "party.exchange(b'')\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    worker = int(parent.stdout.readline())
    os.kill(worker, 0)  # it is there
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert process_ends(worker)


def test_parties_that_disagree_stop():
    with joined_parties(timeout=MINUTES) as table:
        outcomes = call_all(table, "prepare", [SHORT, SHORT, LONG], [LAW] * 3)
        assert aborted(outcomes, "another step", "was lost")
    with joined_parties(timeout=MINUTES) as table:
        outcomes = call_all(table, "prepare", [SHORT] * 3, [LAW, DitheredBinomial(4, 1), LAW])
        assert aborted(outcomes, "another step", "was lost")


# -- hostile peers ------------------------------------------------------------------------------------------------


def with_fake(call, *arguments, play):
    """Parties 1 and 2 make a call while ``play`` moves the hands of party 0."""
    addresses = addresses_of(3)
    with joined_parties(1, 2, addresses=addresses, timeout=MINUTES) as table:
        fake = FakeParty(addresses)
        player = threading.Thread(target=play, args=(fake,))
        player.start()
        outcomes = call_all(table, call, *arguments)
        player.join()
        fake.close()
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
            "from thresher.federated.mpyc_worker.runtime import SharingRuntime, engine",
            "async def main():",
            "    SharingRuntime(0, 3, 16, None)",
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
    with joined_parties(2, addresses=addresses, timeout=MINUTES) as table:
        joined = [connect_as(addresses, 2, claim) for claim in claims]
        outcomes = call_all(table, "exchange", [b""])
        assert aborted(outcomes, message)
    for connection in joined:
        connection.close()


def test_only_the_address_that_was_given_is_listened_at():
    addresses = addresses_of(3)
    with joined_parties(2, addresses=addresses):
        connected(addresses[2]).close()  # it listens
        for other in ("127.0.0.2", socket.gethostbyname(socket.gethostname())):
            if other != "127.0.0.1":
                with pytest.raises(OSError):  # noqa: PT011  (refused, or no such address on this system)
                    socket.create_connection((other, addresses[2][1]), timeout=MINUTES).close()


def test_parties_elsewhere_need_tls():
    with pytest.raises(ValueError, match="not this machine: give --certificate"):
        MPyCParty(0, [("127.0.0.1", 7000), ("127.0.0.1", 7001), ("192.0.2.1", 7002)])
    with pytest.raises(ValueError, match="timeout=0"):
        MPyCParty(0, addresses_of(3), timeout=0)


# -- peers that send without end ------------------------------------------------------------------------------------


def pour(fake, message, times):
    """Send to one after the other again and again, until it has had enough."""
    for connection in fake.sockets:
        with contextlib.suppress(OSError):
            for label in range(2**40, 2**40 + times):
                connection.sendall(MESSAGE.pack(label, len(message)) + message)


@pytest.mark.parametrize(
    ("message", "times"),
    [(b"", 10**6), (bytes(2**16), 10**4), (bytes(2**27), 100)],
    ids=["empty messages", "small messages", "large messages"],
)
def test_a_peer_that_sends_more_than_the_run_needs_ends_it(message, times):
    """All of them are messages of a right form, with labels that may be asked for later."""
    outcomes = with_fake("prepare", [SHORT] * 2, [LAW] * 2, play=lambda fake: pour(fake, message, times))
    assert aborted(outcomes, "party 0 sent more than this run needs", "was lost")
    assert "party 0 sent more than this run needs" in " ".join(map(str, outcomes))


def test_the_longest_message_is_heard_and_a_longer_one_is_refused_before_it_is_sent():
    with joined_parties(timeout=MINUTES, longest=1000) as table:
        assert call_all(table, "exchange", [bytes(1000)] * 3) == [[bytes(1000)] * 3] * 3
        assert call_all(table, "exchange", [bytes(1000)] * 3) == [[bytes(1000)] * 3] * 3
        with pytest.raises(ValueError, match="message has 1001 bytes, longest=1000"):
            table[0].exchange(bytes(1001))


@pytest.mark.parametrize("parties", [3, 4])
def test_a_run_needs_no_more_than_it_expects(parties):
    """Also of parties that are ahead of others, and with many coins."""
    with joined_parties(parties=parties, timeout=MINUTES, longest=20) as table:
        for _ in range(3):
            shares = call_all(table, "prepare", [LONG[:300]] * parties, [LAW] * parties)
            call_all(table, "exchange", [bytes(20)] * parties)
            sums = call_all(table, "open", shares)
            np.testing.assert_array_equal(sums[0], sums[-1])
