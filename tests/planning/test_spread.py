"""The range of one run: its chance is exact, whatever the law."""

import numpy as np
import pytest

from thresher.planning.forecast import Spread, chance_of_one_run


@pytest.mark.parametrize(
    ("draws", "chance"), [(3, 0.5), (9, 0.8), (19, 0.9), (20, 19 / 21), (38, 37 / 39), (39, 0.9), (99, 0.9)]
)
def test_the_chance_of_one_run_by_counting(draws, chance):
    assert chance_of_one_run(draws) == pytest.approx(chance)


@pytest.mark.parametrize("draws", [9, 19, 39])
@pytest.mark.parametrize("law", ["normal", "standard_cauchy", "exponential"])
def test_the_range_holds_a_future_run_as_often_as_said(draws, law):
    """4000 trials at four deviations: false alarms 6e-5; a range one rank wider or narrower on either side is off by at
    least .05, ten deviations.
    """
    values = getattr(np.random.default_rng(0), law)(size=(4000, draws + 1))
    spreads = [Spread.of(row[:-1]) for row in values]
    held = np.mean([each.low <= row[-1] <= each.high for each, row in zip(spreads, values, strict=True)])
    chance = chance_of_one_run(draws)
    assert held == pytest.approx(chance, abs=4 * np.sqrt(chance * (1 - chance) / 4000))


def test_the_mean_has_the_usual_standard_error():
    values = np.random.default_rng(0).normal(2, 3, 19)
    spread = Spread.of(values)
    assert spread.mean == pytest.approx(values.mean())
    assert spread.standard_error == pytest.approx(values.std(ddof=1) / np.sqrt(19))
    assert (spread.low, spread.high) == (values.min(), values.max())
    assert Spread(**spread.to_dict()) == spread


def test_with_many_draws_the_extremes_are_left_out():
    assert (Spread.of(range(100)).low, Spread.of(range(100)).high) == (4, 95)
