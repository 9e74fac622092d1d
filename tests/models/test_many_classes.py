"""More than two classes, from the joint clip in the vault to the saved model."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats
from scipy.special import softmax
from sklearn.base import clone

from thresher import Certificate, SparseClassifier, load_model
from thresher.algorithms import DPIGHT
from thresher.algorithms.defaults import between_classes
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Adjacency, Budget
from thresher.privacy.plan import Plan
from thresher.privacy.releases import GaussianGradient
from thresher.privacy.sensitivity import gradient_sensitivity
from thresher.vaults import CentralVault
from thresher.vaults.losses import LOGISTIC, MULTINOMIAL
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

pytestmark = pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")

FORMS = {"dense": np.array, "sparse": sparse.csr_array}
SOME_BOUNDS = [Bounds(feature=1.0), Bounds(row=1.0), Bounds(feature=(0.1, 1, 2, 5, 0.3)), Bounds(feature=0.5, row=0.8)]
N, D, K = 12, 5, 4


def make_vault(X, Y, *releases, bounds=None, adjacency="replace-one", n=None, intercept=False, **noise):
    problem = LinearProblem(
        n or X.shape[0],
        X.shape[1],
        bounds or Bounds(feature=1.0),
        sparsity=2,
        loss=MULTINOMIAL,
        intercept=intercept,
        outputs=Y.shape[1],
    )
    plan = Plan("test", problem, Budget(math.inf, 1e-6, adjacency), releases)
    return CentralVault(X, Y, plan, NoiseSource(noise.get("seed", 0), hardened=noise.get("hardened", False)))


def some_rows(n=N, d=D, k=K, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1.5, 1.5, (n, d)), np.eye(k)[rng.integers(0, k, n)]


# -- one wild row, several residuals --------------------------------------------------------------------------------


def movement(first, second, *, form="dense", theta=None, clip=0.5, **facts):
    """How far the exact gradients of two data sets are apart, over all outputs, and the sensitivity stated for both."""
    answers, stated = [], []
    for X, Y in (first, second):
        release = GaussianGradient(1, 0.0)
        vault = make_vault(FORMS[form](X), Y, release, n=len(first[0]), **facts)
        answers.append(vault.gradient(vault.problem.origin() if theta is None else theta, release, clip))
        stated.append(vault.answers[-1].sensitivity)
    assert stated[0] == stated[1]
    return float(np.linalg.norm(answers[0] - answers[1])), stated[0]


def with_row(X, Y, row, label, adjacency, at):
    if adjacency == "add-remove":
        return np.vstack([X, row]), np.vstack([Y, np.eye(K)[label]])
    X, Y = X.copy(), Y.copy()
    X[at], Y[at] = row, np.eye(K)[label]
    return X, Y


WILD_ENTRIES = st.sampled_from([0.0, 1.0, -1.0, 0.3, 1e300, -1e300, 1e6, 1e-320])
WILD_THETAS = st.sampled_from([0.0, 0.5, -2.0, 100.0, -1e4, 1e308])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("adjacency", list(Adjacency))
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_wild_row_of_k_residuals_moves_the_gradient_by_no_more_than_stated(form, adjacency, data):
    X, Y = some_rows(seed=data.draw(st.integers(0, 5), "seed"))
    at, intercept = data.draw(st.integers(0, N - 1), "at"), data.draw(st.booleans(), "intercept")
    row = data.draw(st.lists(WILD_ENTRIES, min_size=D, max_size=D) | st.just(-X[at]), "row")
    size = K * (D + intercept)
    clip = data.draw(st.sampled_from([1e-3, 0.3, 1.0, 50.0]), "clip")
    moved, stated = movement(
        (X, Y),
        with_row(X, Y, row, data.draw(st.integers(0, K - 1), "label"), adjacency, at),
        form=form,
        adjacency=adjacency,
        intercept=intercept,
        bounds=data.draw(st.sampled_from(SOME_BOUNDS), "bounds"),
        clip=clip,
        theta=np.array(data.draw(st.lists(WILD_THETAS, min_size=size, max_size=size), "theta")),
    )
    assert stated == gradient_sensitivity(clip, N, Adjacency(adjacency))
    assert moved <= stated * (1 + 1e-9)


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("form", FORMS)
def test_the_stated_sensitivity_is_nearly_attained(adjacency, form):
    """A row at the bound whose residuals point at another class: opposite rows turn them around."""
    X, Y = np.zeros((N, D)), np.eye(K)[np.zeros(N, dtype=int)]
    theta = np.zeros(K * D)
    theta[0] = 1e3  # class 0 is certain where x_0 > 0, and impossible where x_0 < 0
    row = np.eye(D)[0]
    if adjacency == "replace-one":
        X[0], Y[0] = row, np.eye(K)[1]
    moved, stated = movement((X, Y), with_row(X, Y, -row, 0, adjacency, 0), form=form, adjacency=adjacency, theta=theta)
    # both terms are at the clip; (1, -1, 0, 0) and its mirror (-1, 1/3, 1/3, 1/3) are not quite opposite
    angle = np.array([1, -1, 0, 0]) @ np.array([1, -1 / 3, -1 / 3, -1 / 3]) / math.sqrt(2 * 4 / 3)
    expected = {"replace-one": math.sqrt((1 - angle) / 2), "add-remove": 1.0}[adjacency]
    assert moved == pytest.approx(stated * expected, rel=1e-9)


def test_the_replace_one_sensitivity_is_attained_by_a_row_that_turns_around():
    """Sure of class 0 wherever x_0 is, by the intercept: the residuals e_0 - e_1 stay, the row changes its sign."""
    X, Y = np.zeros((N, D)), np.eye(K)[np.zeros(N, dtype=int)]
    X[0], Y[0] = np.eye(D)[0], np.eye(K)[1]
    theta = np.zeros(K * (D + 1))
    theta[K * D] = 1e6
    pair = (X, Y), with_row(X, Y, -np.eye(D)[0], 1, "replace-one", 0)
    moved, stated = movement(*pair, theta=theta, intercept=True)
    column = LinearProblem(
        N, D, Bounds(feature=1.0), sparsity=2, loss=MULTINOMIAL, intercept=True, outputs=K
    ).intercept_column
    # both rows share the intercept's column, which does not turn around
    assert moved == pytest.approx(stated / math.hypot(1, column), rel=1e-9)


def test_the_wild_row_test_notices_residuals_that_are_clipped_one_by_one(monkeypatch):
    """K residuals, each within the limit, are up to sqrt(2) limits long together."""

    def one_by_one(self, engine, margins, limits):
        residuals = np.clip(self._residuals(margins), -limits[:, None], limits[:, None])
        return engine.transposed_product(residuals / self.problem.n)

    X, Y = np.zeros((N, D)), np.eye(K)[np.zeros(N, dtype=int)]
    theta = np.zeros(K * D)
    theta[0] = 1e3
    pair = (X, Y), with_row(X, Y, np.eye(D)[0], 1, "add-remove", 0)
    honest, stated = movement(*pair, adjacency="add-remove", theta=theta)
    assert honest <= stated * (1 + 1e-9)
    monkeypatch.setattr(CentralVault, "_mean_gradient", one_by_one)
    moved, stated = movement(*pair, adjacency="add-remove", theta=theta)
    assert moved > 1.4 * stated


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bounds", SOME_BOUNDS, ids=str)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("clip", [0.1, 1e6], ids=["clipped", "whole"])
def test_without_noise_it_is_the_mean_of_the_clipped_gradients(form, bounds, intercept, clip):
    X, Y = some_rows()
    release = GaussianGradient(1, 0.0)
    vault = make_vault(FORMS[form](X), Y, release, bounds=bounds, intercept=intercept)
    problem = vault.problem
    rows = X if bounds.feature is None else np.clip(X, -np.asarray(bounds.feature), bounds.feature)
    if bounds.row is not None:
        rows = rows * np.minimum(1, bounds.row / np.linalg.norm(rows, axis=1))[:, None]
    if intercept:
        rows = np.hstack([rows, np.full((N, 1), problem.intercept_column)])
    theta = np.linspace(-2, 2, problem.dimension)
    W = np.hstack([theta[: K * D].reshape(K, D), theta[K * D :].reshape(-1, 1)] if intercept else [theta.reshape(K, D)])
    residuals = softmax(rows @ W.T, axis=1) - Y
    terms = residuals[:, :, None] * rows[:, None, :]
    terms *= np.minimum(1, clip / np.linalg.norm(terms, axis=(1, 2)))[:, None, None]
    mean = terms.mean(axis=0)
    expected = np.concatenate([mean[:, :D].ravel(), mean[:, D:].ravel()])
    np.testing.assert_allclose(vault.gradient(theta, release, clip), expected, rtol=1e-11, atol=1e-15)


FALSE_ALARM = 1e-9


@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
def test_every_coordinate_of_every_class_has_the_stated_noise(hardened):
    """A chi-square test, wrong once in 1e9; 2000 draws put 1.25 fourteen sigmas away."""
    X, Y = some_rows()
    exact, release = GaussianGradient(1, 0.0), GaussianGradient(100, 3.0)
    vault = make_vault(X, Y, exact, release, hardened=hardened)
    theta = vault.problem.origin()
    value = vault.gradient(theta, exact, 0.5)
    noise = np.array([vault.gradient(theta, release, 0.5) for _ in range(100)]) - value
    sd = 3.0 * gradient_sensitivity(0.5, N, Adjacency.REPLACE_ONE)
    low, high = stats.chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], noise.size)
    total = np.sum((noise / sd) ** 2)
    assert low < total < high
    assert not low < total / 1.25**2 < high
    assert not low < total * 1.25**2 < high


# -- between the classes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
def test_what_all_classes_share_is_taken_off(intercept):
    problem = LinearProblem(100, D, Bounds(row=1.0), sparsity=2, loss=MULTINOMIAL, intercept=intercept, outputs=K)
    gradient = np.random.default_rng(0).normal(size=problem.dimension)
    between = between_classes(gradient, problem)
    np.testing.assert_allclose(problem.by_column(between).sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(between_classes(between, problem), between, atol=1e-14)
    shared = problem.stacked(np.repeat(np.arange(D + intercept)[:, None], K, axis=1).astype(float))
    np.testing.assert_allclose(between_classes(gradient + shared, problem), between, atol=1e-12)


def test_exact_gradients_share_nothing_so_only_noise_is_taken_off():
    """Its variance is then 1 - 1/K of what it was; 20000 draws: the tolerance is 6 sigmas."""
    X, Y = some_rows()
    release = GaussianGradient(1, 0.0)
    vault = make_vault(X, Y, release, intercept=True)
    gradient = vault.gradient(np.linspace(-1, 1, vault.problem.dimension), release, 0.5)
    np.testing.assert_allclose(between_classes(gradient, vault.problem), gradient, atol=1e-14)
    rng, problem = np.random.default_rng(0), vault.problem
    left = np.mean([between_classes(rng.normal(size=problem.dimension), problem) ** 2 for _ in range(1000)])
    assert left == pytest.approx(1 - 1 / K, rel=0.06)


def test_the_descent_is_told_the_noise_that_is_left_between_classes(monkeypatch):
    told, (X, Y) = [], some_rows(300)

    def descend_lazily(gradient, problem, rounds, clip, sd):
        told.append((sd, np.array([gradient(problem.origin()) for _ in range(rounds)])))
        return problem.origin()

    monkeypatch.setattr("thresher.algorithms.dp_ight.descend_lazily", descend_lazily)
    problem = LinearProblem(300, D, Bounds(feature=1.0), sparsity=2, loss=MULTINOMIAL, intercept=True, outputs=K)
    algorithm = DPIGHT(iterations=200)
    algorithm.run(CentralVault(X, Y, algorithm.plan(problem, Budget(1.0, 1e-6)), NoiseSource(0)))
    ((sd, answers),) = told
    # 24 coordinates of which 18 are free, 199 degrees of freedom each: the tolerance is 6 sigmas
    assert np.sqrt(answers.var(axis=0, ddof=1).mean()) == pytest.approx(sd, rel=0.071)


def test_one_output_has_nothing_between():
    gradient = np.arange(6.0)
    assert between_classes(gradient, LinearProblem(100, 5, Bounds(row=1.0), sparsity=2, loss=LOGISTIC)) is gradient


# -- models ---------------------------------------------------------------------------------------------------------


def table(k=3, n=5000, d=20, seed=0):
    """Class j is likely where columns 2j and 2j+1 are large; some entries are zero."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d)) * (rng.random((n, d)) < 0.7)
    scores = np.column_stack([4 * (X[:, 2 * j] + X[:, 2 * j + 1]) for j in range(k)])
    return X, np.argmax(scores + rng.gumbel(size=(n, k)), axis=1)


