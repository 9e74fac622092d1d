"""Each broken federation is broken in the way it says, and in no other."""

import numpy as np
import pytest
from scipy import stats

from thresher.audit.broken import (
    AskedTwice,
    BarePart,
    KnownCoins,
    NoDither,
    QuietCoins,
    UnclippedParties,
    fewer_coins,
)
from thresher.audit.joint_witness import Consortium
from thresher.audit.local_witness import IMPOSSIBLE
from thresher.audit.questions import QUESTIONS
from thresher.audit.witness import witness_of
from thresher.privacy.budget import Budget
from thresher.privacy.laws.dithered_binomial import DitheredBinomial
from thresher.vaults.randomness import NoiseSource

LAW = QUESTIONS["joint-gradient"].probe.release.law


def heard(kind, name="joint-gradient", *, seed=0, rows="second", script=None):
    question = QUESTIONS[name]
    plan = question.probe.plan(question.pair.problem, Budget(1.0, 1e-5))
    with witness_of(kind)(*getattr(question.pair, rows), plan, NoiseSource(seed), script) as vault:
        question.probe.run(vault)
    return vault


def off(kind, seed):
    """The noise alone, as whoever knows the parts sees it."""
    (said,) = heard(kind, seed=seed).transcript
    return said.answer - said.value


def test_fewer_coins_are_an_even_number_of_them():
    assert fewer_coins(DitheredBinomial(1024, 7), 0.49) == DitheredBinomial(502, 7)
    assert fewer_coins(DitheredBinomial(1024, 7), 0.25) == DitheredBinomial(256, 7)


@pytest.mark.parametrize(("kind", "share"), [(Consortium, 1.0), (QuietCoins, 0.7)])
def test_quiet_coins_have_seven_tenths_of_the_spread(kind, share):
    """600 numbers: their sd has a relative error of .029; within 4.4 of those: false alarms with a fresh seed 1e-5."""
    noise = np.concatenate([off(kind, seed) for seed in range(300)])
    spread = np.sqrt(np.mean(noise**2.0)) / LAW.sd
    error = stats.norm.isf(0.5e-5) / np.sqrt(2 * noise.size)
    assert spread == pytest.approx(share, rel=error)
    assert error < 0.15  # so .6 and .82 would fail


@pytest.mark.parametrize("name", ["joint-gradient", "joint-minimiser"])
def test_unclipped_parts_move_by_far_more_than_is_paid_for(name):
    reach = QUESTIONS[name].probe.release.shift
    for kind, least, most in ((Consortium, 0.9, 1.0), (UnclippedParties, 5, np.inf)):
        one, other = (heard(kind, name, rows=rows).transcript[0].value for rows in ("first", "second"))
        assert least * reach < np.linalg.norm(one - other) <= most * reach


def test_without_dithers_the_rest_is_the_exact_sum():
    step = 2**LAW.dither
    rests = {kind: {int(z) % step for seed in range(20) for z in off(kind, seed)} for kind in (Consortium, NoDither)}
    assert rests[NoDither] == {0}
    assert len(rests[Consortium]) > 10
    live = heard(NoDither)
    other = heard(NoDither, rows="first", script=live.transcript)
    assert live.log_likelihood > -100
    assert other.log_likelihood == IMPOSSIBLE


def test_noise_without_dithers_has_the_spread_of_the_coins():
    """600 numbers, as of quiet coins."""
    noise = np.concatenate([off(NoDither, seed) for seed in range(300)])
    spread = np.sqrt(np.mean(noise**2.0)) / (2**LAW.dither * np.sqrt(LAW.coins) / 2)
    assert spread == pytest.approx(1.0, rel=stats.norm.isf(0.5e-5) / np.sqrt(2 * noise.size))


def test_a_bare_part_stands_beside_the_sound_answer():
    sound, bare = heard(Consortium), heard(BarePart)
    noisy, shown = bare.transcript[0].answer
    np.testing.assert_array_equal(noisy, sound.transcript[0].answer)
    assert set(shown) == {sound.transcript[0].value[0]}  # the other parties' rows are zero
    assert bare.log_likelihood == sound.log_likelihood
    assert heard(BarePart, rows="first", script=bare.transcript).log_likelihood == IMPOSSIBLE


def test_who_is_asked_twice_adds_noise_twice():
    twice = heard(AskedTwice)
    one, other = twice.transcript[0].answer
    np.testing.assert_array_equal(one, heard(Consortium).transcript[0].answer)
    assert not np.any(one == other)
    assert len(twice.answers) == 1  # is all that is on record


def test_known_coins_and_the_others_are_the_whole_noise():
    """As of quiet coins: with the known coins all of the noise, without them half of it."""
    answers = [heard(KnownCoins, seed=seed).transcript[0] for seed in range(300)]
    whole = np.concatenate([said.answer[0] - said.value for said in answers])
    left = np.concatenate([said.answer[0] - said.answer[1] - said.value for said in answers])
    error = stats.norm.isf(0.5e-5) / np.sqrt(2 * whole.size)
    assert np.sqrt(np.mean(whole**2.0)) / LAW.sd == pytest.approx(1.0, rel=error)
    assert np.sqrt(np.mean(left**2.0)) / LAW.sd == pytest.approx(0.5, rel=1.01 * error)
