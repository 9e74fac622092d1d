"""First-order methods: the update rules as written, plans as stated, states that can be saved, models that learn."""

import math

import numpy as np
import pytest
from scipy.special import expit

from thresher import DenseClassifier
from thresher.algorithms import DENSE, DPGD, DPLSSGD, DPSGD, DPSRM, LSSGD, RRPSGD, SGD, STORM, DPAdam, DPLSAdam
from thresher.algorithms.dp_lssgd import smooth
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.releases import GaussianGradient, SampledGradient, SampledMomentum
from thresher.privacy.sensitivity import momentum_clip
from thresher.vaults import CentralVault
from thresher.vaults.losses import LOGISTIC
from thresher.vaults.penalties import Penalty
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

N, D = 400, 6
BUDGET = Budget(1.0, 1e-5)
STEPWISE = [
    DPSRM(),
    DPSRM(first_batch=100),
    DPLSSGD(),
    DPLSAdam(),
    DPSGD(),
    DPAdam(),
    DPGD(passes=20),
    RRPSGD(passes=0.2),
]
ids = pytest.mark.parametrize("algorithm", STEPWISE, ids=lambda algorithm: algorithm.name)


def problem_of(**facts):
    return LinearProblem(**{"n": N, "d": D, "sparsity": D, "loss": LOGISTIC, "bounds": Bounds(row=2.0), **facts})


def some_rows(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, D))
    return X, (rng.random(n) < expit(X @ [4.0, -4.0, 2.0, 0.0, 0.0, 1.0])).astype(float)


def vault_of(algorithm, budget=BUDGET, seed=0, problem=None):
    return CentralVault(*some_rows(), algorithm.plan(problem or problem_of(), budget), NoiseSource(seed))


class Recorder:
    """A vault that keeps its answers."""

    def __init__(self, vault):
        self._vault, self.heard = vault, []

    def __getattr__(self, name):
        attribute = getattr(self._vault, name)
        if name not in ("gradient", "sampled_gradient", "sampled_momentum"):
            return attribute

        def ask(*args, **kwargs):
            answer = attribute(*args, **kwargs)
            self.heard.append((args, kwargs, answer.copy()))
            return answer

        return ask


def trace(algorithm, rounds=4, **facts):
    """The answers of the first rounds and the iterates they led to."""
    vault = Recorder(vault_of(algorithm, problem=problem_of(**facts)))
    state = algorithm.start(vault)
    thetas = [state["theta"]]
    for _ in range(rounds):
        state = algorithm.advance(vault, state)
        thetas.append(state["theta"])
    return [answer for _, _, answer in vault.heard], thetas, vault


# -- update rules -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("momentum", [0.0, 0.8])
@pytest.mark.parametrize("kind", [DPSGD, DPLSSGD, DPGD])
def test_dp_sgd_is_momentum_on_noisy_gradients(kind, momentum):
    answers, thetas, vault = trace(kind(momentum=momentum))
    velocity = np.zeros(D + 1)
    for t, answer in enumerate(answers):
        velocity = momentum * velocity + (1 - momentum) * (smooth(answer, 1.0) if kind is DPLSSGD else answer)
        np.testing.assert_allclose(thetas[t + 1], thetas[t] - vault.plan.settings["step"] * velocity, rtol=1e-12)


@pytest.mark.parametrize("penalty", [Penalty("ridge", 0.3), Penalty("nonconvex", 0.3)])
def test_the_penalty_is_added_exactly_and_leaves_the_intercept_alone(penalty):
    answers, thetas, vault = trace(DPSGD(momentum=0.0), penalty=penalty)
    for t, answer in enumerate(answers):
        coefficients = thetas[t][:D]
        slope = 0.3 * coefficients if penalty.kind == "ridge" else 0.6 * coefficients / (1 + coefficients**2) ** 2
        expected = thetas[t] - vault.plan.settings["step"] * (answer + np.append(slope, 0.0))
        np.testing.assert_allclose(thetas[t + 1], expected, rtol=1e-12)


@pytest.mark.parametrize("kind", [DPAdam, DPLSAdam])
def test_dp_adam_is_adam_on_noisy_gradients(kind):
    answers, thetas, vault = trace(kind())
    mean, square = np.zeros(D + 1), np.zeros(D + 1)
    for t, answer in enumerate(answers, 1):
        answer = smooth(answer, 1.0) if kind is DPLSAdam else answer
        mean, square = 0.9 * mean + 0.1 * answer, 0.99 * square + 0.01 * answer**2
        move = mean / (1 - 0.9**t) / np.sqrt(square / (1 - 0.99**t))
        np.testing.assert_allclose(thetas[t], thetas[t - 1] - vault.plan.settings["step"] * move, rtol=1e-12)