def model(**changes):
    facts = {"sparsity": 4, "epsilon": 2.0, "delta": 1e-6, "feature_bound": 1.0, "random_state": 0}
    return SparseClassifier(**{**facts, **changes})


@pytest.mark.parametrize("algorithm", ["auto", "dp-ight"])
@pytest.mark.parametrize("k", [3, 4])
@pytest.mark.parametrize("bounds", [{"feature_bound": 1.0}, {"feature_bound": None, "row_bound": 2.5}], ids=str)
def test_accuracy_is_clearly_above_the_majority(algorithm, k, bounds):
    X, y = table(k)
    fitted = model(algorithm=algorithm, **bounds).fit(X, y)
    X_test, y_test = table(k, seed=1)
    assert np.bincount(y_test).max() / len(y_test) < 0.42
    assert fitted.score(X_test, y_test) > 0.6
    assert fitted.algorithm_ == ("newton" if algorithm == "auto" else "dp-ight")
    assert np.count_nonzero(fitted.coef_) <= 4 * k


def test_without_privacy_it_is_close_to_a_plain_softmax_regression():
    from sklearn.linear_model import LogisticRegression

    X, y = table()
    plain = LogisticRegression(C=1e3).fit(X, y)
    fitted = model(epsilon=math.inf, sparsity=6).fit(X, y)
    X_test, y_test = table(seed=1)
    assert fitted.score(X_test, y_test) > plain.score(X_test, y_test) - 0.02


