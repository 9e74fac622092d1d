"""thresher schema, and fit and predict with --schema, as a new user types them."""

import json
import re

import pytest
from typer.testing import CliRunner

from messy_table import SCHEMA, write_messy
from thresher.cli.app import app


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_messy("t.csv", 2000)
    (tmp_path / "t.toml").write_text(SCHEMA)
    return tmp_path


def run(*arguments, status=0):
    ended = CliRunner().invoke(app, list(arguments))
    assert ended.exit_code == status, ended.output
    return ended


def test_from_a_file_to_a_certificate(here):
    said = run("schema", "draft", "t.csv", "--target", "stay", "--out", "d.toml").stdout
    assert "Next: edit it, then: thresher schema check t.csv --schema d.toml" in said
    assert "read_from_data = true" in (here / "d.toml").read_text()
    assert "Read from the data" in run("schema", "check", "t.csv", "--schema", "d.toml").stdout
    shown = run("schema", "check", "t.csv", "--schema", "t.toml").stdout
    assert "A regression of 'stay' on 5 features in 9 columns, protecting each 'patient' with all rows" in shown
    assert "Read from the data" not in shown
    assert "guarantee" in run("fit", "t.csv", "--schema", "t.toml", "--epsilon", "4").stdout
    assert "The certificate holds." in run("verify", "model.json").stdout
    assert len(run("predict", "model.json", "t.csv").stdout.splitlines()) == 2002


def test_checks_as_json(here):
    record = json.loads(run("schema", "check", "t.csv", "--schema", "t.toml", "--json").stdout)
    assert record["columns"] == 9
    assert (record["task"], record["target"], record["person"]) == ("regression", "stay", "patient")
    assert record["read_from_data"] == []
    assert re.fullmatch("[0-9a-f]{64}", record["sha256"])
    drafted = json.loads(run("schema", "draft", "t.csv", "--target", "stay", "--out", "j.toml", "--json").stdout)
    assert drafted["columns"]["stay"]["role"] == "target"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["schema", "draft", "t.csv", "--target", "stay"], "--out='t.toml' exists; give another name, or --force"),
        (["schema", "draft", "t.csv", "--target", "hay", "--out", "n.toml"], "'hay' is not a column of DATA"),
        (["schema", "draft", "no.csv", "--target", "stay"], "DATA='no.csv' is not a file"),
        (["schema", "check", "t.csv", "--schema", "no.toml"], "schema='no.toml' cannot be read"),
        (["fit", "t.csv", "--schema", "t.toml", "--target", "stay"], "--target=stay: the schema declares it"),
        (["fit", "t.csv", "--schema", "t.toml", "--feature-bound", "1"], "--feature-bound=1.0: the schema declares"),
        (["fit", "t.npz", "--schema", "t.toml"], "DATA='t.npz' is not a file"),
        (["fit", "t.toml", "--schema", "t.toml"], "a schema describes .csv and .parquet files"),
        (["fit", "t.csv", "--schema", "t.toml", "--algorithm", "two-stage"], "two-stage"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(here, arguments, says):
    ended = run(*arguments, status=2)
    assert says in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1
    assert not (here / "model.json").exists()
