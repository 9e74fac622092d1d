"""X17 and X20: smoothing on small rows, and what rows show."""

from __future__ import annotations

import numpy as np
import pytest

from thresher.report.charts import Chart
from thresher_papers.experiments import thesis_figure_5_2, thesis_table_5_2
from thresher_papers.experiments.experiment import Grid, Verdict


def verdicts(parts):
    return [part.holds for part in parts if isinstance(part, Verdict)]


@pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")
@pytest.mark.parametrize("kind", thesis_table_5_2.KINDS)
def test_smoothing_changes_the_model_but_no_privacy_number(monkeypatch, kind):
    rng = np.random.default_rng(0)
    X = rng.random((2000, 16))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.integers(0, 10, 2000)
    monkeypatch.setattr(thesis_table_5_2, "_digits", lambda: (X, y, X[:500], y[:500]))
    (plain,) = thesis_table_5_2.run(kind, 0, 0.3, 0)
    (smooth,) = thesis_table_5_2.run(kind, 3, 0.3, 0)
    assert plain["real epsilon"] == smooth["real epsilon"] <= 0.3
    assert plain["multiplier"] == smooth["multiplier"] > 0
    assert 0 <= smooth["accuracy"] <= 100


def made_up(quick, gain, level=90.0):
    return [
        {**cell, "accuracy": level + gain * cell["sigma"] + 0.01 * cell["seed"] * cell["sigma"],
         "real epsilon": cell["epsilon"], "multiplier": 1.0}
        for cell in thesis_table_5_2.cells(quick)
    ]  # fmt: skip


def test_verdicts_of_x17_follow_the_rows():
    assert verdicts(thesis_table_5_2.show(made_up(True, 1.0))) == [True, True, True]
    assert verdicts(thesis_table_5_2.show(made_up(False, 1.0))) == [True, True, True, True]
    assert verdicts(thesis_table_5_2.show(made_up(True, -1.0))) == [True, False, True]
    assert verdicts(thesis_table_5_2.show(made_up(True, 1.0, level=70.0)))[0] is False
    dearer = [{**row, "multiplier": 1.0 + row["sigma"]} for row in made_up(True, 1.0)]
    assert verdicts(thesis_table_5_2.show(dearer))[2] is False


def test_the_full_table_of_x17_has_every_sigma_and_budget_beside_the_printed_ones():
    tables = [part for part in thesis_table_5_2.show(made_up(False, 1.0)) if isinstance(part, Grid)]
    assert len(tables) == 3
    for table in tables:
        assert [row[0] for row in table.rows] == ["0", "1", "2", "3"]
        assert len(table.columns) == 6


def test_x20_measures_the_closed_form_and_that_smoothing_is_free():
    """4 standard errors of 5 means: false alarms in about 1 of 60 (t of 4 degrees of freedom); the seeds are fixed."""
    rows = [row for cell in thesis_figure_5_2.cells(quick=True) for row in thesis_figure_5_2.run(**cell)]
    parts = thesis_figure_5_2.show(rows)
    assert verdicts(parts) == [True, True, False]  # the third is the remark that smoothing makes noise more private
    wrong = [{**row, "beta": 2 * row["beta"]} if row["kind"] == "power" else row for row in rows]
    assert verdicts(thesis_figure_5_2.show(wrong))[0] is False
    for chart in (part for part in parts if isinstance(part, Chart)):
        assert {len(line.x) for line in chart.series.values()} == {100}


def test_a_lower_multiplier_under_smoothing_would_show():
    rows = [row for cell in thesis_figure_5_2.cells(quick=True) for row in thesis_figure_5_2.run(**cell)]
    cheaper = [{**row, "multiplier": row["multiplier"] / 2} if row.get("method") == "dp-lssgd" else row for row in rows]
    assert verdicts(thesis_figure_5_2.show(cheaper))[2] is True
