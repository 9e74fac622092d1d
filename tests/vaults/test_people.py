"""What people compute before they randomise: values inside a public ball or cube whatever their record holds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from neighbours import SOME_BOUNDS, WILD_ENTRIES, WILD_TARGETS
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget, BudgetExceeded
from thresher.privacy.plan import Plan
from thresher.privacy.releases import ExactRelease, GaussianGradient, HypercubeReport, SphereReport
from thresher.vaults import SimulatedVault, people
from thresher.vaults.losses import SQUARED, loss_named
from thresher.vaults.people import Crowd, Reporter, label_randomiser, unit_labels, vector_randomiser
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

D = 5


def problem_of(bounds, loss="squared", intercept=True):
    target = (-2.0, 3.0) if loss == "squared" else None
    return LinearProblem(
        100, D, Bounds(bounds.feature, bounds.row, target), sparsity=2, loss=loss_named(loss), intercept=intercept
    )


def reporter_of(problem, shape, clip=0.5):
    d = problem.dimension
    release = SphereReport(1, 1.0, d, 0.1) if shape == "ball" else HypercubeReport(1, 1.0, d, 1, 1)
    return Reporter(problem, release, clip)


# -- values -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("bounds", SOME_BOUNDS, ids=str)
@pytest.mark.parametrize("shape", ["ball", "cube"])
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_no_record_leaves_the_unit_ball_or_cube(loss, bounds, shape, data):
    problem = problem_of(bounds, loss)
    row = np.array([data.draw(st.lists(WILD_ENTRIES, min_size=D, max_size=D))])
    target = np.array([data.draw(WILD_TARGETS[loss])])
    theta = data.draw(st.sampled_from([0.0, 1.0, 1e6, 1e300])) * np.linspace(-1, 1, problem.dimension)
    (value,) = reporter_of(problem, shape).values(row, target, theta)
    assert np.all(np.isfinite(value))
    size = np.linalg.norm(value) if shape == "ball" else np.abs(value).max()
    assert size <= 1 + 1e-12


@pytest.mark.parametrize("form", [np.array, sparse.csr_array], ids=["dense", "sparse"])
def test_what_a_person_reports_on_depends_on_nobody_beside_them(form):
    """People that are simulated together must not share a product whose round-off depends on where they stand."""
    rng = np.random.default_rng(0)
    for d in (3, 7, 16, 33):
        problem = LinearProblem(
            100, d, Bounds(feature=2.0, target=(-9.0, 9.0)), sparsity=2, loss=SQUARED, intercept=True
        )
        row, theta = rng.normal(size=d), rng.normal(size=d + 1)
        for n in (1, 2, 3, 5, 17, 64, 129):
            values = reporter_of(problem, "cube", 9.0).values(form(np.tile(row, (n, 1))), np.full(n, 0.3), theta)
            alone = reporter_of(problem, "cube", 9.0).values(form(row[None]), np.array([0.3]), theta)
            np.testing.assert_array_equal(values, np.tile(alone, (n, 1)))


def test_values_are_the_clipped_gradient_over_its_bound():
    problem = problem_of(Bounds(feature=2.0), intercept=False)
    X, y, theta = np.array([[1.0, -2.0, 0.5, 0.0, 4.0]]), np.array([0.3]), np.array([0.1, 0.0, 0.0, 0.0, 0.0])
    residual, row = 0.1 - 0.3, np.array([1.0, -2.0, 0.5, 0.0, 2.0])
    (cube,) = reporter_of(problem, "cube").values(X, y, theta)
    assert cube == pytest.approx(residual * row / (0.5 * 2.0))
    (ball,) = reporter_of(problem, "ball").values(X, y, theta)
    assert ball == pytest.approx(residual * row / (0.5 * 2.0 * np.sqrt(D)))


@pytest.mark.parametrize("shape", ["ball", "cube"])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_mean_gradient_undoes_the_units(shape, intercept):
    problem = problem_of(Bounds(feature=(0.5, 1.0, 2.0, 1.0, 3.0)), intercept=intercept)
    rng = np.random.default_rng(0)
    X, y, theta = rng.uniform(-0.4, 0.4, (7, D)), rng.uniform(-1, 1, 7), np.full(problem.dimension, 0.1)
    rows = np.column_stack([X, np.full(7, problem.intercept_column)]) if intercept else X
    residuals = np.clip(rows @ theta - (y - problem.target_centre), -0.5, 0.5)
    reporter = reporter_of(problem, shape)
    mean = reporter.mean_gradient(reporter.values(X, y, theta).sum(axis=0), 7)
    assert mean == pytest.approx(rows.T @ residuals / 7)


def test_sparse_small_and_float32_records_give_the_values_of_dense_ones():
    problem = problem_of(Bounds(feature=1.0))
    X = np.array([[1, 0, -1, 0, 1], [0, 0, 1, 1, -1]])
    y, theta = np.array([0.2, -0.4]), np.full(problem.dimension, 0.05)
    reporter = reporter_of(problem, "cube")
    dense = reporter.values(X.astype(float), y, theta)
    for form in (sparse.csr_array(X.astype(float)), X.astype(np.int8), X.astype(np.float32)):
        assert np.array_equal(reporter.values(form, y, theta), dense)


def test_labels_of_a_range_become_numbers_of_the_unit_interval():
    bounds = Bounds(feature=1.0, target=(60.0, 90.0))
    assert unit_labels(np.array([60.0, 75.0, 90.0, 1e300, -np.inf]), bounds).tolist() == [-1, 0, 1, 1, -1]
    with pytest.raises(ValueError, match="target_bound=None"):
        unit_labels(np.zeros(1), Bounds(feature=1.0))


def test_only_reports_have_a_randomiser():
    with pytest.raises(TypeError, match="no report of a gradient"):
        vector_randomiser(GaussianGradient(1, 1.0))
    with pytest.raises(TypeError, match="no report of a label"):
        label_randomiser(SphereReport(1, 1.0, 3, 0.0))


# -- the crowd --------------------------------------------------------------------------------------------------


class Watched:
    """A table that counts how often each person's record is read."""

    def __init__(self, X):
        self.X, self.reads = X, np.zeros(len(X), dtype=int)

    def __getitem__(self, rows):
        self.reads[rows] += 1
        return self.X[rows]


