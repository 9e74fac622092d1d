"""The baselines of the thesis' chapter 6: priced within the budget where they can be, noise as stated, bounded rows."""

import math
from dataclasses import replace

import numpy as np
import pytest

from thresher.algorithms import ObjectivePerturbation, OutputPerturbation, RajkumarAgarwal
from thresher.algorithms.objective_perturbation import default_ridge
from thresher.federated import FederatedDenseClassifier, FederatedDenseRegressor
from thresher.federated.aggregation import ReferenceAggregation
from thresher.federated.plans import with_joint_noise, with_noise_for_the_smallest
from thresher.federated.protocols import DENSE, PathakVault, PrintedVault, protocol_of
from thresher.federated.vault import DataSets, GatheredVault, SeparateVault, parties_of
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget, PrivacyWarning
from thresher.privacy.releases import GaussianGradient, PrintedGradient
from thresher.vaults.central.minimisers import curvature_ratio
from thresher.vaults.losses import LOGISTIC
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

SIZES = (120, 40, 1, 60)  # unequal, and one party has a single row
D = 6
SOUND = [name for name in DENSE if name != "rajkumar-agarwal"]
FACTS = {"row_bound": 1.0, "penalty": 0.05, "random_state": 0}


def data_sets(sizes=SIZES, d=D, seed=0, numbers=False):
    rng = np.random.default_rng(seed)
    sets = []
    for n in sizes:
        X = rng.uniform(-1, 1, (n, d)) / math.sqrt(d)
        y = X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=n)
        sets.append((X, y if numbers else (y > 0).astype(int)))
    return sets


def problem_of(sizes=SIZES, d=D):
    return LinearProblem(sum(sizes), d, Bounds(row=1.0), sparsity=d, loss=LOGISTIC, intercept=False)


def vault_of(kind, sets, plan, seed=0):
    """A vault over these parties, its noise repeatable."""
    X, y = DataSets([X for X, _ in sets]), np.concatenate([y for _, y in sets]).astype(float)
    noise = NoiseSource(seed)
    parties = parties_of(X, y, plan, noise, X.sizes)
    if issubclass(kind, GatheredVault):
        return kind(parties, X.sizes, ReferenceAggregation(noise), plan, noise)
    return kind(parties, plan, noise)


def pathak_plan(problem, ridge=0.1):
    return with_joint_noise(OutputPerturbation(ridge=ridge, clip=1.0).plan(problem, Budget(1.0, 1e-6)), "reference")


def objective_plan(problem, sizes, ridge=0.1):
    algorithm = ObjectivePerturbation(ridge=ridge, clip=1.0)
    return with_noise_for_the_smallest(algorithm.plan(problem, Budget(1.0, 1e-6)), algorithm, sizes)


# -- fits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SOUND)
@pytest.mark.parametrize("epsilon", [0.2, 2.0])
def test_a_fit_costs_no_more_than_its_budget_whatever_the_sizes(name, epsilon):
    model = FederatedDenseClassifier(epsilon, 1e-6, algorithm=name, classes=[0, 1], **FACTS).fit(data_sets())
    assert 0.9 * epsilon <= model.plan_.epsilon <= epsilon
    certificate = model.certificate_
    assert certificate.verify().ok
    assert (certificate.epsilon, certificate.grade) == (epsilon, "conditional")  # random_state was set
    assert "4 parties; how many rows each holds is public: 120, 40, 1, 60" in certificate.notes
    assert np.all(np.isfinite(model.coef_))


@pytest.mark.parametrize("name", DENSE)
@pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")
def test_numbers_are_fitted_too(name):
    model = FederatedDenseRegressor(2.0, 1e-6, algorithm=name, target_bound=1.0, **FACTS)
    assert model.fit(data_sets(numbers=True)).certificate_.verify().ok
    assert model.coef_.shape == (D,)


