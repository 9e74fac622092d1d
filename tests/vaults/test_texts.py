"""Texts that many rows hold: what one row moves, how noisy counts are, and the price against exact laws."""

import itertools
import math
import pickle
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Adjacency, Budget, BudgetExceeded
from thresher.privacy.certificate import certify
from thresher.privacy.conversions import gaussian_epsilon
from thresher.privacy.plan import Plan
from thresher.privacy.releases import GaussianCategories, GaussianGradient
from thresher.privacy.sensitivity import counts_sensitivity
from thresher.vaults import TextVault
from thresher.vaults.losses import SQUARED
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

LETTERS = ["", "a", "b", "c"]  # "" is a gap


def problem_of(n, d=1, unit="row"):
    return LinearProblem(n, d, Bounds(1.0, target=(-1.0, 1.0)), sparsity=1, loss=SQUARED, intercept=False, unit=unit)


def vault_of(columns, release, adjacency="replace-one", noise=None):
    X = np.array(columns, dtype=object).T
    plan = Plan("test", problem_of(*X.shape), Budget(math.inf, 1e-6, adjacency), (release,))
    return TextVault(X, None, plan, noise or NoiseSource(0))


# -- sensitivity and scale ------------------------------------------------------------------------------------------


def counts_of(rows):
    counts = Counter(rows)
    return np.array([counts[letter] for letter in LETTERS[1:]])


def neighbours(adjacency, n=3):
    """All pairs of tables of one column, n rows in the first."""
    for rows in itertools.product(LETTERS, repeat=n):
        if adjacency is Adjacency.ADD_REMOVE:
            yield from ((rows, (*rows, text)) for text in LETTERS)
        else:
            yield from ((rows, (*rows[:-1], text)) for text in LETTERS)


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_counts_move_by_their_sensitivity_and_no_more(adjacency):
    moves = [np.linalg.norm(counts_of(one) - counts_of(other)) for one, other in neighbours(adjacency)]
    assert max(moves) == counts_sensitivity(adjacency)
    for rows in (["a", "a", ""], ["b"]):
        vault = vault_of([rows], release := GaussianCategories(1, 2.0, 3.0), adjacency)
        vault.categories(0, release)
        (answer,) = vault.answers
        assert (answer.sensitivity, answer.scale) == (max(moves), 2.0 * max(moves))


@pytest.mark.parametrize("hardened", [False, True])
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_scale_does_not_tell_how_many_texts_there_are(adjacency, hardened):
    """It stands in the certificate: with a person who has a name of their own, one text more is there."""
    release, scales = GaussianCategories(1, 2.0, 3.0), set()
    for texts in (0, 1, 2, 3, 50):
        rows = ["a"] * (60 - texts) + [f"t{i}" for i in range(texts)]
        vault = vault_of([rows], release, adjacency, NoiseSource(0, hardened=hardened))
        vault.categories(0, release)
        scales |= {answer.scale for answer in vault.answers}
    assert len(scales) == 1


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_a_text_is_published_as_often_as_the_noise_that_was_paid_for_says(adjacency):
    """4000 texts of three rows each, one sd below the threshold: chance Q(1). False alarm rate with a fresh seed 1e-6;
    a scale 1.25 times too large or too small is nine sigmas away."""
    texts = [f"t{i}" for i in range(4000)] * 3
    release = GaussianCategories(1, 2.0, 0.5)
    sd = 2.0 * counts_sensitivity(adjacency)
    found = vault_of([texts], release, adjacency).categories(0, release, fewest=3 + sd)

    def p_value(scale):
        return stats.binomtest(len(found), 4000, stats.norm.sf(1 / scale)).pvalue

    assert len(set(found)) == len(found)
    assert p_value(1.0) > 1e-6
    assert p_value(1.25) < 1e-6
    assert p_value(1 / 1.25) < 1e-6


