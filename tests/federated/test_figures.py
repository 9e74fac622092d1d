"""The figures of chapter 6 on a small set: what is compared with what, and that every method runs."""

from pathlib import Path

import numpy as np
import pytest

import chapter6
from chapter6 import METHODS, Judge, run
from curves import plot
from federated import write
from hospitals import SETS, Rows
from thresher.datasets import unit_rows

pytest.importorskip("matplotlib")


def some_rows(regression=False):
    rng = np.random.default_rng(0)
    X = unit_rows(rng.normal(size=(3000, 4)))
    y = np.clip(X[:, 0] + 0.1 * rng.normal(size=3000), -1, 1)
    y = y if regression else (y > 0).astype(float)
    return Rows(X[:2000], X[2000:], y[:2000], y[2000:], regression)


@pytest.fixture
def small(monkeypatch):
    """A set by the name of "small", and fewer rounds."""
    monkeypatch.setitem(SETS, "small", lambda folder: some_rows())
    monkeypatch.setattr(chapter6, "ROUNDS", 20)
    chapter6.judge_of.cache_clear()


@pytest.mark.parametrize("regression", [False, True])
def test_the_judges_minimiser_has_no_better_neighbour(regression):
    judge = Judge(some_rows(regression))
    assert judge.judged(judge.best) == (0.0, 0.0)
    for direction in np.eye(4):
        for step in (-1e-3, 1e-3):
            gap, _ = judge.judged(judge.best + step * direction)
            assert 0 < gap < 1e-5
    assert np.linalg.norm(judge.objective(judge.best)[1]) <= 1e-8


def test_the_judges_objective_has_the_gradient_it_claims():
    judge, theta = Judge(some_rows()), np.linspace(-1, 1, 4)
    slopes = [
        (judge.objective(theta + 1e-6 * e)[0] - judge.objective(theta - 1e-6 * e)[0]) / 2e-6 for e in np.eye(4)
    ]  # fmt: skip
    assert slopes == pytest.approx(judge.objective(theta)[1], abs=1e-8)


@pytest.mark.parametrize("m", [10, None])
@pytest.mark.parametrize("name", METHODS)
def test_every_method_runs_and_is_watched(small, name, m):
    points = run("small", name, m, 1e-3, 0, Path())
    iterative = "Grad" in name or "Rajkumar" in name
    assert [point.iteration for point in points] == ([5, 10, 15, 20, -1] if iterative else [-1])
    assert all(point.gap > 0 for point in points)


def test_one_copy_of_noise_beats_one_of_each_party(small):
    """Ten times more noise, over five runs: no overlap."""
    gaps = {
        name: [run("small", name, 100, 1e-3, seed, Path())[-1].gap for seed in range(5)]
        for name in ("MPC Out P", "Local Out P")
    }
    assert max(gaps["MPC Out P"]) < min(gaps["Local Out P"])


def test_curves_are_written(small, tmp_path):
    points = [point for name in METHODS for delta in (1e-3, 1e-6) for point in run("small", name, 10, delta, 0, Path())]
    write(points, tmp_path / "small.csv")
    plot("small", points, "error", tmp_path)
    assert len((tmp_path / "small.csv").read_text().splitlines()) == 1 + len(points)
    assert {file.name for file in tmp_path.iterdir()} == {"small.csv", "federated_small.png", "federated_small.svg"}
