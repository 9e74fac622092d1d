"""Means, and gradients and Gram matrices of rows in a public basis: exact values, sensitivities, noise, refusals."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from neighbours import SOME_BOUNDS, WILD_ENTRIES, with_row
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Adjacency, Budget, BudgetExceeded
from thresher.privacy.plan import Answer, Plan
from thresher.privacy.releases import GaussianGram, GaussianMean, GaussianMoments, GaussianRestrictedGradient
from thresher.privacy.sensitivity import gradient_sensitivity, gram_sensitivity
from thresher.vaults import CentralVault
from thresher.vaults.engines.dense import DenseEngine
from thresher.vaults.losses import loss_named
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

FORMS = {"dense": np.array, "sparse": sparse.csr_array}
N, D = 12, 5
WIDENED = {"replace-one": 1e-6, "add-remove": 6e-4}  # by the round-off of n, or of up to 2^33, rows


def make_vault(X, y, *releases, loss="squared", bounds=None, adjacency="replace-one", n=None, intercept=False, **noise):
    bounds = bounds or Bounds(feature=1.0)
    problem = LinearProblem(
        n or X.shape[0], X.shape[1], Bounds(bounds.feature, bounds.row, (-1.0, 1.0) if loss == "squared" else None),
        sparsity=2, loss=loss_named(loss), intercept=intercept, outputs=3 if loss == "multinomial" else 1,
    )  # fmt: skip
    if loss == "multinomial":
        y = np.equal.outer(np.clip(y, -1, 1).round() + 1, np.arange(3)).astype(float)
    elif loss == "logistic":
        y = (y > 0).astype(float)
    plan = Plan("test", problem, Budget(math.inf, 1e-6, adjacency), releases)
    return CentralVault(X, y, plan, NoiseSource(noise.get("seed", 0), hardened=noise.get("hardened", False)))


def some_rows(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, (n, D))
    return X, X[:, 0] + 0.3 * rng.normal(size=n)


QUESTIONS = {
    "mean": (GaussianMean, lambda v, r, theta, support, basis, clip: v.mean(support, r, clip)),
    "gradient": (
        GaussianRestrictedGradient,
        lambda v, r, theta, support, basis, clip: v.restricted_gradient(theta, support, r, clip, basis),
    ),
    "gram": (GaussianGram, lambda v, r, theta, support, basis, clip: v.gram(support, r, clip, basis)),
}
SUPPORT, BASIS = np.array([3, 1, 4]), np.array([[1.0, 2.0], [0.5, -1.0], [0.0, 3.0]])


# -- one wild row -------------------------------------------------------------------------------------------------


def movement(question, first, second, *, form="dense", support=SUPPORT, basis=BASIS, clip=1.0, theta=None, **facts):
    """The distance of the exact answers of two data sets, in l2 or Frobenius norm, and the sensitivity of both."""
    answers, stated = [], []
    for X, y in (first, second):
        kind, ask = QUESTIONS[question]
        release = kind(1, 0.0)
        vault = make_vault(FORMS[form](X), y, release, n=len(first[0]), **facts)
        answer = ask(vault, release, vault.problem.origin() if theta is None else theta, support, basis, clip)
        if question == "gradient" and basis is None:
            answer = (answer.T / vault.problem.units[support]).T  # in which the sensitivity is stated
        answers.append(answer)
        stated.append(vault.answers[-1].sensitivity)
    assert stated[0] == stated[1], "a sensitivity that depends on the rows is a leak of its own"
    return float(np.linalg.norm(answers[0] - answers[1])), stated[0]


def assert_moves_no_further_than_stated(*args, **kwargs):
    moved, stated = movement(*args, **kwargs)
    assert moved <= stated * (1 + 1e-9)


BASIS_ENTRIES = st.sampled_from([0.0, 1.0, -1.0, 0.3, 1e6, 1e-6, 1e100, -1e100, 1e-300])


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("adjacency", list(Adjacency))
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_a_wild_row_moves_an_answer_by_no_more_than_its_stated_sensitivity(question, form, adjacency, data):
    """Whatever the basis is: rows that are nearly 1e100 long in it, or of zeros, are clipped as they are."""
    loss = data.draw(st.sampled_from(["squared", "logistic", "multinomial"]), "loss")
    X, y = some_rows(seed=data.draw(st.integers(0, 5), "seed"))
    at, intercept = data.draw(st.integers(0, N - 1), "at"), data.draw(st.booleans(), "intercept")
    if data.draw(st.booleans(), "zero before"):
        X[at] = 0
    row = data.draw(st.lists(WILD_ENTRIES, min_size=D, max_size=D) | st.just(-X[at]) | st.just([1e9] * D), "row")
    support = data.draw(st.lists(st.integers(0, D - 1 + intercept), min_size=1, max_size=D, unique=True), "support")
    columns = data.draw(st.integers(1, len(support)), "columns of the basis")
    entries = st.lists(BASIS_ENTRIES, min_size=len(support) * columns, max_size=len(support) * columns)
    size = (D + intercept) * (3 if loss == "multinomial" else 1)
    theta = st.lists(st.sampled_from([0.0, 0.5, -2.0, 100.0, -1e4]), min_size=size, max_size=size)
    basis = None
    if question != "mean" and data.draw(st.booleans(), "in a basis"):
        basis = np.reshape(data.draw(entries, "basis"), (len(support), columns))
    target = data.draw(st.sampled_from([0.0, 1e300, -1e300]), "target")
    assert_moves_no_further_than_stated(
        question, (X, y), with_row(X, y, row, target, adjacency, at),
        form=form, loss=loss, adjacency=adjacency, intercept=intercept, support=np.array(support), basis=basis,
        clip=data.draw(st.sampled_from([1e-3, 0.5, 1.0, 100.0]), "clip"), theta=np.array(data.draw(theta, "theta")),
        bounds=data.draw(st.sampled_from(SOME_BOUNDS), "bounds"),
    )  # fmt: skip


def worst_pair(question, adjacency):
    """Rows of zeros, and one at its bounds that turns around, or (Gram matrices) onto another axis, or appears."""
    X, y, row = np.zeros((N, D)), np.zeros(N), np.ones(D)
    other, target = (-row, 1.0) if question == "mean" else (row, -1.0)
    if question == "gram":
        row, other = np.eye(D)[[0, 1]]
    if adjacency == "replace-one":
        X[0], y[0] = other, target
    return (X, y), with_row(X, y, row, 1.0, adjacency, 0)


ROTATED = np.array([[2.0, 1.0], [1.0, -2.0]])  # orthogonal rows stay orthogonal, and become longer


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("clip", [1.0, 0.3])
def test_the_stated_sensitivity_is_attained(question, form, adjacency, clip):
    facts = {"form": form, "adjacency": adjacency, "clip": clip, "support": np.array([0, 1]), "basis": ROTATED}
    moved, stated = movement(question, *worst_pair(question, adjacency), **facts)
    assert moved == pytest.approx(stated, rel=1e-9)
    term, together = (clip**2, math.sqrt(2)) if question == "gram" else (clip, 2)
    assert stated == pytest.approx(term * (together if adjacency == "replace-one" else 1) / N, rel=1e-12)


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("question", ["gradient", "gram"])
def test_the_wild_row_test_notices_rows_that_are_clipped_before_they_are_projected(question, adjacency, monkeypatch):
    honest = CentralVault._restricted
    early = lambda self, engine, support, basis=None: honest(self, engine, support, basis)._replace(  # noqa: E731
        norms=honest(self, engine, support).norms
    )
    monkeypatch.setattr(CentralVault, "_restricted", early)
    with pytest.raises(AssertionError):
        assert_moves_no_further_than_stated(
            question, *worst_pair(question, adjacency), adjacency=adjacency, clip=0.3, support=np.array([0, 1]),
            basis=ROTATED,
        )  # fmt: skip


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_wild_row_test_notices_a_mean_of_rows_that_are_not_scaled(adjacency, monkeypatch):
    monkeypatch.setattr(CentralVault, "_limits_of", lambda self, norms, clip: np.full_like(norms, np.inf))
    with pytest.raises(AssertionError):
        assert_moves_no_further_than_stated("mean", *worst_pair("mean", adjacency), adjacency=adjacency)


def test_outputs_that_are_clipped_one_by_one_would_move_further(monkeypatch):
    """A row's residuals of three classes, each within its limit, are together longer."""
    pair, facts = worst_pair("gradient", "replace-one"), {"loss": "multinomial", "clip": 0.1}
    moved, stated = movement("gradient", *pair, **facts)
    assert 0.8 * stated < moved <= stated * (1 + 1e-9)
    one_by_one = lambda residuals, limits: np.clip(residuals, -limits[:, None], limits[:, None])  # noqa: E731
    monkeypatch.setattr("thresher.vaults.central.rows.clip_residuals", one_by_one)
    assert movement("gradient", *pair, **facts)[0] > 1.2 * stated


