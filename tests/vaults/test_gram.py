"""What a pursuit asks of columns it has chosen: Gram matrices, and quantiles of row norms and of targets."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from neighbours import PER_COLUMN, SOME_BOUNDS, WILD_ENTRIES, with_row
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Adjacency, Budget, BudgetExceeded
from thresher.privacy.plan import Answer, Plan
from thresher.privacy.releases import GaussianGram, GaussianMoments, GumbelQuantile
from thresher.privacy.sensitivity import gradient_sensitivity, gram_sensitivity
from thresher.vaults import CentralVault
from thresher.vaults.central import gradients
from thresher.vaults.engines.dense import DenseEngine
from thresher.vaults.engines.sparse import SparseEngine
from thresher.vaults.losses import SQUARED, loss_named
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

FORMS = {"dense": np.array, "sparse": sparse.csr_array}
LEVELS = np.array([0.013, 0.31, 0.77, 1.51, 33.3])
N, D = 12, 5

WIDENED = {"replace-one": 1e-6, "add-remove": 6e-4}  # by the round-off of n, or of up to 2^33, rows


class Glass(CentralVault):
    """A vault that shows its exact scores."""

    def _release_choice(self, scores, picks, release, clip, sensitivity, error):
        self.scores = np.array(scores)
        return super()._release_choice(scores, picks, release, clip, sensitivity, error)


def make_vault(X, y, *releases, loss="squared", bounds=None, adjacency="replace-one", n=None, intercept=False, **noise):
    bounds = bounds or Bounds(feature=1.0)
    bounds = Bounds(bounds.feature, bounds.row, (-1.0, 1.0) if loss == "squared" else None)
    problem = LinearProblem(n or X.shape[0], X.shape[1], bounds, sparsity=2, loss=loss_named(loss), intercept=intercept)
    plan = Plan("test", problem, Budget(math.inf, 1e-6, adjacency), releases)
    return Glass(X, y, plan, NoiseSource(noise.get("seed", 0), hardened=noise.get("hardened", False)))


def some_rows(n=N, d=D, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, (n, d))
    return X, X[:, 0] + 0.3 * rng.normal(size=n)


def in_units(X, problem):
    """The clipped rows over their columns' bounds, and the intercept's 1/2, by hand."""
    bounds = problem.bounds
    rows = X if bounds.feature is None else np.clip(X, -np.asarray(bounds.feature), bounds.feature)
    if bounds.row is not None:
        rows = rows * np.minimum(1, bounds.row / np.linalg.norm(rows, axis=1))[:, None]
    limits = np.minimum(math.inf if bounds.feature is None else bounds.feature, bounds.row or math.inf)
    return np.hstack([rows / limits, np.full((len(X), 1), 0.5)])


# -- one wild row -------------------------------------------------------------------------------------------------


def movement(first, second, *, form="dense", columns=None, norm=1.0, **facts):
    """The Frobenius distance of the exact Gram matrices of two data sets, and the sensitivity stated for both."""
    answers, stated = [], []
    for X, y in (first, second):
        release = GaussianGram(1, 0.0)
        vault = make_vault(FORMS[form](X), y, release, n=len(first[0]), **facts)
        answers.append(vault.gram(np.arange(D) if columns is None else columns, release, norm))
        stated.append(vault.answers[-1].sensitivity)
    assert stated[0] == stated[1], "a sensitivity that depends on the rows is a leak of its own"
    return float(np.linalg.norm(answers[0] - answers[1])), stated[0]


def assert_moves_no_further_than_stated(*args, **kwargs):
    moved, stated = movement(*args, **kwargs)
    assert moved <= stated * (1 + 1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("adjacency", list(Adjacency))
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_a_wild_row_moves_a_gram_matrix_by_no_more_than_its_stated_sensitivity(form, adjacency, data):
    X, y = some_rows(seed=data.draw(st.integers(0, 5), "seed"))
    at, intercept = data.draw(st.integers(0, N - 1), "at"), data.draw(st.booleans(), "intercept")
    if data.draw(st.booleans(), "zero before"):
        X[at] = 0
    row = data.draw(st.lists(WILD_ENTRIES, min_size=D, max_size=D) | st.just(-X[at]) | st.just([1e9] * D), "row")
    columns = data.draw(st.lists(st.integers(0, D - 1 + intercept), min_size=1, max_size=D, unique=True), "columns")
    assert_moves_no_further_than_stated(
        (X, y),
        with_row(X, y, row, 0.0, adjacency, at),
        form=form,
        adjacency=adjacency,
        intercept=intercept,
        columns=np.array(columns),
        norm=data.draw(st.sampled_from([1e-3, 0.5, 1.0, 100.0]), "norm"),
        bounds=data.draw(st.sampled_from(SOME_BOUNDS), "bounds"),
    )


def worst_pair(adjacency, bounds=1.0):
    """Rows of zeros, and one that turns from one axis to another, or appears along one."""
    X, y, axes = np.zeros((N, D)), np.zeros(N), np.eye(D) * np.broadcast_to(bounds, D)
    if adjacency == "replace-one":
        X[0] = axes[1]
    return (X, y), with_row(X, y, axes[3], 0.0, adjacency, 0)


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bounds", [1.0, PER_COLUMN], ids=["one bound", "per column"])
@pytest.mark.parametrize("norm", [1.0, 0.3])
def test_the_stated_sensitivity_is_attained(adjacency, form, bounds, norm):
    facts = {"form": form, "adjacency": adjacency, "bounds": Bounds(feature=bounds), "norm": norm}
    moved, stated = movement(*worst_pair(adjacency, bounds), **facts)
    assert moved == pytest.approx(stated, rel=1e-9)
    assert stated == pytest.approx({"replace-one": math.sqrt(2), "add-remove": 1}[adjacency] * norm**2 / N, rel=1e-12)


@given(st.integers(0, 10**6), st.sampled_from([1, 2, 3, 10]))
def test_no_two_rows_of_a_ball_are_further_apart_as_matrices_than_the_root_of_two(seed, d):
    x, z = np.random.default_rng(seed).normal(size=(2, d))
    x, z = x / max(1, np.linalg.norm(x)), z / max(1, np.linalg.norm(z))
    moved = np.linalg.norm(np.outer(x, x) - np.outer(z, z))
    assert moved <= gram_sensitivity(1.0, 1, Adjacency.REPLACE_ONE) * (1 + 1e-12)


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize(("form", "engine"), [("dense", DenseEngine), ("sparse", SparseEngine)])
def test_the_wild_row_test_notices_rows_that_are_not_scaled(adjacency, form, engine, monkeypatch):
    honest = engine.gram
    monkeypatch.setattr(engine, "gram", lambda self, factors: honest(self, np.ones_like(factors)))
    with pytest.raises(AssertionError):
        assert_moves_no_further_than_stated(*worst_pair(adjacency), form=form, adjacency=adjacency, norm=0.9)


def test_replacing_a_row_breaks_the_sensitivity_of_adding_one():
    moved, stated = movement(*worst_pair("replace-one"), adjacency="add-remove")
    assert moved > 1.4 * stated


# -- second moments of gradients ------------------------------------------------------------------------------------


def movement_of_gradients(first, second, *, basis=None, norm, adjacency="replace-one", form="dense", **facts):
    answers, stated, theta = [], [], np.linspace(-2.0, 3.0, D + 1)
    for X, y in (first, second):
        release = GaussianGram(1, 0.0)
        vault = make_vault(FORMS[form](X), y, release, n=len(first[0]), adjacency=adjacency, intercept=True, **facts)
        answers.append(vault.gram(np.arange(D + 1), release, norm, basis, theta))
        stated.append(vault.answers[-1].sensitivity)
    assert stated[0] == stated[1]
    return float(np.linalg.norm(answers[0] - answers[1])), stated[0]


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("adjacency", list(Adjacency))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_wild_row_moves_the_moments_of_gradients_by_no_more_than_stated(form, adjacency, loss, data):
    X, y = some_rows(seed=data.draw(st.integers(0, 5), "seed"))
    y = np.sign(y) > 0 if loss == "logistic" else y
    at = data.draw(st.integers(0, N - 1), "at")
    row = data.draw(st.lists(WILD_ENTRIES, min_size=D, max_size=D) | st.just(-X[at]) | st.just([1e9] * D), "row")
    target = data.draw(st.sampled_from([0.0, 1.0] if loss == "logistic" else [0.0, 1e300, -1e300]), "target")
    basis = data.draw(st.sampled_from([None, np.eye(D + 1)[:, :3] + 0.3, 1e6 * np.eye(D + 1)]), "basis")
    moved, stated = movement_of_gradients(
        (X, y.astype(float)),
        with_row(X, y.astype(float), row, target, adjacency, at),
        form=form,
        adjacency=adjacency,
        loss=loss,
        basis=basis,
        norm=data.draw(st.sampled_from([1e-3, 0.5, 100.0]), "norm"),
        bounds=data.draw(st.sampled_from(SOME_BOUNDS), "bounds"),
    )
    assert moved <= stated * (1 + 1e-9)


def test_the_wild_row_test_notices_gradients_that_are_not_clipped(monkeypatch):
    X, y = np.zeros((N, D)), np.zeros(N)
    X[0, 0] = 1.0
    pair = (X, y), with_row(X, y, [-1.0] * D, -1.0, "replace-one", 0)
    moved, stated = movement_of_gradients(*pair, norm=0.1)
    assert moved <= stated
    monkeypatch.setattr(gradients, "clip_residuals", lambda residuals, limits: residuals)
    moved, stated = movement_of_gradients(*pair, norm=0.1)
    assert moved > stated


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("norm", [0.2, 100.0], ids=["clipped", "whole"])
@pytest.mark.parametrize("basis", [None, np.arange(6.0).reshape(3, 2) / 5 - 0.4], ids=["columns", "basis"])
def test_without_noise_they_are_those_of_the_clipped_gradients(form, norm, basis):
    X, y = some_rows()
    theta, support, release = np.linspace(-0.5, 0.4, D + 1), np.array([3, D, 0]), GaussianGram(1, 0.0)
    vault = make_vault(FORMS[form](X), y, release, intercept=True)
    rows = in_units(X, vault.problem)
    residuals = np.clip(X, -1, 1) @ theta[:D] + vault.problem.intercept_column * theta[D] - np.clip(y, -1, 1)
    z = rows[:, support] if basis is None else rows[:, support] @ basis
    each = residuals[:, None] * z
    each *= np.minimum(1, norm / np.linalg.norm(each, axis=1))[:, None]
    np.testing.assert_allclose(
        vault.gram(support, release, norm, basis, theta), each.T @ each / N, rtol=1e-9, atol=1e-14
    )


def test_of_several_outputs_they_are_refused_and_cost_nothing():
    problem = LinearProblem(N, D, Bounds(feature=1.0), sparsity=2, loss=loss_named("multinomial"), outputs=3)
    release = GaussianGram(1, 1.0)
    y = np.eye(3)[np.arange(N) % 3]
    vault = CentralVault(some_rows()[0], y, Plan("test", problem, Budget(math.inf, 1e-6), (release,)), NoiseSource(0))
    with pytest.raises(ValueError, match="one output"):
        vault.gram(np.arange(D), release, 1.0, None, problem.origin())
    vault.gram(np.arange(D), release, 1.0)


# -- exact values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bounds", SOME_BOUNDS, ids=str)
@pytest.mark.parametrize("norm", [0.4, 100.0], ids=["scaled", "whole"])
@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
def test_without_noise_it_is_the_gram_matrix_of_the_rows_in_units(form, bounds, norm, hardened):
    X, y = some_rows()
    release, support = GaussianGram(1, 0.0), np.array([3, D, 0])
    vault = make_vault(FORMS[form](X), y, release, bounds=bounds, intercept=True, hardened=hardened)
    rows = in_units(X, vault.problem)[:, support]
    rows = rows * np.minimum(1, norm / np.linalg.norm(rows, axis=1))[:, None]
    np.testing.assert_allclose(vault.gram(support, release, norm), rows.T @ rows / N, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_zeros_have_a_gram_matrix_of_zeros(form):
    release = GaussianGram(1, 0.0)
    vault = make_vault(FORMS[form](np.zeros((N, D))), np.zeros(N), release)
    np.testing.assert_array_equal(vault.gram(np.arange(D), release, 1.0), np.zeros((D, D)))


def test_the_public_row_count_is_the_normaliser():
    X, y = some_rows(10)
    release = GaussianGram(1, 0.0)
    vault = make_vault(X, y, release, n=12, adjacency="add-remove")
    rows = np.clip(X, -1, 1)
    np.testing.assert_allclose(vault.gram(np.arange(D), release, 100.0), rows.T @ rows / 12, rtol=1e-12)


# -- noise --------------------------------------------------------------------------------------------------------

FALSE_ALARM = 1e-9


def gaussian_of_sd(noise, sd):
    """Whether the sum of squares fits sd: a chi-square test, two-sided, wrong once in 1e9 if it is right."""
    total = np.sum((noise / sd) ** 2)
    return stats.chi2.ppf(FALSE_ALARM / 2, noise.size) < total < stats.chi2.isf(FALSE_ALARM / 2, noise.size)


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
def test_noise_is_isotropic_in_the_frobenius_norm_and_symmetric(hardened, adjacency):
    """On the diagonal the sd is the scale, off it the scale over the root of 2, since an entry stands for two.

    False alarms: 1e-9 with fresh seeds, none with this one; 2000 entries put 1.25 thirteen sigmas away.
    """
    X, y = some_rows()
    exact, release, draws = GaussianGram(1, 0.0), GaussianGram(400, 3.0), 400
    vault = make_vault(X, y, exact, release, hardened=hardened, adjacency=adjacency)
    value = vault.gram(np.arange(D), exact, 0.7)
    noise = np.array([vault.gram(np.arange(D), release, 0.7) for _ in range(draws)]) - value
    np.testing.assert_allclose(noise, noise.transpose(0, 2, 1), atol=1e-12)
    scale = 3.0 * gram_sensitivity(0.49, N, Adjacency(adjacency))
    assert vault.answers[-1].scale == pytest.approx(scale, rel=WIDENED[adjacency])
    diagonal = noise[:, np.arange(D), np.arange(D)]
    above = noise[:, *np.triu_indices(D, 1)]
    for entries, sd in ((diagonal, scale), (above, scale / math.sqrt(2))):
        assert gaussian_of_sd(entries, sd)
        assert not gaussian_of_sd(entries, sd * 1.25)
        assert not gaussian_of_sd(entries, sd / 1.25)
    correlations = np.corrcoef(noise[:, *np.triu_indices(D)].T)[np.triu_indices(D * (D + 1) // 2, 1)]
    assert np.max(np.abs(correlations)) < 0.32  # 105 pairs beyond 6.4 sigmas: once in 1e8


# -- answers and refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
def test_the_record_holds_the_squared_norm_as_its_clip(adjacency, hardened):
    release = GaussianGram(1, 3.0)
    vault = make_vault(*some_rows(), release, adjacency=adjacency, hardened=hardened)
    vault.gram(np.array([1, 2, 4]), release, np.float16(0.5))
    (answer,) = vault.answers
    sensitivity = gram_sensitivity(0.25, N, Adjacency(adjacency))
    assert answer == Answer(release, 0.25, sensitivity, answer.scale)
    assert 1 - 1e-12 <= answer.scale / (3.0 * sensitivity) <= 1 + WIDENED[adjacency]


@pytest.mark.parametrize("norm", [0.0, -0.0, math.inf, math.nan, 1e-60, 1e60])
def test_a_norm_that_bounds_nothing_is_refused_and_costs_nothing(norm):
    release = GaussianGram(1, 1.0)
    vault = make_vault(*some_rows(), release)
    for _ in range(2):
        with pytest.raises(ValueError, match="clip="):
            vault.gram(np.arange(D), release, norm)
    assert vault.gram(np.arange(D), release, 1.0).shape == (D, D)


@pytest.mark.parametrize("outside", [-1, D, D + 7])
def test_columns_outside_the_problem_are_refused_and_cost_nothing(outside):
    release = GaussianGram(1, 1.0)
    vault = make_vault(*some_rows(), release)
    with pytest.raises(ValueError, match="support="):
        vault.gram(np.array([0, outside]), release, 1.0)
    vault.gram(np.array([0, 1]), release, 1.0)


def test_a_release_pays_for_its_own_question_once():
    own, other = GaussianGram(1, 1.0), GaussianMoments(1, 1.0)
    vault = make_vault(*some_rows(), own, other)
    with pytest.raises(BudgetExceeded, match="not for a gram"):
        vault.gram(np.arange(D), other, 1.0)
    with pytest.raises(BudgetExceeded, match="not for a moments"):
        vault.moments(np.arange(D), own)
    vault.gram(np.arange(D), own, 1.0)
    with pytest.raises(BudgetExceeded, match="used up"):
        vault.gram(np.arange(D), own, 1.0)
    assert len(vault.answers) == 1


def test_a_gram_matrix_is_charged_before_the_rows_are_touched(monkeypatch):
    def fail(*_):
        raise MemoryError

    release = GaussianGram(1, 1.0)
    vault = make_vault(*some_rows(), release)
    monkeypatch.setattr(DenseEngine, "gram", fail)
    with pytest.raises(MemoryError):
        vault.gram(np.arange(D), release, 1.0)
    monkeypatch.undo()
    with pytest.raises(BudgetExceeded, match="used up"):
        vault.gram(np.arange(D), release, 1.0)


def test_a_closed_vault_has_no_gram_matrix():
    release = GaussianGram(1, 1.0)
    vault = make_vault(*some_rows(), release)
    vault.close()
    with pytest.raises(RuntimeError, match="closed"):
        vault.gram(np.arange(D), release, 1.0)


def test_a_gram_matrix_costs_less_noise_than_its_rows_would_as_a_gradient():
    assert gram_sensitivity(1.0, N, Adjacency.REPLACE_ONE) < gradient_sensitivity(1.0, N, Adjacency.REPLACE_ONE)
    assert gram_sensitivity(1.0, N, Adjacency.ADD_REMOVE) == gradient_sensitivity(1.0, N, Adjacency.ADD_REMOVE)


# -- quantiles of row norms and targets ---------------------------------------------------------------------------

KINDS = {
    "row norms": ("row norms", None),
    "restricted row norms": ("row norms", np.array([3, 1])),
    "targets": ("targets", None),
}


def score_movement(kind, first, second, *, form="dense", q=0.7, **facts):
    scores = []
    for X, y in (first, second):
        release = GumbelQuantile(1, 1.0)
        vault = make_vault(FORMS[form](X), y, release, n=len(first[0]), **facts)
        of, support = KINDS[kind]
        vault.quantile(of, q, LEVELS, vault.problem.origin(), release, support)
        assert vault.answers[-1].sensitivity == 1.0
        scores.append(vault.scores)
    return float(np.max(np.abs(scores[0] - scores[1])))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("adjacency", list(Adjacency))
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_wild_row_moves_no_rank_by_more_than_one(kind, form, adjacency, data):
    X, y = some_rows(seed=data.draw(st.integers(0, 5), "seed"))
    at = data.draw(st.integers(0, N - 1), "at")
    row = data.draw(st.lists(WILD_ENTRIES, min_size=D, max_size=D), "row")
    target = data.draw(st.sampled_from([0.0, 0.5, 1e300, -1e300]), "target")
    moved = score_movement(
        kind,
        (X, y),
        with_row(X, y, row, target, adjacency, at),
        form=form,
        adjacency=adjacency,
        q=data.draw(st.sampled_from([0.1, 0.5, 0.9]), "q"),
        bounds=data.draw(st.sampled_from(SOME_BOUNDS), "bounds"),
    )
    assert moved <= 1 + 1e-9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_one_row_may_move_a_rank_by_one(kind, adjacency):
    X, y = np.ones((N, D)), np.ones(N)
    moved = score_movement(kind, (X, y), with_row(X, y, np.zeros(D), 0.0, adjacency, 0), adjacency=adjacency)
    assert moved == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_without_noise_the_level_is_the_one_whose_cell_holds_the_quantile(form):
    X, y = some_rows(200)
    release, levels = GumbelQuantile(4, 0.0), np.linspace(-3, 3, 601)
    vault = make_vault(FORMS[form](X), y, release, bounds=Bounds(feature=PER_COLUMN), intercept=True)
    ask = lambda of, support=None: vault.quantile(of, 0.4975, levels, np.zeros(D + 1), release, support)  # noqa: E731
    support = np.array([D, 0, 3])
    restricted = np.linalg.norm(in_units(X, vault.problem)[:, support], axis=1)
    whole = np.hypot(
        np.linalg.norm(np.clip(X, -np.array(PER_COLUMN), PER_COLUMN), axis=1), vault.problem.intercept_column
    )
    for answer, values in ((ask("targets"), np.clip(y, -1, 1)), (ask("row norms", support), restricted),
                           (ask("row norms"), whole)):  # fmt: skip
        assert answer - 0.01 - 1e-9 <= np.sort(values)[99] <= answer + 1e-9


def test_targets_are_centred_on_their_public_range_before_the_quantile():
    X, _ = some_rows()
    problem = LinearProblem(N, D, Bounds(feature=1.0, target=(10.0, 14.0)), sparsity=2, loss=SQUARED)
    release = GumbelQuantile(1, 0.0)
    vault = CentralVault(X, np.full(N, 13.0), Plan("test", problem, Budget(math.inf, 1e-6), (release,)), NoiseSource(0))
    assert vault.quantile("targets", 0.5, np.array([-2.0, 0.0, 1.0, 2.0]), np.zeros(D + 1), release) == 1.0
