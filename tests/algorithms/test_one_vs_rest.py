"""One against the rest: every class is paid for, on one meter, and together they stay within the budget."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from inside import cache_of, targets_of
from thresher import SparseClassifier
from thresher.algorithms import DPIGHT, REGISTRY, FrankWolfe, Pursuit, TwoStage, resolve
from thresher.algorithms.one_vs_rest import OneVsRest
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget, BudgetExceeded
from thresher.privacy.plan import Plan
from thresher.privacy.releases import GaussianGradient, GaussianMoments, GumbelQuantile
from thresher.vaults import CentralVault
from thresher.vaults.losses import LOGISTIC, SQUARED, loss_named
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

pytestmark = pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")

EACH = [name for name, cls in REGISTRY.items() if not getattr(cls, "many_outputs", False)]
PRIVATE = [name for name in EACH if name != "ight"]
N, D, K = 400, 8, 3


def problem_of(outputs=K, n=N, d=D, s=2, intercept=True, **bounds):
    loss = "logistic" if outputs == 1 else "multinomial"
    return LinearProblem(
        n,
        d,
        Bounds(**(bounds or {"feature": 1.0})),
        sparsity=s,
        loss=loss_named(loss),
        intercept=intercept,
        outputs=outputs,
    )


def some_rows(outputs=K, n=N, d=D, seed=0):
    """Class k is likely where column k is large; as indicators, one column a class."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    y = np.argmax(5 * X[:, :outputs] + rng.gumbel(size=(n, outputs)), axis=1)
    return X, np.eye(outputs)[y]


# -- the plan -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRIVATE)
@pytest.mark.parametrize(("epsilon", "outputs"), [(0.1, 5), (8.0, 3)])
def test_k_plans_fit_the_budget_and_use_it(name, epsilon, outputs):
    budget = Budget(epsilon, 1e-6)
    plan = OneVsRest(REGISTRY[name]()).plan(problem_of(outputs), budget)
    assert 0.9 * epsilon <= plan.epsilon <= epsilon
    assert plan.algorithm == name
    assert plan.settings["classes"] == outputs
    assert all(count % outputs == 0 for count in Counter(plan.releases).values())
    assert any(f"{outputs} times" in note for note in plan.notes)


@pytest.mark.parametrize("name", PRIVATE)
def test_every_class_has_more_than_its_part_by_basic_composition(name):
    """K plans of epsilon/K and delta/K always fit; composed by the accountant they leave room."""
    problem, budget = problem_of(10), Budget(1.0, 1e-6)
    part = OneVsRest(REGISTRY[name]())._part(problem, budget)
    basic = REGISTRY[name]().plan(replace(problem, loss=LOGISTIC, outputs=1), Budget(0.1, 1e-7))
    assert part.epsilon > basic.epsilon
    assert part.budget.epsilon < 1.0


@pytest.mark.parametrize("epsilon", [0.01, 100.0])
@pytest.mark.parametrize("delta", [1e-12, 0.4])
@pytest.mark.parametrize("name", ["pursuit", "output-perturbation", "frank-wolfe"])
def test_there_is_a_plan_for_the_strangest_budgets(name, epsilon, delta):
    plan = OneVsRest(REGISTRY[name]()).plan(problem_of(4), Budget(epsilon, delta))
    assert plan.epsilon <= epsilon


def test_where_the_accountant_gains_nothing_basic_composition_is_the_fallback():
    """An algorithm that knows one plan only, however much it may spend."""

    class Stubborn:
        name = "stubborn"

        def plan(self, problem, budget):
            release = GaussianGradient.calibrated(replace(budget, epsilon=0.2, delta=1e-7), 1)
            if budget.epsilon > 0.2:
                release = GaussianGradient.calibrated(budget, 1)
            return Plan(self.name, problem, budget, (release,))

        def run(self, vault):
            raise NotImplementedError

    plan = OneVsRest(Stubborn()).plan(problem_of(5), Budget(1.0, 5e-7))
    assert plan.epsilon <= 1.0
    assert len(plan.releases) == 5


def test_printed_noise_is_that_of_a_kth_of_the_budget_and_stays_marked():
    algorithm = FrankWolfe(calibration="printed")
    plan = OneVsRest(algorithm).plan(problem_of(), Budget(3.0, 3e-6))
    own = algorithm.plan(problem_of(1), Budget(1.0, 1e-6))
    assert plan.calibration == "printed"
    assert plan.releases == own.releases * K


