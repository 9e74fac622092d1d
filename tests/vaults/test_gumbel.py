"""The exponential mechanism as a race: its law, plain and hardened, and that no rounding error decides it."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import mpmath
import numpy as np
import pytest
from scipy import stats

from inside import set_generator
from thresher.vaults import randomness
from thresher.vaults.randomness import NoiseSource, key_range

SCORES = np.array([0.0, 0.7, 1.5, -math.inf, 2.4, 1.5])
SCALE = 0.8
FALSE_ALARM = 1e-6
MODES = pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
LAST_WORD = 2**52 - 1


def law(scores, scale, picks):
    """Probability of each set of ``picks`` positions drawn one by one by softmax(scores / scale), none twice."""
    weights = np.exp((scores - np.max(scores)) / scale)
    probabilities = Counter()
    for order in itertools.permutations(np.flatnonzero(weights), picks):
        probability, left = 1.0, weights.sum()
        for j in order:
            probability *= weights[j] / left
            left -= weights[j]
        probabilities[frozenset(order)] += probability
    assert math.isclose(math.fsum(probabilities.values()), 1.0)
    return probabilities


def fits(seen, probabilities):
    """Pearson's chi-square test, wrong once in a million if the law is right; nothing impossible may be seen."""
    if not set(seen) <= set(probabilities):
        return False
    expected = np.array(list(probabilities.values())) * seen.total()
    assert expected.min() > 5, "too rare for the chi-square law"
    total = sum((seen[key] - e) ** 2 / e for key, e in zip(probabilities, expected, strict=True))
    return total < stats.chi2.isf(FALSE_ALARM, len(expected) - 1)


def choices(source, draws, scores=SCORES, picks=1, sensitivity=0.4, multiplier=2.0):
    """How often each set was chosen, with Gumbel(0.8) noise unless told otherwise."""
    return Counter(
        frozenset(source.gumbel_top(scores, picks, sensitivity, multiplier)[0].tolist()) for _ in range(draws)
    )


def laplace_choices(scores, draws, picks, scale):
    noisy = scores + np.random.default_rng(1).laplace(scale=scale, size=(draws, len(scores)))
    return Counter(map(frozenset, np.argsort(-noisy, axis=1)[:, :picks].tolist()))


# -- the law ------------------------------------------------------------------------------------------------------


@MODES
@pytest.mark.parametrize("picks", [1, 2, 3])
def test_choices_follow_the_exponential_mechanism_without_replacement_and_not_one_a_quarter_off(hardened, picks):
    """False alarms: 1e-6 with fresh seeds, none with this one. Noncentralities of 1.25 exceed 240 at 10000 draws."""
    seen = choices(NoiseSource(picks, hardened=hardened), 10_000, picks=picks)
    assert fits(seen, law(SCORES, SCALE, picks))
    assert not fits(seen, law(SCORES, SCALE * 1.25, picks))
    assert not fits(seen, law(SCORES, SCALE / 1.25, picks))


@pytest.mark.parametrize("picks", [2, 3])
@pytest.mark.parametrize("scale", [SCALE, SCALE / 2, SCALE * math.pi / math.sqrt(12)], ids=["same", "half", "same sd"])
def test_laplace_noise_would_not_pass_for_several_picks(picks, scale):
    assert not fits(laplace_choices(SCORES, 10_000, picks, scale), law(SCORES, SCALE, picks))


@MODES
def test_laplace_noise_would_not_pass_for_one_pick_of_two(hardened):
    """Three scales apart the lower one wins with 0.0474 under Gumbel noise, 0.0622 under Laplace: noncentrality 92."""
    scores = np.array([0.0, 3 * SCALE])
    assert fits(choices(NoiseSource(0, hardened=hardened), 20_000, scores), law(scores, SCALE, 1))
    assert not fits(laplace_choices(scores, 20_000, 1, SCALE), law(scores, SCALE, 1))


