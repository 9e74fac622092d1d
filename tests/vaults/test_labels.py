"""The label vault: public rows, labels randomised once by their owners, everything after that for free."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget, BudgetExceeded
from thresher.privacy.plan import Plan
from thresher.privacy.releases import ClassReport, ExactRelease, GaussianReport, LaplaceReport, PiecewiseReport
from thresher.vaults import LabelVault
from thresher.vaults.losses import SQUARED, loss_named
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomisers import Classes, Gaussian, Laplace, Piecewise
from thresher.vaults.randomness import NoiseSource

N, D = 60_000, 3
LOW, HIGH = -1.0, 5.0
RADIUS = (HIGH - LOW) / 2
REPORTS = {
    "laplace": (LaplaceReport(1, 1.0), Laplace(1.0)),
    "piecewise": (PiecewiseReport(1, 1.0), Piecewise(1.0)),
    "gaussian": (GaussianReport(1, 1.5), Gaussian(3.0)),
}


def problem_of(loss="squared", outputs=1, intercept=True):
    target = (LOW, HIGH) if loss == "squared" else None
    return LinearProblem(
        N,
        D,
        Bounds(feature=1.0, target=target),
        sparsity=2,
        loss=loss_named(loss),
        intercept=intercept,
        outputs=outputs,
    )


def vault_of(y, release, problem=None, X=None, seed=0):
    plan = Plan("probe", problem or problem_of(), Budget(math.inf, 0.01), (release,), trust="labels")
    X = np.random.default_rng(0).uniform(-1, 1, (len(y), D)) if X is None else X
    return LabelVault(X, np.asarray(y, dtype=float), plan, NoiseSource(seed))


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("label", [LOW, 0.7, HIGH, 1e300, -1e300])
@pytest.mark.parametrize("intercept", [True, False])
def test_reported_labels_are_unbiased_for_the_clipped_label_with_the_known_variance(name, label, intercept):
    """z-tests at 4.5 deviations: a false alarm in 30 such tests has chance 2e-4; a bias of 0.1 RADIUS would show."""
    release, randomiser = REPORTS[name]
    problem = problem_of(intercept=intercept)
    with vault_of(np.full(N, label), release, problem) as vault:
        labels = vault.labels(release) + problem.target_centre
    clipped = min(max(label, LOW), HIGH)
    sd = RADIUS * math.sqrt(randomiser.variance((clipped - 2.0) / RADIUS))
    assert abs(labels.mean() - clipped) < 4.5 * sd / math.sqrt(N)
    assert 4.5 * sd / math.sqrt(N) < 0.1 * RADIUS
    assert labels.std() == pytest.approx(sd, rel=0.03)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_reported_classes_are_unbiased_indicators(classes):
    outputs = 1 if classes == 2 else classes
    problem = problem_of("logistic" if outputs == 1 else "multinomial", outputs)
    truth = np.arange(N) % classes
    y = truth if classes == 2 else np.equal.outer(truth, np.arange(classes)).astype(float)
    release = ClassReport(1, 1.0, classes)
    with vault_of(y, release, problem) as vault:
        labels = vault.labels(release)
    limit = 4.5 * Classes(classes, 1.0).size / math.sqrt(N / classes)
    if classes == 2:
        assert labels.shape == (N,)
        assert abs(labels[truth == 1].mean() - 1) < limit
        assert abs(labels[truth == 0].mean()) < limit
    else:
        assert labels.sum(axis=1) == pytest.approx(np.ones(N))
        means = np.array([labels[truth == k].mean(axis=0) for k in range(classes)])
        assert np.abs(means - np.eye(classes)).max() < limit


def test_nothing_is_answered_before_labels_were_reported_and_nobody_reports_twice():
    release = LaplaceReport(1, 1.0)
    with vault_of(np.zeros(10), release) as vault:
        with pytest.raises(BudgetExceeded, match="no label has been reported yet"):
            vault.gradient(np.zeros(D + 1))
        vault.labels(release)
        with pytest.raises(BudgetExceeded, match="used up"):
            vault.labels(release)
        with pytest.raises(BudgetExceeded, match="not in the plan"):
            vault.labels(LaplaceReport(1, 8.0))
        assert len(vault.answers) == 1
    with pytest.raises(RuntimeError, match="closed"):
        vault.gradient(np.zeros(D + 1))


@pytest.mark.parametrize("form", [np.array, sparse.csr_array], ids=["dense", "sparse"])
def test_gradients_are_those_of_public_rows_and_reported_labels(form):
    rng = np.random.default_rng(1)
    X, y = rng.uniform(-1, 1, (50, D)), rng.uniform(-1, 5, 50)
    problem = LinearProblem(50, D, Bounds(feature=1.0, target=(LOW, HIGH)), sparsity=2, loss=SQUARED)
    release = PiecewiseReport(1, 1.0)
    theta = np.array([0.3, -0.2, 0.0, 0.5])
    with vault_of(y, release, problem, form(X)) as vault:
        labels = vault.labels(release)
        rows = np.column_stack([X, np.full(50, problem.intercept_column)])
        assert vault.gradient(theta) == pytest.approx(rows.T @ (rows @ theta - labels) / 50)
        features = vault.features
        assert (features.toarray() if sparse.issparse(features) else features) == pytest.approx(X)
        assert vault.feature_scale == pytest.approx(np.sqrt(np.mean(X**2)))


def test_true_labels_are_gone_after_the_report():
    y = np.linspace(LOW, HIGH, 40)
    release = LaplaceReport(1, 1.0)
    with vault_of(y, release) as vault:
        vault.labels(release)
        held = [value for value in vars(vault).values() if isinstance(value, np.ndarray) and value.shape == (40,)]
        assert held
        for value in held:
            assert not np.allclose(value + vault.problem.target_centre, y)


def test_without_privacy_the_label_itself_is_reported():
    release = ExactRelease(times=1, question="local labels")
    with vault_of([LOW, 0.0, 9.0], release) as vault:
        assert vault.labels(release) + vault.problem.target_centre == pytest.approx([LOW, 0.0, HIGH])


@pytest.mark.parametrize(
    "release", [LaplaceReport(1, 1.0), PiecewiseReport(1, 1.0), GaussianReport(1, 1.0), ClassReport(1, 1.0, 3)]
)
def test_a_channel_that_is_not_for_these_classes_is_refused_and_not_charged(release):
    """A channel for numbers would leave class labels as they are."""
    with vault_of([0.0, 1.0, 1.0], release, problem_of("logistic")) as vault:
        with pytest.raises(ValueError, match="is not for the labels of this problem"):
            vault.labels(release)
        assert vault.answers == ()


def test_a_channel_for_classes_is_refused_for_numbers():
    release = ClassReport(1, 1.0, 2)
    with vault_of([0.0, 1.0], release) as vault, pytest.raises(ValueError, match="is not for the labels"):
        vault.labels(release)


def test_a_hardened_source_is_refused_as_reports_have_their_own_grid():
    release = GaussianReport(1, 1.0)
    plan = Plan("probe", problem_of(), Budget(math.inf, 0.01), (release,), trust="labels")
    with pytest.raises(ValueError, match="hardened=True"):
        LabelVault(np.zeros((3, D)), np.zeros(3), plan, NoiseSource(0, hardened=True))
