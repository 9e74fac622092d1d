"""Choices: no row moves a score by more than stated, the noise is as stated, only planned choices are made."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from neighbours import SOME_BOUNDS, WILD_ENTRIES, WILD_TARGETS, round_off_paid, with_row
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Adjacency, Budget, BudgetExceeded
from thresher.privacy.plan import Answer, Plan
from thresher.privacy.releases import (
    ExactRelease,
    GaussianGradient,
    GumbelQuantile,
    GumbelSelection,
    GumbelStep,
    GumbelVotes,
    LaplaceVertex,
)
from thresher.privacy.sensitivity import gradient_sensitivity
from thresher.vaults import CentralVault
from thresher.vaults.engines.dense import DenseEngine
from thresher.vaults.losses import loss_named
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

LOSSES = ["squared", "logistic"]
FORMS = {"dense": np.array, "sparse": sparse.csr_array}
RANGE = (-1.0, 1.0)
LEVELS = np.array([0.013, 0.31, 0.77, 1.51, 33.3])
LENGTHS = np.array([0.0, 0.1, 1.0, 1e3])
N, D = 12, 5


class Glass(CentralVault):
    """A vault that shows its exact scores."""

    def _release_choice(self, scores, picks, release, clip, sensitivity, error):
        self.scores, self.stated = np.array(scores), sensitivity
        return super()._release_choice(scores, picks, release, clip, sensitivity, error)


def make_vault(X, y, *releases, loss="squared", bounds=None, adjacency="replace-one", n=None, intercept=False, **noise):
    bounds = bounds or Bounds(feature=1.0)
    bounds = Bounds(bounds.feature, bounds.row, RANGE if loss == "squared" else None)
    problem = LinearProblem(n or X.shape[0], X.shape[1], bounds, sparsity=2, loss=loss_named(loss), intercept=intercept)
    plan = Plan("test", problem, Budget(math.inf, 1e-6, adjacency), releases)
    return Glass(X, y, plan, NoiseSource(noise.get("seed", 0), hardened=noise.get("hardened", False)))


QUESTIONS = {
    "selection": lambda vault, release, theta, clip, offset: vault.selection(theta, release, clip, offset),
    "residuals": lambda vault, release, theta, clip, _: vault.quantile("residuals", 0.7, LEVELS, theta, release),
    "norms": lambda vault, release, theta, clip, _: vault.quantile("gradient norms", 0.7, LEVELS, theta, release),
    "restricted norms": lambda vault, release, theta, clip, _: vault.quantile(
        "gradient norms", 0.7, LEVELS, theta, release, np.array([3, 1, vault.problem.dimension - 1])
    ),
    "column": lambda vault, release, theta, clip, _: vault.column_quantile(1, 0.4, LEVELS, release),
    "step length": lambda vault, release, theta, clip, _: vault.step_length(
        theta, np.linspace(1.0, -1.0, vault.problem.dimension), LENGTHS, release, clip
    ),
}


def release_for(question, multiplier=1.0, times=1):
    if question == "step length":
        return GumbelStep(times, multiplier)
    return GumbelSelection(times, multiplier, picks=2) if question == "selection" else GumbelQuantile(times, multiplier)


def some_rows(n=N, d=D, loss="squared", seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, (n, d))
    y = X[:, 0] + 0.3 * rng.normal(size=n)
    return X, y if loss == "squared" else (y > 0).astype(float)


# -- one wild row -------------------------------------------------------------------------------------------------


def movement(question, first, second, *, form="dense", theta=None, clip=1.0, offset=None, **facts):
    """The largest move of a score between two data sets, and the sensitivity stated for both.

    Lengths are only compared with each other: a move that all their scores make is none.
    """
    scores, stated = [], []
    for X, y in (first, second):
        release = release_for(question)
        vault = make_vault(FORMS[form](X), y, release, n=len(first[0]), **facts)
        QUESTIONS[question](vault, release, vault.problem.origin() if theta is None else theta, clip, offset)
        assert vault.answers[-1].sensitivity == vault.stated
        scores.append(vault.scores)
        stated.append(vault.stated)
    assert stated[0] == stated[1], "a sensitivity that depends on the rows is a leak of its own"
    moves = scores[0] - scores[1]
    if question == "step length":
        moves -= (moves.max() + moves.min()) / 2
    return float(np.max(np.abs(moves))), stated[0]


def assert_moves_no_further_than_stated(*args, **kwargs):
    moved, stated = movement(*args, **kwargs)
    assert moved <= stated * (1 + 1e-9)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("adjacency", list(Adjacency))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_wild_row_moves_no_score_by_more_than_its_stated_sensitivity(question, form, adjacency, data):
    loss = data.draw(st.sampled_from(LOSSES), "loss")
    X, y = some_rows(loss=loss, seed=data.draw(st.integers(0, 5), "seed"))
    at, intercept = data.draw(st.integers(0, N - 1), "at"), data.draw(st.booleans(), "intercept")
    row = data.draw(st.lists(WILD_ENTRIES, min_size=D, max_size=D) | st.just(-X[at]), "row")
    target = data.draw(WILD_TARGETS[loss] | st.just(-y[at] if loss == "squared" else 1 - y[at]), "target")
    theta = st.lists(st.sampled_from([0.0, 0.5, -2.0, 100.0, -1e4]), min_size=D + intercept, max_size=D + intercept)
    offset = st.none() | st.lists(st.sampled_from([0.0, 0.3, -2.0, 50.0]), min_size=D, max_size=D).map(np.array)
    assert_moves_no_further_than_stated(
        question,
        (X, y),
        with_row(X, y, row, target, adjacency, at),
        form=form,
        loss=loss,
        adjacency=adjacency,
        intercept=intercept,
        bounds=data.draw(st.sampled_from(SOME_BOUNDS), "bounds"),
        clip=data.draw(st.sampled_from([1e-3, 0.3, 1.0, 50.0]), "clip"),
        theta=np.array(data.draw(theta, "theta")),
        offset=data.draw(offset, "offset"),
    )


def worst_pair(adjacency, loss="squared", column_bounds=1.0):
    """Rows of zeros, and one row at its bounds whose saturated residual changes sign, or that appears."""
    X, y, row = np.zeros((N, D)), np.zeros(N), np.array([1, -1, 1, 1, -1]) * column_bounds
    if adjacency == "replace-one":
        X[0], y[0] = row, -1.0 if loss == "squared" else 0.0
    return (X, y), with_row(X, y, row, 1.0, adjacency, 0)


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("feature", [1.0, (0.1, 1, 2, 5, 0.3)], ids=["one bound", "per column"])
def test_the_sensitivity_of_a_selection_is_nearly_attained_in_every_column(adjacency, loss, form, feature):
    """With an offset the score's sign is public, so both changes add up."""
    facts = {"form": form, "loss": loss, "adjacency": adjacency, "clip": 0.1, "bounds": Bounds(feature=feature)}
    offset = np.full(D, 3.0)
    moved, stated = movement("selection", *worst_pair(adjacency, loss, np.array(feature)), offset=offset, **facts)
    assert moved > 0.999 * stated
    assert stated == gradient_sensitivity(0.1, N, Adjacency(adjacency))


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("question", ["residuals", "norms", "column"])
def test_the_sensitivity_of_a_quantile_is_attained(question, adjacency):
    """All rows are above the lowest level, and one more comes to lie below it."""
    X, y = np.ones((N, D)), np.ones(N)
    moved, stated = movement(question, (X, y), with_row(X, y, np.zeros(D), 0.0, adjacency, 0), adjacency=adjacency)
    assert moved == pytest.approx(stated, rel=1e-12)
    assert stated == 1.0


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_wild_row_test_notices_a_residual_clip_that_is_not_enforced(adjacency, monkeypatch):
    honest = CentralVault._mean_gradient
    loose = lambda self, engine, margins, limits: honest(self, engine, margins, 2 * limits)  # noqa: E731
    monkeypatch.setattr(CentralVault, "_mean_gradient", loose)
    with pytest.raises(AssertionError):
        assert_moves_no_further_than_stated(
            "selection", *worst_pair(adjacency), adjacency=adjacency, clip=0.1, offset=np.full(D, 3.0)
        )


