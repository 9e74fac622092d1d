"""Sets with more columns than rows, as stored."""

import numpy as np
import pytest

from thresher_papers.datasets import load


@pytest.mark.parametrize(
    ("name", "rows", "columns"),
    [("leukemia", (50, 22), 7_129), ("colon", (43, 19), 2_000), ("duke", (26, 12), 7_129)],
)
def test_expressions_are_within_their_bound_and_both_parts_have_both_classes(data_dir, name, rows, columns):
    data = load(name, data_dir)
    assert (data.X.shape, data.X_test.shape) == ((rows[0], columns), (rows[1], columns))
    for X, y in ((data.X, data.y), (data.X_test, data.y_test)):
        assert np.abs(X).max() <= data.bounds["feature_bound"]
        assert set(y) == set(data.bounds["classes"])


def test_genotypes_are_minus_one_to_one_and_weights_those_of_mice(data_dir):
    data = load("mice_genomics", data_dir)
    assert (data.X.shape, data.X_test.shape) == ((1_451, 10_346), (363, 10_346))
    assert set(np.unique(data.X)) == {-1, 0, 1}
    low, high = data.bounds["target_bound"]
    assert low <= data.y.min() < data.y.max() <= high
    assert len(data.names) == 10_346
