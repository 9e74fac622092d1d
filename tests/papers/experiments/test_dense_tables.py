"""X12 and X13: a real fit on made-up rows, and what rows show."""

from __future__ import annotations

import math

import numpy as np
import pytest

from thresher_papers.datasets import RealSet
from thresher_papers.experiments import dense_tables, thesis_table_4_2, thesis_table_4_3
from thresher_papers.experiments.dense_tables import EXACT, METHODS
from thresher_papers.experiments.experiment import Grid, Verdict

EXPERIMENTS = [thesis_table_4_2.EXPERIMENT, thesis_table_4_3.EXPERIMENT]


@pytest.fixture
def small(monkeypatch):
    """A set of 2,000 rows in place of a real one."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 5)) / math.sqrt(5)
    y = np.where(rng.random(3000) < 1 / (1 + np.exp(-6 * X[:, 0])), 1, -1)
    bounds = {"row_bound": 1.0, "classes": (-1, 1)}
    made = RealSet("small", X[:2000], y[:2000], X[2000:], y[2000:], bounds, "made up")
    monkeypatch.setattr(dense_tables, "_rows", lambda name: made)
    return made


@pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")
@pytest.mark.parametrize("method", ["dp-srm", "dp-agd", EXACT])
def test_a_fit_tells_loss_gradient_passes_and_cost(small, method):
    (row,) = dense_tables.run("small", method, math.inf if method == EXACT else 0.5, 0)
    assert 0.4 < row["loss"] < 1.2
    assert row["loss"] < row["with penalty"] < row["loss"] + 0.005  # five terms below .001
    assert row["passes"] > 0
    assert row["gradient"] < (0.02 if method == EXACT else 1.0)
    assert row["real epsilon"] <= 0.5 or method == EXACT


def made_up(experiment, quick=True, **losses):
    rows = []
    for cell in experiment.cells(quick):
        loss = losses.get(cell["method"].replace("-", "_"), 0.4) + 1e-4 * cell["seed"]
        cost = cell["epsilon"] if cell["method"] != EXACT else math.inf
        rest = {"with penalty": loss + 0.01, "gradient": 0.01, "passes": 5.0, "real epsilon": cost}
        rows.append({**cell, "loss": loss, **rest})
    return rows


def verdicts(experiment, rows):
    return [part.holds for part in experiment.show(rows) if isinstance(part, Verdict)]


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=["x12", "x13"])
def test_verdicts_follow_the_losses(experiment):
    assert verdicts(experiment, made_up(experiment, dp_srm=0.2)) == [True, True, True, True]
    assert verdicts(experiment, made_up(experiment, dp_srm=0.2, dp_sgd=0.2)) == [True, True, False, True]
    assert verdicts(experiment, made_up(experiment, dp_srm=0.41)) == [False, False, False, True]
    spent = [{**row, "real epsilon": 0.51} for row in made_up(experiment, dp_srm=0.2)]
    assert verdicts(experiment, spent)[3] is False


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=["x12", "x13"])
def test_the_full_table_has_every_method_at_both_budgets_beside_what_is_printed(experiment):
    (table,) = [part for part in experiment.show(made_up(experiment, quick=False)) if isinstance(part, Grid)]
    expected = {(epsilon, method) for epsilon in ("0.2", "0.5") for method in METHODS if method != EXACT}
    assert {row[:2] for row in table.rows} == expected | {("inf", EXACT)}
    printed = {row[1] for row in table.rows if row[2]}
    assert printed == {"dp-srm", "dp-gd", "dp-gd, 20 passes", "dp-agd", "rrpsgd", EXACT}