def vault_of(X, y, rounds, clip=0.5):
    """A vault without privacy that may be asked ``rounds`` times, and its question."""
    problem = LinearProblem(
        len(y), D, Bounds(feature=1.0, target=(-2.0, 2.0)), sparsity=2, loss=SQUARED, intercept=False
    )
    release = ExactRelease(times=rounds, question="local gradient")
    vault = SimulatedVault(X, y, Plan("probe", problem, Budget(math.inf, 0.0), (release,)), NoiseSource(0))
    return vault, lambda: vault.gradient(problem.origin(), release, clip)


@pytest.mark.parametrize("rounds", [1, 3, 7])
def test_everybody_reports_exactly_once(rounds, monkeypatch):
    monkeypatch.setattr(people, "BLOCK", 20)
    table = Watched(np.zeros((50, D)))
    _, ask = vault_of(table, np.zeros(50), rounds)
    reads = [0]
    for _ in range(rounds):
        ask()
        reads.append(int(table.reads.sum()))
    assert table.reads.tolist() == [1] * 50
    assert max(np.diff(reads)) - min(np.diff(reads)) <= 1
    with pytest.raises(BudgetExceeded, match="used up"):
        ask()
    assert table.reads.max() == 1


def test_a_crowd_that_has_reported_reports_no_more_whatever_a_meter_says():
    problem = problem_of(Bounds(feature=1.0))
    reporter = Reporter(problem, ExactRelease(times=1, question="local gradient"), 0.5)
    crowd = Crowd(np.zeros((4, D)), np.zeros(4), problem, [np.arange(4)], NoiseSource(0))
    assert [count for count, _ in crowd.reports(reporter, problem.origin())] == [4]
    with pytest.raises(BudgetExceeded, match="nobody reports twice"):
        next(crowd.reports(reporter, problem.origin()))


def test_groups_are_drawn_anew_so_that_the_order_of_a_table_says_nothing():
    """Sorted targets: slices of a sorted table would have means of about -0.7, 0, 0.7."""
    y = np.sort(np.random.default_rng(0).uniform(-1, 1, 3000))
    _, ask = vault_of(np.ones((3000, D)), y, 3, clip=10.0)
    for _ in range(3):
        assert abs(ask()[0]) < 5 * 0.58 / math.sqrt(1000)


def test_blocks_change_nothing_but_memory(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (500, D)), rng.uniform(-1, 1, 500)
    answers = []
    for block in (30, 2**20):
        monkeypatch.setattr(people, "BLOCK", block)
        answers.append(vault_of(X, y, 1)[1]())
    assert answers[0] == pytest.approx(answers[1])
