"""thresher ledger and thresher fit --ledger, as a custodian and an analyst run them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from inside import store_of
from thresher import Ledger
from thresher.cli.app import app

FIT = ["--target", "y", "--sparsity", "2", "--delta", "1e-6", "--feature-bound", "1", "--target-bound", "2"]


def thresher(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 4))
    table = np.column_stack([X, X[:, 0] + 0.1 * rng.normal(size=300)])
    np.savetxt("people.csv", table, delimiter=",", header="a,b,c,d,y", comments="")
    return tmp_path


def test_from_grant_to_refusal(here):
    created = thresher("ledger", "create", "budget.db")
    assert created.exit_code == 0, created.stderr
    assert "budget.db.key" in created.stdout
    assert thresher("ledger", "grant", "budget.db", "people", "--epsilon", "1.2", "--delta", "1e-6").exit_code == 0
    paid = ["--ledger", "budget.db", "--dataset", "people"]
    fitted = thresher("fit", "people.csv", *FIT, "--epsilon", "1", *paid, "--out", "model.json")
    assert fitted.exit_code == 0, fitted.stderr
    assert "paid by" in fitted.stdout
    refused = thresher("fit", "people.csv", *FIT, "--epsilon", "1", *paid, "--out", "again.json")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.count("\n") == 1
    assert "dataset='people': this fit costs epsilon=1 at delta=1e-06. Of the 1.2 granted, 1 is spent" in refused.stderr
    assert not (here / "again.json").exists()

    (account,) = json.loads(thresher("ledger", "show", "budget.db", "--json").stdout)
    assert (account["granted"], account["fits"], account["reserved"]) == (1.2, 1, 0)
    assert 0.2 < account["affordable"] < 1.2
    assert "up to" in thresher("ledger", "show", "budget.db").stdout
    lines = json.loads(thresher("ledger", "history", "budget.db", "people", "--json").stdout)
    assert [(line["kind"], line["status"]) for line in lines] == [("grant", "granted"), ("fit", "committed")]
    shown = "".join(thresher("ledger", "history", "budget.db", "people").stdout.split())
    assert "newton" in shown

    checked = thresher("ledger", "verify", "budget.db", "--model", "model.json", "--json")
    assert checked.exit_code == 0, checked.stdout
    head = json.loads(checked.stdout)["head"]
    assert head in thresher("ledger", "verify", "budget.db", "--head", head).stdout.replace("\n", "")


def test_tampering_is_exit_status_1(here):
    ledger = Ledger("budget.db")
    ledger.grant("people", 1.0, 1e-6)
    with store_of(ledger).transaction() as run:
        run("UPDATE thresher_ledger SET body = REPLACE(body, '1.0', '9.0') WHERE sequence = 2")
    for arguments in (["--json"], []):
        checked = thresher("ledger", "verify", "budget.db", *arguments)
        assert checked.exit_code == 1
        assert "entry 2 of the ledger was changed" in checked.stdout + checked.stderr
    assert thresher("ledger", "show", "budget.db").exit_code == 2


def test_analysts_have_names(here):
    for analyst in ([], ["--analyst", "ann"]):
        granted = thresher("ledger", "grant", "budget.db", "people", "--epsilon", "2", "--delta", "1e-6", *analyst)
        assert granted.exit_code == 0, granted.stderr
    paid = ["--ledger", "budget.db", "--dataset", "people"]
    assert "say who asks" in thresher("fit", "people.csv", *FIT, *paid).stderr
    assert thresher("fit", "people.csv", *FIT, *paid, "--analyst", "ann").exit_code == 0
    records = json.loads(thresher("ledger", "show", "budget.db", "--json").stdout)
    assert [(record["analyst"], record["fits"]) for record in records] == [(None, 1), ("ann", 1)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ledger", "show", "none.db"], "does not exist; make it with: thresher ledger create"),
        (["ledger", "grant", "budget.db", "p", "--epsilon", "-1", "--delta", "1e-6"], "epsilon=-1.0"),
        (["ledger", "grant", "budget.db", "p", "--epsilon", "1", "--delta", "1e-6", "--unit", "house"], "unit='house'"),
        (["fit", "people.csv", *FIT, "--dataset", "people"], "give ledger= as well"),
        (["fit", "people.csv", *FIT, "--analyst", "ann"], "only with --ledger"),
        (["fit", "people.csv", *FIT, "--ledger", "none.db", "--dataset", "p"], "does not exist"),
    ],
)
def test_bad_input_ends_in_one_line(here, arguments, words):
    refused = thresher(*arguments)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert words in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_an_empty_ledger_says_what_comes_next(here):
    thresher("ledger", "create", "budget.db")
    assert "thresher ledger grant" in thresher("ledger", "show", "budget.db").stdout
