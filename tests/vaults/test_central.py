"""The central vault: no row moves an answer by more than stated, the noise is as stated, only planned answers leave."""

import copy
import math
import pickle
import weakref
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats
from sklearn.linear_model import LogisticRegression, Ridge

from inside import engine_of
from neighbours import SOME_BOUNDS, WILD_ENTRIES, WILD_TARGETS, with_row
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Adjacency, Budget, BudgetExceeded
from thresher.privacy.plan import Plan
from thresher.privacy.releases import (
    ExactRelease,
    GaussianGradient,
    GaussianMinimiser,
    GaussianRestrictedGradient,
    L2LaplaceMinimiser,
)
from thresher.privacy.sensitivity import gradient_sensitivity
from thresher.vaults import CentralVault
from thresher.vaults.central import rows
from thresher.vaults.central.minimisers import minimise_strongly_convex
from thresher.vaults.engines.dense import DenseEngine
from thresher.vaults.losses import SQUARED, loss_named
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

QUESTIONS = {
    "gradient": GaussianGradient,
    "restricted gradient": GaussianRestrictedGradient,
    "minimiser": GaussianMinimiser,
}
LOSSES = ["squared", "logistic"]
FORMS = {"dense": np.array, "sparse": sparse.csr_array}
RANGE = (-1.0, 1.0)
SUPPORT = np.array([2, 0])


def make_vault(X, y, *releases, loss="squared", bounds=None, adjacency="replace-one", n=None, intercept=False, **noise):
    bounds = bounds or Bounds(feature=1.0, target=RANGE if loss == "squared" else None)
    problem = LinearProblem(n or X.shape[0], X.shape[1], bounds, sparsity=2, loss=loss_named(loss), intercept=intercept)
    plan = Plan("test", problem, Budget(math.inf, 1e-6, adjacency), releases)
    return CentralVault(X, y, plan, NoiseSource(noise.get("seed", 0), hardened=noise.get("hardened", False)))


def ask(vault, release, clip=1.0, theta=None, ridge=0.5, support=SUPPORT):
    """Put the question that ``release`` pays for."""
    theta = vault.problem.origin() if theta is None else theta
    if release.question.name == "gradient":
        return vault.gradient(theta, release, clip)
    if release.question.name == "restricted gradient":
        return vault.restricted_gradient(theta, support, release, clip)
    return vault.minimiser(release, clip, ridge)


def some_rows(n=12, d=5, loss="squared", seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, (n, d))
    y = X[:, 0] + 0.3 * rng.normal(size=n)
    return X, y if loss == "squared" else (y > 0).astype(float)


# -- one wild row -----------------------------------------------------------------------------------------------


def movement(release, first, second, *, form="dense", clip=1.0, theta=None, ridge=0.5, **facts):
    """How far apart the answers about two data sets are, with the same noise, and the sensitivity they state.

    Noise and sensitivity of a restricted gradient are in units of the columns' bounds.
    """
    answers, stated = [], []
    for X, y in (first, second):
        vault = make_vault(FORMS[form](X), y, release, n=len(first[0]), **facts)
        answers.append(ask(vault, release, clip, theta, ridge))
        stated.append(vault.answers[-1].sensitivity)
    assert stated[0] == stated[1], "a sensitivity that depends on the rows is a leak of its own"
    units = vault.problem.units[SUPPORT] if release.question.name == "restricted gradient" else 1.0
    return float(np.linalg.norm((answers[0] - answers[1]) / units)), stated[0]


