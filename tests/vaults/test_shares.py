"""A person with many wild rows moves no answer further than one row may, because all of them count as one."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from inside import drawn_batch, shares_of
from neighbours import SOME_BOUNDS
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Adjacency, Budget
from thresher.privacy.facts import MOST_ROWS_EACH
from thresher.privacy.plan import Plan
from thresher.privacy.releases import (
    GaussianGradient,
    GaussianGram,
    GaussianLabels,
    GaussianMean,
    GaussianMinimiser,
    GaussianMoments,
    GaussianRestrictedGradient,
    GumbelNearMaximum,
    GumbelQuantile,
    GumbelSelection,
    GumbelStep,
    GumbelVertex,
    GumbelVotes,
    PerturbedMinimiser,
    SampledGradient,
    SampledMomentum,
)
from thresher.privacy.sensitivity import ROUND_OFF, gradient_sensitivity, most_present, norm_error, round_off
from thresher.vaults import CentralVault
from thresher.vaults.central.rows import Shares
from thresher.vaults.losses import SQUARED, loss_named
from thresher.vaults.polytopes import L1Ball
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

FORMS = {"dense": np.array, "sparse": sparse.csr_array}
OTHERS, D, BATCH = 8, 5, 3  # people beside the one who changes, columns, people in a batch
N = OTHERS + 1
LEVELS = np.array([-0.3, 0.013, 0.31, 0.77, 1.51, 33.3])
SUPPORT = np.array([2, 0])
BASIS = np.array([[1.0, 2.0], [-0.5, 3.0]])
FEATURES = np.array([[1.0, -2.0], [0.3, 0.0], [5.0, 1.0]])


class Everybody(NoiseSource):
    """Batches of all: what a person moves a batch by does not depend on who else is in it."""

    def batch(self, rows, rate, sampling):
        return np.arange(rows)


class Glass(CentralVault):
    """A vault that shows what it would answer without noise, and the sensitivity it states."""

    def _release_noisy(self, value, release, clip, sensitivity, error):
        self.shown, self.stated, self.error = np.linalg.norm, (np.array(value), sensitivity), error
        return super()._release_noisy(value, release, clip, sensitivity, error)

    def _release_choice(self, scores, picks, release, clip, sensitivity, error):
        moved = MOVED.get(type(release), lambda moves: np.max(np.abs(moves)))
        self.shown, self.stated, self.error = moved, (np.array(scores), sensitivity), error
        return super()._release_choice(scores, picks, release, clip, sensitivity, error)


MOVED = {
    GumbelNearMaximum: lambda moves: np.ptp(np.append(moves, 0.0)),  # no two scores further apart, and none further
    GumbelStep: lambda moves: np.ptp(moves) / 2,  # as if half of the clip had been taken off every loss
}
"""By what the sensitivity is compared with where it is not the largest move of a score."""


def sampled(kind):
    return lambda adjacency: kind(1, 1.0, BATCH, N, "poisson", adjacency)


def plain(kind, **facts):
    return lambda adjacency: kind(1, 1.0, **facts)


QUESTIONS = {
    "gradient": (plain(GaussianGradient), lambda v, r, t, c: v.gradient(t, r, c)),
    "restricted gradient": (
        plain(GaussianRestrictedGradient), lambda v, r, t, c: v.restricted_gradient(t, SUPPORT, r, c),
    ),
    "projected gradient": (
        plain(GaussianRestrictedGradient), lambda v, r, t, c: v.restricted_gradient(t, SUPPORT, r, c, BASIS),
    ),
    "mean": (plain(GaussianMean), lambda v, r, t, c: v.mean(np.array([3, 0, 1]), r, c)),
    "moments": (plain(GaussianMoments), lambda v, r, t, c: v.moments(np.array([1, 4, 2]), r)),
    "gram": (plain(GaussianGram), lambda v, r, t, c: v.gram(np.array([3, 0, 1]), r, norm=0.8)),
    "projected gram": (plain(GaussianGram), lambda v, r, t, c: v.gram(SUPPORT, r, norm=0.8, basis=BASIS)),
    "minimiser": (plain(GaussianMinimiser), lambda v, r, t, c: v.minimiser(r, c, 0.5)),
    "labels": (plain(GaussianLabels), lambda v, r, t, c: v.labels(FEATURES, SUPPORT, r, c, 0.5)),
    "selection": (plain(GumbelSelection, picks=2), lambda v, r, t, c: v.selection(t, r, c)),
    "residuals": (plain(GumbelQuantile), lambda v, r, t, c: v.quantile("residuals", 0.7, LEVELS, t, r)),
    "gradient norms": (plain(GumbelQuantile), lambda v, r, t, c: v.quantile("gradient norms", 0.7, LEVELS, t, r)),
    "restricted norms": (plain(GumbelQuantile), lambda v, r, t, c: v.quantile("row norms", 0.4, LEVELS, t, r, SUPPORT)),
    "targets": (plain(GumbelQuantile), lambda v, r, t, c: v.quantile("targets", 0.5, LEVELS, t, r)),
    "column": (plain(GumbelQuantile), lambda v, r, t, c: v.column_quantile(1, 0.4, LEVELS, r)),
    "near maximum": (
        plain(GumbelNearMaximum), lambda v, r, t, c: v.near_maximum("gradient norms", LEVELS, 1.7, 0.3, t, r),
    ),
    "restricted near maximum": (
        plain(GumbelNearMaximum), lambda v, r, t, c: v.near_maximum("row norms", LEVELS, 0.0, 0.0, t, r, SUPPORT),
    ),
    "projected near maximum": (
        plain(GumbelNearMaximum),
        lambda v, r, t, c: v.near_maximum("gradient norms", LEVELS, 0.0, 0.0, t, r, SUPPORT, BASIS),
    ),
    "step length": (
        plain(GumbelStep),
        lambda v, r, t, c: v.step_length(t, np.linspace(1, -1, len(t)), np.array([0.0, 0.1, 1.0, 1e3]), r, c),
    ),
    "vertex": (plain(GumbelVertex), lambda v, r, t, c: v.vertex(t, r, L1Ball(2.0), c)),
    "sampled gradient": (sampled(SampledGradient), lambda v, r, t, c: v.sampled_gradient(t, r, c)),
    "sampled momentum": (
        sampled(SampledMomentum), lambda v, r, t, c: v.sampled_momentum(t, 0.5 * t, r, c, 0.1, 0.3),
    ),
    "votes": (plain(GumbelVotes, picks=2), lambda v, r, t, c: v.votes(r, blocks=6)),
}  # fmt: skip
OF_SEVERAL_CLASSES = (
    "gradient", "restricted gradient", "projected gradient", "mean", "gram", "projected gram", "near maximum",
    "projected near maximum", "sampled gradient", "sampled momentum", "step length",
)  # fmt: skip
POOL = [np.full(D, wild) for wild in (1e300, -1e300, 1e-320, 0.0, 1.0, -1.0, 1e6, 0.3)]
POOL += [np.array([1.0, -1e300, 0.5, 0.0, 1e6]), *np.eye(D), *(-1e300 * np.eye(D)[:2])]
TARGETS = {"squared": (0.0, 1.0, -1.0, 1e300, -1e300), "logistic": (0.0, 1.0), "multinomial": (0, 1, 2)}


def others(loss, seed):
    """Rows of the people who stay, one to five each."""
    rng = np.random.default_rng(seed)
    owners = np.repeat(np.arange(OTHERS), rng.integers(1, 6, OTHERS))
    X = rng.uniform(-1.5, 1.5, (len(owners), D))
    y = X[:, 0] + 0.3 * rng.normal(size=len(owners))
    return X, {"squared": y, "logistic": y > 0, "multinomial": np.digitize(y, [-0.5, 0.5])}[loss].astype(float), owners


def with_person(table, rows):
    """The table with one more person, who has these rows, each with its target; the last, so that draws are coupled."""
    X, y, owners = table
    if not rows:
        return table
    more, targets = zip(*rows, strict=True)
    return np.vstack([X, *more]), np.append(y, targets), np.append(owners, np.full(len(rows), OTHERS))


def make_vault(table, release, loss="squared", bounds=None, adjacency="replace-one", intercept=False, **noise):
    X, y, owners = table
    bounds = bounds or Bounds(feature=1.0)
    bounds = Bounds(bounds.feature, bounds.row, (-1.0, 1.0) if loss == "squared" else None)
    if loss == "multinomial":
        y = np.equal.outer(y, np.arange(3)).astype(float)
    problem = LinearProblem(
        N,
        D,
        bounds,
        sparsity=2,
        loss=loss_named(loss),
        intercept=intercept,
        outputs=3 if loss == "multinomial" else 1,
        unit="person",
    )
    plan = Plan("test", problem, Budget(math.inf, 1e-6, adjacency), (release,))
    kind = FORMS[noise.pop("form", "dense")]
    return Glass(kind(X), y, plan, Everybody(0, **noise), owners=owners)


def movement(question, first, second, theta=None, clip=1.0, adjacency="replace-one", weighted=True, **facts):
    """How far apart two tables' answers are before noise, and the sensitivity that both state."""
    (kind, ask), shown = QUESTIONS[question], []
    for table in (first, second):
        release = kind(Adjacency(adjacency))
        vault = make_vault(table, release, adjacency=adjacency, **facts)
        if not weighted:
            shares_of(vault).of_rows[:] = 1.0
        ask(vault, release, vault.problem.origin() if theta is None else theta, clip)
        shown.append(vault.stated)
    (one, stated), (other, same) = shown
    assert stated == same, "a sensitivity that depends on the rows is a leak of its own"
    return float(vault.shown(one - other)), stated