@MODES
def test_the_scale_returned_is_multiplier_times_sensitivity_and_round_off_counts_on_both_sides_if_hardened(hardened):
    _, scale = NoiseSource(0, hardened=hardened).gumbel_top(SCORES, 1, 0.25, 3.0, error=0.01)
    assert scale == pytest.approx(3.0 * (0.25 + 0.02 * hardened), rel=1e-15)


def test_hardened_noise_is_as_wide_as_the_scale_it_returns():
    """Round-off of half the sensitivity doubles the scale; 10000 draws, false alarms 1e-6."""
    source = NoiseSource(0, hardened=True)
    seen = Counter(frozenset(source.gumbel_top(SCORES, 2, 0.4, 2.0, error=0.2)[0].tolist()) for _ in range(10_000))
    assert fits(seen, law(SCORES, 2 * SCALE, 2))
    assert not fits(seen, law(SCORES, SCALE, 2))


@MODES
@pytest.mark.parametrize("sensitivity", [1.0, 1e-3, math.inf])
def test_without_noise_the_largest_scores_win_whatever_the_sensitivity(hardened, sensitivity):
    chosen, scale = NoiseSource(0, hardened=hardened).gumbel_top(SCORES, 3, sensitivity, 0.0, error=1e-9)
    assert (chosen.tolist(), scale) == ([2, 4, 5], 0.0)


@MODES
@pytest.mark.parametrize("picks", [1, 2, 3, 5])
def test_an_excluded_score_is_never_chosen_and_positions_come_in_order(hardened, picks):
    source = NoiseSource(0, hardened=hardened)
    for _ in range(200):
        chosen, _ = source.gumbel_top(SCORES, picks, 1.0, 100.0)
        assert len(chosen) == picks
        assert 3 not in chosen
        assert np.all(np.diff(chosen) > 0)


@MODES
@pytest.mark.parametrize("shift", [-1024.0, 1024.0, 2.0**30])
def test_a_constant_added_to_all_scores_changes_no_choice(hardened, shift):
    scores = np.array([0.0, 1.0, 3.0, 2.0, 2.0])
    one, other = (NoiseSource(3, hardened=hardened) for _ in range(2))
    for _ in range(300):
        chosen, moved = one.gumbel_top(scores, 2, 1.0, 1.0)[0], other.gumbel_top(scores + shift, 2, 1.0, 1.0)[0]
        np.testing.assert_array_equal(chosen, moved)


@MODES
def test_choices_are_independent_of_each_other(hardened):
    """Pairs of consecutive picks among 4 equal scores: chi-square with 15 degrees of freedom at 1e-6."""
    source = NoiseSource(0, hardened=hardened)
    picks = [int(source.gumbel_top(np.zeros(4), 1, 1.0, 1.0)[0][0]) for _ in range(8_000)]
    pairs = Counter(zip(picks[::2], picks[1::2], strict=True))
    assert fits(pairs, dict.fromkeys(itertools.product(range(4), repeat=2), 1 / 16))
    assert not fits(Counter((p, p) for p in picks), dict.fromkeys(itertools.product(range(4), repeat=2), 1 / 16))


@MODES
@pytest.mark.parametrize("scores", [[1e308, 1e300, 2.0], [1e308, 1e308, -1e308]], ids=["apart", "tied"])
def test_scores_beyond_the_noise_by_more_than_a_float_holds_are_ordered_without_noise(hardened, scores):
    winners = {
        int(NoiseSource(s, hardened=hardened).gumbel_top(np.array(scores), 1, 1e-10, 1.0)[0][0]) for s in range(9)
    }
    assert winners <= set(np.flatnonzero(np.array(scores) == 1e308))


# -- near ties, settled by decimal arithmetic ---------------------------------------------------------------------


@pytest.fixture
def settled(monkeypatch):
    """How many keys were computed in decimals."""
    count = Counter()

    def counting(*args):
        count["keys"] += 1
        return key_range(*args)

    monkeypatch.setattr(randomness, "key_range", counting)
    return count


@pytest.fixture
def settle_everything(monkeypatch, settled):
    """As if floating point could not tell any two keys apart."""
    monkeypatch.setattr(np, "partition", lambda values, _: np.full_like(values, np.inf))
    return settled


