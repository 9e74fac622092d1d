"""Sample and aggregate: one row moves no count of votes by more than one, and the choice among counts is Gumbel's."""

import math

import numpy as np
import pytest
from scipy import sparse, stats

from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget, BudgetExceeded
from thresher.privacy.plan import Plan
from thresher.privacy.releases import ExactRelease, GumbelSelection, GumbelVotes
from thresher.vaults import CentralVault
from thresher.vaults.central.choices import ballot
from thresher.vaults.losses import loss_named
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

FORMS = {"dense": np.array, "sparse": sparse.csr_array}
N, D, S = 120, 12, 3


def some_rows(loss="squared", seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (N, D)) * (rng.random((N, D)) < 0.6)
    y = X[:, :S] @ [1.0, -1.0, 1.0] + 0.1 * rng.normal(size=N)
    return X, y if loss == "squared" else (y > 0).astype(float)


def make_vault(X, y, *releases, loss="squared", adjacency="replace-one", n=N, intercept=True, seed=0, **facts):
    bounds = facts.get("bounds") or Bounds(feature=1.0, target=(-3.0, 3.0) if loss == "squared" else None)
    problem = LinearProblem(
        n, X.shape[1], bounds, sparsity=facts.get("sparsity", S), loss=loss_named(loss), intercept=intercept
    )
    plan = Plan("test", problem, Budget(math.inf, 1e-6, adjacency), releases)
    return CentralVault(X, y, plan, NoiseSource(seed, hardened=facts.get("hardened", False)))


def counts_of(X, y, blocks, **facts):
    """The votes before any noise, and the vault that took them."""
    release = GumbelVotes(1, 1.0, S)
    vault = make_vault(X, y, release, **facts)
    seen, chosen = [], vault._release_choice
    vault._release_choice = lambda scores, *rest, **more: (seen.append(scores.copy()), chosen(scores, *rest, **more))[1]
    vault.votes(release, blocks)
    return seen[0], vault


# -- one wild row -----------------------------------------------------------------------------------------------

WILD = [(1e300, 1e300), (-1e300, -1e300), (1e-320, 0.0), (0.0, 1e300), (1.0, -3.0)]


def moved(X, y, row, target, adjacency, blocks, **facts):
    before, vault = counts_of(X, y, blocks, adjacency=adjacency, **facts)
    if adjacency == "add-remove":
        X, y = np.vstack([X, np.full(D, row)]), np.append(y, target)
    else:
        X, y = X.copy(), y.copy()
        X[5], y[5] = row, target
    after, _ = counts_of(
        X, y, blocks, adjacency=adjacency, **{**facts, "seed": facts.get("second", facts.get("seed", 0))}
    )
    return np.max(np.abs(after - before)), vault.answers[-1].sensitivity


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("blocks", [1, 6, 30])
def test_with_the_same_blocks_no_row_moves_a_count_by_more_than_one(adjacency, loss, blocks):
    """Neighbours draw the same blocks: numbers for rows one after the other, so an added last row changes no other."""
    ever = 0.0
    for row, target in WILD:
        X, y = some_rows(loss)
        distance, stated = moved(X, y, row, target if loss == "squared" else 1 - y[5], adjacency, blocks, loss=loss)
        assert distance <= stated == 1
        ever = max(ever, distance)
    assert ever == 1 or blocks == 1  # so it is not vacuous; all rows together are not swayed by one


def test_blocks_that_depended_on_the_row_would_move_more():
    """What the test above would say if a row changed the blocks of others: here they are drawn anew."""
    X, y = some_rows()
    assert max(moved(X, y, 1.0, -3.0, "replace-one", 12, second=seed)[0] for seed in range(1, 6)) > 1


# -- the ballots ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("blocks", [1, 6, 500])
def test_dense_and_sparse_rows_give_the_same_votes(loss, intercept, blocks):
    X, y = some_rows(loss)
    dense, scattered = (counts_of(form(X), y, blocks, loss=loss, intercept=intercept)[0] for form in FORMS.values())
    np.testing.assert_array_equal(dense, scattered)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_blocks_vote_for_the_columns_that_matter(loss):
    X, y = some_rows(loss)
    counts, _ = counts_of(X, y, 4, loss=loss)
    assert np.min(counts[:S]) >= 3
    assert np.max(counts[S:]) <= 2
    assert counts.sum() <= 4 * S


