"""The synthetic figures: all methods at all budgets, sound ones within their budget, verdicts that follow the rows."""

import math
from functools import cache

import pytest

from thresher.report.charts import Chart
from thresher_papers.experiments import dp_ight_figure_1ab, dp_ight_figure_1cd, dpsl_kt_figure_2ab, dpsl_kt_figure_2cd
from thresher_papers.experiments.experiment import Grid, Verdict
from thresher_papers.experiments.synthetic import EXACT, PRIVATE, run

pytestmark = pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")

FIGURES = [
    dp_ight_figure_1ab.EXPERIMENT,
    dp_ight_figure_1cd.EXPERIMENT,
    dpsl_kt_figure_2ab.EXPERIMENT,
    dpsl_kt_figure_2cd.EXPERIMENT,
]
PRINTED = ("dp-ight (printed)", "dpsl-kt (printed)")


@cache
def rows_of(law, loss):
    sizes = {"(i)": (200, 60, 3), "(ii)": (240, 80, 4)}
    return [
        row
        for name, (n, d, s) in sizes.items()
        for seed in range(2)
        for row in run(law, loss, name, n, d, s, epsilons=(2.0, 5.0), seed=seed)
    ]


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("law", ["dp-ight", "dpsl-kt"])
def test_every_method_is_measured_at_every_budget_and_the_sound_ones_keep_it(law, loss):
    rows = rows_of(law, loss)
    asked = {(row["method"], row["epsilon"]) for row in rows}
    assert asked == {(EXACT, math.inf), *((m, e) for m in (*PRIVATE, *PRINTED) for e in (2.0, 5.0))}
    assert all(row["real epsilon"] <= row["epsilon"] for row in rows if row["method"] in PRIVATE)
    assert all(row["real epsilon"] == math.inf for row in rows if row["method"] == "dpsl-kt (printed)")
    assert all(row["error"] >= 0 for row in rows)


def test_the_same_cell_gives_the_same_rows():
    cell = {
        "law": "dpsl-kt",
        "loss": "squared",
        "size": "(i)",
        "n": 100,
        "d": 20,
        "s": 2,
        "epsilons": (2.0,),
        "seed": 5,
    }
    assert run(**cell) == run(**cell)


@pytest.mark.parametrize("experiment", FIGURES, ids=lambda each: each.name)
def test_quick_and_full_ask_for_both_sizes(experiment):
    quick, full = experiment.cells(True), experiment.cells(False)
    assert {cell["size"] for cell in quick} == {cell["size"] for cell in full} == {"(i)", "(ii)"}
    assert sum(len(cell["epsilons"]) for cell in quick) < sum(len(cell["epsilons"]) for cell in full) / 3
    assert {cell["seed"] for cell in full if cell["size"] == "(ii)"} >= set(range(10))  # the papers' 10 trials


def test_the_tables_hold_every_method_and_the_charts_every_line():
    shown = dpsl_kt_figure_2ab.EXPERIMENT.show(rows_of("dpsl-kt", "squared"))
    sound, printed = [part for part in shown if isinstance(part, Grid)][:2]
    assert [row[0] for row in sound.rows] == [*PRIVATE, EXACT]
    assert [row[0] for row in printed.rows] == list(PRINTED)
    assert all("no finite epsilon" in cell for cell in printed.rows[1][1:])
    charts = [part for part in shown if isinstance(part, Chart)]
    assert [set(chart.series) for chart in charts] == [{*PRIVATE, *PRINTED, EXACT}] * 2
    assert all(len(line.x) == 2 for chart in charts for line in chart.series.values())


def made_up(pursuit, other):
    """Rows in which all private methods but one have the same error."""
    rows = [{"size": size, "method": EXACT, "epsilon": math.inf, "error": 0.1, "real epsilon": math.inf, "seed": 0}
            for size in ("(i)", "(ii)")]  # fmt: skip
    for size in ("(i)", "(ii)"):
        for method in (*PRIVATE, *PRINTED):
            for epsilon in (2.0, 5.0):
                error = pursuit if method == "pursuit" else other
                rows.append({"size": size, "method": method, "epsilon": epsilon, "error": error, "seed": 0,
                             "real epsilon": epsilon})  # fmt: skip
    return rows


@pytest.mark.parametrize(
    ("pursuit", "other", "best", "close"),
    [(0.2, 0.5, True, True), (0.6, 0.5, False, False), (0.3, 0.5, True, False), (0.24, 0.2, False, True)],
)
def test_verdicts_follow_the_rows(pursuit, other, best, close):
    verdicts = [
        part for part in dpsl_kt_figure_2ab.EXPERIMENT.show(made_up(pursuit, other)) if isinstance(part, Verdict)
    ]
    assert [verdict.holds for verdict in verdicts] == [best, close, close, True]  # printed noise costs what it claims
    assert verdicts[-1].errata