@pytest.mark.parametrize("picks", [1, 2])
def test_settling_every_key_leaves_the_law_unchanged(settle_everything, picks):
    """600 draws, as decimals are slow: false alarms 1e-6; twice and 1/1.6 are noticed. For 1.25, see the next test."""
    scores, scale = np.array([0.0, 1.5, 3.0]), 1.6
    seen = choices(NoiseSource(5, hardened=True), 600, scores, picks, 0.8, 2.0)
    assert settle_everything["keys"] >= 3 * 600
    assert fits(seen, law(scores, scale, picks))
    assert not fits(seen, law(scores, scale * 2, picks))
    assert not fits(seen, law(scores, scale / 1.6, picks))


def test_settling_every_key_chooses_as_floating_point_does(request):
    def chosen(seed):
        scores = np.random.default_rng(seed).normal(size=12)
        return NoiseSource(seed, hardened=True).gumbel_top(scores, 4, 0.5, 1.0)[0]

    fast = [chosen(seed) for seed in range(100)]
    request.getfixturevalue("settle_everything")
    np.testing.assert_array_equal([chosen(seed) for seed in range(100)], fast)


def test_clear_cases_are_not_settled(settled):
    choices(NoiseSource(0, hardened=True), 500)
    assert settled["keys"] == 0


class Scripted:
    """A generator whose first words of 52 bits are given; further bits are given too, or real."""

    def __init__(self, words, further=None, seed=0):
        self._words, self._further, self._real = words, further, np.random.default_rng(seed)

    def integers(self, low, high, size=None, dtype=np.int64):
        if high == 2**52:
            assert size == len(self._words)
            return np.array(self._words, dtype=np.int64)
        assert (low, high, size, dtype) == (0, 2**64, None, np.uint64)
        return self._real.integers(low, high, dtype=np.uint64) if self._further is None else self._further.pop(0)


def scripted(words, scores, picks=1, further=None, seed=0, scale=1.0):
    source = NoiseSource(0, hardened=True)
    set_generator(source, Scripted(words, further, seed))
    return source.gumbel_top(np.asarray(scores, dtype=float), picks, scale, 1.0)[0].tolist()


def test_the_first_word_loses_and_the_last_one_wins_among_equal_scores():
    words = [0, 2**51, LAST_WORD, 5]
    assert scripted(words, np.zeros(4)) == [2]
    assert scripted(words, np.zeros(4), 2) == [1, 2]
    assert scripted(words, np.zeros(4), 3) == [1, 2, 3]
    assert scripted(words, np.zeros(4), 4) == [0, 1, 2, 3]


def test_the_first_and_the_last_word_leave_the_winner_open_however_far_the_other_is():
    """U below 2^-52 may be next to 0, E then beyond any other's; U above 1 - 2^-52 may be next to 1, E next to 0."""
    assert scripted([0, 1], [0.0, -0.2], further=[0, 0]) == [1]
    assert scripted([0, 1], [0.0, -0.2], further=[2**64 - 1, 0]) == [0]
    assert scripted([LAST_WORD, 2**51], [0.0, 40.0], further=[2**64 - 1, 0]) == [0]
    assert scripted([LAST_WORD, 2**51], [0.0, 40.0], further=[0, 0]) == [1]


def test_equal_words_and_scores_are_decided_by_further_bits_alone():
    """Larger U, smaller E = -log U, wins; the second word of further bits decides if the first are equal."""
    assert scripted([77, 77], [0, 0], further=[1, 2**63]) == [1]
    assert scripted([77, 77], [0, 0], further=[2**63, 1]) == [0]
    assert scripted([77, 77], [0, 0], further=[9, 9, 2**64 - 1, 0]) == [0]
    assert scripted([77, 77, 77], [0, 0, 0], 2, further=[9, 2**64 - 1, 9, 3, 0, 2**63]) == [1, 2]


