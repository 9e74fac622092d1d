"""Tables as matrices: one row by itself, within the public bounds, and back to original units."""

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from thresher import Schema

COLUMNS = {
    "who": {"role": "person"},
    "note": {"role": "ignore"},
    "age": {"bounds": [0, 110], "typical": 40, "missing": "indicator"},
    "dose": {"bounds": [-5, 3], "scale": False, "outside": "missing", "missing": 1},
    "sex": {"categories": ["f", "m"], "base": "m", "undeclared": "other"},
    "ward": {"categories": [1, 2, 3], "missing": "indicator"},
    "codes": {"categories": ["a", "b", "c"], "separator": "|", "missing": "b"},
    "seen": {"bounds": ["2010-01-01", "2019-12-31"]},
    "stay": {"role": "target", "bounds": [0, 30]},
}
FACTS = Schema.from_dict({"columns": COLUMNS})
ANYTHING = st.one_of(
    st.none(), st.text(max_size=6), st.floats(), st.integers(-(10**6), 10**6),
    st.sampled_from(["f", "m", "1", "2.0", "a|c", "c|a|a", "2015-05-05", "nan", "1e400", "-7", " f"]),
)  # fmt: skip
ROWS = st.lists(st.lists(ANYTHING, min_size=len(COLUMNS), max_size=len(COLUMNS)), min_size=2, max_size=8)


def table(rows):
    return pd.DataFrame(rows, columns=list(COLUMNS), dtype=object)


@settings(deadline=None, max_examples=200)
@given(ROWS, st.integers(0, 7), st.lists(ANYTHING, min_size=len(COLUMNS), max_size=len(COLUMNS)), st.booleans())
def test_one_row_of_a_table_decides_about_one_row_of_the_matrix_within_public_bounds(rows, at, other, centred):
    """The whole argument for privacy: neighbouring tables become neighbouring matrices, whatever is in their cells."""
    at = at % len(rows)
    changed = [*rows[:at], other, *rows[at + 1 :]]
    (_, one), (_, two) = (FACTS.rows(table(r), centred=centred) for r in (rows, changed))
    assert one.X.shape == two.X.shape == (len(rows), len(FACTS.encoding().names))
    same = np.arange(len(rows)) != at
    assert_array_equal(one.X[same], two.X[same])
    assert_array_equal(one.y[same], two.y[same])
    encoding = FACTS.encoding(centred=centred)
    for made in (one, two):
        assert np.all(np.isfinite(made.X))
        assert np.all(np.abs(made.X) <= encoding.bounds * (1 + 1e-15))
        assert np.all(np.linalg.norm(made.X, axis=1) <= encoding.row_norm * (1 + 1e-12))
        assert np.all((made.y >= 0) & (made.y <= 30))


def test_every_kind_of_column_becomes_what_is_declared():
    frame = table([
        ["p", "x", 50, 2, "f", 3, "a|c", "2010-01-11", 7],
        ["q", "x", None, 99, "zz", None, "", "never", None],
    ])  # fmt: skip
    _, rows = FACTS.rows(frame)
    names = FACTS.encoding().names
    assert names == ["age", "age missing", "dose", "sex=f", "sex=(other)", "ward=1", "ward=2", "ward=3", "ward missing",
                     "codes=a", "codes=b", "codes=c", "seen"]  # fmt: skip
    middle = 3651 / 2
    assert_allclose(rows.X[0], [10 / 70, 0, 2, 1, 0, 0, 0, 1, 0, 1, 0, 1, (10 - middle) / middle])
    assert_allclose(rows.X[1], [0, 1, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0])
    assert rows.y.tolist() == [7, 15]
    assert rows.people == ["p", "q"]
    raw = next(FACTS.features_of(frame))
    assert_allclose(raw[0], [50, 0, 2, 1, 0, 0, 0, 1, 0, 1, 0, 1, 10])
    assert_allclose(FACTS.encoding().bounds, [1, 1, 5, *[1] * 10])


def test_many_categories_are_kept_sparse_and_say_the_same():
    wide = {"kind": {"categories": [f"k{i}" for i in range(40)], "missing": "indicator"}, "size": COLUMNS["age"]}
    facts = Schema.from_dict({"columns": {**wide, "y": COLUMNS["stay"]}})
    frame = pd.DataFrame({"kind": ["k3", "k39", None, "k0"], "size": [0, 110, None, 40], "y": [1, 2, 3, 4]})
    _, rows = facts.rows(frame)
    assert sparse.issparse(rows.X)
    dense = rows.X.toarray()
    assert dense[:2].nonzero()[1].tolist() == [3, 41, 39, 41]
    assert dense[2].nonzero()[0].tolist() == [40, 42]
    assert_allclose(dense[:, 41], [-40 / 70, 1, 0, 0])


@given(st.lists(st.floats(-5, 5), min_size=13, max_size=13), st.floats(-3, 3), st.booleans())
def test_a_model_in_original_units_is_the_same_model(coefficients, intercept, centred):
    """Exactly, but for rounding: a few units in the last place of the largest term."""
    rng = np.random.default_rng(0)
    rows = [[None, None, rng.integers(0, 120), rng.uniform(-6, 4), rng.choice(["f", "m", "?"]), rng.integers(0, 5),
             rng.choice(["a|b", "c", ""]), f"201{rng.integers(0, 9)}-06-15", 1] for _ in range(30)]  # fmt: skip
    encoding = FACTS.encoding(centred=centred)
    theta, constant = np.array([coefficients]), np.array([intercept])
    scaled = FACTS.rows(table(rows), centred=centred)[1].X @ theta.T + constant
    original, moved = encoding.in_original_units(theta, constant)
    raw = next(FACTS.features_of(table(rows)))
    size = np.abs(raw) @ np.abs(original).T + np.abs(moved) + 1
    assert np.all(np.abs(raw @ original.T + moved - scaled) <= 1e-14 * size)
    if not centred:
        assert_array_equal(moved, constant)
