"""The commands, run as a user runs them; bad input ends in one line and exit status 2."""

from __future__ import annotations

import csv
import json
import re
import sys
from importlib import metadata

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file
from typer.testing import CliRunner

from thresher import SparseRegressor
from thresher.algorithms import REGISTRY
from thresher.cli.app import app

BOUNDS = ["--feature-bound", "1", "--target-bound", "0,8", "--sparsity", "2"]


def thresher(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = np.round(rng.uniform(-1, 1, (3000, 8)), 3)
    return X, np.round(4 + 2 * X[:, 3] - X[:, 5] + rng.normal(0, 0.1, 3000), 3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, rows):
    """The same table in every format the command line reads."""
    path = tmp_path_factory.mktemp("data")
    X, y = rows
    names = [f"gene {j}" for j in range(X.shape[1])]
    with (path / "table.csv").open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow([*names, "stay"])
        writer.writerows(np.column_stack([X, y]).tolist())
    dump_svmlight_file(X, y, str(path / "table.svm"), zero_based=False)
    matrix = sparse.csr_matrix(X)
    np.savez(path / "table.npz", data=matrix.data, indices=matrix.indices, indptr=matrix.indptr, shape=matrix.shape,
             format=np.array(b"csr"), y=y)  # fmt: skip
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame(np.column_stack([X, y]), columns=[*names, "stay"]).to_parquet(path / "table.parquet")
    return path


@pytest.mark.parametrize("name", ["table.csv", "table.parquet", "table.svm", "table.npz"])
def test_fit_predict_and_verify_from_every_format(name, folder, rows, tmp_path):
    model, predictions = tmp_path / "model.json", tmp_path / "predictions.csv"
    target = ["--target", "stay"] if name in ("table.csv", "table.parquet") else []
    fitted = thresher("fit", folder / name, *target, *BOUNDS, "--hardened", "--out", model)
    assert fitted.exit_code == 0, fitted.stderr
    assert ("gene 3" in fitted.stdout) == bool(target)
    # of svmlight, indices that rows hold tell which columns there are
    assert ("replace-one, conditional" if name == "table.svm" else "replace-one, proved") in fitted.stdout
    assert thresher("predict", model, folder / name, "--out", predictions).exit_code == 0
    with predictions.open() as file:
        predicted = [float(row["prediction"]) for row in csv.DictReader(file)]
    assert np.corrcoef(predicted, rows[1])[0, 1] > 0.95
    verified = thresher("verify", model)
    assert verified.exit_code == 0
    assert "The certificate holds" in verified.stdout


def test_a_row_that_tells_the_columns_of_a_svmlight_file_is_assumed_to_be_public(tmp_path):
    """One index of 0 moves everybody's columns by one, and the largest index is how many columns there are."""
    lines = [f"{at % 3} 1:0.{at % 9} 2:0.5" for at in range(40)]
    for name, first in (("from 1", "1 1:0.5"), ("from 0", "1 0:0.5"), ("wide", "1 9:0.5")):
        (tmp_path / "t.svm").write_text("\n".join([first, *lines]) + "\n")
        model = tmp_path / f"{name}.json"
        assert thresher("fit", tmp_path / "t.svm", *BOUNDS[:-1], "1", "--out", model).exit_code == 0
        certificate = json.loads(model.read_text())["certificate"]
        assert certificate["grade"] == "conditional"
        assert any("svmlight" in assumption for assumption in certificate["assumptions"])


def test_classification_with_public_text_labels(folder, tmp_path):
    text = (folder / "table.csv").read_text(encoding="utf-8-sig").splitlines()
    fields = [line.rpartition(",") for line in text[1:]]
    labelled = [text[0], *(f"{x},{'long' if float(y) > 4 else 'short'}" for x, _, y in fields)]
    (tmp_path / "t.csv").write_text("\n".join(labelled))
    options = ["--target", "stay", "--task", "classification", "--feature-bound", "1", "--sparsity", "2", "--hardened"]
    fitted = thresher("fit", tmp_path / "t.csv", *options, "--classes", "short,long", "--out", tmp_path / "m.json")
    assert fitted.exit_code == 0, fitted.stderr
    assert "proved" in fitted.stdout
    predicted = thresher("predict", tmp_path / "m.json", tmp_path / "t.csv").stdout.splitlines()
    assert predicted[0] == "prediction,probability_short"
    truth = [line.rpartition(",")[2] for line in labelled[1:]]
    agreement = np.mean([line.split(",")[0] == label for line, label in zip(predicted[1:], truth, strict=True)])
    assert agreement > 0.9


@pytest.mark.parametrize(("algorithm", "shown"), [("dp-sgd", "sampled gradient"), ("dp-agd", "spent while running")])
def test_a_dense_model_from_the_command_line(algorithm, shown, folder, rows, tmp_path):
    X, y = rows
    model = tmp_path / "model.json"
    bounds = ["--feature-bound", "1", "--target-bound", "0,8", "--epsilon", "4"]
    fitted = thresher(
        "fit", folder / "table.csv", "--target", "stay", "--algorithm", algorithm, *bounds, "--out", model
    )
    assert fitted.exit_code == 0, fitted.output
    assert shown in fitted.output
    assert len(json.loads(model.read_text())["support"]) == X.shape[1]
    assert thresher("verify", model).exit_code == 0
    predicted = thresher("predict", model, folder / "table.csv").stdout.splitlines()[1:]
    assert np.corrcoef(np.array(predicted, dtype=float), y)[0, 1] > 0.9


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_people_with_several_rows_from_the_command_line(ending, rows, tmp_path):
    pandas = pytest.importorskip("pandas")
    (X, y), who = rows, np.array([f"patient {at % 1100}" for at in range(3000)])
    names = [f"gene {j}" for j in range(X.shape[1])]
    frame = pandas.DataFrame(X, columns=names).assign(who=who, stay=y)
    file, model = tmp_path / f"table.{ending}", tmp_path / "model.json"
    if ending == "csv":
        frame.to_csv(file, index=False)
    elif ending == "parquet":
        frame.to_parquet(file)
    else:
        np.savez(file, X=X, y=y, who=who)
    target = [] if ending == "npz" else ["--target", "stay"]
    fitted = thresher("fit", file, *target, "--person", "who", *BOUNDS, "--out", model)
    assert fitted.exit_code == 0, fitted.stderr
    assert "a person: all rows with one id are protected together" in fitted.stdout
    certificate = json.loads(model.read_text())["certificate"]
    assert (certificate["unit"], certificate["n_samples"], certificate["n_features"]) == ("person", 1100, 8)
    assert not re.search(r"(?<![\d.])3000(?!\d)", fitted.stdout + model.read_text())
    verified = thresher("verify", model)
    assert verified.exit_code == 0
    assert "The certificate holds." in verified.stdout
    assert thresher("predict", model, file, "--out", tmp_path / "predictions.csv").exit_code == 0


def test_plan_shows_every_private_algorithm_without_data():
    planned = thresher("plan", "--n", 800, "--d", 1000, "--sparsity", 10, "--epsilon", 1, "--no-simulate", "--json")
    plans = json.loads(planned.stdout)
    assert [plan["algorithm"] for plan in plans] == [name for name in REGISTRY if name != "ight"]
    assert all(0.999 < plan["epsilon"] <= 1 for plan in plans)
    assert "auto chose pursuit" in thresher("plan", "--n", 800, "--d", 1000, "--no-simulate").stdout


def outlook(*arguments):
    shape = ["--d", 2000, "--sparsity", 5, "--task", "classification", "--no-simulate"]
    return thresher("plan", *shape, *arguments).stdout


def test_plan_warns_where_features_drown_and_where_nothing_can_work():
    assert "drown" not in outlook("--n", 100_000, "--epsilon", 1)
    weak = outlook("--n", 400, "--epsilon", 1)
    assert "such features drown" in weak
    assert "nothing here can work" not in weak
    patients = outlook("--n", 62, "--epsilon", 1)
    assert "Even a feature that decides the target alone would drown" in patients
    assert "With 62 rows and 5 features nothing here can work" in patients


def test_plan_for_many_classes_shares_one_gradient():
    shown = outlook("--n", 100_000, "--classes", 20)
    assert "one gradient serves all 20 classes" in shown


def test_many_classes_from_the_command_line(tmp_path):
    rng = np.random.default_rng(0)
    X = np.round(rng.uniform(-1, 1, (3000, 4)), 3)
    kinds = np.array(["low", "middle", "high"])[np.digitize(X[:, 1], [-0.4, 0.4])]
    with (tmp_path / "kinds.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["a", "b", "c", "d", "kind"], *([*x, k] for x, k in zip(X, kinds, strict=True))])
    model, data = tmp_path / "model.json", tmp_path / "kinds.csv"
    fitted = thresher(
        "fit", data, "--target", "kind", "--task", "classification", "--classes", "low,middle,high",
        "--sparsity", 1, "--epsilon", 8, "--feature-bound", 1, "--out", model,
    )  # fmt: skip
    assert fitted.exit_code == 0, fitted.stderr
    assert "middle" in fitted.stdout
    lines = thresher("predict", model, data).stdout.splitlines()
    assert lines[0] == "prediction,probability_high,probability_low,probability_middle"
    predicted = np.array([line.split(",")[0] for line in lines[1:]])
    assert np.mean(predicted == kinds) > 0.6  # the largest class has 0.4


def test_verify_fails_on_a_tampered_model(folder, tmp_path):
    model = tmp_path / "model.json"
    thresher("fit", folder / "table.csv", "--target", "stay", *BOUNDS, "--out", model)
    record = json.loads(model.read_text())
    record["certificate"]["epsilon"] = 0.5
    model.write_text(json.dumps(record))
    verified = thresher("verify", model)
    assert verified.exit_code == 1
    assert "more than the stated 0.5" in verified.stderr


@pytest.mark.parametrize("unit", ["household", ["person"], None])
def test_verify_fails_on_a_unit_that_it_does_not_know(unit, folder, tmp_path):
    path = tmp_path / "model.json"
    thresher("fit", folder / "table.csv", "--target", "stay", *BOUNDS, "--out", path)
    model = json.loads(path.read_text())
    model["certificate"]["unit"] = unit
    path.write_text(json.dumps(model))
    verified = thresher("verify", path)
    assert verified.exit_code == 1
    assert f"unit={unit!r} is not one of row, person" in verified.stderr


def test_verify_reports_an_accountant_that_is_not_ours(folder, tmp_path):
    model = tmp_path / "model.json"
    thresher("fit", folder / "table.csv", "--target", "stay", *BOUNDS, "--out", model)
    record = json.loads(thresher("verify", model, "--json").stdout)
    assert record["ok"]
    assert record["epsilon"] <= 1 <= record["dp_accounting_epsilon"] < 1.2


def test_verify_refuses_what_is_no_model(tmp_path):
    (tmp_path / "list.json").write_text("[1]")
    refused = thresher("verify", tmp_path / "list.json")
    assert refused.exit_code == 2
    assert "neither a model nor a certificate" in refused.stderr


def test_fit_writes_a_page_about_the_model(folder, tmp_path):
    model, report = tmp_path / "model.json", tmp_path / "report.html"
    arguments = ["fit", folder / "table.csv", "--target", "stay", *BOUNDS, "--out", model, "--report", report]
    fitted = thresher(*arguments)
    assert fitted.exit_code == 0, fitted.stderr
    assert "to print: " in fitted.stdout
    page = report.read_text(encoding="utf-8")
    assert "gene 3" in page
    assert page.count("<svg") == 5
    printed = thresher(*arguments, "--force", "--json")
    assert json.loads(printed.stdout)["feature_names"][3] == "gene 3"  # and nothing else


@pytest.mark.parametrize("command", [["fit", "/nowhere/table.csv"], ["demo"]])
def test_a_page_that_cannot_be_made_is_refused_before_data_is_read(command, tmp_path, monkeypatch):
    refused = thresher(*command, "--report", "/nowhere/report.html")
    assert refused.exit_code == 2
    assert refused.stderr.startswith("thresher: --report='/nowhere/report.html' cannot be written; give a file in a")
    assert refused.stdout == ""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    refused = thresher(*command, "--report", tmp_path / "report.html")
    assert refused.exit_code == 2
    assert "needs matplotlib; run: pip install 'thresher[report]'" in refused.stderr


def test_demo_runs_and_verifies(tmp_path):
    shown = thresher("demo", "--out", tmp_path / "model.json", "--report", tmp_path / "report.html")
    assert shown.exit_code == 0
    assert "Verified from the listed releases alone: epsilon 2" in shown.stdout
    assert (tmp_path / "model.json").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.csv"], ("nowhere.csv", "does not exist")),
        (["table.csv", "--target", "age", *BOUNDS], ("--target='age'", "gene 0")),
        (["table.csv", *BOUNDS], ("--target=None", "name the column")),
        (["table.csv", "--target", "stay", "--target-bound", "3"], ("feature_bound=None", "give at least one")),
        (["table.csv", "--target", "stay", "--feature-bound", "1"], ("target_bound=None", "public range")),
        (["table.csv", "--target", "stay", *BOUNDS, "--epsilon", "-1"], ("epsilon=-1.0", "above 0")),
        (["table.csv", "--target", "stay", *BOUNDS, "--delta", "2"], ("delta=2.0", "between 0 and 1")),
        (["table.csv", "--target", "stay", *BOUNDS, "--sparsity", "99"], ("sparsity=99", "at most 8")),
        (["table.csv", "--target", "stay", *BOUNDS, "--algorithm", "magic"], ("algorithm='magic'", "'dp-ight'")),
        (["table.csv", "--target", "stay", *BOUNDS, "--target-bound", "x"], ("--target-bound='x'", "LOW,HIGH")),
        (
            ["table.csv", "--target", "stay", *BOUNDS, "--task", "classification"],
            ("--target-bound=0,8", "leave it out"),
        ),
    ],
)
def test_bad_input_is_one_line_that_names_argument_value_and_remedy(arguments, words, folder):
    ended = thresher("fit", folder / arguments[0], *arguments[1:])
    assert ended.exit_code == 2
    assert len(ended.stderr.strip().splitlines()) == 1
    for word in words:
        assert word in ended.stderr