@pytest.mark.parametrize("advantage", [0.0, 0.8])
def test_the_open_end_is_a_race_of_uniforms(advantage):
    """U = 1 - V/2^52 with V uniform, so E = V/2^52 but for 1e-16, and V_0 < e^advantage V_1 has probability
    1 - e^-advantage/2. 400 draws by the exact binomial law at 1e-6; an advantage larger by 1 is noticed."""
    wins = sum(scripted([LAST_WORD] * 2, [advantage, 0.0], seed=seed) == [0] for seed in range(400))

    def plausible(probability):
        return stats.binomtest(wins, 400, probability).pvalue > FALSE_ALARM

    assert plausible(1 - math.exp(-advantage) / 2)
    assert not plausible(1 - math.exp(-advantage - 1) / 2)


def test_a_last_word_is_still_beaten_by_a_score_that_is_high_enough():
    """log E <= -36.04 at the last word, so with 40.04 more than that of log E = 0 it loses unless V < e^-4."""
    middle = round(math.exp(-1) * 2**52)
    advantage = 52 * math.log(2) + 4
    wins = sum(scripted([LAST_WORD, middle], [0.0, advantage], seed=seed) == [0] for seed in range(400))
    assert stats.binomtest(wins, 400, math.exp(-4)).pvalue > FALSE_ALARM
    assert stats.binomtest(wins, 400, math.exp(-1.5)).pvalue < FALSE_ALARM


def test_scores_closer_than_floats_can_tell_apart_next_to_the_noise_are_told_apart():
    """Same first word, same further word but one, scores 1e-30 apart: only decimals see which way it goes."""
    base = 2**63
    assert scripted([2**51, 2**51], [0.0, 1e-30], further=[base, base, 0, 0]) == [1]
    assert scripted([2**51, 2**51], [1e-30, 0.0], further=[base, base, 0, 0]) == [0]


@pytest.mark.parametrize("bits", [116, 180])
def test_a_key_range_contains_the_true_key_and_little_else(bits):
    """Against mpmath at 60 digits and more, for words all over the range and shifts of all sizes."""
    rng = np.random.default_rng(0)
    words = [1, 2, 2**bits - 2, 2**bits - 3, *(int.from_bytes(rng.bytes(bits // 8), "big") for _ in range(40))]
    words = [word >> (bits - word.bit_length()) % 8 if word >= 2**bits else word for word in words]
    for word in words:
        score, scale = float(rng.normal() * 10.0 ** rng.integers(-20, 20)), float(10.0 ** rng.integers(-10, 10))
        low, high = key_range(word, bits, score, scale)
        with mpmath.workdps(60 + bits):
            inside = (mpmath.mpf(word) + mpmath.mpf("0.37")) / mpmath.mpf(2) ** bits
            ends = [mpmath.mpf(word) / mpmath.mpf(2) ** bits, mpmath.mpf(word + 1) / mpmath.mpf(2) ** bits]
            key, largest, least = (mpmath.log(-mpmath.log(u)) - mpmath.mpf(score) / scale for u in [inside, *ends])
            low, high = mpmath.mpf(str(low)), mpmath.mpf(str(high))
            assert low <= least <= key <= largest <= high
            assert (high - low) - (largest - least) <= 4 * mpmath.mpf(10) ** (40 - bits)


def test_a_key_range_is_open_at_the_ends_of_the_unit_interval():
    low, high = key_range(0, 116, 1.0, 1.0)
    assert float(low) < 5
    assert float(high) == math.inf
    low, high = key_range(2**116 - 1, 116, 1.0, 1.0)
    assert float(low) == -math.inf
    assert float(high) == pytest.approx(-116 * math.log(2) - 1)


# -- whole numbers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("below", [1, 7, 2**40 + 1])
def test_uniform_integers_are_uniform(below):
    """Seven equal cells of 20000 draws, chi-square at 1e-6."""
    draws = NoiseSource(0).uniform_integers(below, 20_000)
    assert draws.dtype == np.int64
    assert draws.min() >= 0
    assert draws.max() < below
    if below > 1:
        assert fits(Counter((draws * 7 // below).tolist()), dict.fromkeys(range(7), 1 / 7))
        assert not fits(Counter((draws * 6 // below).tolist()), dict.fromkeys(range(7), 1 / 7))