def test_a_text_of_one_row_is_published_as_rarely_as_the_price_says():
    """4000 such texts; false alarm rate with a fresh seed 1e-6. Half a clearance less would be noticed."""
    release = GaussianCategories(1, 3.0, 1.5)
    found = vault_of([[f"t{i}" for i in range(4000)]], release).categories(0, release)
    assert stats.binomtest(len(found), 4000, release.cost().lost).pvalue > 1e-6
    assert stats.binomtest(len(found), 4000, stats.norm.sf(1.0)).pvalue < 1e-6


def test_fewest_only_raises_the_threshold_and_the_most_frequent_come_first():
    rows = ["a"] * 500 + ["b"] * 900 + ["c"] * 40 + [""] * 2000 + ["d"]
    release = GaussianCategories(3, 1.0, 6.0)  # noise of 1.4
    vault = vault_of([rows], release)
    assert vault.categories(0, release) == ["b", "a", "c"]
    assert vault.categories(0, release, fewest=200) == ["b", "a"]
    assert vault.categories(0, release, fewest=1) == ["b", "a", "c"]


# -- the price against exact laws -----------------------------------------------------------------------------------


def law_of(rows, release, adjacency):
    """The chance of every set of texts that may be published."""
    sd = release.multiplier * counts_sensitivity(adjacency)
    threshold = 1 + release.clearance * sd
    chance = {text: stats.norm.sf((threshold - count) / sd) for text, count in Counter(rows).items() if text}
    law = {}
    for published in itertools.product([False, True], repeat=len(chance)):
        texts = frozenset(text for text, shown in zip(chance, published, strict=True) if shown)
        law[texts] = math.prod(p if shown else 1 - p for p, shown in zip(chance.values(), published, strict=True))
    return law


def exact_delta(epsilon, one, other):
    return sum(max(0.0, p - math.exp(epsilon) * other.get(texts, 0.0)) for texts, p in one.items())


def largest_delta(release, adjacency, epsilon):
    """Over all pairs of small tables and both directions."""
    laws = {}
    worst = 0.0
    for pair in neighbours(adjacency):
        one, other = (laws.setdefault(tuple(sorted(rows)), law_of(rows, release, adjacency)) for rows in pair)
        worst = max(worst, exact_delta(epsilon, one, other), exact_delta(epsilon, other, one))
    return worst


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("sd", [0.4, 1.0, 5.0])
@pytest.mark.parametrize("clearance", [0.0, 1.0, 3.0])
def test_the_price_covers_every_pair_of_small_tables(adjacency, sd, clearance):
    """Three rows of one column with three texts and gaps, all 256 pairs or more, to the last digit."""
    release = GaussianCategories(1, sd, clearance)
    for delta in (1e-4, 0.01, 0.1, 0.3, 0.6):
        epsilon = release.cost().epsilon(delta)[0]
        if math.isfinite(epsilon):
            assert largest_delta(release, adjacency, epsilon) <= delta * (1 + 1e-12)


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_rare_text_is_what_costs_delta_and_the_price_of_it_is_tight(adjacency):
    """Without ``lost`` the same pairs would disprove the price: all that an epsilon of 50 leaves is the rare text."""
    release = GaussianCategories(1, 5.0, 2.0)
    worst = largest_delta(release, adjacency, 50.0)
    assert worst == pytest.approx(release.cost().lost, rel=1e-9)
    forgotten = gaussian_epsilon(1 / 5.0, 1e-3)
    assert largest_delta(release, adjacency, forgotten) > 1e-3