def test_rajkumar_and_agarwal_promise_nothing():
    model = FederatedDenseClassifier(0.5, 1e-6, algorithm="rajkumar-agarwal", classes=[0, 1], **FACTS)
    with pytest.warns(PrivacyWarning, match="costs epsilon=inf where 0.5 is claimed"):
        certificate = model.fit(data_sets()).certificate_
    assert (certificate.epsilon, certificate.claimed_epsilon, certificate.grade) == (None, 0.5, "printed")
    assert certificate.verify().ok
    rounds = model.plan_.settings["rounds"]
    assert f"the epsilon claimed is spent in each of {rounds} rounds" in certificate.notes
    assert certificate.trust["model"] == "federated, simulated in one process"


def test_an_unknown_protocol_is_refused_with_the_names_of_all():
    with pytest.raises(ValueError, match=r"'pathak', 'rajkumar-agarwal', or an instance"):
        protocol_of("patak", DENSE)


@pytest.mark.parametrize("name", ["local-obj-p", "pathak"])
def test_a_good_model_is_found_where_there_are_rows_and_budget(name):
    """A separating direction of 6, over two parties: 100 times their noise."""
    facts = {"algorithm": name, "row_bound": 1.0, "penalty": 0.01, "classes": [0, 1], "fit_intercept": False}
    sets = data_sets((20_000, 20_000))
    model = FederatedDenseClassifier(20.0, 1e-6, random_state=0, **facts).fit(sets)
    assert np.mean([model.score(X, y) for X, y in sets]) > 0.85
    assert model.coef_[0, 0] > 1
    assert model.coef_[0, 1] < -1


# -- Pathak -----------------------------------------------------------------------------------------------------


def test_pathaks_noise_hides_a_row_in_the_smallest_partys_own_minimiser():
    plan = pathak_plan(problem_of())
    vault = vault_of(PathakVault, data_sets(), plan)
    vault.minimiser(plan.releases[0], 1.0, 0.1)
    (answer,) = vault.answers
    assert answer.sensitivity == pytest.approx(2 / (1 * 0.1), rel=0.02)  # and 1 % for where the search stops
    assert answer.scale == pytest.approx(plan.releases[0].multiplier * answer.sensitivity)


@pytest.mark.parametrize("m", [2, 10])
def test_pathaks_noise_is_m_times_what_parties_of_one_size_need(m):
    sizes = (30,) * m
    plan, scales = pathak_plan(problem_of(sizes)), []
    for kind in (PathakVault, GatheredVault):
        vault = vault_of(kind, data_sets(sizes), plan)
        vault.minimiser(plan.releases[0], 1.0, 0.1)
        scales.append(vault.answers[0].scale)
    assert scales[0] / scales[1] == pytest.approx(m, rel=1e-9)


def test_pathaks_gradients_are_those_of_any_joint_vault():
    """Only minimisers have a smallest party: the noise of a gradient is for all rows."""
    problem = problem_of()
    budget = Budget(1.0, 1e-6)
    plan = pathak_plan(problem)
    plan = with_joint_noise(replace(plan, releases=(GaussianGradient.calibrated(budget, 1),)), "reference")
    vault = vault_of(PathakVault, data_sets(), plan)
    vault.gradient(problem.origin(), plan.releases[0], 1.0)
    assert vault.answers[0].sensitivity == pytest.approx(2 / sum(SIZES), rel=1e-9)


# -- objective perturbation at each party -------------------------------------------------------------------------


@pytest.mark.parametrize("smallest", [1, 10, 1000])
def test_the_ratio_that_is_paid_for_is_that_of_the_smallest_party(smallest):
    sizes = (2000, smallest, 500)
    plan = objective_plan(problem_of(sizes), sizes)
    alone = replace(plan.problem, n=min(sizes))
    (release,) = plan.releases
    assert release.curvature_ratio == curvature_ratio(alone, np.arange(D), plan.settings["ridge"])
    assert release.curvature_ratio <= math.expm1(0.4 * 1.0) * (1 + 1e-12)  # its share of epsilon
    assert 0.999 < plan.epsilon <= 1.0