# -- one wild person ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("adjacency", list(Adjacency))
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_wild_person_moves_no_answer_by_more_than_its_stated_sensitivity(question, form, adjacency, data):
    losses = ["squared", "logistic"] + ["multinomial"] * (question in OF_SEVERAL_CLASSES)
    loss = data.draw(st.sampled_from(losses), "loss")
    table = others(loss, data.draw(st.integers(0, 5), "seed"))
    rows = st.tuples(st.sampled_from(POOL), st.sampled_from(TARGETS[loss]))
    before = data.draw(st.lists(rows, max_size=40), "before") if adjacency == "replace-one" else []
    after = data.draw(st.lists(rows, max_size=40), "after")
    intercept = data.draw(st.booleans(), "intercept")
    size = (D + intercept) * (3 if loss == "multinomial" else 1)
    theta = data.draw(st.lists(st.sampled_from([0.0, 0.5, -2.0, 100.0, -1e4]), min_size=size, max_size=size), "theta")
    moved, stated = movement(
        question, with_person(table, before), with_person(table, after), np.array(theta),
        data.draw(st.sampled_from([1e-3, 0.3, 1.0, 50.0]), "clip"), adjacency, form=form, loss=loss,
        intercept=intercept, bounds=data.draw(st.sampled_from(SOME_BOUNDS), "bounds"),
    )  # fmt: skip
    assert moved <= stated * (1 + 1e-9)


