"""The private scaler: what it learns, what that costs, and that it behaves in a pipeline."""

from __future__ import annotations

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from neighbours import round_off_paid
from thresher import Budget, PrivacyWarning, SparseRegressor
from thresher.models.scaler import OFFSETS, ColumnRanges, PrivateScaler
from thresher.privacy.bounds import Bounds
from thresher.privacy.certificate import Certificate, combine
from thresher.privacy.conversions import choice_epsilon, zcdp_rho
from thresher.privacy.plan import Plan
from thresher.privacy.releases import GumbelQuantile
from thresher.vaults import CentralVault
from thresher.vaults.losses import SQUARED
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

pytestmark = pytest.mark.filterwarnings("ignore::thresher.WideRanges")
NAN, INF = float("nan"), float("inf")
ADJACENCIES = ["replace-one", "add-remove"]


def scaler(**changes):
    return PrivateScaler(**{"epsilon": 1.0, "feature_bound": 100.0, "random_state": 0, **changes})


@pytest.fixture(scope="module")
def table():
    """Columns of very different location and scale, 10 to 10 000 times smaller than their public bound of 100."""
    rng = np.random.default_rng(0)
    scales = np.geomspace(0.01, 3, 8)
    X = rng.normal(size=(20_000, 8)) * scales + np.array([0, 2, -0.1, 0, 37, 0, -20, 5])
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, 2 * Z[:, 1] - Z[:, 4] + rng.normal(0, 0.3, len(X))


def vault_of(X, release, *, adjacency="replace-one", n=None, hardened=False, seed=0):
    problem = LinearProblem(
        n or X.shape[0], X.shape[1], Bounds(1.0, target=(-1.0, 1.0)), sparsity=1, loss=SQUARED, intercept=False
    )
    plan = Plan("test", problem, Budget(1e6, 1e-6, adjacency), (release,))
    return CentralVault(X, np.zeros(X.shape[0]), plan, NoiseSource(seed, hardened=hardened))


# -- the noise is as priced -------------------------------------------------------------------------------------


@pytest.mark.parametrize("centre", [True, False])
def test_the_plan_spends_the_budget_and_not_more(centre):
    plan = scaler(centre=centre, epsilon=1.0, delta=1e-8).plan(10_000, 50)
    rho = sum(release.times * choice_epsilon(release.multiplier) ** 2 / 8 for release in plan.releases)
    assert zcdp_rho(1.0, 1e-8) < rho  # the exact price of the order allows less noise than zCDP
    assert plan.with_least_noise().releases[-1].multiplier == pytest.approx(plan.releases[-1].multiplier, rel=1e-6)
    assert sum(release.times for release in plan.releases) == (150 if centre else 100)
    assert plan.epsilon <= 1.0
    cheaper = [GumbelQuantile(r.times, r.multiplier / 1.25) for r in plan.releases]
    assert sum((r.cost() for r in cheaper[1:]), cheaper[0].cost()).epsilon(1e-8)[0] > 1.1


@pytest.mark.parametrize("hardened", [False, True])
def test_an_end_is_chosen_with_the_probabilities_of_the_exponential_mechanism(hardened):
    """Equal columns are independent repetitions. False alarm 1e-4 per case; noise 1.25 times off is rejected."""
    n, d = 40, 2000
    column = np.linspace(0.002, 0.5, n)
    problem = LinearProblem(n, d, Bounds(1.0, target=(-1.0, 1.0)), sparsity=d, loss=SQUARED, intercept=False)
    ranges = ColumnRanges((0.1, 0.9), centre=False)
    plan = ranges.plan(problem, Budget(250.0, 1e-6))  # a scale of a few rows, so that many levels have a chance
    (ends,) = plan.releases
    with CentralVault(np.tile(column[:, None], d), np.zeros(n), plan, NoiseSource(1, hardened=hardened)) as vault:
        _, _, high = ranges.run(vault)
        assert {answer.sensitivity for answer in vault.answers} == {1.0}
    levels = np.unique(np.clip(OFFSETS, 0, 1))
    upto = (column[None, :] <= levels[:, None]).sum(axis=1)
    before = np.r_[0, upto[:-1]]
    scores = -np.clip(np.maximum(0.9 * n - upto, before - 0.9 * n), 0, None)
    counts = np.bincount(np.searchsorted(levels, high), minlength=levels.size)

    def p_value(scale):
        chances = np.exp(scores / scale)
        expected = d * chances / chances.sum()
        groups = np.cumsum(expected) // 50  # at least some fifty expected in each
        e, c = (np.bincount(groups.astype(int), values) for values in (expected, counts))
        e, c = e[e > 0], c[e > 0]
        return stats.chisquare(c, e).pvalue

    assert 1 < ends.multiplier < 20
    assert p_value(ends.multiplier) > 1e-4
    assert p_value(ends.multiplier * 1.25) < 1e-4
    assert p_value(ends.multiplier / 1.25) < 1e-4


