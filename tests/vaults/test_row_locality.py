"""What is computed for a row is a function of that row and of public facts alone, to the last bit.

A rank moves by one when one row does only if no other row's norm, margin or residual moves by a single bit
(docs/guarantees.md, "Row-locality"). Here one row is replaced, added, removed or put elsewhere, wild ones among them,
and the bits of everything that choices, quantiles, clips, scores and votes look at are compared for all other rows.
"""

import itertools

import numpy as np
import pandas
import pytest
from scipy import sparse

from inside import engine_of, targets_of
from thresher import SparseClassifier, SparseRegressor
from thresher.algorithms import DPIGHT, DPSGD
from thresher.data.dask import check_partition
from thresher.models.estimator import checked_rows
from thresher.models.scaler import PrivateScaler
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.vaults import CentralVault, kernels
from thresher.vaults.central.rows import clip_residuals, margins_of
from thresher.vaults.clipping import clip_rows, row_norms
from thresher.vaults.engines import engine_for
from thresher.vaults.engines.dask import stacked
from thresher.vaults.losses import SQUARED, loss_named
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource
from thresher.vaults.scoring import Scoring
from thresher.vaults.trials import Trials

D = 37
WILD = {
    "tiny": np.append(1e-200, np.full(D - 1, 0.2)),
    "all tiny": np.full(D, -1e-200),
    "subnormal": np.append(1e-310, np.full(D - 1, 0.1)),
    "all subnormal": np.full(D, 1e-310),
    "huge": np.full(D, 1e300),
    "one huge": np.append(np.zeros(D - 1), -1e300),
    "near the largest": np.full(D, 1.7e308),
    "zeros": np.zeros(D),
    "negative zeros": np.full(D, -0.0),
    "one entry": np.append(np.zeros(D - 1), 0.5),
    "long": np.linspace(-1, 1, D),
}


def in_three_parts(values):
    """What they add up to depends on their order."""
    return np.stack([values / 3, values * 0.1, values - values / 3])


def unsorted_with_duplicates(X):
    """COO, every cell in three parts, rows between each other; a row's entries are in the order of a public key."""
    filled = sparse.coo_array(np.where(np.abs(X) < 1e290, X, 0.0))
    part = np.repeat(np.arange(3), filled.nnz)
    rows, columns = (np.tile(side, 3) for side in filled.coords)
    order = np.lexsort((-rows, (5 * columns + 7 * part) % 11, part))
    values = in_three_parts(filled.data).ravel()
    return sparse.coo_array((values[order], (rows[order], columns[order])), shape=X.shape)


def unsorted_columns(X):
    """CSC whose columns hold their rows in falling order, one part of every cell after the other."""
    backwards = sparse.csc_array(sparse.csr_array(np.where(np.abs(X) < 1e290, X, 0.0))[::-1])
    columns = [slice(*ends) for ends in itertools.pairwise(backwards.indptr)]
    values = np.concatenate([in_three_parts(backwards.data[column]).ravel() for column in columns])
    rows = np.concatenate([np.tile(X.shape[0] - 1 - backwards.indices[column], 3) for column in columns])
    return sparse.csc_array((values, rows, 3 * backwards.indptr), shape=X.shape)


FORMS = {
    "dense": np.array,
    "dense single": lambda X: np.clip(X, -1e38, 1e38).astype(np.float32),
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "csr single": lambda X: sparse.csr_array(np.clip(X, -1e38, 1e38).astype(np.float32)),
    "coo with duplicates": unsorted_with_duplicates,
    "csc with duplicates": unsorted_columns,
}
BOUNDS = {"features": Bounds(feature=1.0, target=(-1.0, 1.0)), "rows": Bounds(row=1.3, target=(-1.0, 1.0))}


@pytest.fixture(params=["compiled", "plain"])
def loops(request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setattr(kernels, "_loops", None)
    elif kernels.compiled() is None:
        pytest.skip("the compiled loops could not be built here")


def table(n, loss, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)) * (rng.random((n, D)) < 0.6) * rng.choice([0.1, 0.5, 1.0], (n, 1))
    if loss == "multinomial":
        return X, np.eye(11)[rng.integers(0, 11, n)]
    return X, (rng.random(n) < 0.5).astype(float) if loss == "logistic" else rng.uniform(-1, 1, n)