def assert_moves_no_further_than_stated(*args, **kwargs):
    moved, stated = movement(*args, **kwargs)
    assert moved <= stated * (1 + 1e-9)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("adjacency", list(Adjacency))
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_wild_row_moves_no_answer_by_more_than_its_stated_sensitivity(question, loss, form, adjacency, data):
    X, y = some_rows(loss=loss, seed=data.draw(st.integers(0, 5), "seed"))
    at, intercept = data.draw(st.integers(0, 11), "at"), data.draw(st.booleans(), "intercept")
    row = data.draw(st.lists(WILD_ENTRIES, min_size=5, max_size=5) | st.just(-X[at]), "row")
    target = data.draw(WILD_TARGETS[loss] | st.just(-y[at] if loss == "squared" else 1 - y[at]), "target")
    bounds = data.draw(st.sampled_from(SOME_BOUNDS), "bounds")
    theta = st.lists(st.sampled_from([0.0, 0.5, -2.0, 100.0, -1e4]), min_size=5 + intercept, max_size=5 + intercept)
    assert_moves_no_further_than_stated(
        QUESTIONS[question](1, 1.0),
        (X, y),
        with_row(X, y, row, target, adjacency, at),
        form=form,
        loss=loss,
        adjacency=adjacency,
        intercept=intercept,
        bounds=Bounds(bounds.feature, bounds.row, RANGE if loss == "squared" else None),
        clip=data.draw(st.sampled_from([1e-3, 0.3, 1.0, 50.0]), "clip"),
        theta=np.array(data.draw(theta, "theta")),
        ridge=data.draw(st.sampled_from([1e-2, 0.5, 10.0]), "ridge"),
    )


def worst_pair(adjacency, loss="squared"):
    """Rows of zeros, and one row at its bound whose saturated residual changes sign, or that appears."""
    X, y, row = np.zeros((12, 5)), np.zeros(12), np.array([1, -1, 1, 1, -1])
    if adjacency == "replace-one":
        X[0], y[0] = row, -1.0 if loss == "squared" else 0.0
    return (X, y), with_row(X, y, row, 1.0, adjacency, 0)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", FORMS)
def test_the_stated_sensitivity_is_nearly_attained(question, adjacency, loss, form):
    """So it is not vacuous. A minimiser's includes what pays for its tolerance: 1 % (replace-one) or 2 %."""
    facts = {"form": form, "loss": loss, "adjacency": adjacency, "clip": 0.1}
    moved, stated = movement(QUESTIONS[question](1, 1.0), *worst_pair(adjacency, loss), **facts)
    assert moved > (0.98 if question == "minimiser" else 0.999) * stated


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_wild_row_test_notices_a_clip_that_is_not_enforced(question, adjacency, monkeypatch):
    honest = rows.residual_limits
    monkeypatch.setattr(rows, "residual_limits", lambda norms, clip: honest(norms, 2 * clip))
    with pytest.raises(AssertionError):
        assert_moves_no_further_than_stated(
            QUESTIONS[question](1, 1.0), *worst_pair(adjacency), adjacency=adjacency, clip=0.1
        )


def test_replacing_a_row_breaks_the_sensitivity_of_adding_one():
    moved, stated = movement(GaussianGradient(1, 1.0), *worst_pair("replace-one"), adjacency="add-remove", clip=0.1)
    assert moved > 1.99 * stated


@pytest.mark.parametrize("form", FORMS)
def test_columns_outside_the_support_do_not_dilute_a_restricted_clip(form):
    """The clip is on the restricted term: a row that is small on the support may use the whole of it."""
    X, y = np.ones((4, 5)), np.zeros(4)
    X[0, SUPPORT], y[0] = 1e-3, 1.0
    release = GaussianRestrictedGradient(1, 0.0)
    answer = ask(make_vault(FORMS[form](X), y, release), release, clip=1e-4)
    np.testing.assert_allclose(answer, -1e-4 / math.sqrt(2) / 4, rtol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("question", ["gradient", "restricted gradient"])
@pytest.mark.parametrize("theta", [[1e308, 1e308, 0.0], [1e308, -1e308, 0.0]], ids=["infinite", "undefined"])
def test_a_margin_that_overflows_moves_no_answer_by_more_than_its_stated_sensitivity(loss, form, question, theta):
    X, y = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]), np.zeros(2)
    bounds = Bounds(feature=5.0, target=RANGE if loss == "squared" else None)
    assert_moves_no_further_than_stated(
        QUESTIONS[question](1, 1.0),
        (X, y),
        with_row(X, y, [5.0, 5.0, 0.0], 1.0, "replace-one", 0),
        form=form,
        loss=loss,
        bounds=bounds,
        theta=np.array(theta),
    )


