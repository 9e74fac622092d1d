"""The vault of a search: one row moves a score by its sensitivity at most, and nothing tells of any trial but one."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from neighbours import WILD_ENTRIES, with_row
from thresher.algorithms import DPIGHT, Peeling
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Adjacency, Budget, BudgetExceeded
from thresher.privacy.plan import Plan
from thresher.privacy.releases import GaussianScore, RandomTrials
from thresher.vaults import Candidate, Trials
from thresher.vaults.losses import loss_named
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource
from thresher.vaults.scoring import CLASSES, NUMBERS, Scoring
from thresher.vaults.trials import HeldOut

N, D, SCORED = 60, 4, 20
BOUNDS = Bounds(feature=1.0, target=(-2.0, 2.0))
SCORINGS = {name: Scoring.of_classes(name, 2) for name in CLASSES}
SCORINGS |= {name: Scoring.of_numbers(name, [(-2.0, 2.0)]) for name in NUMBERS}


def some_rows(loss="squared", seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (N, D))
    y = X[:, 0] + 0.1 * rng.normal(size=N)
    return X, y if loss == "squared" else (y > 0).astype(float)


def problem_of(loss="squared", n=N, outputs=1):
    return LinearProblem(
        n, D, BOUNDS if loss == "squared" else Bounds(feature=1.0), sparsity=2, loss=loss_named(loss), outputs=outputs
    )


# -- scores ---------------------------------------------------------------------------------------------------------


def held_out(X, y, release, problem, adjacency="replace-one", hardened=False, seed=0):
    return HeldOut(
        X,
        y,
        Plan("score", problem, Budget(math.inf, 1e-6, adjacency), (release,)),
        NoiseSource(seed, hardened=hardened),
    )


def exact_score(X, y, theta, scoring, problem, adjacency):
    release = GaussianScore(1, 0.0)
    return held_out(X, y, release, problem, adjacency).score(theta, problem, scoring, release)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", SCORINGS)
@settings(max_examples=40, deadline=None)
@given(
    row=st.lists(WILD_ENTRIES, min_size=D, max_size=D), target=st.sampled_from([0.0, 1.0, 1e300, -1e300]),
    theta=st.lists(st.sampled_from([0.0, 1.0, -3.0, 1e200, -1e308]), min_size=D + 1, max_size=D + 1),
)  # fmt: skip
def test_a_wild_row_moves_a_score_by_at_most_its_sensitivity(name, adjacency, row, target, theta):
    loss = "squared" if name in NUMBERS else "logistic"
    target = target if loss == "squared" else float(target > 0)
    X, y = some_rows(loss)
    problem, theta = problem_of(loss), np.array(theta)
    scores = [
        exact_score(*rows, theta, SCORINGS[name], problem, adjacency)
        for rows in ((X, y), with_row(X, y, row, target, adjacency, at=3))
    ]
    assert abs(scores[0] - scores[1]) <= Adjacency(adjacency).contributions / (2 * N) * (1 + 1e-12)


def test_a_row_that_turns_from_best_to_worst_moves_it_by_all_of_that():
    X, y = some_rows("logistic")
    theta = np.array([50.0, 0.0, 0.0, 0.0, 0.0])
    one = exact_score(X, y, theta, SCORINGS["accuracy"], problem_of("logistic"), "replace-one")
    y[7] = 1 - y[7]
    other = exact_score(X, y, theta, SCORINGS["accuracy"], problem_of("logistic"), "replace-one")
    assert abs(one - other) == pytest.approx(1 / N)


@pytest.mark.parametrize("hardened", [False, True])
def test_the_noise_of_a_score_is_as_planned(hardened):
    """1500 draws: the right scale is accepted and others, a quarter off, are rejected at 1e-9."""
    X, y = some_rows()
    release, problem, theta = GaussianScore(1, 4.0), problem_of(), np.zeros(D + 1)
    exact = exact_score(X, y, theta, SCORINGS["neg_mean_squared_error"], problem, "replace-one")
    vaults = [held_out(X, y, release, problem, hardened=hardened, seed=seed) for seed in range(1500)]
    noise = [vault.score(theta, problem, SCORINGS["neg_mean_squared_error"], release) - exact for vault in vaults]
    assert stats.kstest(noise, "norm", args=(0, 4 / N)).pvalue > 1e-6
    spread = np.sum(np.square(noise)) / (4 / N) ** 2
    for factor in (0.8, 1.25):
        assert min(stats.chi2.cdf(spread / factor**2, 1500), stats.chi2.sf(spread / factor**2, 1500)) < 1e-9
    (answer,) = vaults[0].answers
    assert (answer.clip, answer.sensitivity) == (1.0, 1 / N)
    assert answer.scale == pytest.approx(4 / N, rel=1e-6)


def test_a_score_is_given_once_and_by_its_release_only():
    X, y = some_rows()
    vault = held_out(X, y, GaussianScore(1, 4.0), problem_of())
    with pytest.raises(BudgetExceeded, match="not in the plan"):
        vault.score(np.zeros(D + 1), problem_of(), SCORINGS["neg_mean_squared_error"], GaussianScore(1, 2.0))
    vault.score(np.zeros(D + 1), problem_of(), SCORINGS["neg_mean_squared_error"], GaussianScore(1, 4.0))
    with pytest.raises(BudgetExceeded, match="used up"):
        vault.score(np.zeros(D + 1), problem_of(), SCORINGS["neg_mean_squared_error"], GaussianScore(1, 4.0))
    vault.close()
    with pytest.raises(RuntimeError, match="closed"):
        vault.score(np.zeros(D + 1), problem_of(), SCORINGS["neg_mean_squared_error"], GaussianScore(1, 4.0))


# -- trials ---------------------------------------------------------------------------------------------------------


class Broken:
    """An algorithm that warns and fails, telling a secret."""

    def run(self, vault):
        warnings.warn("row 17 is odd", stacklevel=1)
        raise ValueError("row 17 is 3.14")


def pool_of(*algorithms, adjacency="replace-one", rows=N - SCORED):
    budget = Budget(2.0, 1e-6, adjacency)
    return [Candidate(each, each.plan(problem_of(n=rows), budget)) for each in algorithms]


def vault_of(pool, trials=3.0, rows=None, adjacency="replace-one", seed=0, n=N):
    fits = tuple(dict.fromkeys(candidate.plan.releases for candidate in pool))
    release = RandomTrials(1, trials, fits, GaussianScore(1, 5.0), n - SCORED, SCORED)
    plan = Plan("search", problem_of(n=n), Budget(math.inf, 1e-6, adjacency), (release,))
    return Trials(*(rows or some_rows()), plan, NoiseSource(seed)), release


SQUARE = SCORINGS["neg_mean_squared_error"]


@pytest.mark.parametrize("count", [1, 2, 40])
def test_only_the_best_trials_answers_are_recorded_however_many_there_were(count, monkeypatch):
    monkeypatch.setattr(NoiseSource, "trials", lambda self, mean: count)
    pool = pool_of(DPIGHT(iterations=3), Peeling(iterations=2))
    vault, release = vault_of(pool)
    best = vault.best(release, pool, SQUARE)
    assert vault.answers == best.answers
    assert len(vault.answers) == sum(r.times for r in best.candidate.plan.releases) + 1
    assert vault.chosen is best.candidate.plan


def test_the_best_noisy_score_wins(monkeypatch):
    scores = iter([0.3, 0.9, 0.5, 0.9])
    monkeypatch.setattr(NoiseSource, "trials", lambda self, mean: 4)
    monkeypatch.setattr(HeldOut, "score", lambda self, *question: next(scores))
    thetas = []

    class Watched(DPIGHT):
        def run(self, vault):
            thetas.append(super().run(vault))
            return thetas[-1]

    pool = pool_of(Watched(iterations=2))
    vault, release = vault_of(pool)
    best = vault.best(release, pool, SQUARE)
    assert best.score == 0.9
    assert best.theta is thetas[1]


def test_candidates_are_drawn_alike(monkeypatch):
    """Chi-square at 1e-6 on 3000 draws of three candidates; chances of .4, .3, .3 would be rejected at 1e-9."""
    drawn = []

    class Counting(DPIGHT):
        def run(self, vault):
            drawn.append(self.iterations)
            return vault.problem.origin()

    monkeypatch.setattr(NoiseSource, "trials", lambda self, mean: 3000)
    pool = pool_of(*(Counting(iterations=k) for k in (1, 2, 3)))
    vault, release = vault_of(pool)
    vault.best(release, pool, SQUARE)
    counts = np.bincount(drawn)[1:]
    assert stats.chisquare(counts).pvalue > 1e-6
    assert stats.chisquare(counts, [1200, 900, 900]).pvalue < 1e-9


def test_a_search_is_made_once_and_of_priced_candidates_only():
    pool = pool_of(DPIGHT(iterations=3))
    vault, release = vault_of(pool)
    for other in (pool_of(DPIGHT(iterations=4)), pool_of(DPIGHT(iterations=3), rows=30)):
        with pytest.raises(ValueError, match="not priced for this plan"):
            vault.best(release, other, SQUARE)
    vault.best(release, pool, SQUARE)
    with pytest.raises(BudgetExceeded, match="used up"):
        vault.best(release, pool, SQUARE)
    vault.close()
    with pytest.raises(RuntimeError, match="closed"):
        vault.best(release, pool, SQUARE)


def test_a_trial_that_fails_is_the_worst_and_tells_nothing(monkeypatch, recwarn):
    monkeypatch.setattr(NoiseSource, "trials", lambda self, mean: 30)
    (good,) = pool_of(DPIGHT(iterations=3))
    pool = [good, Candidate(Broken(), good.plan)]
    vault, release = vault_of(pool)
    assert vault.best(release, pool, SQUARE).candidate is good
    assert not recwarn.list


def test_if_all_trials_fail_there_is_no_model_and_no_reason(recwarn):
    (good,) = pool_of(DPIGHT(iterations=3))
    vault, release = vault_of([good])
    with pytest.raises(RuntimeError, match="no trial came to a result") as caught:
        vault.best(release, [Candidate(Broken(), good.plan)], SQUARE)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "17" not in str(caught.value)
    assert vault.answers == ()
    assert not recwarn.list


def test_an_interrupt_is_not_swallowed():
    class Interrupted:
        def run(self, vault):
            raise KeyboardInterrupt

    (good,) = pool_of(DPIGHT(iterations=3))
    vault, release = vault_of([good])
    with pytest.raises(KeyboardInterrupt):
        vault.best(release, [Candidate(Interrupted(), good.plan)], SQUARE)
    with pytest.raises(BudgetExceeded):  # it stays paid
        vault.best(release, [good], SQUARE)


# -- who is fitted, who is scored -----------------------------------------------------------------------------------


def parts_of(adjacency, seed, form=np.array):
    X = np.arange(N * D, dtype=float).reshape(N, D)
    pool = pool_of(DPIGHT(iterations=1), adjacency=adjacency)
    vault, release = vault_of(pool, rows=(form(X), X[:, 0]), adjacency=adjacency, seed=seed)
    return vault._parts(release)


@pytest.mark.parametrize("form", [np.array, sparse.csr_array, sparse.csc_array, sparse.coo_array])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_every_row_is_fitted_or_scored_and_none_is_both(adjacency, form):
    (X, y, _), (X_scored, y_scored, _) = parts_of(adjacency, 0, form)
    np.testing.assert_array_equal(np.sort(np.concatenate([y, y_scored])), np.arange(N) * D)
    for rows, targets in ((X, y), (X_scored, y_scored)):
        rows = rows.toarray() if sparse.issparse(rows) else rows
        np.testing.assert_array_equal(rows[:, 0], targets)


def test_sizes_are_public_for_replaced_rows_and_drawn_row_by_row_for_added_ones():
    """400 splits: the count of scored rows is binomial; its spread would be 0 if a fixed number were drawn."""
    assert {len(parts_of("replace-one", seed)[1][1]) for seed in range(20)} == {SCORED}
    sizes = np.array([len(parts_of("add-remove", seed)[1][1]) for seed in range(400)])
    law = stats.binom(N, SCORED / N)
    assert abs(sizes.mean() - law.mean()) < 5 * law.std() / 20
    assert 0.7 < sizes.var() / law.var() < 1.4
