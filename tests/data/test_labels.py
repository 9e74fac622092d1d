"""Which class a row is in follows from its own label, and a label of one row changes how no other's is read."""

import numpy as np
import pandas
import pytest

from thresher import SparseClassifier
from thresher.data.labels import places_among
from thresher.data.reading.table import read_table

FORMS = {
    "numbers": lambda labels: np.array(labels, dtype=float),
    "whole numbers": lambda labels: np.array(labels, dtype=int),
    "texts": lambda labels: np.array(labels, dtype=str),
    "objects": lambda labels: np.array(labels, dtype=object),
    "texts as objects": lambda labels: np.array([str(label) for label in labels], dtype=object),
    "list": list,
    "series": pandas.Series,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("classes", [["1", "2", "unknown"], [1, 2, "unknown"], [1, 2], [1.0, 2.0], ["2", "1", "-a"]])
def test_a_label_is_one_of_the_classes_whatever_the_others_are(classes, form):
    """A column is text where one label is, and numbers where none is: the fit told which by refusing one of them."""
    classes, own = np.unique(classes), [1, 2, 2, 1]
    expected = [[str(each).partition(".")[0] for each in classes].index(str(label)) for label in own]
    assert places_among(classes, FORMS[form](own)).tolist() == expected
    if classes.dtype.kind == "U":
        other = next(at for at, each in enumerate(classes) if each not in ("1", "2"))
        mixed = np.array([*own, classes[other]])  # text now
        assert places_among(classes, mixed).tolist() == [*expected, other]
        assert places_among(classes, mixed.astype(object)).tolist() == [*expected, other]
        assert places_among(classes, np.array([*own, classes[other]], dtype=object)).tolist() == [*expected, other]


def test_labels_that_are_none_of_the_classes():
    assert places_among(np.array([0, 1]), np.array([0, 1, 2, -1])).tolist() == [0, 1, -1, -1]
    assert places_among(np.array(["a", "b"]), np.array(["b", "c", "nan"])).tolist() == [1, -1, -1]
    assert places_among(np.array(["0", "1"]), np.array([0.5, 1.0])).tolist() == [-1, 1]


def test_truths_are_texts_or_numbers_as_the_classes_are():
    truths = np.array([True, False])
    assert places_among(np.unique(["True", "False", "x"]), truths).tolist() == [1, 0]
    assert places_among(np.array([0, 1]), truths).tolist() == [1, 0]
    assert places_among(np.array([False, True]), truths).tolist() == [1, 0]
    assert places_among(np.array([False, True]), np.array([1, 0])).tolist() == [1, 0]


def test_texts_that_are_one_number_are_two_classes_where_both_are_declared():
    assert places_among(np.array(["01", "1"]), np.array(["1", "01", "1.0"])).tolist() == [1, 0, -1]
    assert places_among(np.array(["01", "1"]), np.array([1.0, 1])).tolist() == [1, 1]


@pytest.mark.parametrize("classes", [["007", "7", "V7"], ["1", "1.0", "x"], ["nan", "1", "x"], ["a", "-Infinity"]])
def test_classes_that_the_label_of_one_row_would_make_others_of_are_refused(tmp_path, classes):
    """A file whose labels are all numbers is read as numbers: 007 is 7 then, and a row of V7 made 007 of it."""
    (tmp_path / "numbers.csv").write_text("x,y\n0.1,007\n0.2,007\n0.3,7\n")
    (tmp_path / "texts.csv").write_text("x,y\n0.1,007\n0.2,007\n0.3,V7\n")
    first = [places_among(np.array(["007", "7", "V7"]), read_table(path, "y").y)[0] for path in tmp_path.iterdir()]
    assert set(first) == {0, 1}  # so nothing but a refusal is left, which follows from the classes alone
    X = np.zeros((3, 1))
    with pytest.raises(ValueError, match=r"classes: .* is the same as another class, or no number"):
        SparseClassifier(1, feature_bound=1.0, classes=classes).fit(X, [classes[0]] * 3)


def test_a_fit_does_not_tell_whether_anybody_has_a_class():
    X = np.random.default_rng(0).uniform(-1, 1, (300, 3))
    y = 1 + (X[:, 0] > 0)
    public = {"epsilon": 2.0, "delta": 1e-6, "feature_bound": 1.0, "classes": ["1", "2", "unknown"], "random_state": 0}
    fits = [
        SparseClassifier(2, **public).fit(X, labels)
        for labels in (y, y.astype(str), np.array(list(map(str, y)), object))
    ]
    text = y.astype("<U8")
    text[0] = "unknown"
    assert np.array_equal(fits[0].coef_, fits[1].coef_)
    assert np.array_equal(fits[0].coef_, fits[2].coef_)
    assert SparseClassifier(2, **public).fit(X, text).certificate_.grade == fits[0].certificate_.grade
