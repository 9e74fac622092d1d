"""Labels for public rows: no private row moves them by more than stated; the teacher behind them is the one named."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats
from sklearn.linear_model import ElasticNet, LogisticRegression, Ridge

from neighbours import SOME_BOUNDS, WILD_ENTRIES, with_row
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Adjacency, Budget, BudgetExceeded
from thresher.privacy.plan import Plan
from thresher.privacy.releases import GaussianLabels, GaussianMinimiser, PrintedLabels
from thresher.vaults import CentralVault
from thresher.vaults.central import minimisers, rows, transfer
from thresher.vaults.central.minimisers import minimise_strongly_convex
from thresher.vaults.central.transfer import spectral_norm
from thresher.vaults.losses import SQUARED, loss_named
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

LOSSES = ["squared", "logistic"]
FORMS = {"dense": np.array, "sparse": sparse.csr_array}
RANGE = (-1.0, 1.0)
N, D = 12, 5


def make_vault(X, y, *releases, loss="squared", bounds=None, adjacency="replace-one", n=None, intercept=False, **noise):
    bounds = bounds or Bounds(feature=1.0, target=RANGE if loss == "squared" else None)
    problem = LinearProblem(n or X.shape[0], X.shape[1], bounds, sparsity=2, loss=loss_named(loss), intercept=intercept)
    plan = Plan("test", problem, Budget(math.inf, 1e-6, adjacency), releases)
    return CentralVault(X, y, plan, NoiseSource(noise.get("seed", 0), hardened=noise.get("hardened", False)))


def some_rows(n=N, loss="squared", seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, (n, D))
    y = X[:, 0] + 0.3 * rng.normal(size=n)
    return X, y if loss == "squared" else (y > 0).astype(float)


def public_rows(m, columns, seed=9):
    return np.random.default_rng(seed).normal(size=(m, columns))


# -- one wild row -----------------------------------------------------------------------------------------------


def movement(first, second, features, columns, *, form="dense", clip=1.0, ridge=0.5, l1=0.0, **facts):
    """How far apart the labels from two data sets are, with the same noise, and the sensitivity they state."""
    release = GaussianLabels(1, 1.0)
    answers, stated = [], []
    for X, y in (first, second):
        vault = make_vault(FORMS[form](X), y, release, n=len(first[0]), **facts)
        answers.append(vault.labels(features, columns, release, clip, ridge, l1))
        stated.append(vault.answers[-1].sensitivity)
    assert stated[0] == stated[1], "a sensitivity that depends on the rows is a leak of its own"
    return float(np.linalg.norm(answers[0] - answers[1])), stated[0]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("adjacency", list(Adjacency))
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_wild_row_moves_no_labels_by_more_than_their_stated_sensitivity(loss, form, adjacency, data):
    X, y = some_rows(loss=loss, seed=data.draw(st.integers(0, 5), "seed"))
    at, intercept = data.draw(st.integers(0, N - 1), "at"), data.draw(st.booleans(), "intercept")
    row = data.draw(st.lists(WILD_ENTRIES, min_size=D, max_size=D) | st.just(-X[at]), "row")
    wild = st.sampled_from([0.0, 0.5, 1e300, -1e300]) if loss == "squared" else st.sampled_from([0.0, 1.0])
    bounds = data.draw(st.sampled_from(SOME_BOUNDS), "bounds")
    columns = np.array(
        data.draw(st.sampled_from([[2], [0, 3], [4, 1, 2], [0, 1, 2, 3, 4]]), "columns") + [D] * intercept
    )
    moved, stated = movement(
        (X, y),
        with_row(X, y, row, data.draw(wild, "target"), adjacency, at),
        public_rows(data.draw(st.sampled_from([1, 3, 20]), "m"), len(columns)),
        columns,
        form=form,
        loss=loss,
        adjacency=adjacency,
        intercept=intercept,
        bounds=Bounds(bounds.feature, bounds.row, RANGE if loss == "squared" else None),
        clip=data.draw(st.sampled_from([1e-3, 0.3, 1.0, 50.0]), "clip"),
        ridge=data.draw(st.sampled_from([1e-2, 0.5, 10.0]), "ridge"),
        l1=data.draw(st.sampled_from([0.0, 0.05, 2.0]), "l1"),
    )
    assert moved <= stated * (1 + 1e-9)


def worst_pair(adjacency, loss="squared"):
    """Rows of zeros, and one row at its bound whose saturated residual changes sign, or that appears."""
    X, y, row = np.zeros((N, D)), np.zeros(N), np.array([1.0, -1, 1, 1, -1])
    if adjacency == "replace-one":
        X[0], y[0] = row, -1.0 if loss == "squared" else 0.0
    return (X, y), with_row(X, y, row, 1.0, adjacency, 0), row


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", FORMS)
def test_the_stated_sensitivity_is_nearly_attained(adjacency, loss, form):
    """So it is not vacuous: public rows along the one that moves, and up to 3 % for the teacher's tolerance."""
    columns = np.array([3, 0])
    first, second, row = worst_pair(adjacency, loss)
    features = np.vstack([row[columns], -3 * row[columns]])
    facts = {"form": form, "loss": loss, "adjacency": adjacency, "clip": 0.1}
    moved, stated = movement(first, second, features, columns, **facts)
    assert 0.97 * stated < moved <= stated