# -- exact values -------------------------------------------------------------------------------------------------


def in_units(X, bounds):
    """The clipped rows over their columns' bounds, and the intercept's 1/2, by hand."""
    rows = X if bounds.feature is None else np.clip(X, -np.asarray(bounds.feature), bounds.feature)
    if bounds.row is not None:
        rows = rows * np.minimum(1, bounds.row / np.linalg.norm(rows, axis=1))[:, None]
    limits = np.minimum(math.inf if bounds.feature is None else bounds.feature, bounds.row or math.inf)
    return np.hstack([rows / limits, np.full((len(X), 1), 0.5)])


def scaled(rows, norm):
    return rows * np.minimum(1, norm / np.linalg.norm(rows, axis=1))[:, None]


WITH_INTERCEPT = np.array([3, D, 0])
either_noise = pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
each_form = pytest.mark.parametrize("form", FORMS)
some_bounds = pytest.mark.parametrize("bounds", SOME_BOUNDS, ids=str)


@each_form
@some_bounds
@either_noise
@pytest.mark.parametrize("clip", [0.4, 100.0], ids=["scaled", "whole"])
def test_without_noise_a_mean_is_that_of_the_rows_in_units(form, bounds, clip, hardened):
    X, y = some_rows()
    release = GaussianMean(1, 0.0)
    vault = make_vault(FORMS[form](X), y, release, bounds=bounds, intercept=True, hardened=hardened)
    expected = scaled(in_units(X, bounds)[:, WITH_INTERCEPT], clip).mean(axis=0)
    np.testing.assert_allclose(vault.mean(WITH_INTERCEPT, release, clip), expected, rtol=1e-11, atol=1e-15)


