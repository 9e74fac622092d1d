"""Simulation: repeatable, the same in one process or two, and refused where it would not fit."""

import math

import numpy as np
import pytest

from thresher import SparseClassifier, SparseRegressor
from thresher.planning import simulate
from thresher.planning.forecast import prepare_simulation
from thresher.planning.simulate import LARGEST, SimulatedCase, score_run

NUMBERS = SparseRegressor(3, feature_bound=1.0, target_bound=3.0)
CLASSES = SparseClassifier(3, feature_bound=1.0, classes=["ill", "well"])


def simulation(model=NUMBERS, d=30, **settings):
    settings = {"algorithms": ["pursuit", "peeling"], "signal": 0.8, "draws": 3, "n_jobs": 1} | settings
    return prepare_simulation(model, 500, d, **settings)


CASES = [
    SimulatedCase("pursuit", 500, 1.0),
    SimulatedCase("peeling", 500, 1.0),
    SimulatedCase("pursuit", 200, 4.0),
    SimulatedCase("ight", 500, math.inf),
]


@pytest.mark.parametrize("model", [NUMBERS, CLASSES])
def test_the_same_seed_gives_the_same_runs_and_another_one_others(model):
    first, again, other = (simulation(model, random_state=seed).run(CASES) for seed in (1, 1, 2))
    assert first == again
    assert list(first) == CASES
    assert all(len(runs) == 3 for runs in first.values())
    assert first[CASES[3]] != other[CASES[3]]


def test_a_case_does_not_depend_on_the_others():
    """Restricting a plan to one algorithm shows the same numbers."""
    assert simulation().run(CASES[1:2]) == {CASES[1]: simulation().run(CASES)[CASES[1]]}


def test_draws_differ_and_so_does_the_noise():
    runs = simulation(draws=5).run(CASES)
    for case in CASES:
        assert len({run.error for run in runs[case]}) == 5


def test_two_processes_find_what_one_finds(monkeypatch):
    """Up to the order of sums in BLAS."""
    monkeypatch.setattr(simulate, "SMALL", 0)
    one, two = (simulation(n_jobs=jobs).run(CASES) for jobs in (1, 2))
    for case in CASES:
        np.testing.assert_allclose([run.error for run in one[case]], [run.error for run in two[case]], rtol=1e-3)


def test_the_estimator_given_is_left_alone_and_gets_what_was_asked():
    model = SparseRegressor(3, epsilon=2.0, feature_bound=1.0, target_bound=3.0, hardened=True, adjacency="add-remove")
    asked = simulation(model).model(SimulatedCase("peeling", 200, 4.0), 7).get_params()
    changed = {name for name, value in model.get_params().items() if asked[name] != value}
    assert changed == {"algorithm", "epsilon", "random_state"}
    assert (asked["algorithm"], asked["epsilon"], asked["random_state"]) == ("peeling", 4.0, 7)


@pytest.mark.parametrize("model", [NUMBERS, CLASSES])
def test_a_run_is_judged_against_the_truth(model):
    law = simulation(model).law(CASES[0])
    rng = np.random.default_rng(0)
    fresh = law.rows(rng, 1000, law.coefficients(rng))

    class Fitted:
        coef_ = fresh.theta.copy()
        support_ = np.flatnonzero(fresh.theta)

        def score(self, X, y):
            return 0.25

    truth = score_run(Fitted(), law, fresh)
    assert (truth.error, truth.found, truth.score) == (0, 1, 0.25)
    assert truth.direction == pytest.approx(0, abs=1e-7)
    Fitted.coef_ = np.zeros(30)
    Fitted.support_ = np.array([], dtype=int)
    zero = score_run(Fitted(), law, fresh)
    assert (zero.error, zero.direction, zero.found) == (1, 1, 0)
    Fitted.coef_ = 0.1 * fresh.theta
    Fitted.support_ = np.flatnonzero(fresh.theta)[:2]
    shrunk = score_run(Fitted(), law, fresh)
    assert shrunk.error == pytest.approx(0.9)
    assert shrunk.direction == pytest.approx(0, abs=1e-7)
    assert shrunk.found == pytest.approx(2 / 3)
    Fitted.coef_ = -fresh.theta
    assert score_run(Fitted(), law, fresh).direction == 1  # no positive multiple helps


def test_columns_count_in_units_of_their_bounds():
    """The same mistake, relative to what the column can do, counts the same in a wide and in a narrow column."""
    wide = tuple([10.0] * 15 + [0.1] * 15)
    law = simulation(SparseRegressor(3, feature_bound=wide, target_bound=3.0)).law(CASES[0])
    rng = np.random.default_rng(0)
    fresh = law.rows(rng, 100, law.coefficients(rng))

    class Fitted:
        support_ = np.array([0])

        def __init__(self, column):
            self.coef_ = fresh.theta.copy()
            self.coef_[column] += 1 / wide[column]

        def score(self, X, y):
            return 0.0

    assert score_run(Fitted(0), law, fresh).error == pytest.approx(score_run(Fitted(29), law, fresh).error)


@pytest.mark.parametrize("draws", [2, 0, -1, 2.5])
def test_too_few_draws_are_refused(draws):
    with pytest.raises(ValueError, match=rf"draws={draws} must be a whole number of at least 3"):
        simulation(draws=draws)


def test_a_table_that_is_too_large_is_refused_before_any_is_drawn(monkeypatch):
    monkeypatch.setattr(simulate.Simulation, "_draw", None)
    rows = LARGEST // 30 + 1
    with pytest.raises(ValueError, match=rf"n={rows} rows of d=30 columns .* plan without simulation"):
        simulation().run([*CASES, SimulatedCase("pursuit", rows, 1.0)])