def test_without_privacy_there_is_no_noise():
    plan = OneVsRest(Pursuit()).plan(problem_of(), Budget(math.inf, 1e-6))
    assert all(release.multiplier == 0 for release in plan.releases)


def test_an_algorithm_of_its_own_for_many_classes_is_not_wrapped():
    assert resolve("dp-ight", 3) == DPIGHT()
    assert resolve("dp-ight", 1) == DPIGHT()
    assert resolve("pursuit", 1) == Pursuit()
    assert resolve("pursuit", 3) == OneVsRest(Pursuit())
    assert resolve(TwoStage(), 3) == OneVsRest(TwoStage())


# -- the run --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize(("intercept", "adjacency"), [(True, "replace-one"), (False, "add-remove")])
def test_a_run_asks_exactly_what_the_plan_lists(name, intercept, adjacency):
    algorithm = OneVsRest(REGISTRY[name]())
    problem = problem_of(intercept=intercept)
    plan = algorithm.plan(problem, Budget(2.0 if name in PRIVATE else math.inf, 1e-6, adjacency))
    vault = CentralVault(*some_rows(), plan, NoiseSource(0))
    theta = algorithm.run(vault)
    assert theta.shape == (problem.dimension,)
    asked, planned = Counter(answer.release for answer in vault.answers), Counter()
    for release in plan.releases:
        planned[release] += release.times
    assert asked == planned
    assert np.all(np.count_nonzero(theta[: problem.width].reshape(K, D), axis=1) <= 2)


