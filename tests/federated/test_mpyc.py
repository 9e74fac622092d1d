"""The noisy sum of parties with MPyC: its law, what a share and a transcript tell, and opening it again."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from federated.local_parties import addresses_of, call_all, joined_parties, process_ends, words_in
from thresher.federated.aggregation import Aborted
from thresher.federated.mpyc import MPyCAggregation, MPyCParty
from thresher.federated.mpyc_worker.frames import SHARE, Share
from thresher.federated.mpyc_worker.mersenne import MODULUS
from thresher.privacy.laws.dithered_binomial import DitheredBinomial

pytest.importorskip("mpyc")

LAW = DitheredBinomial()
SMALL = DitheredBinomial(coins=4, dither=1)  # 7 coins: the noise is -5 .. 6
ALARM = 1e-6  # false alarms of each statistical test


def vectors(length, parties=3, seed=0):
    return [np.random.default_rng(seed + party).integers(-(2**40), 2**40, length) for party in range(parties)]


@pytest.fixture(scope="module")
def aggregation():
    with MPyCAggregation(3) as aggregation:
        yield aggregation


# -- the law ------------------------------------------------------------------------------------------------------


def test_noise_has_the_mean_and_the_variance_of_the_law(aggregation):
    """With 1500 coordinates the variance is known to 3.7 %, so that a scale wrong by a quarter would be seen."""
    parts = vectors(1500)
    noise = aggregation.noisy_sum(parts, LAW) - sum(parts)
    reach = stats.norm.isf(ALARM / 4)  # two tests, two sides

    def error_of_variance(scale):
        return (np.mean((scale * (noise - LAW.mean)) ** 2) / LAW.variance - 1) / np.sqrt(2 / len(noise))

    assert abs(noise.mean() - LAW.mean) < reach * LAW.sd / np.sqrt(len(noise))
    assert abs(error_of_variance(1)) < reach
    assert abs(error_of_variance(1.25)) > reach
    assert abs(error_of_variance(0.8)) > reach


def test_noise_has_exactly_the_distribution_of_a_small_law(aggregation):
    chances = np.array([1.0])
    for weight in SMALL.weights:
        coin = np.zeros(weight + 1)
        coin[[0, weight]] = 0.5
        chances = np.convolve(chances, coin)
    parts = vectors(10_000)
    noise = aggregation.noisy_sum(parts, SMALL) - sum(parts) + SMALL.offset
    counts = np.bincount(noise, minlength=len(chances))
    assert stats.chisquare(counts, len(noise) * chances).pvalue > ALARM


def test_the_noise_is_another_one_in_every_call_and_every_coordinate(aggregation):
    parts = vectors(200)
    first, second = (aggregation.noisy_sum(parts, LAW) - sum(parts) for _ in range(2))
    assert np.mean(first == second) < 0.05
    assert len(np.unique(first)) > 150
    assert abs(stats.pearsonr(first, second).statistic) < stats.norm.isf(ALARM / 2) / np.sqrt(200)


@pytest.mark.parametrize("parties", [3, 4, 5])
def test_every_party_gets_the_same_sum_within_the_reach_of_the_noise(parties):
    edge = 2**52  # the largest numbers there may be, and sums that cancel
    parts = [np.array([edge, -edge, (-1) ** party * edge, party, 0]) for party in range(parties)]
    with joined_parties(parties=parties) as table:
        shares = call_all(table, "prepare", parts, [SMALL] * parties)
        sums = call_all(table, "open", shares)
    assert all(np.array_equal(found, sums[0]) for found in sums)
    noise = sums[0] - sum(parts)
    assert np.all(noise >= -SMALL.offset)
    assert np.all(noise <= SMALL.weights.sum() - SMALL.offset)


def test_a_number_that_is_too_large_is_refused_and_not_told(aggregation):
    party = aggregation.parties[0]
    for wrong in (2**52 + 1, -(2**52) - 1, -(2**63)):
        with pytest.raises(ValueError, match=r"beyond 2\^52") as caught:
            party.prepare(np.array([0, wrong]), LAW)
        assert str(abs(wrong)) not in str(caught.value)
    with pytest.raises(ValueError, match="vector of int64"):
        party.prepare(np.zeros(3), LAW)


# -- messages and shares ------------------------------------------------------------------------------------------


def test_messages_are_exchanged_in_the_order_of_parties(aggregation):
    messages = [b"", b"second" * 50_000, bytes(range(256))]
    assert call_all(aggregation.parties, "exchange", messages) == [messages] * 3


def numbers_of(share):
    return Share.unpack(share).numbers


@pytest.mark.parametrize("value", [0, 2**52])
def test_a_share_is_uniform_whatever_is_shared(aggregation, value):
    """One party's numbers are, alone, independent and uniform below the modulus."""
    parts = [np.full(4000, value)] * 3
    shares = call_all(aggregation.parties, "prepare", parts, [SMALL] * 3)
    for share in shares:
        numbers = numbers_of(share)
        assert stats.kstest(numbers / MODULUS, "uniform").pvalue > ALARM / 12
        last = (numbers % np.uint64(16)).astype(np.int64)
        assert stats.chisquare(np.bincount(last, minlength=16)).pvalue > ALARM / 12
    assert not set(numbers_of(shares[0]).tolist()) & set(numbers_of(shares[1]).tolist())