@pytest.mark.parametrize("hardened", [False, True])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_row_moves_a_score_by_more_than_one(adjacency, hardened, monkeypatch):
    """The scores of every conceivable neighbour, ties and wild values included; a move of one does happen."""
    seen = []
    monkeypatch.setattr(
        CentralVault, "_release_choice", lambda self, scores, *rest: seen.append(scores) or np.array([0])
    )
    rng = np.random.default_rng(0)
    levels = np.r_[-OFFSETS[:0:-1] / 2, OFFSETS / 2]
    release = GumbelQuantile(1000, 1.0)
    moved = []
    for wild in (1e300, -1e300, 0.0, 5e-324, 0.25, -1.0):
        for q in (0.1, 0.5, 0.9):
            X = rng.choice([0.0, 0.25, -0.5, 1.0, rng.normal()], (25, 1))
            other = X.copy()
            other[rng.integers(25)] = wild
            if adjacency == "add-remove":
                other = np.vstack([X, [[wild]]])
            seen.clear()
            for rows in (X, other):
                vault_of(rows, release, adjacency=adjacency, n=25, hardened=hardened).column_quantile(
                    0, q, levels, release
                )
            moved.append(np.max(np.abs(seen[1] - seen[0])))
    assert max(moved) <= 1 + 1e-12
    assert max(moved) >= 1 - 1e-12


@pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")
@pytest.mark.parametrize("wild", [1e300, -1e300, 1e15])
def test_a_wild_row_hardly_moves_a_range(wild, table):
    X = table[0][:5000].copy()
    before = scaler(epsilon=INF).fit(X)
    X[7] = wild
    after = scaler(epsilon=INF).fit(X)
    assert np.all(np.abs(after.scale_ - before.scale_) <= 0.11 * before.scale_)  # at most to the next level


# -- what it learns ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("generous", [1.0, 1000.0])
def test_the_ends_have_about_the_ranks_asked_for(generous):
    """Each end is within ``rank_error`` with probability 0.95 by the theorem: of 400, more than 40 off has
    probability below 1e-4. A tenth of that error must not be kept, or the statement would be empty."""
    rng = np.random.default_rng(3)
    n, d = 4000, 200
    X = rng.normal(3.0, 1.0, (n, d))
    model = scaler(feature_bound=8.0 * generous, quantiles=(0.1, 0.9), random_state=1).fit(X)
    error = model.plan_.settings["rank_error"]
    low, high = model.centre_ - model.scale_, model.centre_ + model.scale_
    # the cell of an end reaches a tenth of its distance from the median, and that is within 3.3 to 2.7, inwards
    inner_low, inner_high = low + 0.12 * (3.3 - low), high - 0.12 * (high - 2.7)
    ranks = np.r_[np.less_equal(X, low).sum(axis=0), np.greater(X, high).sum(axis=0)]
    inner = np.r_[np.less_equal(X, inner_low).sum(axis=0), np.greater(X, inner_high).sum(axis=0)]

    def off(limit):
        return np.sum((ranks > 0.1 * n + limit) | (inner < 0.1 * n - limit))

    assert off(error) <= 40
    assert off(error / 10) > 40


