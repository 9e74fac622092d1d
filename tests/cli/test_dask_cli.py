"""Folders on the command line: the same output as for one file, and errors that name the file."""

from __future__ import annotations

import csv
import itertools
import json
import sys

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from typer.testing import CliRunner

pytest.importorskip("distributed")
pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

import pandas

from thresher.cli.app import app
from thresher.data.reading import svmlight
from thresher.data.reading.table import read_table

BOUNDS = ["--feature-bound", "1", "--target-bound", "0,8", "--sparsity", "2", "--epsilon", "8"]
NAMES = [f"gene {j}" for j in range(8)]
CUTS = [0, 700, 700, 1500, 2000]  # of unequal parts, one of them empty


def thresher(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = np.round(rng.uniform(-1, 1, (2000, 8)), 3)
    return X, np.round(4 + 2 * X[:, 3] - X[:, 5] + rng.normal(0, 0.1, 2000), 3)


@pytest.fixture
def parts(rows, tmp_path):
    """A folder of parts of each kind, and the same table in one file."""
    X, y = rows
    frame = pandas.DataFrame(X, columns=NAMES).assign(stay=y)
    for kind in ("parquet", "svm"):
        (tmp_path / kind).mkdir()
    for at, (first, last) in enumerate(itertools.pairwise(CUTS)):
        frame[first:last].to_parquet(tmp_path / "parquet" / f"part-{at}.parquet")
        (tmp_path / "svm" / f"part-{at}.svm").touch()
        if last > first:
            dump_svmlight_file(X[first:last], y[first:last], str(tmp_path / "svm" / f"part-{at}.svm"), zero_based=False)
    (tmp_path / "parquet" / "_SUCCESS").touch()
    frame.to_parquet(tmp_path / "one.parquet")
    dump_svmlight_file(X, y, str(tmp_path / "one.svm"), zero_based=False)
    return tmp_path


def predictions(text):
    return [float(row["prediction"]) for row in csv.DictReader(text.splitlines())]


@pytest.mark.parametrize("kind", ["parquet", "svm"])
def test_a_folder_is_fitted_and_predicted_like_one_file(kind, parts, rows):
    target = ["--target", "stay"] if kind == "parquet" else []
    model, out = parts / "model.json", parts / "out.csv"
    fitted = thresher("fit", parts / kind, *target, *BOUNDS, "--out", model)
    assert fitted.exit_code == 0, fitted.stderr
    assert ("replace-one, proved" if target else "replace-one, conditional") in fitted.stdout
    assert ("gene 3" in fitted.stdout) == bool(target)
    record = json.loads(model.read_text())
    assert record["feature_names"] == (NAMES if target else None)
    assert record["n_features"] == 8
    assert thresher("verify", model).exit_code == 0
    one = predictions(thresher("predict", model, parts / f"one.{kind}").stdout)
    assert thresher("predict", model, parts / kind, "--out", out).exit_code == 0
    many = predictions(out.read_text())
    np.testing.assert_allclose(many, one, rtol=1e-12)
    assert np.corrcoef(many, rows[1])[0, 1] > 0.95
    assert predictions(thresher("predict", model, parts / kind).stdout) == many


@pytest.mark.parametrize("kind", ["parquet", "svm"])
def test_a_folder_holds_the_rows_of_one_file_in_order(kind, parts, rows):
    target = "stay" if kind == "parquet" else None
    table, one = read_table(parts / kind, target), read_table(parts / f"one.{kind}", target)
    X = table.X.compute(scheduler="sync")
    np.testing.assert_array_equal(X.toarray() if kind == "svm" else X, rows[0])
    np.testing.assert_array_equal(table.y, one.y)
    assert table.names == one.names
    assert table.X.chunks[0] == (700, 800, 500)


def test_class_labels_may_be_text(parts, rows):
    frame = pandas.read_parquet(parts / "one.parquet")
    frame["stay"] = np.where(frame["stay"] > 4, "long", "short")
    (parts / "kinds").mkdir()
    for half in range(2):
        frame[half * 1000 :][:1000].to_parquet(parts / "kinds" / f"{half}.parquet")
    options = ["--task", "classification", "--classes", "short,long", "--feature-bound", "1", "--sparsity", "2"]
    fitted = thresher("fit", parts / "kinds", "--target", "stay", *options, "--out", parts / "m.json")
    assert fitted.exit_code == 0, fitted.stderr
    predicted = thresher("predict", parts / "m.json", parts / "kinds").stdout.splitlines()
    assert predicted[0] == "prediction,probability_short"
    assert np.mean([line.split(",")[0] == kind for line, kind in zip(predicted[1:], frame["stay"], strict=True)]) > 0.9


# -- svmlight -----------------------------------------------------------------------------------------------------


TEXT = "1 2:1\n\n# nobody\n2 1:2 5:3 # somebody\n3\n4 3:4\n# the end\n"


def test_every_row_is_read_once_wherever_a_file_is_cut(tmp_path, monkeypatch):
    """scikit-learn's own offset and length read a row twice if a comment lies on the border."""
    (tmp_path / "one.svm").write_text(TEXT)
    X, y = load_svmlight_file(str(tmp_path / "one.svm"))
    for piece in range(1, len(TEXT) + 1):
        monkeypatch.setattr(svmlight, "PIECE", piece)
        table = read_table(tmp_path, None)
        np.testing.assert_array_equal(table.y, y)
        np.testing.assert_array_equal(table.X.compute(scheduler="sync").toarray(), X.toarray())


@pytest.mark.parametrize(("lines", "columns"), [(["1 1:1", "2 4:1"], 4), (["1 1:1", "2 0:1 4:1"], 5), (["1", "2"], 1)])
def test_columns_are_counted_over_all_parts(lines, columns, tmp_path):
    """From 1, unless one of the parts has a column 0: as scikit-learn does for one file."""
    for at, line in enumerate(lines):
        (tmp_path / f"{at}.libsvm").write_text(line + "\n")
    (tmp_path / "one").write_text("\n".join(lines) + "\n")
    X, _ = load_svmlight_file(str(tmp_path / "one"))
    table = read_table(tmp_path, None)
    assert table.X.shape[1] == X.shape[1] == columns
    np.testing.assert_array_equal(table.X.compute(scheduler="sync").toarray(), X.toarray())


def test_parts_with_fewer_columns_than_the_model_are_predicted_and_more_refused(parts):
    assert thresher("fit", parts / "svm", *BOUNDS, "--out", parts / "m.json").exit_code == 0
    (parts / "few").mkdir()
    (parts / "few" / "a.svm").write_text("0 4:1\n0 6:1\n")
    assert len(predictions(thresher("predict", parts / "m.json", parts / "few").stdout)) == 2
    (parts / "few" / "b.svm").write_text("0 12:1\n")
    refused = thresher("predict", parts / "m.json", parts / "few")
    assert refused.exit_code == 2
    assert "has 12 columns where the model has 8" in refused.stderr


# -- errors -------------------------------------------------------------------------------------------------------


def spoil(folder, name, **columns):
    frame = pandas.read_parquet(folder / name)
    for column, values in columns.items():
        frame[column.replace("_", " ")] = values
    frame.to_parquet(folder / name)


def refusal(*arguments):
    outcome = thresher("fit", *arguments)
    assert outcome.exit_code == 2, outcome.stdout
    assert "31337" not in outcome.stderr
    assert outcome.stderr.count("\n") == 1
    return outcome.stderr


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("31337 kg", "column 'gene 2' holds text"),
        (np.nan, "column 'gene 2' has missing"),
        (np.inf, "column 'gene 2' has missing or infinite"),
    ],
)
def test_a_bad_cell_of_a_part_is_refused_by_file_and_column(cell, words, parts):
    values = np.full(800, cell, dtype=object if isinstance(cell, str) else float)
    spoil(parts / "parquet", "part-2.parquet", gene_2=values)
    shown = refusal(parts / "parquet", "--target", "stay", *BOUNDS, "--out", parts / "m.json")
    assert words in shown
    assert "part-2.parquet" in shown
    assert not (parts / "m.json").exists()


