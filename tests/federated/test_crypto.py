"""Agreed keys, masks and envelopes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("cryptography")

from thresher.federated.crypto import agree, fresh_secret, mask, pair_mask, public_key, seal, unseal
from thresher.federated.messages import BadMessage

FALSE_ALARM = 1e-6  # of each statistical test, which draws fresh bits in every run


def test_public_keys_and_agreement_are_x25519():
    """RFC 7748, section 6.1; the secret then goes through HKDF, so both sides are compared after it."""
    alice = bytes.fromhex("77076d0a7318a57d3c16c17251b26645df4c6fbcd1a9e4ba1e8b5d7e9f0e2c2a")
    bob = bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
    assert public_key(bob).hex() == "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
    assert agree(alice, public_key(bob), b"x") == agree(bob, public_key(alice), b"x")


def test_each_purpose_and_each_pair_has_its_own_key():
    one, two, three = fresh_secret(), fresh_secret(), fresh_secret()
    keys = [agree(one, public_key(two), b"a"), agree(one, public_key(two), b"b"), agree(one, public_key(three), b"a")]
    assert len(set(keys)) == 3
    assert {len(key) for key in keys} == {32}


def test_a_public_key_that_makes_every_secret_zero_is_refused():
    with pytest.raises(BadMessage, match="content"):
        agree(fresh_secret(), bytes(32), b"x")


def test_masks_are_the_chacha20_stream():
    """RFC 8439, appendix A.1, test vector 1: the first block for a key, counter and nonce of zeros."""
    stream = mask(bytes(32), 0, 8).astype("<u8").tobytes().hex()
    assert stream.startswith("76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7")


def test_masks_are_repeatable_and_differ_by_seed_and_round():
    seed = fresh_secret()
    np.testing.assert_array_equal(mask(seed, 1, 100), mask(seed, 1, 100))
    np.testing.assert_array_equal(mask(seed, 1, 50), mask(seed, 1, 100)[:50])
    words = np.concatenate([mask(seed, 1, 100), mask(seed, 2, 100), mask(fresh_secret(), 1, 100)])
    assert len(set(words.tolist())) == 300


def test_every_bit_of_a_mask_is_fair():
    """A chi-square over the 64 bit positions."""
    words = mask(fresh_secret(), 1, 20_000)
    ones = np.array([np.count_nonzero(words >> np.uint64(bit) & np.uint64(1)) for bit in range(64)])
    statistic = np.sum((ones - 10_000) ** 2 / 5_000)
    assert stats.chi2(64).sf(statistic) > FALSE_ALARM


def test_the_masks_of_a_pair_cancel():
    one, two = fresh_secret(), fresh_secret()
    there = pair_mask(one, public_key(two), (3, 8), 5, 40)
    back = pair_mask(two, public_key(one), (8, 3), 5, 40)
    assert there.any()
    np.testing.assert_array_equal(there + back, 0)


def test_an_envelope_opens_with_its_key_only_and_only_untouched():
    key = fresh_secret()
    envelope = seal(key, b"two shares")
    assert unseal(key, envelope) == b"two shares"
    assert b"shares" not in envelope
    for wrong_key, wrong in [(fresh_secret(), envelope), (key, envelope[:-1]), (key, b""), (key, b"\0" + envelope[1:])]:
        with pytest.raises(BadMessage, match="sealed"):
            unseal(wrong_key, wrong)