def test_losses_add_up_over_uses_and_calibration_keeps_to_the_budget():
    once, often = GaussianCategories(1, 5.0, 4.0).cost(), GaussianCategories(7, 5.0, 4.0).cost()
    assert often.lost == pytest.approx(7 * once.lost)
    assert often.mu_squared == pytest.approx(7 * once.mu_squared)
    assert often.gaussian_mu == math.inf  # no one mu describes a price with a chance of loss in it
    for epsilon, delta, times in itertools.product([0.01, 1.0, 8.0], [1e-12, 1e-6, 0.1], [1, 9, 400]):
        release = GaussianCategories.calibrated(Budget(epsilon, delta), times)
        assert release.cost().lost <= delta / 2
        assert 0.999 * epsilon < release.cost().epsilon(delta)[0] <= epsilon
        cheaper = replace(release, sd_per_sensitivity=release.sd_per_sensitivity / 1.25)
        assert cheaper.cost().epsilon(delta)[0] > 1.1 * epsilon
        assert replace(release, clearance=release.clearance / 1.25).cost().lost > delta / 2


# -- refusals -------------------------------------------------------------------------------------------------------


def test_what_is_not_planned_is_not_answered():
    planned, other = GaussianCategories(1, 2.0, 3.0), GaussianCategories(1, 2.0, 2.0)
    vault = vault_of([["a"] * 100], planned)
    with pytest.raises(BudgetExceeded, match="not in the plan"):
        vault.categories(0, other)
    assert vault.categories(0, planned) == ["a"]
    with pytest.raises(BudgetExceeded, match="used up"):
        vault.categories(0, planned)
    assert len(vault.answers) == 1


def test_a_release_of_another_question_pays_for_nothing():
    release = GaussianGradient(1, 2.0)
    with pytest.raises(BudgetExceeded, match="not for a categories"):
        vault_of([["a"]], release).categories(0, release)


def test_a_closed_vault_answers_nothing_and_no_vault_leaves_its_process():
    release = GaussianCategories(1, 2.0, 3.0)
    with vault_of([["a"]], release) as vault, pytest.raises(TypeError, match="never leaves"):
        pickle.dumps(vault)
    with pytest.raises(RuntimeError, match="closed"):
        vault.categories(0, release)
    assert vault.answers == ()


def test_people_are_refused():
    release = GaussianCategories(1, 2.0, 3.0)
    with pytest.raises(ValueError, match="its categories is proved"):
        Plan("test", problem_of(10, unit="person"), Budget(1.0, 1e-6), (release,))


def test_a_certificate_with_too_little_noise_for_its_adjacency_does_not_hold():
    release = GaussianCategories.calibrated(Budget(1.0, 1e-6), 1)
    plan = Plan("test", problem_of(100), Budget(1.0, 1e-6), (release,))
    vault = TextVault(np.full((100, 1), "a", dtype=object), None, plan, NoiseSource(0))
    vault.categories(0, release)
    sound = certify(plan, vault.answers, vault.randomness, ())
    assert sound.verify()
    assert sound.second_opinion() == pytest.approx(1.0, rel=0.1)
    quiet = replace(vault.answers[0], sensitivity=1.0, scale=release.multiplier)
    problems = certify(plan, (quiet,), vault.randomness, ()).verify().problems
    assert any("sensitivity 1 of a categories is below 1.41421" in problem for problem in problems)
    lower = {**sound.releases[0]["release"], "clearance": 2.0}
    assert not replace(sound, releases=({**sound.releases[0], "release": lower},)).verify()


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("multiplier", [0.01, 2.0, 300.0, 1e6])
def test_the_threshold_pays_for_the_grid_of_exact_noise(adjacency, multiplier):
    """A text of one row is out of reach by ``clearance`` deviations of the noise that was added, and a grid step."""
    release = GaussianCategories(1, multiplier, 4.0)
    vault = vault_of([["a", "a", "b"]], release, adjacency, NoiseSource(0, hardened=True))
    vault.categories(0, release)
    (answer,) = vault.answers
    planned = multiplier * counts_sensitivity(adjacency)
    assert answer.scale > planned
    assert release.threshold(answer.sensitivity) - 1 >= 4.0 * answer.scale + planned * 2.0**-28
    assert release.threshold(answer.sensitivity) - 1 <= 4.0 * planned * (1 + 1e-7 * (1 + multiplier))
