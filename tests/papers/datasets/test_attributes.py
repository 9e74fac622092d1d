"""Adult and KDDCup99 from the original files, from the stored ones, and as scikit-learn fetches them."""

import gzip
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn.datasets

from thresher_papers.datasets import attributes, levels, load

ADULT = "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40"
ADULT += ", United-States"
OTHER = "50, ?, 83311, HS-grad, 9, Divorced, ?, Husband, Black, Female, 0, 0, 13, ?"


def check_adult(data):
    """A row divided by its largest one-hot entry is as it was before it was divided by its norm."""
    assert data.X.shape[1] == data.X_test.shape[1] == len(data.names) == 108
    assert np.linalg.norm(data.X, axis=1) == pytest.approx(1)
    first = dict(zip(data.names, data.X[0] / data.X[0].max(), strict=True))
    assert first["age"] == pytest.approx(39 / 90)
    assert first["capital-gain"] == pytest.approx(2174 / 99_999)
    assert first["education=Bachelors"] == first["sex=Male"] == first["native-country=United-States"] == 1
    assert sum(value == 1 for value in first.values()) == 8
    second = dict(zip(data.names, data.X[1], strict=True))
    assert second["workclass=?"] == second["native-country=?"] > 0
    assert (data.y.tolist(), data.y_test.tolist()) == ([-1, 1], [1])


def test_adult_is_read_from_the_original_files(tmp_path):
    (tmp_path / "adult.data").write_text(f"{ADULT}, <=50K\n{OTHER}, >50K\n\n")
    (tmp_path / "adult.test").write_text(f"|1x3 Cross validator\n{ADULT}, >50K.\n\n")
    check_adult(load("adult", tmp_path))


def test_adult_can_be_fetched(tmp_path, monkeypatch):
    """OpenML's copy holds codes, and nan in place of a question mark; the first rows are those of adult.data."""
    known = {name: [level for level in found if level != "?"] for name, found in levels.ADULT_LEVELS.items()}

    def row(text):
        cells = zip(levels.ADULT_COLUMNS, text.split(", "), strict=True)
        return [np.nan if c == "?" else float(known[name].index(c)) if name in known else float(c) for name, c in cells]

    found = SimpleNamespace(
        data=np.array([row(ADULT), row(OTHER), row(ADULT)]), target=np.array(["<=50K", ">50K", ">50K"], dtype=object),
        feature_names=list(levels.ADULT_COLUMNS), categories=known,
    )  # fmt: skip
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda name, **_: found if name == "adult" else None)
    monkeypatch.setattr(attributes, "OFFICIAL", 2)
    check_adult(load("adult", tmp_path, download=True))


def test_the_stored_adult_is_the_official_split_with_the_published_lists(data_dir):
    data = load("adult", data_dir)
    assert (data.X.shape, data.X_test.shape) == ((32_561, 108), (16_281, 108))
    numbers = [name for name in levels.ADULT_COLUMNS if name not in levels.ADULT_LEVELS]
    assert data.names == [*numbers, *(f"{n}={level}" for n, found in levels.ADULT_LEVELS.items() for level in found)]
    assert np.mean(data.y == 1) == pytest.approx(0.241, abs=5e-4)
    assert np.abs(np.linalg.norm(data.X, axis=1) - 1).max() < 1e-12


KDD = (
    "0,tcp,http,SF,181,5450"
    + ",0" * 5
    + ",1"
    + ",0" * 10
    + ",8,8"
    + ",0.00" * 4
    + ",1.00,0.00,0.00,9,9,1.00"
    + ",0.00" * 7
)


@pytest.fixture
def few_rows(monkeypatch):
    monkeypatch.setattr(attributes, "TRAINING", 3)
    monkeypatch.setattr(attributes, "TESTING", 2)


def check_kdd(data):
    assert data.X.shape == (3, 122)
    assert data.X_test.shape == (2, 122)
    assert np.linalg.norm(data.X, axis=1) == pytest.approx(1)
    row = dict(zip(data.names, data.X[0] / data.X[0].max(), strict=True))
    assert row["src_bytes"] == pytest.approx(np.log1p(181) / np.log1p(2.0**31))
    assert row["count"] == pytest.approx(np.log1p(8) / np.log1p(511))
    assert row["logged_in"] == row["protocol_type=tcp"] == row["service=http"] == row["flag=SF"] == 1
    assert set(data.y) | set(data.y_test) <= {-1, 1}


def test_kddcup99_is_read_from_the_original_files(tmp_path, few_rows):
    """122 columns, as the thesis has; rows are drawn; the service icmp, which only the test file knows, has none."""
    (tmp_path / "kddcup.data_10_percent.gz").write_bytes(gzip.compress(f"{KDD},normal.\n".encode() * 5))
    unknown = KDD.replace("http", "icmp")
    (tmp_path / "corrected.gz").write_bytes(gzip.compress(f"{unknown},smurf.\n".encode() * 2))
    data = load("kddcup99", tmp_path)
    check_kdd(data)
    assert (data.y.tolist(), data.y_test.tolist()) == ([-1] * 3, [1] * 2)
    services = [at for at, name in enumerate(data.names) if name.startswith("service=")]
    assert len(services) == 70
    assert not data.X_test[:, services].any()


def test_kddcup99_can_be_fetched(tmp_path, few_rows, monkeypatch):
    cells = [cell.encode() if cell in ("tcp", "http", "SF") else float(cell) for cell in KDD.split(",")]
    found = SimpleNamespace(data=np.array([cells] * 8, dtype=object), target=np.array([b"normal.", b"smurf."] * 4))
    monkeypatch.setattr(sklearn.datasets, "fetch_kddcup99", lambda percent10: found)
    check_kdd(load("kddcup99", tmp_path, download=True))


def test_the_stored_kddcup99_has_unit_rows(data_dir):
    data = load("kddcup99", data_dir)
    assert (data.X.shape, data.X_test.shape) == ((70_000, 119), (20_000, 119))
    assert np.abs(np.linalg.norm(data.X, axis=1) - 1).max() < 1e-12
    assert np.mean(data.y == 1) == pytest.approx(0.80, abs=0.01)


@pytest.mark.parametrize("line", ["39, secret, 1", ADULT.replace("77516", "secret") + ", >50K"])
def test_a_broken_file_is_refused_without_its_values(tmp_path, line):
    for name in ("adult.data", "adult.test"):
        (tmp_path / name).write_text(f"{line}\n")
    with pytest.raises(ValueError, match=r"adult\.data does not have the columns") as caught:
        load("adult", tmp_path)
    assert "secret" not in str(caught.value)