def test_the_ranges_are_accurate_where_there_are_rows_enough(table):
    """Every end within a third of the column's deviation and 2 % of its median, at bounds up to 10 000 times too wide.

    The grids take 0.14 deviations and those 2 %. A further 0.2 beyond the quantile 0.1 are 600 rows, more than 20 times
    the noise: with 227 levels that has a probability below 1e-6 for each end.
    """
    X = table[0]
    model = scaler(quantiles=(0.1, 0.9)).fit(X)
    low, high = np.quantile(X, [0.1, 0.9], axis=0)
    near = 0.34 * X.std(axis=0) + 0.02 * np.abs(np.median(X, axis=0))
    assert 20 * model.plan_.releases[1].multiplier < 600
    assert np.all(np.abs(model.centre_ - model.scale_ - low) < near)
    assert np.all(np.abs(model.centre_ + model.scale_ - high) < near)


@pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")
def test_without_noise_the_range_holds_the_quantiles_and_is_a_tenth_wider_at_most():
    X = np.random.default_rng(0).normal(0, 1, (5000, 6)) ** 3
    model = scaler(epsilon=INF, quantiles=(0.05, 0.95)).fit(X)
    low, high = np.quantile(X, [0.05, 0.95], axis=0)
    assert np.all(model.centre_ - model.scale_ <= low + 1e-9)
    assert np.all(model.centre_ + model.scale_ >= high - 1e-9)
    assert np.all(2 * model.scale_ < 1.12 * (high - low))


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("pair", [(0.0, 1.0), (1.0, 2.0), (-3.0, 50.0)])
def test_a_column_of_two_values_keeps_them_apart(pair, share):
    """No public level splits equal values; the quantile of a column of ties must be found all the same."""
    X = np.where(np.random.default_rng(0).random((10_000, 3)) < share, pair[1], pair[0])
    Z = scaler(feature_bound=1000.0).fit_transform(X)
    assert np.all(np.ptp(Z, axis=0) > 1.5)


def test_columns_without_spread_fall_back_to_the_public_bound():
    X = np.zeros((5000, 3))
    X[:100, 1] = 1.0  # rarely different from zero
    X[:, 2] = 7.0
    model = scaler(feature_bound=[5.0, 10.0, 20.0], random_state=2).fit(X)
    assert model.scale_[:2].tolist() == [5.0, 10.0]
    assert model.transform(X)[[0, -1], 1].tolist() == [0.1, 0.0]
    assert np.ptp(model.transform(X)[:, 2]) == 0


@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_pure_noise_never_fails(seed, centre):
    X = np.random.default_rng(seed).normal(size=(5, 3)) * [0, 1, 1e6]
    model = scaler(epsilon=1e-3, random_state=seed, centre=centre, feature_bound=[1e-40, 1.0, 1e40]).fit(X)
    assert np.all((model.scale_ > 0) & np.isfinite(model.scale_) & np.isfinite(model.centre_))
    assert np.all(np.abs(model.transform(X)) <= 1)
    assert model.certificate_.verify()


@pytest.mark.parametrize(
    ("quantiles", "remedy"),
    [
        ((0.25, 0.75), r"and only 50 lie outside.* more rows, fewer columns$"),
        ((0.1, 0.9), r"and only 20 lie outside.* fewer columns, or quantiles closer to 0.5 such as \(0.25, 0.75\)$"),
    ],
)
def test_too_few_rows_for_the_columns_are_said_before_anything_is_spent(table, monkeypatch, quantiles, remedy):
    monkeypatch.setattr(CentralVault, "__init__", _never)
    with (
        pytest.warns(UserWarning, match=r"off by \d+ rows, " + remedy),
        pytest.raises(AssertionError, match="opened"),
    ):
        scaler(quantiles=quantiles).fit(table[0][:200])


def test_the_default_quantiles_leave_out_what_the_noise_makes_uncertain():
    tails = []
    for n in (100, 3000, 5000, 1_000_000):
        plan = scaler().plan(n, 50)
        low, high = plan.settings["quantiles"]
        assert low + high == pytest.approx(1)
        tails.append(low)
        if 0.05 < low < 0.25:
            assert low * n == pytest.approx(plan.settings["rank_error"])
    assert tails[0] == 0.25 > tails[2] > 0.05 == tails[3]
    assert scaler(quantiles=(0.3, 0.8)).plan(100, 50).settings["quantiles"] == [0.3, 0.8]
    assert scaler(epsilon=INF).plan(100, 50).settings["quantiles"] == [0.05, 0.95]


