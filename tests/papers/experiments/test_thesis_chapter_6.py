"""The figures of chapter 6: tables are complete, and verdicts follow the rows."""

import math

import pytest

from thresher.report.charts import Chart
from thresher_papers.experiments import find_experiments
from thresher_papers.experiments.chapter6 import EPSILON, HANDED_OVER, METHODS
from thresher_papers.experiments.experiment import Grid, Verdict

EXPERIMENTS = find_experiments(["x21", "x22", "x23"])
GAPS = {
    "MPC Grad P": 1e-3, "MPC Out P": 5e-3, "Local Grad P": 0.1, "Local Out P": 1.0, "Local Obj P": 1.5, "Pathak": 50.0,
    "Rajkumar-Agarwal (printed)": 2e-3,
}  # fmt: skip
each = pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)


def some_rows(experiment, quick=True, **gaps):
    """Rows of all cells; a gap is the same for all of them."""
    rows = []
    for cell in experiment.cells(quick):
        method = cell["method"]
        facts = {
            "records": 1 if cell["parties"] >= 30_000 else 50, "rows": 1, "test rows": 1, "columns": 1,
            "J of zeros": 0.7, "least J": 0.1, "its error": 0.1, "loss": 1e-4,
            "real epsilon": math.inf if method.endswith("(printed)") else EPSILON,
        }  # fmt: skip
        watched = [50, 100, HANDED_OVER] if "Grad" in method or "Rajkumar" in method else [HANDED_OVER]
        gap = gaps.get(method, GAPS[method])
        rows += [{**cell, **facts, "iteration": t, "gap": gap} for t in watched]
    return rows


def verdicts(experiment, rows):
    return [part for part in experiment.show(rows) if isinstance(part, Verdict)]


def holds(experiment, rows, words):
    (found,) = (part for part in verdicts(experiment, rows) if words in part.text)
    return found.holds


@each
@pytest.mark.parametrize("quick", [True, False])
def test_every_method_is_in_the_tables_for_every_m_and_delta(experiment, quick):
    parts = experiment.show(some_rows(experiment, quick))
    grids = [part for part in parts if isinstance(part, Grid)]
    assert len(grids) == 2
    for grid in grids:
        assert [line[0] for line in grid.rows] == list(METHODS)
        assert {len(line) for line in grid.rows} == {len(grid.columns)}
        assert len(grid.columns) == 2 + (2 if quick else 6)
    assert len([part for part in parts if isinstance(part, Chart)]) == (2 if quick else 3)


@each
def test_a_chart_has_the_iterates_and_lines_for_those_that_ask_once(experiment):
    chart = next(part for part in experiment.show(some_rows(experiment)) if isinstance(part, Chart))
    assert chart.series["MPC Grad P"].x == [50, 100]
    assert chart.series["MPC Out P"].y == [5e-3, 5e-3]
    assert list(chart.series) == list(METHODS)  # the same colours everywhere
    assert chart.series["Pathak"].y[0] > chart.top


@each
def test_all_is_as_the_thesis_has_it_in_made_up_rows(experiment):
    assert all(part.holds for part in verdicts(experiment, some_rows(experiment)))


@each
@pytest.mark.parametrize(
    ("method", "gap", "words"),
    [
        ("MPC Grad P", 0.031, "optimality gap of MPC Grad P is about"),
        ("Local Obj P", 9e-4, "smaller gap than every local baseline"),
        ("MPC Out P", 0.011, "several records, MPC Out P is in the range"),
        ("MPC Out P", 0.011, "one record, MPC Out P is in the range"),
    ],
)
def test_a_verdict_falls_with_its_gap(experiment, method, gap, words):
    assert holds(experiment, some_rows(experiment), words)
    assert not holds(experiment, some_rows(experiment, **{method: gap}), words)


@each
def test_privacy_is_judged_by_what_the_plan_costs(experiment):
    rows = [{**row, "real epsilon": EPSILON + 1e-9} for row in some_rows(experiment)]
    assert not holds(experiment, rows, "All methods but Rajkumar-Agarwal keep")
    assert not holds(experiment, rows, "Rajkumar-Agarwal has no guarantee")


def test_the_stand_in_is_called_one_wherever_it_is_seen():
    experiment = EXPERIMENTS[1]
    assert "stand-in" in experiment.title
    assert "stand-in" in experiment.about.lower()
    assert all(
        part.text.startswith("On the stand-in for KDDCup98") for part in verdicts(experiment, some_rows(experiment))
    )


def test_what_is_said_of_one_record_each_on_kddcup98_is_judged():
    experiment = EXPERIMENTS[1]
    rows = some_rows(experiment, **{"Local Out P": 2.0, "Pathak": 1.9})
    assert not holds(experiment, rows, "Local Obj P is worse than Local Out P")
    assert not holds(experiment, rows, "Pathak is off the plot")