def test_replacing_a_row_breaks_the_sensitivity_of_adding_one():
    facts = {"adjacency": "add-remove", "clip": 0.1, "offset": np.full(D, 3.0)}
    moved, stated = movement("selection", *worst_pair("replace-one"), **facts)
    assert moved > 1.99 * stated


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    "theta", [[1e308, 1e308, 0.0, 0, 0], [1e308, -1e308, 0.0, 0, 0]], ids=["infinite", "undefined"]
)
def test_a_margin_that_overflows_moves_no_score_by_more_than_stated(loss, form, question, theta):
    """Nor does it warn (a warning is an error here): an infinite residual beside a norm of zero is one such case."""
    X, y = np.tile([0.0, 0.0, 1.0, 0.0, 0.0], (3, 1)), np.zeros(3)
    assert_moves_no_further_than_stated(
        question,
        (X, y),
        with_row(X, y, [5.0, 5.0, 0.0, 0.0, 0.0], 1.0, "replace-one", 0),
        form=form,
        loss=loss,
        bounds=Bounds(feature=5.0),
        theta=np.array(theta),
    )


def test_an_infinite_residual_on_columns_of_zeros_does_not_warn():
    X, y, release = np.array([[5.0, 5.0, 0.0, 0.0]]), np.zeros(1), GumbelQuantile(1, 1.0)
    vault = make_vault(X, y, release, bounds=Bounds(feature=5.0))
    vault.quantile("gradient norms", 0.5, LEVELS, np.array([1e308, 1e308, 0, 0]), release, np.array([2, 3]))
    np.testing.assert_array_equal(vault.scores, -0.5)