def test_the_wild_row_test_notices_a_clip_that_is_not_enforced(monkeypatch):
    honest = rows.residual_limits
    monkeypatch.setattr(rows, "residual_limits", lambda norms, clip: honest(norms, 2 * clip))
    first, second, row = worst_pair("replace-one")
    moved, stated = movement(first, second, row[None, :2], np.array([0, 1]), clip=0.1)
    assert moved > 1.5 * stated


def test_the_wild_row_test_notices_a_norm_that_is_too_small(monkeypatch):
    monkeypatch.setattr(transfer, "spectral_norm", lambda F: spectral_norm(F) / 1.25)
    first, second, row = worst_pair("replace-one")
    moved, stated = movement(first, second, row[None, :2], np.array([0, 1]), clip=0.1)
    assert moved > 1.2 * stated


@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
def test_the_noise_has_the_stated_scale(hardened):
    """Two-sided chi-square test on 4000 labels, false-alarm rate 1e-6; it rejects scales off by a factor of 1.25."""
    m, release = 4000, GaussianLabels(1, 3.0)
    X, y = some_rows()
    vault = make_vault(X, y, release, hardened=hardened)
    features, columns = np.ones((m, 2)), np.array([1, 4])
    labels = vault.labels(features, columns, release, 0.7, 0.5)
    by_hand = 3.0 * math.sqrt(2 * m) * 2 * 0.7 / (N * 0.5)  # multiplier * norm * contributions * clip / (n ridge)
    assert vault.answers[-1].scale == pytest.approx(by_hand, rel=0.0101)
    statistic = float(np.sum((labels - labels.mean()) ** 2)) / vault.answers[-1].scale ** 2
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], m - 1)
    assert low < statistic < high
    assert not low < statistic * 1.25**2 < high
    assert not low < statistic / 1.25**2 < high


# -- exact values -----------------------------------------------------------------------------------------------


def noiseless(X, y, features, columns, clip=1e6, ridge=0.3, l1=0.0, **facts):
    release = GaussianLabels(1, 0.0)
    return make_vault(X, y, release, **facts).labels(features, np.array(columns), release, clip, ridge, l1)


@pytest.mark.parametrize("form", FORMS)
def test_the_teacher_is_the_ridge_minimiser_on_the_columns(form):
    rng = np.random.default_rng(1)
    X, features = rng.uniform(-1, 1, (200, D)), public_rows(7, 2)
    y = np.clip(X[:, 3] + 0.2 * rng.normal(size=200), -1, 1)
    ridge = Ridge(alpha=200 * 0.3, fit_intercept=False).fit(X[:, [3, 1]], y)
    labels = noiseless(FORMS[form](X), y, FORMS[form](features), [3, 1], clip=20.0)
    np.testing.assert_allclose(labels, features @ ridge.coef_, atol=0.01 * 20 / 200 / 0.3 * 5)


def test_the_teacher_of_classes_is_the_logistic_minimiser_on_the_columns():
    rng = np.random.default_rng(1)
    X, features = rng.uniform(-1, 1, (200, D)), public_rows(7, 2)
    y = (X[:, 3] + 0.2 * rng.normal(size=200) > 0).astype(float)
    model = LogisticRegression(C=1 / (200 * 0.1), fit_intercept=False, tol=1e-10).fit(X[:, [3, 1]], y)
    labels = noiseless(X, y, features, [3, 1], clip=2.0, ridge=0.1, loss="logistic")
    np.testing.assert_allclose(labels, features @ model.coef_[0], atol=0.01 * 2 / 200 / 0.1 * 5)


