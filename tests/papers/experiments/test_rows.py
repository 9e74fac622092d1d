"""Rows come back from files as they went in, and means carry their errors."""

import math

import pytest

from thresher_papers.experiments.rows import Mean, curve, means, read_rows, values_of, write_rows

ROWS = [
    {"method": "a", "epsilon": 2.0, "seed": 0, "error": 1.0, "note": None, "ok": True},
    {"method": "a", "epsilon": 2.0, "seed": 1, "error": 3.0, "note": "x, y", "ok": False},
    {"method": "b", "epsilon": math.inf, "seed": 0, "error": 0.1 + 0.2, "note": '"', "ok": True},
]


def test_rows_come_back_as_they_were_to_the_last_bit(tmp_path):
    write_rows(ROWS, tmp_path / "rows.csv")
    assert read_rows(tmp_path / "rows.csv") == ROWS


def test_parquet_holds_the_same(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    write_rows(ROWS, tmp_path / "rows.csv")
    assert parquet.read_table(tmp_path / "rows.parquet").to_pylist() == ROWS


def test_rows_with_other_columns_have_nothing_there(tmp_path):
    write_rows([{"a": 1}, {"b": "x"}], tmp_path / "rows.csv")
    assert read_rows(tmp_path / "rows.csv") == [{"a": 1, "b": None}, {"a": None, "b": "x"}]


def test_means_are_grouped_and_carry_their_standard_error():
    found = means(ROWS, ("method", "epsilon"), "error")
    assert found["a", 2.0] == Mean(2.0, math.sqrt(2), 2)
    assert found["a", 2.0].error == pytest.approx(1.0)
    assert str(found["a", 2.0]) == "2 ± 1"
    assert str(found["b", math.inf]) == "0.3"  # one run: no error is known


def test_what_is_infinite_has_a_mean_but_no_error():
    found = means([{"m": 1, "cost": math.inf}] * 2, ("m",), "cost")[(1,)]
    assert math.isinf(found.value)
    assert math.isnan(found.error)


def test_curves_are_in_the_order_of_their_points():
    line = curve({4.0: Mean(1.0, 0.5, 4), 2.0: Mean(3.0, 1.0, 4)})
    assert (line.x, line.y, line.errors) == ([2.0, 4.0], [3.0, 1.0], [0.5, 0.25])
    assert values_of(ROWS, "method") == ["a", "b"]
