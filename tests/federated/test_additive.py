"""Additive shares add up to the secret, and one alone is uniform."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from thresher.federated.spu import additive_shares

EDGES = np.array([0, 1, -1, 2**62, -(2**62), 2**63 - 1, -(2**63)])


@pytest.mark.parametrize("holders", [1, 2, 3])
def test_shares_add_up_to_the_secret_modulo_two_to_the_64(holders: int) -> None:
    shares = additive_shares(EDGES, holders)
    assert len(shares) == holders
    assert np.array_equal(np.sum(shares, axis=0, dtype=np.int64), EDGES)


def test_the_secret_itself_stays_as_it_was() -> None:
    secret = EDGES.copy()
    additive_shares(secret, 2)
    assert np.array_equal(secret, EDGES)


def test_shares_are_fresh_every_time() -> None:
    assert not np.array_equal(additive_shares(EDGES, 2)[0], additive_shares(EDGES, 2)[0])


@pytest.mark.parametrize("holder", [0, 1, 2])
def test_every_byte_of_one_share_is_uniform(holder: int) -> None:
    """Chi-square over the values of each of 8 bytes of 20,000 shares of one secret; false alarms: 8e-9 a holder."""
    share = additive_shares(np.full(20_000, 123_456_789), 3)[holder]
    for column in share.view(np.uint8).reshape(-1, 8).T:
        assert stats.chisquare(np.bincount(column, minlength=256)).pvalue > 1e-9