@each_form
@some_bounds
@either_noise
@pytest.mark.parametrize("norm", [0.4, 100.0], ids=["scaled", "whole"])
def test_without_noise_a_gram_matrix_is_that_of_the_rows_in_the_basis(form, bounds, norm, hardened):
    X, y = some_rows()
    release = GaussianGram(1, 0.0)
    vault = make_vault(FORMS[form](X), y, release, bounds=bounds, intercept=True, hardened=hardened)
    rows = scaled(in_units(X, bounds)[:, WITH_INTERCEPT] @ BASIS, norm)
    found = vault.gram(WITH_INTERCEPT, release, norm, BASIS)
    np.testing.assert_allclose(found, rows.T @ rows / N, rtol=1e-11, atol=1e-14)


@each_form
@some_bounds
@either_noise
@pytest.mark.parametrize("loss", ["squared", "logistic", "multinomial"])
@pytest.mark.parametrize("basis", [None, BASIS], ids=["in units", "in a basis"])
@pytest.mark.parametrize("clip", [0.2, 100.0], ids=["clipped", "whole"])
def test_without_noise_a_gradient_is_that_of_the_rows_in_the_basis(loss, form, bounds, basis, clip, hardened):
    """Without a basis in the problem's own units, one column for each of several outputs."""
    X, y = some_rows()
    release = GaussianRestrictedGradient(1, 0.0)
    vault = make_vault(FORMS[form](X), y, release, loss=loss, bounds=bounds, intercept=True, hardened=hardened)
    problem, outputs = vault.problem, vault.problem.outputs
    theta = np.linspace(-1, 1, problem.dimension)
    rows = in_units(X, bounds)
    margins = rows * problem.units @ problem.by_column(theta).reshape(D + 1, outputs)
    if loss == "squared":
        residuals = margins - np.clip(y, -1, 1)[:, None]
    elif loss == "logistic":
        residuals = 1 / (1 + np.exp(-margins)) - (y > 0)[:, None]
    else:
        chances = np.exp(margins) / np.exp(margins).sum(axis=1, keepdims=True)
        residuals = chances - np.equal.outer(np.clip(y, -1, 1).round() + 1, np.arange(3))
    part = rows[:, WITH_INTERCEPT] if basis is None else rows[:, WITH_INTERCEPT] @ basis
    terms = part[:, :, None] * residuals[:, None, :]
    terms *= np.minimum(1, clip / np.linalg.norm(terms, axis=(1, 2)))[:, None, None]
    expected = terms.mean(axis=0) * (problem.units[WITH_INTERCEPT, None] if basis is None else 1.0)
    found = vault.restricted_gradient(theta, WITH_INTERCEPT, release, clip, basis)
    assert found.shape == (expected.shape if outputs > 1 else expected.shape[:1])
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_sparse_rows_answer_as_dense_ones_up_to_round_off(question, loss):
    X, y = some_rows(60)
    X *= np.random.default_rng(1).random(X.shape) < 0.4
    kind, ask = QUESTIONS[question]
    found = []
    for form in FORMS.values():
        vault = make_vault(form(X), y, kind(1, 0.0), loss=loss, intercept=True)
        theta = np.linspace(-1, 1, vault.problem.dimension)
        found.append(ask(vault, kind(1, 0.0), theta, WITH_INTERCEPT, BASIS, 0.5))
    np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("question", ["gradient", "gram"])
