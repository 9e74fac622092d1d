"""X9 and X11: a real draw, and what rows show."""

from __future__ import annotations

import math

import numpy as np
import pytest

from thresher.report.charts import Chart
from thresher_papers.experiments import ldp_appendix, ldp_figure_1
from thresher_papers.experiments.experiment import Grid, Verdict
from thresher_papers.experiments.local_model import EXACT, METHODS, run

pytestmark = pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")

LABELS, RECORDS = ldp_figure_1.EXPERIMENT, ldp_appendix.EXPERIMENT


def made_up(experiment, quick=True, **exponents):
    """Rows whose errors are powers of n, d and epsilon, with 1 % of noise."""
    rng = np.random.default_rng(0)
    rows = []
    for cell in experiment.cells(quick):
        size = math.prod(cell[axis] ** power for axis, power in exponents.items())
        for method in METHODS[cell["task"]]:
            printed = method.endswith("(printed)")
            cost = math.inf if method == EXACT else cell["epsilon"] * (100 if printed else 1)
            better = 0.5 if method in ("ldp-iht", "label-ldp-iht") else 1.0
            error = better * size * rng.normal(1, 0.01) * (0.1 if printed else 1)
            rows.append({**cell, "method": method, "error": error, "real epsilon": cost})
    return rows


def verdicts(experiment, rows):
    return [part.holds for part in experiment.show(rows) if isinstance(part, Verdict)]


@pytest.mark.parametrize("task", ["labels", "records"])
def test_every_method_has_a_row_and_sound_ones_keep_their_budget(task):
    rows = run(task=task, law="figure", n=4000, d=10, s=3, epsilon=2.0, seed=0)
    assert [row["method"] for row in rows] == list(METHODS[task])
    for row in rows:
        assert 0 <= row["error"] < 1.5
        if not row["method"].endswith(("(printed)", "(not private)")):
            assert row["real epsilon"] <= 2.0


def test_the_printed_noise_of_labels_costs_far_more_than_claimed():
    rows = {row["method"]: row for row in run(task="labels", law="figure", n=500, d=20, s=10, epsilon=1.0, seed=0)}
    assert rows["label-ldp-iht (printed)"]["real epsilon"] > 60  # erratum E-12
    assert rows["label-ldp-iht (printed)"]["error"] < rows["label-ldp-iht"]["error"]


def test_flat_in_p_and_falling_elsewhere_is_what_x9_checks():
    good = {"n": -0.5, "epsilon": -1.0}
    assert verdicts(LABELS, made_up(LABELS, **good)) == [True, True, True, False]
    assert verdicts(LABELS, made_up(LABELS, **good, d=0.5)) == [False, True, True, False]
    assert verdicts(LABELS, made_up(LABELS, n=0.5, epsilon=1.0)) == [True, False, False, False]


def test_the_full_run_of_x9_adds_the_rates():
    """error^2 ~ 1/(n epsilon^2) and flat in p, as made up."""
    parts = LABELS.show(made_up(LABELS, quick=False, n=-0.5, epsilon=-1.0))
    rates = next(part for part in parts if isinstance(part, Grid) and part.title.startswith("Exponents"))
    assert [row[0] for row in rates.rows[:2]] == ["n", "epsilon"]
    for _, claimed, measured in rates.rows[:2]:
        assert float(measured.split()[0]) == pytest.approx(claimed, abs=0.05)
    assert sum(isinstance(part, Chart) for part in parts) == 3


@pytest.mark.parametrize("quick", [True, False])
def test_x11_compares_exponents_with_the_papers_rate(quick):
    good = {"n": -0.5, "d": 0.5, "epsilon": -1.0}
    assert all(verdicts(RECORDS, made_up(RECORDS, quick, **good)))
    assert verdicts(RECORDS, made_up(RECORDS, quick, **{**good, "d": 0.1}))[1] is False


def test_every_table_has_every_method_at_every_point():
    rows = made_up(RECORDS, n=-0.5, d=0.5, epsilon=-1.0)
    grids = [part for part in RECORDS.show(rows) if isinstance(part, Grid) and "relative error" in part.title]
    assert len(grids) == 3
    for grid, panel in zip(grids, ldp_appendix.QUICK, strict=True):
        assert [row[0] for row in grid.rows] == list(METHODS["records"])
        assert len(grid.columns) == 1 + len(panel.values)
