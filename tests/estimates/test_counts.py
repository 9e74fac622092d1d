"""Private counts of cells that are not what a schema declares."""

import json
from datetime import date

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from messy_table import PLANTED, SCHEMA, write_messy
from thresher import Ledger, Schema
from thresher.cli.app import app
from thresher.data.schema import Column
from thresher.data.schema.cells import FAULTS, codes_of, faults_of, numbers_of, several_codes_of
from thresher.estimates.counts import count_faults

NONE, MISSING, UNREADABLE, OUTSIDE = -1, 0, 1, 2


def column(**entries):
    return Column.from_dict("x", entries)


@pytest.mark.parametrize(
    ("declared", "cells", "faults"),
    [
        ({"bounds": [0, 9]}, ["3", "", "x", "10", "-1", "nan", None, "9"],
         [NONE, MISSING, UNREADABLE, OUTSIDE, OUTSIDE, UNREADABLE, MISSING, NONE]),
        ({"bounds": [0, 9], "outside": "missing"}, np.array([1.0, np.nan, np.inf, 12]),
         [NONE, MISSING, OUTSIDE, OUTSIDE]),
        ({"bounds": [date(2020, 1, 1), date(2020, 12, 31)]}, ["2020-02-01", "2021-01-01", "soon", " "],
         [NONE, OUTSIDE, UNREADABLE, MISSING]),
        ({"bounds": [date(2020, 1, 1), date(2020, 12, 31)]},
         pd.Series(["2020-02-01", None, "2019-01-01"], dtype="datetime64[ns]"), [NONE, MISSING, OUTSIDE]),
        ({"categories": ["a", "b"]}, ["a", " b ", "c", "", None], [NONE, NONE, UNREADABLE, MISSING, MISSING]),
        ({"categories": [1, 2]}, ["1", "1.0", "3", "x", ""], [NONE, NONE, UNREADABLE, UNREADABLE, MISSING]),
        ({"categories": ["a", "b"], "separator": "|"}, ["a|b", "a|c", "", "|", "b|"],
         [NONE, UNREADABLE, MISSING, MISSING, NONE]),
        ({"role": "person"}, ["p1", "", None, "x"], [NONE, MISSING, MISSING, NONE]),
    ],
)  # fmt: skip
def test_every_cell_has_one_fault_or_none(declared, cells, faults):
    declared = column(**declared)
    assert faults_of(declared, cells).tolist() == faults
    if declared.kind in ("number", "date"):  # and a fit does with it what the fault says
        read = numbers_of(declared, cells)
        gaps = [fault in (MISSING, UNREADABLE) or (fault == OUTSIDE and declared.outside == "missing")
                for fault in faults]  # fmt: skip
        assert np.isnan(read).tolist() == gaps
    elif declared.kind == "category" and declared.separator is None:
        assert (codes_of(declared, cells) < 0).tolist() == [fault != NONE for fault in faults]
    elif declared.kind == "category":
        rows, codes = several_codes_of(declared, cells)
        assert {*rows[codes < 0].tolist()} == {at for at, fault in enumerate(faults) if fault != NONE}


TABLE = "x,day,kind,y\n" + "3,2020-05-05,a,1\n" * 940 + ",2020-05-05,a,1\n" * 20 + "?,2020-05-05,a,1\n" * 10
TABLE += "99,2030-01-01,a,1\n" * 10 + "3,2020-05-05,c,1\n" * 10 + "torn,line\n" * 10
FACTS = """
[columns.x]
bounds = [0, 9]
[columns.day]
bounds = [2020-01-01, 2020-12-31]
[columns.kind]
categories = ["a", "b"]
[columns.y]
role = "target"
bounds = [0, 1]
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(TABLE)
    (tmp_path / "t.toml").write_text(FACTS)
    return tmp_path


def run(*arguments, status=0):
    ended = CliRunner().invoke(app, list(arguments))
    assert ended.exit_code == status, ended.output
    return ended


def test_counts_are_right_up_to_their_standard_error(here):
    """Torn lines count as gaps of all columns, too, as in a fit. 11 numbers within 6 errors: false alarm rate 1e-7."""
    counts = count_faults("t.csv", Schema.read("t.toml"), epsilon=1.0, delta=1e-6)
    truth = {"x": [30, 10, 10], "day": [10, 0, 10], "kind": [10, 10], "y": [10, 0, 0]}
    assert counts.standard_error < 30
    for name, faults in truth.items():
        assert list(counts.cells[name]) == list(FAULTS[: len(faults)])
        assert np.allclose([*counts.cells[name].values()], faults, atol=6 * counts.standard_error)
    assert abs(counts.odd_rows - 10) < 6 * counts.standard_error
    sharp = count_faults("t.csv", Schema.read("t.toml"), epsilon=1e5, delta=1e-6)
    assert sharp.standard_error < 0.2
    assert {name: [round(count) for count in faults.values()] for name, faults in sharp.cells.items()} == truth
    assert round(sharp.odd_rows) == 10


def test_frames_have_no_torn_lines(here):
    counts = count_faults(pd.read_csv("t.csv", skipfooter=10, engine="python"), Schema.read("t.toml"), epsilon=1e5)
    assert counts.odd_rows is None
    assert round(counts.cells["x"]["missing"]) == 20
    assert counts.certificate.releases[0]["answers"][0]["clip"] == pytest.approx(2.0)  # four columns, no more


def test_the_command_tells_counts_and_their_cost_only_if_asked(here):
    plain = run("schema", "check", "t.csv", "--schema", "t.toml")
    assert "missing" not in plain.stdout
    assert "cost" not in plain.stdout
    told = run("schema", "check", "t.csv", "--schema", "t.toml", "--epsilon", "0.5", "--delta", "1e-6").stdout
    assert "about how many of 1000 rows" in told
    assert "It cost epsilon 0.5 at delta 1e-06 of the budget of the rows." in told
    record = json.loads(run("schema", "check", "t.csv", "--schema", "t.toml", "--epsilon", "0.5", "--json").stdout)
    counts = record["counts"]
    assert (counts["of"], counts["counted"], counts["epsilon"], counts["delta"]) == (1000, "rows", 0.5, 1e-6)
    assert set(counts["cells"]) == {"x", "day", "kind", "y"}
    assert counts["standard_error"] > 10


def test_the_ledger_pays_or_nothing_is_counted(here):
    Ledger("b.db").grant("t", 1.0, 1e-6)
    arguments = ("schema", "check", "t.csv", "--schema", "t.toml", "--ledger", "b.db", "--dataset", "t")
    run(*arguments, "--epsilon", "0.8")
    assert Ledger("b.db").spent("t").epsilon == pytest.approx(0.8, rel=1e-6)
    refused = run(*arguments, "--epsilon", "0.8", status=2)
    assert "costs epsilon" in refused.stderr
    assert "about how many" not in refused.stdout
    assert "nothing is spent without --epsilon" in run(*arguments, status=2).stderr


def test_people_are_counted_where_the_schema_names_them(tmp_path):
    """3000 rows of almost as many people; 6 standard errors: false alarm rate 1e-7."""
    write_messy(tmp_path / "t.csv", 3000)
    (tmp_path / "t.toml").write_text(SCHEMA)
    counts = count_faults(tmp_path / "t.csv", Schema.read(tmp_path / "t.toml"), epsilon=2.0)
    assert counts.certificate.unit == "person"
    assert counts.to_dict()["counted"] == "people"
    assert abs(counts.cells["income"]["missing"] - 300) < 6 * counts.standard_error + 30
    assert not any(planted in json.dumps(counts.to_dict()) for planted in PLANTED.values())