@each_form
def test_the_identity_is_a_basis_like_none(question, form):
    kind, ask = QUESTIONS[question]
    answers = []
    for basis in (None, np.eye(3)):
        vault = make_vault(FORMS[form](some_rows()[0]), some_rows()[1], kind(1, 0.0), loss="logistic")
        answers.append(ask(vault, kind(1, 0.0), np.full(D, 0.3), SUPPORT, basis, 0.5))
    np.testing.assert_allclose(*answers, rtol=1e-12)


@pytest.mark.parametrize("question", ["gradient", "gram"])
def test_another_basis_is_another_question(question):
    """Rows in a basis are kept for the next question, which may have another."""
    kind, ask = QUESTIONS[question]
    release = kind(3, 0.0)
    vault = make_vault(*some_rows(), release)
    bases = BASIS, 2 * BASIS, BASIS
    first, other, again = (ask(vault, release, np.zeros(D), SUPPORT, basis, 90.0) for basis in bases)
    np.testing.assert_allclose(other, first * (4 if question == "gram" else 2), rtol=1e-12)
    np.testing.assert_array_equal(again, first)


@pytest.mark.parametrize("question", QUESTIONS)
@each_form
def test_rows_of_zeros_answer_zeros(question, form):
    kind, ask = QUESTIONS[question]
    vault = make_vault(FORMS[form](np.zeros((N, D))), np.zeros(N), kind(1, 0.0))
    assert not np.any(ask(vault, kind(1, 0.0), np.zeros(D), SUPPORT, BASIS, 1.0))


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_public_row_count_is_the_normaliser(question):
    kind, ask = QUESTIONS[question]
    X, y = some_rows(10)
    found = []
    for n in (10, 20):
        vault = make_vault(X, y, kind(1, 0.0), n=n, adjacency="add-remove")
        found.append(ask(vault, kind(1, 0.0), np.zeros(D), SUPPORT, BASIS, 0.7))
    np.testing.assert_allclose(found[0], 2 * found[1], rtol=1e-12)