# -- exact scores -------------------------------------------------------------------------------------------------


def clipped(X, bounds):
    rows = X if bounds.feature is None else np.clip(X, -np.asarray(bounds.feature), bounds.feature)
    if bounds.row is not None:
        rows = rows * np.minimum(1, bounds.row / np.linalg.norm(rows, axis=1))[:, None]
    return rows


def residuals_of(rows, y, theta, loss):
    margins = rows @ theta
    return margins - np.clip(y, *RANGE) if loss == "squared" else 1 / (1 + np.exp(-margins)) - y


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("bounds", SOME_BOUNDS, ids=str)
def test_the_scores_of_a_selection_are_the_offset_minus_the_gradient_in_units_of_the_bounds(
    loss, form, intercept, bounds
):
    X, y = some_rows(loss=loss)
    release = GumbelSelection(1, 0.0, picks=2)
    vault = make_vault(FORMS[form](X), y, release, loss=loss, bounds=bounds, intercept=intercept)
    theta, offset = np.linspace(-1, 1, D + intercept), np.linspace(2, -1, D)
    rows = clipped(X, bounds)
    if intercept:
        rows = np.hstack([rows, np.full((N, 1), vault.problem.intercept_column)])
    terms = np.clip(residuals_of(rows, y, theta, loss), -0.3, 0.3)[:, None] * rows
    limits = np.minimum(math.inf if bounds.feature is None else np.asarray(bounds.feature), bounds.row or math.inf)
    expected = np.abs(offset - terms.mean(axis=0)[:D] / limits)
    chosen = vault.selection(theta, release, 0.3, offset)
    np.testing.assert_allclose(vault.scores, expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(chosen, np.sort(np.argsort(expected)[-2:]))


def rank_scores(values, levels, q, n):
    """Minus the distance of the rank q n from the ranks of the values above the level before and up to this one."""
    upto = (values[:, None] <= levels).sum(axis=0)
    before = np.array([0, *upto[:-1]])
    return -np.array([max(q * n - u, b - q * n, 0.0) for u, b in zip(upto, before, strict=True)])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("hardened", [False, True])
def test_quantiles_count_the_rows_at_or_below_each_level(loss, form, hardened):
    """Without noise the level whose ranks hold q n is chosen."""
    X, y = some_rows(40, loss=loss)
    release = GumbelQuantile(3, 0.0)
    vault = make_vault(FORMS[form](X), y, release, loss=loss, intercept=True, hardened=hardened)
    theta = np.linspace(-1, 1, D + 1)
    rows = np.hstack([np.clip(X, -1, 1), np.full((40, 1), vault.problem.intercept_column)])
    residuals = np.abs(residuals_of(rows, y, theta, loss))
    small = rows.copy()
    small[:, D] = 0.5  # beside a few columns the intercept's constant is half of their bound, 1
    support = np.array([2, 0, D])
    for values, ask in [
        (residuals, lambda: vault.quantile("residuals", 0.7, LEVELS, theta, release)),
        (
            residuals * np.linalg.norm(rows, axis=1),
            lambda: vault.quantile("gradient norms", 0.7, LEVELS, theta, release),
        ),
        (
            residuals * np.linalg.norm(small[:, support], axis=1),
            lambda: vault.quantile("gradient norms", 0.7, LEVELS, theta, release, support),
        ),
    ]:
        level = ask()
        expected = rank_scores(values, LEVELS, 0.7, 40)
        np.testing.assert_allclose(vault.scores, expected, rtol=1e-12, atol=1e-12)
        assert level == LEVELS[np.argmax(expected)]
        assert level == LEVELS[np.searchsorted(LEVELS, np.sort(values)[27])]


@pytest.mark.parametrize("form", FORMS)
def test_column_quantiles_are_of_signed_entries_over_their_bound(form):
    X, y = some_rows(40)
    release = GumbelQuantile(5, 0.0)
    vault = make_vault(FORMS[form](X), y, release, bounds=Bounds(feature=(0.1, 1, 2, 5, 0.3)))
    levels = np.linspace(-1, 1, 21)[1:-1] + 1e-3
    for column, bound in enumerate([0.1, 1, 2, 5, 0.3]):
        vault.column_quantile(column, 0.25, levels, release)
        entries = np.clip(X[:, column] / bound, -1, 1)
        np.testing.assert_allclose(vault.scores, rank_scores(entries, levels, 0.25, 40), atol=1e-12)


@pytest.mark.parametrize("question", ["residuals", "column"])
def test_levels_may_come_in_any_order(question):
    X, y = some_rows(40)
    release = GumbelQuantile(2, 0.0)
    vault = make_vault(X, y, release)
    levels, theta = np.linspace(0, 1, 11), np.zeros(D)
    asks = {
        "residuals": lambda levels: vault.quantile("residuals", 0.3, levels, theta, release),
        "column": lambda levels: vault.column_quantile(0, 0.6, levels, release),
    }
    assert asks[question](levels) == asks[question](np.random.default_rng(0).permutation(levels))


def test_the_public_row_count_is_what_a_quantile_is_a_share_of():
    X, y = some_rows(10)
    release = GumbelQuantile(1, 1.0)
    vault = make_vault(X, y, release, n=12, adjacency="add-remove")
    vault.column_quantile(0, 1.0, np.array([2.0]), release)
    np.testing.assert_array_equal(vault.scores, [-(12 - 10)])


# -- noise --------------------------------------------------------------------------------------------------------

FALSE_ALARM = 1e-6


def plausible(wins, draws, probability):
    return stats.binomtest(int(wins), draws, probability).pvalue > FALSE_ALARM


def odds(advantage, scale):
    return 1 / (1 + math.exp(-advantage / scale))


@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_a_selection_is_the_exponential_mechanism_of_its_plan_and_not_one_a_quarter_off(hardened, adjacency):
    """Two columns, multiplier 3, the exact binomial law at 1e-6; 4000 draws put 1.25 eight sigmas away."""
    draws, release = 4_000, GumbelSelection(4_000, 3.0, picks=1)
    X, y = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]), np.array([1.0, 0, 0, 0])
    vault = make_vault(X, y, release, adjacency=adjacency, hardened=hardened)
    scale = 3.0 * Adjacency(adjacency).contributions * 0.5 / 4
    offset = np.array([-0.125 + 2.4 * scale, 0.0])  # the first column's score is then 2.4 scales, the other's 0
    wins = sum(vault.selection(np.zeros(2), release, 0.5, offset)[0] == 0 for _ in range(draws))
    assert vault.scores[0] - vault.scores[1] == pytest.approx(2.4 * scale)
    assert vault.answers[0].scale == pytest.approx(scale * (1 + round_off_paid(adjacency, hardened)), rel=1e-6)
    assert plausible(wins, draws, odds(2.4, 1.0))
    assert not plausible(wins, draws, odds(2.4, 1.25))
    assert not plausible(wins, draws, odds(2.4, 0.8))


