"""Hundreds of audits of sound mechanisms whose cost is exactly what they claim: the hardest ones not to flag.

At a confidence of 0.9 each audit may flag its mechanism with chance 0.1, and where nothing is left to be had it does so
almost that often. The same mechanisms with half of the noise are the control: an auditor that never flags proves
nothing.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from thresher.algorithms import DPIGHT
from thresher.audit import Claim, Pair, Suspect, audit, one_run, pairs
from thresher.audit.bounds import mu_lower, one_run_epsilon_lower
from thresher.audit.questions import QUESTIONS, Probe
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.conversions import gaussian_epsilon, gaussian_mu
from thresher.privacy.releases import ClassReport, GaussianGradient, GumbelSelection
from thresher.vaults import CentralVault
from thresher.vaults.losses import SQUARED
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

CONFIDENCE, AUDITS = 0.9, 50
ONE = np.zeros((1, 1))
ENDS = Pair("ends", (ONE, np.array([-1.0])), (ONE, np.array([1.0])))


def first_value(outcome):
    return float(np.ravel(outcome)[0])


class HalfNoise(NoiseSource):
    """Half of the noise that is paid for."""

    def gaussian(self, value, sensitivity, multiplier, error=0.0, touched=None):
        return super().gaussian(value, sensitivity, multiplier / 2, error)

    def gumbel_top(self, scores, picks, sensitivity, multiplier, error=0.0):
        return super().gumbel_top(scores, picks, sensitivity, multiplier / 2, error)


# -- mechanisms at their claim, with ``noise`` times the noise ------------------------------------------------------


def randomised_response(noise):
    """Exactly 1 / noise."""
    truth = 1 / (1 + math.exp(-1.0 / noise))

    def answer(X, y, seed):
        return y[0] if np.random.default_rng(seed).random() < truth else -y[0]

    return answer, replace(ENDS, score=first_value), Claim(1.0), {"runs": 400}


def laplace(noise):
    """Two means 2 apart, scale 2 noise: exactly 1 / noise, on either tail."""

    def answer(X, y, seed):
        return y[0] + np.random.default_rng(seed).laplace(scale=2 * noise)

    return answer, ENDS, Claim(1.0), {"runs": 400}


def gaussian(noise):
    """Two means 2 apart, sd 2 noise: exactly mu = 1 / noise."""

    def answer(X, y, seed):
        return y[0] + np.random.default_rng(seed).normal(scale=2 * noise)

    return answer, ENDS, Claim(gaussian_epsilon(1.0, 1e-5), 1e-5), {"runs": 400, "gaussian": True}


def gradient_probe(noise):
    """A gradient asked of the vault, at exactly mu = 1 / noise."""
    probe = replace(QUESTIONS["gradient"].probe, release=GaussianGradient(1, 1.0))
    claim = Claim(gaussian_epsilon(1.0, 1e-5), 1e-5)
    return (
        Suspect(probe, noise=HalfNoise if noise < 1 else NoiseSource),
        QUESTIONS["gradient"].pair,
        claim,
        {"runs": 300},
    )


def flip_choice(vault, release):
    return vault.selection(vault.problem.origin(), release, 0.5)


def tight_selection(noise):
    """One of two columns chosen by the vault: one score rises and the other falls by all it can, half the scale each.

    So the chances are 1 / (1 + e) and e / (1 + e), and the loss of either choice is exactly 1 / noise.
    """
    probe = Probe("choice", GumbelSelection(1, 1.0, 1), flip_choice)
    suspect = Suspect(probe, noise=HalfNoise if noise < 1 else NoiseSource)
    return suspect, pairs.one_rises(n=20, d=2), Claim(1.0), {"runs": 200}


def gumbel_choice(noise):
    """A choice made by hand, of one candidate that rises while the other seven fall; scale 2 noise.

    The claim is the exact largest loss of a choice at noise = 1, that of the rare candidate: about 0.87.
    """
    low, high = np.append(-0.5, np.full(7, 0.5)), np.append(0.5, np.full(7, -0.5))
    laws = [np.exp(scores / 2) / np.sum(np.exp(scores / 2)) for scores in (low, high)]

    def answer(X, y, seed):
        scores = high if y[0] > 0 else low
        return float(np.argmax(scores + np.random.default_rng(seed).gumbel(scale=2 * noise, size=8)) == 0)

    claim = Claim(float(np.max(np.abs(np.log(laws[1] / laws[0])))))
    return answer, replace(ENDS, score=first_value), claim, {"runs": 1500}


def class_report(noise):
    """A class that its owner reports through randomised response: exactly 1 / noise."""
    question = QUESTIONS["class-report"]
    probe = replace(question.probe, release=ClassReport(1, 1 / noise, 2))
    return probe, question.pair, Claim(1.0), {"runs": 200}


def sampled_gradient(noise):
    """A gradient of a random half of the rows, priced by its privacy loss distribution, which this pair attains."""
    question = QUESTIONS["sampled-gradient"]
    source = HalfNoise if noise < 1 else NoiseSource
    return Suspect(question.probe, noise=source), question.pair, question.claim, {"runs": 700}


TIGHT = {
    "randomised response": randomised_response,
    "laplace": laplace,
    "gaussian": gaussian,
    "gradient through the vault": gradient_probe,
    "selection through the vault": tight_selection,
    "rare choice": gumbel_choice,
    "class reported by its owner": class_report,
}


def flagged(mechanism, audits, *, noise=1.0, start=0):
    target, pair, claim, options = mechanism(noise)
    results = [
        audit(target, pair, claimed=claim, confidence=CONFIDENCE, random_state=start + seed, name="case", **options)
        for seed in range(audits)
    ]
    return sum(result.violated for result in results)


def test_sound_mechanisms_at_their_claim_are_flagged_no_more_often_than_stated():
    """350 audits of seven mechanisms, each flagged with chance at most 0.1.

    With fresh seeds this fails with chance at most 1e-3 (the number of all flags) + 7e-4 (those of each mechanism).
    """
    counts = {name: flagged(mechanism, AUDITS) for name, mechanism in TIGHT.items()}
    assert sum(counts.values()) <= stats.binom.ppf(0.999, AUDITS * len(TIGHT), 1 - CONFIDENCE)
    for count in counts.values():
        assert count <= stats.binom.ppf(0.9999, AUDITS, 1 - CONFIDENCE)


def chance_of_an_alarm(runs, mu=1.0):
    """Exactly, for an attacker who is right with chance Phi(mu/2) in each run."""
    bounds = np.array([mu_lower(right, runs, CONFIDENCE) for right in range(runs + 1)])
    return float(stats.binom.pmf(np.arange(runs + 1), runs, stats.norm.cdf(mu / 2))[bounds > mu].sum())


def test_a_gaussian_question_at_its_claim_is_flagged_just_as_often_as_its_counts_allow():
    """The bound gives nothing away: 150 audits, two-sided, false alarm rate with fresh seeds 1e-3.

    Power: a bound that is never too high would fail, 0.09 of 150 being 13 or 14.
    """
    target, pair, claim, _ = gradient_probe(1.0)
    count = sum(
        audit(target, pair, claimed=claim, confidence=CONFIDENCE, random_state=seed, runs=100).violated
        for seed in range(1000, 1150)
    )
    chance = chance_of_an_alarm(100)
    assert 0.05 < chance <= 0.1
    low, high = stats.binom.ppf([0.5e-3, 1 - 0.5e-3], 150, chance)
    assert 0 < low <= count <= high


@pytest.mark.parametrize("name", TIGHT)
def test_half_of_the_noise_is_flagged_in_most_audits(name):
    """Twelve audits of each; with fresh seeds at least seven are flagged in all but 1 of 1000 tries."""
    assert flagged(TIGHT[name], 12, noise=0.5, start=500) >= 7


def test_a_question_below_its_claim_is_flagged_no_more_often_than_stated():
    """The selection of the vault, whose pair does not quite reach its claim: 20 audits, false alarms 1e-3."""
    question = QUESTIONS["selection"]
    count = sum(
        audit(
            question.probe, question.pair, claimed=question.claim, runs=150, random_state=seed, confidence=0.9
        ).violated
        for seed in range(20)
    )
    assert count <= stats.binom.ppf(0.999, 20, 1 - CONFIDENCE)


def test_whole_algorithms_at_their_claim_are_flagged_no_more_often_than_stated():
    """DP-IGHT costs exactly its budget on a mirrored row: 40 audits, false alarm rate with fresh seeds 1e-3."""
    pair = pairs.mirrored_row(n=20)
    algorithm = DPIGHT(iterations=2, step=0.01)
    assert algorithm.plan(pair.problem, Budget(2.0, 1e-5)).epsilon == pytest.approx(2.0, rel=1e-6)
    count = sum(
        audit(algorithm, pair, claimed=(2.0, 1e-5), runs=150, random_state=seed, confidence=CONFIDENCE).violated
        for seed in range(40)
    )
    assert count <= stats.binom.ppf(0.999, 40, 1 - CONFIDENCE)


def test_a_random_batch_at_its_claim_is_flagged_no_more_often_than_stated_and_with_half_of_the_noise_it_is():
    """10 audits, false alarm rate with fresh seeds 1e-3: a score that knew the batch would be flagged in most. Of five
    with half of the noise, where the bound is about 1.9 of a claim of 1.4, at least three are flagged.
    """
    assert flagged(sampled_gradient, 10) <= stats.binom.ppf(0.999, 10, 1 - CONFIDENCE)
    assert flagged(sampled_gradient, 5, noise=0.5, start=500) >= 3


def one_sided_leak(chance):
    """Says "second" with this chance if it is, and else nothing: exactly (0, chance)-DP, in one direction only."""

    def answer(X, y, seed):
        return float(y[0] > 0 and np.random.default_rng(seed).random() < chance)

    return answer


def test_a_leak_in_one_direction_is_flagged_beyond_its_delta_and_not_at_it():
    """Only half of delta is lost where only one data set is ever guessed. 40 audits, false alarm rate 1e-3; of five at
    a leak of twice delta, at least four are flagged: that half is needed, with all of delta none would be.
    """
    pair, counts = replace(ENDS, score=first_value), {}
    for chance, audits in ((0.1, 40), (0.2, 5)):
        results = [
            audit(one_sided_leak(chance), pair, claimed=(0.01, 0.1), runs=800, confidence=CONFIDENCE, random_state=seed)
            for seed in range(audits)
        ]
        counts[chance] = sum(result.violated for result in results)
    assert counts[0.1] <= stats.binom.ppf(0.999, 40, 1 - CONFIDENCE)
    assert counts[0.2] >= 4


# -- one run --------------------------------------------------------------------------------------------------------


def told_canaries(epsilon):
    """Each canary has a column to itself, whose coefficient is its target after randomised response."""
    truth = 1 / (1 + math.exp(-epsilon))

    def answer(X, y, seed):
        honest = np.random.default_rng(seed).random(len(y)) < truth
        return X.T @ np.where(honest, y, -y)

    return answer


def one_run_flags(epsilon, audits, start):
    count = 60
    problem = LinearProblem(
        count, count, Bounds(feature=1.0, target=(-1.0, 1.0)), sparsity=count, loss=SQUARED, intercept=False
    )
    canaries = (np.eye(count), np.ones(count))
    return sum(
        one_run(
            told_canaries(epsilon), problem, np.empty((0, count)), np.empty(0), claimed=1.0, canaries=canaries,
            guesses=count, confidence=CONFIDENCE, random_state=seed,
        ).violated
        for seed in range(start, start + audits)
    )  # fmt: skip


def test_one_run_at_its_claim_is_flagged_just_as_often_as_its_counts_allow():
    """300 audits of 60 canaries each, two-sided; false alarm rate with fresh seeds 1e-3."""
    bounds = np.array([one_run_epsilon_lower(right, 60, 60, 0.0, CONFIDENCE) for right in range(61)])
    chance = float(stats.binom.pmf(np.arange(61), 60, 1 / (1 + math.exp(-1)))[bounds > 1].sum())
    assert 0.03 < chance <= 0.1
    low, high = stats.binom.ppf([0.5e-3, 1 - 0.5e-3], 300, chance)
    assert low <= one_run_flags(1.0, 300, 0) <= high


def test_one_run_beyond_its_claim_is_flagged():
    """epsilon = 2 where 1 is claimed: each audit is flagged with chance 0.951, seven of ten with chance 0.999."""
    assert one_run_flags(2.0, 10, 5000) >= 7


# -- no claim at all to disprove ------------------------------------------------------------------------------------


class Mute(CentralVault):
    """Answers every number with noise around zero, whatever its rows are."""

    def _add_noise(self, value, noise, sensitivity, multiplier, error=0.0):
        return super()._add_noise(np.zeros_like(value), noise, sensitivity, multiplier, error)


def test_noise_alone_is_flagged_no_more_often_than_stated_even_at_a_tiny_claim():
    """60 audits at a claim of nearly nothing, epsilon = 0.001; false alarm rate with fresh seeds 1e-3."""
    question, pair = QUESTIONS["gradient"], QUESTIONS["gradient"].pair
    suspect = Suspect(question.probe, vault=Mute)
    count = sum(
        audit(suspect, pair, claimed=0.001, runs=100, gaussian=False, confidence=CONFIDENCE, random_state=seed).violated
        for seed in range(60)
    )
    assert count <= stats.binom.ppf(0.999, 60, 1 - CONFIDENCE)


def test_mu_of_the_claim_is_that_of_the_mechanism():
    assert gaussian_mu(*gaussian(1.0)[2].__dict__.values()) == pytest.approx(1.0, rel=1e-9)
