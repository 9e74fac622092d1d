"""Table 6.1: the printed numbers, what they cost by hand, and the noise that is drawn."""

import math

import pytest
from scipy import stats

from thresher_papers.experiments.experiment import Grid, Verdict
from thresher_papers.experiments.thesis_table_6_1 import (
    COLUMNS,
    DELTAS,
    EXPERIMENT,
    PRINTED,
    laplace_epsilon,
    pure_cost,
    real_cost,
    run,
)


def test_the_formulas_give_the_noise_that_the_thesis_prints():
    printed = [scale for scale, _ in PRINTED.values()]
    assert [column.formula for column in COLUMNS.values()] == pytest.approx(printed, rel=0.01)


def test_the_printed_gaussian_noise_costs_more_than_four_times_the_claim():
    """Erratum E-23."""
    costs = [real_cost(COLUMNS[name], 1e-3) for name in ("Local Grad P", "MPC Grad P")]
    assert costs == pytest.approx([2.05, 2.05], abs=0.01)


def test_the_printed_laplace_noise_costs_root_d_times_the_claim():
    """Erratum E-22; Pathak's is m times too large and costs less than is claimed."""
    found = [pure_cost(column) for column in COLUMNS.values()]
    assert found == pytest.approx([0.0552, 5.52, 5.52, math.inf, 5.52, math.inf], abs=0.005)
    assert real_cost(COLUMNS["MPC Out P"], 1e-3) == pytest.approx(1.33, abs=0.01)
    assert real_cost(COLUMNS["Pathak"], 1e-3) < 0.01


def test_laplace_noise_in_one_dimension_has_its_known_curve():
    """delta = P(loss > epsilon) - e^epsilon P'(loss > epsilon), both Laplace tails."""
    shift, epsilon = 0.5, 0.3
    at = (shift - epsilon) / 2  # where the loss |x - shift| - |x| of x below it exceeds epsilon
    law = stats.laplace
    delta = law.cdf(at) - math.exp(epsilon) * law.cdf(at - shift)
    assert laplace_epsilon(shift, delta, dimension=1) == pytest.approx(epsilon, rel=0.01)


@pytest.mark.parametrize("name", ["Local Obj P", "MPC Grad P"])
def test_what_is_drawn_has_the_sd_that_is_stated(name):
    """1000 draws: within 5 / sqrt(2000) = 11 %, one false alarm in 10^6."""
    (row,) = run(name, 1e-3, 0)
    assert row["drawn sd"] == pytest.approx(row["sound sd"], rel=0.11)


# -- what the rows show ---------------------------------------------------------------------------------------------


def some_rows(**changes):
    """All methods with their true formulas, and made-up costs and noise in the printed order."""
    return [
        {"method": method, "delta": delta, "seed": 0, "law": column.law, "formula": column.formula,
         "printed sd": column.sd, "cost at delta 0": 0.5, "cost": 0.5, "sound sd": 2 * column.sd,
         "drawn sd": 2 * column.sd, **changes}
        for method, column in COLUMNS.items() for delta in DELTAS
    ]  # fmt: skip


def verdicts(rows):
    return [part.holds for part in EXPERIMENT.show(rows) if isinstance(part, Verdict)]


def test_the_table_has_every_method_and_delta():
    rows = some_rows()
    (grid,) = (part for part in EXPERIMENT.show(rows) if isinstance(part, Grid))
    assert list(grid.columns) == ["", *COLUMNS]
    assert len(grid.rows) == 6 + 3 * len(DELTAS)
    assert {len(line) for line in grid.rows} == {1 + len(COLUMNS)}


def test_the_cells_are_every_method_at_every_delta():
    assert {(cell["method"], cell["delta"]) for cell in EXPERIMENT.cells(True)} == {
        (method, delta) for method in COLUMNS for delta in DELTAS
    }


@pytest.mark.parametrize(
    ("change", "fails"),
    [
        ({"formula": 1.0}, [0]),
        ({"cost": 0.51}, [1, 2]),
        ({"drawn sd": 9.0}, [5]),
        ({"sound sd": 1.0, "drawn sd": 1.0}, [4]),  # all alike: joint noise is no smaller
    ],
)
def test_each_verdict_falls_with_the_number_it_is_about(change, fails):
    assert verdicts(some_rows()) == [True] * 6
    assert verdicts(some_rows(**change)) == [at not in fails for at in range(6)]


def test_the_order_is_told_as_it_is():
    rows = [row | {"sound sd": 1e-4, "drawn sd": 1e-4} if row["method"] == "Pathak" else row for row in some_rows()]
    assert verdicts(rows)[3] is False
