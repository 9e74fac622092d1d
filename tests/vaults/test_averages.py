"""Moments and restricted gradients: no row moves them by more than stated, and the noise is as stated."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from neighbours import PER_COLUMN, SOME_BOUNDS, WILD_ENTRIES, round_off_paid, with_row
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Adjacency, Budget, BudgetExceeded
from thresher.privacy.plan import Answer, Plan
from thresher.privacy.releases import GaussianGradient, GaussianMoments, GaussianRestrictedGradient
from thresher.privacy.sensitivity import gradient_sensitivity
from thresher.vaults import CentralVault
from thresher.vaults.engines.dense import DenseEngine
from thresher.vaults.losses import loss_named
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

FORMS = {"dense": np.array, "sparse": sparse.csr_array}
LOSSES = ["squared", "logistic"]
N, D = 12, 5
QUESTIONS = {
    "moments": (GaussianMoments, lambda vault, release, columns, _: vault.moments(columns, release)),
    "restricted gradient": (
        GaussianRestrictedGradient,
        lambda vault, release, columns, theta: vault.restricted_gradient(theta, columns, release, 0.5),
    ),
}


def make_vault(X, y, *releases, loss="squared", bounds=None, adjacency="replace-one", n=None, intercept=False, **noise):
    bounds = bounds or Bounds(feature=1.0)
    bounds = Bounds(bounds.feature, bounds.row, (-1.0, 1.0) if loss == "squared" else None)
    problem = LinearProblem(n or X.shape[0], X.shape[1], bounds, sparsity=2, loss=loss_named(loss), intercept=intercept)
    plan = Plan("test", problem, Budget(math.inf, 1e-6, adjacency), releases)
    return CentralVault(X, y, plan, NoiseSource(noise.get("seed", 0), hardened=noise.get("hardened", False)))


def ask(question, vault, release, columns=None, theta=None):
    columns = np.arange(D) if columns is None else columns
    return QUESTIONS[question][1](vault, release, columns, vault.problem.origin() if theta is None else theta)


def some_rows(n=N, d=D, seed=0, loss="squared"):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, (n, d))
    y = X[:, 0] + 0.3 * rng.normal(size=n)
    return X, y if loss == "squared" else (y > 0).astype(float)


def limits_of(bounds, d=D):
    feature = math.inf if bounds.feature is None else np.asarray(bounds.feature)
    return np.broadcast_to(np.minimum(feature, bounds.row or math.inf), d)


def clipped(X, bounds):
    rows = X if bounds.feature is None else np.clip(X, -np.asarray(bounds.feature), bounds.feature)
    if bounds.row is not None:
        rows = rows * np.minimum(1, bounds.row / np.linalg.norm(rows, axis=1))[:, None]
    return rows


# -- one wild row -------------------------------------------------------------------------------------------------


def movement(question, first, second, *, form="dense", columns=None, theta=None, **facts):
    """How far apart in l2 the exact averages of two data sets are, in the units of the noise, and the sensitivity
    stated for both. (A restricted gradient comes back in its own units.)"""
    answers, stated = [], []
    for X, y in (first, second):
        release = QUESTIONS[question][0](1, 0.0)
        vault = make_vault(FORMS[form](X), y, release, n=len(first[0]), **facts)
        answers.append(ask(question, vault, release, columns, theta))
        stated.append(vault.answers[-1].sensitivity)
    assert stated[0] == stated[1], "a sensitivity that depends on the rows is a leak of its own"
    units = 1.0
    if question == "restricted gradient":
        units = np.append(limits_of(vault.problem.bounds), vault.problem.intercept_column * 2)[columns]
    return float(np.linalg.norm((answers[0] - answers[1]) / units)), stated[0]


def assert_moves_no_further_than_stated(*args, **kwargs):
    moved, stated = movement(*args, **kwargs)
    assert moved <= stated * (1 + 1e-9)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("adjacency", list(Adjacency))
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_a_wild_row_moves_no_average_by_more_than_its_stated_sensitivity(question, form, adjacency, data):
    loss = data.draw(st.sampled_from(LOSSES), "loss")
    X, y = some_rows(seed=data.draw(st.integers(0, 5), "seed"), loss=loss)
    at, intercept = data.draw(st.integers(0, N - 1), "at"), data.draw(st.booleans(), "intercept")
    if data.draw(st.booleans(), "zero before"):
        X[at] = 0
    row = data.draw(st.lists(WILD_ENTRIES, min_size=D, max_size=D) | st.just(-X[at]) | st.just([1e9] * D), "row")
    columns = data.draw(st.lists(st.integers(0, D - 1 + intercept), min_size=1, max_size=D, unique=True), "columns")
    theta = st.lists(st.sampled_from([0.0, 0.5, -2.0, 100.0]), min_size=D + intercept, max_size=D + intercept)
    assert_moves_no_further_than_stated(
        question,
        (X, y),
        with_row(X, y, row, data.draw(st.sampled_from([0.0, 1.0]), "target"), adjacency, at),
        form=form,
        loss=loss,
        adjacency=adjacency,
        intercept=intercept,
        columns=np.array(columns),
        theta=np.array(data.draw(theta, "theta")),
        bounds=data.draw(st.sampled_from(SOME_BOUNDS), "bounds"),
    )


def worst_pair(question, adjacency, bounds=1.0):
    """Rows of zeros, and one that jumps from one end of its range to the other, or appears at an end."""
    X, y, row = np.zeros((N, D)), np.zeros(N), np.broadcast_to(bounds, D)
    if question != "moments" and adjacency == "replace-one":
        X[0], y[0] = -row, 1.0
    return (X, y), with_row(X, y, row, 1.0, adjacency, 0)


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bounds", [1.0, PER_COLUMN], ids=["one bound", "per column"])
def test_the_stated_sensitivity_of_moments_is_attained(adjacency, form, bounds):
    moved, stated = movement(
        "moments",
        *worst_pair("moments", adjacency, bounds),
        form=form,
        adjacency=adjacency,
        bounds=Bounds(feature=bounds),
    )
    assert moved == pytest.approx(stated, rel=1e-9)


def test_a_row_of_zeros_that_appears_moves_the_moments_as_far_as_a_full_one():
    """Its squares minus 1/2 are at the other corner. Uncentred moments would need twice the noise for add-remove."""
    X, y = some_rows()
    moved, stated = movement(
        "moments", (X, y), with_row(X, y, np.zeros(D), 0.0, "add-remove", 0), adjacency="add-remove"
    )
    assert moved == pytest.approx(stated, rel=1e-9)
    assert stated == pytest.approx(math.sqrt(D) / 2 / N, rel=1e-12)


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_wild_row_test_notices_entries_that_are_not_clipped(adjacency, monkeypatch):
    monkeypatch.setattr("thresher.vaults.central.rows.clip_rows", lambda X, bounds: np.array(X))
    with pytest.raises(AssertionError):
        assert_moves_no_further_than_stated("moments", *worst_pair("moments", adjacency, 1.5), adjacency=adjacency)


def test_replacing_a_row_breaks_the_sensitivity_of_adding_one():
    moved, stated = movement("moments", *worst_pair("moments", "replace-one"), adjacency="add-remove")
    assert moved > 1.99 * stated


# -- exact values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bounds", SOME_BOUNDS, ids=str)
@pytest.mark.parametrize("hardened", [False, True])
def test_without_noise_moments_are_those_of_the_clipped_rows_in_units_of_their_bounds(form, bounds, hardened):
    X, y = some_rows()
    moments = GaussianMoments(1, 0.0)
    vault = make_vault(FORMS[form](X), y, moments, bounds=bounds, intercept=True, hardened=hardened)
    rows = clipped(X, bounds) / limits_of(bounds)
    columns = np.array([3, 0, D])
    expected = (np.hstack([rows, np.ones((N, 1))]) ** 2).mean(axis=0)[columns]
    np.testing.assert_allclose(vault.moments(columns, moments), expected, rtol=1e-12)


def test_the_public_row_count_is_the_normaliser():
    X, y = some_rows(10)
    moments = GaussianMoments(1, 0.0)
    vault = make_vault(X, y, moments, n=12, adjacency="add-remove")
    rows = np.clip(X, -1, 1)
    # a row that is not there counts as one whose squares are 1/2
    expected = ((rows**2).sum(axis=0) + 2 * 0.5) / 12
    np.testing.assert_allclose(vault.moments(np.arange(D), moments), expected, rtol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bounds", SOME_BOUNDS, ids=str)
@pytest.mark.parametrize("support", [[D], [2, D, 0], [4, 1]], ids=str)
def test_a_restricted_gradient_that_is_not_clipped_is_the_gradient_in_its_own_units(loss, form, bounds, support):
    """Whatever the columns, and the intercept's constant, are divided by inside."""
    X, y = some_rows(loss=loss)
    release = GaussianRestrictedGradient(1, 0.0)
    vault = make_vault(FORMS[form](X), y, release, loss=loss, bounds=bounds, intercept=True)
    theta = np.linspace(-1, 1, D + 1)
    rows = np.hstack([clipped(X, bounds), np.full((N, 1), vault.problem.intercept_column)])
    margins = rows @ theta
    residuals = margins - np.clip(y, -1, 1) if loss == "squared" else 1 / (1 + np.exp(-margins)) - y
    expected = (residuals[:, None] * rows).mean(axis=0)[support]
    answer = vault.restricted_gradient(theta, np.array(support), release, 1e6)
    np.testing.assert_allclose(answer, expected, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("form", FORMS)
def test_a_restricted_gradient_is_clipped_in_units_of_the_bounds(form):
    """One row at all its bounds, residual -1: (1, 1, 1/2) in those units, norm 1.5, so a clip of 0.15 takes a tenth."""
    X, y = np.array([PER_COLUMN]), np.ones(1)
    release = GaussianRestrictedGradient(1, 0.0)
    vault = make_vault(FORMS[form](X), y, release, bounds=Bounds(feature=PER_COLUMN), intercept=True)
    answer = vault.restricted_gradient(np.zeros(D + 1), np.array([0, 3, D]), release, 0.15)
    np.testing.assert_allclose(answer, -0.1 * np.array([0.1, 5.0, vault.problem.intercept_column]), rtol=1e-12)


# -- noise --------------------------------------------------------------------------------------------------------

FALSE_ALARM = 1e-9


def gaussian_of_sd(noise, sd):
    """Whether the sum of squares fits sd: a chi-square test, two-sided, wrong once in 1e9 if it is right."""
    total = np.sum((noise / sd) ** 2)
    return stats.chi2.ppf(FALSE_ALARM / 2, noise.size) < total < stats.chi2.isf(FALSE_ALARM / 2, noise.size)


def noise_of(question, draws, multiplier=3.0, columns=None, **facts):
    X, y = some_rows()
    kind = QUESTIONS[question][0]
    exact, release = kind(1, 0.0), kind(draws, multiplier)
    vault = make_vault(X, y, exact, release, **facts)
    value = ask(question, vault, exact, columns)
    return np.array([ask(question, vault, release, columns) for _ in range(draws)]) - value, vault


@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
def test_noise_has_the_stated_sd_and_not_one_a_quarter_off(hardened):
    """False alarms: 1e-9 with fresh seeds, none with this one; 1500 draws put 1.25 twelve sigmas away."""
    noise, vault = noise_of("moments", 300, hardened=hardened)
    sd = 3.0 * gradient_sensitivity(math.sqrt(D) / 2, N, Adjacency.REPLACE_ONE)
    assert vault.answers[-1].scale == pytest.approx(sd, rel=1e-6)
    assert gaussian_of_sd(noise, sd)
    assert not gaussian_of_sd(noise, sd * 1.25)
    assert not gaussian_of_sd(noise, sd / 1.25)


@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
@pytest.mark.parametrize("bounds", [Bounds(feature=1.0), Bounds(row=2.0), Bounds(feature=PER_COLUMN)], ids=str)
def test_each_coordinate_of_a_restricted_gradient_has_the_scale_times_its_unit_as_sd(hardened, bounds):
    """The unit is the column's bound, and twice the intercept's constant; 1500 draws each, false alarms 1e-9."""
    columns = np.array([3, 0, D])
    noise, vault = noise_of("restricted gradient", 1500, 3.0, columns, bounds=bounds, intercept=True, hardened=hardened)
    scale = 3.0 * gradient_sensitivity(0.5, N, Adjacency.REPLACE_ONE)
    assert vault.answers[-1].scale == pytest.approx(scale, rel=1e-6)
    limits = limits_of(bounds)
    for k, unit in enumerate([limits[3], limits[0], 2 * vault.problem.intercept_column]):
        assert gaussian_of_sd(noise[:, k], scale * unit)
        assert not gaussian_of_sd(noise[:, k], scale * unit * 1.25)
        assert not gaussian_of_sd(noise[:, k], scale * unit / 1.25)


# -- answers and refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
def test_the_record_holds_release_clip_sensitivity_and_scale(adjacency, hardened):
    moments, clip = GaussianMoments(1, 3.0), math.sqrt(3) / 2
    vault = make_vault(*some_rows(), moments, adjacency=adjacency, hardened=hardened)
    vault.moments(np.array([1, 2, 4]), moments)
    (answer,) = vault.answers
    sensitivity = gradient_sensitivity(clip, N, Adjacency(adjacency))
    assert answer == Answer(moments, clip, sensitivity, answer.scale)
    paid = 1 + round_off_paid(adjacency, hardened, 3 * 300)
    assert answer.scale == pytest.approx(moments.multiplier * sensitivity * paid, rel=1e-6)


@pytest.mark.parametrize("question", ["moments", "restricted gradient"])
@pytest.mark.parametrize("outside", [-1, D, D + 7])
def test_columns_outside_the_problem_are_refused_and_cost_nothing(question, outside):
    release = QUESTIONS[question][0](1, 1.0)
    vault = make_vault(*some_rows(), release)
    for _ in range(2):
        with pytest.raises(ValueError, match="support="):
            ask(question, vault, release, np.array([0, outside]))
    assert len(ask(question, vault, release)) == D


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_release_pays_for_its_own_question_once(question):
    own, other = QUESTIONS[question][0](1, 1.0), GaussianGradient(1, 1.0)
    vault = make_vault(*some_rows(), own, other)
    with pytest.raises(BudgetExceeded, match="not for a"):
        ask(question, vault, other)
    with pytest.raises(BudgetExceeded, match="not in the plan"):
        ask(question, vault, QUESTIONS[question][0](1, 0.99))
    ask(question, vault, own)
    with pytest.raises(BudgetExceeded, match="used up"):
        ask(question, vault, own)
    assert len(vault.answers) == 1


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_average_is_charged_before_the_rows_are_touched(question, monkeypatch):
    def fail(*_):
        raise MemoryError

    release = QUESTIONS[question][0](1, 1.0)
    vault = make_vault(*some_rows(), release)
    for part in ("product", "transposed_product", "mean_squares"):
        monkeypatch.setattr(DenseEngine, part, fail)
    with pytest.raises(MemoryError):
        ask(question, vault, release)
    monkeypatch.undo()
    with pytest.raises(BudgetExceeded, match="used up"):
        ask(question, vault, release)
    assert vault.answers == ()