def test_with_an_l1_term_it_is_the_elastic_net():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (200, D))
    y = np.clip(X[:, 3] + 0.2 * rng.normal(size=200), -1, 1)
    net = ElasticNet(alpha=0.35, l1_ratio=1 / 7, fit_intercept=False, tol=1e-12).fit(X, y)
    theta = noiseless(X, y, np.eye(D), np.arange(D), clip=20.0, ridge=0.3, l1=0.05)
    assert 0 < np.count_nonzero(net.coef_) < D
    assert np.linalg.norm(theta - net.coef_) <= 0.01 * 20 / 200 / 0.3
    np.testing.assert_array_equal(theta == 0, net.coef_ == 0)


def test_columns_are_measured_in_units_of_their_bounds():
    X, y = some_rows()
    features, columns = public_rows(6, 3), [0, 2, D]
    scales, place = np.array([7.0, 1, 0.01, 1, 1]), np.array([7.0, 0.01, 1.0])
    plain = noiseless(X, y, features, columns, clip=0.5, intercept=True, bounds=Bounds((1.0,) * D, None, RANGE))
    other = Bounds(tuple(scales), None, RANGE)
    constant = LinearProblem(N, D, other, sparsity=2, loss=SQUARED).intercept_column / (math.sqrt(D) / 8)
    place[2] = constant
    rescaled = noiseless(X * scales, y, features * place, columns, clip=0.5, intercept=True, bounds=other)
    np.testing.assert_allclose(rescaled, plain, rtol=1e-9)


def test_units_and_row_norms_by_hand():
    problem = LinearProblem(N, D, Bounds((1.0, 2, 4, 8, 16), 3.0, RANGE), sparsity=2, loss=SQUARED)
    np.testing.assert_allclose(problem.units, [1, 2, 3, 3, 3, 2 * problem.intercept_column])
    assert problem.norm_in_units(2) == pytest.approx(math.hypot(math.sqrt(2), 0.5))
    assert (
        LinearProblem(N, D, Bounds(row=3.0, target=RANGE), sparsity=2, loss=SQUARED, intercept=False).norm_in_units(4)
        == 1.0
    )


# -- the spectral norm ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(30, 4), (4, 30), (1, 1), (10, 10)])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [1.0, 1e200, 1e-200])
def test_the_spectral_norm_is_exact_and_rounded_up(shape, form, size):
    F = size * np.random.default_rng(0).normal(size=shape)
    norm = spectral_norm(FORMS[form](F))
    exact = size * np.linalg.svd(F / size, compute_uv=False)[0]
    assert exact * (1 - 1e-15) <= norm <= exact * (1 + 1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(5))
def test_of_a_large_matrix_it_is_a_bound_tight_for_one_sign(form, seed, monkeypatch):
    monkeypatch.setattr(transfer, "EXACT_UP_TO", 3)
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(40, 25)) * (rng.random((40, 25)) < 0.2)
    for signed, slack in ((F, 3.0), (np.abs(F), 1 + 1e-3)):
        exact = np.linalg.svd(signed, compute_uv=False)[0]
        assert exact <= spectral_norm(FORMS[form](signed)) <= slack * exact


def test_public_rows_of_zeros_still_get_a_noisy_answer():
    assert spectral_norm(np.zeros((3, 2))) == 0.0
    X, y = some_rows()
    release = GaussianLabels(1, 1.0)
    vault = make_vault(X, y, release)
    assert np.all(vault.labels(np.zeros((3, 2)), np.array([0, 1]), release, 1.0, 0.5) != 0)


# -- the minimiser with an l1 term ------------------------------------------------------------------------------


def quadratic(d=30, seed=0):
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(60, d)), rng.normal(size=60)
    H = A.T @ A / 60 + 1e-3 * np.eye(d)
    return (lambda theta: (theta @ H @ theta / 2 - b @ A @ theta / 60, H @ theta - A.T @ b / 60)), H


