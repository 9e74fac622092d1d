"""Shamir's sharing: enough shares tell the secret, fewer tell nothing."""

from __future__ import annotations

import itertools
import secrets

import pytest
from scipy import stats

from thresher.federated.secret_shares import PRIME, SHARE_SIZE, join, split

FALSE_ALARM = 1e-6  # of each statistical test, which draws fresh bits in every run

EDGES = [bytes(32), b"\xff" * 32, bytes(31) + b"\x01", b"\x80" + bytes(31)]


@pytest.mark.parametrize("secret", [*EDGES, secrets.token_bytes(32)], ids=["zero", "ones", "one", "high", "random"])
@pytest.mark.parametrize(("shares", "threshold"), [(1, 1), (3, 2), (5, 3), (5, 5), (6, 1)])
def test_every_set_of_enough_shares_tells_the_secret(secret, shares, threshold):
    parts = split(secret, shares, threshold)
    assert {len(part) for part in parts} == {SHARE_SIZE}
    for chosen in itertools.combinations(range(shares), threshold):
        assert join({party: parts[party] for party in chosen}) == secret


def test_many_shares_tell_the_secret():
    secret = secrets.token_bytes(32)
    parts = split(secret, 200, 150)
    assert join({party: parts[party] for party in range(50, 200)}) == secret


def test_too_few_shares_fit_every_secret():
    """With one share missing there is, for each other secret, exactly one value of it that would tell that secret."""
    secret, other = secrets.token_bytes(32), secrets.token_bytes(32)
    parts = split(secret, 3, 3)
    # the value at 0 is 3 s1 - 3 s2 + s3 for the points 1, 2, 3
    known = 3 * int.from_bytes(parts[0]) - 3 * int.from_bytes(parts[1])
    missing = (int.from_bytes(other) - known) % PRIME
    assert join({0: parts[0], 1: parts[1], 2: missing.to_bytes(SHARE_SIZE)}) == other
    assert missing.to_bytes(SHARE_SIZE) != parts[2]


def test_shares_of_one_secret_are_uniform():
    """Kolmogorov-Smirnov on the share of a fixed secret, drawn anew each time."""
    values = [int.from_bytes(split(bytes(32), 2, 2)[1]) / PRIME for _ in range(5000)]
    assert stats.kstest(values, "uniform").pvalue > FALSE_ALARM


def test_one_share_too_few_gives_another_secret():
    secret = secrets.token_bytes(32)
    parts = split(secret, 5, 3)
    assert join({0: parts[0], 4: parts[4]}) != secret  # equal with chance 2^-256


def test_the_field_is_prime():
    """Miller-Rabin: a composite number passes one of these with chance below 1/4, all of them below 4^-40."""
    odd, twos = PRIME - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for _ in range(40):
        power = pow(2 + secrets.randbelow(PRIME - 3), odd, PRIME)
        assert power == 1 or any(pow(power, 2**k, PRIME) == PRIME - 1 for k in range(twos))


def test_shares_of_no_secret_are_refused():
    """A value from 2^256 up to the prime is no 32-byte secret."""
    with pytest.raises(ValueError, match="do not belong together"):
        join({0: (2**256 + 1).to_bytes(SHARE_SIZE)})


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_secret_of_another_size_is_refused(size):
    with pytest.raises(ValueError, match=f"{size} bytes"):
        split(bytes(size), 3, 2)


@pytest.mark.parametrize("threshold", [0, 4])
def test_an_impossible_threshold_is_refused(threshold):
    with pytest.raises(ValueError, match=f"threshold={threshold} must be from 1 to shares=3"):
        split(bytes(32), 3, threshold)