def quantities(X, y, loss, bounds, form, hardened=False):
    """Everything about single rows that a question looks at before it adds anything up."""
    outputs = y.shape[1] if y.ndim == 2 else 1
    problem = LinearProblem(50, D, bounds, sparsity=5, loss=loss_named(loss), intercept=True, outputs=outputs)
    adjacency = Budget(1.0, 1e-6, "add-remove")
    algorithm = DPSGD() if outputs > 1 else DPIGHT()
    vault = CentralVault(form(X), y, algorithm.plan(problem, adjacency), NoiseSource(0, hardened=hardened))
    engine, rng = engine_of(vault), np.random.default_rng(1)
    few, all_ = (problem.by_column(rng.normal(size=problem.dimension)) for _ in range(2))
    few[7:] = 0
    support = np.array([0, 3, 5, 11, 36])
    units = rng.uniform(0.5, 2, len(support))
    basis = rng.normal(size=(len(support), 3))
    restricted, projected = engine.columns(support, 1 / units), engine.projected(support, basis / units[:, None])
    sizes, limits = vault._sizes, vault._limits(0.3)
    found = {
        "norms": vault._norms(),
        "restricted norms": restricted.row_norms(),
        "projected rows": projected.product(np.eye(3)),
        "projected norms": projected.row_norms(),
        "projected limits": vault._limits_of(projected.row_norms(), 0.3),
        "restricted sizes": sizes("gradient norms", engine, vault.problem.origin(), support),
        "projected sizes": sizes("gradient norms", engine, vault.problem.origin(), support, basis),
        "limits": limits,
        "targets": targets_of(vault),
    }
    batch = vault._batch(np.arange(len(y)))
    for name, theta in (("few", few), ("all", all_)):
        margins = margins_of(engine, theta)
        residuals = vault._residuals(margins.copy())
        with np.errstate(over="ignore", invalid="ignore"):
            found |= {
                f"margins of {name}": margins,
                f"residuals of {name}": residuals,
                f"clipped residuals of {name}": clip_residuals(residuals.copy(), limits),
                f"losses of {name}": vault._clipped_losses(margins, 2.0),
                f"batch margins of {name}": batch.product(theta),
            }
    projected = engine.projected(support, rng.normal(size=(len(support), 3)) / units[:, None])
    found |= {
        "projected rows": projected.product(np.eye(3)),
        "projected norms": projected.row_norms(),
        "projected margins": projected.product(np.array([0.3, -1.7, 0.9])),
        "sizes of residuals": vault._residual_sizes(engine, rng.normal(size=problem.dimension)),
    }
    scoring = Scoring.of_numbers("neg_mean_squared_error", [(-1.0, 1.0)]) if loss == "squared" else None
    scoring = scoring or Scoring.of_classes("neg_log_loss", max(2, outputs))
    found["scores"] = scoring.of_rows(margins_of(engine, all_), targets_of(vault))
    for part, rows in enumerate(engine.parts(np.arange(len(y)) % 2, 2)):
        dense = rows.toarray() if sparse.issparse(rows) else rows
        found[f"rows of part {part}"] = np.zeros((len(y), dense.shape[1]))
        found[f"rows of part {part}"][part::2] = dense
    return found


def assert_same_bits(these, those, kept_here, kept_there, skip=()):
    for name in these:
        if name.startswith(skip):
            continue
        here, there = np.asarray(these[name])[kept_here], np.asarray(those[name])[kept_there]
        np.testing.assert_array_equal(np.isnan(here), np.isnan(there), err_msg=name)
        here, there = (np.nan_to_num(side, nan=0.5, posinf=1e308, neginf=-1e308) for side in (here, there))
        np.testing.assert_array_equal(np.signbit(here), np.signbit(there), err_msg=name)
        np.testing.assert_array_equal(here, there, err_msg=name)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", ["squared", "logistic", "multinomial"])
def test_one_wild_row_changes_no_bit_of_any_other(loops, loss, form, bounds):
    X, y = table(67, loss)
    form, bounds = FORMS[form], BOUNDS[bounds]
    before = quantities(X, y, loss, bounds, form)
    target = y[3]
    for wild in WILD.values():
        for at in (0, 3, 66):
            others = np.delete(np.arange(67), at)
            changed = X.copy()
            changed[at] = wild
            assert_same_bits(before, quantities(changed, y, loss, bounds, form), others, others)
        added = quantities(np.vstack([wild[None], X]), np.concatenate([[target], y]), loss, bounds, form)
        assert_same_bits(before, added, np.arange(67), np.arange(1, 68), skip=("rows of part",))


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", ["squared", "logistic", "multinomial"])
def test_rows_may_come_go_and_change_places(loops, loss, form, bounds):
    X, y = table(45, loss)
    form, bounds = FORMS[form], BOUNDS[bounds]
    before = quantities(X, y, loss, bounds, form)
    parts = ("rows of part",)
    for at in (0, 20, 44):
        others = np.delete(np.arange(45), at)
        assert_same_bits(before, quantities(X[others], y[others], loss, bounds, form), others, slice(None), parts)
    order = np.random.default_rng(3).permutation(45)
    assert_same_bits(before, quantities(X[order], y[order], loss, bounds, form), order, slice(None), parts)
    for few in (1, 2, 3):
        assert_same_bits(before, quantities(X[:few], y[:few], loss, bounds, form), slice(few), slice(None), parts)
    assert all(len(found) == 0 for found in quantities(X[:0], y[:0], loss, bounds, form).values())