# -- exact values -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("intercept", [False, True])
def test_without_noise_the_gradient_is_the_mean_of_the_clipped_rows_gradients(loss, form, intercept):
    X, y = some_rows(loss=loss)
    release = GaussianGradient(1, 0.0)
    bounds = Bounds(feature=1.0, target=(-1.0, 0.5) if loss == "squared" else None)
    vault = make_vault(FORMS[form](X), y, release, loss=loss, bounds=bounds, intercept=intercept)
    theta = np.linspace(-1, 1, vault.problem.dimension)
    rows = np.clip(X, -1, 1)
    if intercept:
        rows = np.hstack([rows, np.full((12, 1), vault.problem.intercept_column)])
    margins = rows @ theta
    if loss == "squared":  # an intercept starts from the middle of the public range
        residuals = margins - (np.clip(y, -1.0, 0.5) - (-0.25 if intercept else 0.0))
    else:
        residuals = 1 / (1 + np.exp(-margins)) - y
    terms = residuals[:, None] * rows
    terms *= np.minimum(1, 0.4 / np.linalg.norm(terms, axis=1))[:, None]
    np.testing.assert_allclose(vault.gradient(theta, release, 0.4), terms.mean(axis=0), rtol=1e-12, atol=1e-15)


def test_the_public_row_count_is_the_normaliser():
    X, y = some_rows()
    release = GaussianGradient(1, 0.0)
    own, declared = (ask(make_vault(X, y, release, adjacency="add-remove", n=n), release) for n in (12, 10))
    np.testing.assert_allclose(declared, own * 1.2, rtol=1e-12)


UNREACHED = 5.0  # a clip that no row of unclipped_rows reaches: |residual| <= 2 and ||x|| <= sqrt(5)


def unclipped_rows(loss):
    X, y = some_rows(2000, 5, loss)
    return np.clip(X, -1, 1), np.clip(y, *RANGE)


def certified_distance(vault, clip, ridge):
    """tolerance / ridge, read off the stated sensitivity."""
    exact = gradient_sensitivity(clip, vault.problem.n, vault.plan.budget.adjacency) / ridge
    return (vault.answers[-1].sensitivity - exact) / 2


def true_minimiser(X, y, loss, ridge):
    weight = len(X) * ridge
    if loss == "squared":
        return Ridge(alpha=weight, fit_intercept=False, solver="cholesky").fit(X, y).coef_
    return LogisticRegression(C=1 / weight, fit_intercept=False, tol=1e-12, solver="newton-cg").fit(X, y).coef_[0]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ridge", [1e-3, 1e-2, 1.0])
def test_the_minimiser_is_as_close_to_the_true_one_as_its_sensitivity_says(loss, form, ridge):
    (X, y), release = unclipped_rows(loss), GaussianMinimiser(1, 0.0)
    vault = make_vault(FORMS[form](X), y, release, loss=loss)
    found, best = ask(vault, release, UNREACHED, ridge=ridge), true_minimiser(X, y, loss, ridge)
    assert np.linalg.norm(found - best) <= certified_distance(vault, UNREACHED, ridge) < np.linalg.norm(best) / 10


@pytest.mark.parametrize("loss", LOSSES)
def test_the_minimiser_pays_one_percent_for_its_tolerance(loss):
    X, y = some_rows(200, 5, loss)
    release = GaussianMinimiser(1, 0.0)
    vault = make_vault(X, y, release, loss=loss)
    ask(vault, release, 1.0, ridge=0.1)
    assert vault.answers[-1].sensitivity == pytest.approx(2 * 1.0 / (200 * 0.1), rel=0.0101)


def cripple_lbfgs(monkeypatch):
    monkeypatch.setattr("thresher.vaults.central.minimisers.minimize", lambda fun, start, **_: SimpleNamespace(x=start))


def test_the_certificate_is_reached_on_an_ill_conditioned_quadratic_without_lbfgs(monkeypatch):
    cripple_lbfgs(monkeypatch)
    curvatures, centre = np.geomspace(1e-4, 1.0, 30), np.linspace(-2, 2, 30)

    def quadratic(theta):
        gradient = curvatures * (theta - centre)
        return float(gradient @ (theta - centre)) / 2, gradient

    found = minimise_strongly_convex(quadratic, np.zeros(30), 1e-4, 1.0, 1e-9)
    assert np.linalg.norm(found - centre) <= 1e-9 / 1e-4


