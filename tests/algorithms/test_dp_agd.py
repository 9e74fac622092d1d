"""DP-AGD: spending that follows the answers, within its cap; the step length is chosen as the erratum asks."""

import math

import numpy as np
import pytest
from scipy.special import expit

from thresher import DenseClassifier
from thresher.algorithms import DPAGD
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.plan import Plan
from thresher.privacy.releases import GaussianGradient, GumbelStep, ZCDPFilter
from thresher.vaults import CentralVault
from thresher.vaults.losses import LOGISTIC
from thresher.vaults.penalties import Penalty
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

pytestmark = pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")
N, D = 3000, 5


def some_rows(n=N):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, D))
    return X, (rng.random(n) < expit(X @ [3.0, -3.0, 1.0, 0.0, 0.0])).astype(float)


def run(epsilon=1.0, seed=0, **facts):
    algorithm = DPAGD(**facts)
    plan = algorithm.plan(LinearProblem(N, D, Bounds(feature=1.0), sparsity=D, loss=LOGISTIC), Budget(epsilon, 1e-6))
    vault = CentralVault(*some_rows(), plan, NoiseSource(seed))
    return algorithm.run(vault), vault


def test_it_spends_nearly_its_cap_and_never_more():
    for seed in range(5):
        _, vault = run(seed=seed)
        (cap,) = vault.plan.releases
        spent = sum(answer.release.cost().rho for answer in vault.answers)
        assert 0.9 * cap.rho < spent <= cap.rho


def test_gradients_cost_more_after_a_step_of_length_zero():
    """A tiny budget leaves gradients that point nowhere, so zero wins at times and the next gradients are dearer."""
    prices = []
    for seed in range(20):
        _, vault = run(epsilon=0.05, seed=seed)
        rounds = [answer.release for answer in vault.answers if isinstance(answer.release, GaussianGradient)]
        prices.append([release.cost().rho for release in rounds])
    first = prices[0][0]
    assert all(price[0] == first for price in prices)
    assert any(max(price) > 1.05 * first for price in prices)
    second_opinions = {round(rho / first, 6) for price in prices for rho in price}
    assert 0.1 in second_opinions  # growth: a tenth of the price buys a second opinion ...
    assert 1.1 in second_opinions  # ... and the next gradient costs a tenth more


def test_a_second_opinion_is_weighted_by_its_price():
    class Script:
        """Two gradients, of which the second is certain; zero wins once."""

        def __init__(self, plan):
            self.plan, self.problem = plan, plan.problem
            self.gradients = iter([np.array([1.0, 0.0]), np.array([0.0, 10.0])])
            self.choices, self.directions = iter([0, 5]), []

        def gradient(self, theta, release, clip):
            return next(self.gradients)

        def step_length(self, theta, direction, lengths, release, clip):
            self.directions.append(direction)
            return next(self.choices)

    algorithm = DPAGD(growth=0.1)
    plan = algorithm.plan(
        LinearProblem(10, 2, Bounds(row=1.0), sparsity=2, loss=LOGISTIC, intercept=False), Budget(1.0, 1e-6)
    )
    vault = Script(plan)
    with pytest.raises(StopIteration):
        algorithm.run(vault)
    np.testing.assert_allclose(vault.directions[0], [1.0, 0.0])
    np.testing.assert_allclose(vault.directions[1], np.array([1.0, 1.0]) / math.sqrt(2))


def test_the_step_length_with_the_least_loss_and_penalty_is_chosen_without_noise():
    X, y = some_rows()
    penalty = Penalty("nonconvex", 0.05)
    problem = LinearProblem(N, D, Bounds(feature=1.0), sparsity=D, loss=LOGISTIC, intercept=False, penalty=penalty)
    release = GumbelStep(1, 0.0)
    vault = CentralVault(X, y, Plan("test", problem, Budget(math.inf, 1e-6), (release,)), NoiseSource(0))
    theta, direction = np.full(D, 0.1), np.array([-1.0, 1.0, 0.0, 0.5, 0.0])
    lengths = np.linspace(0, 6, 13)
    points = [theta - length * direction for length in lengths]
    objective = [
        np.mean(np.minimum(np.logaddexp(0, X @ point) - y * (X @ point), 2.0)) + penalty.value(point)
        for point in points
    ]
    assert 0 < np.argmin(objective) < 12
    assert vault.step_length(theta, direction, lengths, release, clip=2.0) == np.argmin(objective)
    assert vault.answers[0].sensitivity == 2.0 / N


def test_it_learns_and_its_certificate_lists_what_the_filter_let_pass():
    X, y = some_rows(20_000)
    model = DenseClassifier(1.0, 1e-6, algorithm="dp-agd", feature_bound=1.0, random_state=0).fit(X, y)
    assert model.score(X, y) > np.mean((X @ [3.0, -3.0, 1.0, 0.0, 0.0] > 0) == y) - 0.03
    certificate = model.certificate_
    assert certificate.releases[0]["release"]["kind"] == "ZCDPFilter"
    passed = certificate.releases[1:]
    assert {entry["release"]["kind"] for entry in passed} == {"GaussianGradient", "GumbelStep"}
    assert all(entry["within"] == "filter" for entry in passed)
    assert certificate.verify()


def test_it_refuses_to_run_without_a_budget_and_with_impossible_hyperparameters():
    with pytest.raises(ValueError, match="dp-agd runs until its budget is spent"):
        DPAGD().plan(LinearProblem(N, D, Bounds(row=1.0), sparsity=D, loss=LOGISTIC), Budget(math.inf, 1e-6))
    for wrong in ({"splits": 0}, {"growth": -1.0}, {"clip": 0.0}, {"loss_clip": math.inf}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            DPAGD(**wrong)


def test_its_plan_is_one_cap():
    plan = DPAGD().plan(LinearProblem(N, D, Bounds(row=1.0), sparsity=D, loss=LOGISTIC), Budget(1.0, 1e-6))
    assert plan.releases == (ZCDPFilter.calibrated(Budget(1.0, 1e-6)),)
    assert 0.999 < plan.epsilon <= 1.0


@pytest.mark.parametrize("hardened", [False, True])
def test_what_the_certificate_tells_of_a_step_length_is_the_same_for_neighbours(hardened):
    """The scale on record must not follow the losses, not even in its last bits."""
    X, y = some_rows()
    release, told = GumbelStep(1, 5.0), set()
    problem = LinearProblem(
        N, D, Bounds(feature=1.0), sparsity=D, loss=LOGISTIC, intercept=False, penalty=Penalty("ridge", 0.1)
    )
    plan = Plan("test", problem, Budget(math.inf, 1e-6), (release,))
    for row in range(12):
        labels = y.copy()
        labels[row] = 1 - labels[row]
        vault = CentralVault(X, labels, plan, NoiseSource(0, hardened=hardened))
        vault.step_length(np.full(D, 0.1), np.ones(D), np.linspace(0, 6, 13), release, clip=2.0)
        told.add((vault.answers[0].sensitivity, vault.answers[0].scale))
    assert len(told) == 1


def test_a_first_round_that_takes_all_is_refused():
    with pytest.raises(ValueError, match="splits=1"):
        DPAGD(splits=1)
