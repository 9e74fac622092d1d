"""X10: a real point on made-up rows, and what rows show."""

from __future__ import annotations

import math

import numpy as np
import pytest

from thresher.report.charts import Chart
from thresher_papers.experiments import ldp_figure_2
from thresher_papers.experiments.experiment import Grid, Verdict

pytestmark = pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")


@pytest.fixture
def forests(monkeypatch):
    """Rows of six columns within 1, three of which matter."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (4000, 6))
    y = np.where(rng.random(4000) < 1 / (1 + np.exp(-3 * X[:, 0] + 2 * X[:, 1] - X[:, 2])), 1, -1).astype(np.int8)
    monkeypatch.setattr(ldp_figure_2, "_forests", lambda rows, p: (X, y))
    ldp_figure_2.reference.cache_clear()
    yield X, y
    ldp_figure_2.reference.cache_clear()


def test_gaps_are_to_a_minimum_and_sound_methods_keep_their_budget(forests):
    rows = {row["method"]: row for row in ldp_figure_2.run(rows=4000, p=6, s=3, epsilon=4.0, seed=0)}
    assert list(rows) == list(ldp_figure_2.METHODS)
    for method, row in rows.items():
        assert row["gap"] > -1e-9  # three columns of six: IGHT finds the best support
        assert row["reference"] < math.log(2)
        assert row["real epsilon"] <= 4.0 or method == ldp_figure_2.PRINTED
    assert rows[ldp_figure_2.PRINTED]["real epsilon"] > 4.0  # erratum E-1
    assert rows[ldp_figure_2.HONEST]["delta"] == pytest.approx(4000.0**-2)
    assert rows[ldp_figure_2.MINE]["gap"] < 0.1


def test_refinement_ends_where_the_gradient_is_gone(forests):
    X, y = forests
    theta = ldp_figure_2.refined(np.array([1.0, -1.0, 0.0, 0.0, 0.0, 0.0]), X, y)
    assert np.flatnonzero(theta).tolist() == [0, 1]
    step = 1e-4
    for j in (0, 1):
        for sign in (-1, 1):
            moved = theta.copy()
            moved[j] += sign * step
            assert ldp_figure_2.objective(moved, X, y) > ldp_figure_2.objective(theta, X, y)


def made_up(quick=True, **powers):
    """Gaps that are powers of p, s and epsilon."""
    rows = []
    for cell in ldp_figure_2.cells(quick):
        size = 1e-3 * math.prod(cell[axis] ** power for axis, power in powers.items()) * (1 + 0.01 * cell["seed"])
        for method in ldp_figure_2.METHODS:
            cost = cell["epsilon"] * (1.1 if method == ldp_figure_2.PRINTED else 1.0)
            rows.append({
                **{name: cell[name] for name in ("p", "s", "epsilon", "seed")}, "n": cell["rows"], "delta": 1e-3,
                "method": method, "gap": size, "reference": 0.6, "real epsilon": cost,
            })  # fmt: skip
    return rows


def verdicts(rows):
    return [part.holds for part in ldp_figure_2.show(rows) if isinstance(part, Verdict)]


def test_verdicts_follow_the_gaps():
    assert verdicts(made_up(s=1.0, epsilon=-1.0)) == [True, True, True, False, True]
    assert verdicts(made_up(s=1.0, epsilon=-1.0, p=1.0)) == [False, True, True, False, True]
    assert verdicts(made_up(s=-1.0, epsilon=1.0)) == [True, False, False, False, True]


@pytest.mark.parametrize("quick", [True, False])
def test_every_panel_has_every_method_at_every_value(quick):
    parts = ldp_figure_2.show(made_up(quick, s=1.0))
    panels = ldp_figure_2.QUICK if quick else ldp_figure_2.PANELS
    charts = [part for part in parts if isinstance(part, Chart)]
    tables = [part for part in parts if isinstance(part, Grid)]
    for chart, table, values in zip(charts, tables[:3], panels.values(), strict=True):
        assert all(list(line.x) == sorted(values) for line in chart.series.values())
        assert [row[0] for row in table.rows[:-2]] == list(ldp_figure_2.METHODS)
        assert all(len(row) == 1 + len(values) for row in table.rows)
