"""Table 6.1: the printed numbers, what they cost by hand, and the noise that is drawn."""

import math

import pytest
from scipy import stats

import noise_levels
from noise_levels import COLUMNS, answers, laplace_epsilon, pure_cost, real_cost

PRINTED = (0.800, 0.0800, 0.00800, 0.00566, 0.00800, 0.00057)


def test_the_formulas_give_the_noise_that_the_thesis_prints():
    assert [column.printed for column in COLUMNS.values()] == pytest.approx(PRINTED, rel=0.01)


def test_the_printed_gaussian_noise_costs_more_than_four_times_the_claim():
    """Erratum E-23."""
    costs = [real_cost(COLUMNS[name], 1e-3) for name in ("Local Grad P", "MPC Grad P")]
    assert costs == pytest.approx([2.05, 2.05], abs=0.01)


def test_the_printed_laplace_noise_costs_root_d_times_the_claim():
    """Erratum E-22; Pathak's is m times too large and costs less than is claimed."""
    found = [pure_cost(column) for column in COLUMNS.values()]
    assert found == ["0.0552", "5.52", "5.52", "none", "5.52", "none"]
    assert real_cost(COLUMNS["MPC Out P"], 1e-3) == pytest.approx(1.33, abs=0.01)
    assert real_cost(COLUMNS["Pathak"], 1e-3) < 0.01


def test_laplace_noise_in_one_dimension_has_its_known_curve(monkeypatch):
    """delta = P(loss > epsilon) - e^epsilon P'(loss > epsilon), both Laplace tails."""
    monkeypatch.setattr(noise_levels, "D", 1)
    shift, epsilon = 0.5, 0.3
    at = (shift - epsilon) / 2  # where the loss |x - shift| - |x| of x below it exceeds epsilon
    law = stats.laplace
    delta = law.cdf(at) - math.exp(epsilon) * law.cdf(at - shift)
    assert laplace_epsilon(shift, delta) == pytest.approx(epsilon, rel=0.01)


@pytest.mark.parametrize("name", ["Local Obj P", "MPC Grad P"])
def test_what_is_drawn_has_the_sd_that_is_stated(name):
    """1000 draws: within 5 / sqrt(2000) = 11 %, one false alarm in 10^6."""
    noise, sd = answers(COLUMNS[name], 1e-3)
    assert len(noise) == 1000
    assert noise.std() == pytest.approx(sd, rel=0.11)
