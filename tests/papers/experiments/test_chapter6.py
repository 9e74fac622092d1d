"""The methods of chapter 6 on a small set: what is compared with what, and that every method runs."""

import numpy as np
import pytest

from thresher.privacy.budget import PrivacyWarning
from thresher_papers.datasets import unit_rows
from thresher_papers.experiments import chapter6
from thresher_papers.experiments.chapter6 import CLIP, EPSILON, HANDED_OVER, METHODS, RIDGE, run
from thresher_papers.experiments.chapter6_sets import SETS, Rows
from thresher_papers.experiments.judge import Judge

pytestmark = pytest.mark.filterwarnings(f"ignore::{PrivacyWarning.__module__}.{PrivacyWarning.__name__}")


def some_rows(regression=False):
    rng = np.random.default_rng(0)
    X = unit_rows(rng.normal(size=(3000, 4)))
    y = np.clip(X[:, 0] + 0.1 * rng.normal(size=3000), -1, 1)
    y = y if regression else (y > 0).astype(float)
    return Rows(X[:2000], X[2000:], y[:2000], y[2000:], regression)


@pytest.fixture
def small(monkeypatch):
    """A set by the name of "small", and fewer rounds."""
    monkeypatch.setitem(SETS, "small", some_rows)
    monkeypatch.setattr(chapter6, "ROUNDS", 20)
    chapter6.judge_of.cache_clear()


@pytest.mark.parametrize("regression", [False, True])
def test_the_judges_minimiser_has_no_better_neighbour(regression):
    judge = Judge(some_rows(regression), RIDGE, CLIP)
    assert judge.judged(judge.best) == (0.0, 0.0)
    for direction in np.eye(4):
        for step in (-1e-3, 1e-3):
            gap, _ = judge.judged(judge.best + step * direction)
            assert 0 < gap < 1e-5
    assert np.linalg.norm(judge.objective(judge.best)[1]) <= 1e-8


def test_the_judges_objective_has_the_gradient_it_claims():
    judge, theta = Judge(some_rows(), RIDGE, CLIP), np.linspace(-1, 1, 4)
    slopes = [
        (judge.objective(theta + 1e-6 * e)[0] - judge.objective(theta - 1e-6 * e)[0]) / 2e-6 for e in np.eye(4)
    ]  # fmt: skip
    assert slopes == pytest.approx(judge.objective(theta)[1], abs=1e-8)


@pytest.mark.parametrize("parties", [10, 2000])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_runs_is_watched_and_keeps_its_budget(small, method, parties):
    rows = run("small", method, parties, 1e-3, 0)
    iterative = "Grad" in method or "Rajkumar" in method
    assert [row["iteration"] for row in rows] == ([5, 10, 15, 20, HANDED_OVER] if iterative else [HANDED_OVER])
    assert all(row["gap"] > 0 for row in rows)
    assert all((row["real epsilon"] <= EPSILON) == (not method.endswith("(printed)")) for row in rows)
    assert rows[0]["records"] == 2000 // parties


def test_the_same_cell_gives_the_same_rows(small):
    assert run("small", "Local Obj P", 10, 1e-3, 1) == run("small", "Local Obj P", 10, 1e-3, 1)


def test_one_copy_of_noise_beats_one_of_each_party(small):
    """Ten times more noise, over five runs: no overlap."""
    gaps = {
        method: [run("small", method, 100, 1e-3, seed)[-1]["gap"] for seed in range(5)]
        for method in ("MPC Out P", "Local Out P")
    }
    assert max(gaps["MPC Out P"]) < min(gaps["Local Out P"])