def worst_pair(rows=20):
    """A person whose rows are at their bounds, with saturated residuals, and none."""
    table = np.zeros((OTHERS, D)), np.zeros(OTHERS), np.arange(OTHERS)
    return with_person(table, [(np.ones(D), 1.0)] * rows), table


def below_all(rows=20):
    """Others above some levels, and a person whose rows are all below these, or none: rows above are what is left."""
    table = np.ones((OTHERS, D)), np.ones(OTHERS), np.arange(OTHERS)
    return with_person(table, [(np.zeros(D), 0.0)] * rows), table


def explained(rows=20):
    """A person whose rows a theta of a tenth explains and no other, or none: a loss alike everywhere says nothing."""
    table = np.zeros((OTHERS, D)), np.zeros(OTHERS), np.arange(OTHERS)
    return with_person(table, [(np.eye(D)[0], 0.1)] * rows), table


@pytest.mark.parametrize("question", [name for name in QUESTIONS if name != "votes"])
@pytest.mark.parametrize("form", FORMS)
def test_without_shares_the_test_above_would_fail(question, form):
    facts = {"form": form, "clip": 0.1, "theta": np.full(D, 0.1)}
    pair = below_all() if "near maximum" in question else explained() if question == "step length" else worst_pair()
    moved, stated = movement(question, *pair, weighted=False, **facts)
    assert moved > 1.5 * stated
    moved, stated = movement(question, *pair, **facts)
    assert moved <= stated * (1 + 1e-9)


