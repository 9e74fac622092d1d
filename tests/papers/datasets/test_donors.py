"""KDDCup98 from a file of its format."""

import numpy as np
import pytest

from thresher_papers.datasets import donors, load

SHARES = [f"{name}{at}" for name, count in donors.SHARES.items() for at in range(1, count + 1)]
COLUMNS = ["ODATEDW", "OSOURCE", *SHARES, *donors.COUNTS, *donors.DOLLARS, "CONTROLN", "TARGET_B", "TARGET_D"]


def write(folder, rows, columns=COLUMNS):
    """A line for each row; a column that a row does not name is empty, as where the original knows nothing."""
    text = [",".join(columns), *(",".join(str(row.get(name, " ")) for name in columns) for row in rows)]
    (folder / "cup98LRN.txt").write_text("\n".join(text) + "\n")


def test_numbers_are_divided_by_public_bounds_and_rows_by_their_norm(tmp_path):
    row = {"OSOURCE": "GRI", "ETH1": 50, "AGE": 49, "NUMPROM": 1000, "LASTGIFT": 99, "TARGET_D": 20, "CONTROLN": 95515}
    write(tmp_path, [row] * 7)
    data = load("kddcup98", tmp_path)
    assert (data.X.shape, data.X_test.shape) == ((5, len(data.names)), (2, len(data.names)))
    expected = {"ETH1": 0.5, "AGE": 0.5, "NUMPROM": 1.0, "LASTGIFT": np.log(100) / np.log1p(1e4)}
    found = dict(zip(data.names, data.X[0] / data.X[0].max(), strict=True))
    assert {name: value for name, value in found.items() if value} == pytest.approx(expected)
    assert np.linalg.norm(data.X, axis=1) == pytest.approx(1)
    assert set(data.y) == {20}
    assert not {"TARGET_D", "TARGET_B", "CONTROLN"} & set(data.names)


def test_every_row_is_drawn_once(tmp_path):
    write(tmp_path, [{"AGE": 1, "TARGET_D": at} for at in range(14)])
    data = load("kddcup98", tmp_path)
    assert (len(data.y), len(data.y_test)) == (10, 4)
    assert sorted([*data.y, *data.y_test]) == list(range(14))


def test_a_gift_counts_up_to_the_bound(tmp_path):
    write(tmp_path, [{"AGE": 1, "TARGET_D": 5000}] * 2)
    data = load("kddcup98", tmp_path)
    assert data.bounds["target_bound"] == (0, 200)
    assert data.y.tolist() == [200]


def test_a_file_of_other_columns_is_refused(tmp_path):
    write(tmp_path, [{}], COLUMNS[:50])
    with pytest.raises(ValueError, match="has no column 'OCC3'"):
        load("kddcup98", tmp_path)
    write(tmp_path, [{"AGE": "secret"}])
    with pytest.raises(ValueError, match="has a line that is not of") as caught:
        load("kddcup98", tmp_path)
    assert "secret" not in str(caught.value)