@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
def test_a_quantile_is_the_exponential_mechanism_of_its_plan_and_not_one_a_quarter_off(hardened):
    """12 rows below the upper level and none below the lower, q = 0.6: scores -7.2 and 0, multiplier 3."""
    draws, release = 4_000, GumbelQuantile(4_000, 3.0)
    vault = make_vault(np.zeros((12, 2)), np.full(12, 0.5), release, hardened=hardened)
    levels = np.array([0.3, 0.7])
    high = sum(vault.quantile("residuals", 0.6, levels, np.zeros(2), release) == 0.7 for _ in range(draws))
    np.testing.assert_allclose(vault.scores, [-7.2, 0.0], atol=1e-12)
    assert plausible(high, draws, odds(2.4, 1.0))
    assert not plausible(high, draws, odds(2.4, 1.25))
    assert not plausible(high, draws, odds(2.4, 0.8))


# -- answers and refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_record_holds_release_clip_sensitivity_and_scale(hardened, adjacency):
    releases = GumbelSelection(1, 3.0, picks=2), GumbelQuantile(2, 1.5)
    vault = make_vault(*some_rows(), *releases, adjacency=adjacency, hardened=hardened)
    vault.selection(np.zeros(D), releases[0], 0.25, np.ones(D))
    vault.quantile("residuals", 0.5, LEVELS, np.zeros(D), releases[1])
    vault.column_quantile(0, 0.5, LEVELS, releases[1])
    moves = gradient_sensitivity(0.25, N, Adjacency(adjacency)), 1.0, 1.0
    for answer, release, clip, sensitivity in zip(
        vault.answers, (releases[0], releases[1], releases[1]), (0.25, 1.0, 1.0), moves, strict=True
    ):
        assert answer == Answer(release, clip, sensitivity, answer.scale)
        paid = 1 + round_off_paid(adjacency, hardened, 300 if release is releases[0] else 4)
        assert answer.scale == pytest.approx(paid * release.multiplier * sensitivity, rel=1e-6)