def test_the_ridge_grows_where_the_one_asked_for_is_too_small_for_the_budget():
    """Erratum E-27: with n lambda = .5 the term log(1 + 1/(4 n lambda)) leaves .09 of epsilon=.5, with less nothing."""
    ridges = [objective_plan(problem_of(s), s, ridge=1e-3).settings["ridge"] for s in ((500, 500), (5, 500), (1, 500))]
    assert ridges[1] == pytest.approx(100 * ridges[0])
    assert ridges[2] == pytest.approx(5 * ridges[1])
    assert ridges[2] == default_ridge(replace(problem_of(), n=1), Budget(1.0, 1e-6))
    assert objective_plan(problem_of((1, 500)), (1, 500), ridge=7.0).settings["ridge"] == 7.0


def test_a_ridge_is_that_of_the_coefficients_whatever_the_bound():
    problem = LinearProblem(10**6, 3, Bounds(row=5.0), sparsity=3, loss=LOGISTIC, intercept=False)
    plan = ObjectivePerturbation(ridge=0.1).plan(problem, Budget(1.0, 1e-6))
    assert plan.settings["ridge"] == pytest.approx(0.1 / 25)  # of phi = 5 theta


def test_parties_refuse_a_plan_that_was_made_for_more_rows_than_they_have():
    plan = ObjectivePerturbation(ridge=1e-6, clip=1.0).plan(problem_of(), Budget(1.0, 1e-6))
    vault = vault_of(SeparateVault, data_sets(), plan)
    with pytest.raises(ValueError, match=r"ridge=.* is too small: curvature_ratio="):
        ObjectivePerturbation().run(vault)


def test_other_plans_do_not_depend_on_the_sizes():
    algorithm = OutputPerturbation(ridge=0.1)
    plan = algorithm.plan(problem_of(), Budget(1.0, 1e-6))
    assert with_noise_for_the_smallest(plan, algorithm, (1, 220)) is plan


# -- noise as stated ----------------------------------------------------------------------------------------------

WIDE = 1000  # coordinates; the sd of as many draws is within 5 / sqrt(2 * 10^3) = 11 % but for 1 in 10^6 runs


def empty_sets(sizes=SIZES):
    """Rows of zeros: every minimiser and gradient is 0, and what is answered is the noise."""
    return [(np.zeros((n, WIDE)), np.zeros(n)) for n in sizes]


def test_pathaks_noise_is_drawn_as_it_is_recorded():
    plan = pathak_plan(problem_of(d=WIDE))
    vault = vault_of(PathakVault, empty_sets(), plan)
    noise = vault.minimiser(plan.releases[0], 1.0, 0.1)
    assert noise.std() == pytest.approx(vault.answers[0].scale, rel=0.11)


def test_each_partys_objective_has_noise_of_its_own():
    """-b_j / ridge from each, b_j of sd multiplier * 2 clip / n_j, weighted by n_j / n: all parties' weigh the same."""
    plan = objective_plan(problem_of(d=WIDE), SIZES)
    noise = ObjectivePerturbation().run(vault_of(SeparateVault, empty_sets(), plan))
    each = plan.releases[0].multiplier * 2 / (sum(SIZES) * plan.settings["ridge"])
    assert noise.std() == pytest.approx(math.sqrt(len(SIZES)) * each, rel=0.11)