def test_a_missing_target_a_foreign_column_and_a_broken_file_are_named(parts):
    command = [parts / "parquet", "--target", "stay", *BOUNDS, "--out", parts / "m.json"]
    assert "name the column" in refusal(parts / "parquet", *BOUNDS)
    assert "part-0.parquet': --target='stray' is not a col" in refusal(parts / "parquet", "--target", "stray", *BOUNDS)
    spoil(parts / "parquet", "part-3.parquet", extra=1.0)
    shown = refusal(*command)
    assert "part-3.parquet" in shown
    assert "an extra column 'extra'" in shown
    spoil(parts / "parquet", "part-3.parquet", stay=np.nan)
    assert "part-3.parquet': y: column 'stay' has missing values" in refusal(*command)
    (parts / "parquet" / "part-3.parquet").write_text("31337")
    assert "part-3.parquet' cannot be read" in refusal(*command)


def test_a_broken_svmlight_part_is_named(parts):
    (parts / "svm" / "part-3.svm").write_text("1 1:31337x\n")
    assert "part-3.svm' is not svmlight" in refusal(parts / "svm", *BOUNDS, "--out", parts / "m.json")
    (parts / "svm" / "part-3.svm").write_text("1 1:31337 2:inf\n")
    assert "part-3.svm': X: column 1 has missing or inf" in refusal(parts / "svm", *BOUNDS, "--out", parts / "m.json")


def test_a_folder_of_nothing_or_of_both_kinds_is_refused(parts, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "with no .parquet and .svm/.libsvm files" in refusal(tmp_path / "empty", *BOUNDS)
    (tmp_path / "empty" / "a.svm").touch()
    assert "has no rows" in refusal(tmp_path / "empty", *BOUNDS)
    (tmp_path / "empty" / "a.svm").write_text("# nobody\n")
    assert thresher("fit", parts / "svm", *BOUNDS, "--out", parts / "m.json").exit_code == 0
    assert "has no rows" in thresher("predict", parts / "m.json", tmp_path / "empty").stderr
    (parts / "svm" / "more.parquet").touch()
    assert "with both .parquet and .svm/.libsvm files" in refusal(parts / "svm", *BOUNDS)


def test_without_dask_the_error_says_what_to_install(parts, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    assert "pip install 'thresher[dask]'" in refusal(parts / "svm", *BOUNDS)