@pytest.mark.parametrize("first_batch", [None, 100, N], ids=["at rest", "first batch", "all rows first"])
def test_dp_srm_is_recursive_momentum(first_batch):
    algorithm = DPSRM(first_batch=first_batch, momentum=0.3, reach=0.01)
    answers, thetas, vault = trace(algorithm)
    estimate, settings = np.zeros(D + 1), vault.plan.settings
    for t, answer in enumerate(answers):
        estimate = answer if t == 0 and first_batch else 0.7 * estimate + answer
        step = min(settings["step"], 0.01 / np.linalg.norm(estimate))
        np.testing.assert_allclose(thetas[t + 1], thetas[t] - step * estimate, rtol=1e-12)
        assert np.linalg.norm(thetas[t + 1] - thetas[t]) <= 0.01 * (1 + 1e-12)


def test_dp_srm_asks_about_the_last_two_points_and_its_clip_follows_the_move():
    _, thetas, vault = trace(DPSRM(momentum=0.3))
    settings, problem = vault.plan.settings, vault.problem
    for t, (args, kwargs, _) in enumerate(vault.heard):
        np.testing.assert_array_equal(args[0], thetas[t])
        np.testing.assert_array_equal(args[1], thetas[max(t - 1, 0)])
        moved = np.linalg.norm(thetas[t] - thetas[max(t - 1, 0)])
        change = min(settings["difference_clip"], 0.25 * problem.row_norm**2 * moved)
        assert kwargs == {"difference_clip": pytest.approx(change), "momentum": 0.3}
        clip = momentum_clip(settings["clip"], change, 0.3)
        assert vault.answers[t].clip == pytest.approx(clip)
        assert vault.answers[t].sensitivity == pytest.approx(2 * clip / settings["batch"])


def test_no_gradient_changes_by_more_than_the_bound_that_the_clip_follows():
    rng = np.random.default_rng(0)
    problem = problem_of(intercept=False)
    rows = rng.normal(size=(200, D))
    rows *= 2.0 / np.linalg.norm(rows, axis=1, keepdims=True)
    for scale in (0.01, 1.0, 10.0):
        one, other = rng.normal(size=D), scale * rng.normal(size=D)
        change = (expit(rows @ one) - expit(rows @ (one + other)))[:, None] * rows
        assert np.linalg.norm(change, axis=1).max() <= problem.gradient_change(np.linalg.norm(other))