def test_the_printed_noise_is_one_linear_term_and_fresh_laplace_noise():
    """Differences of two rounds are free of the linear term: Laplace noise has kurtosis 6, a difference of two 4.5."""
    plan = replace(pathak_plan(problem_of(d=WIDE)), releases=(PrintedGradient(2, 15.0, 4.0),), calibration="printed")
    vault = vault_of(PrintedVault, empty_sets(), plan)
    n, origin = sum(SIZES), plan.problem.origin()
    first, second = (vault.printed_gradient(origin, plan.releases[0], 1.0) for _ in range(2))
    assert (first - second).std() == pytest.approx(math.sqrt(2) * math.sqrt(2) * 4.0 / n, rel=0.15)  # 5 of its sd
    assert first.std() == pytest.approx(math.hypot(15.0, math.sqrt(2) * 4.0) / n, rel=0.12)
    assert np.corrcoef(first, second)[0, 1] > 0.8  # 225 / 257 = 0.88


def test_what_is_printed_follows_from_epsilon_and_delta():
    plan = RajkumarAgarwal(passes=3).plan(problem_of(), Budget(0.5, 1e-3))
    assert plan.releases == (PrintedGradient(3, 4 * math.sqrt(2 * math.log(1250)), 4.0),)
    assert (plan.calibration, plan.epsilon) == ("printed", math.inf)


# -- one wild row -------------------------------------------------------------------------------------------------


def wild(sets, party):
    """Neighbours: one row of a party is replaced by one that is as long as can be, with the other label."""
    X, y = (part.copy() for part in sets[party])
    X[0], y[0] = 1e300, 1 - y[0]
    return [*sets[:party], (X, y), *sets[party + 1 :]]


def asked(kind, ask, plan, party):
    """How far a wild row moves an answer whose noise is the same, and the vault's record of that answer."""
    vaults = [vault_of(kind, sets, plan) for sets in (data_sets(), wild(data_sets(), party))]
    answers = [ask(vault) for vault in vaults]
    return float(np.linalg.norm(answers[0] - answers[1])), vaults[0].answers[-1]


@pytest.mark.parametrize("party", [0, 2])
def test_a_wild_row_moves_pathaks_answer_by_far_less_than_its_noise_hides(party):
    plan = pathak_plan(problem_of())
    moved, answer = asked(PathakVault, lambda vault: vault.minimiser(plan.releases[0], 1.0, 0.1), plan, party)
    rounding = math.sqrt(D) * answer.scale / plan.releases[0].law.sd
    assert moved <= 1.01 * 2 / (sum(SIZES) * 0.1) + rounding < answer.sensitivity / 50


@pytest.mark.parametrize("party", [0, 2])
def test_a_wild_row_moves_a_partys_perturbed_minimiser_by_what_strong_convexity_allows(party):
    plan = objective_plan(problem_of(), SIZES)
    moved, _ = asked(SeparateVault, ObjectivePerturbation().run, plan, party)
    assert 0 < moved <= 1.01 * 2 / (sum(SIZES) * plan.settings["ridge"])


@pytest.mark.parametrize("party", [0, 2])
def test_a_wild_row_moves_a_printed_gradient_by_its_clip(party):
    plan = RajkumarAgarwal(passes=3, clip=0.3).plan(problem_of(), Budget(0.5, 1e-3))
    theta = np.full(D, 0.5)
    moved, answer = asked(PrintedVault, lambda vault: vault.printed_gradient(theta, *plan.releases, 0.3), plan, party)
    assert 0 < moved <= 2 * 0.3 / sum(SIZES) * (1 + 1e-9) == answer.sensitivity * (1 + 1e-9)


def test_a_printed_gradient_is_answered_only_as_often_as_planned_and_to_its_own_release():
    plan = RajkumarAgarwal(passes=1).plan(problem_of(), Budget(0.5, 1e-3))
    vault = vault_of(PrintedVault, data_sets(), plan)
    with pytest.raises(Exception, match="is not in the plan"):
        vault.printed_gradient(plan.problem.origin(), GaussianGradient(1, 1.0), 1.0)
    vault.printed_gradient(plan.problem.origin(), *plan.releases, 1.0)
    with pytest.raises(Exception, match="is used up"):
        vault.printed_gradient(plan.problem.origin(), *plan.releases, 1.0)