# -- noise --------------------------------------------------------------------------------------------------------

FALSE_ALARM = 1e-9


def gaussian_of_sd(noise, sd):
    """Whether the sum of squares fits sd: a chi-square test, two-sided, wrong once in 1e9 if it is right."""
    total = np.sum((noise / sd) ** 2)
    return stats.chi2.ppf(FALSE_ALARM / 2, noise.size) < total < stats.chi2.isf(FALSE_ALARM / 2, noise.size)


@pytest.mark.parametrize("adjacency", list(Adjacency))
@either_noise
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_the_noise_is_as_planned_and_not_a_quarter_off(question, loss, hardened, adjacency):
    """In every entry, but that off the diagonal of a Gram matrix an entry stands for two. False alarms: 1e-9 with fresh
    seeds, none with this one; 2000 entries put 1.25 thirteen sigmas away."""
    kind, ask = QUESTIONS[question]
    exact, release, draws = kind(1, 0.0), kind(1000, 3.0), 1000
    vault = make_vault(*some_rows(), exact, release, loss=loss, hardened=hardened, adjacency=adjacency)
    facts = vault.problem.origin(), SUPPORT, BASIS, 0.7
    value = ask(vault, exact, *facts)
    noise = np.array([ask(vault, release, *facts) for _ in range(draws)]) - value
    move = gram_sensitivity(0.49, N, Adjacency(adjacency)) if question == "gram" else None
    scale = 3.0 * (move or gradient_sensitivity(0.7, N, Adjacency(adjacency)))
    assert vault.answers[-1].scale == pytest.approx(scale, rel=WIDENED[adjacency])
    if question == "gram":
        np.testing.assert_allclose(noise, noise.transpose(0, 2, 1), atol=1e-12)
        noise = np.column_stack([noise[:, 0, 0], math.sqrt(2) * noise[:, 0, 1], noise[:, 1, 1]])
    noise = noise.reshape(draws, -1)
    assert gaussian_of_sd(noise, scale)
    assert not gaussian_of_sd(noise, scale * 1.25)
    assert not gaussian_of_sd(noise, scale / 1.25)
    correlations = np.corrcoef(noise.T)[np.triu_indices(noise.shape[1], 1)]
    assert np.max(np.abs(correlations)) < 0.2  # 15 pairs at most beyond 6.3 sigmas: once in 1e8


# -- answers and refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", list(Adjacency))
@either_noise
def test_the_record_holds_release_clip_sensitivity_and_scale(adjacency, hardened):
    for question, (kind, ask) in QUESTIONS.items():
        release = kind(1, 3.0)
        vault = make_vault(*some_rows(), release, adjacency=adjacency, hardened=hardened)
        ask(vault, release, np.zeros(D), SUPPORT, BASIS, np.float16(0.5))
        (answer,) = vault.answers
        clip = 0.25 if question == "gram" else 0.5
        rule = gram_sensitivity if question == "gram" else gradient_sensitivity
        assert answer == Answer(release, clip, rule(clip, N, Adjacency(adjacency)), answer.scale)
        assert 1 - 1e-12 <= answer.scale / (3.0 * answer.sensitivity) <= 1 + WIDENED[adjacency]


def refused(vault, question, words):
    for _ in range(2):
        with pytest.raises(ValueError, match=words):
            question()
    assert vault.answers == ()