def test_the_noise_of_a_hardened_step_does_not_tell_how_many_rows_there_are():
    """With add-remove neighbours only the declared number is public; scales are in the certificate."""
    scales = set()
    for rows in (N, N + 3):
        release = GumbelStep(1, 3.0)
        vault = make_vault(*some_rows(rows), release, adjacency="add-remove", n=N, hardened=True)
        vault.step_length(np.zeros(D), np.ones(D), LENGTHS, release, 0.7)
        scales.add(vault.answers[0].scale)
    assert len(scales) == 1


def test_hardened_selections_cover_the_round_off_of_a_huge_offset():
    release = GumbelSelection(1, 3.0, picks=1)
    vault = make_vault(*some_rows(), release, hardened=True)
    vault.selection(np.zeros(D), release, 0.25, np.array([1e14, 0, 0, 0, 0]))
    (answer,) = vault.answers
    assert answer.scale >= 3.0 * (answer.sensitivity + 2 * np.spacing(1e14))


@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
@pytest.mark.parametrize("intercept", [False, True])
def test_neither_excluded_columns_nor_the_intercept_are_ever_chosen(hardened, intercept):
    """The excluded ones have by far the largest scores, and all others are needed."""
    release = GumbelSelection(300, 1.0, picks=2)
    vault = make_vault(*some_rows(), release, intercept=intercept, hardened=hardened)
    offset = np.array([0.0, 1e6, -1e6, 0.0, 1e6])
    for _ in range(150):
        chosen = vault.selection(vault.problem.origin(), release, 1.0, offset, np.array([4, 2, 2, 1]))
        np.testing.assert_array_equal(chosen, [0, 3])
    for _ in range(150):
        assert np.all(vault.selection(vault.problem.origin(), release, 1.0) < D)


def test_the_intercept_may_be_named_among_the_excluded():
    release = GumbelSelection(1, 1.0, picks=2)
    vault = make_vault(*some_rows(), release, intercept=True)
    np.testing.assert_array_equal(vault.selection(np.zeros(D + 1), release, 1.0, None, np.array([0, 1, 2, D])), [3, 4])


@pytest.mark.parametrize("clip", [1.0, math.inf])
@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
def test_without_noise_the_clip_may_be_infinite(clip, hardened):
    release = GumbelSelection(1, 0.0, picks=2)
    vault = make_vault(*some_rows(), release, hardened=hardened)
    np.testing.assert_array_equal(vault.selection(np.zeros(D), release, clip, np.array([9.0, 0, -9.0, 0, 0])), [0, 2])
    assert vault.answers[0].scale == 0.0


def refused(vault, ask, error, words):
    """Refused twice with the same words, and the one planned answer is still to be had: nothing was charged."""
    for _ in range(2):
        with pytest.raises(error, match=words):
            ask()
    assert vault.answers == ()


