"""Algorithms that take a shortcut go on with what is exact, and record what the sound ones do."""

import numpy as np
import pytest

from thresher.algorithms import Peeling
from thresher.audit import pairs
from thresher.audit.shortcuts import ExactLengths, ExactMeans, NarrowScreen
from thresher.audit.witness import witness_of
from thresher.privacy.budget import Budget
from thresher.vaults import CentralVault
from thresher.vaults.randomness import NoiseSource

BUDGET = Budget(2.0, 0.01)


def heard(algorithm, vault, pair, seed, rows="second"):
    plan = algorithm.plan(pair.problem, BUDGET)
    with witness_of(vault)(*getattr(pair, rows), plan, NoiseSource(seed)) as live:
        theta = algorithm.run(live)
    return theta, live


def looked_at(vault, seed, rows):
    theta, _ = heard(NarrowScreen(), vault, pairs.halves(), seed, rows)
    return set(np.flatnonzero(theta).tolist())


@pytest.mark.parametrize(("rows", "column"), [("first", 0), ("second", 1)])
def test_exact_means_choose_the_column_that_one_row_more_uses(rows, column):
    """A sound choice is nearly a fair coin: all of 20 alike with a fresh seed once in 50,000 times."""
    assert set().union(*(looked_at(ExactMeans, seed, rows) for seed in range(20))) == {column}
    assert set().union(*(looked_at(CentralVault, seed, rows) for seed in range(20))) == {0, 1}


def test_exact_lengths_are_those_with_the_least_loss(monkeypatch):
    """As the vault's own choice without noise."""
    told, chosen = [], CentralVault.step_length

    def watched(self, theta, direction, lengths, release, clip):
        length = chosen(self, theta, direction, lengths, release, clip)
        X, y = self._rows_seen
        losses = np.clip((X @ (theta - np.outer(lengths, direction)).T - y[:, None]) ** 2 / 2, 0, clip).sum(axis=0)
        told.append(losses[length] <= losses.min() * (1 + 1e-9))
        return length

    monkeypatch.setattr(CentralVault, "step_length", watched)
    pair = pairs.crowd(50)
    monkeypatch.setattr(CentralVault, "_rows_seen", tuple(np.clip(each, -1, 1) for each in pair.second), raising=False)
    for vault, always in ((ExactLengths, True), (CentralVault, False)):
        told.clear()
        for seed in range(5):
            heard(Peeling(iterations=4), vault, pair, seed)
        assert len(told) == 25
        assert all(told) == always


@pytest.mark.parametrize(
    ("algorithm", "vault", "pair"),
    [
        (NarrowScreen(), ExactMeans, pairs.halves()),
        (Peeling(iterations=4), ExactLengths, pairs.crowd(50)),
    ],
    ids=["means", "lengths"],
)
def test_what_is_paid_for_recorded_and_answered_is_what_the_sound_copy_does(algorithm, vault, pair):
    """Until the algorithm goes on: the same questions of the same releases, and the first answers to the last bit."""
    (_, sound), (_, broken) = (heard(algorithm, kind, pair, 0) for kind in (CentralVault, vault))
    assert [answer.release for answer in broken.answers] == [answer.release for answer in sound.answers]
    np.testing.assert_array_equal(broken.transcript[0].answer, sound.transcript[0].answer)
    assert broken.log_likelihoods[0] == sound.log_likelihoods[0]