BAD_BASES = {
    "too short": (BASIS[:2], r"basis has shape \(2, 2\)"),
    "too wide": (np.ones((3, 4)), r"at most 3 columns"),
    "a vector": (np.ones(3), r"basis has shape \(3,\)"),
    "undefined": (np.full((3, 2), np.nan), "basis must hold numbers"),
    "so large that rows overflow": (np.full((3, 2), 1e308), "basis must hold numbers"),
}


@pytest.mark.parametrize("bad", BAD_BASES)
@pytest.mark.parametrize("question", ["gradient", "gram"])
def test_a_bad_basis_is_refused_and_costs_nothing(question, bad):
    basis, words = BAD_BASES[bad]
    kind, ask = QUESTIONS[question]
    release = kind(1, 1.0)
    vault = make_vault(*some_rows(), release)
    refused(vault, lambda: ask(vault, release, np.zeros(D), SUPPORT, basis, 1.0), words)
    ask(vault, release, np.zeros(D), SUPPORT, BASIS, 1.0)


@pytest.mark.parametrize("clip", [0.0, -0.0, math.inf, math.nan, 1e-110, 1e110])
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_clip_that_bounds_nothing_is_refused_and_costs_nothing(question, clip):
    kind, ask = QUESTIONS[question]
    release = kind(1, 1.0)
    vault = make_vault(*some_rows(), release)
    refused(vault, lambda: ask(vault, release, np.zeros(D), SUPPORT, BASIS, clip), "clip=")
    ask(vault, release, np.zeros(D), SUPPORT, BASIS, 1.0)


@pytest.mark.parametrize("outside", [-1, D, 3 * D - 1])
@pytest.mark.parametrize("loss", ["squared", "multinomial"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_columns_outside_the_table_are_refused_and_cost_nothing(question, loss, outside):
    """With several outputs there are more coordinates than columns."""
    kind, ask = QUESTIONS[question]
    release = kind(1, 1.0)
    vault = make_vault(*some_rows(), release, loss=loss)
    origin = vault.problem.origin()
    refused(vault, lambda: ask(vault, release, origin, np.array([0, 1, outside]), BASIS, 1.0), "support=")
    ask(vault, release, origin, SUPPORT, BASIS, 1.0)


def test_a_release_pays_for_its_own_question_once():
    own, other = GaussianMean(1, 1.0), GaussianMoments(1, 1.0)
    vault = make_vault(*some_rows(), own, other)
    with pytest.raises(BudgetExceeded, match="not for a mean"):
        vault.mean(SUPPORT, other, 1.0)
    with pytest.raises(BudgetExceeded, match="not for a moments"):
        vault.moments(SUPPORT, own)
    vault.mean(SUPPORT, own, 1.0)
    with pytest.raises(BudgetExceeded, match="used up"):
        vault.mean(SUPPORT, own, 1.0)
    assert len(vault.answers) == 1


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_charged_before_the_rows_are_touched(question, monkeypatch):
    def fail(*_):
        raise MemoryError

    kind, ask = QUESTIONS[question]
    release = kind(1, 1.0)
    vault = make_vault(*some_rows(), release)
    for name in ("columns", "projected"):
        monkeypatch.setattr(DenseEngine, name, fail)
    with pytest.raises(MemoryError):
        ask(vault, release, np.zeros(D), SUPPORT, BASIS, 1.0)
    monkeypatch.undo()
    with pytest.raises(BudgetExceeded, match="used up"):
        ask(vault, release, np.zeros(D), SUPPORT, BASIS, 1.0)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_closed_vault_answers_nothing(question):
    kind, ask = QUESTIONS[question]
    release = kind(1, 1.0)
    vault = make_vault(*some_rows(), release)
    vault.close()
    with pytest.raises(RuntimeError, match="closed"):
        ask(vault, release, np.zeros(D), SUPPORT, BASIS, 1.0)
