"""A crowd of parties of one row each answers as that many real parties would."""

from dataclasses import replace

import numpy as np
import pytest

from thresher.algorithms import DPGD, ObjectivePerturbation, OutputPerturbation
from thresher.federated.plans import with_joint_noise, with_noise_for_the_smallest
from thresher.federated.vault import Party
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.releases import PerturbedMinimiser
from thresher.vaults.losses import LOGISTIC, SQUARED
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource
from thresher_papers.experiments.crowd import Crowd

N, D = 60, 5
PROBLEMS = {
    "logistic": LinearProblem(N, D, Bounds(row=1.0), sparsity=D, loss=LOGISTIC, intercept=False),
    "squared": LinearProblem(N, D, Bounds(row=1.0, target=(-1.0, 1.0)), sparsity=D, loss=SQUARED, intercept=False),
}
BUDGET = Budget(1.0, 1e-6)
each_loss = pytest.mark.parametrize("loss", PROBLEMS)


def rows(loss, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) / 2  # some are clipped
    y = np.clip(X[:, 0], -1, 1)
    return X, y if loss == "squared" else (y > 0).astype(float)


def crowd_and_parties(loss, plan):
    X, y = rows(loss)
    alone = replace(plan, problem=replace(plan.problem, n=1))
    return Crowd(X, y, plan, NoiseSource(0)), [Party(X[[i]], y[[i]], alone, NoiseSource(i)) for i in range(N)]


@each_loss
def test_its_gradient_is_rounded_row_by_row(loss):
    plan = with_joint_noise(DPGD(passes=1).plan(PROBLEMS[loss], BUDGET), "reference")
    crowd, parties = crowd_and_parties(loss, plan)
    theta, (release,) = np.linspace(-1, 1, D), plan.releases
    parts = [party.gradient_part(theta, release, 0.7, 1 / N, 1e-4) for party in parties]
    whole = crowd.gradient_part(theta, release, 0.7, 1.0, 1e-4)
    assert np.abs(whole - np.sum(parts, axis=0)).max() <= 1  # a tie may fall either way
    together = Party(*rows(loss), plan, NoiseSource(0)).gradient_part(theta, release, 0.7, 1.0, 1e-4)
    assert 1 < np.abs(whole - together).max() < 5 * np.sqrt(N / 12)  # what rounding once, and not row by row, differs


@each_loss
def test_its_minimisers_are_those_of_single_rows(loss):
    plan = with_joint_noise(OutputPerturbation(ridge=0.5).plan(PROBLEMS[loss], BUDGET), "reference")
    crowd, parties = crowd_and_parties(loss, plan)
    (release,) = plan.releases
    parts = [party.minimiser_part(release, 0.7, 0.5, 1 / N, 1e-6) for party in parties]
    whole = crowd.minimiser_part(release, 0.7, 0.5, 1.0, 1e-6)
    certified = 0.01 * 0.7 / 0.5 / 1e-6  # how far off a party may stop, in steps
    assert np.linalg.norm(whole - np.sum(parts, axis=0)) <= certified
    assert np.linalg.norm(whole) > 2 * certified


@each_loss
def test_noise_of_its_own_is_the_mean_of_every_partys(loss):
    """Over 400 draws of D coordinates: within 5 / sqrt(4000) = 8 % of the sd, one false alarm in 10^6."""
    plan = OutputPerturbation(ridge=0.05).plan(PROBLEMS[loss], BUDGET)
    release = replace(plan.releases[0], times=400)
    crowd = Crowd(*rows(loss), replace(plan, releases=(release,), calibration="printed"), NoiseSource(0))
    answers = np.array([crowd.minimiser(release, 0.7, 0.05) for _ in range(400)])
    expected = crowd.answers[0].scale / np.sqrt(N)
    assert crowd.answers[0].sensitivity == pytest.approx(2 * 0.7 / 0.05, rel=0.02)
    assert (answers - answers.mean(axis=0)).std() == pytest.approx(expected, rel=0.08)


@each_loss
def test_its_perturbed_minimisers_have_the_law_of_single_parties(loss):
    """Means and sds of 300 draws of each: within 5 of their standard errors, one false alarm in 10^5 for D of each."""
    algorithm = ObjectivePerturbation(ridge=5.0, clip=0.7)
    plan = with_noise_for_the_smallest(algorithm.plan(PROBLEMS[loss], BUDGET), algorithm, (1,))
    release = replace(plan.releases[0], times=300)
    plan = replace(plan, releases=(release,), calibration="printed")
    crowd, parties = crowd_and_parties(loss, plan)
    support = np.arange(D)
    own = np.array([crowd.perturbed_minimiser(support, release, 0.7, 5.0) for _ in range(300)])
    real = np.array([
        np.mean([party.perturbed_minimiser(support, release, 0.7, 5.0) for party in parties], axis=0) for _ in range(20)
    ])  # fmt: skip
    sd = own.std(axis=0, ddof=1)
    assert np.abs(own.mean(axis=0) - real.mean(axis=0)).max() < 5 * sd.max() / np.sqrt(20)
    assert real.std(ddof=D) == pytest.approx(own.std(ddof=D), rel=5 / np.sqrt(2 * 20 * D))


def test_it_refuses_what_single_rows_cannot_pay_for():
    plan = ObjectivePerturbation(ridge=1e-6).plan(PROBLEMS["logistic"], BUDGET)
    crowd = Crowd(*rows("logistic"), plan, NoiseSource(0))
    (release,) = plan.releases
    assert isinstance(release, PerturbedMinimiser)
    with pytest.raises(ValueError, match="too small for parties of one row"):
        crowd.perturbed_minimiser(np.arange(D), release, 1.0, plan.settings["ridge"])
    other = replace(plan, problem=replace(plan.problem, intercept=True))
    with pytest.raises(ValueError, match="no intercept"):
        Crowd(*rows("logistic"), other, NoiseSource(0))