@pytest.mark.parametrize("k", [3, 5])
@pytest.mark.parametrize("intercept", [True, False])
def test_shapes_probabilities_and_predictions_fit_together(k, intercept):
    X, y = table(k, 1500)
    fitted = model(fit_intercept=intercept).fit(X, y)
    assert fitted.coef_.shape == (k, 20)
    assert fitted.intercept_.shape == (k,)
    assert intercept or np.all(fitted.intercept_ == 0)
    np.testing.assert_array_equal(fitted.classes_, np.arange(k))
    scores = fitted.decision_function(X)
    np.testing.assert_allclose(scores, X @ fitted.coef_.T + fitted.intercept_)
    np.testing.assert_allclose(fitted.predict_proba(X), softmax(scores, axis=1))
    np.testing.assert_allclose(fitted.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_array_equal(fitted.predict(X), scores.argmax(axis=1))
    np.testing.assert_array_equal(fitted.support_, np.flatnonzero(fitted.coef_.any(axis=0)))


@pytest.mark.parametrize("algorithm", ["dp-ight", "pursuit", "output-perturbation"])
def test_renamed_classes_are_renamed_rows(algorithm):
    """Without noise: with it, every row has its own."""
    X, y = table(4, 1500)
    order = np.array([2, 0, 3, 1])  # class j is called order[j]
    first, second = (model(epsilon=math.inf, algorithm=algorithm).fit(X, labels) for labels in (y, order[y]))
    np.testing.assert_allclose(second.coef_[order], first.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(second.intercept_[order], first.intercept_, rtol=1e-6, atol=1e-9)
    assert first.support_.size > 0


@pytest.mark.parametrize(
    ("names", "kind"),
    [(["ant", "bee", "cow"], None), (["ant", "bee", "cow"], object), ([10, 20, 30], None), ([-1.0, 0.0, 2.0], None)],
    ids=["words", "objects", "integers", "floats"],
)
@pytest.mark.parametrize("declared", [True, False])
def test_labels_may_be_anything(names, kind, declared):
    X, y = table(3, 1500)
    plain = model().fit(X, y)
    fitted = model(classes=names[::-1] if declared else None).fit(X, np.array([names[at] for at in y], dtype=kind))
    np.testing.assert_array_equal(fitted.coef_, plain.coef_)
    np.testing.assert_array_equal(fitted.predict(X), np.array(names)[plain.predict(X)])


@pytest.mark.parametrize("algorithm", ["auto", "pursuit"])
def test_dense_and_sparse_rows_give_the_same_model(algorithm):
    X, y = table(3, 1500)
    dense, scattered = (model(algorithm=algorithm, epsilon=6.0).fit(rows, y) for rows in (X, sparse.csr_array(X)))
    np.testing.assert_allclose(scattered.coef_, dense.coef_, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(scattered.intercept_, dense.intercept_, rtol=1e-6, atol=1e-6)
    assert dense.support_.size > 0


@pytest.mark.parametrize("entry", [1e300, -1e300, 1e-320])
@pytest.mark.parametrize("form", [np.array, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_wild_row_does_no_harm(entry, form, intercept):
    X, y = table(3, 300)
    X[7] = entry
    X[8] = 0
    fitted = model(fit_intercept=intercept).fit(form(X), y)
    assert np.all(np.isfinite(fitted.coef_))


def test_rows_of_zeros_do_no_harm():
    _, y = table(3, 300)
    for algorithm in ("dp-ight", "pursuit"):
        assert np.all(np.isfinite(model(algorithm=algorithm).fit(np.zeros((300, 20)), y).coef_))


def test_a_step_makes_it_the_papers_iteration_for_many_classes_too():
    """theta <- H_s(theta - step * gradient), gradients less what the classes share."""
    X, y = table(3, 300)
    problem = LinearProblem(300, 20, Bounds(feature=1.0), sparsity=4, loss=MULTINOMIAL, intercept=False, outputs=3)
    algorithm = DPIGHT(iterations=3, step=2.0, clip=0.4)
    plan = algorithm.plan(problem, Budget(math.inf, 1e-6))
    theta = algorithm.run(CentralVault(X, np.eye(3)[y], plan, NoiseSource(0)))
    W = np.zeros((3, 20))
    for _ in range(3):
        terms = (softmax(X @ W.T, axis=1) - np.eye(3)[y])[:, :, None] * X[:, None, :]
        terms *= np.minimum(1, 0.4 / np.linalg.norm(terms, axis=(1, 2)))[:, None, None]
        W = W - 2.0 * terms.mean(axis=0)
        W[np.abs(W) < np.sort(np.abs(W).ravel())[-12]] = 0
    np.testing.assert_allclose(theta.reshape(3, 20), W, rtol=1e-9, atol=1e-12)


# -- certificates, plans and files ----------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["auto", "pursuit", "frank-wolfe"])
@pytest.mark.parametrize(("adjacency", "hardened"), [("replace-one", False), ("add-remove", True)])
def test_certificates_verify_survive_json_and_list_every_answer(algorithm, adjacency, hardened):
    X, y = table(3, 400)
    certificate = model(algorithm=algorithm, adjacency=adjacency, hardened=hardened).fit(X, y).certificate_
    restored = Certificate.from_json(certificate.to_json())
    assert restored.to_json() == certificate.to_json()
    assert restored.verify()
    assert restored.epsilon == 2.0
    assert restored.verify().epsilon <= 2.0
    for entry in restored.releases:
        assert sum(answer["count"] for answer in entry["answers"]) == entry["release"]["times"]


@pytest.mark.parametrize("algorithm", ["auto", "pursuit"])
def test_a_certificate_that_forgets_a_class_does_not_verify(algorithm):
    data = json.loads(model(algorithm=algorithm).fit(*table(3, 400)).certificate_.to_json())
    release = data["releases"][0]["release"]
    release["times"] = release["times"] * 2 // 3
    assert not Certificate.from_dict(data).verify()


def test_add_remove_needs_less_noise():
    X, y = table(3, 400)
    scales = [
        model(adjacency=adjacency, algorithm="dp-ight").fit(X, y).certificate_.releases[0]["answers"][0]["scale"]
        for adjacency in ("replace-one", "add-remove")
    ]
    assert scales[0] == pytest.approx(2 * scales[1], rel=6e-4)  # the round-off of up to 2^33 rows


def test_classes_read_from_the_data_are_an_assumption_and_declared_ones_are_not():
    X, y = table(3, 400)
    read = model(random_state=None).fit(X, y).certificate_
    declared = model(random_state=None, classes=[0, 1, 2], hardened=True).fit(X, y).certificate_
    assert (read.grade, declared.grade) == ("conditional", "proved")
    assert any("class labels" in words for words in read.assumptions)


def test_a_declared_class_without_rows_has_its_row_of_coefficients():
    X, y = table(2, 400)
    fitted = model(classes=[0, 1, 2]).fit(X, y)
    assert fitted.coef_.shape == (3, 20)
    assert fitted.predict_proba(X).shape == (400, 3)
    assert fitted.plan_ == model(classes=[0, 1, 2]).plan(400, 20)


@pytest.mark.parametrize("algorithm", ["auto", "pursuit"])
@pytest.mark.parametrize(("classes", "outputs"), [(None, 1), ([0, 1], 1), ([0, 1, 2], 3), (["a", "b", "c", "d"], 4)])
def test_the_plan_counts_the_declared_classes(algorithm, classes, outputs):
    plan = model(classes=classes, algorithm=algorithm).plan(400, 20)
    assert plan.problem.outputs == outputs
    assert plan.epsilon <= 2.0


def test_the_plan_of_declared_classes_is_the_one_that_runs():
    X, y = table(3, 400)
    for algorithm in ("auto", "pursuit"):
        fitted = model(classes=[0, 1, 2], algorithm=algorithm).fit(X, y)
        assert fitted.plan_ == clone(fitted).plan(400, 20)


@pytest.mark.parametrize(
    ("names", "algorithm"), [([0, 1, 2], "auto"), (["ant", "bee", "cow"], "auto"), (["ant", "bee", "cow"], "pursuit")]
)
@pytest.mark.parametrize("epsilon", [4.0, 0.01], ids=["found", "nothing found"])
def test_a_saved_model_predicts_the_same_and_keeps_its_certificate(names, algorithm, epsilon, tmp_path):
    X, y = table(3, 1500)
    fitted = model(algorithm=algorithm, epsilon=epsilon).fit(X, np.array(names)[y])
    fitted.save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    for attribute in ("coef_", "intercept_", "support_", "classes_"):
        np.testing.assert_array_equal(getattr(loaded, attribute), getattr(fitted, attribute))
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    assert loaded.certificate_.to_json() == fitted.certificate_.to_json()


# -- two classes stay as they were ----------------------------------------------------------------------------------


def test_two_classes_have_one_row_and_log_odds():
    X, y = table(2, 1500)
    fitted = model().fit(X, y)
    assert fitted.coef_.shape == (1, 20)
    assert fitted.intercept_.shape == (1,)
    assert fitted.decision_function(X).shape == (1500,)
    assert fitted.predict_proba(X).shape == (1500, 2)
    assert fitted.plan_.problem.loss == LOGISTIC
    np.testing.assert_array_equal(fitted.predict(X), (fitted.decision_function(X) > 0).astype(int))


def test_a_saved_model_of_two_classes_is_a_flat_list(tmp_path):
    X, y = table(2, 1500)
    fitted = model().fit(X, y)
    fitted.save(tmp_path / "model.json")
    written = json.loads((tmp_path / "model.json").read_text())
    assert written["coefficients"] == fitted.coef_[0, fitted.support_].tolist()
    assert written["intercept"] == fitted.intercept_[0]
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").coef_, fitted.coef_)


def test_a_vault_of_one_output_is_unchanged_by_outputs():
    problem = LinearProblem(N, D, Bounds(feature=1.0), sparsity=2, loss=LOGISTIC)
    theta = np.arange(6.0)
    assert problem.by_column(theta) is theta
    assert problem.stacked(theta) is theta
    with pytest.raises(ValueError, match="outputs=2"):
        replace(problem, outputs=2)