@pytest.mark.parametrize("loss", LOSSES)
def test_the_certificate_holds_without_lbfgs(loss, monkeypatch):
    cripple_lbfgs(monkeypatch)
    (X, y), release = unclipped_rows(loss), GaussianMinimiser(1, 0.0)
    vault = make_vault(X, y, release, loss=loss)
    distance = np.linalg.norm(ask(vault, release, UNREACHED, ridge=0.01) - true_minimiser(X, y, loss, 0.01))
    assert distance <= certified_distance(vault, UNREACHED, 0.01)


# -- noise ------------------------------------------------------------------------------------------------------

FALSE_ALARM = 1e-9


def noise_of(release, draws, hardened=False):
    """Released minus exact answers, one row per fresh vault, and the sensitivity stated with them."""
    X, y = some_rows(20, 50)
    exact_release = type(release)(1, 0.0) if release.noise == "gaussian" else GaussianMinimiser(1, 0.0)
    support = np.arange(0, 50, 2)
    exact = ask(make_vault(X, y, exact_release), exact_release, support=support)
    noise = []
    for seed in range(draws):
        vault = make_vault(X, y, release, seed=seed, hardened=hardened)
        noise.append(ask(vault, release, support=support) - exact)
    return np.array(noise), vault.answers[-1].sensitivity


def gaussian_of_sd(noise, sd):
    """Whether the sum of squares fits sd: a chi-square test, two-sided, wrong once in 1e9 if it is right."""
    total = np.sum((noise / sd) ** 2)
    return stats.chi2.ppf(FALSE_ALARM / 2, noise.size) < total < stats.chi2.isf(FALSE_ALARM / 2, noise.size)


def l2_laplace_of_scale(noise, scale):
    """Whether the l2 norms fit: their sum is Gamma distributed; two-sided, wrong once in 1e9 if it is right."""
    total = np.sum(np.linalg.norm(noise, axis=1)) / scale
    return stats.gamma.ppf(FALSE_ALARM / 2, noise.size) < total < stats.gamma.isf(FALSE_ALARM / 2, noise.size)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
def test_gaussian_noise_has_the_stated_sd_and_not_one_a_quarter_off(question, hardened):
    """False alarms: 1e-9 with fresh seeds, none with these. 1250 draws or more put 1.25 twelve sigmas away."""
    noise, sensitivity = noise_of(QUESTIONS[question](1, 3.0), 50, hardened)
    assert gaussian_of_sd(noise, 3.0 * sensitivity)
    assert not gaussian_of_sd(noise, 3.0 * sensitivity * 1.25)
    assert not gaussian_of_sd(noise, 3.0 * sensitivity / 1.25)


def test_l2_laplace_noise_has_the_stated_scale_and_not_one_a_quarter_off():
    """False alarms: 1e-9 with fresh seeds, none with these; 50 norms of 50 coordinates put 1.25 eleven sigmas away."""
    noise, sensitivity = noise_of(L2LaplaceMinimiser(1, epsilon=0.5), 50)
    assert l2_laplace_of_scale(noise, sensitivity / 0.5)
    assert not l2_laplace_of_scale(noise, sensitivity / 0.5 * 1.25)
    assert not l2_laplace_of_scale(noise, sensitivity / 0.5 / 1.25)


def test_independent_laplace_coordinates_would_not_pass_for_l2_laplace_noise():
    """Erratum E-22: they are sqrt(dimension) too small."""
    assert not l2_laplace_of_scale(np.random.default_rng(0).laplace(size=(50, 50)), 1.0)


def test_l2_laplace_noise_has_no_preferred_direction():
    """Each coordinate of the unit direction is symmetric and of variance 1/dimension. False alarms below 1e-6."""
    noise, _ = noise_of(L2LaplaceMinimiser(1, epsilon=0.5), 400)
    direction = noise / np.linalg.norm(noise, axis=1)[:, None] * math.sqrt(50)
    assert np.max(np.abs(direction.mean(axis=0))) * math.sqrt(400) < 6
    assert np.max(np.abs((direction**2).mean(axis=0) - 1)) * math.sqrt(400 / 2) < 7


