"""Diabetes in 130 hospitals, as stored."""

import numpy as np
import pytest
from scipy import sparse

from thresher_papers.datasets import halves, load


def test_readmission_keeps_rows_of_a_patient_together(data_dir):
    data = load("diabetes130", data_dir)
    assert (data.X.shape, data.X_test.shape) == ((81_442, 1_175), (20_324, 1_175))
    assert len(data.groups) == len(data.y)
    assert len(np.unique(data.groups)) < len(data.groups)
    private, public = halves(data, seed=0)
    assert not set(private.groups) & set(public.groups)
    assert abs(len(private.y) - len(public.y)) < 1000


def test_rows_are_within_their_bounds_and_columns_are_named(data_dir):
    data = load("diabetes130", data_dir)
    assert abs(data.X).max() <= data.bounds["feature_bound"]
    assert sparse.linalg.norm(data.X, axis=1).max() <= data.bounds["row_bound"]
    assert len(data.names) == 1_175
    assert data.names[0].startswith("time_in_hospital")
    assert np.mean(np.concatenate([data.y, data.y_test]) == 1) == pytest.approx(0.461, abs=5e-4)


def test_the_length_of_a_stay_has_one_row_a_patient_and_no_column_that_tells(data_dir):
    data = load("diabetes130_stay", data_dir)
    assert (data.X.shape, data.X_test.shape) == ((50_000, 158), (20_000, 158))
    assert len(np.unique(data.groups)) == 50_000
    assert np.abs(np.linalg.norm(data.X, axis=1) - 1).max() < 1e-6
    assert (data.y.min(), data.y.max()) == data.bounds["target_bound"] == (1, 14)
    assert not [name for name in data.names if name.startswith("time_in_hospital")]
    assert data.stand_in_for == "kddcup98"
