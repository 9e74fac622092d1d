"""Fits of the same rows by one process, without a ledger: warned about once, and noted with what they cost together."""

import copy
import pickle
import re
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputRegressor

from thresher import DenseRegressor, FittedBefore, Ledger, PrivateSearchCV, SparseClassifier, SparseRegressor
from thresher.ledger import repeats
from thresher.privacy.certificate import combine

rng = np.random.default_rng(0)
N, D, DELTA = 3000, 8, 1e-7
X = rng.uniform(-1, 1, (N, D))
y = 2 * X[:, 0] + 0.3 * rng.normal(size=N)


def regressor(**changes):
    facts = {"sparsity": 2, "epsilon": 1.0, "delta": DELTA, "feature_bound": 1.0, "target_bound": 4.0, **changes}
    return SparseRegressor(algorithm="dp-ight", **facts)


def classifier():
    return SparseClassifier(2, epsilon=1.0, delta=DELTA, feature_bound=1.0, classes=[0, 1], algorithm="dp-ight")


def warned(work):
    """How often it was said that rows were fitted before, and what came of the work."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = work()
    return sum(warning.category is FittedBefore for warning in seen), result


def told(model):
    """The number of fits and the epsilon that a certificate notes; None if it notes none."""
    found = [re.match(r"(\d+) fits of this process .* epsilon=([\d.]+) at", note) for note in model.certificate_.notes]
    return next(((int(match[1]), float(match[2])) for match in found if match), None)


def many(model, *others):
    return warned(lambda: [each.fit(X, y) for each in (model, *others)])


# -- the same rows ------------------------------------------------------------------------------------------------


def test_a_second_fit_of_the_same_rows_is_warned_about_once_and_noted():
    times, fits = warned(lambda: [regressor().fit(X, y) for _ in range(4)])
    assert times == 1
    assert told(fits[0]) is None
    assert [told(model)[0] for model in fits[1:]] == [2, 3, 4]
    assert told(fits[-1])[1] == pytest.approx(combine(*fits).epsilon, rel=1e-3)
    assert all(model.certificate_.verify() for model in fits)
    assert {model.certificate_.grade for model in fits} == {"proved"}
    assert {model.certificate_.epsilon for model in fits} == {1.0}


def test_other_questions_about_the_same_rows_count_too():
    times, fits = warned(lambda: [regressor().fit(X, target) for target in (y, -y, y**2)])
    assert (times, told(fits[-1])[0]) == (1, 3)


def test_random_batches_are_added_up_by_basic_composition():
    models = [DenseRegressor(1.0, delta=DELTA, row_bound=2.0, target_bound=4.0, algorithm="dp-sgd") for _ in range(2)]
    times, fits = many(*models)
    assert (times, told(fits[-1])) == (1, (2, pytest.approx(2.0, abs=1e-3)))
    assert "by basic composition" in " ".join(fits[-1].certificate_.notes)


FORMS = {
    "C order": np.ascontiguousarray,
    "F order": np.asfortranarray,
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "frame": pd.DataFrame,
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_recognised_however_they_lie_and_in_any_order(form):
    order = np.random.default_rng(1).permutation(N)
    times, _ = warned(lambda: [regressor().fit(X, y), regressor().fit(FORMS[form](X[order]), y[order])])
    assert times == 1


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_rows_are_recognised_in_single_precision(form):
    single = form(X.astype(np.float32)[::-1])
    times, fits = warned(lambda: [regressor().fit(rows, y) for rows in (X, single, single)])
    assert (times, told(fits[-1])[0]) == (1, 3)


@pytest.mark.parametrize("rows", [12, 40, 64, 500])
def test_few_rows_are_recognised(rows):
    few = X[:rows], y[:rows]
    assert warned(lambda: [regressor().fit(*few), regressor().fit(*few)])[0] == 1


# -- rows in common -------------------------------------------------------------------------------------------------


def test_a_grid_search_does_not_pass_for_one_fit():
    search = GridSearchCV(regressor(), {"sparsity": [1, 2]}, cv=5)
    times, found = warned(lambda: search.fit(X, y))
    assert (times, told(found.best_estimator_)[0]) == (1, 11)
    assert told(found.best_estimator_)[1] > 3


@pytest.mark.parametrize("part", [2, 5, 10])
def test_a_part_of_a_table_is_recognised(part):
    memory, plan = repeats.FitMemory(), regressor().plan(N, D)
    memory.add(X, plan)
    assert len(memory.add(X[::part].copy(), plan)[0]) == 2


def test_two_halves_share_nothing_and_the_whole_shares_with_both():
    half = slice(None, N // 2), slice(N // 2, None)
    times, fits = warned(lambda: [regressor().fit(X[at], y[at]) for at in (*half, slice(None))])
    assert times == 1
    assert [told(model) and told(model)[0] for model in fits] == [None, None, 3]


LOOPS = {
    "cross validation": lambda: cross_val_score(regressor(), X, y, cv=3),
    "bagging": lambda: BaggingRegressor(regressor(), n_estimators=3, random_state=0).fit(X, y),
    "calibration": lambda: CalibratedClassifierCV(classifier(), cv=4).fit(X, y > 0),
    "several targets": lambda: MultiOutputRegressor(regressor()).fit(X, np.column_stack([y, -y])),
}


@pytest.mark.parametrize("loop", LOOPS)
def test_loops_over_folds_samples_and_targets_are_warned_about_once(loop):
    assert warned(LOOPS[loop])[0] == 1


def test_samples_with_replacement_are_recognised():
    draws = np.random.default_rng(2).integers(0, N, (4, N))
    times, fits = warned(lambda: [regressor().fit(X[rows], y[rows]) for rows in draws])
    assert (times, told(fits[-1])[0]) == (1, 4)


# -- nothing in common ------------------------------------------------------------------------------------------------


def nothing_is_said(*fits):
    times, models = warned(lambda: [model.fit(*rows, **more) for model, rows, more in fits])
    return times == 0 and all(told(model) is None for model in models)


def test_other_rows_are_not_warned_about():
    assert nothing_is_said(*((regressor(), (X + 1e-3 * at, y), {}) for at in range(5)))


def test_a_few_rows_in_common_are_not_warned_about():
    second = np.concatenate([X[: N // 20], -X[: N - N // 20]])
    assert nothing_is_said((regressor(), (X, y), {}), (regressor(), (second, y), {}))


def test_tables_of_few_different_rows_are_told_apart_by_how_often_they_occur():
    tables = [np.random.default_rng(seed).integers(0, 2, (N, 4)).astype(float) for seed in range(3)]
    assert nothing_is_said(*((regressor(), (table, y), {}) for table in tables))


def coins(n, d, rng):
    return rng.integers(0, 2, (n, d)).astype(float)


def patients(n, d, rng):
    """Age, sex and one of four departments."""
    return np.column_stack([rng.integers(20, 80, n), rng.integers(0, 2, n), rng.integers(0, 4, n)]).astype(float)


def words(n, d, rng):
    return (rng.random((n, d)) < 0.02).astype(float)


TABLES = [(coins, n, d) for d in (1, 2, 3, 5, 6, 7, 8, 10, 12, 20) for n in (20, 50, 200, 1000, 5000)]
TABLES += [(patients, n, 3) for n in (50, 200, 1000, 5000)] + [(words, n, d) for d in (20, 50) for n in (200, 5000)]


@pytest.mark.parametrize(("draw", "n", "d"), TABLES)
def test_other_people_whose_rows_happen_to_be_equal_are_not_warned_about(draw, n, d):
    """Tables of one population: no row of the second was fitted. A false alarm has a chance below 4%, so that four
    of ten have one below 1/2000."""
    alarms, plan = 0, regressor().plan(N, D)
    for seed in range(10):
        memory, rng = repeats.FitMemory(), np.random.default_rng([seed, n, d])
        memory.add(draw(n, d, rng), plan)
        alarms += len(memory.add(draw(n, d, rng), plan)[0]) > 1
    assert alarms < 4


@pytest.mark.parametrize(
    ("draw", "n", "d"), [(coins, 1000, 3), (coins, 1000, 7), (coins, 5000, 12), (patients, 1000, 3)]
)
def test_the_same_table_of_few_different_rows_is_recognised(draw, n, d):
    memory, plan, table = repeats.FitMemory(), regressor().plan(N, D), draw(n, d, np.random.default_rng(3))
    memory.add(table, plan)
    assert len(memory.add(table[::-1].copy(), plan)[0]) == 2


def test_costs_for_other_neighbours_do_not_add_up_and_are_not_mixed():
    assert nothing_is_said(
        (regressor(), (X, y), {}),
        (regressor(adjacency="add-remove", n_public=N), (X, y), {}),
        (regressor(), (X, y), {"groups": np.arange(N) // 2}),
    )


def test_without_privacy_nothing_is_counted():
    assert nothing_is_said(*((regressor(epsilon=float("inf")), (X, y), {}) for _ in range(2)))


def test_no_rows_are_no_rows_in_common():
    empty = np.empty((0, D)), np.empty(0)
    facts = {"adjacency": "add-remove", "n_public": 500}
    assert nothing_is_said((regressor(**facts), empty, {}), (regressor(**facts), empty, {}))


def test_a_private_search_is_one_fit():
    search = PrivateSearchCV(regressor(), {"sparsity": [1, 2, 3]}, epsilon=2.0, delta=DELTA)
    assert nothing_is_said((search, (X, y), {}))


def test_what_a_ledger_pays_for_is_counted_there(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.grant("people", 9.0, 1e-6)
    facts = {"ledger": ledger, "dataset": "people"}
    assert nothing_is_said((regressor(**facts), (X, y), {}), (regressor(**facts), (X, y), {}))


def test_a_fit_that_no_ledger_counts_beside_those_that_one_does_is_told_of(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.grant("people", 9.0, 1e-6)
    times, fits = many(regressor(ledger=ledger, dataset="people"), regressor())
    assert (times, told(fits[0]), told(fits[1])[0]) == (1, None, 2)


# -- the memory -------------------------------------------------------------------------------------------------------


def test_the_memory_never_leaves_its_process():
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="never leaves"):
            leave(repeats.FitMemory())


def test_names_of_rows_mean_nothing_without_the_key_and_models_carry_none():
    one, other = (repeats.FitMemory()._sketch(X).counts for _ in range(2))
    assert len(one) == len(other) == 256
    assert not one.keys() & other.keys()
    _, fits = many(regressor(), regressor())
    sketch = next(iter(repeats.MEMORY._fits)).sketch
    assert not any(str(name).encode() in pickle.dumps(fits[-1]) for name in sketch.counts)


def test_only_the_latest_fits_are_kept(monkeypatch):
    monkeypatch.setattr(repeats, "MOST_FITS", 3)
    memory = repeats.FitMemory()
    plan = regressor().plan(N, D)
    counted = [len(memory.add(X, plan)[0]) for _ in range(6)]
    assert counted == [1, 2, 3, 4, 4, 4]


def test_threads_count_every_fit_and_one_of_them_is_told():
    memory, plan = repeats.FitMemory(), regressor().plan(N, D)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: memory.add(X, plan), range(40)))
    assert sorted(len(fits) for fits, _ in found) == list(range(1, 41))
    assert sum(news for _, news in found) == 1