def test_gaussian_noise_is_independent_between_coordinates_and_answers():
    """400 answers of 20 coordinates; 590 correlations below 6 sigmas: false alarms below 2e-6."""
    X, y = some_rows(10, 20)
    release = GaussianGradient(400, 1.0)
    vault = make_vault(X, y, release)
    noise = np.array([ask(vault, release) for _ in range(400)])
    between_coordinates = np.corrcoef(noise.T) - np.eye(20)
    between_answers = np.corrcoef(noise[1:].T, noise[:-1].T)[:20, 20:]
    assert np.max(np.abs(between_coordinates)) < 6 / math.sqrt(400)
    assert np.max(np.abs(between_answers)) < 6 / math.sqrt(400)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
def test_the_recorded_scale_pays_for_the_recorded_sensitivity(question, hardened):
    X, y = some_rows()
    release = QUESTIONS[question](1, 3.0)
    vault = make_vault(X, y, release, hardened=hardened)
    ask(vault, release)
    (answer,) = vault.answers
    assert 1 - 1e-12 <= answer.scale / (3.0 * answer.sensitivity) <= 1 + 1e-6


def test_hardened_noise_has_the_law_of_plain_noise():
    """Two-sample Kolmogorov-Smirnov, 20000 draws each, at 1e-9; noise 1.25 times as wide is noticed."""
    X, y = some_rows(10, 100)
    release = GaussianGradient(200, 1.0)
    plain, hardened = (
        np.ravel([ask(vault, release) for _ in range(200)])
        for vault in (make_vault(X, y, release, seed=1), make_vault(X, y, release, seed=2, hardened=True))
    )
    exact = np.tile(ask(make_vault(X, y, GaussianGradient(1, 0.0)), GaussianGradient(1, 0.0)), 200)
    assert stats.ks_2samp(plain - exact, hardened - exact).pvalue > 1e-9
    assert stats.ks_2samp(plain - exact, 1.25 * (hardened - exact)).pvalue < 1e-9


def test_a_lower_clip_buys_proportionally_less_noise():
    X, y = some_rows()
    release = GaussianGradient(2, 1.0)
    vault = make_vault(X, y, release)
    ask(vault, release, clip=1.0)
    ask(vault, release, clip=0.25)
    assert vault.answers[0].scale == pytest.approx(4 * vault.answers[1].scale, rel=1e-12)


# -- refusals ---------------------------------------------------------------------------------------------------


@pytest.fixture(params=QUESTIONS)
def planned(request):
    return QUESTIONS[request.param](1, 2.0)


@pytest.fixture
def vault(planned):
    return make_vault(*some_rows(), planned)


@pytest.mark.parametrize(
    "other",
    [
        lambda planned: type(planned)(1, 1.999),
        lambda planned: type(planned)(1, 2.001),
        lambda planned: type(planned)(2, 2.0),
        lambda planned: type(planned)(1, 0.0),
        lambda planned: ExactRelease(1, planned.question),
    ],
    ids=["less noise", "more noise", "other times", "no noise", "exact"],
)
def test_a_release_that_is_not_in_the_plan_is_refused(vault, planned, other):
    with pytest.raises(BudgetExceeded, match="not in the plan"):
        ask(vault, other(planned))
    assert vault.answers == ()


def test_a_release_asked_once_too_often_is_refused(vault, planned):
    ask(vault, planned)
    with pytest.raises(BudgetExceeded, match="used up"):
        ask(vault, planned)
    assert len(vault.answers) == 1


@pytest.mark.parametrize(("paid", "asked"), list(permutations(QUESTIONS, 2)))
def test_a_release_pays_for_no_other_question(paid, asked):
    release = QUESTIONS[paid](1, 2.0)
    vault = make_vault(*some_rows(), release)
    questions = {
        "gradient": lambda: vault.gradient(vault.problem.origin(), release, 1.0),
        "restricted gradient": lambda: vault.restricted_gradient(vault.problem.origin(), SUPPORT, release, 1.0),
        "minimiser": lambda: vault.minimiser(release, 1.0, 0.5),
    }
    with pytest.raises(BudgetExceeded, match="not for a"):
        questions[asked]()
    assert vault.answers == ()