def test_two_shares_of_five_tell_nothing_together():
    with joined_parties(parties=5) as table:
        shares = call_all(table, "prepare", [np.zeros(4000, dtype=np.int64)] * 5, [SMALL] * 5)
    first, second, third = (numbers_of(share).astype(object) for share in shares[:3])
    line, parabola = (2 * first - second) % MODULUS, (3 * first - 3 * second + third) % MODULUS
    assert stats.kstest(line.astype(float) / MODULUS, "uniform").pvalue > ALARM
    assert set((parabola + SMALL.offset) % MODULUS) <= set(range(SMALL.weights.sum() + 1))  # three are a majority


def test_shares_are_opened_again_in_another_session():
    parts = vectors(50)
    with joined_parties() as table:
        shares = call_all(table, "prepare", parts, [LAW] * 3)
        first = call_all(table, "open", shares)
    assert all(process_ends(party.worker.pid) for party in table)
    with joined_parties() as table:
        again = call_all(table, "open", shares)
        once_more = call_all(table, "open", shares)
    for found in (*first, *again, *once_more):
        np.testing.assert_array_equal(found, first[0])


def test_a_share_that_does_not_fit_is_refused_and_the_session_goes_on(aggregation):
    shares = call_all(aggregation.parties, "prepare", vectors(5), [SMALL] * 3)
    zero, share = aggregation.parties[0], Share.unpack(shares[0])
    modulus = SHARE.pack(b"THS1", 101, 0, 3, 5, share.name) + shares[0][SHARE.size :]
    beyond = shares[0][:-8] + b"\xff" * 8
    four = Share(0, 4, share.name, share.numbers).pack()
    for wrong, message in [
        (shares[1], "that of party 1 of 3"),
        (four, "of party 0 of 4"),
        (modulus, "modulus is 101"),
        (shares[0][:-1], "does not hold 5 numbers"),
        (beyond, "below its modulus"),
        (b"", "does not start"),
        (b"x" + shares[0], "does not start"),
    ]:
        with pytest.raises(ValueError, match=message):
            zero.open(wrong)
    sums = call_all(aggregation.parties, "open", shares)
    np.testing.assert_array_equal(sums[0], sums[2])


def test_shares_of_two_sharings_are_not_mixed():
    with joined_parties() as table:
        old, *_ = call_all(table, "prepare", vectors(5), [SMALL] * 3)
        _, *new = call_all(table, "prepare", vectors(5), [SMALL] * 3)
        outcomes = call_all(table, "open", [old, *new])
    assert all(isinstance(outcome, Aborted) for outcome in outcomes)
    assert "another step" in " ".join(map(str, outcomes))


# -- what passes between parties ----------------------------------------------------------------------------------


def test_a_transcript_holds_neither_the_sum_nor_anybodys_vector(tmp_path):
    """A chance hit among the words of eight bytes has probability below 1e-7."""
    parts, files = vectors(20), tuple(tmp_path / f"{me}" for me in range(3))
    with joined_parties(transcript=files) as table:
        shares = call_all(table, "prepare", parts, [LAW] * 3)
        call_all(table, "open", shares)
        secret, sent = [file.read_bytes() for file in files], [party.bytes_sent for party in table]
        call_all(table, "exchange", [parts[0].tobytes()] * 3)
    assert sum(map(len, secret)) == 2 * sum(sent)  # what one sends another receives
    for data, file, share in zip(secret, files, shares, strict=True):
        for numbers in (*parts, sum(parts), *(sum(parts) - part for part in parts)):
            assert not words_in(data) & {*words(numbers), *words(numbers % MODULUS)}
        assert words_in(data) >= set(words(numbers_of(share)))  # which was sent to be opened
        assert words_in(file.read_bytes()) >= set(words(parts[0]))  # which was exchanged in the open


def words(numbers):
    return numbers.astype(np.uint64).tolist()


def test_few_bytes_are_sent_for_104_coordinates(aggregation):
    before = aggregation.bytes_sent
    aggregation.noisy_sum(vectors(104), LAW)
    assert 1e6 < aggregation.bytes_sent - before < 1.6e6


def test_mpyc_is_asked_for(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'thresher\[mpc\]'"):
        MPyCParty(0, addresses_of(3))