def in_order_but_for_one(X, first_is_in_order):
    """COO, row after row, each in the order of its columns and every cell in three parts; the first row backwards."""
    filled = sparse.coo_array(X)
    rows, columns = (np.repeat(side, 3) for side in filled.coords)
    values = in_three_parts(filled.data).T.ravel()
    at = np.arange(len(rows))
    if not first_is_in_order:
        at[rows == 0] = at[rows == 0][::-1]
    return sparse.coo_array((values[at], (rows[at], columns[at])), shape=X.shape)


def as_parts(X):
    """As workers put the rows of a Dask collection together."""
    return stacked([X, X], "csr")


def as_trials(X):
    """As a search takes out the rows that it fits and those that it scores."""
    problem = LinearProblem(50, D, BOUNDS["rows"], sparsity=5, loss=SQUARED, intercept=True)
    plan = DPIGHT().plan(problem, Budget(1.0, 1e-6, "add-remove"))
    return Trials(X, np.zeros(X.shape[0]), plan, NoiseSource(0))._part(np.ones(X.shape[0], dtype=bool))[0]


def as_scaled(X):
    """As the next step of a pipeline gets them."""
    scaler = PrivateScaler(1.0, 1e-6, feature_bound=4.0, centre=False, random_state=0)
    return scaler.fit(table(45, "squared")[0]).transform(X)


@pytest.mark.parametrize(
    "passed", [lambda X: X, as_parts, as_trials, as_scaled], ids=["as it is", "parts", "trials", "scaled"]
)
def test_a_row_out_of_order_does_not_reorder_the_duplicates_of_others(passed):
    """SciPy sorts all rows as soon as one is out of order, and its sort puts equal columns into any order."""
    X, _ = table(45, "squared")
    clipped = [clip_rows(passed(in_order_but_for_one(X, tidy)), BOUNDS["rows"]) for tidy in (True, False)]
    here, there = (rows.toarray()[1:45] for rows in clipped)
    np.testing.assert_array_equal(here, there)


def in_memory(frame):
    return checked_rows(SparseRegressor(2, feature_bound=0.1, target_bound=1.0), frame)


def on_a_worker(frame):
    return check_partition(frame, 2, [np.float64, np.float32]).value


@pytest.mark.parametrize("checked", [in_memory, on_a_worker])
def test_a_cell_that_makes_a_column_of_a_frame_double_changes_no_other_row(checked):
    """A column of a frame has a kind of its own, which follows from its cells wherever pandas puts rows together."""
    rows = pandas.DataFrame(np.full((5, 2), 0.3, dtype=np.float32))
    comes = pandas.DataFrame({0: [0.1], 1: [0.2]})  # no numbers of single precision
    longer = pandas.concat([rows, comes], ignore_index=True)
    here, there = (clip_rows(checked(frame), Bounds(feature=0.1, row=0.1)) for frame in (rows, longer))
    np.testing.assert_array_equal(here, there[:5])


@pytest.mark.parametrize("hardened", [True, False])
@pytest.mark.parametrize("form", ["dense", "dense single", "csr", "csc with duplicates"])
def test_hardened_or_not_the_bits_are_those_of_the_row(form, hardened):
    X, y = table(45, "logistic")
    form = FORMS[form]
    before = quantities(X, y, "logistic", BOUNDS["rows"], form, hardened)
    X[7] = WILD["tiny"]
    others = np.delete(np.arange(45), 7)
    assert_same_bits(before, quantities(X, y, "logistic", BOUNDS["rows"], form, hardened), others, others)


