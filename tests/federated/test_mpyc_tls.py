"""Parties that know each other by their certificates."""

from __future__ import annotations

import numpy as np
import pytest

from federated.local_parties import addresses_of, call_all, connected, joined_parties
from thresher.federated.aggregation import Aborted
from thresher.privacy.laws.dithered_binomial import DitheredBinomial

pytest.importorskip("mpyc")
pytest.importorskip("cryptography")

from thresher.federated.certificates import write_certificates
from waiting import with_enough_patience

NAMES, HOSTS = ["north", "south", "west"], ["127.0.0.1"] * 3
PART, LAW = np.arange(5), DitheredBinomial(4, 1)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return tuple(write_certificates(tmp_path_factory.mktemp("certificates"), NAMES, HOSTS))


@pytest.fixture(scope="module")
def strangers(tmp_path_factory):
    """The same names, signed by another authority."""
    return tuple(write_certificates(tmp_path_factory.mktemp("strangers"), NAMES, HOSTS))


def outcomes_with(tls, names=NAMES, words="is not that of party"):
    """What parties get from an exchange, or from several ones until somebody says the words before patience ends."""

    def outcomes(patience):
        with joined_parties(tls=tls, names=names, timeout=patience) as table:
            return call_all(table, "exchange", [b"0", b"1", b"2"])

    return with_enough_patience(outcomes, lambda found: words in " ".join(map(str, found)))


def test_a_sum_over_tls(files):
    with joined_parties(tls=files, names=NAMES) as table:
        shares = call_all(table, "prepare", [PART] * 3, [LAW] * 3)
        sums = call_all(table, "open", shares)
    np.testing.assert_array_equal(sums[0], sums[2])
    assert np.all(np.abs(sums[0] - 3 * PART) <= LAW.weights.sum())


@pytest.mark.parametrize("who", [0, 2])
def test_a_certificate_of_another_authority_is_refused(files, strangers, who):
    mixed = tuple(strangers[me] if me == who else files[me] for me in range(3))
    outcomes = outcomes_with(mixed)
    assert all(isinstance(outcome, Aborted) for outcome in outcomes)


@pytest.mark.parametrize(("who", "used"), [(0, 1), (1, 0), (2, 1)])
def test_a_party_cannot_join_with_the_certificate_of_another(files, who, used):
    outcomes = outcomes_with(tuple(files[used] if me == who else files[me] for me in range(3)))
    assert all(isinstance(outcome, Aborted) for outcome in outcomes)
    assert f"not that of party '{NAMES[who]}'" in " ".join(map(str, outcomes))


def test_names_in_another_order_are_refused(files):
    """All three are wrong about two of the names, though every certificate is good."""
    outcomes = outcomes_with(files, names=["south", "north", "west"])
    assert "not that of party" in " ".join(map(str, outcomes))


def test_without_a_certificate_nobody_joins(files):
    addresses = addresses_of(3)
    with (
        joined_parties(0, addresses=addresses, timeout=10.0) as plain,
        joined_parties(1, 2, addresses=addresses, tls=files, names=NAMES, timeout=10.0) as table,
    ):
        outcomes = call_all([*plain, *table], "exchange", [b""] * 3)
    assert all(isinstance(outcome, Aborted) for outcome in outcomes)


def test_strangers_at_the_door_disturb_nobody(files):
    addresses = addresses_of(3)
    with joined_parties(1, 2, addresses=addresses, tls=files, names=NAMES) as table:
        for junk in (b"", b"GET / HTTP/1.0\r\n\r\n", bytes(1000)):
            connection = connected(addresses[2])
            connection.sendall(junk)
            connection.close()
        with joined_parties(0, addresses=addresses, tls=files, names=NAMES) as zero:
            outcomes = call_all([*zero, *table], "exchange", [b"0", b"1", b"2"])
    assert outcomes == [[b"0", b"1", b"2"]] * 3