@pytest.mark.parametrize("excluded", [None, [0], [3, 3, 1]])
def test_more_picks_than_columns_are_refused_and_cost_nothing(excluded):
    left = D - len(set(excluded or []))
    release, fitting = GumbelSelection(1, 1.0, picks=left + 1), GumbelSelection(1, 1.0, picks=left)
    vault = make_vault(*some_rows(), release, fitting, intercept=True)
    excluded = None if excluded is None else np.array(excluded)
    ask = lambda release: vault.selection(vault.problem.origin(), release, 1.0, None, excluded)  # noqa: E731
    refused(vault, lambda: ask(release), ValueError, f"picks={left + 1} of only {left} columns")
    assert len(ask(fitting)) == left


@pytest.mark.parametrize("outside", [-1, D, D + 7])
@pytest.mark.parametrize(
    "ask",
    [
        lambda vault, j: vault.selection(np.zeros(D), vault.plan.releases[0], 1.0, None, np.array([0, j])),
        lambda vault, j: vault.quantile(
            "gradient norms", 0.5, LEVELS, np.zeros(D), vault.plan.releases[1], np.array([0, j])
        ),
        lambda vault, j: vault.column_quantile(j, 0.5, LEVELS, vault.plan.releases[1]),
    ],
    ids=["selection", "quantile", "column quantile"],
)
def test_coordinates_outside_the_problem_are_refused_and_cost_nothing(ask, outside):
    vault = make_vault(*some_rows(), release_for("selection"), release_for("residuals"))
    refused(vault, lambda: ask(vault, outside), ValueError, "support=")
    ask(vault, 1)


@pytest.mark.parametrize("clip", [0.0, -1.0, math.inf, math.nan])
def test_a_clip_that_bounds_nothing_is_refused_and_costs_nothing(clip):
    release = release_for("selection")
    vault = make_vault(*some_rows(), release)
    refused(vault, lambda: vault.selection(np.zeros(D), release, clip), ValueError, "clip=")
    vault.selection(np.zeros(D), release, 1.0)


@pytest.mark.parametrize("question", [q for q in QUESTIONS if q != "column"])
@pytest.mark.parametrize(
    "theta", [np.full(D, np.nan), np.full(D, np.inf), np.zeros(D + 1)], ids=["nan", "inf", "shape"]
)
def test_a_point_outside_the_space_is_refused_and_costs_nothing(question, theta):
    release = release_for(question)
    vault = make_vault(*some_rows(), release)
    refused(vault, lambda: QUESTIONS[question](vault, release, theta, 1.0, None), ValueError, "theta|not finite")
    QUESTIONS[question](vault, release, np.zeros(D), 1.0, None)


WRONG = [GumbelVotes(1, 1.0, picks=1), GaussianGradient(1, 1.0), LaplaceVertex(1, 1.0), ExactRelease(1, "gradient")]


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("wrong", [*WRONG, release_for("selection"), release_for("residuals")], ids=str)
def test_a_release_pays_for_no_other_question_and_an_unplanned_one_for_none(question, wrong):
    own = release_for(question)
    vault = make_vault(*some_rows(), own, *([wrong] if wrong != own else []))
    if wrong != own:
        refused(vault, lambda: QUESTIONS[question](vault, wrong, np.zeros(D), 1.0, None), BudgetExceeded, "not for a")
    unplanned = release_for(question, 0.99)
    refused(vault, lambda: QUESTIONS[question](vault, unplanned, np.zeros(D), 1.0, None), BudgetExceeded, "not in the")
    QUESTIONS[question](vault, own, np.zeros(D), 1.0, None)
    with pytest.raises(BudgetExceeded, match="used up"):
        QUESTIONS[question](vault, own, np.zeros(D), 1.0, None)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_choice_is_charged_before_the_rows_are_touched(question, monkeypatch):
    def fail(*_):
        raise MemoryError

    release = release_for(question)
    vault = make_vault(*some_rows(), release)
    monkeypatch.setattr(DenseEngine, "product", fail)
    with pytest.raises(MemoryError):
        QUESTIONS[question](vault, release, np.zeros(D), 1.0, None)
    monkeypatch.undo()
    with pytest.raises(BudgetExceeded, match="used up"):
        QUESTIONS[question](vault, release, np.zeros(D), 1.0, None)
    assert vault.answers == ()


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_closed_vault_chooses_nothing(question):
    release = release_for(question)
    vault = make_vault(*some_rows(), release)
    vault.close()
    refused(vault, lambda: QUESTIONS[question](vault, release, np.zeros(D), 1.0, None), RuntimeError, "closed")