# -- what is handed over --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [DPSGD, DPSRM, DPAdam])
def test_the_output_is_the_mean_of_the_last_quarter_or_the_last_iterate_or_one_of_all(kind):
    runs = {}
    for output in ("average", "last", "random"):
        algorithm = kind(output=output)
        vault = vault_of(algorithm)
        state = algorithm.start(vault)
        thetas, rounds = [], vault.plan.settings["rounds"]
        for _ in range(rounds):
            state = algorithm.advance(vault, state)
            thetas.append(state["theta"])
        runs[output] = algorithm.finish(vault, state), np.array(thetas)
        assert {"average": "last quarter", "last": "the last iterate", "random": "uniformly at random"}[output] in (
            vault.plan.notes[0]
        )
    np.testing.assert_allclose(runs["average"][0], runs["average"][1][rounds * 3 // 4 :].mean(axis=0), rtol=1e-9)
    np.testing.assert_array_equal(runs["last"][0], runs["last"][1][-1])
    assert (runs["random"][1] == runs["random"][0]).all(axis=1).sum() == 1


def test_a_random_iterate_is_any_of_them():
    """400 draws of one of 4 rounds: chi-square at 1e-6."""
    from scipy.stats import chisquare

    algorithm = DPGD(passes=4, output="random")
    drawn = [algorithm.start(vault_of(algorithm, seed=seed))["keep_at"] for seed in range(400)]
    assert set(drawn) == {1, 2, 3, 4}
    assert chisquare(np.bincount(drawn)[1:]).pvalue > 1e-6


@ids
def test_a_run_is_its_rounds_one_after_the_other_and_may_be_interrupted_anywhere(algorithm):
    """The state is plain numbers and arrays: it survives being written down after every round."""
    whole = algorithm.run(vault_of(algorithm))
    vault = vault_of(algorithm)
    state = algorithm.start(vault)
    for _ in range(vault.plan.settings["rounds"]):
        assert all(isinstance(value, (int, float, np.ndarray)) for value in state.values())
        state = algorithm.advance(vault, {key: np.array(v) if np.ndim(v) else v for key, v in state.items()})
    np.testing.assert_array_equal(algorithm.finish(vault, state), whole)
    assert state["t"] == vault.plan.settings["rounds"] == len(vault.answers)


# -- plans ----------------------------------------------------------------------------------------------------------


def test_batches_passes_and_rounds_agree():
    problem = problem_of(n=10_000)
    plan = DPSGD().plan(problem, BUDGET)
    rounds, batch = plan.settings["rounds"], plan.settings["batch"]
    assert 4.5 < rounds * batch / 10_000 <= 5
    assert plan.releases == (SampledGradient.calibrated(BUDGET, rounds, batch, 10_000, "poisson"),)
    given = DPSGD(batch=250, passes=3).plan(problem, BUDGET)
    assert (given.settings["rounds"], given.settings["batch"]) == (120, 250)
    fixed = DPSGD(batch=250, passes=3, sampling="fixed").plan(problem, BUDGET)
    assert fixed.releases[0].multiplier > 1.5 * given.releases[0].multiplier


def test_a_batch_of_all_rows_is_not_drawn_and_is_priced_exactly():
    for algorithm in (DPGD(passes=30), DPSGD(batch=N, passes=30), DPSGD(batch=10 * N, passes=30)):
        plan = algorithm.plan(problem_of(), BUDGET)
        assert plan.releases == (GaussianGradient.calibrated(BUDGET, 30),)
        assert plan.settings["sampling"] == "none"


def test_dp_srms_first_estimate_is_as_noisy_as_the_later_ones():
    for first_batch in (50, N):
        plan = DPSRM(first_batch=first_batch, momentum=0.1, batch=20).plan(problem_of(), BUDGET)
        (first, later), settings = plan.releases, plan.settings
        one = first.multiplier * settings["clip"] / first_batch
        gathered = later.multiplier * momentum_clip(settings["clip"], settings["difference_clip"], 0.1) / 20
        assert one == pytest.approx(gathered / math.sqrt(0.1 * 1.9))
        assert isinstance(later, SampledMomentum)
        assert 0.99 < plan.epsilon <= 1.0


@ids
def test_the_step_is_a_public_rule_and_shrinks_with_the_noise(algorithm):
    problem = problem_of(n=2000)
    loud, quiet = (algorithm.plan(problem, Budget(epsilon, 1e-5)).settings for epsilon in (0.01, 1.0))
    assert 0 < loud["step"] * loud["rounds"] <= quiet["step"] * quiet["rounds"] * 1.0001
    given = type(algorithm)(step=0.123, passes=1).plan(problem, BUDGET)
    assert given.settings["step"] == 0.123


@pytest.mark.parametrize("kind", [SGD, LSSGD, STORM])
def test_baselines_without_privacy_refuse_a_finite_epsilon_and_neither_clip_nor_add_noise(kind):
    with pytest.raises(ValueError, match=r"is not private, so it cannot keep epsilon=1; use epsilon=float\('inf'\)"):
        kind().plan(problem_of(), BUDGET)
    plan = kind().plan(problem_of(), Budget(math.inf, 1e-5))
    assert plan.settings["clip"] == "none"
    assert all(release.multiplier == 0 for release in plan.releases)


@pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")
@pytest.mark.parametrize("name", ["storm", "sgd"])
def test_baselines_without_privacy_reach_the_minimum(name):
    X, y = some_rows(5000)
    model = DenseClassifier(math.inf, algorithm=name, row_bound=3.0, penalty=1e-3, random_state=0).fit(X, y)
    from sklearn.linear_model import LogisticRegression

    best = LogisticRegression(C=1 / (1e-3 * len(y))).fit(X, y)

    def loss(m):
        margins = m.decision_function(X)
        return np.mean(np.logaddexp(0, margins) - y * margins) + 5e-4 * np.sum(np.square(m.coef_))

    assert loss(best) <= loss(model) + 1e-9
    assert loss(model) < loss(best) + 2e-3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DPSGD(passes=0), "passes=0 must be a positive"),
        (lambda: DPSGD(batch=0), "batch=0 must be a whole number"),
        (lambda: DPSGD(batch=1.5), "batch=1.5 must be a whole number"),
        (lambda: DPSGD(step=-1.0), "step=-1.0 must be a positive"),
        (lambda: DPSGD(clip=math.inf), "clip=inf must be a positive"),
        (lambda: DPSGD(sampling="shuffled"), "sampling='shuffled' must be 'poisson' or 'fixed'"),
        (lambda: DPSGD(output="best"), "output='best' must be one of"),
        (lambda: DPSGD(momentum=1.0), "momentum=1.0 must lie from 0 to below 1"),
        (lambda: DPGD(batch=10), "dp-gd asks about all rows"),
        (lambda: DPAdam(second=1.0), "second=1.0 must lie"),
        (lambda: DPSRM(momentum=0.0), "momentum=0.0 must lie above 0"),
        (lambda: DPSRM(reach=0.0), "reach=0.0 must be a positive"),
        (lambda: DPSRM(difference_clip=-1.0), "difference_clip=-1.0 must be a positive"),
        (lambda: DPSRM(first_batch=0), "first_batch=0 must be a whole number"),
        (lambda: DPSGD(sampling="fixed").plan(problem_of(), Budget(1.0, 1e-5, "add-remove")), "'replace-one' only"),
    ],
)
def test_impossible_hyperparameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# -- learning -------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")
@pytest.mark.parametrize("name", [name for name, kind in DENSE.items() if getattr(kind, "private", True)])
def test_every_private_method_learns(name):
    """20,000 easy rows at epsilon 1: within 3 points of the best linear rule's accuracy, with three seeds."""
    X, y = some_rows(20_000)
    best = np.mean((X @ [4.0, -4.0, 2.0, 0.0, 0.0, 1.0] > 0) == y)
    algorithm = RRPSGD(passes=0.5, output="average") if name == "rrpsgd" else name
    for seed in range(3):
        model = DenseClassifier(1.0, 1e-6, algorithm=algorithm, row_bound=2.5, random_state=seed).fit(X, y)
        assert model.score(X, y) > best - 0.03