@pytest.mark.parametrize("form", [np.array, sparse.csr_array, sparse.csc_array], ids=["dense", "csr", "csc"])
def test_a_row_of_zeros_changes_no_other_norm_in_a_tall_table(loops, form):
    """The number of stored entries changes with it, and so did the blocks in which squares were added up."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 60))
    before = row_norms(clip_rows(form(X), Bounds(feature=3.0)))
    theta = rng.normal(size=60)
    margins = engine_for(clip_rows(form(X), Bounds(feature=3.0)), 0.0).product(theta)
    X[0] = 0
    rows = clip_rows(form(X), Bounds(feature=3.0))
    np.testing.assert_array_equal(row_norms(rows)[1:], before[1:])
    np.testing.assert_array_equal(engine_for(rows, 0.0).product(theta)[1:], margins[1:])
    np.testing.assert_array_equal(row_norms(rows[1:] if form is np.array else rows.tocsr()[1:].tocsc()), before[1:])


def test_equal_rows_have_equal_bits_wherever_they_lie(loops):
    """BLAS gives equal rows different margins near the edges of its tiles."""
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 5, 8, 17, 33, 64, 129, 1030):
        for d in (1, 2, 3, 4, 7, 16, 33):
            row, theta = rng.normal(size=d), rng.normal(size=(d, 3))
            X = np.tile(row, (n, 1))
            for rows in (X, X.astype(np.float32), sparse.csc_array(X)):
                engine = engine_for(clip_rows(rows, Bounds(feature=9.0)), 0.7)
                projected = engine.projected(np.arange(d + 1), np.vstack([theta, np.ones(3)]))
                batch = engine.by_rows().take(np.arange(n))
                for found in (
                    engine.row_norms(),
                    projected.row_norms(),
                    *projected.X.T,
                    engine.product(np.append(theta[:, 0], 0.3)),
                    *engine.product(np.vstack([theta, np.ones(3)])).T,
                    batch.product(np.append(theta[:, 0], 0.3)),
                ):
                    assert len(np.unique(found)) == 1


def test_a_row_of_infinite_residuals_becomes_nobody_elses_nan():
    """A loss of one's own with several outputs may overflow; clipped together they were infinity times nothing."""
    residuals = np.array([[3.0, 4.0], [np.inf, 1.0], [-np.inf, np.inf], [1e200, 1e200], [0.3, 0.4]])
    clipped = clip_residuals(residuals, np.ones(5))
    assert np.all(np.isfinite(clipped))
    np.testing.assert_allclose(clipped[[0, 4]], [[0.6, 0.8], [0.3, 0.4]])
    assert np.all(np.linalg.norm(clipped, axis=1) <= 1 + 1e-15)


ON_A_LEVEL = (0.8772690696433787, 0.9398359119710803)  # its norm is exactly a level of pursuit: sqrt(2)/1.1


@pytest.mark.parametrize("form", [np.array, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("hardened", [True, False])
def test_a_tiny_entry_does_not_move_everybody_across_a_level(loops, form, hardened):
    """With rows on a level, one ulp more is n ranks: the last Gram clip of a fit told the two tables apart."""
    n, runs = 1000, 5
    X = np.tile(ON_A_LEVEL, (n, 1))
    y = np.arange(n) % 2
    clips = {}
    for name, first in (("plain", (0.3, 0.2)), ("tiny", (1e-200, 0.2))):
        X[0] = first
        model = SparseClassifier(
            2, epsilon=1.0, delta=1e-6, feature_bound=1.0, classes=[0, 1], fit_intercept=False, hardened=hardened,
            algorithm="pursuit",
        )  # fmt: skip
        fits = (model.set_params(random_state=seed).fit(form(X), y).certificate_ for seed in range(runs))
        clips[name] = [[release["answers"] for release in certificate.releases] for certificate in fits]
    assert clips["plain"] == clips["tiny"]  # with the same noise, the same choices


FUNCTIONS = [np.tanh, np.exp, np.log1p, np.sqrt, np.square, lambda x: np.logaddexp(0.0, x), lambda x: np.hypot(x, 0.7)]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_elementwise_functions_compute_elements_apart(function):
    """Vector instructions must not choose a formula for several elements together."""
    rng = np.random.default_rng(0)
    values = np.concatenate(
        [rng.normal(size=64), [1e-310, 1e-200, 1e300, 710.0, -745.2, 0.0, -0.0, np.inf, -np.inf, np.nan]]
    )
    with np.errstate(all="ignore"):
        alone = np.array([function(np.array([value]))[0] for value in values])
        for _ in range(50):
            order = rng.permutation(len(values))[: rng.integers(1, len(values))]
            np.testing.assert_array_equal(function(values[order]), alone[order])