def test_a_column_in_other_units_gets_the_same_votes():
    X, y = some_rows()
    scales = np.geomspace(1e-3, 1e3, D)
    bounds = Bounds(feature=tuple(scales), target=(-3.0, 3.0))
    np.testing.assert_array_equal(counts_of(X, y, 6)[0], counts_of(X * scales, y, 6, bounds=bounds)[0])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("most", [1, 2, 12])
def test_a_ballot_names_each_column_once_and_not_more_than_asked_for(form, intercept, most):
    X, y = some_rows()
    named = ballot(FORMS[form](X), np.ones(D), y, most, intercept)
    assert 0 < len(named) <= most
    assert len(set(named)) == len(named)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.empty((0, 4)), np.empty(0)),
        (np.zeros((5, 4)), np.arange(5.0)),
        (np.ones((5, 4)), np.zeros(5)),
    ],
    ids=["no rows", "zero rows", "zero targets"],
)
def test_a_block_with_nothing_to_say_casts_no_vote(form, intercept, X, y):
    assert ballot(FORMS[form](X), np.ones(4), y, 2, intercept).size == 0


@pytest.mark.parametrize("form", FORMS)
def test_with_an_intercept_a_single_row_or_a_constant_target_casts_no_vote(form):
    X = np.random.default_rng(0).uniform(-1, 1, (5, 4))
    assert ballot(FORMS[form](X[:1]), np.ones(4), np.array([0.7]), 2, True).size == 0
    assert ballot(FORMS[form](X), np.ones(4), np.full(5, 0.1), 2, True).size == 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("blocks", [1, 40, 1000])
def test_no_warning_tells_about_the_rows(blocks):
    X, y = some_rows()
    X[:, 1] = X[:, 0] + 1e-9
    counts_of(X, y, blocks)


# -- the choice -------------------------------------------------------------------------------------------------


def fits(hits, runs, chance):
    """Two-sided binomial test, wrong once in 1e6 if the chance is right."""
    return stats.binom.ppf(5e-7, runs, chance) <= hits <= stats.binom.isf(5e-7, runs, chance)


def test_the_choice_is_the_exponential_mechanism_and_not_one_a_quarter_off():
    """One block casts the same ballot for one column every time. False alarms: 1e-6 with fresh seeds."""
    runs, scale = 1000, 0.4
    release = GumbelVotes(runs, scale, 1)
    X, y = some_rows()
    vault = make_vault(X[:30], y[:30], release, n=30, sparsity=1)
    ((favourite,),) = np.nonzero(counts_of(X[:30], y[:30], 1, n=30, sparsity=1)[0])
    hits = sum(vault.votes(release, 1)[0] == favourite for _ in range(runs))

    def chance(scale):
        return 1 / (1 + (D - 1) * math.exp(-1 / scale))

    assert fits(hits, runs, chance(scale))
    assert not fits(hits, runs, chance(scale * 1.25))
    assert not fits(hits, runs, chance(scale / 1.25))
    assert vault.answers[-1].scale == scale


def test_without_noise_the_columns_with_most_votes_win():
    release = GumbelVotes(1, 0.0, S)
    assert make_vault(*some_rows(), release).votes(release, 4).tolist() == [0, 1, 2]


# -- refusals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("blocks", [0, -1, 2.5, True])
def test_a_number_of_blocks_that_makes_no_sense_is_refused_and_costs_nothing(blocks):
    release = GumbelVotes(1, 1.0, S)
    vault = make_vault(*some_rows(), release)
    with pytest.raises(ValueError, match="blocks="):
        vault.votes(release, blocks)
    assert len(vault.votes(release, 5)) == S
    with pytest.raises(BudgetExceeded, match="used up"):
        vault.votes(release, 5)


def test_more_picks_than_columns_are_refused_and_cost_nothing():
    release = GumbelVotes(1, 1.0, D + 1)
    vault = make_vault(*some_rows(), release)
    with pytest.raises(ValueError, match=f"picks={D + 1}"):
        vault.votes(release, 5)
    assert vault.answers == ()


def test_only_the_planned_release_pays():
    vault = make_vault(*some_rows(), GumbelVotes(1, 1.0, S), GumbelSelection(1, 1.0, S))
    for other in (GumbelSelection(1, 1.0, S), GumbelVotes(1, 0.9, S), ExactRelease(1, "votes")):
        with pytest.raises(BudgetExceeded):
            vault.votes(other, 5)
    assert vault.answers == ()