@pytest.mark.parametrize("n", [2500, 3000, 3500, 4000, 5000])
def test_the_default_quantiles_are_not_warned_about_where_they_suffice(n, table):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = scaler(epsilon=0.5).fit(table[0][:n])
    assert 0.05 < model.plan_.settings["quantiles"][0] < 0.25


def test_a_bound_of_millions_does_not_hide_a_column_of_units():
    """Two columns in one table: a weight in the hundred thousands and years of school from 1 to 16."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.lognormal(12, 0.5, 20_000), np.clip(np.rint(rng.normal(10, 2.5, 20_000)), 1, 16)])
    model = scaler(feature_bound=2e6).fit(X)
    assert 2 < model.scale_[1] < 8
    assert np.all(model.transform(X).std(axis=0) > 0.3)


# -- the map ----------------------------------------------------------------------------------------------------


def test_unseen_wild_values_stay_in_the_unit_interval(table):
    model = scaler().fit(table[0])
    wild = np.array([[1e308, -1e308, 5e-324, 0.0, -0.0, 3e38, -1e-30, 37.0]]).T * np.ones(8)
    Z = model.transform(wild)
    assert np.all(np.abs(Z) <= 1)
    assert Z[0].tolist() == [1.0] * 8
    assert Z[1].tolist() == [-1.0] * 8
    assert np.all(np.abs(model.transform(wild[2:].astype(np.float32))) <= 1)


def test_the_inverse_gives_back_what_was_not_clipped(table):
    X = table[0]
    model = scaler(quantiles=(0.1, 0.9)).fit(X)
    Z = model.transform(X)
    inside = np.abs(Z) < 1
    assert 0.7 < inside.mean() < 0.9
    np.testing.assert_allclose(model.inverse_transform(Z)[inside], X[inside], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix])
def test_sparse_columns_are_only_scaled_and_stay_sparse(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 4)) * (rng.random((5000, 4)) < 0.4) * [1, 2, 3, 4]
    dense = scaler(centre=False).fit(X)
    model = scaler(centre=False).fit(kind(X))
    np.testing.assert_allclose(model.scale_, dense.scale_, rtol=1e-12)
    assert np.all(model.centre_ == 0)
    given = kind(X)
    Z = model.transform(given)
    assert sparse.issparse(Z)
    assert Z.nnz == np.count_nonzero(X)
    assert np.array_equal(given.toarray(), X)  # untouched
    np.testing.assert_allclose(Z.toarray(), dense.transform(X), rtol=1e-12)
    back = model.inverse_transform(Z)
    assert sparse.issparse(back)
    np.testing.assert_allclose(back.toarray(), dense.inverse_transform(dense.transform(X)), rtol=1e-12)


def test_repeated_entries_of_a_sparse_matrix_count_as_their_sum():
    X = np.random.default_rng(0).normal(size=(2000, 2))
    model = scaler(centre=False).fit(X)
    twice = sparse.csr_array((np.array([1e308, 1e308, 0.1, -0.1]), np.array([0, 0, 1, 1]), np.array([0, 2, 4])))
    np.testing.assert_array_equal(model.transform(twice).toarray(), [[1, 0], [0, 0]])


def test_centring_sparse_input_is_refused_with_the_remedy(table, monkeypatch):
    model = scaler().fit(table[0])
    with pytest.raises(ValueError, match=r"centre=True would make sparse input dense; use centre=False"):
        model.transform(sparse.csr_array(table[0]))
    monkeypatch.setattr(CentralVault, "__init__", _never)
    with pytest.raises(ValueError, match=r"centre=True would make sparse input dense; use centre=False"):
        scaler().fit(sparse.csr_array(table[0]))


# -- what may not come in ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epsilon": 0}, ("epsilon=0", "above 0")),
        ({"delta": 1.0}, ("delta=1.0", "None for 1/n^2")),
        ({"feature_bound": None}, ("feature_bound=None", "may be generous")),
        ({"feature_bound": -1.0}, ("feature_bound=-1.0", "positive")),
        ({"feature_bound": [1.0, 2.0]}, ("2 values", "8 columns")),
        ({"feature_bound": "wide"}, ("feature_bound='wide'", "positive")),
        ({"quantiles": (0.9, 0.1)}, ("quantiles=(0.9, 0.1)", "(0.1, 0.9)")),
        ({"quantiles": (0.0, 0.9)}, ("quantiles=(0.0, 0.9)", "0 < low")),
        ({"quantiles": (0.6, 0.9)}, ("quantiles=(0.6, 0.9)", "low < 0.5")),
        ({"quantiles": 0.1}, ("quantiles=0.1", "pair")),
        ({"quantiles": ("a", "b")}, ("quantiles=('a', 'b')", "pair")),
        ({"adjacency": "both"}, ("adjacency='both'", "'replace-one'")),
        ({"n_public": 20_000}, ("n_public=20000", "add-remove")),
    ],
)
def test_bad_parameters_are_named_before_any_row_is_held(change, words, table, monkeypatch):
    monkeypatch.setattr(CentralVault, "__init__", _never)
    with pytest.raises(ValueError) as error:  # noqa: PT011  (the words are the match)
        scaler(**change).fit(table[0])
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda X: np.where(X > 5, NAN, X), ("X", "NaN")),
        (lambda X: np.where(X > 5, INF, X), ("X", "infinity")),
        (lambda X: X.ravel(), ("2D",)),
        (lambda X: X[:1], ("1 sample",)),
        (lambda X: pd.DataFrame(X).assign(city="Paris"), ("'city'", "schema")),
        (lambda X: pl.DataFrame({"a": X[:, 0], "city": ["Paris"] * len(X)}), ("'city'", "schema")),
    ],
)
def test_bad_data_is_refused_before_any_row_is_held(spoil, words, table, monkeypatch):
    monkeypatch.setattr(CentralVault, "__init__", _never)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        scaler().fit(spoil(table[0]))
    for word in words:
        assert word in str(caught.value)
    assert "Paris" not in str(caught.value)


# -- the certificate --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hardened", [False, True])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("centre", [True, False])
def test_the_certificate_lists_every_choice_and_verifies(adjacency, hardened, centre, table):
    X = table[0][:3000]
    n_public = 2990 if adjacency == "add-remove" else None
    model = scaler(adjacency=adjacency, hardened=hardened, n_public=n_public, random_state=None, centre=centre).fit(X)
    certificate = model.certificate_
    assert (certificate.algorithm, certificate.epsilon) == ("private-scaler", 1.0)
    assert certificate.grade == ("proved" if hardened else "conditional")
    assert certificate.adjacency == adjacency
    assert certificate.verify()
    assert [entry["answers"][0]["count"] for entry in certificate.releases] == ([8, 16] if centre else [16])
    for entry, release in zip(certificate.releases, model.plan_.releases, strict=True):
        (answer,) = entry["answers"]
        paid = 1 + round_off_paid(adjacency, hardened, 4)
        assert answer["scale"] == pytest.approx(release.multiplier * paid, rel=1e-9)
    assert Certificate.from_json(certificate.to_json()).verify()
    assert model.plan(n_public or 3000, 8) == model.plan_


def test_a_seed_and_a_row_count_that_was_read_are_named(table):
    X = table[0][:3000]
    assert scaler(random_state=1).fit(X).certificate_.grade == "conditional"
    counted = scaler(random_state=None, adjacency="add-remove").fit(X).certificate_
    assert any("n_public" in assumption for assumption in counted.assumptions)


def test_weak_budgets_are_warned_about(table):
    X = table[0][:500]
    with pytest.warns(PrivacyWarning, match="delta=0.1 is not below"):
        scaler(delta=0.1).fit(X)
    with pytest.warns(PrivacyWarning, match="privacy is OFF"):
        model = scaler(epsilon=INF).fit(X)
    assert (model.certificate_.epsilon, model.certificate_.grade) == (None, "none")


def test_without_random_state_two_fits_differ(table):
    X = table[0][:300]
    first, second = (scaler(random_state=None, epsilon=0.5).fit(X) for _ in range(2))
    assert not np.array_equal(first.scale_, second.scale_)


# -- scikit-learn -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("centre", [True, False])
def test_check_estimator_passes_without_exceptions(centre):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(scaler(centre=centre), on_fail=None)
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}
    assert sum(r["status"] == "passed" for r in results) > 40


@pytest.fixture(scope="module")
def pipeline(table):
    steps = [
        ("scale", PrivateScaler(epsilon=0.5, feature_bound=100, hardened=True)),
        (
            "model",
            SparseRegressor(3, epsilon=0.5, feature_bound=1.0, target_bound=6.0, algorithm="dp-ight", hardened=True),
        ),
    ]
    return Pipeline(steps).fit(*table)


def test_a_model_behind_the_scaler_sees_what_generous_bounds_hide(pipeline, table):
    X, y = table
    assert {1, 4} <= set(pipeline[-1].support_)
    assert pipeline.score(X, y) > 0.85
    bare = clone(pipeline[-1]).set_params(epsilon=1.0, feature_bound=100.0, random_state=0).fit(X, y)
    assert bare.score(X, y) < 0.5


def test_the_pipeline_costs_the_sum_of_its_steps(pipeline):
    parts = [step.certificate_ for step in pipeline]
    total = combine(pipeline)
    assert total == combine(*parts)
    assert 0.5 < total.epsilon < 1.0
    assert total.delta == sum(part.delta for part in parts)
    assert total.grade == "proved"
    assert total.verify()
    assert Certificate.from_json(total.to_json()).verify()


def test_clone_pickle_and_grid_search(pipeline, table):
    X, y = table[0][:4000], table[1][:4000]
    copy = clone(pipeline)
    assert copy["scale"].get_params() == pipeline["scale"].get_params()
    with pytest.raises(NotFittedError):
        copy["scale"].transform(X)
    pickled = pickle.dumps(pipeline["scale"])
    assert np.array_equal(pickle.loads(pickled).transform(X), pipeline["scale"].transform(X))
    assert len(pickled) < 10_000
    for word in (b"AESCounter", b"NoiseSource", b"Vault", b"Engine"):
        assert word not in pickled
    grid = {"scale__quantiles": [(0.1, 0.9), (0.25, 0.75)], "model__random_state": [0], "scale__random_state": [0]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, y)
    assert search.best_score_ > 0.5
    with pytest.raises(ValueError, match="GridSearchCV has no certificate"):  # it fitted many more than the best
        combine(search)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames_go_in_and_come_out_with_their_names(kind, table):
    X = table[0][:3000]
    names = [f"gene{j}" for j in range(8)]
    frame = pd.DataFrame(X, columns=names) if kind == "pandas" else pl.DataFrame(X, schema=names)
    model = scaler().set_output(transform=kind).fit(frame)
    Z = model.transform(frame)
    assert list(Z.columns) == names == list(model.get_feature_names_out())
    assert np.array_equal(Z.to_numpy(), scaler().fit(X).transform(X))
    np.testing.assert_array_equal(np.asarray(model.inverse_transform(Z)).shape, X.shape)


def test_columns_may_have_scalers_of_their_own(table):
    X = pd.DataFrame(table[0], columns=list("abcdefgh"))
    both = make_column_transformer(
        (scaler(epsilon=0.3, feature_bound=1.0), ["a", "c"]),
        (scaler(epsilon=0.4), ["b", "e"]),
        ("passthrough", ["d"]),
        ("drop", ["f"]),
    ).fit(X)
    total = combine(make_pipeline(both))
    assert total.algorithm == "private-scaler + private-scaler"
    assert total.verify()
    assert math.hypot(0.3, 0.4) * 0.9 < total.epsilon < 0.7


def _never(*args, **kwargs):
    raise AssertionError("a vault was opened")
