"""Clips make the bounds true for every row, touch nothing else, and buy exactly the sensitivity they state."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Adjacency
from thresher.privacy.sensitivity import gradient_sensitivity, minimiser_sensitivity
from thresher.vaults.clipping import clip_rows, clip_targets, residual_limits, row_norms

FORMS = {
    "dense": np.array,
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "csr_matrix": sparse.csr_matrix,
}
BOUNDS = {
    "feature": Bounds(feature=0.5),
    "per column": Bounds(feature=(0.1, 1.0, 10.0, 1e-3)),
    "row": Bounds(row=1.0),
    "both": Bounds(feature=0.5, row=0.6),
}
TAME = np.array([[0.3, -0.2, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [-0.1, 0.1, 0.4, 0.0]])
WILD = np.array(
    [
        [1e300, -1e300, 1e300, 1e300],
        [1e-320, 0.0, -1e-320, 0.0],
        [0.0, 0.0, 0.0, 0.0],
        [0.1, -0.2, 0.3, 0.0],
        [1e6, 1e-320, -1e300, 0.4],
        [3.0, 4.0, 0.0, 0.0],
    ]
)
WILD_ENTRIES = st.sampled_from([0.0, 0.3, -1.0, 1e300, -1e300, 1e-320, 5e-324, 1e6]) | st.floats(-1e300, 1e300)


def plain(X):
    return X.toarray() if sparse.issparse(X) else X


def limits_of(bounds, d):
    return np.full(d, np.inf) if bounds.feature is None else np.broadcast_to(bounds.feature, d)


# -- rows -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
@settings(max_examples=30, deadline=None)
@given(X=arrays(np.float64, (4, 4), elements=WILD_ENTRIES))
def test_no_row_is_outside_the_bounds_after_clipping(form, bounds, X):
    clipped = plain(clip_rows(FORMS[form](X), bounds))
    assert np.all(np.abs(clipped) <= limits_of(bounds, 4))
    assert all(math.hypot(*row) <= bounds.row_norm(4) * (1 + 1e-12) for row in clipped)


@pytest.mark.parametrize("form", FORMS)
def test_a_row_bound_keeps_the_direction(form):
    clipped = plain(clip_rows(FORMS[form](WILD), Bounds(row=1.0)))
    np.testing.assert_allclose(clipped[0], [0.5, -0.5, 0.5, 0.5], rtol=1e-12)
    np.testing.assert_allclose(clipped[5], [0.6, 0.8, 0, 0], rtol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("feature", [0.5, (0.1, 1.0, 10.0, 1e-3)], ids=["scalar", "per column"])
def test_a_feature_bound_clips_entry_by_entry(form, feature):
    clipped = plain(clip_rows(FORMS[form](WILD), Bounds(feature=feature)))
    np.testing.assert_array_equal(clipped, np.clip(WILD, -np.asarray(feature), np.asarray(feature)))


@pytest.mark.parametrize("form", FORMS)
def test_with_both_bounds_entries_are_clipped_before_rows(form):
    clipped = plain(clip_rows(FORMS[form](np.array([[1e300, 0.3, 0.0, 0.0]])), Bounds(feature=0.4, row=0.25)))
    np.testing.assert_allclose(clipped, [[0.2, 0.15, 0, 0]], rtol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bounds", [Bounds(feature=0.4), Bounds(row=0.45), Bounds(feature=0.4, row=0.45)], ids=str)
def test_rows_inside_the_bounds_are_untouched(form, bounds):
    np.testing.assert_array_equal(plain(clip_rows(FORMS[form](TAME), bounds)), TAME)


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
def test_tiny_rows_and_zero_rows_survive(bounds):
    np.testing.assert_array_equal(clip_rows(WILD, bounds)[1:3], WILD[1:3])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_input_is_not_modified(form, dtype):
    X = FORMS[form](np.clip(WILD, -1e30, 1e30).astype(dtype))
    before = X.copy()
    clip_rows(X, BOUNDS["both"])
    np.testing.assert_array_equal(plain(X), plain(before))
    assert X.dtype == dtype


@pytest.mark.parametrize("form", [form for form in FORMS if form != "dense"])
@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
def test_sparse_rows_are_clipped_as_dense_ones(form, bounds):
    np.testing.assert_allclose(plain(clip_rows(FORMS[form](WILD), bounds)), clip_rows(WILD, bounds), rtol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_single_precision_stays_and_huge_rows_end_just_inside_the_bound(form):
    X = np.array([[3e38, 3e38], [0.1, 0.2]], dtype=np.float32)
    clipped = clip_rows(FORMS[form](X), Bounds(row=1.0))
    assert clipped.dtype == np.float32
    np.testing.assert_allclose(plain(clipped)[0], math.sqrt(0.5), rtol=1e-6)
    np.testing.assert_array_equal(plain(clipped)[1], X[1])


@pytest.mark.parametrize("form", ["dense", "csr"])
@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 10**6), bound=st.floats(1e-6, 1e6), feature=st.floats(1e-6, 1e6))
def test_rounding_to_single_precision_never_lifts_a_row_or_an_entry_above_its_bound(form, seed, bound, feature):
    X = (np.random.default_rng(seed).normal(size=(20, 5)) * 10 * bound).astype(np.float32)
    clipped = plain(clip_rows(FORMS[form](X), Bounds(feature, bound))).astype(np.float64)
    assert np.max(np.linalg.norm(clipped, axis=1)) <= bound
    assert np.max(np.abs(clipped)) <= feature


@pytest.mark.parametrize("form", FORMS)
def test_norms_of_rows_whose_squares_overflow_or_vanish_are_right(form):
    X = np.array([[3e200, 4e200, 0], [3e-200, 0, 4e-200], [0, 0, 0], [3, 4, 0]])
    held = FORMS[form](X)
    norms = row_norms(held if form == "dense" else held.tocsc())
    np.testing.assert_allclose(norms, [5e200, 5e-200, 0, 5], rtol=1e-14)


@pytest.mark.parametrize("form", ["coo", "csr", "csc"])
@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
def test_entries_stored_twice_are_added_before_they_are_clipped(form, bounds):
    data, rows, columns = [0.4, 0.4, -0.3, 5.0], [0, 0, 0, 1], [1, 1, 0, 2]
    stored_twice = sparse.coo_array((data, (rows, columns)), shape=(2, 4))
    if form != "coo":
        order = np.argsort(rows if form == "csr" else columns, kind="stable")
        major, minor = (rows, columns) if form == "csr" else (columns, rows)
        pointers = np.searchsorted(np.sort(major), np.arange(stored_twice.shape[form == "csc"] + 1))
        kind = sparse.csr_array if form == "csr" else sparse.csc_array
        stored_twice = kind((np.array(data)[order], np.array(minor)[order], pointers), shape=(2, 4))
    assert stored_twice.nnz == 4
    expected = clip_rows(np.array([[-0.3, 0.8, 0, 0], [0, 0, 5.0, 0]]), bounds)
    np.testing.assert_allclose(plain(clip_rows(stored_twice, bounds)), expected, rtol=1e-12)


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
def test_entries_stored_twice_whose_sum_overflows_stay_inside_the_bounds(bounds):
    clipped = plain(clip_rows(sparse.coo_array(([1e308, 1e308, 0.1], ([0, 0, 0], [0, 0, 1])), shape=(1, 4)), bounds))
    assert clipped[0, 0] > 0
    assert math.hypot(*clipped[0]) <= bounds.row_norm(4) * (1 + 1e-12)


# -- norms ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["dense", "csc"])
@pytest.mark.parametrize(
    ("row", "norm"),
    [([3e300, 4e300], 5e300), ([3e-300, 4e-300], 5e-300), ([0.0, 0.0], 0.0), ([1e-320, 0.0], 1e-320), ([-2.0, 0], 2)],
)
def test_row_norms_neither_overflow_nor_underflow(form, row, norm):
    np.testing.assert_allclose(row_norms(FORMS[form](np.array([row]))), norm, rtol=1e-12)


@pytest.mark.parametrize("form", ["dense", "csc"])
def test_rows_whose_norm_exceeds_the_largest_float_keep_their_direction(form):
    clipped = plain(clip_rows(FORMS[form](np.array([[1.7e308, 1.7e308]])), Bounds(row=1.0)))
    np.testing.assert_allclose(clipped, math.sqrt(0.5), rtol=1e-12)


@given(norm=st.floats(1e-300, 1e300), clip=st.floats(1e-3, 1e3))
def test_a_residual_at_its_limit_gives_a_gradient_at_the_clip(norm, clip):
    assert residual_limits(np.array([norm]), clip)[0] * norm == pytest.approx(clip, rel=1e-12)


def test_rows_of_zeros_or_next_to_it_cannot_turn_an_infinite_residual_into_an_infinite_gradient():
    norms = np.array([0.0, 5e-324])
    assert np.all(np.inf * residual_limits(norms, 1.0)[1:] > 0)
    assert np.all(residual_limits(norms, 1.0) * norms <= 1.0)


# -- targets and bounds -----------------------------------------------------------------------------------------


def test_targets_are_clipped_into_the_public_range():
    y = np.array([-1e300, -1.0, 0.5, 1e300])
    assert clip_targets(y, Bounds(row=1.0, target=(-2.0, 3.0))).tolist() == [-2.0, -1.0, 0.5, 3.0]


def test_targets_without_a_range_are_left_alone():
    y = np.array([0.0, 1.0])
    np.testing.assert_array_equal(clip_targets(y, Bounds(row=1.0)), y)


@pytest.mark.parametrize(
    ("bounds", "norm"),
    [
        (Bounds(feature=2.0), 6.0),
        (Bounds(feature=(1.0,) * 8 + (2.0,)), math.sqrt(12)),
        (Bounds(row=5.0), 5.0),
        (Bounds(feature=2.0, row=5.0), 5.0),
        (Bounds(feature=1.0, row=5.0), 3.0),
    ],
    ids=str,
)
def test_the_row_norm_is_what_the_bounds_imply(bounds, norm):
    assert bounds.row_norm(9) == pytest.approx(norm, rel=1e-15)


@pytest.mark.parametrize(
    ("bounds", "entries"),
    [
        (Bounds(feature=2.0), [2.0, 2.0, 2.0]),
        (Bounds(feature=(0.1, 1.0, 10.0)), [0.1, 1.0, 10.0]),
        (Bounds(row=5.0), [5.0, 5.0, 5.0]),
        (Bounds(feature=(0.1, 1.0, 10.0), row=5.0), [0.1, 1.0, 5.0]),
        (Bounds(feature=2.0, row=0.5), [0.5, 0.5, 0.5]),
    ],
    ids=str,
)
def test_the_entry_bounds_are_what_the_bounds_imply(bounds, entries):
    assert bounds.entries(3).tolist() == entries


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
@pytest.mark.parametrize("form", FORMS)
def test_no_clipped_entry_exceeds_its_bound_and_some_row_attains_each(bounds, form):
    wild = np.vstack([WILD, np.diag([1e300, 1e300, -1e300, 1e300])])
    largest = np.max(np.abs(plain(clip_rows(FORMS[form](wild), bounds))), axis=0)
    np.testing.assert_allclose(largest, bounds.entries(4), rtol=1e-12)


def test_per_column_bounds_must_match_the_columns():
    with pytest.raises(ValueError, match="3 values for 4 columns"):
        Bounds(feature=(1.0, 1.0, 1.0)).row_norm(4)


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan, 1e-150, 1e150])
@pytest.mark.parametrize("make", [lambda v: Bounds(feature=v), lambda v: Bounds(row=v), lambda v: Bounds((1.0, v))])
def test_bounds_that_bound_nothing_are_refused(make, value):
    with pytest.raises(ValueError, match="must be a positive finite number"):
        make(value)


@pytest.mark.parametrize("target", [(1.0, 1.0), (2.0, 1.0), (-math.inf, 1.0), (0.0, math.nan)])
def test_target_ranges_that_bound_nothing_are_refused(target):
    with pytest.raises(ValueError, match="target_bound"):
        Bounds(row=1.0, target=target)


def test_one_of_the_two_row_bounds_is_required():
    with pytest.raises(ValueError, match="at least one"):
        Bounds()


# -- sensitivities ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("adjacency", "sensitivity"), [("replace-one", 0.06), ("add-remove", 0.03)])
def test_a_mean_gradient_moves_by_one_clip_per_changed_contribution(adjacency, sensitivity):
    assert gradient_sensitivity(3.0, 100, Adjacency(adjacency)) == pytest.approx(sensitivity, rel=1e-15)


@pytest.mark.parametrize(("adjacency", "sensitivity"), [("replace-one", 0.3), ("add-remove", 0.15)])
def test_an_exact_minimiser_moves_by_the_gradient_over_the_ridge(adjacency, sensitivity):
    assert minimiser_sensitivity(3.0, 100, Adjacency(adjacency), 0.2, 0.0) == pytest.approx(sensitivity, rel=1e-15)


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_a_certified_minimiser_adds_twice_its_tolerance_over_the_ridge(adjacency):
    exact, found = (minimiser_sensitivity(3.0, 100, adjacency, 0.2, tolerance) for tolerance in (0.0, 0.01))
    assert found - exact == pytest.approx(2 * 0.01 / 0.2, rel=1e-12)