@pytest.mark.parametrize("clip", [0.0, -1.0, math.inf, math.nan])
def test_a_clip_that_bounds_nothing_is_refused_and_costs_nothing(vault, planned, clip):
    with pytest.raises(ValueError, match="clip="):
        ask(vault, planned, clip=clip)
    assert len(ask(vault, planned)) > 0


@pytest.mark.parametrize("entry", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("kind", [GaussianGradient, GaussianRestrictedGradient])
def test_a_point_that_is_not_finite_is_refused_and_costs_nothing(kind, entry):
    release = kind(1, 2.0)
    vault = make_vault(*some_rows(), release)
    with pytest.raises(ValueError, match="not finite"):
        ask(vault, release, theta=np.array([0, 0, entry, 0, 0]))
    assert len(ask(vault, release)) > 0


@pytest.mark.parametrize("ridge", [0.0, -1.0, math.inf, math.nan])
def test_a_ridge_that_gives_no_strong_convexity_is_refused_and_costs_nothing(ridge):
    release = GaussianMinimiser(1, 2.0)
    vault = make_vault(*some_rows(), release)
    with pytest.raises(ValueError, match="ridge="):
        ask(vault, release, ridge=ridge)
    assert len(ask(vault, release)) == 5


def test_a_closed_vault_answers_nothing(vault, planned):
    vault.close()
    with pytest.raises(RuntimeError, match="closed"):
        ask(vault, planned)
    assert vault.answers == ()


@pytest.mark.parametrize("take", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_vault_never_leaves_its_process(vault, take):
    with pytest.raises(TypeError, match="cannot be pickled or copied"):
        take(vault)


def test_nothing_of_the_rows_is_left_in_a_closed_vault(vault):
    with vault:
        rows = weakref.ref(engine_of(vault).X)
    assert rows() is None
    assert all(np.size(value) == 0 for value in vars(vault).values() if isinstance(value, np.ndarray))


def test_a_vault_closes_when_the_algorithm_fails(vault, planned):
    with pytest.raises(KeyError), vault:
        raise KeyError
    with pytest.raises(RuntimeError, match="closed"):
        ask(vault, planned)


@pytest.mark.parametrize("part", ["product", "transposed_product"])
def test_an_answer_is_charged_before_the_rows_are_touched(vault, planned, part, monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(DenseEngine, part, fail)
    with pytest.raises(MemoryError):
        ask(vault, planned)
    monkeypatch.undo()
    with pytest.raises(BudgetExceeded, match="used up"):
        ask(vault, planned)
    assert vault.answers == ()


def test_the_rows_are_copied_so_that_nobody_can_change_them_later():
    X, y = some_rows()
    release = GaussianGradient(1, 0.0)
    before = ask(make_vault(X, y, release), release)
    vault = make_vault(X, y, release)
    X[:], y[:] = 0, 0
    np.testing.assert_array_equal(ask(vault, release), before)


def test_in_hardened_mode_a_removed_row_changes_no_other_rows_margin():
    """Dense BLAS products round the last rows of a block differently; at a huge, cancelling theta that flips signs."""
    rng = np.random.default_rng(0)
    release = GaussianGradient(1, 1.0)
    for _ in range(200):
        n, d = rng.integers(3, 9), rng.integers(3, 40)
        x, theta = rng.uniform(-1, 1, d), rng.normal(size=d)
        theta = 1e18 * (theta - x * (x @ theta) / (x @ x))
        X = np.tile(x, (n, 1))
        X[0] = 0
        problem = LinearProblem(
            int(n), int(d), Bounds(feature=1.0, target=(-1.0, 1.0)), sparsity=1, loss=SQUARED, intercept=False
        )
        plan = Plan("test", problem, Budget(100.0, 1e-6, "add-remove"), (release,))
        answers = [
            CentralVault(rows, np.zeros(len(rows)), plan, NoiseSource(0, hardened=True)).gradient(theta, release, 1.0)
            for rows in (X, X[1:])
        ]
        np.testing.assert_array_equal(*answers)