@pytest.mark.parametrize("question", ["gradient", "minimiser", "sampled gradient", "vertex"])
def test_the_stated_sensitivity_is_nearly_attained_by_a_person_with_many_rows(question):
    table = np.zeros((OTHERS, D)), np.zeros(OTHERS), np.arange(OTHERS)
    pair = [with_person(table, [(np.ones(D), target)] * rows) for target, rows in ((1.0, 20), (-1.0, 33))]
    moved, stated = movement(question, *pair, clip=0.1)
    assert moved > 0.98 * stated


def test_blocks_are_of_people():
    """All rows of a person sit in one block: with a block of their own for each row, more would vote differently."""
    table = others("squared", 1)
    vault = make_vault(with_person(table, [(np.ones(D), 1.0)] * 30), GumbelVotes(1, 1.0, 2))
    blocks = vault._blocks(6)
    assert all(len(set(blocks[shares_of(vault).owners == person])) == 1 for person in range(N))
    assert len(set(blocks)) > 1


# -- exact values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_an_answer_is_the_mean_over_people_of_the_means_over_their_rows(form, loss):
    table = X, y, owners = with_person(others(loss, 3), [(np.ones(D), 1.0), (-np.ones(D), 0.0)])
    vault, theta = make_vault(table, GaussianGradient(1, 0.0), loss, form=form), np.linspace(-1, 1, D)
    rows, targets = np.clip(X, -1, 1), np.clip(y, -1, 1)
    margins = rows @ theta
    terms = ((margins if loss == "squared" else 1 / (1 + np.exp(-margins))) - targets)[:, None] * rows
    terms *= np.minimum(1, 0.4 / np.maximum(np.linalg.norm(terms, axis=1), 1e-9))[:, None]
    expected = np.mean([terms[owners == person].mean(axis=0) for person in range(N)], axis=0)
    np.testing.assert_allclose(vault.gradient(theta, GaussianGradient(1, 0.0), 0.4), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("form", FORMS)
def test_moments_and_gram_matrices_are_means_over_people(form):
    table = X, _, owners = with_person(others("squared", 3), [(np.ones(D), 1.0), (np.zeros(D), 0.0)])
    rows, columns = np.clip(X, -1, 1), np.arange(D)
    for release, ask in (
        (GaussianMoments(1, 0.0), lambda vault, release: vault.moments(columns, release)),
        (GaussianGram(1, 0.0), lambda vault, release: np.diag(vault.gram(columns, release, 100.0))),
        (GaussianGram(1, 0.0), lambda vault, release: np.diag(vault.gram(columns, release, 100.0, np.eye(D)))),
    ):
        expected = np.mean([(rows[owners == person] ** 2).mean(axis=0) for person in range(N)], axis=0)
        np.testing.assert_allclose(ask(make_vault(table, release, form=form), release), expected, rtol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_means_are_means_over_people(form):
    table = X, _, owners = with_person(others("squared", 3), [(np.ones(D), 1.0), (np.zeros(D), 0.0)])
    rows, release = np.clip(X, -1, 1), GaussianMean(1, 0.0)
    expected = np.mean([rows[owners == person].mean(axis=0) for person in range(N)], axis=0)
    found = make_vault(table, release, form=form).mean(np.arange(D), release, 100.0)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("sampling", ["poisson", "fixed"])
def test_a_batch_holds_all_rows_of_the_people_who_are_drawn(sampling):
    table = with_person(others("squared", 2), [(np.ones(D), 1.0)] * 4)
    release = SampledGradient(1, 0.0, BATCH, N, sampling, Adjacency.REPLACE_ONE)
    problem = LinearProblem(
        N, D, Bounds(feature=1.0, target=(-1.0, 1.0)), sparsity=2, loss=SQUARED, intercept=False, unit="person"
    )
    vault = CentralVault(
        *table[:2], Plan("test", problem, Budget(math.inf, 1e-6), (release,)), NoiseSource(5), owners=table[2]
    )
    people = NoiseSource(5).batch(N, BATCH / N, sampling)
    rows = drawn_batch(vault, release)
    assert set(table[2][rows]) == set(people)
    assert sorted(rows) == np.flatnonzero(np.isin(table[2], people)).tolist()
    if sampling == "fixed":
        assert len(people) == BATCH


# -- people with very many rows -----------------------------------------------------------------------------------


@pytest.mark.parametrize("question", [name for name in QUESTIONS if name != "votes"])
def test_a_person_with_hundreds_of_rows_counts_as_one(question):
    """Votes apart: drawing rows moves the stream that blocks are drawn from, so that a seed couples nothing."""
    table = others("squared", 0)
    many = with_person(table, [(POOL[at % len(POOL)], TARGETS["squared"][at % 5]) for at in range(500)])
    few = with_person(table, [(np.ones(D), 1.0)])
    moved, stated = movement(question, few, many, np.full(D, 0.5))
    assert moved <= stated * (1 + 1e-9)


def test_of_a_person_with_too_many_rows_a_random_subset_counts():
    """Chi-square over 100 rows and 2000 draws; with fresh seeds it is wrong once in 1e6, with these never. Were the
    first rows preferred by a tenth it would be 200 deviations out."""
    owners = np.append(np.repeat([0, 2, 3], [100, 3, MOST_ROWS_EACH]), [1] * 65)
    times = np.zeros(100)
    for seed in range(2000):
        shares = Shares(owners, NoiseSource(seed)).of_rows
        counted = shares[:100] > 0
        assert counted.sum() == MOST_ROWS_EACH
        times += counted
    assert set(shares[:100]) == {0.0, 1 / MOST_ROWS_EACH}
    assert shares[100:103].tolist() == [1 / 3] * 3
    assert np.all(shares[103:167] == 1 / MOST_ROWS_EACH)
    assert np.count_nonzero(shares[167:]) == MOST_ROWS_EACH
    spread = np.sum((times - 1280) ** 2) / (2000 * 0.64 * 0.36) * 99 / 100
    assert stats.chi2.ppf(1e-6, 99) < spread < stats.chi2.isf(1e-6, 99)


def test_batches_leave_out_the_rows_that_do_not_count():
    owners = np.append(np.repeat([0, 2], [100, 3]), [1] * 5)
    shares = Shares(owners, NoiseSource(0))
    rows = shares.rows_of(np.array([2, 0]))
    assert len(set(rows)) == len(rows) == 3 + MOST_ROWS_EACH
    assert np.all(shares.of_rows[rows] > 0)
    assert set(owners[rows]) == {0, 2}


def test_no_draw_is_made_where_nobody_has_too_many_rows():
    noise = NoiseSource(0)
    Shares(np.repeat([0, 1], MOST_ROWS_EACH), noise)
    assert noise.uniform(1) == NoiseSource(0).uniform(1)


# -- round-off ----------------------------------------------------------------------------------------------------


def test_round_off_allows_for_everybody_who_may_be_there():
    assert round_off(1000, 2.0, 3000) == pytest.approx(300 * ROUND_OFF * 3 * 2.0)
    assert most_present(1000, Adjacency.REPLACE_ONE) == 1000
    assert most_present(1000, Adjacency.ADD_REMOVE) == 2**33
    moved = gradient_sensitivity(2.0, 1000, Adjacency.ADD_REMOVE)
    assert 2 * round_off(1000, 2.0, 2**33) < 1e-3 * moved  # which a fit pays for


def test_the_round_off_of_a_real_sum_is_within_the_bound():
    """Against the sum in exact arithmetic, for people with 64 rows each."""
    rng = np.random.default_rng(0)
    people, clip = 200, 1.0
    X, owners = rng.uniform(-1, 1, (64 * people, D)), np.tile(np.arange(people), 64)
    y = rng.uniform(-1, 1, len(X))
    problem = LinearProblem(
        people, D, Bounds(feature=1.0, target=(-1.0, 1.0)), sparsity=2, loss=SQUARED, intercept=False, unit="person"
    )
    release = GaussianGradient(1, 0.0)
    vault = Glass(X, y, Plan("t", problem, Budget(math.inf, 1e-6), (release,)), NoiseSource(0), owners=owners)
    answer = vault.gradient(problem.origin(), release, clip)
    limits = clip / np.linalg.norm(X, axis=1)
    terms = np.clip(-y, -limits, limits)[:, None] * X / (64 * people)
    exact = np.array([math.fsum(column) for column in terms.T])
    paid = round_off(people, clip, people) + norm_error(problem.dimension, clip) / people
    assert 0 < np.linalg.norm(answer - exact) <= vault.error == paid


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_wide_row_is_longer_than_its_computed_norm_and_that_is_paid_for(form):
    """Squares below an ulp of the first one vanish, one after the other: 300 u clip would not cover a row alone."""
    d, clip = 200_000, 1.0
    x = np.full((1, d), 1e-8)
    x[0, 0] = 1.0
    problem = LinearProblem(1, d, Bounds(feature=1.0, target=(-9.0, 9.0)), sparsity=2, loss=SQUARED, intercept=False)
    release = GaussianGradient(1, 0.0)
    vault = Glass(form(x), np.array([-9.0]), Plan("t", problem, Budget(math.inf, 1e-6), (release,)), NoiseSource(0))
    longer = math.sqrt(math.fsum(vault.gradient(problem.origin(), release, clip) ** 2)) - clip
    assert round_off(1, clip, 1) < longer <= norm_error(d, clip)


@pytest.mark.parametrize(
    "question", ["gradient", "gram", "residuals", "near maximum", "mean", "step length", "sampled gradient"]
)
def test_hardened_noise_pays_for_the_round_off_of_many_rows(question):
    kind, ask = QUESTIONS[question]
    release = kind(Adjacency.REPLACE_ONE)
    vault = make_vault(others("squared", 0), release, hardened=True)
    ask(vault, release, vault.problem.origin(), 0.5)
    (answer,) = vault.answers
    assert vault.error >= round_off(N, 0.5, N)
    assert answer.scale >= release.multiplier * (answer.sensitivity + 2 * vault.error)


def test_ranks_are_counted_exactly_but_for_their_fractions():
    """Rows of people with one to 64 rows, and some that do not count, against fractions in exact arithmetic."""
    rng = np.random.default_rng(0)
    owners = np.repeat(np.arange(70), np.arange(1, 71))
    shares, places = Shares(owners, NoiseSource(0)), rng.integers(0, 6, len(owners))
    counted = [Fraction(1, round(1 / share)) if share else Fraction(0) for share in shares.of_rows]
    exact = [float(sum(part for part, at in zip(counted, places, strict=True) if at <= level)) for level in range(5)]
    np.testing.assert_allclose(shares.counted(places, 5), exact, rtol=1e-14)


# -- refusals -----------------------------------------------------------------------------------------------------


def test_owners_and_unit_must_agree():
    X, y, owners = others("squared", 0)
    release = GaussianGradient(1, 1.0)
    for unit, given_owners in (("row", owners), ("person", None)):
        problem = LinearProblem(N, D, Bounds(feature=1.0, target=(-1.0, 1.0)), sparsity=2, loss=SQUARED, unit=unit)
        plan = Plan("test", problem, Budget(math.inf, 1e-6), (release,))
        with pytest.raises(ValueError, match="owners must be given where the unit is a person"):
            CentralVault(X, y, plan, NoiseSource(0), owners=given_owners)


def test_objective_perturbation_and_printed_noise_are_refused_when_they_are_planned():
    problem = LinearProblem(N, D, Bounds(feature=1.0, target=(-1.0, 1.0)), sparsity=2, loss=SQUARED, unit="person")
    budget = Budget(math.inf, 1e-6)
    with pytest.raises(ValueError, match="its perturbed minimiser is proved, or printed, for people with one row each"):
        Plan("two-stage", problem, budget, (PerturbedMinimiser(1, 1.0, 0.1, 1000.0),))
    with pytest.raises(ValueError, match="calibration='printed' is proved, or printed, for people with one row each"):
        Plan("dp-ight", problem, budget, (GaussianGradient(1, 1.0),), calibration="printed")


def test_the_shares_go_when_the_vault_closes():
    vault = make_vault(others("squared", 0), GaussianGradient(1, 1.0))
    vault.close()
    assert shares_of(vault) is None


def test_the_normaliser_is_the_public_number_of_people():
    vault = make_vault(others("squared", 0), GaussianGradient(1, 1.0))
    vault.gradient(np.zeros(D), GaussianGradient(1, 1.0), 0.3)
    assert vault.answers[0].sensitivity == gradient_sensitivity(0.3, N, Adjacency.REPLACE_ONE)