@pytest.mark.parametrize("name", ["pursuit", "ight", "output-perturbation"])
def test_without_noise_every_row_is_the_model_of_its_class_against_the_rest(name):
    X, classes = some_rows()
    algorithm = REGISTRY[name]()
    many = OneVsRest(algorithm)
    plan = many.plan(problem_of(), Budget(math.inf, 1e-6))
    theta = many.run(CentralVault(X, classes, plan, NoiseSource(0)))
    for k in range(K):
        own = algorithm.plan(problem_of(1), Budget(math.inf, 1e-6))
        alone = algorithm.run(CentralVault(X, classes[:, k], own, NoiseSource(0)))
        np.testing.assert_allclose(theta[k * D : (k + 1) * D], alone[:D], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(theta[K * D + k], alone[D], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("name", "least"), [("pursuit", 0.65), ("frank-wolfe", 0.55), ("two-stage", 0.65)])
@pytest.mark.parametrize("outputs", [4])
def test_it_is_clearly_better_than_the_majority_class(name, least, outputs):
    X, classes = some_rows(outputs, 8000, 20)
    y = classes.argmax(axis=1)
    model = SparseClassifier(3, epsilon=4.0, feature_bound=1.0, algorithm=name, random_state=0).fit(X[:6000], y[:6000])
    assert model.coef_.shape == (outputs, 20)
    assert np.bincount(y).max() / 8000 < 0.4
    assert model.score(X[6000:], y[6000:]) > least
    assert model.certificate_.epsilon == 4.0
    assert model.certificate_.verify()


@pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")
def test_a_printed_fit_of_many_classes_guarantees_what_it_costs_or_nothing():
    X, classes = some_rows()
    model = SparseClassifier(
        2, epsilon=2.0, delta=1e-5, feature_bound=1.0, algorithm=FrankWolfe(calibration="printed"), random_state=0
    ).fit(X, classes.argmax(axis=1))
    certificate = model.certificate_
    assert certificate.grade == "printed"
    assert certificate.claimed_epsilon == 2.0
    assert (certificate.epsilon is None) == (certificate.verify().epsilon > 2.0)


# -- views of a vault -----------------------------------------------------------------------------------------------


def a_vault(release, times=K, adjacency="replace-one", **facts):
    """A vault whose meter allows ``times`` answers, and the plan of one class with one answer."""
    problem, budget = problem_of(**facts), Budget(math.inf, 1e-6, adjacency)
    part = Plan("test", replace(problem, loss=LOGISTIC, outputs=1), budget, (release,))
    return CentralVault(*some_rows(), Plan("test", problem, budget, (release,) * times), NoiseSource(0)), part


def test_views_share_one_meter():
    release = GaussianMoments(1, 1.0)
    vault, part = a_vault(release)
    views = [vault.one_against_rest(k, part) for k in range(K)]
    for _ in range(K):
        views[0].moments(np.arange(D), release)  # whichever view asks
    for view in views:
        with pytest.raises(BudgetExceeded, match="used up"):
            view.moments(np.arange(D), release)
    assert len(vault.answers) == K
    assert vault.answers == views[1].answers


def test_a_view_answers_no_release_that_only_its_own_plan_lists():
    vault, part = a_vault(GaussianMoments(1, 1.0))
    other = GumbelQuantile(1, 1.0)
    view = vault.one_against_rest(0, replace(part, releases=(other,)))
    with pytest.raises(BudgetExceeded, match="not in the plan"):
        view.quantile("targets", 0.5, np.array([0.0, 1.0]), part.problem.origin(), other)


def test_a_view_of_a_view_shares_the_meter_too_and_is_closed_with_it():
    """A view has one output: there is nothing to view in it."""
    vault, part = a_vault(GaussianMoments(1, 1.0))
    view = vault.one_against_rest(0, part)
    with pytest.raises((ValueError, IndexError)):
        view.one_against_rest(0, part).moments(np.arange(D), part.releases[0])


def test_closing_the_vault_closes_its_views():
    release = GaussianMoments(1, 1.0)
    vault, part = a_vault(release)
    views = [vault.one_against_rest(k, part) for k in range(K)]
    with vault:
        views[0].moments(np.arange(D), release)
    for view in views:
        with pytest.raises(RuntimeError, match="closed"):
            view.moments(np.arange(D), release)
        assert targets_of(view).size == 0
        assert not cache_of(view)
    with pytest.raises(RuntimeError, match="closed"):
        vault.one_against_rest(0, part)
    assert len(vault.answers) == 1


def test_closing_a_view_leaves_the_others_open():
    release = GaussianMoments(1, 1.0)
    vault, part = a_vault(release)
    first, second = (vault.one_against_rest(k, part) for k in range(2))
    first.close()
    assert second.moments(np.arange(D), release).shape == (D,)


@pytest.mark.parametrize("k", range(K))
def test_the_target_of_a_view_is_whether_it_is_that_class(k):
    release = GumbelQuantile(1, 0.0)
    vault, part = a_vault(release)
    view = vault.one_against_rest(k, part)
    np.testing.assert_array_equal(targets_of(view), some_rows()[1][:, k])
    targets_of(view)[:] = 7.0  # a copy: what a view does to its targets, the others do not see
    np.testing.assert_array_equal(targets_of(vault), some_rows()[1])


@pytest.mark.parametrize(
    "change",
    [
        lambda part: replace(part, problem=replace(part.problem, n=10 * N)),
        lambda part: replace(part, problem=replace(part.problem, bounds=Bounds(feature=0.1))),
        lambda part: replace(part, problem=replace(part.problem, intercept=False)),
        lambda part: replace(part, problem=replace(part.problem, loss=SQUARED, bounds=Bounds(1.0, target=(-1, 1)))),
        lambda part: replace(part, budget=replace(part.budget, adjacency="add-remove")),
    ],
    ids=["rows", "bounds", "intercept", "loss", "adjacency"],
)
def test_a_view_for_other_public_facts_is_refused(change):
    """They would state a sensitivity that is not the rows'."""
    vault, part = a_vault(GaussianMoments(1, 1.0))
    with pytest.raises(ValueError, match="plan is for other public facts"):
        vault.one_against_rest(0, change(part))


@pytest.mark.parametrize("question", ["moments", "gram", "restricted gradient", "selection", "quantile"])
def test_a_vault_of_many_outputs_answers_gradients_only(question):
    release = GaussianMoments(1, 1.0)
    vault, _ = a_vault(release)
    theta, some = vault.problem.origin(), np.arange(2)
    ask = {
        "moments": lambda: vault.moments(some, release),
        "gram": lambda: vault.gram(some, release, 1.0),
        "restricted gradient": lambda: vault.restricted_gradient(theta, some, release, 1.0),
        "selection": lambda: vault.selection(theta, release, 1.0),
        "quantile": lambda: vault.quantile("targets", 0.5, np.ones(2), theta, release),
    }[question]
    with pytest.raises(ValueError, match="one output at a time"):
        ask()
    assert vault.answers == ()
