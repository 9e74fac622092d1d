"""Noisy sums in one process: the right sum, and never less noise than planned."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("cryptography")

from thresher.federated.messages import SumStage
from thresher.federated.secagg import RoundAborted
from thresher.federated.skellam_aggregation import SkellamAggregation
from thresher.privacy.laws.skellam import Skellam

FALSE_ALARM = 1e-6  # of each statistical test, which runs on a fixed seed
LENGTH = 20_000
LAW = Skellam(10_000.0)  # so nearly normal that sums of squares are chi-square


def fits(noise, variance):
    """Chi-square interval: whether the noise could have this variance and mean zero."""
    low, high = stats.chi2(len(noise)).interval(1 - FALSE_ALARM)
    return low < np.sum(noise.astype(float) ** 2) / variance < high


@pytest.mark.parametrize("wrong", [1 / 1.25, 1.0, 1.25])
@pytest.mark.parametrize(
    ("parties", "dropouts", "colluding", "leaving", "times"),
    [
        (3, 0, 0, {}, 3 / 2),  # each knows its own share: the other two add the planned noise
        (4, 1, 0, {2: SumStage.MASK}, 3 / 2),  # as many as may have left
        (4, 1, 0, {2: SumStage.ADVERTISE}, 3 / 2),
        (4, 1, 0, {2: SumStage.UNMASK}, 2),  # its vector is in the sum, and so is its noise
        (4, 1, 0, {}, 2),
        (
            5,
            1,
            1,
            {0: SumStage.SHARE},
            4 / 3,
        ),  # one of four may be the server's friend: three add the planned noise
        (5, 0, 3, {}, 5 / 2),
    ],
)
def test_the_noise_is_as_planned(parties, dropouts, colluding, leaving, times, wrong):
    aggregation = SkellamAggregation(parties, dropouts=dropouts, colluding=colluding, random_state=41)
    parts = [np.full(LENGTH, 1000 * party) for party in range(parties)]
    sent = [party for party in range(parties) if leaving.get(party, SumStage.UNMASK) > SumStage.MASK]
    noise = aggregation.noisy_sum(parts, LAW, leaving=leaving) - sum(1000 * party for party in sent)
    assert fits(noise, LAW.variance * times * wrong**2) == (wrong == 1.0)


def test_every_pattern_of_leaving_that_is_tolerated_leaves_at_least_the_planned_noise():
    aggregation = SkellamAggregation(5, dropouts=2, random_state=42)
    parts = [np.zeros(LENGTH, dtype=np.int64)] * 5
    for stages in [(1, 1), (1, 3), (2, 3), (3, 3), (3, 5), (4, 5)]:
        leaving = {party: SumStage(stage) for party, stage in enumerate(stages)}
        senders = 5 - sum(stage <= SumStage.MASK for stage in stages)
        assert senders >= 3
        assert fits(aggregation.noisy_sum(parts, LAW, leaving=leaving), LAW.variance * senders / 2)


@pytest.mark.parametrize("stage", SumStage)
def test_one_more_than_tolerated_aborts_the_round_and_the_next_one_works(stage):
    aggregation = SkellamAggregation(5, dropouts=1, random_state=43)
    parts = [np.full(10, 10**9)] * 5
    with pytest.raises(RoundAborted, match="nothing was revealed"):
        aggregation.noisy_sum(parts, LAW, leaving={1: SumStage.SHARE, 3: stage})
    np.testing.assert_allclose(aggregation.noisy_sum(parts, LAW), 5 * 10**9, atol=10_000)


def test_rounds_have_noise_of_their_own_and_a_random_state_repeats_it():
    parts = [np.zeros(1000, dtype=np.int64)] * 3

    def rounds(random_state):
        aggregation = SkellamAggregation(3, random_state=random_state)
        return [aggregation.noisy_sum(parts, LAW) for _ in range(2)]

    one, again, other, secret = rounds(1), rounds(1), rounds(2), rounds(None)
    np.testing.assert_array_equal(one, again)
    for first, second in [(one[0], one[1]), (one[0], other[0]), (one[0], secret[0]), (secret[0], secret[1])]:
        assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(1000)  # false alarm below 1e-6


def test_the_parties_of_one_aggregation_do_not_share_their_noise():
    """With the same noise from both, the sum's variance would be twice as large."""
    noise = SkellamAggregation(2, random_state=44).noisy_sum([np.zeros(LENGTH, dtype=np.int64)] * 2, LAW)
    assert fits(noise, 2 * LAW.variance)
    assert not fits(noise, 4 * LAW.variance)


def test_a_vector_is_asked_of_each_party():
    with pytest.raises(ValueError, match="parts has 2 vectors for parties=3"):
        SkellamAggregation(3).noisy_sum([np.zeros(4, dtype=np.int64)] * 2, LAW)