@pytest.mark.parametrize("out", ["missing/model.json", "."])
def test_a_model_that_could_not_be_written_is_never_fitted(out, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(SparseRegressor, "fit", None)
    ended = thresher("fit", folder / "table.csv", "--target", "stay", *BOUNDS, "--out", tmp_path / out)
    assert ended.exit_code == 2
    assert "cannot be written; give a file" in ended.stderr


def test_the_version_is_shown():
    assert thresher("--version").stdout.strip() == metadata.version("thresher")


def test_a_privacy_warning_is_shown_in_one_line(folder, tmp_path):
    shown = thresher(
        "fit", folder / "table.csv", "--target", "stay", *BOUNDS, "--delta", "0.01", "--out", tmp_path / "m"
    )
    assert shown.exit_code == 0
    assert "thresher: warning: delta=0.01 is not below 1/n" in shown.stderr


# -- audit ------------------------------------------------------------------------------------------------------


def test_audit_prints_the_bound_and_says_what_it_means(tmp_path):
    report = tmp_path / "audit.html"
    args = ["audit", "label-ldp-iht-printed", "--runs", "400", "--seed", "0", "--jobs", "1", "--report", str(report)]
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 0, result.output
    assert "DISPROVED" in result.stdout
    assert "erratum E-12" in result.stdout
    assert "<svg" in report.read_text()


def test_audit_as_json_is_repeatable():
    args = ["audit", "dp-ight", "--runs", "200", "--seed", "0", "--jobs", "1", "--json"]
    first, again = (json.loads(CliRunner().invoke(app, args).stdout) for _ in range(2))
    for record in (*first, *again):
        record.pop("seconds")
    assert first == again
    assert [record["kind"] for record in first] == ["algorithm"] * len(first)
    assert all(record["epsilon_lower"] <= record["claimed_epsilon"] for record in first)


def test_audit_ends_with_status_1_if_a_broken_copy_is_not_caught():
    result = CliRunner().invoke(app, ["audit", "votes-quiet", "--runs", "200", "--seed", "0", "--jobs", "1"])
    assert result.exit_code == 1
    assert "NOT CAUGHT" in " ".join(result.stdout.split())
    assert "UNEXPECTED" in result.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nothing"], "NAME='nothing' is not known; use all, dp-ight"),
        (["gradient", "--runs", "5"], "runs=5 must be a whole number of at least 100"),
        (["gradient", "--confidence", "1"], "confidence=1.0 must lie strictly between 0 and 1"),
        (["gradient", "--report", "/nowhere/audit.html"], "--report='/nowhere/audit.html' cannot be written"),
    ],
)
def test_audit_refuses_bad_input_in_one_line(args, message):
    result = CliRunner().invoke(app, ["audit", *args, "--jobs", "1"])
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("command", [["fit"], ["plan"], ["schema", "draft"], ["audit"]])
def test_help_teaches(command):
    """What an argument is, defaults as they are, and examples on lines of their own."""
    text = CliRunner().invoke(app, [*command, "--help"]).stdout
    assert "\\[" not in text
    lines = [line.strip() for line in text.splitlines()]
    examples = lines[lines.index("Examples:") + 2 :]
    assert sum(line.startswith(f"thresher {' '.join(command)} ") for line in examples) >= 2
    if command[0] in ("fit", "schema"):
        assert re.search(r"(?i)^data\s.*\.csv", "\n".join(lines), flags=re.MULTILINE)