@pytest.mark.parametrize("stopped", [False, True], ids=["quasi-newton", "proximal alone"])
def test_the_least_subgradient_certifies_the_elastic_net(stopped, monkeypatch):
    """Also where the quasi-Newton search gives up at once."""
    if stopped:
        monkeypatch.setattr(minimisers, "_quasi_newton", lambda objective, start, tolerance, l1: start)
    objective, H = quadratic()
    l1 = np.where(np.arange(30) == 7, 0.0, 0.05)
    strength = np.linalg.eigvalsh(H)
    theta = minimise_strongly_convex(objective, np.zeros(30), strength[0], strength[-1], 1e-9, l1)
    gradient = objective(theta)[1]
    at_zero = theta == 0
    assert 3 < np.count_nonzero(at_zero) < 27
    assert np.all(np.abs(gradient[at_zero]) <= l1[at_zero] + 1e-9)
    np.testing.assert_allclose(gradient[~at_zero], -(l1 * np.sign(theta))[~at_zero], atol=1e-9)


# -- the printed teacher ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("intercept", [False, True])
def test_the_printed_teacher_is_the_best_sparse_vector_of_an_easy_problem(form, intercept):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, D))
    y = X[:, [1, 4]] @ [0.5, -0.4] + 0.01 * rng.normal(size=300)
    release = PrintedLabels(1, 0.0)
    features = np.eye(D + intercept)
    theta = make_vault(FORMS[form](X), y, release, intercept=intercept).printed_labels(features, release, 0.2, 2000)
    expected = np.zeros(D + intercept)
    extended = np.column_stack([X[:, [1, 4]], np.full(300, math.sqrt(D) / 8)])[:, : 2 + intercept]
    penalty = 300 * 0.2 * np.diag([1.0, 1.0, 0.0])[: 2 + intercept, : 2 + intercept]
    expected[[1, 4, D][: 2 + intercept]] = np.linalg.solve(extended.T @ extended + penalty, extended.T @ y)
    np.testing.assert_allclose(theta, expected, atol=1e-9)


def test_printed_noise_has_the_given_sd_and_no_sensitivity():
    """Chi-square test as above: false-alarm rate 1e-6, and a scale off by 1.25 is rejected."""
    X, y = some_rows()
    release = PrintedLabels(1, 2.5)
    vault = make_vault(X, y, release)
    labels = vault.printed_labels(np.zeros((4000, D)), release, 0.1, 5)
    statistic = float(labels @ labels) / 2.5**2
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], 4000)
    assert low < statistic < high
    assert not low < statistic * 1.25**2 < high
    assert not low < statistic / 1.25**2 < high
    assert (vault.answers[0].sensitivity, vault.answers[0].scale) == (math.inf, 2.5)


# -- refusals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"features": np.ones((3, 4))}, r"shape \(3, 4\)"),
        ({"features": np.ones(2)}, "shape"),
        ({"features": np.full((3, 2), np.nan)}, "not finite"),
        ({"features": sparse.csr_array(np.full((3, 2), np.inf))}, "not finite"),
        ({"columns": np.array([0, 9])}, "support"),
        ({"ridge": 0.0}, "ridge=0.0"),
        ({"clip": math.inf}, "clip=inf"),
    ],
)
def test_a_question_that_makes_no_sense_costs_nothing(facts, words):
    X, y = some_rows()
    release = GaussianLabels(1, 1.0)
    vault = make_vault(X, y, release)
    sensible = {"features": np.ones((3, 2)), "columns": np.array([0, 1]), "clip": 1.0, "ridge": 0.5}
    with pytest.raises(ValueError, match=words):
        vault.labels(release=release, **{**sensible, **facts})
    vault.labels(release=release, **sensible)
    with pytest.raises(BudgetExceeded):
        vault.labels(release=release, **sensible)


def test_labels_that_are_not_planned_are_refused():
    X, y = some_rows()
    vault = make_vault(X, y, GaussianMinimiser(1, 1.0))
    with pytest.raises(BudgetExceeded, match="not in the plan"):
        vault.labels(np.ones((3, 2)), np.array([0, 1]), GaussianLabels(1, 1.0), 1.0, 0.5)
    with pytest.raises(BudgetExceeded, match="not in the plan"):
        vault.printed_labels(np.ones((3, D)), PrintedLabels(1, 1.0), 0.5, 3)
