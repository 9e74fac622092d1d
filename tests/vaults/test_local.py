"""The local vault: reports in, their mean out, as planned and no more."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest

from thresher.algorithms import LDPIHT
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget, BudgetExceeded
from thresher.privacy.plan import Plan
from thresher.privacy.releases import GaussianGradient, HypercubeReport, SphereReport
from thresher.vaults import SimulatedVault
from thresher.vaults.losses import SQUARED
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomisers import VECTOR_RANDOMISERS
from thresher.vaults.randomness import NoiseSource
from thresher_papers.datasets import ldp_law

N, D = 40_000, 8


def facts(intercept=False):
    return LinearProblem(N, D, Bounds(feature=1.0, target=(-1.0, 1.0)), sparsity=2, loss=SQUARED, intercept=intercept)


def planned(release, problem=None):
    return Plan("probe", problem or facts(), Budget(1.0, 0.0), (release,), trust="local")


def report(times=1, epsilon=1.0):
    return HypercubeReport(times, epsilon, D, 1, 1)


def rows(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.choice([-1.0, 1.0], (n, D))
    return X, np.clip(0.5 * X[:, 0] + 0.2 * rng.normal(size=n), -1, 1)


@pytest.mark.parametrize("name", VECTOR_RANDOMISERS)
def test_the_answer_is_the_mean_gradient_plus_noise_of_the_known_size(name):
    """20 vaults, D coordinates each: the mean square over its expectation lies within 1 +- 4 sqrt(2/160)."""
    X, y = rows()
    release = LDPIHT(iterations=1, randomiser=name).plan(facts(), Budget(1.0, 0.0)).releases[0]
    theta, clip = np.full(D, 0.1), 0.5
    exact = X.T @ np.clip(X @ theta - y, -clip, clip) / N
    off = []
    for seed in range(20):
        with SimulatedVault(X, y, planned(release), NoiseSource(seed)) as vault:
            off.append(vault.gradient(theta, release, clip) - exact)
    randomiser = VECTOR_RANDOMISERS[name](D, 1.0)
    reach = np.sqrt(D) if isinstance(release, SphereReport) else 1.0
    residuals = np.clip(X @ theta - y, -clip, clip)
    variance = (randomiser.second_moment * (clip * reach) ** 2 - D * np.mean(residuals**2)) / D / N
    assert np.mean(np.square(off)) / variance == pytest.approx(1, abs=4 * np.sqrt(2 / 160))
    assert np.abs(np.mean(off, axis=0)).max() < 4 * np.sqrt(variance / 20)


def test_a_question_once_too_often_or_not_in_the_plan_gets_no_answer():
    X, y = rows(100)
    with SimulatedVault(X, y, planned(report(times=2)), NoiseSource(0)) as vault:
        vault.gradient(np.zeros(D), report(times=2), 0.5)
        with pytest.raises(BudgetExceeded, match="not in the plan"):
            vault.gradient(np.zeros(D), report(times=2, epsilon=0.5), 0.5)
        with pytest.raises(BudgetExceeded, match="not in the plan"):
            vault.gradient(np.zeros(D), GaussianGradient(1, 1.0), 0.5)
        vault.gradient(np.zeros(D), report(times=2), 0.5)
        with pytest.raises(BudgetExceeded, match="used up"):
            vault.gradient(np.zeros(D), report(times=2), 0.5)
        assert len(vault.answers) == 2


@pytest.mark.parametrize("clip", [0.0, -1.0, np.nan, np.inf, 1e200])
def test_a_clip_that_bounds_nothing_is_refused_before_anybody_reports(clip):
    X, y = rows(100)
    with SimulatedVault(X, y, planned(report()), NoiseSource(0)) as vault:
        with pytest.raises(ValueError, match="clip="):
            vault.gradient(np.zeros(D), report(), clip)
        with pytest.raises(ValueError, match="not finite"):
            vault.gradient(np.full(D, np.nan), report(), 0.5)
        with pytest.raises(ValueError, match="theta has shape"):
            vault.gradient(np.zeros(D + 1), report(), 0.5)
        vault.gradient(np.zeros(D), report(), 0.5)  # nothing was spent so far


def test_a_closed_vault_answers_nothing_and_a_vault_never_leaves_its_process():
    X, y = rows(100)
    vault = SimulatedVault(X, y, planned(report()), NoiseSource(0))
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(vault)
    vault.close()
    with pytest.raises(BudgetExceeded, match="closed"):
        vault.gradient(np.zeros(D), report(), 0.5)


def test_more_rounds_than_people_are_refused():
    X, y = rows(3)
    with pytest.raises(ValueError, match="4 rounds need at least as many people, there are 3"):
        SimulatedVault(X, y, planned(report(times=4)), NoiseSource(0))


def test_the_record_states_radius_diameter_and_size_of_a_report():
    X, y = rows(100)
    with SimulatedVault(X, y, planned(report()), NoiseSource(0)) as vault:
        vault.gradient(np.zeros(D), report(), 0.5)
    (answer,) = vault.answers
    size = VECTOR_RANDOMISERS["one-coordinate"](D, 1.0).size
    assert (answer.clip, answer.sensitivity, answer.scale) == (0.5, 1.0, pytest.approx(0.5 * size))


def test_memory_beside_the_records_is_that_of_a_block_and_a_few_numbers_per_person():
    """The table is 100 bytes a person; as floats it would be 800. Seen: 34 MB at a million people, 27 at a tenth."""
    n = 300_000
    law = ldp_law(n, 100, 5)
    X, y, _ = law.draw(seed=0)
    problem = LinearProblem(n, 100, Bounds(feature=1.0, target=(-5.05, 5.05)), sparsity=5, loss=SQUARED)
    plan = LDPIHT().plan(problem, Budget(1.0, 0.0))
    tracemalloc.start()
    with SimulatedVault(X, y, plan, NoiseSource(0)) as vault:
        LDPIHT().run(vault)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * 8 * 2**20 + 40 * n
